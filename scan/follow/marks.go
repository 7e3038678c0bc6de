package follow

import (
	"hash/maphash"
	"sync"
)

// maxMarks is how many objects are known by their marks among the newer, and as many
// among the older, at some 40 bytes each. Of a cluster in which more change, some are
// looked at when only their status changes.
const maxMarks = 500_000

// marks knows the last mark of objects. What nobody told of for long goes with the older
// ones once there is no room among the newer.
type marks struct {
	most int
	seed maphash.Seed // nobody who names objects can have two taken for one

	mu           sync.Mutex
	older, newer map[uint64]uint64
}

func newMarks(most int) *marks {
	return &marks{most: most, seed: maphash.MakeSeed(), newer: map[uint64]uint64{}}
}

// differs reports whether a mark is another one than was told last of the object, and
// remembers it.
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

// forget drops what is known of an object.
func (m *marks) forget(uid string) {
	of := maphash.String(m.seed, uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.newer, of)
	delete(m.older, of)
}
