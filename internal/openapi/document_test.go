package openapi_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"

	"github.com/tetherkube/tether/booking"
)

// contract is the document with a validator for what goes over the wire.
type contract struct {
	model     *v3.Document
	validator validator.Validator
}

// load reads the document. The validator is strict: what the document does not
// declare is wrong, although clients are told to overlook it.
func load(t *testing.T) contract {
	t.Helper()
	text, err := os.ReadFile("../../booking/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := libopenapi.NewDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(doc, config.WithFormatAssertions(), config.WithStrictMode(),
		config.WithStrictIgnoredHeadersExtra("date", "www-authenticate", "accept", "user-agent"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	t.Cleanup(v.Release)
	model, err := doc.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	return contract{&model.Model, v}
}

func TestTheDocumentIsOpenAPI31(t *testing.T) {
	c := load(t)
	if ok, errs := c.validator.ValidateDocument(); !ok {
		for _, e := range errs {
			t.Error(e)
		}
	}
	if !strings.HasPrefix(c.model.Version, "3.1") {
		t.Errorf("version %s", c.model.Version)
	}
}

func TestTheDocumentAndTheClientHaveTheSameProblems(t *testing.T) {
	c := load(t)
	documented := map[booking.Kind]bool{}
	for name := range c.model.Components.Schemas.KeysFromOldest() {
		if k, ok := c.problemKind(name); ok {
			documented[k] = true
		}
	}
	for _, k := range booking.ProblemKinds() {
		if !documented[k] {
			t.Errorf("%s is not documented, or with another HTTP status", k)
		}
		delete(documented, k)
	}
	for k := range documented {
		t.Errorf("%s is documented and unknown to the client", k)
	}
}

// problemKind is the kind that a schema of the document is for, if it is one.
func (c contract) problemKind(schema string) (booking.Kind, bool) {
	proxy := c.model.Components.Schemas.GetOrZero(schema)
	if proxy == nil || proxy.Schema().Properties == nil {
		return "", false
	}
	typ, status := proxy.Schema().Properties.GetOrZero("type"), proxy.Schema().Properties.GetOrZero("status")
	if typ == nil || status == nil || typ.Schema().Const == nil {
		return "", false
	}
	var p booking.Problem
	if err := typ.Schema().Const.Decode(&p.Type); err != nil {
		return "", false
	}
	if err := status.Schema().Const.Decode(&p.Status); err != nil {
		return "", false
	}
	return p.Kind()
}

// promises is every answer that the document has, as "operation status kind".
func (c contract) promises() map[string]bool {
	all := map[string]bool{}
	for _, item := range c.model.Paths.PathItems.FromOldest() {
		for _, op := range item.GetOperations().FromOldest() {
			for status, response := range op.Responses.Codes.FromOldest() {
				problem := response.Content.GetOrZero(booking.MediaTypeProblem)
				if problem == nil {
					all[op.OperationId+" "+status+" "] = true
					continue
				}
				refs := []string{problem.Schema.GetReference()}
				if oneOf := problem.Schema.Schema().OneOf; len(oneOf) > 0 {
					refs = nil
					for _, p := range oneOf {
						refs = append(refs, p.GetReference())
					}
				}
				for _, ref := range refs {
					k, _ := c.problemKind(strings.TrimPrefix(ref, "#/components/schemas/"))
					all[op.OperationId+" "+status+" "+string(k)] = true
				}
			}
		}
	}
	return all
}

// checked is a transport that holds every exchange to the document.
type checked struct {
	contract
	inner http.RoundTripper
	// request and answer are told what the validator has to say, nil for nothing.
	request, answer func(*http.Request, error)
}

func (c checked) RoundTrip(r *http.Request) (*http.Response, error) {
	body := []byte{}
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body.Close()
	}
	rewind := func() *http.Request {
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		if len(body) == 0 {
			again.Body = http.NoBody
		}
		return again
	}
	ok, errs := c.validator.ValidateHttpRequestSync(rewind())
	c.request(r, firstOf(ok, errs))
	resp, err := c.inner.RoundTrip(rewind())
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	ok, errs = c.validator.ValidateHttpResponse(rewind(), resp)
	c.answer(r, firstOf(ok, errs))
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, nil
}

func firstOf[E error](ok bool, errs []E) error {
	if ok || len(errs) == 0 {
		return nil
	}
	return errs[0]
}
