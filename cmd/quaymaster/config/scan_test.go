package config

import (
	"strings"
	"testing"
	"time"
)

func TestScanSettings(t *testing.T) {
	const head = "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\n"
	c, err := Parse([]byte(head))
	if err != nil || c.Scan.Disabled || time.Duration(c.Scan.Interval) != time.Hour || c.Scan.QPS != 10 || c.Scan.PerHost != 4 || c.Scan.Total != 16 {
		t.Errorf("defaults: %+v, %v", c.Scan, err)
	}
	for _, row := range []struct{ reason, good, bad, complaint string }{
		{"all the time", "{interval: 1m}", "{interval: 30s}", "scan.interval"},
		{"to one registry and no other", "{perHost: 2, total: 2}", "{perHost: 2}", "perHost"},
		{"less than nothing", "{qps: 1, registryQPS: 1}", "{qps: -1}", "qps"},
		{"no pattern", "{excludedNamespaces: ['a*']}", "{excludedNamespaces: ['']}", "a pattern is empty"},
	} {
		if _, err := Parse([]byte(head + "scan: " + row.good + "\n")); err != nil {
			t.Errorf("%s: %v", row.good, err)
		}
		if _, err := Parse([]byte(head + "scan: " + row.bad + "\n")); err == nil || !strings.Contains(err.Error(), row.complaint) {
			t.Errorf("%s: %v, want %q", row.reason, err, row.complaint)
		}
	}
}
