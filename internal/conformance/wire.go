package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	jsonType      = "application/json"
	jsonPatch     = "application/json-patch+json"
	mergePatch    = "application/merge-patch+json"
	strategic     = "application/strategic-merge-patch+json"
	applyPatch    = "application/apply-patch+yaml"
	asTable       = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asPartial     = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	asPartialList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// request is one request. A path may have $GROUP and $NS in it, and a query.
type request struct {
	method, path, body string
	contentType        string // of the body [JSON]
	accept             string // [JSON]
}

// answer is what a server answered.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// ask makes a request. A path is told from the server's root.
func (e *env) ask(ctx context.Context, r request) (answer, error) {
	res, err := e.open(ctx, r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{code: res.StatusCode, header: res.Header, body: body}, err
}

func (e *env) open(ctx context.Context, r request) (*http.Response, error) {
	base := strings.TrimSuffix(e.base.Scheme+"://"+e.base.Host+e.base.Path, "/")
	req, err := http.NewRequestWithContext(ctx, r.method, base+e.expand(r.path), strings.NewReader(e.expand(r.body)))
	if err != nil {
		return nil, err
	}
	if r.body != "" {
		req.Header.Set("Content-Type", first(r.contentType, jsonType))
	}
	req.Header.Set("Accept", first(r.accept, jsonType))
	req.Header.Set("User-Agent", "conformance/1")
	return e.client.Do(req)
}

func first(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}

// do makes a request and returns whatever is answered. Where the server says to
// come back later, it does, as all clients: it says so while a definition changes.
func (e *env) do(t *testing.T, r request) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		a, err := e.ask(ctx, r)
		if err != nil {
			t.Fatalf("%s %s: %v", r.method, e.expand(r.path), err)
		}
		seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
		if a.code != http.StatusTooManyRequests || err != nil {
			return a
		}
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-ctx.Done():
			return a
		}
	}
}

// must makes a request that is granted, and returns the object in the answer.
func (e *env) must(t *testing.T, method, path, body string) object {
	t.Helper()
	return e.granted(t, request{method: method, path: path, body: body})
}

func (e *env) granted(t *testing.T, r request) object {
	t.Helper()
	a := e.do(t, r)
	if a.code/100 != 2 {
		t.Fatalf("%s %s: %d %s", r.method, e.expand(r.path), a.code, a.body)
	}
	return a.object(t)
}

func (e *env) get(t *testing.T, path string) object {
	t.Helper()
	return e.must(t, http.MethodGet, path, "")
}

func (e *env) post(t *testing.T, path, body string) object {
	t.Helper()
	return e.must(t, http.MethodPost, path, body)
}

func (e *env) put(t *testing.T, path string, o object) object {
	t.Helper()
	return e.must(t, http.MethodPut, path, o.json())
}

func (e *env) delete(t *testing.T, path string) object {
	t.Helper()
	return e.must(t, http.MethodDelete, path, "")
}

// merge makes a merge patch.
func (e *env) merge(t *testing.T, path, body string) object {
	t.Helper()
	return e.granted(t, request{method: http.MethodPatch, path: path, body: body, contentType: mergePatch})
}

func (a answer) object(t *testing.T) object {
	t.Helper()
	o, err := decode(a.body)
	if err != nil {
		t.Fatalf("%d %s: %v", a.code, a.body, err)
	}
	return o
}

// warnings are what the answer warns of.
func (a answer) warnings() (all []string) {
	for _, w := range a.header.Values("Warning") {
		w = strings.TrimPrefix(w, "299 - ")
		var text string
		if err := json.Unmarshal([]byte(w), &text); err != nil {
			text = w
		}
		all = append(all, text)
	}
	return all
}

// object is anything in JSON that has members.
type object map[string]any

func decode(raw []byte) (object, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var o object
	if err := d.Decode(&o); err != nil {
		return nil, err
	}
	return o, nil
}

func (o object) json() string {
	raw, err := json.Marshal(o)
	if err != nil {
		panic("what was decoded from JSON does not encode: " + err.Error())
	}
	return string(raw)
}

// at is what stands at a path of members, or nil.
func (o object) at(path ...string) any {
	var v any = map[string]any(o)
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// text is at for texts and numbers.
func (o object) text(path ...string) string {
	switch v := o.at(path...).(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case nil:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

func (o object) version() string { return o.text("metadata", "resourceVersion") }
func (o object) uid() string     { return o.text("metadata", "uid") }
func (o object) name() string    { return o.text("metadata", "name") }

// set changes what stands at a path of members, which may be missing.
func (o object) set(v any, path ...string) object {
	m := map[string]any(o)
	for _, name := range path[:len(path)-1] {
		next, ok := m[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[name] = next
		}
		m = next
	}
	m[path[len(path)-1]] = v
	return o
}

// items are the items of a list.
func (o object) items() (all []object) {
	list, _ := o["items"].([]any)
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

func (o object) names() (all []string) {
	for _, item := range o.items() {
		all = append(all, item.name())
	}
	return all
}

// normal puts a word in the place of what differs from one time to the next, and
// leaves managedFields out.
func normal(v any) any {
	switch v := v.(type) {
	case object:
		return normal(map[string]any(v))
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, value := range v {
			text, _ := value.(string)
			word := words[key]
			switch {
			case key == "managedFields":
			case word != "" && text != "":
				all[key] = word
			default:
				all[key] = normal(value)
			}
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = normal(v[i])
		}
		return all
	}
	return v
}

var words = map[string]string{
	"uid": "UID", "resourceVersion": "RV", "creationTimestamp": "TIME", "deletionTimestamp": "TIME", "time": "TIME",
	"lastTransitionTime": "TIME", "continue": "CONTINUE",
}

// same compares what is answered with what is wanted, in JSON, both normal.
func (e *env) same(t *testing.T, what string, want string, got object) {
	t.Helper()
	wanted, err := decode([]byte(e.expand(want)))
	if err != nil {
		t.Fatalf("%s: what is wanted is no JSON: %v", what, err)
	}
	if diff := cmp.Diff(normal(wanted), normal(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nall of it: %s", what, diff, object(normal(got).(map[string]any)).json())
	}
}

// refused makes a request that is answered with a Status.
func (e *env) refused(t *testing.T, r request, code int, want string) {
	t.Helper()
	a := e.do(t, r)
	if a.code != code {
		t.Errorf("%s %s: %d, want %d", r.method, e.expand(r.path), a.code, code)
	}
	e.same(t, r.method+" "+e.expand(r.path), want, a.object(t))
}

// failure is the Status of a refusal.
func failure(code int, reason, message, details string) string {
	text, _ := json.Marshal(message) // a string always encodes
	if details != "" {
		details = `,"details":` + details
	}
	if reason != "" {
		reason = `,"reason":"` + reason + `"`
	}
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%s%s%s,"code":%d}`, text, reason, details, code)
}
