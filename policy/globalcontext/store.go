package globalcontext

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	// MaxEntries bounds the entries: each is watched or called by every replica.
	MaxEntries = 100
	// MaxValue bounds one value, in the bytes of Size; it takes about ten times as much in
	// memory.
	MaxValue = 8 << 20
	// MaxValues bounds all of them together.
	MaxValues = 32 << 20
	// MaxOutage is how long a value that cannot be refreshed is still good: long
	// enough for an API server that is upgraded, and no longer.
	MaxOutage = 10 * time.Minute
)

// Reasons for an unknown value. Every Error is one of them, by errors.Is.
var (
	// ErrAbsent means: there is no such entry, or it has no such projection.
	ErrAbsent = errors.New("not there")
	// ErrBroken means: its document cannot be read.
	ErrBroken = errors.New("broken")
	// ErrNotRead means: it was not read yet, or could not be.
	ErrNotRead = errors.New("not read yet")
	// ErrStale means: it could not be refreshed for longer than MaxOutage.
	ErrStale = errors.New("out of date")
	// ErrTooLarge means: it exceeds a bound.
	ErrTooLarge = errors.New("too large")
	// ErrProjection means: its projection has no value on this data.
	ErrProjection = errors.New("without a value")
)

// Error reports that the value of an entry is unknown, and the reason.
type Error struct {
	// Name is the entry's; Projection may be empty.
	Name, Projection string
	// Reason is one of the errors above; Cause may be nil.
	Reason, Cause error
}

// Error implements error.
func (e *Error) Error() string {
	name := "global context entry " + e.Name
	if e.Projection != "" {
		name += ", projection " + e.Projection + ","
	}
	if e.Cause == nil {
		return name + " is " + e.Reason.Error()
	}
	return fmt.Sprintf("%s is %v: %v", name, e.Reason, e.Cause)
}

// Unwrap returns the reason and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Cause}
}

// Store keeps the current values. It is safe for concurrent use. Make one with
// NewStore.
type Store struct {
	now func() time.Time

	mu     sync.RWMutex
	states map[string]*state
	size   int // of all values
}

// state is an entry with its latest result. Its value is replaced and never changed.
type state struct {
	entry   *Entry // nil: broken
	value   *value // nil: none
	at      time.Time
	failing time.Time // when it first could not be refreshed; zero: it could
	why     error     // it cannot be read, or not be refreshed
	reason  error     // of why, where there is no value
}

// value is the value of an entry.
type value struct {
	native    any // numbers may be int64
	plain     any // as encoding/json decodes it
	size      int
	projected map[string]projected
}

type projected struct {
	value any
	err   error
}

// NewStore makes an empty Store; a nil clock means time.Now.
func NewStore(now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{now: now, states: map[string]*state{}}
}

// Put adds an entry or replaces the one of its name. Its value is kept while the
// entry stays the same. It is refused where there are too many.
func (s *Store) Put(entry *Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, ok := s.states[entry.Name]; ok && have.entry != nil && have.entry.Hash == entry.Hash {
		return nil
	}
	if _, ok := s.states[entry.Name]; !ok && len(s.states) >= MaxEntries {
		return &Error{Name: entry.Name, Reason: ErrTooLarge, Cause: fmt.Errorf("there are more than %d entries, which is the bound", MaxEntries)}
	}
	s.set(entry.Name, &state{entry: entry})
	return nil
}

// Break marks the document of a name as unreadable, so that its earlier value is not used
// any more.
func (s *Store) Break(name string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.states[name]; ok || len(s.states) < MaxEntries {
		s.set(name, &state{why: why, reason: ErrBroken})
	}
}

// Remove deletes an entry.
func (s *Store) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(name, nil)
}

// Answer sets the value of an entry: decoded JSON with numbers that may be int64, which
// must not be changed afterwards. After an error the value is not stored, and readers get
// the error from now on. It has no effect if the entry has changed since.
func (s *Store) Answer(name, hash string, native any) error {
	entry := s.of(name, hash)
	if entry == nil {
		return nil
	}
	v, err := entry.value(native)
	s.mu.Lock()
	defer s.mu.Unlock()
	have, ok := s.states[name]
	if !ok || have.entry == nil || have.entry.Hash != hash {
		return nil
	}
	rest := s.size
	if have.value != nil {
		rest -= have.value.size
	}
	if err == nil && rest+v.size > MaxValues {
		err = fmt.Errorf("with %d bytes the values of all entries exceed the bound of %d", v.size, MaxValues)
	}
	if err != nil {
		s.set(name, &state{entry: entry, why: err, reason: ErrTooLarge})
		return &Error{Name: name, Reason: ErrTooLarge, Cause: err}
	}
	s.set(name, &state{entry: entry, value: v, at: s.now()})
	return nil
}

