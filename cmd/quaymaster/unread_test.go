package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// TestUnreadPolicies: where one policy has an error, apply and test report the results of the others and
// name it; no other command runs with a part of the policies.
func TestUnreadPolicies(t *testing.T) {
	t.Parallel()
	for reason, c := range map[string]struct{ content, named string }{
		"it does not compile": {strings.ReplaceAll(applyFiles["audit.yaml"], "pattern:", "patern:"), "patern"},
		"it is no YAML":       {"{", "broken.yaml"},
		"it is no policy":     {applyFiles["good.yaml"], "unsupported kind v1 Pod"},
		"it can be read":      {applyFiles["warn.yaml"], ""},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			file := func(name, content string) string {
				path := filepath.Join(folder, name)
				ok(t, os.MkdirAll(filepath.Dir(path), 0o700))
				ok(t, os.WriteFile(path, []byte(content), 0o600))
				return path
			}
			file("policies/broken.yaml", c.content)
			file("policies/policy.yaml", applyFiles["policy.yaml"])
			policies, bad, mutated := filepath.Join(folder, "policies"), file("bad.yaml", applyFiles["bad.yaml"]), filepath.Join(folder, "mutated.yaml")
			file("suite/kyverno-test.yaml", "policies: [../policies]\nresources: [../bad.yaml]\nresults: [{policy: owner, rule: owned, kind: Pod, resources: [bad], result: fail}]\n")
			const result = "fail  ClusterPolicy/owner/owned: "
			for _, row := range []struct {
				args        []string
				status      int // where a policy has an error
				otherwise   int
				out, always string // in standard output: of the other policies; always
			}{
				{[]string{"apply", policies, "-r", bad}, command.ExitUsage, command.ExitDenied, "", result},
				{[]string{"apply", policies, "-r", bad, "-o", "json", "--warn-exit-code", "4"}, command.ExitUsage, command.ExitDenied, `"errors": [`, `"rule": "owned"`},
				{[]string{"apply", policies, "-r", bad, "--mutated", mutated}, command.ExitUsage, command.ExitDenied, "", result},
				{[]string{"test", filepath.Join(folder, "suite")}, command.ExitDenied, command.ExitAllowed, "1 passed, 1 failed", "1 passed"},
				{[]string{"verify", "--policy", policies, "-f", bad}, command.ExitUsage, command.ExitDenied, "", ""},
				{[]string{"explain", "--policy", policies, "-f", bad}, command.ExitUsage, command.ExitDenied, "", ""},
				{[]string{"scan", "--policy", policies, "-f", bad}, command.ExitUsage, command.ExitDenied, "", ""},
			} {
				status, out, errs := piped(t, "", nil, row.args...)
				want, part := row.status, row.always == ""
				if c.named == "" {
					want, part, row.out = row.otherwise, false, ""
				}
				if status != want {
					t.Errorf("%q: status %d, want %d\n%s%s", row.args, status, want, out, errs)
				}
				if !strings.Contains(out+errs, c.named) || !strings.Contains(out, row.always) || !strings.Contains(out, row.out) {
					t.Errorf("%q: want %q, %q and %q in\n%s%s", row.args, c.named, row.always, row.out, out, errs)
				}
				if part && out != "" {
					t.Errorf("%q: results of a part of the policies:\n%s", row.args, out)
				}
			}
			if _, err := os.Stat(mutated); (c.named != "") != errors.Is(err, fs.ErrNotExist) {
				t.Errorf("--mutated: %v", err)
			}
		})
	}
}

// TestNoPolicyThatCanBeRead: without any policy that can be read nothing is reported.
func TestNoPolicyThatCanBeRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, content := range map[string]string{"broken.yaml": "{", "wrong.yaml": "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: a}, spec: {rule: []}}", "bad.yaml": applyFiles["bad.yaml"]} {
		ok(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	for _, names := range [][]string{{"broken.yaml"}, {"wrong.yaml"}, {"none.yaml"}, {"broken.yaml", "wrong.yaml"}} {
		args := []string{"apply", "-r", filepath.Join(folder, "bad.yaml")}
		for _, name := range names {
			args = append(args, filepath.Join(folder, name))
		}
		status, out, errs := piped(t, "", nil, args...)
		if status != command.ExitUsage || out != "" {
			t.Errorf("%q: status %d\n%s%s", names, status, out, errs)
		}
		for _, name := range names {
			if !strings.Contains(errs, name) {
				t.Errorf("%q: %s is not named in\n%s", names, name, errs)
			}
		}
	}
}

// TestSuiteWarnings: warnings about a suite are printed with every format.
func TestSuiteWarnings(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, content := range map[string]string{
		"policy.yaml": applyFiles["policy.yaml"], "bad.yaml": applyFiles["bad.yaml"],
		"kyverno-test.yaml": "name: a\nowner: shop\npolicies: [policy.yaml]\nresources: [bad.yaml]\nresults: [{policy: owner, rule: owner, kind: Pod, resources: [bad], result: fail}]\n",
	} {
		ok(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	for _, format := range []string{"text", "json", "yaml", "markdown", "junit"} {
		status, _, errs := piped(t, "", nil, "test", folder, "-o", format)
		if status != command.ExitAllowed || !strings.Contains(errs, `warning: a (`+folder) || !strings.Contains(errs, `unknown field "owner"`) || !strings.Contains(errs, "the policy has no rule of this name (it has staged, owned)") {
			t.Errorf("-o %q: status %d\n%s", format, status, errs)
		}
	}
}
