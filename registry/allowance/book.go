package allowance

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
	// firstRest is how long a registry is left alone that says 429 and not for how
	// long; it doubles with each 429, up to longestRest, and halves with each answer: so
	// one that says it for an hour is asked some twenty times by one replica, and one
	// that says it now and then is left alone for a moment.
	firstRest   = 200 * time.Millisecond
	longestRest = 5 * time.Minute
	// longestAsked bounds what a registry may ask for: one that means days, or is
	// wrong, is asked again all the same.
	longestAsked = 15 * time.Minute
	// longestWait is how long a question waits for the end of a rest; for a longer one
	// it fails at once, and who asked goes on with what is known.
	longestWait = 30 * time.Second
	// spread is the part of a rest that is added to it at most, by chance.
	spread = 4
	// quietTime is between two looks of what can wait at whether there is more left,
	// and at least how much later than admission it comes back after a 429.
	quietTime = time.Minute
	// longestQuiet bounds it where the registry says how long its window is.
	longestQuiet = 15 * time.Minute
	// longestCare is how long after a rest few ask at once of a registry that said 429 no
	// more, whether or not it was asked.
	longestCare = 15 * time.Minute
	// wide is how many questions at once are as many as anybody asks: a registry that
	// answers so many is not held back any more.
	wide = 64
	// maxLines bounds the memory: hosts are as many as people write into images.
	maxLines = 4096
)

// Account is who is asked, and as whom: registries limit accounts, and addresses of
// those that have none.
type Account struct {
	Host string // host or host:port
	Name string // of the credential, and none itself; "" without one
}

// Book knows what registries allow. It is safe for concurrent use. Make one with New.
type Book struct {
	now    func() time.Time
	chance func(time.Duration) time.Duration

	mu    sync.Mutex
	lines map[Account]*line
}

// line is what an account was told.
type line struct {
	until   time.Time // nobody asks before
	times   int       // how often it said 429, less how often it answered since
	turn    uint64    // counts the rests, so that a late 429 is not a new one
	width   int       // how many may ask at once; 0: as many as like
	asking  int       // how many do, since there is a width
	changed chan struct{}
	limit   int64     // what it allows in all, as far as it said
	quiet   time.Time // what can wait does not ask before
	touched time.Time
}

// New makes a Book that knows of no limit.
func New() *Book {
	return &Book{
		now: time.Now, lines: map[Account]*line{},
		chance: func(most time.Duration) time.Duration { return rand.N(most + 1) },
	}
}

// LimitedError says that a registry is not asked now.
type LimitedError struct {
	// Wait is how long it is left alone from now.
	Wait time.Duration
	// Background: others may ask; what can wait does not.
	Background bool
}

// Error implements error.
func (e *LimitedError) Error() string {
	if e.Background {
		return fmt.Sprintf("what is left of the registry's rate limit is kept for admission; asked again in %v", e.Wait.Round(time.Second))
	}
	return fmt.Sprintf("the registry limits how often it is asked (HTTP 429) and is left alone for %v more; try again then", max(e.Wait, time.Millisecond).Round(time.Millisecond))
}

// Ticket lets one question through. Leave it once.
type Ticket struct {
	book    *Book
	account Account
	turn    uint64
	counted bool

	mu       sync.Mutex
	limited  bool
	answered bool
}

// Enter waits until the account may ask, if that is soon and before ctx ends; else its
// error is a *LimitedError, at once. What can wait never waits here.
func (b *Book) Enter(ctx context.Context, account Account, background bool) (*Ticket, error) {
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
func (b *Book) pause(ctx context.Context, wait time.Duration, changed <-chan struct{}) bool {
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
func (b *Book) try(account Account, background bool) (*Ticket, time.Duration, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.lines[account]
	if !ok {
		return &Ticket{book: b, account: account}, 0, nil
	}
	now := b.now()
	l.touched = now
	l.forgive(now)
	switch {
	case background && now.Before(l.quiet):
		return nil, l.quiet.Sub(now), nil
	case now.Before(l.until):
		return nil, l.until.Sub(now), l.changed
	case background && l.asking > 0: // of few who may ask, admission is one
		return nil, quietTime, nil
	case l.width > 0 && l.asking >= l.width:
		return nil, 0, l.changed
	}
	ticket := &Ticket{book: b, account: account, turn: l.turn, counted: l.width > 0}
	if ticket.counted {
		l.asking++
	}
	return ticket, 0, nil
}

// Rest returns how long the account is left alone from now; 0 if it may ask.
func (b *Book) Rest(account Account) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.lines[account]
	if !ok {
		return 0
	}
	return max(0, l.until.Sub(b.now()))
}

// Limited returns how many accounts at registries are held back: they rest, or are
// asked by few at once until it is known that they bear more.
func (b *Book) Limited() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, now := 0, b.now()
	for _, l := range b.lines {
		if l.forgive(now); l.width > 0 {
			n++
		}
	}
	return n
}

