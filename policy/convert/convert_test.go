package convert_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert"
)

var update = flag.Bool("update", false, "write golden files anew")

// input reads a policy of testdata, in which ${file} stands for a file below
// root/etc/pki as JSON text, and ${base64:file} for its bytes in base64.
func input(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(fill(t, string(text)))
}

func fill(t testing.TB, text string) string {
	t.Helper()
	return regexp.MustCompile(`\$\{(base64:)?([a-z.]+)\}`).ReplaceAllStringFunc(text, func(place string) string {
		name, encoded := strings.CutPrefix(strings.Trim(place, "${}"), "base64:")
		data, err := os.ReadFile(filepath.Join("testdata/root/etc/pki", name))
		if err != nil {
			t.Fatal(err)
		}
		if encoded {
			return base64.StdEncoding.EncodeToString(data)
		}
		quoted, err := json.Marshal(string(data))
		if err != nil {
			t.Fatal(err)
		}
		return string(quoted)
	})
}

// rooted are the options of a user who says everything.
func rooted() convert.Options {
	return convert.Options{Files: os.DirFS("testdata/root"), DropSignedIdentity: true}
}

// samples are the policies of testdata, by their format.
func samples() []struct {
	file   string
	format convert.Format
} {
	return []struct {
		file   string
		format convert.Format
	}{
		{"connaisseur.yaml", convert.Connaisseur}, {"connaisseur-warn.yaml", convert.Connaisseur},
		{"notation.json", convert.Notation}, {"notation-global.json", convert.Notation},
		{"containers.json", convert.Containers}, {"openshift.yaml", convert.OpenShift},
		{"ratify-cosign.yaml", convert.Ratify}, {"ratify-notation.yaml", convert.Ratify}, {"ratify-executor.yaml", convert.Ratify},
		{"kyverno.yaml", convert.Kyverno}, {"sigstore.yaml", convert.Sigstore},
	}
}

func TestGolden(t *testing.T) {
	for _, sample := range samples() {
		t.Run(sample.file, func(t *testing.T) {
			got, err := convert.Convert(input(t, sample.file), rooted())
			if err != nil {
				t.Fatal(err)
			}
			options := rooted()
			options.From = sample.format
			again, err := convert.Convert(input(t, sample.file), options)
			if err != nil || !bytes.Equal(got, again) {
				t.Errorf("the format that was recognised is not %s, or the output is not stable: %v", sample.format, err)
			}
			golden := filepath.Join("testdata", strings.TrimSuffix(sample.file, filepath.Ext(sample.file))+".golden.yaml")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
