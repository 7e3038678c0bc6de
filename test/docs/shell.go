package docs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Bounds of a page's run: the time for all its commands, on a busy machine; and the
// output of one command, in bytes.
const (
	pageTimeout = 3 * time.Minute
	maxOutput   = 4 << 20
)

// mark ends the output of a command; no program prints it.
const mark = '\x1e'

// Shell runs the commands of a page.
type Shell struct {
	// Folder in which they run; the caller makes and removes it.
	Folder string
	// Env is their whole environment.
	Env []string
	// Names are the names on pages and their replacements here, as registry.example and a
	// host on loopback. They are changed in commands, and back in output.
	Names map[string]string
	// Calls are changed in commands alone: another way to call the same program.
	Calls map[string]string
	// Before are commands that no page shows, for the page's assumptions.
	Before string
	// After is called after each successful command; it may be nil.
	After func(ctx context.Context, command string) error
}

// Mistake is a difference from a page.
type Mistake struct {
	Page string
	Line int
	What string
}

func (m Mistake) Error() string { return fmt.Sprintf("%s:%d: %s", m.Page, m.Line, m.What) }

// Run runs the commands of a page one after another in one bash, and ends with the first that
// differs from the page: those after it may depend on it.
func (s Shell) Run(ctx context.Context, page string, commands []Command) error {
	ctx, cancel := context.WithTimeoutCause(ctx, pageTimeout, fmt.Errorf("the page took longer than %s", pageTimeout))
	defer cancel()
	given := Command{Text: s.Before}
	all := append([]Command{given}, commands...)
	file := filepath.Join(s.Folder, ".page.sh")
	if err := os.WriteFile(file, []byte(s.script(all)), 0o600); err != nil {
		return err
	}
	bash, err := s.start(ctx, file)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	defer bash.close()
	for i, c := range all {
		said, statuses, err := bash.next()
		said = s.written(said)
		switch {
		case err != nil:
			return Mistake{page, c.Line, fmt.Sprintf("$ %s\n%s: %v (%v)", c.Text, said, err, context.Cause(ctx))}
		case !c.exits(statuses):
			return Mistake{page, c.Line, fmt.Sprintf("$ %s\n%sexit status %v, the page has %d", c.Text, said, statuses, c.Status)}
		case !c.Prints(said):
			return Mistake{page, c.Line, fmt.Sprintf("$ %s\nprints\n%sand the page shows\n%s\n", c.Text, said, strings.Join(c.Output, "\n"))}
		}
		if s.After != nil && i > 0 {
			if err := s.After(ctx, c.Text); err != nil {
				return Mistake{page, c.Line, fmt.Sprintf("$ %s\nthen: %v", c.Text, err)}
			}
		}
		if err := bash.proceed(); err != nil {
			return Mistake{page, c.Line, err.Error()}
		}
	}
	return nil
}

// exits reports whether a command ended as on the page: its last part with that status, and
// those that are piped into it with 0, or with SIGPIPE.
func (c Command) exits(statuses []int) bool {
	const unread = 128 + int(syscall.SIGPIPE)
	last := len(statuses) - 1
	for _, status := range statuses[:last] {
		if status != 0 && status != unread {
			return false
		}
	}
	return statuses[last] == c.Status
}

// script of a page. A command sees in $? how the one before it ended.
func (s Shell) script(commands []Command) string {
	var b strings.Builder
	b.WriteString("exec 2>&1\n__end() { local s=$? p=\"${PIPESTATUS[*]}\"; printf '\\036%s\\n' \"$p\"; read -r _ <&3; return $s; }\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "%s\n__end\n", s.here(c.Text))
	}
	return b.String()
}

// here replaces the page's names in a command.
func (s Shell) here(command string) string {
	for _, names := range []map[string]string{s.Names, s.Calls} {
		for _, name := range longestFirst(names, func(k, _ string) string { return k }) {
			command = strings.ReplaceAll(command, name, names[name])
		}
	}
	return command
}

// written replaces the names in output by the page's.
func (s Shell) written(output string) string {
	for _, name := range longestFirst(s.Names, func(_, v string) string { return v }) {
		output = strings.ReplaceAll(output, s.Names[name], name)
	}
	return output
}

func longestFirst(names map[string]string, by func(k, v string) string) []string {
	keys := make([]string, 0, len(names))
	for k := range names {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return len(by(b, names[b])) - len(by(a, names[a])) })
	return keys
}

// running is a bash with a script. Its group is ended with it, for pages start servers.
type running struct {
	command *exec.Cmd
	output  *bufio.Reader
	read    *os.File
	goOn    *os.File
}

func (s Shell) start(ctx context.Context, file string) (*running, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	wait, goOn, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, read.Close(), write.Close())
	}
	command := exec.CommandContext(ctx, "bash", file)
	command.Dir, command.Env = s.Folder, s.Env
	command.Stdout, command.Stderr, command.ExtraFiles = write, write, []*os.File{wait}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	err = command.Start()
	err = errors.Join(err, write.Close(), wait.Close())
	if err != nil {
		return nil, errors.Join(err, read.Close(), goOn.Close())
	}
	return &running{command: command, output: bufio.NewReader(read), read: read, goOn: goOn}, nil
}

// next returns what a command printed, and the exit status of each part of its pipe.
func (r *running) next() (said string, statuses []int, err error) {
	var b strings.Builder
	for {
		c, err := r.output.ReadByte()
		switch {
		case err != nil:
			return b.String(), nil, fmt.Errorf("the shell ended: %w", err)
		case c == mark:
			line, err := r.output.ReadString('\n')
			if err != nil {
				return b.String(), nil, err
			}
			for _, field := range strings.Fields(line) {
				status, err := strconv.Atoi(field)
				if err != nil {
					return b.String(), nil, err
				}
				statuses = append(statuses, status)
			}
			return b.String(), statuses, nil
		case b.Len() == maxOutput:
			return b.String()[:1000], nil, fmt.Errorf("more than %d bytes of output", maxOutput)
		}
		b.WriteByte(c)
	}
}

func (r *running) proceed() error {
	_, err := io.WriteString(r.goOn, "\n")
	return err
}

func (r *running) close() {
	_ = r.command.Cancel()
	_ = r.command.Wait()
	_ = r.read.Close()
	_ = r.goOn.Close()
}
