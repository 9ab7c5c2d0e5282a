package tether

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tetherkube/tether/internal/kube"
)

// Object is what a controller works on: a pointer to an API type.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key names an object within its resource. The namespace of a cluster-scoped
// object is empty.
type Key = types.NamespacedName

// Resource says which resource of the API server a Go type stands for. Any type
// works: one of a CRD, a built-in such as *corev1.ConfigMap, or
// *unstructured.Unstructured. No scheme and no list type is needed.
type Resource[T Object] struct {
	GroupVersion  schema.GroupVersion // {Version: "v1"} for the core group
	Kind          string              // "Ticket"
	Plural        string              // "tickets", as in the URL
	ClusterScoped bool                // the objects have no namespace
}

// OwnerReference is a controller owner reference to obj, for an object that is
// made on its behalf: what makes [Owned] find it, and the garbage collector
// delete it together with obj.
func (r Resource[T]) OwnerReference(obj T) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: r.GroupVersion.String(), Kind: r.Kind, Name: obj.GetName(), UID: obj.GetUID(),
		Controller: &yes, BlockOwnerDeletion: &yes,
	}
}

func (r Resource[T]) kube() kube.Resource {
	return kube.Resource{GroupVersion: r.GroupVersion, Kind: r.Kind, Plural: r.Plural, ClusterScoped: r.ClusterScoped}
}

// mistakes are what is wrong with the resource, one line each, with the remedy.
func (r Resource[T]) mistakes() []string {
	var wrong []string
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		wrong = append(wrong, fmt.Sprintf("Resource: T is %s, which is not a pointer to a struct; use Resource[*YourType]", t))
	}
	if len(wrong) == 0 {
		if m := miscopied[T](); m != "" {
			wrong = append(wrong, m)
		}
	}
	if r.GroupVersion.Version == "" {
		wrong = append(wrong, `Resource.GroupVersion: the version is missing; set it, for example schema.GroupVersion{Group: "example.com", Version: "v1"}`)
	}
	if r.Kind == "" {
		wrong = append(wrong, `Resource.Kind: it is missing; set it, for example "Ticket"`)
	}
	switch {
	case r.Plural == "":
		wrong = append(wrong, `Resource.Plural: it is missing; set the name in the URL, for example "tickets"`)
	case r.Plural != strings.ToLower(r.Plural) || strings.ContainsAny(r.Plural, "/ "):
		wrong = append(wrong, fmt.Sprintf("Resource.Plural: %q is no resource name; give it in lower case, as in the URL", r.Plural))
	}
	return wrong
}

// miscopied tries out how T is copied: each pass works on a copy. A struct that embeds
// another API type has that one's DeepCopyObject, and loses itself by it.
func miscopied[T Object]() (mistake string) {
	const remedy = "; generate it for this type, for example by controller-gen object"
	t := reflect.TypeFor[T]()
	defer func() {
		if v := recover(); v != nil {
			mistake = fmt.Sprintf("Resource: DeepCopyObject of an empty %s panics: %v%s", t, v, remedy)
		}
	}()
	c := reflect.New(t.Elem()).Interface().(T).DeepCopyObject()
	if copied, ok := c.(T); !ok || isNilObject(copied) {
		return fmt.Sprintf("Resource: DeepCopyObject of %s returns %T and not a copy%s", t, c, remedy)
	}
	return ""
}

func isUnstructured[T Object]() bool {
	return reflect.TypeFor[T]() == reflect.TypeFor[*unstructured.Unstructured]()
}
