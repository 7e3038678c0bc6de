package engine_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/workload"
)

// TestLeftAside: documents of the kinds that are not implemented are named, and no others.
func TestLeftAside(t *testing.T) {
	for _, c := range []struct {
		apiVersion, kind string
		is               bool
	}{
		{"policies.kyverno.io/v1", "DeletingPolicy", true},
		{"policies.kyverno.io/v1beta1", "NamespacedGeneratingPolicy", true},
		{"kyverno.io/v2", "ClusterCleanupPolicy", true},
		{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", true},
		{"policies.kyverno.io/v1", "ValidatingPolicy", false},
		{"kyverno.io/v1", "ClusterPolicy", false},
		{"example.com/v1", "DeletingPolicy", false},
		{"kyverno.io/v2", "DeletingPolicy", false},
		{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", false},
		{"v1", "Pod", false},
	} {
		objects, err := workload.Read(strings.NewReader("apiVersion: "+c.apiVersion+"\nkind: "+c.kind+"\nmetadata: {name: a}\n"), "some.yaml")
		if err != nil || len(objects) != 1 {
			t.Fatal(objects, err)
		}
		got := engine.LeftAside(objects[0])
		if (got != "") != c.is || c.is && (!strings.Contains(got, "some.yaml") || !strings.Contains(got, c.kind+" a")) {
			t.Errorf("%s %s: %q", c.apiVersion, c.kind, got)
		}
	}
}

// TestUnsupportedKind: the error names every kind that a compiler recognises, and no other.
func TestUnsupportedKind(t *testing.T) {
	compilers, err := engine.NewCompilers(engine.CompilerOptions{ConfigMaps: engine.NewResources()})
	if err != nil {
		t.Fatal(err)
	}
	type recogniser interface {
		Recognises(apiVersion, kind string) bool
	}
	all := []recogniser{compilers.Overrides(), trustRoots{}}
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
