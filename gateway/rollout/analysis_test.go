package rollout

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/rollout"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/scan/dryrun"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// published publishes the catalog's policies.
type published struct {
	gateway.Signal
	catalog *catalog.Catalog
	set     *set.Set
}

func (p *published) Policies() *set.Set { return p.set }

func (p *published) Republish(string) {
	p.set = p.catalog.Publish().Set
	p.Notify()
}

// newAnalysis is a leader of a cluster with a Secret of the guard, which has nothing to try.
func newAnalysis(t *testing.T, secret []byte) *Analysis {
	t.Helper()
	now, found := newCatalog(t, nil)
	client := fake.NewClientset(&core.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "quaymaster", Name: approvalSecret, ResourceVersion: "7"},
		Data:       map[string][]byte{approvalEntry: secret},
	})
	put(found, kinds.FromCluster+"/clusterpolicies/signed", labelPolicy)
	return NewAnalysis(Config{
		Effective: now, Catalog: found, Policies: &published{catalog: found}, Approvals: NewStore(client.CoreV1().Secrets("quaymaster")),
		Metrics: metrics.New(metrics.Build{}), Log: slog.New(slog.DiscardHandler),
	}, nil)
}

// TestApprovalsAreDamaged: the leader rewrites the Secret from its own approvals; without any, all
// present policies are approved, as without the rollout. Data of a later version is left.
func TestApprovalsAreDamaged(t *testing.T) {
	later, err := rollout.New().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		reason string
		secret []byte
		knows  bool // the leader has the approvals
		want   rollout.Effect
	}{
		{"damaged, and the approvals are known", []byte("x"), true, rollout.Itself},
		{"emptied", nil, true, rollout.Itself},
		{"damaged, at a start", []byte("x"), false, rollout.Itself},
		{"whole, and nothing was approved", later, false, rollout.Audited},
	} {
		t.Run(row.reason, func(t *testing.T) {
			tries := newAnalysis(t, row.secret)
			now := tries.config.Effective
			there, _, err := now.approvable(tries.config.Catalog)
			if err != nil {
				t.Fatal(err)
			}
			v := there["ClusterPolicy/signed"].version
			if row.knows {
				now.approvals.Store(rollout.New(v))
			}
			tries.of[v.ID] = tried{hash: v.Hash, next: time.Now().Add(time.Hour)} // not now
			if err := tries.round(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			approvals, _, err := tries.config.Approvals.load(t.Context())
			if err != nil || approvals.Of(v, time.Now()) != row.want || !approvals.Equal(now.approvals.Load()) {
				t.Errorf("it is %s, want %s; %v", approvals.Of(v, time.Now()), row.want, err)
			}
		})
	}
	var newer bytes.Buffer
	w := gzip.NewWriter(&newer)
	if _, err := w.Write([]byte(`{"version":2,"policies":{}}`)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	tries := newAnalysis(t, newer.Bytes())
	if err := tries.round(t.Context(), nil); !errors.Is(err, rollout.ErrVersion) || errors.Is(err, errDamaged) || !strings.Contains(err.Error(), approvalSecret) {
		t.Errorf("of a later version: %v", err)
	}
}

// TestNameIsUsedAgain: a policy that went long ago does not come back with another one of
// its name, neither at once nor when the leader has noted it, and no dry run compares the two.
// One that was replaced by force goes on.
func TestNameIsUsedAgain(t *testing.T) {
	const key = kinds.FromCluster + "/clusterpolicies/signed"
	another := strings.Replace(labelPolicy, "team:", "tier:", 1)
	for _, row := range []struct {
		reason string
		went   time.Duration // ago
		text   string
		want   rollout.Effect
		by     string
		before int
	}{
		{"its name is used again", 24 * time.Hour, another, rollout.Audited, ByRollout, 0},
		{"it is replaced by force", time.Second, another, rollout.Previous, "", 1},
		{"it comes back as it was", 24 * time.Hour, labelPolicy, rollout.Itself, "", 1},
	} {
		t.Run(row.reason, func(t *testing.T) {
			tries := newAnalysis(t, nil)
			c := tries.config
			now, found := c.Effective, c.Catalog
			_, all, err := now.approvable(found)
			if err != nil {
				t.Fatal(err)
			}
			found.Remove(key)
			c.approve("", rollout.New(all...).There(time.Now().Add(-row.went)))
			p := put(found, key, row.text)
			_, all, err = now.approvable(found)
			if err != nil {
				t.Fatal(err)
			}
			tries.of[p.ID()] = tried{hash: all[0].Hash, next: time.Now().Add(time.Hour)} // not now
			for _, when := range []string{"at once", "once it is noted"} {
				c.approve("", now.approvals.Load())
				p = c.Policies.Policies().Policies()[0]
				if now.stands(p.ID()) != row.want || p.AuditedBy != row.by {
					t.Errorf("%s: it is %s, by %q, want %s", when, now.stands(p.ID()), p.AuditedBy, row.want)
				}
				if _, before := c.withoutBefore(p, p.ID()); len(before) != row.before {
					t.Errorf("%s: it is compared with %d", when, len(before))
				}
				if err := tries.round(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestAuditedPoliciesStay: a policy that its source audits is not gone, so that its approved
// version is in force when the audit ends.
func TestAuditedPoliciesStay(t *testing.T) {
	for _, row := range []struct {
		reason string
		remove bool
		gone   bool
	}{
		{"it audits", false, false},
		{"it is deleted", true, true},
	} {
		tries := newAnalysis(t, nil)
		c := tries.config
		now, found := c.Effective, c.Catalog
		_, all, err := now.approvable(found)
		if err != nil {
			t.Fatal(err)
		}
		now.approvals.Store(rollout.New(all...))
		now.sources = []string{auditCluster}
		found.Publish()
		if row.remove {
			found.Remove(kinds.FromCluster + "/clusterpolicies/signed")
		}
		if err := tries.round(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if before, known := now.approvals.Load().Before(all[0].ID); !known || before.Gone != row.gone {
			t.Errorf("%s: known %t, gone %t", row.reason, known, before.Gone)
		}
	}
}

// TestTenantsWait: a policy of the cluster is tried before those of namespaces, and none of
// those that wait keeps one waiting that comes meanwhile.
func TestTenantsWait(t *testing.T) {
	now := time.Now()
	there := map[string]candidate{
		"Policy/a/first": {policy: &policy.Policy{Namespace: "a"}}, "Policy/b/second": {policy: &policy.Policy{Namespace: "b"}},
		"ValidatingPolicy/all": {policy: &policy.Policy{}}, "ValidatingPolicy/more": {policy: &policy.Policy{}},
	}
	tries := newAnalysis(t, nil)
	tries.of = map[string]tried{"Policy/a/first": {next: now}, "ValidatingPolicy/all": {next: now}}
	got := tries.inOrder(slices.Sorted(maps.Keys(there)), there)
	if want := []string{"ValidatingPolicy/more", "ValidatingPolicy/all", "Policy/b/second", "Policy/a/first"}; !slices.Equal(got, want) {
		t.Errorf("they are tried as %v, want %v", got, want)
	}

	c := tries.config
	put(c.Catalog, kinds.FromCluster+"/policies/own", strings.NewReplacer("ClusterPolicy", "Policy", "{name: signed}", "{name: own, namespace: a}").Replace(labelPolicy))
	empty, err := set.New()
	if err != nil {
		t.Fatal(err)
	}
	env, err := gatetest.NewEnv()
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	tries.dryRun, err = dryrun.New(dryrun.Options{
		Cluster: scan.NewFiles(nil, nil), Namespaces: unlabelled{}, State: gate.Fixed{Policies: empty, Prover: env.Prover},
		Decider: func(gate.State) (scan.Decider, func(), error) { return nil, func() {}, nil }, // there is nothing to judge
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Effective.approvals.Store(rollout.New())
	for round, want := range []rollout.Effect{rollout.Audited, rollout.Itself} {
		if err := tries.round(t.Context(), c.Policies.Changed()); err != nil {
			t.Fatal(err)
		}
		if all, own := c.Effective.stands("ClusterPolicy/signed"), c.Effective.stands("Policy/a/own"); all != rollout.Itself || own != want {
			t.Errorf("round %d: the cluster's is %s, and the namespace's %s, want %s", round, all, own, want)
		}
	}
}

type unlabelled struct{}

func (unlabelled) Labels(context.Context, string) (map[string]string, error) { return nil, nil }
