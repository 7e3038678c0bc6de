package replicas

import (
	"log/slog"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/quaymaster/quaymaster/internal/testkit"
)

// TestJoin: a replica without an address, or with a certificate that the others cannot verify, uses
// no other replica, and the log names the setting.
func TestJoin(t *testing.T) {
	for _, row := range []struct {
		reason, address string
		config          Config
		joins           bool
		logged          string
	}{
		{"all is known", "192.0.2.1:9443", Config{}, true, ""},
		{"disabled", "192.0.2.1:9443", Config{Disabled: true}, false, ""},
		{"no address", "", Config{}, false, "peers.address"},
		{"no authority", "192.0.2.1:9443", Config{Unverifiable: true}, false, "certificate.caFile"},
	} {
		log := &testkit.Log{}
		row.config.Leases, row.config.Namespace, row.config.Identity = fake.NewClientset().CoordinationV1(), "quaymaster", "a"
		row.config.Log = slog.New(slog.NewTextHandler(log, nil))
		r := New(row.config)
		if err := r.Join(row.address); err != nil {
			t.Fatalf("%s: %v", row.reason, err)
		}
		if joined := r.members != nil; joined != row.joins {
			t.Errorf("%s: joined: %t", row.reason, joined)
		}
		if text := log.String(); !strings.Contains(text, row.logged) || row.logged == "" && text != "" {
			t.Errorf("%s: logged %q", row.reason, text)
		}
		if row.joins {
			continue
		}
		if client, err := r.Client([]byte("key")); client != nil || err != nil {
			t.Errorf("%s: a client of no replica: %v", row.reason, err)
		}
	}
}
