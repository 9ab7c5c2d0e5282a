package kube

import (
	"encoding/json"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// unreadable remembers the objects that do not fit their Go type, by UID: what is
// wrong with the version that was read last.
type unreadable struct {
	mu   sync.Mutex // guards errs
	errs map[types.UID]unfit
}

type unfit struct {
	version string
	err     error
}

// Unreadable tells why this version of the object could not be decoded into T; nil
// where it could. Such an object has its metadata and nothing else.
func (c *Client[T]) Unreadable(obj T) error {
	u := &c.unreadable
	u.mu.Lock()
	defer u.mu.Unlock()
	if got, ok := u.errs[obj.GetUID()]; ok && got.version == obj.GetResourceVersion() {
		return got.err
	}
	return nil
}

func (u *unreadable) note(obj metav1.Object, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil {
		delete(u.errs, obj.GetUID())
		return
	}
	if u.errs == nil {
		u.errs = map[types.UID]unfit{}
	}
	u.errs[obj.GetUID()] = unfit{obj.GetResourceVersion(), err}
}

// tolerant decodes objects that do not fit their Go type as far as their metadata:
// one that came past an older definition must not keep the others from being read.
type tolerant[T Object] struct {
	runtime.NegotiatedSerializer
	client *Client[T]
}

// DecoderToVersion wraps the decoder of objects and lists.
func (t tolerant[T]) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return &tolerantDecoder[T]{t.NegotiatedSerializer.DecoderToVersion(d, gv), t.client}
}

type tolerantDecoder[T Object] struct {
	runtime.Decoder
	client *Client[T]
}

// Decode decodes strictly first: only what fails is looked at again.
func (d *tolerantDecoder[T]) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := d.Decoder.Decode(data, defaults, into)
	if err == nil {
		if o, ok := obj.(T); ok {
			d.client.unreadable.note(o, nil)
		}
		return obj, gvk, nil
	}
	var head metav1.TypeMeta
	if json.Unmarshal(data, &head) != nil || head.APIVersion != d.client.Resource.GroupVersion.String() {
		return obj, gvk, err
	}
	kind := d.client.Resource.GroupVersion.WithKind(head.Kind)
	switch head.Kind {
	case d.client.Resource.Kind:
		o, ok := into.(T)
		if !ok {
			o = d.client.New()
		}
		if merr := d.client.metadataOf(data, o, err); merr != nil {
			return obj, gvk, err
		}
		return o, &kind, nil
	case d.client.Resource.Kind + "List":
		l, lerr := d.client.listOf(data)
		if lerr != nil {
			return obj, gvk, err
		}
		if given, ok := into.(*list[T]); ok {
			*given = *l
			l = given
		}
		return l, &kind, nil
	}
	return obj, gvk, err
}

// metadataOf reads an object's metadata alone, and notes why.
func (c *Client[T]) metadataOf(data []byte, into T, why error) error {
	var part struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(data, &part); err != nil {
		return err
	}
	fresh := c.New()
	if err := json.Unmarshal(fmt.Appendf(nil, `{"metadata":%s}`, part.Metadata), fresh); err != nil {
		return err
	}
	copyInto(into, fresh)
	c.unreadable.note(into, why)
	return nil
}

// listOf reads a list item by item.
func (c *Client[T]) listOf(data []byte) (*list[T], error) {
	var raw struct {
		metav1.ListMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	l := &list[T]{ListMeta: raw.ListMeta, Items: make([]T, 0, len(raw.Items))}
	for _, item := range raw.Items {
		obj := c.New()
		err := json.Unmarshal(item, obj)
		if err != nil {
			obj = c.New()
			if merr := c.metadataOf(item, obj, err); merr != nil {
				return nil, merr
			}
		} else {
			c.unreadable.note(obj, nil)
		}
		l.Items = append(l.Items, obj)
	}
	return l, nil
}
