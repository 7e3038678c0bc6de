// Package command is what all commands of quaymaster share: the terminal, exit statuses, and
// the files that flags name.
package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/quaymaster/quaymaster/report"
)

// Exit statuses. They are a contract, documented in docs/cli.md.
const (
	ExitAllowed = report.ExitAllowed
	ExitDenied  = report.ExitDenied
	ExitUsage   = 2
	ExitError   = report.ExitError
)

// Terminal is the part of the process environment that a command uses.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) string
	Release  string // empty: not a release
	Program  string // the file that was started, as in os.Args; empty: quaymaster
}

// Status is an error that is only an exit status: its message was already printed.
type Status int

// Error implements error.
func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Version returns the release, or the build information of the toolchain.
func (t Terminal) Version() string {
	if t.Release != "" {
		return t.Release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown version)"
	}
	text := info.Main.Version
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			text += " " + setting.Value
		}
	}
	return text
}

// plugin is the file name under which kubectl runs the program, as "kubectl quaymaster".
const plugin = "kubectl-quaymaster"

// Name is the name of the program in help texts and in the commands that it suggests.
func (t Terminal) Name() string {
	if strings.TrimSuffix(filepath.Base(t.Program), ".exe") == plugin {
		return "kubectl quaymaster"
	}
	return "quaymaster"
}

// Columns is the width of the terminal that shows the output; 0 if it is none, or has no width.
func (t Terminal) Columns() int {
	if !IsTerminal(t.Out) {
		return 0
	}
	columns, _, err := term.GetSize(int(t.Out.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// IsTerminal reports whether w is a terminal and not a file or a pipe.
func IsTerminal(w any) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Color reports whether output may be coloured (https://no-color.org).
func (t Terminal) Color() bool {
	return IsTerminal(t.Out) && t.Env("NO_COLOR") == "" && t.Env("TERM") != "dumb"
}

// Warn prints a warning.
func (t Terminal) Warn(text string) {
	fmt.Fprintf(t.Err, "quaymaster: warning: %s\n", report.Escape(text))
}

// Kubeconfig returns the file of a flag, or if it is not set the file that kubectl uses; empty
// means the service account of a pod.
func (t Terminal) Kubeconfig(flag string) string {
	if flag != "" {
		return flag
	}
	if paths := filepath.SplitList(t.Env("KUBECONFIG")); len(paths) > 0 {
		return paths[0]
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	path := filepath.Join(home, ".kube", "config")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// OptionalFile reads the file of a flag; nil if the flag is not set.
func OptionalFile(flag, name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if len(content) == 0 {
		return nil, fmt.Errorf("%s %s: the file is empty", flag, name)
	}
	return content, nil
}

// OptionalTime parses the time of a flag; the zero time if the flag is not set.
func OptionalTime(flag, value string) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return t, fmt.Errorf("%s %s: want a time such as 2026-01-31T00:00:00Z", flag, value)
	}
	return t, nil
}

// Inputs counts the names of standard input in lists of files: it can be read once.
func Inputs(lists ...[]string) int {
	return len(slices.DeleteFunc(slices.Concat(lists...), func(name string) bool { return name != "-" }))
}

// Count writes a number with its noun, whose plural ends in s.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// WriteJSON writes JSON for people.
func WriteJSON(w io.Writer, what any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(what)
}

// Create opens a file for output, or standard output.
func (t Terminal) Create(path string) (io.Writer, func() error, error) {
	if path == "-" {
		return t.Out, func() error { return nil }, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, nil, err
	}
	return file, file.Close, nil
}
