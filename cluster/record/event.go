package record

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unicode/utf8"

	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"golang.org/x/time/rate"

	"github.com/quaymaster/quaymaster/cluster/typed"
)

const (
	// DefaultEventQPS bounds the events written in a second, and eventBurst a burst after an idle
	// time.
	DefaultEventQPS = 5
	eventBurst      = 25
	// maxQueue bounds the queued events; further ones are dropped and counted.
	maxQueue = 1000
	// maxSeries bounds the cached events, by which a repeat is counted instead of written.
	maxSeries = 2000
	// maxNotes bounds the cached notes of one object for one reason. Further ones are counted
	// under a common event, so that varying notes cannot fill the cluster with events.
	maxNotes = 10
	// seriesAge is the cache lifetime of an event after its last repeat; the API suggests six
	// minutes.
	seriesAge = 6 * time.Minute
	// seriesPause is the interval at which repeats are written.
	seriesPause = 30 * time.Second
	// writeTimeout bounds one request.
	writeTimeout = 5 * time.Second
	// The API's own bounds, in bytes.
	maxNote, maxWord = 1024, 128
)

// Event is an event of an object.
type Event struct {
	// Regarding is the object; its kind, name and, if it has one, namespace are required. The
	// event is written in its namespace, or in default.
	Regarding core.ObjectReference
	// Related is another object that the event is about; zero for none.
	Related core.ObjectReference
	// Type is Normal or Warning.
	Type string
	// Reason and Action are identifiers such as PolicyViolation and Admit, at most 128 bytes
	// each; required.
	Reason, Action string
	// Note is the message for users; it is truncated with an ellipsis to 1,024 bytes.
	Note string
}

// EventOptions are the dependencies of Events.
type EventOptions struct {
	// Client is required.
	Client typed.Interface
	// Controller and Instance identify the reporter: a qualified name as in
	// quaymaster.dev/gateway, and the name of the replica; required.
	Controller, Instance string
	// QPS bounds the events written in a second; 0 means DefaultEventQPS.
	QPS float64
	// Failed is called when an event was not written. May be nil.
	Failed func(error)
}

// Events writes events. It is safe for concurrent use. Create one with NewEvents.
type Events struct {
	options EventOptions
	limiter *rate.Limiter
	queue   chan Event
	dropped atomic.Uint64
	written atomic.Uint64
}

// NewEvents creates Events, and returns an error for invalid options.
func NewEvents(o EventOptions) (*Events, error) {
	if o.Client == nil || o.Controller == "" || o.Instance == "" || o.QPS < 0 {
		return nil, errors.New("events: Client, Controller and Instance are required, and QPS must not be below 0")
	}
	if o.QPS == 0 {
		o.QPS = DefaultEventQPS
	}
	o.Instance = clip(o.Instance, maxWord)
	return &Events{
		options: o, limiter: rate.NewLimiter(rate.Limit(o.QPS), eventBurst), queue: make(chan Event, maxQueue),
	}, nil
}

// Record queues an event. It never blocks: if the queue is full or the event is incomplete, the
// event is dropped and counted.
func (e *Events) Record(event Event) {
	if event.Regarding.Kind == "" || event.Regarding.Name == "" || event.Reason == "" || event.Action == "" ||
		event.Type != core.EventTypeNormal && event.Type != core.EventTypeWarning {
		e.dropped.Add(1)
		return
	}
	event.Reason, event.Action = clip(event.Reason, maxWord), clip(event.Action, maxWord)
	event.Note = clip(event.Note, maxNote)
	select {
	case e.queue <- event:
	default:
		e.dropped.Add(1)
	}
}

// Dropped counts the dropped events: the queue was full, they were incomplete, or the API server
// rejected them.
func (e *Events) Dropped() uint64 { return e.dropped.Load() }

// Written counts the written events and repeats.
func (e *Events) Written() uint64 { return e.written.Load() }

