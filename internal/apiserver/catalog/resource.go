package catalog

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	structure "github.com/tetherkube/tether/internal/apiserver/schema"
	"github.com/tetherkube/tether/internal/apiserver/table"
)

// Object is an object as JSON has it.
type Object = map[string]any

// Model is how the objects of one version look. It is safe for concurrent use.
type Model interface {
	// Decode reads a body of a media type. Where strict, what a strict reader
	// finds fault with is named. The object is fitted.
	Decode(media string, body []byte, strict bool) (obj Object, faults []string, err error)
	// Fit drops from obj what the type does not have, and names it, and fills in
	// defaults. It may change obj, and answers what to use from now on.
	Fit(obj Object) (fitted Object, unknown []string, err error)
	// Validate finds what is wrong with obj where a subresource, or the whole of it by
	// an empty one, is written; old is nil for a new object.
	Validate(obj, old Object, subresource string) field.ErrorList
	// Strategic applies a strategic merge patch; ErrNoStrategic where the type has none.
	Strategic(obj, patch Object) (Object, error)
	// Ownership is what server-side apply knows of the type.
	Ownership() managedfields.TypeConverter
}

// Traits are the ways in which resources differ on the server.
type Traits struct {
	// CreateOnUpdate says that a PUT of what is not there creates it.
	CreateOnUpdate bool
	// NeedsVersion says that a PUT without a resourceVersion is refused.
	NeedsVersion bool
	// ReturnsDeleted says that a deletion answers the object and not a Status.
	ReturnsDeleted bool
	// Generation says that the object has one; it counts changes outside of
	// metadata and status, or of all but metadata where there is no status
	// subresource.
	Generation bool
	// Grace is how many seconds an object is given to end by itself once it is
	// deleted; nil for none.
	Grace func(obj Object) int64
	// Prepare brings a new or changed object into order before it is validated;
	// old is nil for a new one.
	Prepare func(obj, old Object)
	// Validate is what the model does not know of what Validate of a Model is asked.
	Validate func(obj, old Object, subresource string) field.ErrorList
	// Warnings are for what is allowed nevertheless; old is nil for a new object.
	Warnings func(obj, old Object) []string
	// Name says what is wrong with a name.
	Name func(name string, prefix bool) []string
}

// Selectable is a field that selectors may name.
type Selectable struct {
	Name string
	// Value is its value in an object. It is called by many at once.
	Value func(Object) string
}

// Resource is one resource in one version. Nothing of it changes once it is in a
// catalog.
type Resource struct {
	Group, Version, Plural     string
	Singular, Kind, ListKind   string
	ShortNames, Categories     []string
	Namespaced                 bool
	Status, Finalize, ReadOnly bool
	// Scale is where its objects have their number of replicas; nil where it has no
	// scale subresource.
	Scale *Scale
	// Table is where its objects are stored; resources that are views of each
	// other share it.
	Table string
	// Stored is the version that is stored; of the built-in ones mostly itself.
	Stored *Resource
	// From makes an object of this resource from one of another in the same table;
	// nil where only apiVersion differs.
	From func(obj Object) Object

	Model      Model
	Traits     Traits
	Selectable []Selectable
	// Columns are those of its tables.
	Columns []table.Column
	// Custom says that a definition of a custom resource made it; Definition is its
	// name, and DefinitionUID tells it from another one of that name.
	Custom                    bool
	Definition, DefinitionUID string
	// Generation is the definition's, and counts the changes of its spec.
	Generation int64
	// Terminating says that its definition is being deleted.
	Terminating bool
	// Warning is said to all who use a deprecated version.
	Warning string

	mu       sync.Mutex // guards what follows
	managers map[string]*managedfields.FieldManager
}

// Structure is the resource's structural schema; nil for a type of client-go's.
func (r *Resource) Structure() *structure.Structural {
	if t, ok := r.Model.(*structuralType); ok {
		return t.structure
	}
	return nil
}

// GroupVersion is the resource's.
func (r *Resource) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// GroupResource is the resource's.
func (r *Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// GVR is the resource's group, version and name.
func (r *Resource) GVR() schema.GroupVersionResource { return r.GroupVersion().WithResource(r.Plural) }

// GVK is the kind of its objects.
func (r *Resource) GVK() schema.GroupVersionKind { return r.GroupVersion().WithKind(r.Kind) }

// Verbs are what can be done with it, in the order of discovery.
func (r *Resource) Verbs() metav1.Verbs {
	switch {
	case r.ReadOnly:
		return metav1.Verbs{"create"}
	case r.Plural == "namespaces" && r.Group == "":
		return metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
	case r.Terminating:
		return metav1.Verbs{"delete", "deletecollection", "get", "list", "watch"}
	case r.Custom:
		return metav1.Verbs{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	}
	return metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

// Convert makes an object of r from one of another resource in the same table,
// pruned and with defaults. It may change obj.
func (r *Resource) Convert(from *Resource, obj Object) (Object, error) {
	if r.From != nil && from.Group != r.Group {
		obj = r.From(obj)
	}
	obj["apiVersion"], obj["kind"] = r.GroupVersion().String(), r.Kind
	fitted, _, err := r.Model.Fit(obj)
	return fitted, err
}

// Fields are the values of the selectable fields beyond name and namespace.
func (r *Resource) Fields(obj Object) map[string]string {
	if len(r.Selectable) == 0 {
		return nil
	}
	values := make(map[string]string, len(r.Selectable))
	for _, s := range r.Selectable {
		values[s.Name] = s.Value(obj)
	}
	return values
}
