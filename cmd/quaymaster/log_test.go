package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// keptLog writes a log of three decisions and a checkpoint into a replica's folder.
func keptLog(t *testing.T) (folder, public string) {
	t.Helper()
	folder = t.TempDir()
	key, err := decisionlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	chain, err := decisionlog.NewChain("replica-a", decisionlog.Position{})
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for n := range 3 {
		d := decisionlog.Decision{User: fmt.Sprintf("user-%d", n), Result: "deny"}
		text, err = chain.Append(text, &decisionlog.Entry{Kind: decisionlog.KindDecision, Time: time.Unix(1800000000, 0), Decision: &d})
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err = chain.AppendCheckpoint(text, "c", time.Unix(1800000000, 0), true, key)
	if err != nil {
		t.Fatal(err)
	}
	_, pem, err := key.MarshalPEM()
	if err != nil {
		t.Fatal(err)
	}
	public = filepath.Join(folder, "log.pub")
	for name, content := range map[string][]byte{public: pem, filepath.Join(folder, "replica-a", decisionlog.SegmentName(1)): text} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder, public
}

func TestLog(t *testing.T) {
	folder, public := keptLog(t)
	own := filepath.Join(folder, "replica-a")
	file := filepath.Join(own, decisionlog.SegmentName(1))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	_, otherKey := keptLog(t)
	seen := write("seen", lines[1])
	unseen := write("unseen", strings.Replace(lines[1], "user-1", "user-9", 1))
	changed := write("changed", strings.Replace(string(text), "user-1", "user-9", 1))
	open := write("open", lines[0]+lines[1])
	for _, c := range []struct {
		reason string
		args   []string
		code   int
		out    string
		errs   string
	}{
		{"the folder of a replica", []string{"verify", own, "--key", public}, command.ExitAllowed, "whole\n  numbers 1 to 4 in 1 files, written by replica-a: 3 decisions, 1 checkpoints\n", ""},
		{"the folder of all", []string{"verify", folder, "--key", public}, command.ExitAllowed, "replica-a: whole", ""},
		{"a file, as JSON", []string{"verify", "--json", file}, command.ExitAllowed, `"first":1,"last":4,`, ""},
		{"without a key", []string{"verify", file}, command.ExitAllowed, "the signatures of checkpoints were not checked: give --key", ""},
		{"another key", []string{"verify", file, "--key", otherKey}, command.ExitDenied, "signed with a key that is not in --key", ""},
		{"a line seen elsewhere", []string{"verify", file, "--anchor", seen}, command.ExitAllowed, "whole", ""},
		{"something else was seen elsewhere", []string{"verify", file, "--anchor", unseen}, command.ExitDenied, "another line was seen under its number", ""},
		{"a line was changed", []string{"verify", changed, file}, command.ExitDenied, "changed: BROKEN\n  changed, line 3 (number 3 of the log): the hash of the line before it: expected ", ""},
		{"it is not signed yet", []string{"verify", open}, command.ExitAllowed, "2 lines after the last checkpoint are not signed yet", ""},
		{"no such file", []string{"verify", "nothing"}, command.ExitUsage, "", "no such file"},
		{"no log", []string{"verify", t.TempDir()}, command.ExitUsage, "", "there is no decision log in it"},
		{"no key", []string{"verify", file, "--key", seen}, command.ExitUsage, "", "there is no public key"},
		{"nothing to show", []string{"show", t.TempDir()}, command.ExitUsage, "", "there is no decision log in it"},
		{"one of its files", []string{"show", file}, command.ExitUsage, "", "is a file: name its folder"},
		{"from a number that no line has", []string{"show", own, "--from", "0"}, command.ExitUsage, "", "--from 0: the first line has number 1"},
		{"the log of the only replica", []string{"show", folder, "--from", "4"}, command.ExitAllowed, lines[3], ""},
		{"all of it", []string{"show", own}, command.ExitAllowed, string(text), ""},
		{"its end", []string{"show", own, "--last", "2"}, command.ExitAllowed, lines[2] + lines[3], ""},
		{"from a number on", []string{"show", own, "--from", "4"}, command.ExitAllowed, lines[3], ""},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"log"}, c.args...), command.Terminal{In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(string) string { return "" }})
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) || c.errs == "" && errs.Len() > 0 {
			t.Errorf("%s: status %d, want %d\n%s%s", c.reason, code, c.code, out.String(), errs.String())
		}
		if c.args[0] == "show" && out.String() != c.out {
			t.Errorf("%s: got %q", c.reason, out.String())
		}
	}
}
