package report

import "sync/atomic"

// Room bounds what the queue of a Sink holds: outcomes hold their objects, and whoever
// sends those chooses how large they are.
type Room struct {
	most int64
	held atomic.Int64
}

// NewRoom returns a Room for so many bytes, by the estimate of Weight.
func NewRoom(most int64) *Room { return &Room{most: most} }

// Enter takes room for what waits, and reports whether there is any. What is heavier than
// the whole room enters an empty one.
func (r *Room) Enter(d Decided) bool {
	weight := Weight(d)
	if held := r.held.Add(weight); held > r.most && held != weight {
		r.held.Add(-weight)
		return false
	}
	return true
}

// Leave gives back what Enter took.
func (r *Room) Leave(d Decided) { r.held.Add(-Weight(d)) }

// Weight estimates what is held in memory with an outcome, in bytes: the texts of the
// objects, what is known of their structure, and what is decoded of them.
func Weight(d Decided) int64 {
	const own, each = 4 << 10, 4
	size := d.Outcome.Object.Size()
	if s := d.Outcome.Subject; s != nil {
		size += s.OldObject.Size()
	}
	return own + each*int64(size)
}
