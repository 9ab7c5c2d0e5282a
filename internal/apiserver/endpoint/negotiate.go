package endpoint

import (
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// shape is what an object is answered as.
type shape string

const (
	whole    shape = ""
	metadata shape = "PartialObjectMetadata"
	tabular  shape = "Table"
)

// accepted is what a client takes.
type accepted struct {
	shape shape
	yaml  bool
	// discovery says that the aggregated form was asked for.
	discovery bool
}

const protobuf = "application/vnd.kubernetes.protobuf"

var served = "application/json, application/yaml, " + protobuf

// negotiate finds the first clause of an Accept header that can be served. The
// weights are left aside, as the real server does for equal media types.
func negotiate(r *http.Request) (accepted, error) {
	header := r.Header.Get("Accept")
	if header == "" {
		return accepted{}, nil
	}
	for clause := range strings.SplitSeq(header, ",") {
		media, params, err := mime.ParseMediaType(strings.TrimSpace(clause))
		if err != nil {
			continue
		}
		var a accepted
		switch media {
		case runtime.ContentTypeJSON, "*/*", "application/*":
		case runtime.ContentTypeYAML:
			a.yaml = true
		default:
			continue
		}
		as := params["as"]
		switch {
		case as == "":
		case params["g"] == "meta.k8s.io" && (params["v"] == "v1" || params["v"] == "v1beta1") && as == "Table":
			a.shape = tabular
		case params["g"] == "meta.k8s.io" && (params["v"] == "v1" || params["v"] == "v1beta1") && strings.TrimSuffix(as, "List") == "PartialObjectMetadata":
			a.shape = metadata
		case params["g"] == "apidiscovery.k8s.io" && params["v"] == "v2" && as == "APIGroupDiscoveryList":
			a.discovery = true
		default:
			continue
		}
		return a, nil
	}
	return accepted{}, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + served,
	}}
}

// bodyMedia is the media type of a request's body.
func bodyMedia(r *http.Request, protobufToo bool) (string, error) {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return runtime.ContentTypeJSON, nil
	}
	media, _, err := mime.ParseMediaType(header)
	takes := served
	if !protobufToo {
		takes = strings.TrimSuffix(served, ", "+protobuf)
	}
	if err == nil && (media == runtime.ContentTypeJSON || media == runtime.ContentTypeYAML || protobufToo && media == protobuf) {
		return media, nil
	}
	return "", unsupportedMedia(takes)
}

// unsupportedPatch is the answer to a patch of another type than a resource takes.
func unsupportedPatch(custom bool, takes []string) error {
	if custom {
		return unsupportedMedia(strings.Join(takes, ", "))
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "415: Unsupported Media Type", Details: &metav1.StatusDetails{},
	}}
}

func unsupportedMedia(takes string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + takes,
	}}
}
