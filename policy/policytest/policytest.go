// Package policytest is shared by the tests of several dialects: objects as policies get them, and the
// decisions of policies that delete. It implements no specification.
package policytest

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
)

// Object reads an object of YAML.
func Object(t testing.TB, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// Subject is an object with its kind, name and namespace, and nothing else.
func Subject(object map[string]any) *policy.Subject {
	s := &policy.Subject{Object: policy.ContentOf(object)}
	version, _ := object["apiVersion"].(string)
	group, version, grouped := strings.Cut(version, "/")
	if !grouped {
		group, version = "", group
	}
	s.Group, s.Version = group, version
	s.Kind, _ = object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	s.Name, _ = metadata["name"].(string)
	s.Namespace, _ = metadata["namespace"].(string)
	return s
}

// Stored is the object of a YAML text, in a namespace with the label env=test; without a kind, it is a
// document.
func Stored(t testing.TB, text string) *policy.Subject {
	t.Helper()
	s := Subject(Object(t, text))
	if s.Kind == "" {
		s.Document = true
		return s
	}
	s.NamespaceLabels, s.NamespaceKnown = map[string]string{"env": "test"}, true
	return s
}

// Deletion returns the decision of the first rule that deletes, as in "skip: PATH: REASON"; empty where it does
// not select the object.
func Deletion(t testing.TB, p *policy.Policy, c policy.Case) string {
	t.Helper()
	decided := p.Deletions[0].Decide(t.Context(), c)
	text := string(decided.Result)
	for _, r := range decided.Reasons {
		text += ": " + r.Path + ": " + r.Message
	}
	return text
}

// Compiler is that of a dialect.
type Compiler interface {
	Compile(text []byte, source string) (*policy.Policy, error)
	Broken(text []byte, source string, why error) *policy.Policy
}

// DeletesWithin fails if a policy of a namespace deletes an object beyond it. Text and object, both YAML, may
// be anything.
func DeletesWithin(t *testing.T, c Compiler, text, object string) {
	t.Helper()
	p, err := c.Compile([]byte(text), "fuzz")
	if err != nil {
		c.Broken([]byte(text), "fuzz", err)
		return
	}
	var content map[string]any
	if yaml.Unmarshal([]byte(object), &content) != nil || content == nil {
		return
	}
	s := &policy.Subject{Object: policy.ContentOf(content), Version: "v1", Kind: "Pod", Namespace: "elsewhere", Name: "web"}
	for _, d := range p.Deletions {
		if got := d.Decide(t.Context(), policy.Case{Subject: s}); got.Result == policy.Pass && p.Namespace != "" && p.Namespace != s.Namespace {
			t.Fatalf("%s deletes in %s", p.ID(), s.Namespace)
		}
	}
}
