package contract

import (
	"context"
	"net/http"
	"net/http/httptest"

	"github.com/tetherkube/tether"
)

// probe asks as a kubelet does.
func probe(h *tether.Health, path string) (code int, body string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}
