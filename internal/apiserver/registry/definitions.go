package registry

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// cleanup is the finalizer that keeps a definition until its objects are gone.
const cleanup = "customresourcecleanup.apiextensions.k8s.io"

func (r *Registry) definitions() *catalog.Resource {
	return r.Catalog.Find(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

// terminatingDefinition refuses a new object of a definition that goes.
func terminatingDefinition(res *catalog.Resource, name string) error {
	return apierrors.NewForbidden(res.GroupResource(), name, errors.New("create not allowed while custom resource definition is terminating"))
}

// deleteDefinition marks a definition, which goes when its objects have gone.
func (r *Registry) deleteDefinition(q *Request, stored *storage.Object, obj catalog.Object) (Result, error) {
	u := meta(obj)
	now := r.now()
	u.SetDeletionTimestamp(&now)
	if !slices.Contains(u.GetFinalizers(), cleanup) {
		u.SetFinalizers(append(u.GetFinalizers(), cleanup))
	}
	r.condition(obj, "Terminating", metav1.ConditionTrue, "InstanceDeletionPending",
		"CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon")
	return r.replace(q, stored, obj)
}

// definitionChanged serves what a definition says, and carries its deletion out.
func (r *Registry) definitionChanged(res *catalog.Resource, e *storage.Event) {
	name := e.Object.Name
	if e.Change == storage.Deleted {
		r.serve(name)
		r.reconsider()
		return
	}
	if !r.terminating(res, e.Object) {
		r.settle(res, e.Object.Key, r.establish)
		r.serve(name)
		return
	}
	r.serve(name)
	if e.Old != nil && !r.terminating(res, e.Old) {
		r.emptyDefinition(name)
	}
}

// terminating says whether a definition is being deleted.
func (r *Registry) terminating(res *catalog.Resource, o *storage.Object) bool {
	definition, err := r.Decode(res, o)
	return err == nil && meta(definition).GetDeletionTimestamp() != nil
}

// reconsider accepts names that have become free.
func (r *Registry) reconsider() {
	definitions := r.definitions()
	list, err := r.Store.List(definitions.Table, storage.Selection{})
	if err != nil {
		return // the table of definitions is always there
	}
	for _, o := range list.Objects {
		if bytes.Contains(o.Data, []byte(`Conflict"`)) {
			r.settle(definitions, o.Key, r.establish)
		}
	}
}

// serve brings the catalog to what is stored of a definition now. Of two who change it
// the first may come here last: each looks for itself, and one after the other, so that
// what was said before is never put back. Watches end where something else is said than
// before, as they do on the real server.
func (r *Registry) serve(name string) {
	r.serving.Lock()
	defer r.serving.Unlock()
	definitions := r.definitions()
	was, _ := r.Catalog.Of(name)
	o := r.Store.Get(definitions.Table, storage.Key{Name: name})
	if was != nil && (o == nil || o.UID != was.DefinitionUID) {
		r.Catalog.Put(name, nil, nil)
		r.Store.Drop(was.Table)
		was = nil
	}
	if o == nil {
		return
	}
	definition, err := r.Decode(definitions, o)
	if err != nil || !r.established(definition) {
		return // conditions say so
	}
	stored, served, err := catalog.Custom(definition)
	switch {
	case err != nil:
		return // it was valid
	case was == nil:
	case was.Generation != stored.Generation:
		defer r.Store.Break(stored.Table)
	case was.Terminating == stored.Terminating:
		return // its status alone has changed
	}
	r.Store.Make(stored.Table)
	r.Catalog.Put(name, stored, served)
}

func (r *Registry) established(definition catalog.Object) bool {
	return slices.ContainsFunc(conditions(definition), func(c catalog.Object) bool { return c["type"] == "Established" && c["status"] == "True" })
}

func conditions(definition catalog.Object) []catalog.Object {
	status, _ := definition["status"].(catalog.Object)
	list, _ := status["conditions"].([]any)
	var found []catalog.Object
	for _, c := range list {
		if condition, ok := c.(catalog.Object); ok {
			found = append(found, condition)
		}
	}
	return found
}

// condition sets a condition of a definition.
func (r *Registry) condition(definition catalog.Object, kind string, value metav1.ConditionStatus, reason, message string) {
	status := catalog.Child(definition, "status")
	all := conditions(definition)
	now := catalog.Object{
		"type": kind, "status": string(value), "reason": reason, "message": message,
		"lastTransitionTime": r.now().UTC().Format("2006-01-02T15:04:05Z07:00"),
	}
	list := make([]any, 0, len(all)+1)
	found := false
	for _, c := range all {
		if c["type"] == kind {
			found = true
			if c["status"] == now["status"] {
				now["lastTransitionTime"] = c["lastTransitionTime"]
			}
			c = now
		}
		list = append(list, c)
	}
	if !found {
		list = append(list, now)
	}
	status["conditions"] = list
}

// establish accepts the names of a definition, where no other one has them, and
// says so in its status; it says whether it looked.
func (r *Registry) establish(definition catalog.Object) bool {
	status := catalog.Child(definition, "status")
	spec, _ := definition["spec"].(catalog.Object)
	wanted, _ := spec["names"].(catalog.Object)
	accepted, _ := status["acceptedNames"].(catalog.Object)
	if reflect.DeepEqual(wanted, accepted) && r.established(definition) {
		return false
	}
	if reason, taken := r.nameTaken(definition, wanted); reason != "" {
		r.condition(definition, "NamesAccepted", metav1.ConditionFalse, reason, fmt.Sprintf("%q is already in use", taken))
		if !r.established(definition) {
			r.condition(definition, "Established", metav1.ConditionFalse, "NotAccepted", "not all names are accepted")
		}
		if accepted == nil {
			status["acceptedNames"] = catalog.Object{"kind": "", "plural": ""}
		}
		return true
	}
	status["acceptedNames"] = meta(catalog.Object{"names": wanted}).DeepCopy().Object["names"]
	r.condition(definition, "NamesAccepted", metav1.ConditionTrue, "NoConflicts", "no conflicts found")
	if !r.established(definition) {
		r.condition(definition, "Established", metav1.ConditionTrue, "InitialNamesAccepted", "the initial names have been accepted")
	}
	return true
}

// nameTaken finds a name that another resource of the group has, also where a
// definition serves none of its versions.
func (r *Registry) nameTaken(definition, wanted catalog.Object) (reason, name string) {
	spec, _ := definition["spec"].(catalog.Object)
	for _, res := range slices.Concat(r.Catalog.All(), r.Catalog.Definitions()) {
		if res.Group != spec["group"] || res.Definition == meta(definition).GetName() {
			continue
		}
		for _, n := range []struct {
			field, reason string
			used          []string
		}{
			{"plural", "PluralConflict", append([]string{res.Plural, res.Singular}, res.ShortNames...)},
			{"singular", "SingularConflict", append([]string{res.Plural, res.Singular}, res.ShortNames...)},
			{"kind", "KindConflict", []string{res.Kind, res.ListKind}},
			{"listKind", "ListKindConflict", []string{res.Kind, res.ListKind}},
		} {
			if want, _ := wanted[n.field].(string); want != "" && slices.Contains(n.used, want) {
				return n.reason, want
			}
		}
		short, _ := wanted["shortNames"].([]any)
		for _, s := range short {
			if want, _ := s.(string); slices.Contains(append([]string{res.Plural, res.Singular}, res.ShortNames...), want) {
				return "ShortNamesConflict", want
			}
		}
	}
	return "", ""
}

// emptyDefinition deletes the objects of a definition that goes, and then it.
func (r *Registry) emptyDefinition(name string) {
	if stored, _ := r.Catalog.Of(name); stored != nil {
		if list, err := r.Store.List(stored.Table, storage.Selection{}); err == nil {
			for _, o := range list.Objects {
				r.discard(stored, o.Key, o.UID, "")
			}
		}
	}
	r.finishDefinition(name)
}

// finishDefinition lets go of a definition that goes and has no objects left.
func (r *Registry) finishDefinition(name string) {
	definitions, key := r.definitions(), storage.Key{Name: name}
	o := r.Store.Get(definitions.Table, key)
	if o == nil {
		return
	}
	definition, err := r.Decode(definitions, o)
	if err != nil || meta(definition).GetDeletionTimestamp() == nil {
		return
	}
	if stored, _ := r.Catalog.Of(name); stored != nil && r.Store.Len(stored.Table) > 0 {
		r.settle(definitions, key, func(definition catalog.Object) bool {
			r.condition(definition, "Terminating", metav1.ConditionTrue, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
			return true
		})
		return
	}
	r.letGo(definitions, key, cleanup)
}

// NoSuchPath is the answer to a path that nothing serves.
func NoSuchPath() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource",
		Details: &metav1.StatusDetails{},
	}}
}
