package suite

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/policy/suite/document"
	"github.com/quaymaster/quaymaster/policy/suite/fixtures"
	"github.com/quaymaster/quaymaster/workload"
)

// FuzzParse reads any text as a suite's file: it never panics, and an
// accepted file has valid rows.
func FuzzParse(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*/*test.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("%d seeds: %v", len(seeds), err)
	}
	for _, seed := range seeds {
		text, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		documents, err := workload.ReadDocuments(bytes.NewReader(text), "suite")
		if err != nil {
			return
		}
		for _, one := range documents {
			document.IsSuite(one)
			d, err := document.Parse(one.JSON(), &fixtures.Unknown{})
			if err != nil {
				continue
			}
			for _, r := range d.Results {
				if r.Policy == "" || r.Result == "" {
					t.Errorf("a row without a policy or a result was taken: %+v", r)
				}
			}
		}
	})
}
