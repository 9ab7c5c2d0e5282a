package kube

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	fits   = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"good","namespace":"ns","uid":"g","resourceVersion":"5"},"data":{"a":"b"}}`
	unfits = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad","namespace":"ns","uid":"b","resourceVersion":"6","labels":{"l":"x"},"finalizers":["f/g"]},"data":"nonsense"}`
	mended = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad","namespace":"ns","uid":"b","resourceVersion":"7"},"data":{"a":"c"}}`
)

func TestAnObjectThatDoesNotFitItsTypeKeepsNoOtherFromBeingRead(t *testing.T) {
	t.Parallel()
	conn := server(t, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body := unfits
		switch {
		case r.URL.Query().Get("watch") != "":
			body = `{"type":"ADDED","object":` + fits + `}` + "\n" + `{"type":"ADDED","object":` + unfits + `}` + "\n" + `{"type":"MODIFIED","object":` + mended + `}` + "\n"
		case strings.HasSuffix(r.URL.Path, "/configmaps"):
			body = `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"9"},"items":[` + fits + "," + unfits + `]}`
		}
		_, _ = w.Write([]byte(body))
	})
	c, err := NewClient[*corev1.ConfigMap](conn, configMaps)
	if err != nil {
		t.Fatal(err)
	}
	check := func(how string, obj *corev1.ConfigMap, readable bool) {
		t.Helper()
		if err := c.Unreadable(obj); (err == nil) != readable || (len(obj.Data) > 0) != readable || obj.Namespace != "ns" {
			t.Errorf("%s: readable %v, want %v: %+v, %v", how, err == nil, readable, obj, err)
		}
		if !readable && (obj.Labels["l"] != "x" || len(obj.Finalizers) != 1 || obj.ResourceVersion != "6") {
			t.Errorf("%s: the metadata is not whole: %+v", how, obj.ObjectMeta)
		}
	}
	l, err := c.List(t.Context(), "ns", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	items := l.(*list[*corev1.ConfigMap])
	if len(items.Items) != 2 || items.ResourceVersion != "9" {
		t.Fatalf("the list is %+v", items)
	}
	check("list", items.Items[0], true)
	check("list", items.Items[1], false)
	got, err := c.Get(t.Context(), key("ns", "bad"))
	if err != nil {
		t.Fatal(err)
	}
	check("get", got, false)

	w, err := lister[*corev1.ConfigMap]{ListWatch[*corev1.ConfigMap]{Client: c, Sink: deaf{}}}.WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, want := range []struct {
		typ      watch.EventType
		readable bool
	}{{watch.Added, true}, {watch.Added, false}, {watch.Modified, true}} {
		e := <-w.ResultChan()
		obj, ok := e.Object.(*corev1.ConfigMap)
		if !ok || e.Type != want.typ {
			t.Fatalf("got %s %T, want %s", e.Type, e.Object, want.typ)
		}
		if want.typ == watch.Modified && len(c.unreadable.errs) != 0 {
			t.Error("a mended object is still noted")
		}
		if want.readable {
			check("watch", obj, true)
		}
	}
}

// deaf hears nothing.
type deaf struct{}

func (deaf) Listing(bool)                        {}
func (deaf) Replace([]*corev1.ConfigMap, string) {}
func (deaf) Apply(*corev1.ConfigMap)             {}
func (deaf) Remove(*corev1.ConfigMap)            {}
func (deaf) Trouble(error)                       {}
func (deaf) Reached(string)                      {}
