package endpoint

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

func (h *Handler) get(x *Exchange, res *catalog.Resource) (*Answer, error) {
	var o metav1.GetOptions
	if err := options(x, &o); err != nil {
		return nil, err
	}
	key := storage.Key{Name: x.Name}
	if res.Namespaced {
		key.Namespace = x.Namespace
	}
	found := h.Store.Get(res.Table, key)
	if o.ResourceVersion != "" {
		least, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
		}
		if now := h.Store.Version(); least > now {
			return nil, tooLarge(least, now)
		}
		if x.StaleAt != 0 && least <= x.StaleAt {
			found = h.past(res, key, x.StaleAt, found)
		}
	}
	if found == nil {
		return nil, apierrors.NewNotFound(res.GroupResource(), x.Name)
	}
	return h.object(x, res, found, http.StatusOK)
}

// past is an object as it was at a version; now where that is not known.
func (h *Handler) past(res *catalog.Resource, key storage.Key, at uint64, now *storage.Object) *storage.Object {
	list, err := h.Store.List(res.Table, storage.Selection{At: at, Namespace: key.Namespace, Match: func(o *storage.Object) bool { return o.Key == key }})
	if err != nil {
		return now
	}
	if len(list.Objects) == 0 {
		return nil
	}
	return list.Objects[0]
}

// tooLarge is the error of a version that is not there yet.
func tooLarge(asked, now uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, now), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// listOptions reads and validates the options of lists and watches.
func listOptions(x *Exchange, res *catalog.Resource) (*metainternal.ListOptions, error) {
	o := &metainternal.ListOptions{}
	if err := options(x, o); err != nil {
		return nil, err
	}
	o.Watch = x.Verb == "watch"
	metainternal.SetListOptionsDefaults(o, true)
	if err := invalidOptions("ListOptions", metavalidation.ValidateListOptions(o, true)); err != nil {
		return nil, err
	}
	if o.FieldSelector != nil {
		for _, r := range o.FieldSelector.Requirements() {
			if !selectable(res, r.Field) {
				return nil, apierrors.NewBadRequest(unknownLabel(res, r.Field))
			}
		}
	}
	if x.Name != "" {
		switch {
		case o.FieldSelector == nil || o.FieldSelector.Empty():
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", x.Name)
		default:
			if name, exact := o.FieldSelector.RequiresExactMatch("metadata.name"); !exact || name != x.Name {
				return nil, apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
			}
		}
	}
	return o, nil
}

func selectable(res *catalog.Resource, name string) bool {
	if name == "metadata.name" || name == "metadata.namespace" && (res.Namespaced || !res.Custom) {
		return true
	}
	for _, s := range res.Selectable {
		if s.Name == name {
			return true
		}
	}
	return false
}

// unknownLabel is how the real server says that a field cannot be selected by.
func unknownLabel(res *catalog.Resource, name string) string {
	if res.Custom {
		return fmt.Sprintf("field label not supported: %s", name)
	}
	if len(res.Selectable) > 0 {
		return fmt.Sprintf("field label not supported: %s", name)
	}
	return fmt.Sprintf("%q is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", name)
}

// matcher says what selectors select; nil for everything.
func matcher(o *metainternal.ListOptions) func(*storage.Object) bool {
	byLabel := o.LabelSelector != nil && !o.LabelSelector.Empty()
	byField := o.FieldSelector != nil && !o.FieldSelector.Empty()
	if !byLabel && !byField {
		return nil
	}
	return func(obj *storage.Object) bool {
		if byLabel && !o.LabelSelector.Matches(labels.Set(obj.Labels)) {
			return false
		}
		return !byField || o.FieldSelector.Matches(fieldsOf{obj})
	}
}

// fieldsOf shows an object to a field selector.
type fieldsOf struct{ o *storage.Object }

func (f fieldsOf) Has(name string) bool {
	_, ok := f.o.Fields[name]
	return ok || name == "metadata.name" || name == "metadata.namespace"
}

func (f fieldsOf) Get(name string) string {
	switch name {
	case "metadata.name":
		return f.o.Name
	case "metadata.namespace":
		return f.o.Namespace
	}
	return f.o.Fields[name]
}

