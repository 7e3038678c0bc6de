package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// comparing are the arguments that name testdata/compare.
func comparing(more ...string) []string {
	in := func(name string) string { return filepath.Join("testdata", "compare", name) }
	return append([]string{
		"scan", "--compare", "-f", in("cluster.yaml"), "--decision-log", in("decisions.jsonl"), "--audit-log", in("audit.jsonl"), "--metrics", in("metrics.txt"),
	}, more...)
}

// TestCompareGolden: what users read and parse.
func TestCompareGolden(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		code, out, errs := quaymaster(t, comparing("-o", format)...)
		if code != command.ExitDenied || errs != "" {
			t.Errorf("%s: status %d: %s", format, code, errs)
		}
		out = regexp.MustCompile(`(?m)^  "time": ".*",$`).ReplaceAllString(out, `  "time": "2026-11-22T12:30:00Z",`)
		file := filepath.Join("testdata", "compare", "golden."+format)
		if *update {
			if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || out != string(want) {
			t.Errorf("%v\n%s\nwant\n%s", err, out, want)
		}
	}
}

// TestCompareStatus: the command's exit status and output.
func TestCompareStatus(t *testing.T) {
	decisions, err := os.ReadFile(filepath.Join("testdata", "compare", "decisions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.SplitAfter(string(decisions), "\n")
	write := func(text string) string {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	cluster := filepath.Join("testdata", "compare", "cluster.yaml")
	for _, row := range []struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		{"nothing differs that we would deny newly", []string{"-f", cluster, "--decision-log", write(all[3] + all[4])}, command.ExitAllowed, "we would deny 0"},
		{"denied here and admitted there", []string{"-f", cluster, "--decision-log", write(all[0])}, command.ExitDenied, "ADMITTED THERE, AND DENIED HERE"},
		{"and under audit it is only reported", []string{"-f", cluster, "--decision-log", write(strings.NewReplacer(`"Enforce"`, `"Audit"`, `"result":"deny"`, `"result":"allow"`).Replace(all[0]) + all[4])}, command.ExitAllowed, "deny (audit): unsigned"},
		{"not verified here", []string{"-f", cluster, "--decision-log", write(all[2] + all[4])}, command.ExitError, "NOT VERIFIED HERE"},
		{"a line that makes no sense", []string{"-f", cluster, "--decision-log", write(all[4] + "no\n")}, command.ExitError, "not read: 1 objects or lines"},
		{"a log that is not there", []string{"-f", cluster, "--decision-log", "none"}, command.ExitError, "--decision-log none"},
		{"a folder without a log", []string{"-f", cluster, "--decision-log", t.TempDir()}, command.ExitError, "there is no decision log in it"},
		{"an audit log that is not there", []string{"-f", cluster, "--audit-log", "none"}, command.ExitError, "--audit-log none"},
		{"a scrape that is not there", []string{"-f", cluster, "--metrics", "none"}, command.ExitError, "--metrics none"},
		{"objects that are not there", []string{"-f", "none"}, command.ExitError, "-f none"},
		{"two of standard input", []string{"-f", "-", "--audit-log", "-"}, command.ExitUsage, "standard input can be read once"},
		{"a new policy", []string{"-f", cluster, "--policy", cluster}, command.ExitUsage, "asks no policies"},
		{"a gateway", []string{"-f", cluster, "--gateway", "http://localhost"}, command.ExitUsage, "reads reports and decision logs"},
		{"another format", []string{"-f", cluster, "-o", "sarif"}, command.ExitUsage, "want text or json"},
		{"a cluster and files", []string{"-f", cluster, "--context", "x"}, command.ExitUsage, "in place of one"},
		{"no cluster", []string{"--kubeconfig", filepath.Join(t.TempDir(), "none")}, command.ExitUsage, "none"},
	} {
		code, out, errs := quaymaster(t, append([]string{"scan", "--compare"}, row.args...)...)
		if code != row.code || !strings.Contains(out+errs, row.want) {
			t.Errorf("%s: status %d, want %d and %q\n%s%s", row.reason, code, row.code, row.want, out, errs)
		}
	}
	if code, _, errs := quaymaster(t, "scan", "--audit-log", "x"); code != command.ExitUsage || !strings.Contains(errs, "for --compare") {
		t.Errorf("without --compare: status %d: %s", code, errs)
	}
}

// TestCompareStaysInItsRow: reports and events are untrusted, and write nothing outside of their
// cells.
func TestCompareStaysInItsRow(t *testing.T) {
	made := `{"apiVersion":"wgpolicyk8s.io/v1alpha2","kind":"PolicyReport","metadata":{"name":"r","namespace":"shop","labels":{"app.kubernetes.io/managed-by":"MANAGER"}},
		"results":[{"source":"SOURCE","policy":"signed","rule":"RULE","result":"fail","message":"no","timestamp":{"seconds":1795348800,"nanos":0},
		"resources":[{"apiVersion":"v1","kind":"Pod","namespace":"shop","name":"NAME"}],"properties":{"container":"c","image":"registry.example/web:1","reason":"CODE"}}]}`
	row := func(manager, rule, name, code string) string {
		file := filepath.Join(t.TempDir(), "cluster.json")
		text := strings.NewReplacer("MANAGER", manager, "SOURCE", manager, "RULE", rule, "NAME", name, "CODE", code).Replace(made)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, out, _ := quaymaster(t, "scan", "--compare", "-f", file)
		return out
	}
	const forged = `x\nwe would deny 0 that the other does not\u001b[31m\tadmit`
	for _, manager := range []string{"kyverno", "quaymaster"} {
		honest := row(manager, "by-us", "web", "unsigned")
		for _, out := range []string{row(manager, forged, "web", "unsigned"), row(manager, "by-us", forged, "unsigned"), row(manager, "by-us", "web", forged)} {
			if strings.Count(out, "\n") != strings.Count(honest, "\n") || strings.ContainsAny(out, "\x1b\t") || strings.Contains(out, "\nwe would deny 0") && !strings.Contains(honest, "\nwe would deny 0") {
				t.Errorf("%s:\n%s\nas an honest one:\n%s", manager, out, honest)
			}
		}
	}
}
