package tether_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"

	"github.com/tetherkube/tether"
)

// shelves manages boxes on a shelf somewhere: PUT /boxes/<reference> makes one or
// changes it, GET tells of it, DELETE takes it away. That is the whole External: no
// claim, no key, no retry, no finalizer.
type shelves struct{ url string }

type box struct{ Label string }

func (s shelves) do(ctx context.Context, method, reference string, b *box) (tether.Observation, error) {
	body, _ := json.Marshal(b) // strings always encode
	req, err := http.NewRequestWithContext(ctx, method, s.url+"/boxes/"+reference, bytes.NewReader(body))
	if err != nil {
		return tether.Observation{}, tether.Terminal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound {
			return tether.Observation{State: tether.Absent}, nil
		}
	}
	if err := tether.FromHTTP(resp, err); err != nil {
		return tether.Observation{}, err
	}
	var found box
	err = json.NewDecoder(resp.Body).Decode(&found)
	return tether.Observation{State: tether.Present, ID: reference, Reference: reference, Message: found.Label}, err
}

func (s shelves) Observe(ctx context.Context, cm *corev1.ConfigMap, c tether.Call) (tether.Observation, error) {
	o, err := s.do(ctx, http.MethodGet, c.Reference, nil)
	if o.State == tether.Present && o.Message != cm.Data["label"] {
		o.Differs = []string{"data.label"}
	}
	return o, err
}

func (s shelves) Create(ctx context.Context, cm *corev1.ConfigMap, c tether.Call) (tether.Observation, error) {
	return s.do(ctx, http.MethodPut, c.Reference, &box{cm.Data["label"]})
}

func (s shelves) Update(ctx context.Context, cm *corev1.ConfigMap, c tether.Call, _ tether.Observation) (tether.Observation, error) {
	return s.do(ctx, http.MethodPut, c.Reference, &box{cm.Data["label"]})
}

func (s shelves) Delete(ctx context.Context, _ *corev1.ConfigMap, c tether.Call, _ tether.Observation) (tether.Observation, error) {
	return s.do(ctx, http.MethodDelete, c.Reference, nil)
}

func ExampleExternal() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.URL)
		_, _ = fmt.Fprint(w, `{"Label":"blue"}`)
	}))
	defer server.Close()
	var e tether.External[*corev1.ConfigMap] = shelves{server.URL}
	o, err := e.Observe(context.Background(), &corev1.ConfigMap{Data: map[string]string{"label": "red"}}, tether.Call{Reference: "r"})
	fmt.Println(o.State, o.Differs, err)
	// Output:
	// GET /boxes/r
	// Present [data.label] <nil>
}
