package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/quaymaster/quaymaster/report"
)

// Exit statuses. They are a contract, documented in docs/cli.md.
const (
	exitAllowed = 0
	exitDenied  = 1
	exitUsage   = 2
	exitError   = 3
)

// maxPEM bounds a key's file, in bytes.
const maxPEM = 64 << 10

// terminal is the part of the process environment that a command uses.
type terminal struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	release  string // empty: not a release
}

// status is an error that is only an exit status: its message was already printed.
type status int

// Error implements error.
func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// version returns the release, or the build information of the toolchain.
func (t terminal) version() string {
	if t.release != "" {
		return t.release
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

// isTerminal reports whether w is a terminal and not a file or a pipe.
func isTerminal(w any) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// color reports whether output may be coloured (https://no-color.org).
func (t terminal) color() bool {
	return isTerminal(t.out) && t.env("NO_COLOR") == "" && t.env("TERM") != "dumb"
}

// warn prints a warning.
func warn(t terminal, text string) {
	fmt.Fprintf(t.err, "quaymaster: warning: %s\n", report.Escape(text))
}

// defaultKubeconfig is the file that kubectl uses; empty means the service account of a pod.
func defaultKubeconfig(t terminal) string {
	if paths := filepath.SplitList(t.env("KUBECONFIG")); len(paths) > 0 {
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

func optionalFile(flag, name string) ([]byte, error) {
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

func optionalTime(flag, value string) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return t, fmt.Errorf("%s %s: want a time such as 2026-01-31T00:00:00Z", flag, value)
	}
	return t, nil
}

// indented writes JSON for people.
func indented(w io.Writer, what any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(what)
}

// written opens a file for output, or standard output.
func written(t terminal, path string) (io.Writer, func() error, error) {
	if path == "-" {
		return t.out, func() error { return nil }, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, nil, err
	}
	return file, file.Close, nil
}
