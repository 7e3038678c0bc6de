package process_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// shell runs a script until the test ends.
func shell(t *testing.T, script string) *process.Process {
	t.Helper()
	path, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	p, err := process.Start(process.Options{Name: "script", Path: path, Args: []string{"-c", script}, Folder: t.TempDir(), Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func said(p *process.Process, what string) func(context.Context) error {
	return func(context.Context) error {
		if !strings.Contains(p.Log(), what) {
			return errors.New("it did not say " + what)
		}
		return nil
	}
}

func TestStopAsksAndKillDoesNot(t *testing.T) {
	polite := shell(t, `trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done`)
	if err := polite.Await(soon(t), said(polite, "up")); err != nil {
		t.Fatal(err)
	}
	if err := polite.Stop(soon(t)); err != nil || !strings.Contains(polite.Log(), "bye") {
		t.Errorf("asked to end: %v, log %q", err, polite.Log())
	}

	deaf := shell(t, `trap '' TERM; echo up; while :; do sleep 0.05; done`)
	if err := deaf.Await(soon(t), said(deaf, "up")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := deaf.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a process that does not listen ended with %v", err)
	}
	select {
	case <-deaf.Done():
	default:
		t.Error("it is still there")
	}
}

func TestAwaitEndsWithTheProcess(t *testing.T) {
	p := shell(t, `echo out of tea; exit 3`)
	err := p.Await(soon(t), func(context.Context) error { return errors.New("not yet") })
	if err == nil || !strings.Contains(err.Error(), "not yet") || !strings.Contains(err.Error(), "out of tea") {
		t.Errorf("got %v, want the awaited condition and the process's output", err)
	}
	var exit *exec.ExitError
	if !errors.As(p.Ended(), &exit) || exit.ExitCode() != 3 {
		t.Errorf("it ended with %v, want status 3", p.Ended())
	}
}

func TestUsage(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc")
	}
	p := shell(t, `i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; while :; do sleep 0.05; done`)
	peak := p.Peak(t.Context())
	if err := p.Await(soon(t), said(p, "done")); err != nil {
		t.Fatal(err)
	}
	if used, err := p.CPU(); err != nil || used <= 0 || used > 20*time.Second {
		t.Errorf("CPU time %v, %v", used, err)
	}
	if most := peak(); most < 4<<10 || most > 1<<30 {
		t.Errorf("peak of %d bytes", most)
	}
}

// Three hundred are enough for two equal ones where each is drawn by itself.
func TestNoAddressIsGivenTwice(t *testing.T) {
	given := map[string]bool{}
	for range 300 {
		address, err := process.FreeAddress(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if given[address] {
			t.Fatalf("%s was given already", address)
		}
		given[address] = true
	}
}
