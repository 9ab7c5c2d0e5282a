package fake

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// faultPhase is where on a request's way a fault is.
type faultPhase int

const (
	phaseNone    faultPhase = iota
	phaseDelay              // before the request is carried out
	phaseStale              // what it reads
	phaseInstead            // of carrying the request out
	phaseAnswer
	phaseWatch // its events
)

// faultKind is what goes wrong, at one kind of server.
type faultKind interface {
	~string
	phase() faultPhase
	// delays says that the fault wants a Delay.
	delays() bool
}

// faultRule is what all faults have, whatever they are matched against.
type faultRule[K faultKind] struct {
	kind              K
	nth, times        int
	probability       float64
	after, lasts      time.Duration
	delay, retryAfter time.Duration
}

// validate says what is wrong with r, and names each field.
func (r faultRule[K]) validate(kinds []K) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.kind.phase() == phaseNone {
		bad("kind: %.40q is unknown: want one of %s", string(r.kind), listed(kinds))
	}
	if r.nth < 0 || r.times < 0 {
		bad("nth and times: want numbers from 1 on, or 0 for the default")
	}
	if !(r.probability >= 0 && r.probability <= 1) {
		bad("probability: %v is not a share: want more than 0 and at most 1", r.probability)
	}
	if r.after < 0 || r.lasts < 0 || r.delay < 0 || r.retryAfter < 0 {
		bad("after, for, delay and retry-after: want no negative duration")
	}
	if r.kind.delays() && r.delay <= 0 {
		bad("delay: is missing: %s wants one, as 2s", r.kind)
	}
	return errors.Join(errs...)
}

// listed is names for people, as they are written.
func listed[S ~string](names []S) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	return strings.Join(texts, ", ")
}

// faultOf is a fault of kind K that is matched against subjects S.
type faultOf[K faultKind, S any] interface {
	Validate() error
	rule() faultRule[K]
	// fits says whether the fault is about the subject at all; it counts nothing.
	fits(subject S) bool
}

// faultSubject is what faults are matched against: a request, or an event.
type faultSubject interface {
	// about is what a drawn fault is drawn for: subjects about different things are
	// drawn each by itself, in whatever order they arrive.
	about() string
}

// faultSet is the faults that a server has. It is safe for concurrent use.
type faultSet[K faultKind, S faultSubject, F faultOf[K, S]] struct {
	seed uint64
	salt string // makes the draws of two kinds of server differ

	mu     sync.Mutex // guards what follows, and the counters of every fault
	count  uint64
	active []*injected[K, S, F] // in the order of injection
	// changed is closed at the next injection; nil while nobody waits.
	changed chan struct{}
}

// injected is a fault that a set has, or has had.
type injected[K faultKind, S faultSubject, F faultOf[K, S]] struct {
	set    *faultSet[K, S, F]
	fault  F
	rule   faultRule[K]
	index  uint64 // of its injection: makes two equal faults draw differently
	since  time.Time
	at     uint64         // the version of what the server stores, at the injection
	fitted int            // subjects that fitted; under set.mu
	met    int            // subjects that it met; under set.mu
	drawn  map[string]int // number of draws by what they are about; under set.mu
}

// inject adds a fault. It panics where the fault is wrong: that is a mistake in
// the test. at is the version of what the server stores.
func (fs *faultSet[K, S, F]) inject(f F, at uint64) *injected[K, S, F] {
	if err := f.Validate(); err != nil {
		panic(fmt.Sprintf("fake: Inject: %v", err))
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.count++
	i := &injected[K, S, F]{set: fs, fault: f, rule: f.rule(), index: fs.count, since: time.Now(), at: at, drawn: map[string]int{}}
	fs.active = append(fs.active, i)
	if fs.changed != nil {
		close(fs.changed)
		fs.changed = nil
	}
	return i
}

// stir is closed when a fault is injected.
func (fs *faultSet[K, S, F]) stir() <-chan struct{} {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.changed == nil {
		fs.changed = make(chan struct{})
	}
	return fs.changed
}

// clear removes every fault.
func (fs *faultSet[K, S, F]) clear() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.active = nil
}

// remove takes the fault back, if it is still there.
func (i *injected[K, S, F]) remove() {
	i.set.mu.Lock()
	defer i.set.mu.Unlock()
	i.set.active = slices.DeleteFunc(i.set.active, func(a *injected[K, S, F]) bool { return a == i })
}

// count is how many subjects the fault has met.
func (i *injected[K, S, F]) count() int {
	i.set.mu.Lock()
	defer i.set.mu.Unlock()
	return i.met
}

// InjectedFault is a fault that a server has.
type InjectedFault struct {
	in interface { // an injected of the server's own kind
		remove()
		count() int
	}
}

// Remove takes the fault back. It may be called more than once.
func (i *InjectedFault) Remove() { i.in.remove() }

// Met is how many requests, or events of watches, the fault has met.
func (i *InjectedFault) Met() int { return i.in.count() }

// meeting is the faults that one subject meets.
type meeting[K faultKind, F any] struct {
	kinds   []K
	delay   time.Duration // of all together
	staleAt uint64        // the version that it reads; 0 for the present one
	instead *F            // the first that keeps it from being carried out
	answer  *F            // the first that spoils the answer
	watch   []F           // all that are about the events of watches
}

// meet counts a subject, and is what meets it.
func (fs *faultSet[K, S, F]) meet(subject S, now time.Time) meeting[K, F] {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var m meeting[K, F]
	for _, i := range fs.active {
		if !i.meetsLocked(subject, now) {
			continue
		}
		m.kinds = append(m.kinds, i.rule.kind)
		switch phase := i.rule.kind.phase(); {
		case phase == phaseDelay:
			m.delay += i.rule.delay
		case phase == phaseStale:
			m.staleAt = i.at
		case phase == phaseInstead && m.instead == nil:
			m.instead = &i.fault
		case phase == phaseAnswer && m.answer == nil:
			m.answer = &i.fault
		case phase == phaseWatch:
			m.watch = append(m.watch, i.fault)
		}
	}
	return m
}

func (i *injected[K, S, F]) meetsLocked(subject S, now time.Time) bool {
	r, age := i.rule, now.Sub(i.since)
	if !i.fault.fits(subject) || age < r.after || r.lasts > 0 && age >= r.after+r.lasts {
		return false
	}
	i.fitted++
	times := r.times
	if times == 0 && r.nth > 0 {
		times = 1
	}
	if i.fitted < r.nth || (times > 0 && i.met >= times) || !i.drawLocked(subject.about()) {
		return false
	}
	i.met++
	return true
}

func (i *injected[K, S, F]) drawLocked(about string) bool {
	if i.rule.probability == 0 || i.rule.probability == 1 {
		return true
	}
	i.drawn[about]++
	return share(hash(i.set.seed, i.set.salt, fmt.Sprint(i.index), about, fmt.Sprint(i.drawn[about]))) < i.rule.probability
}
