package report

import "sync/atomic"

// Room bounds the memory of a Sink's queue: outcomes hold their objects, and the sender
// determines their size.
type Room struct {
	most int64
	held atomic.Int64
}

// NewRoom returns a Room for so many bytes, by the estimate of Weight.
func NewRoom(most int64) *Room { return &Room{most: most} }

// Enter reserves capacity, and reports whether there is enough. An outcome that exceeds the whole
// capacity enters if the queue is empty.
func (r *Room) Enter(d Decided) bool {
	weight := Weight(d)
	if held := r.held.Add(weight); held > r.most && held != weight {
		r.held.Add(-weight)
		return false
	}
	return true
}

// Leave releases the capacity that Enter reserved.
func (r *Room) Leave(d Decided) { r.held.Add(-Weight(d)) }

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
