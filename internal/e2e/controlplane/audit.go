package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// auditPolicy records who asked what and how it was answered, once for each
// request, and no bodies. A watch is recorded when it begins and when it ends.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// Request is what the API server recorded about one request.
type Request struct {
	Stage      string    `json:"stage"` // ResponseComplete; for a watch ResponseStarted as well
	URI        string    `json:"requestURI"`
	Verb       string    `json:"verb"` // get, list, watch, create, update, patch, delete, deletecollection
	UserAgent  string    `json:"userAgent"`
	ReceivedAt time.Time `json:"requestReceivedTimestamp"`
	User       struct {
		Name  string              `json:"username"`
		Extra map[string][]string `json:"extra"` // of a token: its id, among other things
	} `json:"user"`
	Object struct { // empty where no resource was meant
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code   int    `json:"code"`
		Reason string `json:"reason"`
	} `json:"responseStatus"`
}

// Audit takes what the API server writes and keeps it as requests.
type Audit struct {
	// mu guards what follows.
	mu       sync.Mutex
	rest     []byte // a line that has not ended yet
	requests []Request
	err      error         // of a line that is none of ours
	more     chan struct{} // closed, and made anew, whenever one of the above changes
}

func newAudit() *Audit { return &Audit{more: make(chan struct{})} }

// restarted forgets the line in whose middle the API server was killed.
func (a *Audit) restarted() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rest = nil
}

// Write takes the API server's record, cut anywhere.
func (a *Audit) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rest = append(a.rest, p...)
	for {
		line, rest, ok := bytes.Cut(a.rest, []byte("\n"))
		if !ok {
			break
		}
		a.rest = rest
		var r Request
		if err := json.Unmarshal(line, &r); err != nil {
			a.err = fmt.Errorf("reading the audit record %q: %w", line, err)
			continue
		}
		a.requests = append(a.requests, r)
	}
	close(a.more)
	a.more = make(chan struct{})
	return len(p), nil
}

// Requests returns what was recorded of the requests for which match is true.
func (a *Audit) Requests(match func(Request) bool) ([]Request, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []Request
	for _, r := range a.requests {
		if match(r) {
			found = append(found, r)
		}
	}
	return found, a.err
}

// WaitFor waits until n requests for which match is true have been recorded.
func (a *Audit) WaitFor(ctx context.Context, n int, match func(Request) bool) error {
	for {
		a.mu.Lock()
		more := a.more
		a.mu.Unlock()
		found, err := a.Requests(match)
		if err != nil || len(found) >= n {
			return err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d requests in the audit log, of which there are %d: %w", n, len(found), context.Cause(ctx))
		}
	}
}

// Audit returns the record, in which every request stands that was answered
// before this call. It wants Options.Audit.
func (c *ControlPlane) Audit(ctx context.Context) (*Audit, error) {
	if c.audit == nil {
		return nil, fmt.Errorf("no requests are recorded: set Options.Audit")
	}
	client, err := rest.HTTPClientFor(c.RESTConfig())
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	// A request is written down in a moment after its answer was sent. One more
	// request, once it stands there itself, says that the earlier ones do.
	mark := "/readyz?mark=" + strconv.FormatInt(time.Now().UnixNano(), 10)
	if err := askURL(ctx, client, c.URL()+mark); err != nil {
		return nil, err
	}
	return c.audit, c.audit.WaitFor(ctx, 1, func(r Request) bool { return r.URI == mark })
}

// ByVerb counts requests by verb and resource, as "patch tickets/status".
func ByVerb(requests []Request) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		what := r.Object.Resource
		if r.Object.Subresource != "" {
			what += "/" + r.Object.Subresource
		}
		counts[r.Verb+" "+what]++
	}
	return counts
}

// Complete keeps the records that a request has ended with: a watch that runs
// is left out, and no request stands there twice.
func Complete(requests []Request) []Request {
	return slices.DeleteFunc(slices.Clone(requests), func(r Request) bool { return r.Stage != "ResponseComplete" })
}
