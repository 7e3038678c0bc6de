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
