package trust

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
)

const (
	// rootInterval is the time between two reads of a TUF repository that policies name.
	rootInterval = time.Hour
	// rootPause and longestRootPause bound the time between two attempts for an unreadable one.
	rootPause        = time.Second
	longestRootPause = 5 * time.Minute
)

// rootFetcher returns functions that read a TUF repository. Each accepts nothing older than it
// returned before.
type rootFetcher interface {
	TrustRoot(t *trustroot.TUF, folder string) func(context.Context) ([]byte, error)
	Attestor(t attestor.TUF, folder string) func(context.Context) ([]byte, error)
}

// Roots reads in the background the TUF repositories that TrustRoots and attestors name. Each
// replica does.
type Roots struct {
	Fetch      rootFetcher
	Folder     string // for their metadata; empty: none is kept
	TrustRoots *trustroot.Roots
	Attestors  *attestor.Repositories
	Documents  func() []catalog.Entry // current policies and TrustRoots
	Changed    gateway.Changing       // when they change
	// Reported is called when the state of a TrustRoot's repository changes between read and unread.
	Reported func()
	Log      *slog.Logger

	mu     sync.Mutex
	failed map[string]string // by the hash of a TrustRoot; empty: it was read
	away   map[string]bool   // repositories with a failed last attempt

	logged documents.States // of repositories; used by Run alone
}

// Run reads until ctx ends, and returns when all reads have ended.
func (r *Roots) Run(ctx context.Context) {
	var reading sync.WaitGroup
	defer reading.Wait()
	turns := map[string]*rootTurn{}
	r.logged = documents.States{}
	done := make(chan func())
	for {
		changed := r.Changed.Changed()
		wanted := r.wanted()
		r.forget(turns, wanted)
		busy := newRootSeats(turns)
		busy.sort(wanted, turns)
		soonest := rootInterval
		for _, one := range wanted {
			turn := turns[one.id]
			switch left := time.Until(turn.next); {
			case turn.reading:
			case left > 0:
				soonest = min(soonest, left)
			case busy.take(one, turn):
				reading.Go(func() {
					err := one.read(ctx, turn.fetch)
					select {
					case done <- func() { r.note(one, turn, err) }:
					case <-ctx.Done():
					}
				})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-r.Attestors.New():
		case note := <-done:
			note()
		case <-time.After(soonest):
		}
	}
}

// wanted lists the repositories, including those within documents.
func (r *Roots) wanted() []rootRead {
	var list []rootRead
	for _, entry := range r.Documents() {
		root := entry.Root
		if root == nil || root.TUF == nil {
			continue
		}
		list = append(list, rootRead{
			id: "trustroot-" + root.Hash, what: "TrustRoot " + root.Name, root: root,
			shares: []string{""},
			fetch: func(folder string) func(context.Context) ([]byte, error) {
				return r.Fetch.TrustRoot(root.TUF, folder)
			},
			keep: func(text []byte) error { return r.TrustRoots.Answer(root.Name, root.Hash, text) },
			fail: func(why error) { r.TrustRoots.Fail(root.Name, root.Hash, why) },
		})
	}
	for _, wanted := range r.Attestors.Wanted() {
		t := wanted.TUF
		list = append(list, rootRead{
			id: "attestor-" + t.Key, what: t.String(), shares: wanted.Shares,
			fetch: func(folder string) func(context.Context) ([]byte, error) {
				return r.Fetch.Attestor(t, folder)
			},
			keep: func(text []byte) error { return r.Attestors.Answer(t, text) },
			fail: func(why error) { r.Attestors.Fail(t, why) },
		})
	}
	return list
}

// forget drops the turns of repositories that are no longer wanted, and adds those of new ones.
func (r *Roots) forget(turns map[string]*rootTurn, wanted []rootRead) {
	ids, hashes := map[string]bool{}, map[string]bool{}
	for _, one := range wanted {
		ids[one.id] = true
		if one.root != nil {
			hashes[one.root.Hash] = true
		}
		if turns[one.id] == nil {
			folder := ""
			if r.Folder != "" {
				folder = filepath.Join(r.Folder, "repositories", one.id)
			}
			turns[one.id] = &rootTurn{pause: rootPause, fetch: one.fetch(folder)}
		}
	}
	for id, turn := range turns {
		if !ids[id] && !turn.reading {
			delete(turns, id)
		}
	}
	r.logged.Keep(func(id string) bool { return turns[id] != nil })
	r.mu.Lock()
	defer r.mu.Unlock()
	for hash := range r.failed {
		if !hashes[hash] {
			delete(r.failed, hash)
		}
	}
	for id := range r.away {
		if !ids[id] {
			delete(r.away, id)
		}
	}
}

// Unread is the number of repositories with a failed last attempt.
func (r *Roots) Unread() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.away)
}

func (one rootRead) read(ctx context.Context, fetch func(context.Context) ([]byte, error)) error {
	text, err := fetch(ctx)
	if err != nil {
		one.fail(err)
		return err
	}
	return one.keep(text)
}

// note schedules the next read of a repository, and reports changes.
func (r *Roots) note(one rootRead, turn *rootTurn, err error) {
	turn.reading, turn.failed = false, err != nil
	r.noteAway(one.id, err != nil)
	said := "read"
	if err == nil {
		turn.next, turn.pause, turn.known = time.Now().Add(rootInterval), rootPause, true
	} else {
		said = err.Error()
		turn.next, turn.pause = time.Now().Add(turn.pause), min(2*turn.pause, longestRootPause)
	}
	if !r.logged.Changed(one.id, said) {
		return
	}
	if err != nil {
		r.Log.Warn("the trusted root of a TUF repository could not be read; the previous root stays in use", slog.String("of", one.what), slog.String("error", said))
	} else {
		r.Log.Info("the trusted root of a TUF repository was read", slog.String("of", one.what))
	}
	if one.root == nil {
		return
	}
	if turn.known {
		said = ""
	}
	r.mu.Lock()
	if r.failed == nil {
		r.failed = map[string]string{}
	}
	r.failed[one.root.Hash] = said
	r.mu.Unlock()
	r.Reported()
}

func (r *Roots) noteAway(id string, away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.away, id)
	if !away {
		return
	}
	if r.away == nil {
		r.away = map[string]bool{}
	}
	r.away[id] = true
}

// State returns why the content of a TrustRoot is not available; empty if it is.
func (r *Roots) State(root *trustroot.TrustRoot) string {
	if root.TUF == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	why, tried := r.failed[root.Hash]
	if !tried {
		return "its TUF repository was not read yet"
	}
	return why
}
