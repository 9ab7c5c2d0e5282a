package registry

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// Kept is what another registry had: the objects of each table in JSON, as they
// were stored, and the version that it had come to.
type Kept struct {
	Version uint64
	Objects map[string][][]byte
}

// Restore makes a registry that has what was kept, and goes on where the other one
// ended: also in the middle of what a controller did. The store must be empty.
func Restore(o Options, kept Kept) (*Registry, error) {
	r := empty(o, kept.Version)
	// What definitions there are says which other tables there are.
	if err := r.fill(r.definitions(), kept.Objects[catalog.Definitions]); err != nil {
		return nil, err
	}
	stored := map[string]*catalog.Resource{}
	r.eachDefinition(func(definition catalog.Object) {
		r.serve(meta(definition).GetName())
		if res, _, err := catalog.Custom(definition); err == nil {
			stored[res.Table] = res // also where nobody had come to establish it
		}
	})
	for _, res := range slices.Concat(r.Catalog.Tables(), r.Catalog.Definitions()) {
		stored[res.Table] = res
	}
	for table, objects := range kept.Objects {
		if table == catalog.Definitions {
			continue
		}
		if stored[table] == nil {
			return nil, fmt.Errorf("%d objects of %s: there is no such resource in this version of the program", len(objects), table)
		}
		if err := r.fill(stored[table], objects); err != nil {
			return nil, err
		}
	}
	r.Store.Continue(kept.Version)
	r.bootstrap()
	r.resume()
	return r, nil
}

// fill restores the objects of a table.
func (r *Registry) fill(res *catalog.Resource, objects [][]byte) error {
	all := make([]*storage.Object, 0, len(objects))
	for _, data := range objects {
		o, err := revive(res.Stored, data)
		if err != nil {
			return fmt.Errorf("an object of %s: %w", res.Table, err)
		}
		all = append(all, o)
	}
	r.Store.Make(res.Table)
	r.Store.Restore(res.Table, all)
	return nil
}

// revive makes an object of what was stored, in the version that is stored now.
func revive(stored *catalog.Resource, data []byte) (*storage.Object, error) {
	var obj catalog.Object
	if err := kjson.Unmarshal(data, &obj); err != nil {
		return nil, err
	}
	version, err := strconv.ParseUint(meta(obj).GetResourceVersion(), 10, 64)
	if err != nil {
		return nil, errors.New("it has no resourceVersion")
	}
	if obj, err = stored.Convert(stored, obj); err != nil {
		return nil, err
	}
	o := described(stored, obj)
	o.Version = version
	if o.Data, err = marshal(obj); err != nil {
		return nil, err
	}
	if o.Name == "" || o.UID == "" {
		return nil, errors.New("it has no name or no UID")
	}
	return &o, nil
}

// eachDefinition gives every definition there is to f, which may change it in the
// store.
func (r *Registry) eachDefinition(f func(catalog.Object)) {
	res := r.definitions()
	list, err := r.Store.List(res.Table, storage.Selection{})
	if err != nil {
		return // the table of definitions is always there
	}
	for _, o := range list.Objects {
		if definition, err := r.Decode(res, o); err == nil {
			f(definition)
		}
	}
}

// resume does what controllers had not come to: the server ended, or what they
// wrote could not be kept.
func (r *Registry) resume() {
	res := r.definitions()
	r.eachDefinition(func(definition catalog.Object) {
		name := meta(definition).GetName()
		if meta(definition).GetDeletionTimestamp() != nil {
			r.serve(name)
			r.emptyDefinition(name)
			return
		}
		r.settle(res, storage.Key{Name: name}, r.establish)
		r.serve(name)
	})
	if r.NoControllers {
		return
	}
	for _, res := range r.Catalog.Tables() {
		list, err := r.Store.List(res.Table, storage.Selection{})
		if err != nil {
			continue // its definition has just gone, and its objects with it
		}
		for _, o := range list.Objects {
			if len(o.Owners) > 0 {
				r.orphaned(storage.Ref{Table: res.Table, Key: o.Key}, o.UID)
			}
			if res.Table == catalog.Namespaces && o.Fields["status.phase"] == string(corev1.NamespaceTerminating) {
				r.emptyNamespace(o.Name)
				continue
			}
			r.finalizing(res, o)
		}
	}
}
