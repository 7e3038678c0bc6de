package kyverno_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
)

// TestSamples loads every policy of other projects' that is at hand.
func TestSamples(t *testing.T) {
	root := os.Getenv("QUAYMASTER_SAMPLES")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "samples")
	}
	if _, err := os.Stat(root); err != nil {
		t.Skipf("the samples are not at hand (set QUAYMASTER_SAMPLES): %v", err)
	}
	loaded := 0
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, document := range policies(t, text) {
			compiled, err := newCompiler(t, nil).Compile(document, filepath.Base(path))
			if err != nil {
				t.Error(err)
				continue
			}
			if strings.Contains(path, "verify-images") {
				loaded++
				if len(compiled.Rules) == 0 {
					t.Errorf("%s: no rule of it is ours", path)
				}
			} else if len(compiled.Validations)+len(compiled.Mutations)+len(compiled.Generations)+len(compiled.Alterations) == 0 {
				t.Errorf("%s: it has no rules", path)
			}
		}
		return nil
	})
	if err != nil || loaded < 20 {
		t.Errorf("loaded %d policies, %v", loaded, err)
	}
	t.Logf("loaded %d policies", loaded)
}

// policies returns the documents of a file that are of the dialect.
func policies(t *testing.T, text []byte) [][]byte {
	t.Helper()
	var list [][]byte
	reader := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(document, &head); err != nil {
			t.Fatal(err)
		}
		if kyverno.Recognises(head.APIVersion, head.Kind) {
			list = append(list, document)
		}
	}
}
