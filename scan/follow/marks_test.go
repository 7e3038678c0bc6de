package follow

import (
	"fmt"
	"runtime"
	"testing"
)

// TestMarksAreBounded: recently reported objects stay known, and others are evicted.
func TestMarksAreBounded(t *testing.T) {
	m := newMarks(100)
	for i := range 1000 {
		m.differs("kept", 1)
		m.differs(fmt.Sprint(i), 1)
	}
	if m.differs("kept", 1) {
		t.Error("an object that was reported again and again is not known")
	}
	if !m.differs("0", 1) {
		t.Error("an object without recent reports is known")
	}
	if n := len(m.older) + len(m.newer); n > 2*100 {
		t.Errorf("%d marks, want 200 at most", n)
	}
}

// BenchmarkMarks measures what one object costs that changed.
func BenchmarkMarks(b *testing.B) {
	const objects = 500_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		m := newMarks(objects)
		for i := range objects {
			m.differs(fmt.Sprintf("b5a1f3a2-7b9a-4f0e-9c53-%012d", i), uint64(i)+1)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/objects, "B/object")
		runtime.KeepAlive(m)
	}
}
