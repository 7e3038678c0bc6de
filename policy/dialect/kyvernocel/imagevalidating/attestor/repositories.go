package attestor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Roots answers for TUF repositories.
type Roots interface {
	// Want registers a repository that a policy names, to be read in the background.
	Want(TUF)
	// TrustedRoot returns the repository's cached trusted_root.json. An error means that none is
	// cached: the attestors that need it are undecided. It is called for each object, and opens
	// no connection.
	TrustedRoot(TUF) (string, error)
}

// Repositories caches the trusted roots of TUF repositories, which a background task reads: it
// fetches the repositories in Wanted, at New and periodically, and reports the results with
// Answer or Fail. The cache holds the maxRepositories that were requested last. It is safe for
// concurrent use.
type Repositories struct {
	added chan struct{}

	mu    sync.Mutex
	turn  uint64
	known map[string]*repository // by TUF.Key
}

var _ Roots = (*Repositories)(nil)

// repository is the cached state of one; asked is the turn of its last request.
type repository struct {
	tuf    TUF
	asked  uint64
	root   string
	failed error
}

// NewRepositories returns empty Repositories.
func NewRepositories() *Repositories {
	return &Repositories{added: make(chan struct{}, 1), known: map[string]*repository{}}
}

// Want implements Roots.
func (r *Repositories) Want(t TUF) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ask(t)
}

// TrustedRoot implements Roots.
func (r *Repositories) TrustedRoot(t TUF) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch have := r.ask(t); {
	case have.root != "":
		return have.root, nil
	case have.failed != nil:
		return "", fmt.Errorf("the trusted root is not known: %s could not be read: %w", t, have.failed)
	}
	return "", fmt.Errorf("the trusted root is not known yet: %s is being read, so try again in a moment", t)
}

func (r *Repositories) ask(t TUF) *repository {
	r.turn++
	have, ok := r.known[t.Key]
	if !ok {
		if len(r.known) >= maxRepositories {
			r.forget()
		}
		have = &repository{tuf: t}
		r.known[t.Key] = have
		select {
		case r.added <- struct{}{}:
		default: // it is known that there is something new
		}
	}
	have.asked = r.turn
	return have
}

// forget evicts the least recently requested repository.
func (r *Repositories) forget() {
	oldest := slices.MinFunc(slices.Collect(maps.Values(r.known)), func(a, b *repository) int { return cmp.Compare(a.asked, b.asked) })
	delete(r.known, oldest.tuf.Key)
}

// New receives something when there is a repository that was not wanted before.
func (r *Repositories) New() <-chan struct{} { return r.added }

// Wanted returns the repositories to read: first those of which nothing is known.
func (r *Repositories) Wanted() []TUF {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.SortedFunc(maps.Values(r.known), func(a, b *repository) int {
		return cmp.Or(cmp.Compare(min(len(a.root), 1), min(len(b.root), 1)), cmp.Compare(a.asked, b.asked))
	})
	list := make([]TUF, 0, len(all))
	for _, have := range all {
		list = append(list, have.tuf)
	}
	return list
}

// Answer caches a repository's trusted root. It refuses content that is no trusted_root.json, and
// keeps the previous root then.
func (r *Repositories) Answer(t TUF, trustedRoot []byte) error {
	if err := checkRoot(string(trustedRoot)); err != nil {
		r.Fail(t, err)
		return fmt.Errorf("%s: %w", t, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	have, ok := r.known[t.Key]
	if !ok {
		return fmt.Errorf("%s: it is no longer in use", t)
	}
	have.failed = nil
	if have.root != string(trustedRoot) { // equal roots stay the same text, which is quick to compare
		have.root = string(trustedRoot)
	}
	return nil
}

// Fail records why a repository could not be read. The previous root stays.
func (r *Repositories) Fail(t TUF, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have, ok := r.known[t.Key]; ok {
		have.failed = why
	}
}
