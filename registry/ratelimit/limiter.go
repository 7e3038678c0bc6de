package ratelimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// Bounds, with their reason.
const (
	// firstRest is the pause after a 429 without Retry-After. It doubles with each 429, up to
	// longestRest, and halves with each answer. A registry that is limited for an hour is
	// asked some twenty times by one replica, and an occasional 429 costs only a moment.
	firstRest   = 200 * time.Millisecond
	longestRest = 5 * time.Minute
	// longestAsked bounds a Retry-After: a value of days, or a wrong one, does not stop
	// requests for longer.
	longestAsked = 15 * time.Minute
	// longestWait bounds the wait for the end of a pause; before a longer one the request
	// fails at once, and the caller continues with cached results.
	longestWait = 30 * time.Second
	// spread is the part of a rest that is added to it at most, by chance.
	spread = 4
	// quietTime is the interval at which background requests check the remaining limit, and
	// the minimum delay by which they resume later than admission after a 429.
	quietTime = time.Minute
	// longestQuiet bounds it where the registry reports the length of its window.
	longestQuiet = 15 * time.Minute
	// longestCare bounds the time of reduced concurrency after a pause, if the registry sends
	// no further 429, with or without requests.
	longestCare = 15 * time.Minute
	// wide is the concurrency at which an account counts as unlimited: no client sends more at
	// once.
	wide = 64
	// maxLines bounds the memory: image references can name any number of hosts.
	maxLines = 4096
)

// Account is a registry and a credential: registries limit accounts, and the addresses of
// anonymous clients.
type Account struct {
	Host string // host or host:port
	Name string // of the credential, and none itself; "" without one
}

// Limiter holds the rate limits of registries. It is safe for concurrent use. Make one with
// New.
type Limiter struct {
	now    func() time.Time
	chance func(time.Duration) time.Duration

	mu    sync.Mutex
	lines map[Account]*line
}

// line is the state of an account.
type line struct {
	until       time.Time // no requests before
	times       int       // number of 429, less the number of answers since
	turn        uint64    // counts the rests, so that a late 429 is not a new one
	concurrency int       // allowed concurrency; 0: unlimited
	pending     int       // how many do, since a concurrency is set
	changed     chan struct{}
	limit       int64     // the whole limit, as far as reported
	quiet       time.Time // no background requests before
	touched     time.Time
}

// New makes a Limiter without limits.
func New() *Limiter {
	return &Limiter{
		now: time.Now, lines: map[Account]*line{},
		chance: func(most time.Duration) time.Duration { return rand.N(most + 1) },
	}
}

// LimitedError reports that no request may be sent to a registry now.
type LimitedError struct {
	// Wait is how long it is left alone from now.
	Wait time.Duration
	// Background: only background requests are held back.
	Background bool
}

// Error implements error.
func (e *LimitedError) Error() string {
	if e.Background {
		return fmt.Sprintf("the rest of the registry's rate limit is reserved for admission; the next request is in %v", e.Wait.Round(time.Second))
	}
	return fmt.Sprintf("the registry limits how often it is asked (HTTP 429) and is left alone for %v more; try again then",
		max(e.Wait, time.Millisecond).Round(time.Millisecond))
}

// Permit lets one question through. Leave it once.
type Permit struct {
	limiter *Limiter
	account Account
	turn    uint64
	counted bool

	mu       sync.Mutex
	limited  bool
	answered bool
}

// Enter waits until the account may send a request, if that is soon and before ctx ends;
// else it returns a *LimitedError at once. Background requests never wait here.
func (b *Limiter) Enter(ctx context.Context, account Account, background bool) (*Permit, error) {
	for {
		ticket, wait, changed := b.try(account, background)
		if ticket != nil {
			return ticket, nil
		}
		limited := &LimitedError{Wait: wait, Background: background}
		deadline, bounded := ctx.Deadline()
		if background || wait > longestWait || bounded && b.now().Add(wait).After(deadline) {
			return nil, limited
		}
		if !b.pause(ctx, wait, changed) {
			return nil, limited
		}
	}
}

// pause waits for a change, or for a time unless that is 0, and reports whether it came
// before ctx ended.
func (b *Limiter) pause(ctx context.Context, wait time.Duration, changed <-chan struct{}) bool {
	var over <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-changed:
	case <-ctx.Done():
		return false
	}
	return true
}

// try returns a ticket, or how long there is none; 0 is until something changes.
func (b *Limiter) try(account Account, background bool) (*Permit, time.Duration, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.lines[account]
	if !ok {
		return &Permit{limiter: b, account: account}, 0, nil
	}
	now := b.now()
	l.touched = now
	l.forgive(now)
	switch {
	case background && now.Before(l.quiet):
		return nil, l.quiet.Sub(now), nil
	case now.Before(l.until):
		return nil, l.until.Sub(now), l.changed
	case background && l.pending > 0: // at low concurrency, admission takes precedence
		return nil, quietTime, nil
	case l.concurrency > 0 && l.pending >= l.concurrency:
		return nil, 0, l.changed
	}
	ticket := &Permit{limiter: b, account: account, turn: l.turn, counted: l.concurrency > 0}
	if ticket.counted {
		l.pending++
	}
	return ticket, 0, nil
}

