package registry

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// User is who sends a request.
type User struct {
	Name   string
	UID    string
	Groups []string
}

// Options configure a [Registry]. Store, Catalog and Now are required.
type Options struct {
	// Store has the objects.
	Store *storage.Store
	// Catalog has the resources.
	Catalog *catalog.Catalog
	// Now is the server's clock.
	Now func() time.Time
	// Seed fixes UIDs and generated names.
	Seed uint64
	// Admit is asked in this order about every write.
	Admit []Admission
	// NoControllers leaves out what a kube-controller-manager does.
	NoControllers bool
	// Changed is told of every committed change, in no order [nil].
	Changed func(*catalog.Resource, *storage.Event)
}

// Registry carries verbs out. It is safe for concurrent use.
type Registry struct {
	Options

	// owed says that a write failed which may have been a controller's. It is made
	// up for once one succeeds.
	owed atomic.Bool

	// serving is held by who brings the catalog to what is stored of a definition. It
	// is taken before what the store and the catalog lock.
	serving sync.Mutex

	mu     sync.Mutex // guards what follows
	random *rand.Rand
}

// New makes a registry, and the objects that are there from the start.
func New(o Options) *Registry {
	r := empty(o, 0)
	r.bootstrap()
	return r
}

// empty is a registry without an object. What it makes differs from what one made
// that went on to a version.
func empty(o Options, version uint64) *Registry {
	r := &Registry{Options: o, random: rand.New(rand.NewPCG(o.Seed, 0x7e7e+version))} //nolint:gosec // a fake's ids are to be repeatable
	for _, res := range o.Catalog.Tables() {
		o.Store.Make(res.Table)
	}
	return r
}

// Request is what every verb is told.
type Request struct {
	Resource                     *catalog.Resource
	Namespace, Name, Subresource string
	User                         User
	// Manager is who owns the fields that are written.
	Manager string
	DryRun  bool
	// Validation is Strict, Warn or Ignore; Warn where it is empty.
	Validation string
	// Warn takes warnings for the client; it may be nil.
	Warn func(string)
}

func (q *Request) warn(format string, args ...any) {
	if q.Warn != nil {
		q.Warn(fmt.Sprintf(format, args...))
	}
}

func (q *Request) key() storage.Key { return storage.Key{Namespace: q.Namespace, Name: q.Name} }

// Result is what a verb answers.
type Result struct {
	// Object is the object as it is now; nil where there is only a Status.
	Object *storage.Object
	// Status is answered where there is no object.
	Status *metav1.Status
	// Created says that the object is new.
	Created bool
	// Deleted says that the object is gone.
	Deleted bool
	// Before and After are the object around the change; equal where nothing
	// changed, nil where there was or is none.
	Before, After *storage.Object
}

