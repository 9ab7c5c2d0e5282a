package tether_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/fake/faketest"
)

// Box is an object that stands for a box on a shelf somewhere. (DeepCopyObject is
// below; controller-gen makes it.)
type Box struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              struct{ Label string }     `json:"spec"`
	Status            struct{ ID, Label string } `json:"status,omitzero"`
}

var boxes = tether.Resource[*Box]{GroupVersion: schema.GroupVersion{Group: "example.com", Version: "v1"}, Kind: "Box", Plural: "boxes"}

// shelf is the whole External: PUT /<reference> makes a box or changes it, GET tells
// of it, DELETE takes it away. No claim, no key, no retry, no finalizer.
type shelf struct{ client *http.Client }

func (s shelf) do(ctx context.Context, method string, b *Box, c tether.Call) (tether.Observation, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://shelf.example/"+c.Reference, strings.NewReader(b.Spec.Label))
	if err != nil {
		return tether.Observation{}, tether.Terminal(err)
	}
	resp, err := s.client.Do(req)
	if err == nil {
		defer resp.Body.Close()
	}
	if err == nil && resp.StatusCode == http.StatusNotFound {
		return tether.Observation{State: tether.Absent}, nil
	}
	if err := tether.FromHTTP(resp, err); err != nil {
		return tether.Observation{}, err
	}
	if err := json.NewDecoder(resp.Body).Decode(&b.Status.Label); err != nil {
		return tether.Observation{}, err
	}
	o := tether.Observation{State: tether.Present, ID: c.Reference, Reference: c.Reference}
	if b.Status.Label != b.Spec.Label {
		o.Differs = []string{"spec.label"}
	}
	return o, nil
}

func (s shelf) Observe(ctx context.Context, b *Box, c tether.Call) (tether.Observation, error) {
	return s.do(ctx, http.MethodGet, b, c)
}

func (s shelf) Create(ctx context.Context, b *Box, c tether.Call) (tether.Observation, error) {
	return s.do(ctx, http.MethodPut, b, c)
}

func (s shelf) Update(ctx context.Context, b *Box, c tether.Call, _ tether.Observation) (tether.Observation, error) {
	return s.do(ctx, http.MethodPut, b, c)
}

func (s shelf) Delete(ctx context.Context, b *Box, c tether.Call, _ tether.Observation) (tether.Observation, error) {
	return s.do(ctx, http.MethodDelete, b, c)
}

func runShelf(ctx context.Context, cluster *rest.Config, client *http.Client) error {
	quiet := logr.Discard()
	c := tether.Manage(tether.NewInformer(boxes, tether.InformerOptions{}), shelf{client}, tether.ManageOptions[*Box]{
		ID: func(b *Box) *string { return &b.Status.ID }, Guarantee: tether.UniqueLiveReference,
	})
	return tether.Run(ctx, cluster, tether.RunOptions{SingleProcess: true, Logger: &quiet}, c)
}

// … and its test: however often the controller crashes, one box stands, and none
// after its deletion.
func testABoxStandsOnce(t *testing.T) {
	for n := 1; n <= 8; n++ { // it crashes after its n-th request, of either kind
		store := &shelves{boxes: map[string]string{}}
		o := faketest.Options{API: fake.APIOptions{Manifests: []string{boxDefinition}}, Outside: store}
		faketest.Run(t, o, func(ctx context.Context, t *testing.T, w *faketest.World) {
			objects := dynamic.NewForConfigOrDie(w.API.Config()).Resource(boxes.GroupVersion.WithResource(boxes.Plural)).Namespace("default")
			w.StartUntil(n, faketest.CrashAfter, runShelf)
			box := map[string]any{"apiVersion": "example.com/v1", "kind": "Box", "metadata": map[string]any{"name": "blue"}, "spec": map[string]any{"Label": "blue"}}
			if _, err := objects.Create(ctx, &unstructured.Unstructured{Object: box}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			w.Start(runShelf) // the next one
			time.Sleep(time.Hour)
			if made, stand := store.count(); made != 1 || stand != 1 {
				t.Errorf("crashed after request %d: %d boxes were made, %d stand", n, made, stand)
			}
			if err := objects.Delete(ctx, "blue", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if _, stand := store.count(); stand != 0 {
				t.Errorf("crashed after request %d: after the deletion %d stand", n, stand)
			}
		})
	}
}

// An External for an invented API, and a test of it that crashes the controller at
// one request after another.
func ExampleManage() {
	fmt.Println("passed:", passes(testABoxStandsOnce))
	// Output: passed: true
}

// DeepCopyObject copies.
func (b *Box) DeepCopyObject() runtime.Object {
	c := *b
	b.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

const boxDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec:
  group: example.com
  names: {kind: Box, plural: boxes, singular: box}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// shelves is the API that was invented.
type shelves struct {
	mu    sync.Mutex // guards the rest
	boxes map[string]string
	made  int
}

func (s *shelves) count() (made, stand int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made, len(s.boxes)
}

func (s *shelves) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	label, stands := s.boxes[r.URL.Path]
	switch {
	case r.Method == http.MethodPut:
		if !stands {
			s.made++
		}
		raw := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(raw)
		label = string(raw)
		s.boxes[r.URL.Path] = label
	case !stands:
		http.NotFound(w, r)
		return
	case r.Method == http.MethodDelete:
		delete(s.boxes, r.URL.Path)
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(label)
}
