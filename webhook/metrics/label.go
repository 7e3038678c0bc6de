package metrics

import (
	"strings"
	"sync"
)

// label limits the number of distinct values of a label.
type label struct {
	most int
	mu   sync.RWMutex
	seen map[string]bool
}

func newLabel(most int) *label { return &label{most: most, seen: map[string]bool{}} }

// value returns the value, or other if the limit is reached or the text is not a valid label.
func (l *label) value(of string) string {
	l.mu.RLock()
	known := l.seen[of]
	l.mu.RUnlock()
	if known {
		return of
	}
	if of == "" || len(of) > maxLabel || strings.ToValidUTF8(of, "") != of || strings.ContainsFunc(of, isControl) {
		return other
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen[of] && len(l.seen) >= l.most {
		return other
	}
	l.seen[strings.Clone(of)] = true
	return of
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// set replaces the known values and returns the removed ones.
func (l *label) set(values []string) (gone []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := map[string]bool{}
	for _, v := range values {
		if len(next) < l.most && len(v) <= maxLabel {
			next[v] = true
		}
	}
	for v := range l.seen {
		if !next[v] {
			gone = append(gone, v)
		}
	}
	l.seen = next
	return gone
}

// knows reports whether a value is in the set.
func (l *label) knows(value string) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.seen[value]
}
