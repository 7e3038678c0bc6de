package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// TestConvertToNative: a folder of policies as the API server's own, on standard output and as files for it.
func TestConvertToNative(t *testing.T) {
	samples := filepath.Join("..", "..", "policy", "convert", "native", "testdata")
	cel, rules := filepath.Join(samples, "cel.yaml"), filepath.Join(samples, "rules.yaml")
	folder := t.TempDir()
	static, full := filepath.Join(folder, "new", "admission"), filepath.Join(folder, "full")
	for _, name := range []string{"policies", "full"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "a.yaml"), []byte(strings.Split(content(t, cel), "---")[0]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name      string
		args      []string
		code      int
		out, errs string
	}{
		{"rules", []string{rules, "--exempt-namespaces", "kube-system,quaymaster"}, command.ExitAllowed, content(t, filepath.Join(samples, "rules.golden.yaml")), ""},
		{"a folder and a file", []string{filepath.Join(folder, "policies"), rules}, command.ExitAllowed, "name: shop-replicas", ""},
		{"files", []string{cel, "--static", static, "--exempt-namespaces", "kube-system", "--static-path", "/etc/policies"}, command.ExitAllowed, filepath.Join("mutating", "shop-add.static.k8s.io.yaml"), ""},
		{"files again", []string{cel, "--static", static, "--exempt-namespaces", "kube-system"}, command.ExitUsage, "", "the folder is not empty"},
		{"a folder that is used", []string{cel, "--static", full, "--exempt-namespaces", ""}, command.ExitUsage, "", "the folder is not empty"},
		{"files for every namespace by omission", []string{cel, "--static", filepath.Join(folder, "other")}, command.ExitUsage, "", "--static needs --exempt-namespaces"},
		{"a path without files", []string{cel, "--static-path", "/etc/policies"}, command.ExitUsage, "", "--static-path is the path of --static"},
		{"a relative path", []string{cel, "--static", filepath.Join(folder, "other"), "--static-path", "etc", "--exempt-namespaces", ""}, command.ExitUsage, "", "want an absolute path"},
		{"a kind that an old API server lacks", []string{cel}, command.ExitUsage, "", "Kubernetes 1.30 has no MutatingAdmissionPolicy"},
		{"a flag of the other form", []string{cel, "--from", "kyverno"}, command.ExitUsage, "", "--from has no effect with --to native"},
		{"no such file", []string{"nothing.yaml"}, command.ExitUsage, "", "no such file"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(context.Background(), append([]string{"convert", "--to", "native"}, row.args...),
				command.Terminal{In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(string) string { return "" }})
			if code != row.code || !strings.Contains(out.String(), row.out) || row.out == "" && out.Len() > 0 || !strings.Contains(errs.String(), row.errs) {
				t.Errorf("status %d\n%s\n%s", code, out.String(), errs.String())
			}
		})
	}
	if got := content(t, filepath.Join(static, "admission.yaml")); !strings.Contains(got, "staticManifestsDir: /etc/policies/validating\n") {
		t.Errorf("the configuration is %s", got)
	}
}

func content(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
