package tether

import "time"

// Hooks hear what happens, for metrics and tracing. They are called on the hot
// path, concurrently, and must be quick and must not block. Embed [NoHooks], so
// that a method added later does not break the build.
type Hooks interface {
	// Running is called once, before anything else. now may be asked at any time, and
	// answers what is so at that moment: the zero Snapshot once Run has returned.
	Running(now func() Snapshot)
	// Pass is called at the end of every pass.
	Pass(PassInfo)
	// Call is called after every call of an External.
	Call(CallInfo)
	// Request is called after every request to the API server.
	Request(RequestInfo)
}

// NoHooks hears nothing. Its zero value is the default.
type NoHooks struct{}

// Running does nothing.
func (NoHooks) Running(func() Snapshot) {}

// Pass does nothing.
func (NoHooks) Pass(PassInfo) {}

// Call does nothing.
func (NoHooks) Call(CallInfo) {}

// Request does nothing.
func (NoHooks) Request(RequestInfo) {}

// PassInfo is one pass that ended.
type PassInfo struct {
	Controller string
	Key        Key
	Lane       string        // people, retry or background
	Waited     time.Duration // from ready to a worker
	Duration   time.Duration
	Outcome    string // done, after, backoff, error, retry_after, terminal, deferred, again or vanished
	Reason     string // of the condition, "" where all is well; where the object vanished, what became of the thing outside
	Panic      bool
}

// CallInfo is one call of an External that ended.
type CallInfo struct {
	Controller string
	Verb       string // observe, create, update, delete, fence or rebind
	Outcome    string // done, rejected, no_effect, retry_after or unknown
	Duration   time.Duration
}

// RequestInfo is one request to the API server.
type RequestInfo struct {
	Method   string
	Resource string // plural, with the subresource where there is one
	Watch    bool
	Code     int // 0 where there was no answer
	Duration time.Duration
}

// Snapshot is what stands at one moment.
type Snapshot struct {
	Leading   bool
	Queues    []QueueState
	Informers []InformerState
	Managed   []ManagedState
	Budgets   []BudgetState
}

// BudgetState is a [Budget], of all that share it.
type BudgetState struct {
	Name     string
	Rate     float64 // calls a second, at present
	Tokens   float64 // calls that may be made at once
	Breaker  string  // closed: the endpoint answers; open: it does not; half-open: one pass tries it
	Deferred int     // keys that wait for it
}

// ManagedState is what a controller made by [Manage] knows of the outside.
type ManagedState struct {
	Controller     string
	OutcomeUnknown int // objects of which a call may or may not have taken effect
	Orphans        int // things outside that no object of this cluster derives, where the External is a Lister
}

// QueueState is one controller's queue.
type QueueState struct {
	Controller string
	Ready      map[string]int // keys that wait for a worker, by lane
	Waiting    int            // keys that wait for a time
	Running    int
}

// InformerState is one informer.
type InformerState struct {
	Resource string
	Synced   bool
	Objects  int
	Trouble  string // by reason: "", NotServed, Forbidden, Unauthorized, Unreachable, …
	Message  string
	Since    time.Time // of the trouble
}
