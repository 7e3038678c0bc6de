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
// Answer or Fail. The policies of a namespace have a share of the cache, and so have those of the
// whole cluster: the repositories that each requested last. A namespace cannot evict what others
// request. It is safe for concurrent use.
type Repositories struct {
	added chan struct{}

	mu    sync.Mutex
	turn  uint64
	known map[string]*repository // by TUF.Key
}

var _ Roots = (*Repositories)(nil)

// repository is the cached state of one.
type repository struct {
	tuf    TUF
	asked  map[string]uint64 // the turns of the last requests by the namespaces of the policies
	root   string
	failed error
}

// lastAsked is the turn of the last request.
func (r *repository) lastAsked() uint64 {
	return slices.Max(slices.Collect(maps.Values(r.asked)))
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
		have = &repository{tuf: t, asked: map[string]uint64{}}
	}
	if _, shared := have.asked[t.Namespace]; !shared {
		r.makeRoom(t.Namespace, !ok)
	}
	have.asked[t.Namespace] = r.turn
	if !ok {
		r.known[t.Key] = have
		select {
		case r.added <- struct{}{}:
		default: // it is known that there is something new
		}
	}
	return have
}

// makeRoom bounds the share of a namespace, before it gets one more repository. Before a new one
// it bounds also the shares of all namespaces together: the largest of them yields.
func (r *Repositories) makeRoom(namespace string, isNew bool) {
	shares := map[string]int{}
	spread := 0 // repositories in shares of namespaces only
	for _, have := range r.known {
		for name := range have.asked {
			shares[name]++
		}
		if _, cluster := have.asked[""]; !cluster {
			spread++
		}
	}
	most := maxNamespaceRepositories
	if namespace == "" {
		most = maxRepositories
	}
	if shares[namespace] >= most && r.evict(shares, func(name string) bool { return name == namespace }) {
		spread--
	}
	for isNew && namespace != "" && spread >= maxSpreadRepositories {
		if r.evict(shares, func(name string) bool { return name != "" }) {
			spread--
		}
	}
}

// evict removes a repository from one of the selected shares: from the largest, the least recently
// requested one. It reports whether the repository is in no share now, and no longer cached.
func (r *Repositories) evict(shares map[string]int, selected func(namespace string) bool) bool {
	var oldest *repository
	from := ""
	for _, have := range r.known {
		for name, turn := range have.asked {
			if selected(name) && (oldest == nil || cmp.Or(cmp.Compare(shares[from], shares[name]), cmp.Compare(turn, oldest.asked[from])) < 0) {
				oldest, from = have, name
			}
		}
	}
	delete(oldest.asked, from)
	shares[from]--
	if len(oldest.asked) > 0 {
		return false
	}
	delete(r.known, oldest.tuf.Key)
	return true
}

// New receives something when there is a repository that was not wanted before.
func (r *Repositories) New() <-chan struct{} { return r.added }

// Wanted is a repository to read.
type Wanted struct {
	TUF
	// Shares are the namespaces of the policies that request it, sorted: an empty one is of the
	// policies of the whole cluster.
	Shares []string
}

// Wanted returns the repositories to read: first those of which nothing is known, and of these
// first the ones requested last, which objects wait for.
func (r *Repositories) Wanted() []Wanted {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.SortedFunc(maps.Values(r.known), func(a, b *repository) int {
		return cmp.Or(cmp.Compare(min(len(a.root), 1), min(len(b.root), 1)), cmp.Compare(b.lastAsked(), a.lastAsked()))
	})
	list := make([]Wanted, 0, len(all))
	for _, have := range all {
		list = append(list, Wanted{TUF: have.tuf, Shares: slices.Sorted(maps.Keys(have.asked))})
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
