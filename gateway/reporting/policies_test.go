package reporting

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gateway/policies"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/webhook/metrics"
	"github.com/quaymaster/quaymaster/webhook/ui"
	"github.com/quaymaster/quaymaster/workload"
)

// document is a ClusterPolicy with one rule.
func document(name, action, rule string) string {
	return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: " + name + "}\nspec:\n  validationFailureAction: " + action + "\n  rules: [" + rule + "]\n---\n"
}

// TestLoadedPolicies: the dashboard has every document of a policy, with its mode and readiness.
func TestLoadedPolicies(t *testing.T) {
	const (
		pods   = "match: {any: [{resources: {kinds: [Pod]}}]}"
		labels = "{name: r, " + pods + `, validate: {message: m, pattern: {metadata: {labels: {a: "?*"}}}}}`
		patch  = "{name: r, " + pods + `, mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}}`
		warns  = `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: warning}
spec:
  validationActions: [Warn]
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "object.metadata.name != 'x'"}]
---
`
		payload = "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: documents}\nspec: {evaluation: {mode: JSON}, validations: [{expression: 'has(object.a)'}]}\n"
	)
	path := filepath.Join(t.TempDir(), "a.yaml")
	text := document("enforced", "Enforce", labels) + document("audited", "Audit", labels) + document("changing", "Enforce", patch) +
		document("broken", "Enforce", "{name: r, "+pods+", validate: {pattern: 1, nonsense: true}}") + warns + payload
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	compilers, err := engine.NewCompilers(engine.CompilerOptions{ConfigMaps: engine.NewResources()})
	if err != nil {
		t.Fatal(err)
	}
	made, err := catalog.New(catalog.Options{Dialects: compilers.Dialects(), Exceptions: compilers.Exceptions(), Overrides: compilers.Overrides(), TrustRoots: compilers.TrustRoots})
	if err != nil {
		t.Fatal(err)
	}
	p := policies.New(policies.Config{Catalog: made, State: &gate.Current{}, Metrics: metrics.New(metrics.Build{}), Log: slog.New(slog.DiscardHandler)})
	if _, err := p.WatchFolders([]string{path}, func([]workload.Object) error { return nil }); err != nil {
		t.Fatal(err)
	}
	loaded := LoadedPolicies{Policies: p}
	found := map[string]ui.PolicyDocument{}
	for _, d := range loaded.Documents() {
		found[d.ID] = d
	}
	for _, row := range []struct{ reason, id, state, mode, ready string }{
		{"a failure denies", "ClusterPolicy/enforced", ui.PolicyActive, ui.ModeEnforce, "True"},
		{"a failure is reported", "ClusterPolicy/audited", ui.PolicyActive, ui.ModeAudit, "True"},
		{"a failure is shown to the user", "ValidatingPolicy/warning", ui.PolicyActive, ui.ModeWarn, "True"},
		{"it is about documents", "ValidatingPolicy/documents", ui.PolicyActive, ui.ModeJSON, "True"},
		{"it has no verdict", "ClusterPolicy/changing", ui.PolicyActive, ui.ModeChange, "True"},
		{"it does not compile, and denies what it matches", "ClusterPolicy/broken", ui.PolicyBroken, ui.ModeEnforce, "False"},
	} {
		got := found[row.id]
		if got.State != row.state || got.Mode != row.mode || got.Ready != row.ready || !strings.Contains(got.Source, path) || row.ready == "False" && got.Message == "" {
			t.Errorf("%s: %+v", row.reason, got)
		}
	}
	if len(found) != 6 {
		t.Errorf("%d documents: %+v", len(found), found)
	}
	if text, ok := loaded.Definition("ClusterPolicy/audited"); !ok || !strings.Contains(text, "validationFailureAction: Audit") || strings.Contains(text, "enforced") {
		t.Errorf("the definition is %q", text)
	}
	if _, ok := loaded.Definition("ClusterPolicy/other"); ok {
		t.Error("an unknown policy has a definition")
	}
}

// TestDefinitionOfTheCluster leaves out the additions of the API server and of kubectl.
func TestDefinitionOfTheCluster(t *testing.T) {
	compilers, err := engine.NewCompilers(engine.CompilerOptions{ConfigMaps: engine.NewResources()})
	if err != nil {
		t.Fatal(err)
	}
	made, err := catalog.New(catalog.Options{Dialects: compilers.Dialects()})
	if err != nil {
		t.Fatal(err)
	}
	p := policies.New(policies.Config{Catalog: made, State: &gate.Current{}, Metrics: metrics.New(metrics.Build{}), Log: slog.New(slog.DiscardHandler)})
	p.Fill([]catalog.Document{{Key: "k", Source: "the cluster: a", Text: []byte(`{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "a",
"managedFields": [{"manager": "kubectl"}], "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "web"}}, "status": {"ready": true},
"spec": {"rules": [{"name": "r", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "validate": {"message": "m", "pattern": {"metadata": {"name": "?*"}}}}]}}`)}})
	text, ok := LoadedPolicies{Policies: p}.Definition("ClusterPolicy/a")
	for _, row := range []struct {
		text string
		has  bool
	}{{"team: web", true}, {"kinds:\n", true}, {"managedFields", false}, {"last-applied", false}, {"status", false}} {
		if !ok || strings.Contains(text, row.text) != row.has {
			t.Errorf("%q is in it: %t, want %t: %s", row.text, !row.has, row.has, text)
		}
	}
}
