package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
)

// TestErrorsNameLines: every error about a setting names the file, the line and the path.
func TestErrorsNameLines(t *testing.T) {
	const head = "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\n"
	for _, c := range []struct{ reason, text, want string }{
		{"an unknown field", "lisetn: {}\n", "line 3: lisetn: unknown field: did you mean listen?"},
		{"an unknown field of an object", "log:\n  levell: info\n", "line 4: log.levell: unknown field: did you mean level?"},
		{"a value of another type", "webhooks:\n  port: high\n", "line 4: webhooks.port: want a whole number, found string"},
		{"a time without a unit", "ages:\n  tag: 30\n", "line 4: ages.tag: want a duration such as 30s, found 30"},
		{"a negative time", "ages:\n  tag: -30s\n", `line 4: ages.tag: want a duration such as 30s, found "-30s"`},
		{"another choice", "policies:\n  writeStatus: sometimes\n", `line 4: policies.writeStatus: want auto, always or never, found "sometimes"`},
		{"no YAML", "log: [\n", "YAML: line 3: did not find expected node content"},
		{"a field that is set twice", "log: {}\nlog: {}\n", `YAML: line 4: key "log" already set in map`},
		{"a value that a check refuses", "log:\n\n  level: loud\n", `line 5: log.level: unknown level "loud"`},
		{"two errors", "log:\n  level: loud\n  format: xml\n", "line 4: log.level: unknown level \"loud\"\nline 5: log.format: want json or text, found \"xml\""},
		{"an error about two fields is near their object", "certificate:\n  keyFile: a\n", "line 3: certificate: certificateFile and keyFile belong together"},
	} {
		path := filepath.Join(t.TempDir(), "gateway.yaml")
		if err := os.WriteFile(path, []byte(head+c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load(path)
		if err == nil || err.Error() != "configuration "+path+": "+c.want {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// TestNoSettings: a file of another form is refused in the words of its author.
func TestNoSettings(t *testing.T) {
	for _, c := range []struct{ reason, text, want string }{
		{"a list", "- a\n", "want an object, found array"},
		{"a kind that is a list", "apiVersion: quaymaster.dev/v1alpha1\nkind: [Configuration]\n", "line 2: kind: want a string, found array"},
		{"nothing", "", "the file is empty"},
	} {
		path := filepath.Join(t.TempDir(), "gateway.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load(path)
		if err == nil || err.Error() != "configuration "+path+": "+c.want {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}
