package config

import (
	"bytes"
	"os"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestShippedConfigurationIsUnderstood: deploy/ configures this program.
func TestShippedConfigurationIsUnderstood(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/install.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var object struct {
			Kind string            `json:"kind"`
			Data map[string]string `json:"data"`
		}
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatal(err)
		}
		if object.Kind != "ConfigMap" {
			continue
		}
		found++
		if c, err := Parse([]byte(object.Data["gateway.yaml"])); err != nil || c.Namespace != "quaymaster" {
			t.Errorf("namespace %q: %v", c.Namespace, err)
		}
	}
	if found != 1 {
		t.Errorf("%d ConfigMaps in deploy/install.yaml", found)
	}
}
