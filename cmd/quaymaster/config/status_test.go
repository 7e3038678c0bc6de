package config

import (
	"testing"
)

// TestStatusWritingSetting: a setting is one of the choices, or true or false.
func TestStatusWritingSetting(t *testing.T) {
	for text, want := range map[string]StatusWriting{
		"auto": StatusAuto, "always": StatusAlways, "never": StatusNever, "true": StatusAlways, "false": StatusNever,
		`"true"`: "", "Auto": "", "1": "", `""`: "", "[]": "",
	} {
		c, err := Parse([]byte("apiVersion: " + APIVersion + "\nkind: " + Kind + "\npolicies: {writeStatus: " + text + "}\n"))
		if (err != nil) != (want == "") || err == nil && c.Policies.WriteStatus != want {
			t.Errorf("%s: %q, %v", text, c.Policies.WriteStatus, err)
		}
	}
}
