package gateway

import (
	"crypto/rand"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/held"
	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/kyverno"
)

const heldPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
  - name: label
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: label it, pattern: {metadata: {labels: {team: "?*"}}}}
`

// newHeld is a catalog with what is in force of it.
func newHeld(t *testing.T, c Configuration) (*inForce, *catalog.Catalog) {
	t.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := kyverno.New(kyverno.Options{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	now := newInForce(c, slog.New(slog.NewTextHandler(io.Discard, nil)))
	found, err := catalog.New(catalog.Options{Dialects: []catalog.Dialect{kyverno.Policies{Compiler: compiler}}, InForce: now.of})
	if err != nil {
		t.Fatal(err)
	}
	now.compile = found.Compile
	return now, found
}

func put(found *catalog.Catalog, key, text string) *policy.Policy {
	return found.Put(catalog.Document{Key: key, Text: []byte(text), Source: key}).Set.Policies()[0]
}

// TestAudits: a source is named by what it is, and no other audits for it.
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
		if got := (Policies{Audit: c.audit}).audits(c.key); got != c.want {
			t.Errorf("%s of %v: %t", c.key, c.audit, got)
		}
	}
}

// TestInForce: without a ledger a policy is itself, and with one a change waits behind what
// was approved, which is compiled again from what the ledger kept.
func TestInForce(t *testing.T) {
	now, found := newHeld(t, Configuration{Guard: guardEnabled})
	const key = fromCluster + "/clusterpolicies/signed"
	first := put(found, key, heldPolicy)
	if first.AuditedBy != "" || now.stands(first.ID()) != held.Itself {
		t.Errorf("nothing is known, and it is %q", first.AuditedBy)
	}
	there, err := now.approvable(found)
	if err != nil || len(there) != 1 {
		t.Fatalf("%v, %v", there, err)
	}
	now.ledger.Store(held.New(versionsOf(there)...))
	changed := strings.Replace(heldPolicy, "team:", "tier:", 1)
	if p := put(found, key, changed); p.AuditedBy != "" || !strings.Contains(p.Source, "as it was approved") || now.stands(p.ID()) != held.Previous {
		t.Errorf("a change: %+v", p)
	}
	if _, guard := now.count(found.Snapshot().Entries); guard != 1 || !strings.Contains(now.why(found.Snapshot().Entries[0]), "the version before stays in force") {
		t.Errorf("%d are held; %q", guard, now.why(found.Snapshot().Entries[0]))
	}
	now.forget() // what policies are compiled with has changed
	if p := found.Publish().Set.Policies()[0]; !strings.Contains(p.Source, "as it was approved") {
		t.Errorf("after it was forgotten: %+v", p)
	}
	if p := put(found, key, strings.Replace(changed, "{name: signed}", "{name: signed, annotations: {quaymaster.dev/guard: accepted}}", 1)); strings.Contains(p.Source, "approved") || p.AuditedBy != "" {
		t.Errorf("accepted: %+v", p)
	}
	if p := put(found, key, strings.Replace(changed, "Enforce", "Audit", 1)); strings.Contains(p.Source, "approved") || !p.AuditOnly {
		t.Errorf("its author has it audit: %+v", p)
	}
	other := put(found, key, strings.Replace(heldPolicy, "name: signed", "name: another", 1))
	if other.AuditedBy != byGuard || !other.AuditOnly {
		t.Errorf("a new one: %+v", other)
	}
	if len(found.Remove(key).Set.Policies()) != 0 {
		t.Error("a deletion is held")
	}
}

// TestSourceAudits: the setting has precedence, and what it has audit is not approved.
func TestSourceAudits(t *testing.T) {
	now, found := newHeld(t, Configuration{Guard: guardEnabled, Policies: Policies{Audit: []string{auditCluster}}})
	if p := put(found, fromCluster+"/clusterpolicies/signed", heldPolicy); p.AuditedBy != bySetting || !p.AuditOnly {
		t.Errorf("%+v", p)
	}
	if there, err := now.approvable(found); err != nil || len(there) != 0 {
		t.Errorf("approved would be %v, %v", there, err)
	}
	source, guard := now.count(found.Snapshot().Entries)
	if source != 1 || guard != 0 || !strings.Contains(now.why(found.Snapshot().Entries[0]), "policies.audit") {
		t.Errorf("%d of the source, %d held", source, guard)
	}
	if p := put(found, "folder/x#0", strings.Replace(heldPolicy, "name: signed", "name: a", 1)); p.AuditedBy != "" {
		t.Errorf("of another source: %+v", p)
	}
}

// TestBesides: what follows from policies denies nothing where none of them does.
func TestBesides(t *testing.T) {
	follows := func([]*policy.Policy) ([]*policy.Policy, error) { return []*policy.Policy{{Name: "rest"}}, nil }
	image := func(by string) *policy.Policy { return &policy.Policy{Kind: "ClusterImagePolicy", AuditedBy: by} }
	for _, c := range []struct {
		reason string
		audit  []string
		chosen bool
		active []*policy.Policy
		want   string
	}{
		{"one is in force", nil, false, []*policy.Policy{image(""), image(byGuard)}, ""},
		{"the only one is held", nil, false, []*policy.Policy{image(byGuard)}, byGuard},
		{"whoever runs the gateway wants it", nil, true, []*policy.Policy{image(byGuard)}, ""},
		{"the source audits", []string{auditCluster}, true, []*policy.Policy{image(bySetting)}, bySetting},
		{"the source audits, and one of another is in force", []string{auditCluster}, true, []*policy.Policy{image(""), image(bySetting)}, ""},
	} {
		now, _ := newHeld(t, Configuration{Policies: Policies{Audit: c.audit}})
		made, err := now.besides(follows, c.chosen)(c.active)
		if err != nil || len(made) != 1 || made[0].AuditedBy != c.want {
			t.Errorf("%s: %+v, %v", c.reason, made, err)
		}
	}
}

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
