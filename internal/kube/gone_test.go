package kube

import (
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOnlyTheAPIsOwnWordsSayThatAnObjectIsGone(t *testing.T) {
	t.Parallel()
	r := schema.GroupResource{Group: "example.com", Resource: "things"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":              {nil, false},
		"the object":            {apierrors.NewNotFound(r, "a"), true},
		"404 page not found":    {apierrors.NewGenericServerResponse(http.StatusNotFound, "PATCH", r, "a", "404 page not found", 0, true), false},
		"another one's version": {apierrors.NewConflict(r, "a", nil), false},
	} {
		if got := IsGone(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
