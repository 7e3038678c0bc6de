package gateway

import (
	"maps"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestParseSample(t *testing.T) {
	for _, row := range []struct {
		reason, line string
		want         Sample
	}{
		{"without labels", "up 1", Sample{"up", nil, 1}},
		{"with labels", `n_total{host="h:5000",status="200"} 12`, Sample{"n_total", map[string]string{"host": "h:5000", "status": "200"}, 12}},
		{"a label with everything that separates", `n{a="},\"= x\\"} 1.5e+03`, Sample{"n", map[string]string{"a": `},"= x\`}, 1500}},
		{"with a time", "n 4 1700000000000", Sample{"n", nil, 4}},
		{"empty braces", "n{} 4", Sample{"n", nil, 4}},
	} {
		got, err := parseSample(row.line)
		if err != nil || got.Name != row.want.Name || got.Value != row.want.Value || !maps.Equal(got.Labels, row.want.Labels) {
			t.Errorf("%s: got %+v, %v, want %+v", row.reason, got, err, row.want)
		}
	}
	for _, line := range []string{"", "n", "n{", `n{a="b`, `n{a} 1`, "n x"} {
		if got, err := parseSample(line); err == nil {
			t.Errorf("%q was read as %+v", line, got)
		}
	}
}

func TestSum(t *testing.T) {
	samples := []Sample{
		{"n", map[string]string{"host": "a", "status": "200"}, 1},
		{"n", map[string]string{"host": "a", "status": "404"}, 2},
		{"n", map[string]string{"host": "b", "status": "200"}, 4},
		{"m", map[string]string{"host": "a"}, 8},
	}
	if got := Sum(samples, "n"); got != 7 {
		t.Errorf("all: %v", got)
	}
	if got := Sum(samples, "n", "host", "a", "status", "404"); got != 2 {
		t.Errorf("one: %v", got)
	}
	if got := Sum(samples, "n", "zone", "x"); got != 0 {
		t.Errorf("none: %v", got)
	}
}

// TestConfigurationIsShort: what a test does not set is not in the file.
func TestConfigurationIsShort(t *testing.T) {
	empty, err := yaml.Marshal(Configuration{})
	if err != nil || string(empty) != "{}\n" {
		t.Errorf("nothing is written as %q, %v", empty, err)
	}
	var c Configuration
	c.PlainHTTP("127.0.0.1:5000")
	c.Ages.Tag = "30s"
	got, err := yaml.Marshal(c)
	if want := "ages:\n  tag: 30s\nregistries:\n  hosts:\n    127.0.0.1:5000:\n      plainHTTP: true\n"; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