// Kept returns at how many accounts what can wait does not ask, so that admission may.
func (b *Book) Kept() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, now := 0, b.now()
	for _, l := range b.lines {
		if l.forgive(now); l.width > 0 || now.Before(l.quiet) {
			n++
		}
	}
	return n
}

// Heard notes an answer's head, of the registry or of its token service.
func (t *Ticket) Heard(status int, header http.Header) {
	t.mu.Lock()
	first := !t.limited
	t.answered = true
	t.limited = t.limited || status == http.StatusTooManyRequests
	t.mu.Unlock()
	if status == http.StatusTooManyRequests && first {
		t.book.limited(t, retryAfter(header, t.book.now()))
		return
	}
	if status < http.StatusBadRequest {
		if left, ok := readLeft(header); ok {
			t.book.left(t.account, left)
		}
	}
}

// Holds reports whether the ticket still lets its question through: the account was
// not refused since. Who waited for something else meanwhile enters anew if it does not.
func (t *Ticket) Holds() bool {
	t.book.mu.Lock()
	defer t.book.mu.Unlock()
	l, ok := t.book.lines[t.account]
	return !ok || l.turn == t.turn
}

// Leave ends the question.
func (t *Ticket) Leave() {
	t.mu.Lock()
	answered, limited := t.answered, t.limited
	t.mu.Unlock()
	b := t.book
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.lines[t.account]
	if !ok || !t.counted || t.turn != l.turn { // those of a turn before are not counted any more
		return
	}
	l.asking = max(0, l.asking-1)
	if answered && !limited && l.width > 0 {
		l.times = max(0, l.times-1)
		if l.width++; l.width > wide {
			l.width, l.asking, l.times = 0, 0, 0
		}
	}
	l.tell()
}

// forgive forgets a limit of which nothing was heard for long.
func (l *line) forgive(now time.Time) {
	if l.width > 0 && now.Sub(l.until) > longestCare {
		l.width, l.asking, l.times = 0, 0, 0
		l.tell()
	}
}

// tell wakes those who wait.
func (l *line) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// limited notes a 429.
func (b *Book) limited(t *Ticket, asked time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.line(t.account)
	now := b.now()
	if t.turn == l.turn || l.times == 0 { // and not one of many that were on their way
		l.turn++
		l.times++
		l.width, l.asking = 1, 0
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
func (b *Book) left(account Account, said left) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.line(account)
	if l.limit = max(l.limit, said.remaining); said.limit > 0 { // else the most that was left is as much as is known
		l.limit = said.limit
	}
	now := b.now()
	switch {
	case said.remaining*2 < l.limit:
		wait := min(max(said.window, quietTime), longestQuiet)
		l.quiet = now.Add(wait + b.chance(wait/spread))
	case l.width == 0:
		l.quiet = time.Time{}
	}
}

// line returns the account's line, and makes room for it.
func (b *Book) line(account Account) *line {
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

// forget drops the line that was asked about longest ago, those that hold nobody back
// first.
func (b *Book) forget() {
	var oldest Account
	var found *line
	now := b.now()
	holds := func(l *line) bool { return l.width > 0 || now.Before(l.quiet) }
	for account, l := range b.lines {
		if found == nil || holds(found) && !holds(l) || holds(found) == holds(l) && l.touched.Before(found.touched) {
			oldest, found = account, l
		}
	}
	found.tell()
	delete(b.lines, oldest)
}
