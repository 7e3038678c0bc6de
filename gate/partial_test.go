package gate_test

import (
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestPartOfAnEarlierRepository: the statements of a later repository are not cached without those
// that an earlier one returned, of which only a part was read.
func TestPartOfAnEarlierRepository(t *testing.T) {
	fails := registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.Status(503)}
	for _, c := range []struct {
		reason, verdict string // at the source, an hour ago
		faults          []registrytest.Fault
		want            gate.Result
	}{
		{"a later one is dirty, and a part is not read", "dirty", []registrytest.Fault{fails}, gate.Error},
		{"a later one is dirty, and all is read", "dirty", nil, gate.Deny},
		{"a later one is clean, and all is read", "clean", nil, gate.Allow},
		{"the source does not answer at all", "dirty", []registrytest.Fault{fails, {Kind: registrytest.Manifest, Reference: "att", Do: registrytest.Status(503)}}, gate.Allow},
		{"the source refuses", "dirty", []registrytest.Fault{{Repository: "app", Do: registrytest.Status(403)}}, gate.Error},
	} {
		for _, denies := range []bool{false, true} {
			q := newQuays(t)
			q.client = must(registry.New(registry.Config{}, registry.WithBackoff(time.Millisecond)))(t)
			t.Cleanup(q.client.Close)
			app := q.Build("app", "v1", "app")
			copied := copyTo(q.first, app, "app")
			scan(t, q.env, app, c.verdict, 1, false)
			logged := verifytest.Claim{Signer: q.key, Records: []verifytest.Record{{Time: time.Now().Add(-12 * time.Hour)}}}
			must(0, q.first.AttestLegacy(copied, logged, scanType, map[string]string{"verdict": "clean"}))(t)
			for i := range c.faults {
				if c.faults[i].Reference != "" {
					c.faults[i].Reference = attestationTag(app)
				}
			}
			q.Registry.SetFaults(c.faults...)
			g := q.mirrored(t, scanned(q.env, denies))
			for _, when := range []string{"at first", "once more"} {
				if out := decide(t, g, app.Name); out.Result != c.want {
					t.Errorf("%s, by a deny condition %t, %s: %s, want %s: %+v", c.reason, denies, when, out.Result, c.want, out.Verdicts[0].Reasons)
				}
			}
		}
	}
}
