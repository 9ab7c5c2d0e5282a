package endpoint

import (
	"encoding/json"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// form is by what the encoded forms of an event are shared among watches.
type form struct {
	res     *catalog.Resource
	shape   shape
	include string
	left    bool
	headers bool
}

// body is the object of an event, encoded once for all watches of a kind. A nil
// object is the one before, which has left the selection.
func (s *stream) body(e *storage.Event, o *storage.Object) []byte {
	key := form{res: s.res, shape: s.x.accepted.shape, left: o == nil}
	if key.shape == tabular {
		key.include = s.x.Request.URL.Query().Get("includeObject")
		key.headers = !s.headers
		s.headers = true
	}
	if o == nil {
		o = e.Old
	}
	if key.shape == whole && !key.left && o.Form == s.res {
		return o.Data
	}
	return e.Encoded(key, func() []byte { return s.encode(o, e.Version(), key) })
}

func (s *stream) encode(o *storage.Object, version uint64, key form) []byte {
	if key.left {
		obj, err := s.h.Registry.Decode(s.res, o)
		if err != nil {
			return o.Data
		}
		o = s.h.Registry.At(s.res, obj, version)
	}
	if key.shape == whole {
		return s.h.Registry.Encoded(s.res, o)
	}
	data, err := s.h.shaped(s.x, s.res, []*storage.Object{o}, strconv.FormatUint(version, 10), "", 0, false)
	if err != nil {
		return s.h.Registry.Encoded(s.res, o)
	}
	if key.shape == tabular && !key.headers {
		data = withoutColumns(data)
	}
	return data
}

// withoutColumns is a table whose columns the client knows already.
func withoutColumns(data []byte) []byte {
	var t metav1.Table
	if json.Unmarshal(data, &t) != nil {
		return data
	}
	t.ColumnDefinitions = nil
	short, err := json.Marshal(t)
	if err != nil {
		return data
	}
	return short
}

// bookmark is an event that says how far the watch has come.
func (s *stream) bookmark(end bool) []byte {
	m := map[string]any{"resourceVersion": strconv.FormatUint(s.version, 10)}
	if end {
		m["annotations"] = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	obj := map[string]any{"kind": s.res.Kind, "apiVersion": s.res.GroupVersion().String(), "metadata": m}
	switch s.x.accepted.shape {
	case metadata:
		obj["kind"], obj["apiVersion"] = "PartialObjectMetadata", "meta.k8s.io/v1"
	case tabular:
		row := map[string]any{"cells": []any{}, "object": map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": m}}
		obj = map[string]any{
			"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"resourceVersion": m["resourceVersion"]},
			"columnDefinitions": nil, "rows": []any{row},
		}
	}
	body, err := json.Marshal(obj)
	if err != nil {
		return nil // texts alone
	}
	return frame("BOOKMARK", body)
}

func frame(change string, body []byte) []byte {
	b := make([]byte, 0, len(body)+40)
	b = append(append(append(b, `{"type":"`...), change...), `","object":`...)
	return append(append(b, body...), "}\n"...)
}

func (s *stream) send(change storage.Change, body []byte) bool {
	return s.write(frame(string(change), body))
}

func (s *stream) write(b []byte) bool {
	_, err := s.w.Write(b)
	return err == nil
}

// fail ends the stream with an error.
func (s *stream) fail(err error) {
	body, marshalErr := json.Marshal(StatusOf(err))
	if marshalErr == nil && s.write(frame("ERROR", body)) {
		s.flush() //nolint:errcheck // it ends either way
	}
}