// Rest returns how long the account is left alone from now; 0 if it may ask.
func (b *Limiter) Rest(account Account) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.lines[account]
	if !ok {
		return 0
	}
	return max(0, l.until.Sub(b.now()))
}

// Limited returns the number of limited accounts: they pause, or have reduced concurrency
// until they prove to bear more.
func (b *Limiter) Limited() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, now := 0, b.now()
	for _, l := range b.lines {
		l.forgive(now)
		if l.concurrency > 0 {
			n++
		}
	}
	return n
}

// Kept returns the number of accounts that are reserved for admission: background requests
// are held back.
func (b *Limiter) Kept() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, now := 0, b.now()
	for _, l := range b.lines {
		l.forgive(now)
		if l.concurrency > 0 || now.Before(l.quiet) {
			n++
		}
	}
	return n
}

// Heard notes an answer's head, of the registry or of its token service.
func (t *Permit) Heard(status int, header http.Header) {
	t.mu.Lock()
	first := !t.limited
	t.answered = true
	t.limited = t.limited || status == http.StatusTooManyRequests
	t.mu.Unlock()
	if status == http.StatusTooManyRequests && first {
		t.limiter.limited(t, retryAfter(header, t.limiter.now()))
		return
	}
	if status < http.StatusBadRequest {
		if left, ok := readLeft(header); ok {
			t.limiter.left(t.account, left)
		}
	}
}

// Holds reports whether the ticket is still valid: the account got no 429 since. A caller
// that waited for something else meanwhile must enter again if it is not.
func (t *Permit) Holds() bool {
	t.limiter.mu.Lock()
	defer t.limiter.mu.Unlock()
	l, ok := t.limiter.lines[t.account]
	return !ok || l.turn == t.turn
}

// Leave ends the question.
func (t *Permit) Leave() {
	t.mu.Lock()
	answered, limited := t.answered, t.limited
	t.mu.Unlock()
	b := t.limiter
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.lines[t.account]
	if !ok || !t.counted || t.turn != l.turn { // those of a turn before are not counted any more
		return
	}
	l.pending = max(0, l.pending-1)
	if answered && !limited && l.concurrency > 0 {
		l.times = max(0, l.times-1)
		l.concurrency++
		if l.concurrency > wide {
			l.concurrency, l.pending, l.times = 0, 0, 0
		}
	}
	l.tell()
}

// forgive resets a limit after a long time without a report.
func (l *line) forgive(now time.Time) {
	if l.concurrency > 0 && now.Sub(l.until) > longestCare {
		l.concurrency, l.pending, l.times = 0, 0, 0
		l.tell()
	}
}

// tell wakes the waiting callers.
func (l *line) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// limited notes a 429.
func (b *Limiter) limited(t *Permit, asked time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.line(t.account)
	now := b.now()
	if t.turn == l.turn || l.times == 0 { // and not one of many that were on their way
		l.turn++
		l.times++
		l.concurrency, l.pending = 1, 0
	}
	rest := min(longestRest, firstRest<<min(l.times-1, 20))
	rest = max(rest, min(asked, longestAsked))
	rest += b.chance(rest / spread)
	if until := now.Add(rest); until.After(l.until) {
		l.until = until
	}
	if quiet := l.until.Add(max(rest, quietTime)); quiet.After(l.quiet) {
		l.quiet = quiet
	}
	l.tell()
}

// left notes how much a registry still allows.
func (b *Limiter) left(account Account, said left) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.line(account)
	l.limit = max(l.limit, said.remaining)
	if said.limit > 0 { // else the highest remaining value is a lower bound
		l.limit = said.limit
	}
	now := b.now()
	switch {
	case said.remaining*2 < l.limit:
		wait := min(max(said.window, quietTime), longestQuiet)
		l.quiet = now.Add(wait + b.chance(wait/spread))
	case l.concurrency == 0:
		l.quiet = time.Time{}
	}
}

// line returns the account's line, and evicts another one if the book is full.
func (b *Limiter) line(account Account) *line {
	l, ok := b.lines[account]
	if ok {
		return l
	}
	if len(b.lines) >= maxLines {
		b.forget()
	}
	l = &line{changed: make(chan struct{}), touched: b.now()}
	b.lines[account] = l
	return l
}

// forget evicts the least recently used line, unlimited accounts first.
func (b *Limiter) forget() {
	var oldest Account
	var found *line
	now := b.now()
	holds := func(l *line) bool { return l.concurrency > 0 || now.Before(l.quiet) }
	for account, l := range b.lines {
		if found == nil || holds(found) && !holds(l) || holds(found) == holds(l) && l.touched.Before(found.touched) {
			oldest, found = account, l
		}
	}
	found.tell()
	delete(b.lines, oldest)
}
