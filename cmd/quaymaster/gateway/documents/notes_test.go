package documents

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gateway/rollout"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
)

// namedRule is a rule that pins in objects of a kind, which it names itself.
type namedRule struct{ policy.Rule }

func (namedRule) PinsNamed() bool { return true }
func (namedRule) Targets() []policy.Target {
	return []policy.Target{{Group: "apps", Version: "*", Kind: "Deployment"}}
}
func (namedRule) ImagePatterns() ([]string, bool) { return nil, false }

// TestNotes: the condition of a policy that pins in objects other than pods has a note of that, or
// of the setting that prevents it.
func TestNotes(t *testing.T) {
	pins, follows := &policy.Policy{Rules: []policy.Rule{namedRule{}}}, &policy.Policy{}
	for _, c := range []struct {
		reason   string
		settings config.Webhooks
		policy   *policy.Policy
		want     string
	}{
		{"it pins", config.Webhooks{}, pins, "and so pins"},
		{"it may not", config.Webhooks{OnlyPods: true}, pins, "webhooks.onlyPods"},
		{"it does not", config.Webhooks{}, follows, ""},
		{"it does not and may not", config.Webhooks{OnlyPods: true}, follows, ""},
	} {
		got := strings.Join(notesOf(c.settings.OnlyPods, c.policy), " ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestBackgroundDocuments: a broken document without a rule for admission is distinguished from one
// that has such a rule, so that the endpoint of documents admits it where Kyverno is installed.
func TestBackgroundDocuments(t *testing.T) {
	compilers, err := engine.NewCompilers(engine.CompilerOptions{ConfigMaps: engine.NewResources(), Secrets: engine.FileSecrets{Resources: engine.NewResources()}})
	if err != nil {
		t.Fatal(err)
	}
	found, err := NewCatalog(config.Configuration{}, compilers, rollout.NewEffective(nil, slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	const head = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:\n"
	const match = "      match: {any: [{resources: {kinds: [Namespace]}}]}\n"
	generates := "    - name: g\n" + match + "      generate: {unknownField: true, apiVersion: v1, kind: ConfigMap, name: c, namespace: d, data: {}}\n"
	validates := "    - name: v\n" + match + "      validate: {unknownField: true, pattern: {metadata: {name: a}}}\n"
	for _, row := range []struct {
		reason, text string
		background   bool
	}{
		{"it generates alone", head + generates, true},
		{"it validates", head + validates, false},
		{"it does both", head + generates + validates, false},
	} {
		err := found.Check([]byte(row.text))
		_, background := errors.AsType[*catalog.BackgroundError](err)
		if err == nil || background != row.background {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}
