package fake

import (
	"encoding/json"
	"reflect"
	"slices"
)

// differences names what differs between two objects in JSON, two levels deep:
// spec.seats, metadata.finalizers. What every change changes is left out.
func differences(before, after []byte) []string {
	switch {
	case before == nil:
		return []string{"created"}
	case after == nil:
		return []string{"gone"}
	}
	var a, b map[string]any
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(after, &b) != nil {
		return []string{"changed"}
	}
	var found []string
	for _, key := range keys(a, b) {
		x, xIs := a[key].(map[string]any)
		y, yIs := b[key].(map[string]any)
		if !xIs && !yIs {
			if !reflect.DeepEqual(a[key], b[key]) {
				found = append(found, key)
			}
			continue
		}
		for _, inner := range keys(x, y) {
			path := key + "." + inner
			if path != "metadata.resourceVersion" && path != "metadata.managedFields" && !reflect.DeepEqual(x[inner], y[inner]) {
				found = append(found, path)
			}
		}
	}
	return found
}

func keys(a, b map[string]any) []string {
	var all []string
	for k := range a {
		all = append(all, k)
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			all = append(all, k)
		}
	}
	slices.Sort(all)
	return all
}
