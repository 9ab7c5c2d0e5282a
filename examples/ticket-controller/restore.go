package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/examples/ticket-controller/backup"
)

// The annotations of the controller that a restore sets, and its own mark, which
// tells a Ticket that is being taken over from one that a person has paused.
const (
	annotationPaused = "flights.com/paused"
	annotationNew    = "flights.com/ticket.new"
	annotationTaking = "flights.com/restore.taking-over"
)

// plan is what a restore does about one Ticket of the file.
type plan struct {
	do    deed
	why   string
	was   *unstructured.Unstructured // as the file has it
	claim tether.Claim               // of it
	have  *unstructured.Unstructured // as it stands; nil where it does not
}

type deed string

const (
	create   deed = "create"    // it is not there
	takeOver deed = "take over" // create it, or go on with that, and take its booking over
	leave    deed = "leave"     // nothing is to be done, or may be
	refuse   deed = "refuse"    // what stands there is another's
)

// decide tells what is to be done about a Ticket of the file.
func (d *desk) decide(was, have *unstructured.Unstructured) plan {
	p := plan{was: was, have: have}
	claim, err := d.references.Claim(was)
	if err != nil {
		return p.told(refuse, err.Error()+"; restore it by hand")
	}
	p.claim = claim
	elsewhere := claim.Cluster != "" && claim.Cluster != d.clusterID && !slices.Contains(d.formerClusterIDs, claim.Cluster)
	switch {
	case was.GetDeletionTimestamp() != nil:
		return p.told(leave, "it was being deleted when the backup was taken")
	case have == nil && !elsewhere:
		return p.told(create, "")
	case have == nil && !d.takeOver:
		return p.told(create, "its booking is cluster "+claim.Cluster+"'s: it will stand Stalled; --take-over takes the booking over")
	case have == nil:
		return p.told(takeOver, "from cluster "+claim.Cluster)
	}
	standing, err := d.references.Claim(have)
	same := standing.UID == claim.UID && standing.Cluster == claim.Cluster && claim.UID != ""
	switch {
	case err != nil:
		return p.told(refuse, "a Ticket of this name is there: "+err.Error())
	case have.GetDeletionTimestamp() != nil:
		return p.told(refuse, "a Ticket of this name is there, and being deleted; wait until it is gone")
	case have.GetAnnotations()[annotationTaking] != "" && !d.takeOver:
		return p.told(refuse, "taking it over was cut short; say --take-over to go on")
	case have.GetAnnotations()[annotationTaking] != "":
		return p.told(takeOver, "which was cut short")
	case have.GetUID() == was.GetUID() || same && !elsewhere:
		return p.told(leave, "it is there")
	case same && d.takeOver:
		return p.told(takeOver, "from cluster "+claim.Cluster)
	case same:
		return p.told(leave, "it is there, and stands Stalled; --take-over takes its booking over")
	case elsewhere && standing.Cluster == d.clusterID:
		return p.told(leave, "a Ticket of this name is there, with a claim of this cluster; it is not changed")
	}
	return p.told(refuse, "another Ticket of this name is there; delete it first, or leave this one out")
}

func (p plan) told(do deed, why string) plan {
	p.do, p.why = do, why
	return p
}

// restore makes the Tickets of a file.
func (d *desk) restore(ctx context.Context, stdout io.Writer) error {
	b, err := backup.Open(d.file)
	if err != nil {
		return err
	}
	have := map[types.NamespacedName]*unstructured.Unstructured{}
	for t, err := range d.all(ctx) {
		if err != nil {
			return err
		}
		have[nameOf(t)] = t
	}
	var plans []plan
	for _, was := range b.Tickets {
		if d.concerns(was.GetNamespace()) {
			plans = append(plans, d.decide(was, have[nameOf(was)]))
		}
	}
	say := func(p plan, err error) {
		line := fmt.Sprintf("%s/%s: %s", p.was.GetNamespace(), p.was.GetName(), p.do)
		if p.why != "" {
			line += ": " + p.why
		}
		if err != nil {
			line += ": FAILED: " + err.Error()
		}
		_, _ = fmt.Fprintln(stdout, line) // what it says is done all the same
	}
	if d.dryRun {
		for _, p := range plans {
			say(p, nil)
		}
		_, err := fmt.Fprintln(stdout, "nothing was done: --dry-run")
		return err
	}
	return d.carryOut(ctx, plans, say)
}

func nameOf(t *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: t.GetNamespace(), Name: t.GetName()}
}

// carryOut carries out each plan by itself: one that fails keeps no other from it.
func (d *desk) carryOut(ctx context.Context, plans []plan, say func(plan, error)) error {
	var mu sync.Mutex // guards failed, refused and say
	failed, refused := 0, 0
	todo := make(chan plan)
	var workers sync.WaitGroup
	for range cmp.Or(d.workers, 4) {
		workers.Go(func() {
			for p := range todo {
				p, err := d.carry(ctx, p)
				mu.Lock()
				say(p, err)
				if err != nil {
					failed++
				}
				if p.do == refuse {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	for _, p := range plans {
		if ctx.Err() != nil {
			break
		}
		todo <- p
	}
	close(todo)
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped: %w; run it again, and it goes on", context.Cause(ctx))
	}
	if failed+refused > 0 {
		return fmt.Errorf("of %d Tickets %d failed and %d were refused, see above; run it again when that is mended: what is done stays done", len(plans), failed, refused)
	}
	return nil
}

func (d *desk) carry(ctx context.Context, p plan) (plan, error) {
	switch p.do {
	case create:
		_, err := d.create(ctx, fresh(p.was, nil))
		return p, err
	case takeOver:
		return d.takeOverOne(ctx, p)
	}
	return p, nil
}

// fresh is a Ticket of the file as it can be created: with its claim, by which the
// controller finds the booking. Status is rebuilt from the booking.
func fresh(was *unstructured.Unstructured, annotations map[string]string) *unstructured.Unstructured {
	t := &unstructured.Unstructured{Object: map[string]any{}}
	t.SetAPIVersion(was.GetAPIVersion())
	t.SetKind(was.GetKind())
	t.SetNamespace(was.GetNamespace())
	t.SetName(was.GetName())
	t.SetLabels(was.GetLabels())
	all := maps.Clone(was.GetAnnotations())
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, annotations)
	t.SetAnnotations(all)
	for field, value := range was.Object {
		switch field {
		case "apiVersion", "kind", "metadata", "status":
		default:
			t.Object[field] = value
		}
	}
	return t
}

func (d *desk) create(ctx context.Context, t *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	made, err := d.tickets.Namespace(t.GetNamespace()).Create(ctx, t, metav1.CreateOptions{FieldManager: "ticket-controller-restore"})
	switch {
	case apierrors.IsNotFound(err) && strings.Contains(err.Error(), "namespaces"):
		return nil, fmt.Errorf("namespace %s is not there; create it", t.GetNamespace())
	case apierrors.IsAlreadyExists(err):
		return nil, errors.New("it was created meanwhile; run it again to see by whom")
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf(`%w; grant "create" and "patch" on resource "tickets" of group "flights.com"`, err)
	}
	return made, err
}

// annotate sets annotations, and takes off those whose value is nil.
func (d *desk) annotate(ctx context.Context, t *unstructured.Unstructured, annotations map[string]any) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": t.GetUID(), "annotations": annotations,
	}})
	if err != nil {
		return nil, err
	}
	return d.tickets.Namespace(t.GetNamespace()).Patch(ctx, t.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: "ticket-controller-restore"})
}
