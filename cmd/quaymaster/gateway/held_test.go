package gateway

import (
	"crypto/rand"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/held"
	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/kyverno"
	"github.com/quaymaster/quaymaster/policy/sigstore"
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
func newHeld(t *testing.T, c config.Configuration) (*inForce, *catalog.Catalog) {
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
		if got := audits(c.audit, c.key); got != c.want {
			t.Errorf("%s of %v: %t", c.key, c.audit, got)
		}
	}
}

// TestInForce: without a ledger a policy is itself, and with one a change waits behind what
// was approved, which is compiled again from what the ledger kept.
func TestInForce(t *testing.T) {
	now, found := newHeld(t, config.Configuration{Guard: config.GuardEnabled})
	const key = fromCluster + "/clusterpolicies/signed"
	first := put(found, key, heldPolicy)
	if first.AuditedBy != "" || now.stands(first.ID()) != held.Itself {
		t.Errorf("nothing is known, and it is %q", first.AuditedBy)
	}
	there, all, err := now.approvable(found)
	if err != nil || len(there) != 1 || len(all) != 1 {
		t.Fatalf("%v of %v, %v", there, all, err)
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
	now, found := newHeld(t, config.Configuration{Guard: config.GuardEnabled, Policies: config.Policies{Audit: []string{config.AuditCluster}}})
	if p := put(found, fromCluster+"/clusterpolicies/signed", heldPolicy); p.AuditedBy != bySetting || !p.AuditOnly {
		t.Errorf("%+v", p)
	}
	if there, all, err := now.approvable(found); err != nil || len(there) != 0 || len(all) != 1 {
		t.Errorf("approved would be %v of %v, %v", there, all, err)
	}
	source, guard := now.count(found.Snapshot().Entries)
	if source != 1 || guard != 0 || !strings.Contains(now.why(found.Snapshot().Entries[0]), "policies.audit") {
		t.Errorf("%d of the source, %d held", source, guard)
	}
	if p := put(found, "folder/x#0", strings.Replace(heldPolicy, "name: signed", "name: a", 1)); p.AuditedBy != "" {
		t.Errorf("of another source: %+v", p)
	}
}

// TestBesides: what follows from policies denies nothing where none of them does, and where
// it denies, none that the guard has audit takes an image out of it.
func TestBesides(t *testing.T) {
	image := func(name, by string) *policy.Policy {
		return &policy.Policy{Kind: "ClusterImagePolicy", Name: name, AuditedBy: by}
	}
	in, waits, audits := image("in", ""), image("waits", byGuard), image("audits", bySetting)
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
		{"the only one is held", nil, false, []*policy.Policy{waits}, byGuard, "waits"},
		{"whoever runs the gateway wants it", nil, true, []*policy.Policy{waits}, "", ""},
		{"and one is in force", nil, true, []*policy.Policy{in, waits}, "", "in"},
		{"the source audits", []string{config.AuditCluster}, true, []*policy.Policy{audits}, bySetting, "audits"},
		{"the source audits, and one of another is in force", []string{config.AuditCluster}, true, []*policy.Policy{in, audits}, "", "in audits"},
		{"and one of another is held", []string{config.AuditCluster}, true, []*policy.Policy{in, audits, waits}, "", "in audits"},
	} {
		now, _ := newHeld(t, config.Configuration{Policies: config.Policies{Audit: c.audit}})
		var names []string
		follows := func(active []*policy.Policy) ([]*policy.Policy, error) {
			for _, p := range active {
				names = append(names, p.Name)
			}
			return []*policy.Policy{{Name: "rest"}}, nil
		}
		given := slices.Clone(c.active)
		made, err := now.besides(follows, c.chosen)(c.active)
		if err != nil || len(made) != 1 || made[0].AuditedBy != c.want || strings.Join(names, " ") != c.names || !slices.Equal(given, c.active) {
			t.Errorf("%s: %+v of %q, %v", c.reason, made, names, err)
		}
	}
}

// TestHeldNamesNoImage: what was refused since no ClusterImagePolicy names it stays refused
// while one that names it is held.
func TestHeldNamesNoImage(t *testing.T) {
	compiler := sigstore.New(sigstore.Options{})
	named := func(name, images string) *policy.Policy {
		p, err := compiler.Compile([]byte("apiVersion: policy.sigstore.dev/v1beta1\nkind: ClusterImagePolicy\nmetadata: {name: "+name+"}\nspec: {images: [{glob: '"+images+"'}], authorities: [{static: {action: pass}}]}\n"), name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a, b := named("a", "registry.example/a/**"), named("b", "registry.example/b/**")
	pod := &policy.Subject{
		Object:  policy.ContentOf(map[string]any{"metadata": map[string]any{"name": "p"}}),
		Version: "v1", Kind: "Pod", Namespace: "n", Name: "p", NamespaceKnown: true, Operation: "CREATE",
	}
	images := func([]policy.Extractor) ([]policy.Image, error) {
		return []policy.Image{{Container: "c", Role: "container", Pointer: "/spec/containers/0/image", Ref: image.MustParse("registry.example/b/x:1")}}, nil
	}
	for _, c := range []struct {
		reason string
		active []*policy.Policy
		denied bool
	}{
		{"nobody names it", []*policy.Policy{a}, true},
		{"who names it is held", []*policy.Policy{a, policy.Audited(b, byGuard)}, true},
		{"who names it is approved", []*policy.Policy{a, b}, false},
		{"who names it is of a source that audits", []*policy.Policy{a, policy.Audited(b, bySetting)}, false},
		{"the only one is held", []*policy.Policy{policy.Audited(b, byGuard)}, true},
	} {
		now, _ := newHeld(t, config.Configuration{Guard: config.GuardEnabled})
		rest := unmatched{choice: sigstore.UnmatchedDeny, compiler: compiler}
		made, err := now.besides(rest.policies, true)(c.active)
		if err != nil {
			t.Fatal(err)
		}
		set, err := policy.NewSet(slices.Concat(c.active, made)...)
		if err != nil {
			t.Fatal(err)
		}
		denied := slices.ContainsFunc(set.Plan(t.Context(), pod, images).Checks, func(check policy.Check) bool {
			return check.DenyMessage != "" && check.Action == policy.Enforce
		})
		if denied != c.denied {
			t.Errorf("%s: denied %t, want %t", c.reason, denied, c.denied)
		}
	}
}
