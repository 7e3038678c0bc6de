package follow

import (
	"hash/maphash"
	"sync"
)

// maxMarks bounds the newer and the older generation of marks, at some 40 bytes each. In a
// cluster with more changing objects, some are evaluated again after a change of their status
// alone.
const maxMarks = 500_000

// marks caches the last mark of objects. Entries that are not updated move to the older
// generation and are evicted with it.
type marks struct {
	most int
	seed maphash.Seed // prevents users from forcing collisions by names

	mu           sync.Mutex
	older, newer map[uint64]uint64
}

func newMarks(most int) *marks {
	return &marks{most: most, seed: maphash.MakeSeed(), newer: map[uint64]uint64{}}
}

// differs reports whether a mark differs from the object's last one, and stores it.
func (m *marks) differs(uid string, mark uint64) bool {
	of := maphash.String(m.seed, uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.newer[of]
	if !ok {
		known = m.older[of]
		if len(m.newer) >= m.most {
			m.older, m.newer = m.newer, map[uint64]uint64{}
		}
	}
	m.newer[of] = mark
	return known != mark
}

// forget removes the mark of an object.
func (m *marks) forget(uid string) {
	of := maphash.String(m.seed, uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.newer, of)
	delete(m.older, of)
}
