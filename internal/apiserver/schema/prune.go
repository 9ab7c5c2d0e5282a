package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Prune removes from obj what the schema does not know, and returns the paths of
// it in the form and the order of the server's strict decoding: `unknown field
// "spec.list[0].foo"` is said of "spec.list[0].foo". At the root, and at the root
// of each embedded resource, apiVersion, kind and metadata are known; in metadata
// are the fields of every object's.
func (s *Structural) Prune(obj map[string]any) (unknown []string) {
	p := pruner{}
	p.metadata(obj, "metadata")
	own := p.meta
	p.meta = nil
	p.value(obj, s.asRoot(), "")
	slices.Sort(p.unknown)
	slices.Sort(p.meta)
	return slices.Concat(own, p.unknown, p.meta)
}

// asRoot is the schema with what is known of every object.
func (s *Structural) asRoot() *Structural {
	root := *s
	root.embedded = true
	return &root
}

type pruner struct {
	unknown []string
	meta    []string // what is unknown in metadata
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// value prunes a value. A nil schema knows nothing, and then an object in it
// loses all of its fields.
func (p *pruner) value(v any, s *Structural, path string) {
	switch v := v.(type) {
	case map[string]any:
		p.object(v, s, path)
	case []any:
		for i := range v {
			p.value(v[i], s.ofItems(), fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

func (p *pruner) object(v map[string]any, s *Structural, path string) {
	for key := range v {
		switch c, known := s.child(key); {
		case s != nil && s.embedded && isMeta(key):
			if key == "metadata" && path != "" {
				p.metadata(v, join(path, key))
			}
		case c != nil:
			p.value(v[key], c, join(path, key))
		case known: // a map of anything: nothing is known of what is in its values
			p.value(v[key], nil, join(path, key))
		case s != nil && s.preserve:
			// Nothing below is known, and all of it is kept.
		default:
			p.unknown = append(p.unknown, join(path, key))
			delete(v, key)
		}
	}
}

// ofItems is the schema for what stands in a list. What is in a list that is
// preserved is preserved too.
func (s *Structural) ofItems() *Structural {
	switch {
	case s == nil:
		return nil
	case s.preserve && s.items == nil:
		return &Structural{preserve: true}
	case s.preserve:
		items := *s.items
		items.preserve = true
		return &items
	}
	return s.items
}

func isMeta(key string) bool { return key == "apiVersion" || key == "kind" || key == "metadata" }

// metadata removes what no object's metadata has. What has the wrong type is
// left for whoever decodes it.
func (p *pruner) metadata(obj map[string]any, path string) {
	metadata, ok := obj["metadata"].(map[string]any)
	if !ok {
		return
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(metadata, &metav1.ObjectMeta{}, true)
	for _, name := range UnknownFields(err) {
		p.meta = append(p.meta, path+"."+name)
		remove(metadata, name)
	}
}

// UnknownFields are the paths that a strict decoding error tells of, and none of
// another error.
func UnknownFields(err error) (paths []string) {
	var strict interface{ Errors() []error }
	if !errors.As(err, &strict) {
		return nil
	}
	for _, err := range strict.Errors() {
		if name, ok := strings.CutPrefix(err.Error(), `unknown field "`); ok {
			paths = append(paths, strings.TrimSuffix(name, `"`))
		}
	}
	return paths
}

// remove deletes the field at a path like "ownerReferences[0].foo". A name may have
// dots of its own.
func remove(obj map[string]any, path string) {
	head, rest, deeper := strings.Cut(path, ".")
	if _, whole := obj[path]; whole || !deeper {
		delete(obj, path)
		return
	}
	name, index, indexed := strings.Cut(strings.TrimSuffix(head, "]"), "[")
	switch v := obj[name].(type) {
	case map[string]any:
		remove(v, rest)
	case []any:
		var i int
		if _, err := fmt.Sscan(index, &i); indexed && err == nil && i < len(v) {
			remove(object(v[i]), rest)
		}
	}
}
