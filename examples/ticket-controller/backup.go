package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tetherkube/tether/examples/ticket-controller/backup"
)

// backup writes all Tickets into a file, as they stood at one moment.
func (d *desk) backup(ctx context.Context, stdout io.Writer) error {
	n, err := backup.Create(d.file, backup.Header{Cluster: d.clusterID, Taken: time.Now().UTC().Truncate(time.Second)}, d.all(ctx))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%d Tickets written to %s\n", n, d.file)
	return err
}

// all are the Tickets of the namespaces asked for. Every page is of the same moment.
func (d *desk) all(ctx context.Context) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		o := metav1.ListOptions{Limit: 500}
		for {
			page, err := d.tickets.List(ctx, o)
			if err != nil {
				yield(nil, notListed(err))
				return
			}
			for i := range page.Items {
				if t := &page.Items[i]; d.concerns(t.GetNamespace()) && !yield(slim(t), nil) {
					return
				}
			}
			if o.Continue = page.GetContinue(); o.Continue == "" {
				return
			}
		}
	}
}

func notListed(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the cluster does not know Tickets: %w; apply their CustomResourceDefinition", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf(`%w; grant "list" on resource "tickets" of group "flights.com"`, err)
	case apierrors.IsResourceExpired(err):
		return fmt.Errorf("the list took too long for the API server to keep its moment: %w; run it again", err)
	}
	return err
}

// slim drops what says nothing about a Ticket.
func slim(t *unstructured.Unstructured) *unstructured.Unstructured {
	t.SetManagedFields(nil)
	return t
}
