package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// TestHelp: each command has a description, three examples that are command lines of its own, and
// its exit statuses.
func TestHelp(t *testing.T) {
	root := rootCommand(command.Terminal{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Env: func(string) string { return "" }})
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			visit(child)
		}
		if strings.TrimSpace(cmd.Long) == "" || cmd.Short == "" {
			t.Errorf("%s has no description", cmd.CommandPath())
		}
		if !strings.Contains(cmd.Long, "xit status: ") {
			t.Errorf("%s has no exit statuses", cmd.CommandPath())
		}
		examples := 0
		for line := range strings.Lines(cmd.Example) {
			if strings.Contains(line, root.Name()+" ") {
				examples++
			}
		}
		if examples < 3 {
			t.Errorf("%s has %d examples, want three", cmd.CommandPath(), examples)
		}
	}
	visit(root)
}

// TestPluginName: kubectl runs the program as a plugin, and its help has the command that people type.
func TestPluginName(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/local/bin/kubectl-quaymaster": "kubectl quaymaster", "kubectl-quaymaster.exe": "kubectl quaymaster",
		"/usr/local/bin/quaymaster": "quaymaster", "": "quaymaster",
	} {
		var out, errs bytes.Buffer
		terminal := command.Terminal{In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(string) string { return "" }, Program: program}
		if code := run(t.Context(), []string{"verify", "--help"}, terminal); code != 0 {
			t.Fatalf("%s: exit status %d: %s", program, code, &errs)
		}
		for _, line := range []string{"  " + want + " verify IMAGE... | -f FILE | --payload FILE [flags]", "  " + want + " verify --policy policies/ -f deploy/"} {
			if !slices.Contains(strings.Split(out.String(), "\n"), line) {
				t.Errorf("%s: no line %q:\n%s", program, line, &out)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	code, text, errs := quaymaster(t, "version")
	for _, want := range []string{"quaymaster ", "  go ", "  Kyverno ", "  Kubernetes "} {
		if code != 0 || !strings.Contains("\n"+text, "\n"+want) {
			t.Errorf("no %q: %d %s%s", want, code, text, errs)
		}
	}
	code, text, _ = quaymaster(t, "version", "-o", "json")
	if code != 0 || !strings.Contains(text, `"follows": [`) || !strings.Contains(text, `"platform": "`) {
		t.Errorf("%d %s", code, text)
	}
	code, _, errs = quaymaster(t, "version", "-o", "jsno")
	if code != command.ExitUsage || !strings.Contains(errs, "did you mean json?") {
		t.Errorf("%d %s", code, errs)
	}
}
