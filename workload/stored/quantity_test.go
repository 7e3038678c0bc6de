package stored_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/workload"
	"github.com/quaymaster/quaymaster/workload/stored"
)

// TestLargeQuantity: an object with an exponent that takes minutes stays as it is written, at once.
func TestLargeQuantity(t *testing.T) {
	const pod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"commit": "1e9999999"}},
		"spec": {"nodeName": "", "containers": [{"name": "web", "resources": {"requests": {"cpu": %s}}}], "volumes": [{"name": "v", "emptyDir": {"sizeLimit": %s}}]}}`
	for _, c := range []struct {
		cpu, size string
		decoded   bool
	}{
		{`"1e-99999999"`, `"1"`, false},
		{`1e-99999999`, `"1"`, false},
		{`"1"`, `"1e-99999999"`, false},
		{`"1e-3"`, `"1Gi"`, true},
	} {
		o, err := workload.Parse(fmt.Appendf(nil, pod, c.cpu, c.size))
		if err != nil {
			t.Fatal(err)
		}
		if decoded := !strings.Contains(string(stored.Object(o).JSON()), "nodeName"); decoded != c.decoded {
			t.Errorf("%s, %s: decoded: %t", c.cpu, c.size, decoded)
		}
	}
}
