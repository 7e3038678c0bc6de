package output

import (
	"bytes"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/internal/testkit"
)

// TestWait: a line appears after two seconds, has the last text and the time, and is removed at the end.
func TestWait(t *testing.T) {
	for _, c := range []struct {
		reason string
		takes  time.Duration
		print  string
		want   string
	}{
		{"a short wait", 1900 * time.Millisecond, "", ""},
		{"a longer one", 2500 * time.Millisecond, "", "\rreading (2s)\x1b[K\r\x1b[K"},
		{"with each second", 3500 * time.Millisecond, "", "\rreading (2s)\x1b[K\rreading (3s)\x1b[K\r\x1b[K"},
		{"with another text", 2500 * time.Millisecond, "verified 1 of 3 images", "\rverified 1 of 3 images\x1b[K\rverified 1 of 3 images (2s)\x1b[K\r\x1b[K"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			p := &Progress{out: &out}
			end := p.Wait("reading")
			if c.print != "" {
				p.Print(c.print)
			}
			time.Sleep(c.takes) // of the test's own clock
			end()
			end()
			if out.String() != c.want {
				t.Errorf("%s: %q", c.reason, out.String())
			}
		})
	}
}

// TestWaitWithoutTerminal: into a file or a pipe nothing is printed.
func TestWaitWithoutTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var buffer bytes.Buffer
		p := NewProgress(command.Terminal{Err: &buffer})
		end := p.Wait("reading")
		p.Print("verified 1 of 3 images")
		time.Sleep(time.Hour)
		end()
		p.Clear()
		if buffer.Len() > 0 {
			t.Errorf("a buffer: %q", &buffer)
		}
	})
	device := testkit.Must(os.OpenFile(os.DevNull, os.O_WRONLY, 0))(t) // a character device, as a terminal is
	defer func() { _ = device.Close() }()
	if NewProgress(command.Terminal{Err: device}).out == nil {
		t.Error("a terminal has no progress")
	}
	file := testkit.Must(os.Create(t.TempDir() + "/log"))(t)
	defer func() { _ = file.Close() }()
	if NewProgress(command.Terminal{Err: file}).out != nil {
		t.Error("a file has progress")
	}
}
