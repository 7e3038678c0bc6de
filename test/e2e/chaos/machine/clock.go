package machine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/test/peers"
)

// clockVariable names the file by which a gateway's clock is set.
const clockVariable = "QUAYMASTER_TEST_CLOCK"

// now is the beginning of time.Now in Go's own source, and nowSet that in a gateway with a
// clock that can be set: the wall clock is off by the offset in the file, and the monotonic
// clock goes on, as when a machine's clock is set.
const (
	now    = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	nowSet = now + "\tsec += offset()\n"
)

// offsetSource is put beside it. The file is mapped, so that looking at it costs nothing.
const offsetSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var offsetSeconds = mapOffset()

func offset() int64 {
	if offsetSeconds == nil {
		return 0
	}
	return atomic.LoadInt64(offsetSeconds)
}

func mapOffset() *int64 {
	path, ok := syscall.Getenv("` + clockVariable + `")
	if !ok {
		return nil
	}
	file, err := syscall.Open(path, syscall.O_RDONLY, 0)
	if err != nil {
		panic("the file of the clock: " + err.Error())
	}
	content, err := syscall.Mmap(file, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("the file of the clock: " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&content[0]))
}
`

// Clock is that of both gateways.
type Clock struct{ file string }

// BuildWithClock builds the gateway's program on a standard library with a clock that can be
// set; no setting of the program does that, nor a namespace of Linux.
func BuildWithClock(ctx context.Context, folder, program string) (*Clock, error) {
	source, text, err := settable(ctx)
	if err != nil {
		return nil, err
	}
	// In the same place each time, since the compiler's cache goes by names, too.
	id := sha256.Sum256(slices.Concat(text, []byte(offsetSource)))
	sources, unlock, err := peers.Folder(ctx, "clock-"+hex.EncodeToString(id[:6]))
	if err != nil {
		return nil, err
	}
	defer unlock()
	overlay, err := lay(sources, source, text)
	if err != nil {
		return nil, err
	}
	c := &Clock{file: filepath.Join(folder, "clock")}
	if err := os.WriteFile(c.file, make([]byte, 8), 0o600); err != nil {
		return nil, err
	}
	checkout, err := peers.Checkout()
	if err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-overlay", overlay, "-o", program, "./cmd/quaymaster")
	build.Dir, build.Env = checkout, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the gateway with a clock that can be set: %w\n%s", err, said)
	}
	return c, nil
}

// lay writes an overlay into a folder that puts a text in the place of package time's, and
// offsetSource beside it.
func lay(folder, source string, text []byte) (overlay string, err error) {
	changed, added, overlay := filepath.Join(folder, "time.go"), filepath.Join(folder, "offset.go"), filepath.Join(folder, "overlay.json")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(source, "time.go"): changed, filepath.Join(source, "offset.go"): added,
	}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(
		os.WriteFile(changed, text, 0o600), os.WriteFile(added, []byte(offsetSource), 0o600),
		os.WriteFile(overlay, replaced, 0o600),
	)
}

// settable returns the folder of package time, and its source with a clock that can be set.
func settable(ctx context.Context) (folder string, text []byte, err error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", nil, fmt.Errorf("find Go's own source: %w", err)
	}
	folder = filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err = os.ReadFile(filepath.Join(folder, "time.go"))
	if err != nil {
		return "", nil, err
	}
	if bytes.Count(text, []byte(now)) != 1 {
		return "", nil, errors.New("time.Now of this release of Go begins otherwise than is known here: see now in clock.go")
	}
	return folder, bytes.Replace(text, []byte(now), []byte(nowSet), 1), nil
}

// Environment is the gateway's environment variable.
func (c *Clock) Environment() string { return clockVariable + "=" + c.file }

// Set puts the clock forward, or back; zero: as that of the machine.
func (c *Clock) Set(by time.Duration) error {
	file, err := os.OpenFile(c.file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	seconds := binary.NativeEndian.AppendUint64(nil, uint64(int64(by.Seconds())))
	_, err = file.WriteAt(seconds, 0)
	return errors.Join(err, file.Close())
}

// Off returns how far the clock of an HTTP server is off, by the date of its answer.
func Off(ctx context.Context, url string) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	_ = response.Body.Close()
	date, err := http.ParseTime(response.Header.Get("Date"))
	return time.Until(date), err
}
