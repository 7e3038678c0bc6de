package config

import (
	"strings"
	"testing"
)

func TestGuardSettings(t *testing.T) {
	const head = "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\n"
	for _, c := range []struct{ text, refused string }{
		{"guard: enabled\n", ""},
		{"guard: disabled\n", ""},
		{"guard: on-fridays\n", "want enabled or disabled"},
		{"guard: enabled\nstandalone: true\npolicies: {folders: [/p]}\n", "nothing runs that a policy could be tried against"},
		{"policies: {folders: [/p], audit: [cluster, folders, /p]}\n", ""},
		{"policies: {audit: [/p]}\n", "policies.audit"},
		{"standalone: true\npolicies: {folders: [/p], audit: [cluster]}\n", "there is none"},
	} {
		_, err := Parse([]byte(head + c.text))
		if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}