// selection is what a list takes from the store.
func (h *Handler) selection(x *Exchange, res *catalog.Resource, o *metainternal.ListOptions) (storage.Selection, error) {
	sel := storage.Selection{Limit: int(o.Limit), Match: matcher(o)}
	if res.Namespaced {
		sel.Namespace = x.Namespace
	}
	if o.Continue != "" {
		if o.ResourceVersion != "" && o.ResourceVersion != "0" {
			return sel, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		from, at, err := decodeContinue(o.Continue, sel.Namespace, res.Namespaced)
		if err != nil {
			return sel, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
		}
		sel.From = from
		if at > 0 {
			sel.At = uint64(at)
		}
		return sel, nil
	}
	if o.ResourceVersion == "" {
		return sel, nil
	}
	asked, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil {
		return sel, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact || o.ResourceVersionMatch == "" && o.Limit > 0 && asked > 0
	switch now := h.Store.Version(); {
	case asked > now:
		return sel, tooLarge(asked, now)
	case exact:
		sel.At = asked
	case x.StaleAt != 0 && asked <= x.StaleAt:
		sel.At = x.StaleAt
	}
	return sel, nil
}

func (h *Handler) list(x *Exchange, res *catalog.Resource) (*Answer, error) {
	o, err := listOptions(x, res)
	if err != nil {
		return nil, err
	}
	sel, err := h.selection(x, res, o)
	if err != nil {
		return nil, err
	}
	list, err := h.Store.List(res.Table, sel)
	if errors.Is(err, storage.ErrExpired) && sel.At == x.StaleAt && o.Continue == "" && o.ResourceVersionMatch == "" {
		sel.At = 0 // a replica does not lag for ever
		list, err = h.Store.List(res.Table, sel)
	}
	if err != nil {
		return nil, listError(err, sel, o, h.Store.Version())
	}
	next := ""
	if list.More {
		next = encodeContinue(list.Next, sel.Namespace, int64(list.Version))
	}
	if sel.Match != nil {
		list.Remaining = 0
	}
	return h.objects(x, res, list, next)
}

func listError(err error, sel storage.Selection, o *metainternal.ListOptions, now uint64) error {
	switch {
	case errors.Is(err, storage.ErrFuture):
		return tooLarge(sel.At, now)
	case !errors.Is(err, storage.ErrExpired):
		return err
	case o.Continue == "":
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	expired := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. " +
		"Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time " +
		"the first chunk was returned and now may show up in the list.")
	expired.ErrStatus.Continue = encodeContinue(sel.From, sel.Namespace, -1)
	return expired
}

// token is what a continue parameter says: where to go on, and at which version;
// -1 is the newest.
type token struct {
	Version string `json:"v"`
	At      int64  `json:"rv"`
	Start   string `json:"start"`
}

func encodeContinue(next storage.Key, namespace string, at int64) string {
	start := next.Name
	if namespace == "" && next.Namespace != "" {
		start = next.Namespace + "/" + next.Name
	}
	raw, err := json.Marshal(token{Version: "meta.k8s.io/v1", At: at, Start: start})
	if err != nil {
		return "" // three plain fields
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func decodeContinue(s, namespace string, namespaced bool) (storage.Key, int64, error) {
	var t token
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(raw, &t)
	}
	switch {
	case err != nil:
		return storage.Key{}, 0, fmt.Errorf("continue key is not valid: %w", err)
	case t.Version != "meta.k8s.io/v1":
		return storage.Key{}, 0, fmt.Errorf("continue key is not valid: server does not recognize this encoded version %s", t.Version)
	case t.At == 0:
		return storage.Key{}, 0, errors.New("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	case t.Start == "":
		return storage.Key{}, 0, errors.New("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
	case path.Clean("/"+t.Start) != "/"+t.Start:
		return storage.Key{}, 0, fmt.Errorf("continue key is not valid: %s", t.Start)
	}
	key := storage.Key{Namespace: namespace, Name: t.Start}
	if namespaced && namespace == "" {
		ns, name, _ := strings.Cut(t.Start, "/")
		key = storage.Key{Namespace: ns, Name: name}
	}
	return key, t.At, nil
}
