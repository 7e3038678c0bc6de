package config

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/deletion"
)

// TestCleanup: each setting that is accepted has a twin that is refused.
func TestCleanup(t *testing.T) {
	for _, row := range []struct{ reason, text, refused string }{
		{"none", "", ""},
		{"all", "cleanup: {ttl: true, limit: 5, qps: 2, allowedKinds: [Namespace, apiextensions.k8s.io/CustomResourceDefinition], allowedNamespaces: [kube-public]}", ""},
		{"an unknown field", "cleanup: {tll: true}", "ttl"},
		{"a negative limit", "cleanup: {limit: -1}", "cleanup.limit"},
		{"a negative rate", "cleanup: {qps: -1}", "cleanup.qps"},
		{"a kind with a version", "cleanup: {allowedKinds: [v1/Namespace/x]}", "cleanup.allowedKinds"},
		{"a pattern", "cleanup: {allowedKinds: ['*']}", "cleanup.allowedKinds"},
		{"no name", "cleanup: {allowedNamespaces: ['*']}", "cleanup.allowedNamespaces"},
	} {
		c, err := Parse([]byte(head + row.text + "\n"))
		if row.refused == "" && err != nil || row.refused != "" && (err == nil || !strings.Contains(err.Error(), row.refused)) {
			t.Errorf("%s: %v", row.reason, err)
		}
		if row.reason == "none" && (c.Cleanup.Limit != deletion.DefaultLimit || c.Cleanup.QPS != 10 || c.Cleanup.TTL) {
			t.Errorf("%+v", c.Cleanup)
		}
		if row.reason == "all" && len(c.Cleanup.Kinds()) != 2 {
			t.Errorf("%+v", c.Cleanup.Kinds())
		}
	}
}
