package tether

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// editedPath names the first path outside status in which edited differs from
// have, "" for none. all says to look beyond metadata.
func editedPath[T Object](f statusField[T], have, edited T, all bool) string {
	if !all && f.sameMeta(have, edited) {
		return ""
	}
	a, b := shallow(have), shallow(edited)
	f.share(a, b)
	if equal(a, b) {
		return ""
	}
	if path := differingPath(asMap(a), asMap(b), ""); path != "" {
		return path
	}
	return "a field"
}

func (f statusField[T]) sameMeta(a, b T) bool {
	switch {
	case f.unstructured:
		return equal(content(a)["metadata"], content(b)["metadata"])
	case f.meta == nil:
		return true
	}
	va, vb := reflect.ValueOf(a).Elem().FieldByIndex(f.meta), reflect.ValueOf(b).Elem().FieldByIndex(f.meta)
	return equal(va.Addr().Interface(), vb.Addr().Interface())
}

// equal compares as the API conventions want, where nil and empty are the same. It
// panics at a field that it may not look into, as time.Time has: values of such
// types are the same where Go says so.
func equal(a, b any) (same bool) {
	defer func() {
		if recover() != nil {
			same = reflect.DeepEqual(a, b)
		}
	}()
	return equality.Semantic.DeepEqual(a, b)
}

func asMap(o any) map[string]any {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	m, err := decodeMap(raw)
	if err != nil {
		return nil
	}
	return m
}

// decodeMap reads a JSON object whose numbers stay as they are written: an int64 of more
// than 53 bits has no place in a float64.
func decodeMap(raw []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	m := map[string]any{}
	if err := d.Decode(&m); err != nil {
		return nil, err
	}
	return m, nil
}

func differingPath(a, b map[string]any, at string) string {
	keys := make([]string, 0, len(a)+len(b))
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if reflect.DeepEqual(a[k], b[k]) {
			continue
		}
		ma, oka := a[k].(map[string]any)
		mb, okb := b[k].(map[string]any)
		if oka && okb {
			return differingPath(ma, mb, at+"."+k)
		}
		return (at + "." + k)[1:]
	}
	return ""
}

func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

func isNilObject[T metav1.Object](o T) bool { return isNil(o) }

// contentJSON is what generation counts: all but metadata and status.
func contentJSON[T Object](f statusField[T], obj T) []byte {
	m := asMap(obj)
	delete(m, "metadata")
	if f.has() {
		delete(m, "status")
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return raw
}
