package review_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/convert/equality"
	"github.com/quaymaster/quaymaster/policy/convert/review"
	"github.com/quaymaster/quaymaster/workload"
)

func documents(t testing.TB, text string) []workload.Object {
	t.Helper()
	objects, err := workload.Read(strings.NewReader(text), "policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

const (
	head   = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: NAME}\nspec:\n  rules:\n"
	labels = "  - name: team\n    match: {any: [{resources: {kinds: [ConfigMap]}}]}\n    validate: {failureAction: Enforce, message: a team is wanted, pattern: {metadata: {labels: {team: '?*'}}}}\n"
	roles  = "  - name: roles\n    match: {any: [{resources: {kinds: [ConfigMap]}, clusterRoles: [edit]}]}\n    validate: {failureAction: Enforce, message: roles may not, pattern: {metadata: {labels: {team: '?*'}}}}\n"
)

func policy(name string, rules ...string) string {
	return strings.Replace(head, "NAME", name, 1) + strings.Join(rules, "")
}

func converted(t *testing.T, text string, options cel.Options) []review.Policy {
	t.Helper()
	source := documents(t, text)
	result, err := cel.Convert(source, options)
	if err != nil {
		t.Fatal(err)
	}
	written, err := cel.YAML(result.Policies)
	if err != nil {
		t.Fatal(err)
	}
	var results []workload.Object
	if len(written) > 0 {
		results = documents(t, string(written))
	}
	policies, _, err := review.Of(source, results, result)
	if err != nil {
		t.Fatal(err)
	}
	return policies
}

// compared compares each policy with its results.
func compared(t *testing.T, policies []review.Policy) []review.Policy {
	t.Helper()
	for i := range policies {
		pair, ok := policies[i].Pair()
		if !ok {
			continue
		}
		report, err := equality.Check(t.Context(), equality.Options{Source: pair.Source, Result: pair.Result, Objects: 300, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		policies[i].Report = report
	}
	return policies
}

// TestMarkdown: the page has each policy, the parts that stay, and the differences.
func TestMarkdown(t *testing.T) {
	all := policy("whole", labels) + "---\n" + policy("part", labels, roles) + "---\n" + policy("none", roles) + "---\n" + policy("with|`signs", labels)
	different := converted(t, policy("whole", labels), cel.Options{})
	broken := documents(t, strings.Replace(policy("whole", labels), "?*", "a*", 1))
	other := equality.Options{Source: broken, Result: documents(t, policy("whole", labels)), Objects: 300, Seed: 1}
	report, err := equality.Check(t.Context(), other)
	if err != nil || report.Equal() {
		t.Fatal(report, err)
	}
	different[0].Report = report
	failed := converted(t, policy("whole", labels), cel.Options{})
	failed[0].Error = "the source: broken <b>"
	for name, policies := range map[string][]review.Policy{
		"partial": compared(t, converted(t, strings.ReplaceAll(all, "with|`signs", "with-signs"), cel.Options{Partial: true})),
		"plain":   converted(t, all, cel.Options{ExistingViolations: cel.Drop}), "different": different, "failed": failed,
	} {
		t.Run(name, func(t *testing.T) {
			got := append(review.Markdown(policies), '\n')
			golden := filepath.Join("testdata", name+".golden.md")
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v: got\n%s", err, got)
			}
		})
	}
}

// TestPair: a policy that is converted in part is compared without the rules that stay, and one that stays is not.
func TestPair(t *testing.T) {
	for _, row := range []struct {
		reason, text, state string
		rules               int
		compares            bool
	}{
		{"whole", policy("p", labels), review.Converted, 1, true},
		{"in part", policy("p", roles, labels), review.InPart, 1, true},
		{"none", policy("p", roles), review.Staying, 1, false},
		{"the settings stay", strings.Replace(policy("p", labels), "  rules:", "  validationFailureActionOverrides: [{action: Enforce, namespaces: [a]}]\n  applyRules: One\n  rules:", 1) + labels, "", 2, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			policies := converted(t, row.text, cel.Options{Partial: true})
			pair, ok := policies[0].Pair()
			if row.state == "" {
				if len(policies[0].Stays) > 0 && ok {
					t.Errorf("%+v is compared", policies[0])
				}
				return
			}
			spec, _ := pair.Source[0].Content()["spec"].(map[string]any)
			rules, _ := spec["rules"].([]any)
			if ok != row.compares || policies[0].State() != row.state || len(rules) != row.rules {
				t.Errorf("%t, %s, %d rules", ok, policies[0].State(), len(rules))
			}
		})
	}
}
