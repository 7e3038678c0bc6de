package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticks is the number of clock ticks a second in /proc, which Linux has as 100
// on every architecture that Go runs on.
const ticks = 100

// CPU returns the time that the process has spent in user and system mode, in
// steps of 10 ms. It is read from /proc, so Linux only.
func (p *Process) CPU() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	if err != nil {
		return 0, fmt.Errorf("CPU of %s: %w", p.name, err)
	}
	// The second field is the name in parentheses, and may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system = 14 - 3, 15 - 3 // numbered from 1 in proc(5), the third field is the first here
	var sum uint64
	for _, i := range []int{user, system} {
		if len(fields) <= i {
			return 0, fmt.Errorf("CPU of %s: cannot read %q", p.name, stat)
		}
		n, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("CPU of %s: %w", p.name, err)
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks, nil
}

// RssAnon returns the anonymous resident memory in bytes: the heap and the
// stacks, without the program's text and mapped files.
func (p *Process) RssAnon() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		return 0, fmt.Errorf("memory of %s: %w", p.name, err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("memory of %s: no RssAnon", p.name)
}

// Peak samples RssAnon from now on; the function that it returns ends that and returns the
// maximum, in bytes.
func (p *Process) Peak(ctx context.Context) func() int64 {
	var most int64
	stopped := make(chan struct{})
	ctx, stop := context.WithCancel(ctx)
	go func() {
		defer close(stopped)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			if now, err := p.RssAnon(); err == nil && now > most {
				most = now
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() int64 {
		stop()
		<-stopped
		return most
	}
}
