package fuzz

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// target is a package with one fuzz target, which fails for inputs of some length.
func target(condition string) string {
	return "package a\n\nimport \"testing\"\n\nfunc FuzzLength(f *testing.F) {\n\tf.Add(\"seed\")\n" +
		"\tf.Fuzz(func(t *testing.T, text string) {\n\t\tif " + condition + " {\n\t\t\tt.Error(\"too long\")\n\t\t}\n\t})\n}\n"
}

// beside adds a test that fails to a target.
func beside(target string) string {
	return target + "\nfunc TestLength(t *testing.T) { t.Error(\"too short\") }\n"
}

// TestShort runs the script over a target that holds, one that does not, and none.
func TestShort(t *testing.T) {
	script, err := filepath.Abs("short.sh")
	if err != nil {
		t.Fatal(err)
	}
	holds := target("len(text) > 1<<30")
	for _, row := range []struct{ reason, test, want string }{
		{"a target that holds", holds, ""},
		{"a target that fails for generated inputs", target(`text != "seed"`), "is replayed by: cd "},
		{"a target that fails for its seed", target("true"), "FuzzLength fails"},
		{"a test that fails, and is not wanted", beside(holds), ""},
		{"no target", "package a\n\nimport \"testing\"\n\nfunc TestNothing(*testing.T) {}\n", "no fuzz target"},
	} {
		t.Run(strings.ReplaceAll(row.reason, " ", "-"), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			for name, text := range map[string]string{"go.mod": "module a.example/a\n\ngo 1.26\n", "a_test.go": row.test} {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			run := exec.CommandContext(t.Context(), "go", "test", "-v", "-count=1", "-exec", script, ".")
			run.Dir = folder
			run.Env = append(os.Environ(), "FUZZCOUNT=200", "GOFLAGS=-mod=mod")
			out, err := run.CombinedOutput()
			switch said := string(out); {
			case row.want == "" && (err != nil || !strings.Contains(said, "FuzzLength: 200 inputs")):
				t.Errorf("%s: %v\n%s", row.reason, err, said)
			case row.want != "" && (err == nil || !strings.Contains(said, row.want)):
				t.Errorf("%s passes, or does not say %q: %v\n%s", row.reason, row.want, err, said)
			}
			kept, _ := filepath.Glob(filepath.Join(folder, "testdata", "fuzz", "FuzzLength", "*"))
			if (len(kept) == 1) != strings.Contains(row.want, "replayed") {
				t.Errorf("%s: inputs that are kept: %v", row.reason, kept)
			}
		})
	}
}