// uid is a UID that only this server has given.
func (r *Registry) uid() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b [16]byte
	for i := range b {
		b[i] = byte(r.random.Uint32())
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// suffixes are the letters of generated names: none that make a word or look like another.
const suffixes = "bcdfghjklmnpqrstvwxz2456789"

// generate is a name that begins with base, as the real server makes it.
func (r *Registry) generate(base string) string {
	const longest, random = 63, 5
	if len(base) > longest-random {
		base = base[:longest-random]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := []byte(base)
	for range random {
		name = append(name, suffixes[r.random.IntN(len(suffixes))])
	}
	return string(name)
}

// now is the time as it stands in objects.
func (r *Registry) now() metav1.Time { return metav1.NewTime(r.Now().UTC().Truncate(time.Second)) }

// Decode is an object as the resource shows it. It is the caller's.
func (r *Registry) Decode(res *catalog.Resource, o *storage.Object) (catalog.Object, error) {
	var obj catalog.Object
	if err := kjson.Unmarshal(o.Data, &obj); err != nil {
		return nil, err
	}
	if form := o.Form.(*catalog.Resource); form != res {
		return res.Convert(form, obj)
	}
	return obj, nil
}

// Encoded is an object in JSON as the resource shows it. It is not to be written to.
func (r *Registry) Encoded(res *catalog.Resource, o *storage.Object) []byte {
	if o.Form == res {
		return o.Data
	}
	obj, err := r.Decode(res, o)
	if err != nil {
		return o.Data // what was stored by a definition that is gone
	}
	data, err := marshal(obj)
	if err != nil {
		return o.Data // it was JSON before
	}
	return data
}

// encoder turns obj, of the resource, into what is stored under a version.
func (r *Registry) encoder(res *catalog.Resource, obj catalog.Object) (storage.Encode, error) {
	stored := res.Stored
	if stored != res {
		var err error
		obj = (&unstructured.Unstructured{Object: obj}).DeepCopy().Object
		if obj, err = stored.Convert(res, obj); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
	}
	u, o := meta(obj), described(stored, obj)
	return func(version uint64) (*storage.Object, error) {
		made := o
		made.Version = version
		if version == 0 {
			u.SetResourceVersion("")
		} else {
			u.SetResourceVersion(strconv.FormatUint(version, 10))
		}
		var err error
		if made.Data, err = marshal(obj); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		return &made, nil
	}, nil
}

// described is an object of the version that is stored, without its encoding.
func described(stored *catalog.Resource, obj catalog.Object) storage.Object {
	u := meta(obj)
	o := storage.Object{
		Key: storage.Key{Namespace: u.GetNamespace(), Name: u.GetName()}, UID: string(u.GetUID()), Form: stored,
		Labels: u.GetLabels(), Fields: stored.Fields(obj),
	}
	if len(o.Labels) == 0 {
		o.Labels = nil
	}
	for _, owner := range u.GetOwnerReferences() {
		o.Owners = append(o.Owners, string(owner.UID))
	}
	return o
}

// marshal encodes an object with its kind and version first, so that what is
// about its type can be cut off without reading it.
func marshal(obj catalog.Object) ([]byte, error) {
	rest := make(catalog.Object, len(obj))
	maps.Copy(rest, obj)
	delete(rest, "kind")
	delete(rest, "apiVersion")
	u := meta(obj)
	data := typed(u.GetAPIVersion(), u.GetKind())
	if len(rest) == 0 {
		data[len(data)-1] = '}'
		return data, nil
	}
	b := bytes.NewBuffer(data)
	mark := b.Len()
	if err := json.NewEncoder(b).Encode(rest); err != nil {
		return nil, err
	}
	data = b.Bytes()
	copy(data[mark:], data[mark+1:])                             // the brace that opens
	return slices.Clip(data[:len(data)-len("{")-len("\n")]), nil // what that left, and the encoder's end of line
}

// typed is the beginning of an object's JSON, up to its first field.
func typed(apiVersion, kind string) []byte {
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, kind, apiVersion)
}

// Untyped is the object's JSON without kind and version, as items of a list of a
// built-in type are.
func (r *Registry) Untyped(res *catalog.Resource, o *storage.Object) []byte {
	data := r.Encoded(res, o)
	prefix := typed(res.GroupVersion().String(), res.Kind)
	if !bytes.HasPrefix(data, prefix) {
		return data
	}
	return slices.Concat([]byte("{"), data[len(prefix):])
}

// At is obj, of the resource, as it would be stored under a version.
func (r *Registry) At(res *catalog.Resource, obj catalog.Object, version uint64) *storage.Object {
	meta(obj).SetResourceVersion(strconv.FormatUint(version, 10))
	data, _ := marshal(obj) // it was JSON before
	return &storage.Object{Form: res, Version: version, Data: data}
}

// commit writes obj in the place of old, unless it is a dry run.
func (r *Registry) commit(q *Request, old *storage.Object, obj catalog.Object) (*storage.Object, error) {
	encode, err := r.encoder(q.Resource, obj)
	if err != nil {
		return nil, err
	}
	if q.DryRun {
		if old == nil {
			return encode(0)
		}
		return encode(old.Version)
	}
	key := storage.Key{Namespace: q.Namespace, Name: (&unstructured.Unstructured{Object: obj}).GetName()}
	o, err := r.Store.Write(q.Resource.Table, key, old, encode)
	if err != nil {
		return nil, r.refused(err)
	}
	change := storage.Modified
	if old == nil {
		change = storage.Added
	}
	r.committed(q.Resource, &storage.Event{Change: change, Object: o, Old: old})
	return o, nil
}

// replace is what a request comes to that leaves obj in the place of old.
func (r *Registry) replace(q *Request, old *storage.Object, obj catalog.Object) (Result, error) {
	now, err := r.commit(q, old, obj)
	if err != nil {
		return Result{}, err
	}
	return Result{Object: now, Before: old, After: now}, nil
}

// remove takes old away; obj is its last state.
func (r *Registry) remove(q *Request, old *storage.Object, obj catalog.Object) (*storage.Object, error) {
	encode, err := r.encoder(q.Resource, obj)
	if err != nil {
		return nil, err
	}
	if q.DryRun {
		return encode(old.Version)
	}
	o, err := r.Store.Delete(q.Resource.Table, old, encode)
	if err != nil {
		return nil, r.refused(err)
	}
	r.committed(q.Resource, &storage.Event{Change: storage.Deleted, Object: o, Old: old})
	return o, nil
}