// Fail records why an entry cannot be read or refreshed. An earlier value is valid for
// MaxOutage. An ErrTooLarge ends it at once: the old value is known to be outdated. It has
// no effect if the entry has changed since.
func (s *Store) Fail(name, hash string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have, ok := s.states[name]
	if !ok || have.entry == nil || have.entry.Hash != hash {
		return
	}
	failed := *have
	failed.why, failed.reason = why, ErrNotRead
	if failed.failing.IsZero() {
		failed.failing = s.now()
	}
	if errors.Is(why, ErrTooLarge) {
		failed.value, failed.reason = nil, ErrTooLarge
	}
	s.set(name, &failed)
}

// Entries returns the entries with valid documents, in no order.
func (s *Store) Entries() []*Entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []*Entry
	for _, have := range s.states {
		if have.entry != nil {
			list = append(list, have.entry)
		}
	}
	return list
}

// State returns when an entry was last read, zero for never, and why its value is not
// valid; nil if it is.
func (s *Store) State(name string) (read time.Time, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	have, ok := s.states[name]
	if !ok {
		return time.Time{}, &Error{Name: name, Reason: ErrAbsent}
	}
	if err := have.unknown(name, s.now()); err != nil {
		return have.at, err
	}
	if have.why != nil {
		return have.at, &Error{Name: name, Reason: ErrNotRead, Cause: have.why}
	}
	for _, p := range have.entry.projections {
		if err := have.value.projected[p.name].err; err != nil {
			return have.at, &Error{Name: name, Projection: p.name, Reason: ErrProjection, Cause: err}
		}
	}
	return have.at, nil
}

// Age returns the time since the value of an entry was read, less than 0 for never, and
// why there is none that rules can use; nil if there is one.
func (s *Store) Age(name string) (time.Duration, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	have, ok := s.states[name]
	if !ok {
		return -1, &Error{Name: name, Reason: ErrAbsent}
	}
	now, age := s.now(), time.Duration(-1)
	if !have.at.IsZero() {
		age = max(now.Sub(have.at), 0)
	}
	if err := have.unknown(name, now); err != nil {
		return age, err
	}
	return age, nil
}

// Reference splits a rule's globalReference.name: the name of an entry, and after a dot
// that of a projection. Names of entries may have dots themselves; then the longest
// existing one is used.
func (s *Store) Reference(text string) (name, projection string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if _, ok := s.states[text]; ok {
		return text, ""
	}
	if i := strings.LastIndexByte(text, '.'); i >= 0 {
		return text[:i], text[i+1:]
	}
	return text, ""
}

// Get returns the value of an entry, or of one of its projections, as encoding/json
// decodes it (numbers are float64). It is shared, and must not be changed. Errors are
// *Error: the value is unknown.
func (s *Store) Get(name, projection string) (any, error) {
	v, err := s.current(name)
	switch {
	case err != nil:
		err.Projection = projection
		return nil, err
	case projection == "":
		return v.plain, nil
	}
	return v.projection(name, projection)
}

// GetNative is Get for expressions in CEL, where whole numbers are int64 if the
// value came so; those of projections are float64.
func (s *Store) GetNative(name, projection string) (any, error) {
	if projection != "" {
		return s.Get(name, projection)
	}
	v, err := s.current(name)
	if err != nil {
		return nil, err
	}
	return v.native, nil
}

func (s *Store) current(name string) (*value, *Error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	have, ok := s.states[name]
	if !ok {
		return nil, &Error{Name: name, Reason: ErrAbsent}
	}
	if err := have.unknown(name, s.now()); err != nil {
		return nil, err
	}
	return have.value, nil
}

func (v *value) projection(name, projection string) (any, error) {
	p, ok := v.projected[projection]
	switch {
	case !ok:
		return nil, &Error{Name: name, Projection: projection, Reason: ErrAbsent}
	case p.err != nil:
		return nil, &Error{Name: name, Projection: projection, Reason: ErrProjection, Cause: p.err}
	}
	return p.value, nil
}

// unknown returns why there is no valid value; nil if there is one.
func (h *state) unknown(name string, now time.Time) *Error {
	switch {
	case h.value == nil && h.why != nil:
		return &Error{Name: name, Reason: h.reason, Cause: h.why}
	case h.value == nil:
		return &Error{Name: name, Reason: ErrNotRead}
	}
	since := h.failing
	if call := h.entry.Call; call != nil {
		// This also covers a refresh that stopped without reporting a failure.
		if due := h.at.Add(call.Interval); since.IsZero() || due.Before(since) {
			since = due
		}
	}
	if since.IsZero() || now.Sub(since) <= MaxOutage {
		return nil
	}
	return &Error{Name: name, Reason: ErrStale, Cause: h.why}
}

// set replaces a state; the caller holds the lock.
func (s *Store) set(name string, to *state) {
	if have := s.states[name]; have != nil && have.value != nil {
		s.size -= have.value.size
	}
	if to == nil {
		delete(s.states, name)
		return
	}
	if to.value != nil {
		s.size += to.value.size
	}
	s.states[name] = to
}

func (s *Store) of(name, hash string) *Entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if have, ok := s.states[name]; ok && have.entry != nil && have.entry.Hash == hash {
		return have.entry
	}
	return nil
}
