package trust

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
)

const (
	// maxRootReads bounds the concurrent reads for policies of the whole cluster, and as many for
	// those of namespaces: a namespace cannot delay the others by repositories without a response.
	maxRootReads = 6
	// maxRootRetries bounds those of them that failed at the last attempt, so that an unresponsive
	// repository delays no new one.
	maxRootRetries = maxRootReads / 2
	// maxShareReads bounds the concurrent reads for the policies of one namespace.
	maxShareReads = 2
)

// rootRead is one repository.
type rootRead struct {
	id, what string
	shares   []string             // as in attestor.Wanted
	root     *trustroot.TrustRoot // nil for an attestor's
	fetch    func(folder string) func(context.Context) ([]byte, error)
	keep     func(trustedRoot []byte) error
	fail     func(why error)
}

// rootTurn is the time of the next read of a repository.
type rootTurn struct {
	fetch   func(context.Context) ([]byte, error)
	next    time.Time
	pause   time.Duration
	reading bool
	share   string // in which it is read, or was
	known   bool   // it was read once
	failed  bool   // at the last attempt
}

// rootSeats counts the repositories that are being read.
type rootSeats struct {
	cluster, spread rootPool
	shares          map[string]int  // by namespaces
	failing         map[string]bool // namespaces with a repository that could not be read
}

type rootPool struct{ reads, retries int }

func newRootSeats(turns map[string]*rootTurn) *rootSeats {
	s := &rootSeats{shares: map[string]int{}, failing: map[string]bool{}}
	for _, turn := range turns {
		if turn.reading {
			s.count(turn)
		}
		if turn.failed {
			s.failing[turn.share] = true
		}
	}
	delete(s.failing, "") // policies of the whole cluster are not of one user
	return s
}

func (s *rootSeats) pool(share string) *rootPool {
	if share == "" {
		return &s.cluster
	}
	return &s.spread
}

func (s *rootSeats) count(turn *rootTurn) {
	pool := s.pool(turn.share)
	pool.reads++
	if turn.failed {
		pool.retries++
	}
	s.shares[turn.share]++
}

// take marks a repository as being read in one of its shares, if a seat is free.
func (s *rootSeats) take(one rootRead, turn *rootTurn) bool {
	for _, share := range one.shares {
		pool := s.pool(share)
		switch {
		case pool.reads >= maxRootReads, turn.failed && pool.retries >= maxRootRetries:
		case share != "" && s.shares[share] >= maxShareReads:
		default:
			turn.reading, turn.share = true, share
			s.count(turn)
			return true
		}
	}
	return false
}

// sort moves the repositories that could not be read to the end, behind those of namespaces with
// such a one.
func (s *rootSeats) sort(wanted []rootRead, turns map[string]*rootTurn) {
	rank := func(one rootRead) int {
		switch {
		case turns[one.id].failed:
			return 2
		case !slices.ContainsFunc(one.shares, func(share string) bool { return !s.failing[share] }):
			return 1
		}
		return 0
	}
	slices.SortStableFunc(wanted, func(a, b rootRead) int { return cmp.Compare(rank(a), rank(b)) })
}
