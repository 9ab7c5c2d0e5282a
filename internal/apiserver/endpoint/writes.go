package endpoint

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metascheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/registry"
)

// request is the exchange as the registry takes it.
func (h *Handler) request(x *Exchange, res *catalog.Resource) *registry.Request {
	query := x.Request.URL.Query()
	q := &registry.Request{
		Resource: res, Namespace: x.Namespace, Name: x.Name, Subresource: x.Subresource, User: x.User,
		Manager: query.Get("fieldManager"), DryRun: x.DryRun, Validation: query.Get("fieldValidation"),
		Warn: func(text string) {
			if !slices.Contains(x.warnings, text) {
				x.warnings = append(x.warnings, text)
			}
		},
	}
	if !res.Namespaced {
		q.Namespace = ""
	}
	if q.Manager == "" {
		q.Manager, _, _ = strings.Cut(x.Request.UserAgent(), "/")
	}
	return q
}

// options reads options of a kind from the query.
func options(x *Exchange, into runtime.Object) error {
	if err := metascheme.ParameterCodec.DecodeParameters(x.Request.URL.Query(), metav1.SchemeGroupVersion, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// done notes what a verb did, and answers its object.
func (h *Handler) done(x *Exchange, res *catalog.Resource, result registry.Result, err error) (*Answer, error) {
	if err != nil {
		return nil, err
	}
	x.Before, x.After = result.Before, result.After
	code := http.StatusOK
	if result.Created {
		code = http.StatusCreated
	}
	if result.Object == nil {
		return JSON(code, result.Status), nil
	}
	return h.object(x, res, result.Object, code)
}

func (h *Handler) create(x *Exchange, res *catalog.Resource) (*Answer, error) {
	media, err := bodyMedia(x.Request, !res.Custom)
	if err != nil {
		return nil, err
	}
	var o metav1.CreateOptions
	if err := options(x, &o); err != nil {
		return nil, err
	}
	if err := invalidOptions("CreateOptions", metavalidation.ValidateCreateOptions(&o)); err != nil {
		return nil, err
	}
	q := h.request(x, res)
	obj, err := q.Read(media, x.Body)
	if err != nil {
		return nil, err
	}
	result, err := h.Registry.Create(q, obj)
	if x.Name = q.Name; result.Object != nil {
		x.Name = result.Object.Name
	}
	return h.done(x, res, result, err)
}

func (h *Handler) update(x *Exchange, res *catalog.Resource) (*Answer, error) {
	media, err := bodyMedia(x.Request, !res.Custom || x.Subresource == "scale")
	if err != nil {
		return nil, err
	}
	var o metav1.UpdateOptions
	if err := options(x, &o); err != nil {
		return nil, err
	}
	if err := invalidOptions("UpdateOptions", metavalidation.ValidateUpdateOptions(&o)); err != nil {
		return nil, err
	}
	q := h.request(x, res)
	read := q.Read
	if x.Subresource == "scale" {
		read = q.ReadScale
	}
	obj, err := read(media, x.Body)
	if err != nil {
		return nil, err
	}
	u := unstructured.Unstructured{Object: obj}
	if u.GetName() != x.Name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", u.GetName(), x.Name))
	}
	switch x.Subresource {
	case "finalize":
		result, err := h.Registry.Finalize(q, obj)
		return h.done(x, res, result, err)
	case "scale":
		result, err := h.Registry.UpdateScale(q, obj)
		return h.done(x, res, result, err)
	}
	result, err := h.Registry.Update(q, func(catalog.Object) (catalog.Object, error) {
		return u.DeepCopy().Object, nil
	}, registry.UpdateOptions{UID: string(u.GetUID()), Create: res.Traits.CreateOnUpdate, MayCreate: h.mayCreate(x)})
	return h.done(x, res, result, err)
}

// mayCreate says whether who updates may create as well.
func (h *Handler) mayCreate(x *Exchange) func() error {
	return func() error {
		t := x.Target
		t.Verb = "create"
		if h.Authorize == nil || h.Authorize.May(x.User, t) {
			return nil
		}
		return Forbidden(x.User, t)
	}
}

func (h *Handler) patch(x *Exchange, res *catalog.Resource) (*Answer, error) {
	media, _, err := mime.ParseMediaType(x.Request.Header.Get("Content-Type"))
	if takes := registry.PatchTypes(res); err != nil || !slices.Contains(takes, media) {
		return nil, unsupportedPatch(res.Custom, takes)
	}
	var o metav1.PatchOptions
	if err := options(x, &o); err != nil {
		return nil, err
	}
	if err := invalidOptions("PatchOptions", metavalidation.ValidatePatchOptions(&o, types.PatchType(media))); err != nil {
		return nil, err
	}
	if x.Subresource == "scale" {
		result, err := h.Registry.PatchScale(h.request(x, res), types.PatchType(media), x.Body, o.Force != nil && *o.Force)
		return h.done(x, res, result, err)
	}
	result, err := h.Registry.Patch(h.request(x, res), types.PatchType(media), x.Body, o.Force != nil && *o.Force, h.mayCreate(x))
	return h.done(x, res, result, err)
}

// deleteOptions are in the body, or else in the query.
func (h *Handler) deleteOptions(x *Exchange) (metav1.DeleteOptions, error) {
	var o metav1.DeleteOptions
	if len(x.Body) == 0 {
		if err := options(x, &o); err != nil {
			return o, err
		}
	} else {
		media, err := bodyMedia(x.Request, true)
		if err != nil {
			return o, err
		}
		info, _ := runtime.SerializerInfoForMediaType(metascheme.Codecs.SupportedMediaTypes(), media)
		kind := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
		decoded, _, err := info.Serializer.Decode(x.Body, &kind, &o)
		if err != nil {
			return o, apierrors.NewBadRequest(err.Error())
		}
		given, ok := decoded.(*metav1.DeleteOptions)
		if !ok {
			return o, apierrors.NewBadRequest("decoded object cannot be converted to DeleteOptions")
		}
		o = *given
	}
	x.DryRun = x.DryRun || slices.Contains(o.DryRun, metav1.DryRunAll)
	return o, invalidOptions("DeleteOptions", metavalidation.ValidateDeleteOptions(&o))
}

func (h *Handler) delete(x *Exchange, res *catalog.Resource) (*Answer, error) {
	o, err := h.deleteOptions(x)
	if err != nil {
		return nil, err
	}
	result, err := h.Registry.Delete(h.request(x, res), o)
	a, err := h.done(x, res, result, err)
	if orphan := o.OrphanDependents; err == nil && !result.Deleted && orphan != nil && !*orphan { //nolint:staticcheck // old clients send it
		a.Code = http.StatusAccepted
	}
	return a, err
}

func (h *Handler) deleteCollection(x *Exchange, res *catalog.Resource) (*Answer, error) {
	o, err := h.deleteOptions(x)
	if err != nil {
		return nil, err
	}
	opts, err := listOptions(x, res)
	if err != nil {
		return nil, err
	}
	sel, err := h.selection(x, res, &metainternal.ListOptions{
		LabelSelector: opts.LabelSelector, FieldSelector: opts.FieldSelector, Limit: opts.Limit,
	})
	if err != nil {
		return nil, err
	}
	q := h.request(x, res)
	q.Name = ""
	list, err := h.Registry.DeleteCollection(q, sel, o)
	if err != nil {
		return nil, err
	}
	return h.objects(x, res, list, "")
}
