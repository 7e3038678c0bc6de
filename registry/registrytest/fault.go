package registrytest

import (
	"net/http"
	"sync"
)

// Fault is one row of the table of faults: a selection of requests, and an action. The
// first matching row applies. Faults come after authentication: a challenged request does
// not count.
type Fault struct {
	Method     string // "" means any
	Kind       Kind   // "" means any
	Repository string // "" means any
	Reference  string // tag or digest; "" means any
	// Nth is the one matching request that is hit, counted from 1; 0 means
	// each.
	Nth int
	// Do is the action; see Action.
	Do Action
}

// Action misbehaves around the honest answer, which it may ask of next.
type Action func(next http.Handler) http.Handler

// faults is the table and how often each row matched.
type faults struct {
	mu   sync.Mutex
	rows []Fault
	seen []int
}

// SetFaults replaces the table of faults.
func (r *Registry) SetFaults(rows ...Fault) {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.faults.rows = rows
	r.faults.seen = make([]int, len(rows))
}

func (f *faults) match(method string, target target) Action {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, row := range f.rows {
		if !row.matches(method, target) {
			continue
		}
		f.seen[i]++
		if row.Nth == 0 || row.Nth == f.seen[i] {
			return row.Do
		}
	}
	return nil
}

func (f Fault) matches(method string, target target) bool {
	return (f.Method == "" || f.Method == method) &&
		(f.Kind == "" || f.Kind == target.kind) &&
		(f.Repository == "" || f.Repository == target.repository) &&
		(f.Reference == "" || f.Reference == target.reference)
}
