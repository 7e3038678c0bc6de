package policytest_test

import (
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/policy/policytest"
)

func ExampleSubject() {
	s := policytest.Subject(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "shop"},
	})
	fmt.Println(s.Group, s.Version, s.Kind, s.Namespace, s.Name)
	// Output: apps v1 Deployment shop web
}

func TestStored(t *testing.T) {
	object := policytest.Stored(t, "{apiVersion: v1, kind: Node, metadata: {name: a}}")
	if object.Group != "" || object.Version != "v1" || object.Document || !object.NamespaceKnown || object.NamespaceLabels["env"] != "test" {
		t.Errorf("an object: %+v", object)
	}
	document := policytest.Stored(t, "{metadata: {name: a}}")
	if !document.Document || document.NamespaceKnown || document.Object.Map()["metadata"] == nil {
		t.Errorf("a document: %+v", document)
	}
}
