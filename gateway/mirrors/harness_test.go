package mirrors

import (
	"bytes"
	"sync"
)

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
