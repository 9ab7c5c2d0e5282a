package tether

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// statusField knows where a type keeps its status, its conditions and the observed
// generation. It is found once, at construction.
type statusField[T Object] struct {
	unstructured bool
	meta         []int // of the ObjectMeta field
	status       []int // of the Status field; nil: the type has none
	pointer      bool  // … and it is a pointer
	conditions   []int // within the status; nil: it has none of ours
	observed     []int
}

// findStatus looks a type over. mistakes names what cannot be worked with.
func findStatus[T Object]() (f statusField[T], mistakes []string) {
	if isUnstructured[T]() {
		return statusField[T]{unstructured: true}, nil
	}
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return f, nil // the Resource says so
	}
	if m, ok := fieldByJSON(t.Elem(), "metadata"); ok {
		f.meta = m.Index
	}
	field, ok := fieldByJSON(t.Elem(), "status")
	if !ok {
		return f, nil
	}
	s := field.Type
	if s.Kind() == reflect.Pointer {
		f.pointer, s = true, s.Elem()
	}
	if s.Kind() != reflect.Struct {
		return f, []string{fmt.Sprintf("Resource: field Status of %s is a %s; make it a struct, or a pointer to one", t, field.Type)}
	}
	f.status = field.Index
	if c, ok := fieldByJSON(s, "conditions"); ok {
		switch {
		case c.Type == reflect.TypeFor[[]metav1.Condition]():
			f.conditions = c.Index
		case c.Type.Kind() != reflect.Slice: // one of conditions of its own is the author's
			return f, []string{fmt.Sprintf("Resource: field Status.%s of %s is a %s; make it a []metav1.Condition", c.Name, t, c.Type)}
		}
	}
	if g, ok := fieldByJSON(s, "observedGeneration"); ok {
		if g.Type.Kind() != reflect.Int64 {
			return f, []string{fmt.Sprintf("Resource: field Status.%s of %s is a %s; make it an int64", g.Name, t, g.Type)}
		}
		f.observed = g.Index
	}
	return f, nil
}

