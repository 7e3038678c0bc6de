package report

import "sync/atomic"

// MemoryLimit bounds the memory of a Sink's queue: outcomes hold their objects, and the sender
// determines their size.
type MemoryLimit struct {
	most int64
	held atomic.Int64
}

// NewMemoryLimit returns a MemoryLimit for so many bytes, by the estimate of Weight.
func NewMemoryLimit(most int64) *MemoryLimit { return &MemoryLimit{most: most} }

// Reserve reserves capacity, and reports whether there is enough. An outcome that exceeds the whole
// capacity enters if the queue is empty.
func (m *MemoryLimit) Reserve(d Decided) bool {
	weight := Weight(d)
	if held := m.held.Add(weight); held > m.most && held != weight {
		m.held.Add(-weight)
		return false
	}
	return true
}

// Release releases the capacity that Reserve reserved.
func (m *MemoryLimit) Release(d Decided) { m.held.Add(-Weight(d)) }

// Weight estimates the memory of an outcome, in bytes: the texts of the objects, the index of
// their structure, and their decoded parts.
func Weight(d Decided) int64 {
	const own, each = 4 << 10, 4
	size := d.Outcome.Object.Size()
	if s := d.Outcome.Subject; s != nil {
		size += s.OldObject.Size()
	}
	return own + each*int64(size)
}
