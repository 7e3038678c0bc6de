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
	// Want says that a policy names the repository, which is then to be read beside
	// requests.
	Want(TUF)
	// TrustedRoot returns the trusted_root.json that the repository has now, as far
	// as is known. An error means that nobody knows: what is asked of it is
	// undecided. It is asked for each object, and opens no connection.
	TrustedRoot(TUF) (string, error)
}

// Repositories keeps what TUF repositories said, for whoever reads them beside
// requests: read what Wanted lists, at New and from time to time, and say with
// Answer or Fail what came of it. It keeps the maxRepositories that were asked for
// last. It is safe for concurrent use.
type Repositories struct {
	added chan struct{}

	mu    sync.Mutex
	turn  uint64
	known map[string]*repository // by TUF.Key
}

var _ Roots = (*Repositories)(nil)

// repository is what is known of one; asked is the turn it was asked about last.
type repository struct {
	tuf    TUF
	asked  uint64
	root   string
	failed error
}

// NewRepositories returns Repositories that know nothing.
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

// forget drops the repository that nobody has asked about for longest.
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

// Answer says what a repository has. What is no trusted_root.json is refused, and
// what was known before stays.
func (r *Repositories) Answer(t TUF, trustedRoot []byte) error {
	if err := checkRoot(string(trustedRoot)); err != nil {
		r.Fail(t, err)
		return fmt.Errorf("%s: %w", t, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	have, ok := r.known[t.Key]
	if !ok {
		return fmt.Errorf("%s: nobody asks about it any more", t)
	}
	have.failed = nil
	if have.root != string(trustedRoot) { // equal roots stay the same text, which is quick to compare
		have.root = string(trustedRoot)
	}
	return nil
}

// Fail says why a repository could not be read. What was known before stays.
func (r *Repositories) Fail(t TUF, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have, ok := r.known[t.Key]; ok {
		have.failed = why
	}
}
