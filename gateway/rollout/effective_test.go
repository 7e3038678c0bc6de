package rollout

import (
	"crypto/rand"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/rollout"
)

const labelPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
  - name: label
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: label it, pattern: {metadata: {labels: {team: "?*"}}}}
`

// newCatalog is a catalog and its effective policies.
func newCatalog(t *testing.T, sources []string) (*Effective, *catalog.Catalog) {
	t.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := kyverno.New(kyverno.Options{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	now := NewEffective(sources, slog.New(slog.NewTextHandler(io.Discard, nil)))
	found, err := catalog.New(catalog.Options{Dialects: []catalog.Dialect{kyverno.Policies{Compiler: compiler}}, Effective: now.Of})
	if err != nil {
		t.Fatal(err)
	}
	now.Compiler(found.Compile)
	return now, found
}

func put(found *catalog.Catalog, key, text string) *policy.Policy {
	return found.Put(catalog.Document{Key: key, Text: []byte(text), Source: key}).Set.Policies()[0]
}

// TestAudits: a source is named by its kind, and no other audits for it.
func TestAudits(t *testing.T) {
	for _, c := range []struct {
		key   string
		audit []string
		want  bool
	}{
		{"in-cluster/clusterpolicies/a", nil, false},
		{"in-cluster/clusterpolicies/a", []string{"cluster"}, true},
		{"in-cluster/clusterpolicies/a", []string{"folders", "/policies"}, false},
		{"folder//policies/a.yaml#000000", []string{"cluster"}, false},
		{"folder//policies/a.yaml#000000", []string{"folders"}, true},
		{"folder//policies/a.yaml#000000", []string{"/policies/"}, true},
		{"folder//policies/a.yaml#000000", []string{"/policies/a.yaml"}, true},
		{"folder//policies-of-others/a.yaml#000000", []string{"/policies"}, false},
		{"folder//policies/a.yaml#000000", []string{"/other"}, false},
	} {
		if got := audits(c.audit, c.key); got != c.want {
			t.Errorf("%s of %v: %t", c.key, c.audit, got)
		}
	}
}

// TestInForce: without approvals a policy is itself, and with them a change waits behind what
// was approved, which is compiled again from the text in the approvals.
func TestInForce(t *testing.T) {
	now, found := newCatalog(t, nil)
	const key = kinds.FromCluster + "/clusterpolicies/signed"
	first := put(found, key, labelPolicy)
	if first.AuditedBy != "" || now.stands(first.ID()) != rollout.Itself {
		t.Errorf("nothing is known, and it is %q", first.AuditedBy)
	}
	there, all, err := now.approvable(found)
	if err != nil || len(there) != 1 || len(all) != 1 {
		t.Fatalf("%v of %v, %v", there, all, err)
	}
	now.approvals.Store(rollout.New(versionsOf(there)...))
	changed := strings.Replace(labelPolicy, "team:", "tier:", 1)
	if p := put(found, key, changed); p.AuditedBy != "" || !strings.Contains(p.Source, "as it was approved") || now.stands(p.ID()) != rollout.Previous {
		t.Errorf("a change: %+v", p)
	}
	if _, guard := now.Count(found.Snapshot().Entries); guard != 1 || !strings.Contains(now.Why(found.Snapshot().Entries[0]), "the previous version remains active") {
		t.Errorf("%d are held; %q", guard, now.Why(found.Snapshot().Entries[0]))
	}
	now.Reset() // what policies are compiled with has changed
	if p := found.Publish().Set.Policies()[0]; !strings.Contains(p.Source, "as it was approved") {
		t.Errorf("after it was forgotten: %+v", p)
	}
	if p := put(found, key, strings.Replace(changed, "{name: signed}", "{name: signed, annotations: {quaymaster.dev/guard: accepted}}", 1)); strings.Contains(p.Source, "approved") || p.AuditedBy != "" {
		t.Errorf("accepted: %+v", p)
	}
	if p := put(found, key, strings.Replace(changed, "Enforce", "Audit", 1)); strings.Contains(p.Source, "approved") || !p.AuditOnly {
		t.Errorf("its author has it audit: %+v", p)
	}
	other := put(found, key, strings.Replace(labelPolicy, "name: signed", "name: another", 1))
	if other.AuditedBy != ByRollout || !other.AuditOnly {
		t.Errorf("a new one: %+v", other)
	}
	if len(found.Remove(key).Set.Policies()) != 0 {
		t.Error("a deletion is held")
	}
}

// TestSourceAudits: the setting has precedence, and policies it audits are not approved.
func TestSourceAudits(t *testing.T) {
	now, found := newCatalog(t, []string{auditCluster})
	if p := put(found, kinds.FromCluster+"/clusterpolicies/signed", labelPolicy); p.AuditedBy != BySetting || !p.AuditOnly {
		t.Errorf("%+v", p)
	}
	if there, all, err := now.approvable(found); err != nil || len(there) != 0 || len(all) != 1 {
		t.Errorf("approved would be %v of %v, %v", there, all, err)
	}
	source, guard := now.Count(found.Snapshot().Entries)
	if source != 1 || guard != 0 || !strings.Contains(now.Why(found.Snapshot().Entries[0]), "policies.audit") {
		t.Errorf("%d of the source, %d held", source, guard)
	}
	if p := put(found, "folder/x#0", strings.Replace(labelPolicy, "name: signed", "name: a", 1)); p.AuditedBy != "" {
		t.Errorf("of another source: %+v", p)
	}
}

// TestBesides: what follows from policies denies nothing where none of them does, and where
// it denies, none that the guard has audit takes an image out of it.
func TestBesides(t *testing.T) {
	image := func(name, by string) *policy.Policy {
		return &policy.Policy{Kind: "ClusterImagePolicy", Name: name, Settings: policy.Settings{AuditedBy: by}}
	}
	in, waits, audits := image("in", ""), image("waits", ByRollout), image("audits", BySetting)
	for _, c := range []struct {
		reason string
		audit  []string
		chosen bool
		active []*policy.Policy
		want   string
		names  string // what images
	}{
		{"one is in force", nil, false, []*policy.Policy{in, waits}, "", "in"},
		{"all are in force", nil, false, []*policy.Policy{in, image("too", "")}, "", "in too"},
		{"the only one is held", nil, false, []*policy.Policy{waits}, ByRollout, "waits"},
		{"requireMatch is set", nil, true, []*policy.Policy{waits}, "", ""},
		{"and one is in force", nil, true, []*policy.Policy{in, waits}, "", "in"},
		{"the source audits", []string{auditCluster}, true, []*policy.Policy{audits}, BySetting, "audits"},
		{"the source audits, and one of another is in force", []string{auditCluster}, true, []*policy.Policy{in, audits}, "", "in audits"},
		{"and one of another is held", []string{auditCluster}, true, []*policy.Policy{in, audits, waits}, "", "in audits"},
	} {
		now, _ := newCatalog(t, c.audit)
		var names []string
		follows := func(active []*policy.Policy) ([]*policy.Policy, error) {
			for _, p := range active {
				names = append(names, p.Name)
			}
			return []*policy.Policy{{Name: "rest"}}, nil
		}
		given := slices.Clone(c.active)
		made, err := now.Merged(follows, c.chosen)(c.active)
		if err != nil || len(made) != 1 || made[0].AuditedBy != c.want || strings.Join(names, " ") != c.names || !slices.Equal(given, c.active) {
			t.Errorf("%s: %+v of %q, %v", c.reason, made, names, err)
		}
	}
}
