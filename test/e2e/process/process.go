// Package process answers: what became of a program that a test started?
//
// A Process writes its log into a file, ends with the test even if the test is
// killed (on Linux), and can be asked for its CPU time and memory.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// pause is the time between two looks at something that is awaited.
const pause = 20 * time.Millisecond

// tail is how much of a log an error shows, in bytes.
const tail = 4 << 10

// Options describes the program to run. All but Path and Folder are optional.
type Options struct {
	// Name is how errors call it, and its log; the default is Path's base.
	Name string
	// Path of the program.
	Path string
	Args []string
	// Folder is where it runs and where its log, Name.log, is kept. A log that
	// is there already is continued.
	Folder string
	// Env is the whole environment; nil is an empty one.
	Env []string
}

// Process is a running program, or one that ended.
type Process struct {
	name    string
	log     string
	command *exec.Cmd
	done    chan struct{}
	err     error // of Wait; set before done is closed
}

// Start runs a program. The caller calls Kill in the end.
func Start(o Options) (*Process, error) {
	if o.Path == "" || o.Folder == "" {
		return nil, errors.New("start a process: Path and Folder are required")
	}
	p := &Process{name: o.Name, done: make(chan struct{})}
	if p.name == "" {
		p.name = filepath.Base(o.Path)
	}
	p.log = filepath.Join(o.Folder, p.name+".log")
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	defer func() { _ = log.Close() }()          // the child has its own
	p.command = exec.Command(o.Path, o.Args...) //nolint:noctx // it is ended by Stop and Kill
	p.command.Dir, p.command.Env = o.Folder, append([]string{}, o.Env...)
	p.command.Stdout, p.command.Stderr = log, log
	p.command.SysProcAttr = attributes()
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.done)
	}()
	return p, nil
}

// Pid is the process's number.
func (p *Process) Pid() int { return p.command.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended returns nil after exit status 0 and the *exec.ExitError after others.
// Ask only after Done.
func (p *Process) Ended() error { return p.err }

// Signal sends a signal, and does nothing if the process has ended.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// Stop asks the process to end (SIGTERM) and waits until it has. When ctx ends first it is
// killed, which is an error. Otherwise the error is that of its exit.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		if p.err != nil {
			return fmt.Errorf("%s ended: %w\n%s", p.name, p.err, p.Tail())
		}
		return nil
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("%s did not end when asked to: %w\n%s", p.name, context.Cause(ctx), p.Tail())
	}
}

// Kill ends the process at once (SIGKILL) and waits until it is gone.
func (p *Process) Kill() {
	_ = p.command.Process.Kill()
	<-p.done
}

// Await calls check until it returns nil. It gives up when ctx or the process ends; the error
// has the last one of check, and the end of the log.
func (p *Process) Await(ctx context.Context, check func(context.Context) error) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.done:
			return fmt.Errorf("%s ended (%s) while it was awaited: %w\n%s", p.name, p.command.ProcessState, err, p.Tail())
		case <-ctx.Done():
			return fmt.Errorf("await %s: %w: %w\n%s", p.name, context.Cause(ctx), err, p.Tail())
		}
	}
}

// Log returns both outputs of the process, and of those before it in the same folder under
// the same name.
func (p *Process) Log() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// Tail returns the end of the log.
func (p *Process) Tail() string {
	file, err := os.Open(p.log)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > tail {
		_, _ = file.Seek(-tail, io.SeekEnd)
	}
	log, err := io.ReadAll(io.LimitReader(file, tail))
	if err != nil {
		return err.Error()
	}
	return string(log)
}