// Run writes events until ctx ends; events that are still queued are dropped.
func (e *Events) Run(ctx context.Context) {
	memory := seriesMemory{series: make(map[Event]*series), notes: make(map[Event]int)}
	ticker := time.NewTicker(seriesPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			e.dropped.Add(uint64(len(e.queue)))
			return
		case event := <-e.queue:
			e.take(ctx, &memory, event)
		case <-ticker.C:
			e.repeat(ctx, &memory)
		}
	}
}

// series is one written event with the number of its occurrences.
type series struct {
	namespace, name string
	count           int32
	last            time.Time
	changed         bool
}

// seriesMemory caches the events of the last minutes. It belongs to Run.
type seriesMemory struct {
	series map[Event]*series
	notes  map[Event]int // the number of different notes, by the event without its note and related object
}

// common returns the event under which further notes of an object are counted.
func common(event Event) Event {
	event.Note, event.Related = "", core.ObjectReference{}
	return event
}

// key returns the key under which an event is counted, and false if the cache is full.
func (m *seriesMemory) key(event Event) (Event, bool) {
	if m.series[event] != nil {
		return event, true
	}
	if of := common(event); m.notes[of] >= maxNotes {
		event = of
	}
	return event, m.series[event] != nil || len(m.series) < maxSeries
}

func (e *Events) take(ctx context.Context, m *seriesMemory, event Event) {
	key, room := m.key(event)
	if !room {
		e.dropped.Add(1)
		return
	}
	if s := m.series[key]; s != nil {
		s.count, s.last, s.changed = s.count+1, time.Now(), true
		return
	}
	s, err := e.create(ctx, event)
	if err != nil {
		e.failed(ctx, fmt.Errorf("write event %s about %s %s: %w", event.Reason, event.Regarding.Kind, event.Regarding.Name, err))
		return
	}
	e.written.Add(1)
	m.series[key] = s
	m.notes[common(key)]++
}

func (e *Events) failed(ctx context.Context, err error) {
	e.dropped.Add(1)
	if e.options.Failed != nil && ctx.Err() == nil {
		e.options.Failed(err)
	}
}

func (e *Events) create(ctx context.Context, event Event) (*series, error) {
	if err := e.limiter.Wait(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	namespace := event.Regarding.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	var random [10]byte
	_, _ = rand.Read(random[:]) // documented never to fail
	now := time.Now()
	written := &events.Event{
		// Not after the object: an object that is being created may have no name yet.
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: "quaymaster." + hex.EncodeToString(random[:])},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: e.options.Controller, ReportingInstance: e.options.Instance,
		Action: event.Action, Reason: event.Reason, Type: event.Type, Note: event.Note,
		Regarding: event.Regarding,
	}
	if event.Related.Kind != "" {
		written.Related = &event.Related
	}
	created, err := e.options.Client.EventsV1().Events(namespace).Create(ctx, written, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &series{namespace: namespace, name: created.Name, count: 1, last: now}, nil
}

// repeat writes the counts of repeated events, and evicts old ones.
func (e *Events) repeat(ctx context.Context, m *seriesMemory) {
	for key, s := range m.series {
		if s.changed {
			s.changed = false
			err := e.count(ctx, s)
			switch {
			case err == nil:
				e.written.Add(1)
			case apierrors.IsNotFound(err): // it ended; the next one is new
				s.last = time.Time{}
			default:
				e.failed(ctx, fmt.Errorf("count event %s/%s: %w", s.namespace, s.name, err))
			}
		}
		if time.Since(s.last) > seriesAge {
			delete(m.series, key)
			of := common(key)
			m.notes[of]--
			if m.notes[of] <= 0 {
				delete(m.notes, of)
			}
		}
	}
}

func (e *Events) count(ctx context.Context, s *series) error {
	if err := e.limiter.Wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"series": events.EventSeries{Count: s.count, LastObservedTime: metav1.NewMicroTime(s.last)}})
	if err != nil {
		return err
	}
	_, err = e.options.Client.EventsV1().Events(s.namespace).Patch(ctx, s.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// clip truncates a text to most bytes at a character boundary, with an ellipsis. It replaces
// bytes that are not UTF-8, which JSON and protobuf cannot carry.
func clip(text string, most int) string {
	const ellipsis = "…"
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	if len(text) <= most {
		return text
	}
	end := most - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
