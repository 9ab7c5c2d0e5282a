package endpoint

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	knet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/yaml"

	"github.com/tetherkube/tether/internal/apiserver/registry"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// Exchange is one request on its way through the server.
type Exchange struct {
	Request *http.Request
	Target
	User registry.User
	// Body is the request's, for verbs that write.
	Body []byte
	// DryRun says that nothing was to be stored.
	DryRun bool

	// StaleAt, set before the request is carried out, is the version that reads
	// see which do not ask for the most recent one; 0 for none.
	StaleAt uint64

	// Before and After are the object around what the request did.
	Before, After *storage.Object

	over     func() // gives back what the answer holds, whether it is sent or not; nil for nothing
	known    bool   // authenticated
	bodyErr  error  // of reading Body
	accepted accepted
	warnings []string
}

// Answer is a response that is not sent yet.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte
	// Status is the error that Body has; nil for none.
	Status *metav1.Status
	// Truncated says that half of Body is sent, and then the connection is cut.
	Truncated bool
	// stream, for a watch, is what comes after the header.
	stream func(http.ResponseWriter)
}

// OnEnd has f called when the stream of a watch ends, however it does.
func (a *Answer) OnEnd(f func()) {
	stream := a.stream
	a.stream = func(w http.ResponseWriter) {
		defer f()
		stream(w)
	}
}

// Streams says that the answer is the stream of a watch.
func (a *Answer) Streams() bool { return a.stream != nil }

// JSON is an answer with a value in JSON.
func JSON(code int, v any) *Answer {
	body, err := json.Marshal(v)
	if err != nil {
		return Failure(apierrors.NewInternalError(err))
	}
	return &Answer{Code: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

// Text is an answer in plain text.
func Text(code int, text string) *Answer {
	return &Answer{Code: code, Header: http.Header{
		"Content-Type": {"text/plain; charset=utf-8"}, "X-Content-Type-Options": {"nosniff"},
	}, Body: []byte(text)}
}

// Failure is the answer that an error is.
func Failure(err error) *Answer {
	status := StatusOf(err)
	a := JSON(int(status.Code), status)
	a.Status = status
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		a.Header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	return a
}

// StatusOf is an error as a client sees it.
func StatusOf(err error) *metav1.Status {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		return &metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
		}
	}
	status := known.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	if status.Status == "" {
		status.Status = metav1.StatusFailure
	}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	return &status
}

// auditID is the request's own, or else one that nobody has.
func (x *Exchange) auditID() string {
	if id := x.Request.Header.Get("Audit-Id"); id != "" {
		return id
	}
	return string(uuid.NewUUID())
}

// send writes an answer.
func (x *Exchange) send(w http.ResponseWriter, a *Answer) {
	header := w.Header()
	for k, v := range a.Header {
		header[k] = v
	}
	for _, text := range x.warnings {
		if value, err := knet.NewWarningHeader(299, "-", text); err == nil {
			header.Add("Warning", value)
		}
	}
	header.Set("Cache-Control", "no-cache, private")
	header.Set("Audit-Id", x.auditID())
	body := a.Body
	if x.accepted.yaml && header.Get("Content-Type") == "application/json" && a.stream == nil {
		if converted, err := yaml.JSONToYAML(body); err == nil {
			body = converted
			header.Set("Content-Type", "application/yaml")
		}
	}
	if a.stream != nil {
		a.stream(w)
		return
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(a.Code)
	if a.Truncated {
		w.Write(body[:len(body)/2])
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	if x.Request.Method != http.MethodHead {
		w.Write(body)
	}
}
