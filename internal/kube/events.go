package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
)

// Event is one thing that happened to an object.
type Event struct {
	Regarding  corev1.ObjectReference
	Controller string
	Type       string // Normal or Warning
	Reason     string
	Note       string
}

// Recorder writes Events, best effort: one goroutine, a bounded queue, and what
// happens again within ten minutes is counted on the Event that exists. client-go's
// broadcaster starts a goroutine for each event and does not wait for them, so it
// can be neither bounded nor stopped cleanly.
type Recorder struct {
	client   typedeventsv1.EventsV1Interface
	instance string
	now      func() time.Time
	queue    chan Event
	log      func(err error, e Event)

	mu      sync.Mutex // guards closed; held while sending to queue
	closed  bool
	dropped int
	series  map[Event]*series // used by Run alone
}

type series struct {
	name, namespace string
	count           int32
	last            time.Time
}

const (
	eventQueue   = 1000
	eventSeries  = 4096
	eventWindow  = 10 * time.Minute
	eventTimeout = 5 * time.Second
)

// NewRecorder makes a recorder; [Recorder.Run] writes what it is given.
func NewRecorder(conn *Conn, instance string, log func(error, Event)) (*Recorder, error) {
	client, err := typedeventsv1.NewForConfigAndClient(conn.Config, conn.Client)
	if err != nil {
		return nil, fmt.Errorf("client for events: %w", err)
	}
	return &Recorder{client: client, instance: instance, now: conn.Now, queue: make(chan Event, eventQueue), log: log, series: map[Event]*series{}}, nil
}

// Record queues an event. It never blocks: where the queue is full, or the
// recorder has ended, the event is dropped.
func (r *Recorder) Record(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	e.Note = fitting(e.Note)
	select {
	case r.queue <- e:
	default:
		r.dropped++
	}
}

// fitting cuts a note at a rune's border to what the API takes.
func fitting(note string) string {
	const longest = 1024 // bytes
	note = strings.ToValidUTF8(note, "\uFFFD")
	if len(note) <= longest {
		return note
	}
	end := longest - len("…")
	for !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end] + "…"
}

// Run writes events until Close, and then what is queued, for as long as ctx lets it.
func (r *Recorder) Run(ctx context.Context) {
	for e := range r.queue {
		if ctx.Err() != nil {
			continue
		}
		if err := r.write(ctx, e); err != nil && ctx.Err() == nil {
			r.log(err, e)
		}
	}
}

// Close lets Run write what is queued and end. Later events are dropped.
func (r *Recorder) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		close(r.queue)
	}
}

func (r *Recorder) write(ctx context.Context, e Event) error {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	now := r.now()
	key := e
	key.Regarding.ResourceVersion = ""
	if s := r.series[key]; s != nil && now.Sub(s.last) < eventWindow {
		s.count++
		s.last = now
		body, err := json.Marshal(map[string]any{"series": eventsv1.EventSeries{Count: s.count, LastObservedTime: metav1.NewMicroTime(now)}})
		if err != nil {
			return err
		}
		_, err = r.client.Events(s.namespace).Patch(ctx, s.name, types.MergePatchType, body, metav1.PatchOptions{})
		if err == nil {
			return nil
		}
	}
	namespace := e.Regarding.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // of a cluster-scoped object
	}
	ev := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: eventName(e.Regarding.Name)},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: e.Controller,
		ReportingInstance:   r.instance,
		Action:              "Reconcile",
		Reason:              e.Reason,
		Regarding:           e.Regarding,
		Note:                e.Note,
		Type:                e.Type,
	}
	if _, err := r.client.Events(namespace).Create(ctx, ev, metav1.CreateOptions{}); err != nil {
		return err
	}
	if len(r.series) >= eventSeries {
		clear(r.series)
	}
	r.series[key] = &series{name: ev.Name, namespace: namespace, count: 1, last: now}
	return nil
}

// eventName is unique, and within the length of a name.
func eventName(object string) string {
	const longest = 253 - 37
	if len(object) > longest {
		object = object[:longest]
	}
	return object + "." + string(uuid.NewUUID())
}
