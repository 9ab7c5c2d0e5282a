package registry

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
)

func TestObjectsAreTheSameWhereTheirBytesAre(t *testing.T) {
	t.Parallel()
	values := []any{
		nil, "", "a", true, int64(1), float64(1), 1.5, []any(nil),
		[]any{},
		[]any{int64(1)},
		[]any{float64(1)},
		[]any{"a", nil},
		[]string{"a"},
		[]any{"a"},
		catalog.Object(nil),
		catalog.Object{},
		catalog.Object{"a": nil},
		catalog.Object{"b": nil},
		catalog.Object{"a": int64(1)},
		catalog.Object{"a": float64(1)},
		map[string]string{"a": "b"},
		catalog.Object{"a": "b"},
		catalog.Object{"a": catalog.Object{"b": []any{catalog.Object{}}}},
		catalog.Object{"a": catalog.Object{"b": []any{catalog.Object(nil)}}},
	}
	for _, v := range values {
		for _, w := range values {
			a, b := catalog.Object{"v": v, "other": "o"}, catalog.Object{"v": w, "other": "o"}
			x, _ := json.Marshal(a) // all of them encode
			y, _ := json.Marshal(b)
			if got, want := same(a, b), bytes.Equal(x, y); got != want {
				t.Errorf("%s and %s: %v", x, y, got)
			}
		}
	}
	if a := (catalog.Object{"a": nil}); same(a, catalog.Object{}) || same(catalog.Object{}, a) || same(a, catalog.Object{"b": nil}) {
		t.Error("a field counts for nothing")
	}
}
