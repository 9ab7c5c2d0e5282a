package endpoint

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
	"github.com/tetherkube/tether/internal/apiserver/table"
)

// object answers one object in the shape that the client takes.
func (h *Handler) object(x *Exchange, res *catalog.Resource, o *storage.Object, code int) (*Answer, error) {
	if x.Subresource == "scale" {
		scale, err := h.Registry.Scale(res, o, x.Verb != "get")
		if err != nil {
			return nil, err
		}
		return JSON(code, scale), nil
	}
	if x.accepted.shape == whole {
		return raw(code, h.Registry.Encoded(res, o)), nil
	}
	data, err := h.shaped(x, res, []*storage.Object{o}, strconv.FormatUint(o.Version, 10), "", 0, false)
	if err != nil {
		return nil, err
	}
	return raw(code, data), nil
}

func raw(code int, body []byte) *Answer {
	return &Answer{Code: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

// objects answers a list.
func (h *Handler) objects(x *Exchange, res *catalog.Resource, list storage.List, next string) (*Answer, error) {
	version := strconv.FormatUint(list.Version, 10)
	if x.accepted.shape != whole {
		data, err := h.shaped(x, res, list.Objects, version, next, list.Remaining, true)
		if err != nil {
			return nil, err
		}
		return raw(http.StatusOK, data), nil
	}
	size := 256
	for _, o := range list.Objects {
		size += len(o.Data) + 1
	}
	b := bytes.NewBuffer(make([]byte, 0, size))
	b.WriteString(`{"kind":` + strconv.Quote(res.ListKind) + `,"apiVersion":` + strconv.Quote(res.GroupVersion().String()) + `,"metadata":`)
	head, err := json.Marshal(listMeta(version, next, list.Remaining))
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if res.Custom && next == "" {
		head = append([]byte(`{"continue":"",`), head[1:]...) // a list without a Go type says it in any case
	}
	b.Write(head)
	b.WriteString(`,"items":[`)
	for i, o := range list.Objects {
		if i > 0 {
			b.WriteByte(',')
		}
		if res.Custom || res.Table == catalog.Definitions {
			b.Write(h.Registry.Encoded(res, o))
		} else {
			b.Write(h.Registry.Untyped(res, o))
		}
	}
	b.WriteString("]}")
	return raw(http.StatusOK, b.Bytes()), nil
}

func listMeta(version, next string, remaining int) metav1.ListMeta {
	m := metav1.ListMeta{ResourceVersion: version, Continue: next}
	if next != "" && remaining > 0 {
		n := int64(remaining)
		m.RemainingItemCount = &n
	}
	return m
}

// shaped encodes objects as a table or as their metadata alone.
func (h *Handler) shaped(x *Exchange, res *catalog.Resource, objects []*storage.Object, version, next string, remaining int, list bool) ([]byte, error) {
	decoded := make([]map[string]any, 0, len(objects))
	for _, o := range objects {
		obj, err := h.Registry.Decode(res, o)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		decoded = append(decoded, obj)
	}
	if x.accepted.shape == tabular {
		include := metav1.IncludeObjectPolicy(x.Request.URL.Query().Get("includeObject"))
		t := table.Of(res.Columns, decoded, include, h.Now())
		t.TypeMeta = metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}
		t.ListMeta = listMeta(version, next, remaining)
		return json.Marshal(t)
	}
	partial := make([]metav1.PartialObjectMetadata, 0, len(decoded))
	for _, obj := range decoded {
		p := meta.AsPartialObjectMetadata(&unstructured.Unstructured{Object: obj})
		p.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}
		partial = append(partial, *p)
	}
	if !list {
		return json.Marshal(partial[0])
	}
	return json.Marshal(metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"},
		ListMeta: listMeta(version, next, remaining), Items: partial,
	})
}
