package convert_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert"
)

// TestSamples hands real verifyImages policies to the importer: each is carried, and
// then compiles, or is refused with paths. TestGoldenCompiles is its twin on policies
// of our own.
func TestSamples(t *testing.T) {
	folder := os.Getenv("QUAYMASTER_SAMPLES")
	if folder == "" {
		t.Skip("QUAYMASTER_SAMPLES names no folder")
	}
	var files []string
	for _, pattern := range []string{"verify-images/*.yaml", "verify-images/conformance/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	carried := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "apiVersion: kyverno.io/v1\nkind: ClusterPolicy") {
			continue
		}
		out, err := convert.Convert(text, convert.Options{From: convert.Kyverno})
		var refusal *convert.Refusal
		switch {
		case errors.As(err, &refusal):
			t.Logf("%s: %v", filepath.Base(file), err)
		case err != nil:
			t.Errorf("%s: %v", file, err)
		default:
			carried++
			compile(t, out)
		}
	}
	if carried == 0 {
		t.Errorf("none of %d policies is carried", len(files))
	}
}
