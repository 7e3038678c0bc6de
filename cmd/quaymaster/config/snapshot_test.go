package config

import (
	"testing"
)

func TestSnapshotSettings(t *testing.T) {
	const head = "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\n"
	for reason, test := range map[string]struct {
		text string
		ok   bool
	}{
		"nothing set":                 {"", true},
		"a folder":                    {"snapshot: {folder: /var/cache/quaymaster/kept, interval: 1m}\n", true},
		"none":                        {"snapshot: {disabled: true}\n", true},
		"a folder, and none":          {"snapshot: {disabled: true, folder: /kept}\n", false},
		"all the time":                {"snapshot: {interval: 10ms}\n", false},
		"never stale":                 {"ages: {stale: 0s}\n", true},
		"a week":                      {"ages: {stale: 168h}\n", true},
		"longer than the limit":       {"ages: {stale: 169h}\n", false},
		"a field that is none":        {"snapshot: {secret: x}\n", false},
		"an interval that is no time": {"snapshot: {interval: often}\n", false},
	} {
		if _, err := Parse([]byte(head + test.text)); (err == nil) != test.ok {
			t.Errorf("%s: %v", reason, err)
		}
	}
}
