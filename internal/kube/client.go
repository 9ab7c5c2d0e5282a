package kube

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Object is what a resource's objects are in Go.
type Object interface {
	metav1.Object
	runtime.Object
}

// Resource names a resource of the API server.
type Resource struct {
	GroupVersion  schema.GroupVersion
	Kind          string
	Plural        string
	ClusterScoped bool
}

// String is the resource's name, as kubectl takes it.
func (r Resource) String() string {
	if r.Plural == "" {
		return cmp.Or(r.Kind, "a resource without a name")
	}
	if r.GroupVersion.Group == "" {
		return r.Plural
	}
	return r.Plural + "." + r.GroupVersion.Group
}

// Client speaks to the API server about one resource. All methods may be called
// concurrently; what they return is the caller's.
type Client[T Object] struct {
	Resource Resource
	Keep     bool // keep managedFields
	rest     rest.Interface
	elem     reflect.Type // of what T points to

	unreadable unreadable
}

var paramVersion = schema.GroupVersion{Version: "v1"}

// NewClient makes a client. T is a pointer to a struct, or *unstructured.Unstructured.
func NewClient[T Object](conn *Conn, r Resource) (*Client[T], error) {
	c := &Client[T]{Resource: r, elem: reflect.TypeFor[T]().Elem()}
	cfg := rest.CopyConfig(conn.Config)
	if c.unstructured() {
		cfg = dynamic.ConfigFor(cfg)
	} else {
		scheme := runtime.NewScheme()
		metav1.AddToGroupVersion(scheme, paramVersion)
		metav1.AddToGroupVersion(scheme, r.GroupVersion)
		scheme.AddKnownTypeWithName(r.GroupVersion.WithKind(r.Kind), c.New())
		scheme.AddKnownTypeWithName(r.GroupVersion.WithKind(r.Kind+"List"), &list[T]{})
		cfg.NegotiatedSerializer = tolerant[T]{serializer.NewCodecFactory(scheme).WithoutConversion(), c}
		cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	}
	cfg.GroupVersion = &r.GroupVersion
	cfg.APIPath = "/apis"
	if r.GroupVersion.Group == "" {
		cfg.APIPath = "/api"
	}
	var err error
	c.rest, err = rest.RESTClientForConfigAndClient(cfg, conn.Client)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", r, err)
	}
	return c, nil
}

func (c *Client[T]) unstructured() bool {
	return c.elem == reflect.TypeFor[unstructured.Unstructured]()
}

// New makes an empty object.
func (c *Client[T]) New() T {
	obj := reflect.New(c.elem).Interface().(T)
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		u.SetGroupVersionKind(c.Resource.GroupVersion.WithKind(c.Resource.Kind))
	}
	return obj
}

func copyInto[T Object](to, from T) { reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem()) }

// list is the list type that no user has to write.
type list[T Object] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []T `json:"items"`
}

// DeepCopyObject makes a list a runtime.Object.
func (l *list[T]) DeepCopyObject() runtime.Object {
	out := &list[T]{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy(), Items: make([]T, len(l.Items))}
	for i, o := range l.Items {
		out.Items[i] = o.DeepCopyObject().(T)
	}
	return out
}

func (c *Client[T]) path(req *rest.Request, namespace string) *rest.Request {
	return req.NamespaceIfScoped(namespace, !c.Resource.ClusterScoped && namespace != "").Resource(c.Resource.Plural)
}

func (c *Client[T]) into(ctx context.Context, req *rest.Request) (T, error) {
	obj := c.New()
	if err := req.Do(ctx).Into(obj); err != nil {
		var none T
		return none, err
	}
	c.strip(obj)
	return obj, nil
}

func (c *Client[T]) strip(obj T) {
	if !c.Keep {
		obj.SetManagedFields(nil)
	}
}

// Get reads consistently.
func (c *Client[T]) Get(ctx context.Context, key types.NamespacedName) (T, error) {
	return c.into(ctx, c.path(c.rest.Get(), key.Namespace).Name(key.Name))
}

// List lists one namespace, or all.
func (c *Client[T]) List(ctx context.Context, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	var into runtime.Object = &list[T]{}
	if c.unstructured() {
		into = &unstructured.UnstructuredList{}
	}
	err := c.path(c.rest.Get(), namespace).SpecificallyVersionedParams(&opts, metav1.ParameterCodec, paramVersion).Do(ctx).Into(into)
	return into, err
}

// Version is the newest resourceVersion, as a consistent list of at most one object
// tells it.
func (c *Client[T]) Version(ctx context.Context, namespace string) (string, error) {
	list, err := c.List(ctx, namespace, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return "", err
	}
	return m.GetResourceVersion(), nil
}

// Patch patches the object, or a subresource of it.
func (c *Client[T]) Patch(ctx context.Context, key types.NamespacedName, pt types.PatchType, body []byte, opts metav1.PatchOptions, sub ...string) (T, error) {
	return c.into(ctx, c.path(c.rest.Patch(pt), key.Namespace).Name(key.Name).SubResource(sub...).
		SpecificallyVersionedParams(&opts, metav1.ParameterCodec, paramVersion).Body(body))
}

// Create creates the object that body is the JSON of.
func (c *Client[T]) Create(ctx context.Context, namespace string, body []byte, opts metav1.CreateOptions) (T, error) {
	return c.into(ctx, c.path(c.rest.Post(), namespace).SetHeader("Content-Type", runtime.ContentTypeJSON).
		SpecificallyVersionedParams(&opts, metav1.ParameterCodec, paramVersion).Body(body))
}

// Delete deletes the object. left tells whether it is still there, being deleted.
func (c *Client[T]) Delete(ctx context.Context, key types.NamespacedName, opts metav1.DeleteOptions) (obj T, left bool, err error) {
	req := c.path(c.rest.Delete(), key.Namespace).Name(key.Name)
	body, err := runtime.Encode(deleteCodec, &opts)
	if err != nil {
		return obj, false, err
	}
	raw, err := req.SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx).Raw()
	if err != nil {
		return obj, false, err
	}
	got := c.New()
	if decodeObject(raw, got) == nil && got.GetDeletionTimestamp() != nil {
		c.strip(got)
		return got, true, nil
	}
	return obj, false, nil // a Status: nothing is left
}
