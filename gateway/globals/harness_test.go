package globals

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

// patience is how long tests wait for concurrent work.
const patience = 20 * time.Second

// diary is a log that many write and a test reads.
type diary struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// eventually polls until nothing is wrong any more.
func eventually(t *testing.T, wrong func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := wrong()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %v", patience, err)
		}
		<-time.After(50 * time.Millisecond)
	}
}