func fieldByJSON(t reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name && f.IsExported() {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// has tells whether the type has a status; of an unstructured one, whether its
// resource has is asked elsewhere.
func (f statusField[T]) has() bool { return f.unstructured || f.status != nil }

// value is the status struct; invalid where a pointer is nil and make is false.
func (f statusField[T]) value(obj T, alloc bool) reflect.Value {
	v := reflect.ValueOf(obj).Elem().FieldByIndex(f.status)
	if !f.pointer {
		return v
	}
	if v.IsNil() {
		if !alloc {
			return reflect.Value{}
		}
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Elem()
}

// allocate makes the status of a pointer be there.
func (f statusField[T]) allocate(obj T) {
	if f.pointer {
		f.value(obj, true)
	}
}

func content[T Object](obj T) map[string]any {
	return any(obj).(*unstructured.Unstructured).Object
}

// equal compares the status of two objects.
func (f statusField[T]) equal(a, b T) bool {
	switch {
	case f.unstructured:
		return equal(content(a)["status"], content(b)["status"])
	case f.status == nil:
		return true
	}
	va, vb := f.value(a, false), f.value(b, false)
	if !va.IsValid() || !vb.IsValid() {
		return va.IsValid() == vb.IsValid()
	}
	return equal(va.Addr().Interface(), vb.Addr().Interface())
}

// share gives to the status of from, without a copy.
func (f statusField[T]) share(from, to T) {
	switch {
	case f.unstructured:
		if s, ok := content(from)["status"]; ok {
			content(to)["status"] = s
		} else {
			delete(content(to), "status")
		}
	case f.status != nil:
		reflect.ValueOf(to).Elem().FieldByIndex(f.status).Set(reflect.ValueOf(from).Elem().FieldByIndex(f.status))
	}
}

func (f statusField[T]) json(obj T) ([]byte, error) {
	var s any
	if f.unstructured {
		s = content(obj)["status"]
	} else {
		s = reflect.ValueOf(obj).Elem().FieldByIndex(f.status).Addr().Interface()
	}
	raw, err := json.Marshal(s)
	if err == nil && string(raw) == "null" {
		raw = []byte("{}")
	}
	return raw, err
}

// patch is the merge patch that turns the status of have into that of want. It is
// guarded by the resourceVersion of have, and holds the difference alone, so that
// fields which this type does not know stay.
func (f statusField[T]) patch(have, want T) ([]byte, error) {
	was, err := f.json(have)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	is, err := f.json(want)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	diff, err := mergeDiff(was, is)
	if err != nil || string(diff) == "{}" {
		return nil, err
	}
	return fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"status":%s}`, have.GetResourceVersion(), diff), nil
}

// mergeDiff is the merge patch (RFC 7396) that turns one JSON object into another.
func mergeDiff(was, is []byte) ([]byte, error) {
	before, err := decodeMap(was)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	after, err := decodeMap(is)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	return json.Marshal(changes(before, after))
}

// changes are those of mergeDiff. What is null is not there: a merge patch has no other
// meaning for it.
func changes(was, is map[string]any) map[string]any {
	diff := map[string]any{}
	for name, value := range is {
		before, there := was[name]
		inner, isMap := value.(map[string]any)
		beforeInner, wasMap := before.(map[string]any)
		switch {
		case value == nil && (!there || before == nil):
		case isMap && wasMap:
			if d := changes(beforeInner, inner); len(d) > 0 {
				diff[name] = d
			}
		case !reflect.DeepEqual(before, value):
			diff[name] = value
		}
	}
	for name, before := range was {
		if _, there := is[name]; !there && before != nil {
			diff[name] = nil
		}
	}
	return diff
}

// rebase makes obj's status what it is when that which changed from base to obj is
// done to fresh: what another writer has changed meanwhile, and this one has not,
// stays. What the library says is its own where it judges.
func (f statusField[T]) rebase(base, obj, fresh T, judges bool) error {
	var status [3][]byte
	for i, o := range []T{base, obj, fresh} {
		raw, err := f.json(o)
		if err != nil {
			return fmt.Errorf("status: %w", err)
		}
		status[i] = raw
	}
	diff, err := mergeDiff(status[0], status[1])
	if err != nil {
		return err
	}
	merged, err := jsonpatch.MergePatch(status[2], diff)
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	observed := f.getObserved(obj)
	conditions := rebaseConditions(f.getConditions(base), f.getConditions(obj), f.getConditions(fresh), judges)
	if f.unstructured {
		var s map[string]any
		if err := utiljson.Unmarshal(merged, &s); err != nil {
			return fmt.Errorf("status: %w", err)
		}
		content(obj)["status"] = s
	} else {
		v := f.value(obj, true)
		s := reflect.New(v.Type())
		if err := json.Unmarshal(merged, s.Interface()); err != nil {
			return fmt.Errorf("status: %w", err)
		}
		v.Set(s.Elem())
	}
	if len(conditions) > 0 {
		f.setConditions(obj, conditions)
	}
	if judges {
		f.setObserved(obj, observed)
	}
	return nil
}

func (f statusField[T]) getConditions(obj T) []metav1.Condition {
	switch {
	case f.unstructured:
		list, _, _ := unstructured.NestedSlice(content(obj), "status", "conditions")
		var out []metav1.Condition
		for _, item := range list {
			var c metav1.Condition
			if m, ok := item.(map[string]any); ok && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c) == nil {
				out = append(out, c)
			}
		}
		return out
	case f.conditions == nil:
		return nil
	}
	v := f.value(obj, false)
	if !v.IsValid() {
		return nil
	}
	return v.FieldByIndex(f.conditions).Interface().([]metav1.Condition)
}

func (f statusField[T]) setConditions(obj T, conditions []metav1.Condition) {
	switch {
	case f.unstructured:
		list := make([]any, 0, len(conditions))
		for _, c := range conditions {
			m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
			if err == nil {
				list = append(list, m)
			}
		}
		_ = unstructured.SetNestedSlice(content(obj), list, "status", "conditions") // fails where status is no object, which the API server refuses anyway
	case f.conditions != nil:
		f.value(obj, true).FieldByIndex(f.conditions).Set(reflect.ValueOf(conditions))
	}
}

func (f statusField[T]) getObserved(obj T) int64 {
	switch {
	case f.unstructured:
		n, _, _ := unstructured.NestedInt64(content(obj), "status", "observedGeneration")
		return n
	case f.observed == nil:
		return 0
	}
	v := f.value(obj, false)
	if !v.IsValid() {
		return 0
	}
	return v.FieldByIndex(f.observed).Int()
}

func (f statusField[T]) setObserved(obj T, generation int64) {
	switch {
	case generation == 0: // the API server keeps none
	case f.unstructured:
		_ = unstructured.SetNestedField(content(obj), generation, "status", "observedGeneration") // as above
	case f.observed != nil:
		f.value(obj, true).FieldByIndex(f.observed).SetInt(generation)
	}
}
