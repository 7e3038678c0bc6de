package engine_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/workload"
)

// TestUnsupportedKind: the error names every kind that a compiler recognises, and no other.
func TestUnsupportedKind(t *testing.T) {
	compilers, err := engine.NewCompilers(engine.CompilerOptions{ConfigMaps: engine.NewResources()})
	if err != nil {
		t.Fatal(err)
	}
	type recogniser interface {
		Recognises(apiVersion, kind string) bool
	}
	all := []recogniser{compilers.Overrides(), compilers.Native, trustRoots{}}
	for _, dialect := range compilers.Dialects() {
		all = append(all, dialect)
	}
	for _, exceptions := range compilers.Exceptions() {
		all = append(all, exceptions)
	}
	objects, err := workload.Read(strings.NewReader("apiVersion: kyverno.io/v1\nkind: ClusterPolicies\nmetadata: {name: a}\n"), "some.yaml")
	if err != nil {
		t.Fatal(err)
	}
	loaded := engine.Documents{Compilers: compilers}
	text := loaded.Add(objects[0]).Error()
	if !strings.HasPrefix(text, "some.yaml, document 1: unsupported kind kyverno.io/v1 ClusterPolicies; supported: ClusterPolicy, ") {
		t.Error(text)
	}
	named := map[recogniser]bool{}
	_, list, _ := strings.Cut(text, "supported: ")
	for _, row := range regexp.MustCompile(`([\w, ]+) \(([\w.]+)/([\w, ]+)\)`).FindAllStringSubmatch(list, -1) {
		for kind := range strings.SplitSeq(strings.TrimSpace(row[1]), ", ") {
			for version := range strings.SplitSeq(row[3], ", ") {
				known := false
				for _, one := range all {
					if one.Recognises(row[2]+"/"+version, kind) {
						known, named[one] = true, true
					}
				}
				if !known {
					t.Errorf("%s/%s %s is not recognised", row[2], version, kind)
				}
			}
		}
	}
	if len(named) != len(all) {
		t.Errorf("%d of %d languages are named in: %s", len(named), len(all), text)
	}
}

// trustRoots are the TrustRoots as one language.
type trustRoots struct{}

func (trustRoots) Recognises(apiVersion, kind string) bool {
	return trustroot.Recognises(apiVersion, kind)
}
