package decisionlog_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/report/decisionlog"
)

const page = "../../docs/decision-log.md"

func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDocNamesEveryField: the page names each field of a line.
func TestDocNamesEveryField(t *testing.T) {
	text := document(t)
	var look func(of reflect.Type)
	look = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || of == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(text, "`"+name+"`") && !strings.Contains(text, "."+name) {
				t.Errorf("%s does not name %s.%s", page, of.Name(), name)
			}
			if of.Field(i).Name != "Owner" { // as Kubernetes has it
				look(of.Field(i).Type)
			}
		}
	}
	look(reflect.TypeFor[decisionlog.Entry]())
}

// snippets are the shell lines of the page's chapter on verification.
func snippets(t *testing.T) []string {
	t.Helper()
	_, chapter, _ := strings.Cut(document(t), "## Verification")
	chapter, _, _ = strings.Cut(chapter, "## The key")
	var found []string
	for _, part := range strings.Split(chapter, "```bash\n")[1:] {
		code, _, _ := strings.Cut(part, "```")
		found = append(found, code)
	}
	if len(found) != 2 {
		t.Fatalf("%d snippets", len(found))
	}
	return found
}

// shell runs a snippet in a folder.
func shell(t *testing.T, folder, code string) string {
	t.Helper()
	for _, needed := range []string{"bash", "jq", "openssl", "zcat", "sha256sum"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skip(err)
		}
	}
	command := exec.CommandContext(t.Context(), "bash", "-c", code)
	command.Dir = folder
	out, err := command.CombinedOutput()
	t.Logf("%s%v", out, err)
	return string(out)
}

// TestDocsVerifyALog: the commands of the page verify a log, and find the defects
// of one.
func TestDocsVerifyALog(t *testing.T) {
	w := write(t)
	code := snippets(t)
	pack(t, w.files[0])
	if out := shell(t, w.folder, code[0]); out != "" {
		t.Errorf("the chain is whole, and the output is %q", out)
	}
	all := lines(t, w.files[1])
	_, public, err := w.key.MarshalPEM()
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, filepath.Join(w.folder, "checkpoint.json"), all[5:])
	if err := os.WriteFile(filepath.Join(w.folder, "decision-log.pub"), public, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := shell(t, w.folder, code[1]); !strings.Contains(out, "Verified OK") {
		t.Errorf("the checkpoint is signed, and the output is %q", out)
	}
	rewrite(t, filepath.Join(w.folder, "checkpoint.json"), [][]byte{bytes.Replace(all[5], []byte(`"seq":17`), []byte(`"seq":18`), 1)})
	if out := shell(t, w.folder, code[1]); strings.Contains(out, "Verified OK") {
		t.Errorf("the checkpoint is another one, and the output is %q", out)
	}
	all[2] = bytes.Replace(all[2], []byte("jo@acme"), []byte("mo@acme"), 1)
	rewrite(t, w.files[1], all)
	if out := shell(t, w.folder, code[0]); !strings.Contains(out, "broken at number 15") {
		t.Errorf("a line was changed, and the output is %q", out)
	}
}
