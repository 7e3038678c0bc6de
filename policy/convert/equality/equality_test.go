package equality_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/equality"
	"github.com/quaymaster/quaymaster/workload"
)

func documents(t testing.TB, text string) []workload.Object {
	t.Helper()
	objects, err := workload.Read(strings.NewReader(text), "policy")
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func compare(t testing.TB, source, result string, isQuick bool) *equality.Report {
	t.Helper()
	report, err := equality.Check(t.Context(), equality.Options{Source: documents(t, source), Result: documents(t, result), UntilDifferent: isQuick, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// pair is a policy in two forms, and changes of the second form that the check has to find.
type pair struct {
	name, source, result string
	untried              []string    // results that no object can have
	mutants              [][2]string // a text of the result, and what stands in its place
}

const clusterPolicy = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}\nspec:\n  rules:\n  - name: r\n"

// rule is a ClusterPolicy with one rule.
func rule(text string) string {
	return clusterPolicy + "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

// validating is a ValidatingPolicy.
func validating(resources, text string) string {
	return "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: p}\nspec:\n  validationActions: [Deny]\n" +
		"  autogen: {podControllers: {controllers: []}}\n  matchConstraints: {resourceRules: [" + resources + "]}\n  " +
		strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

const (
	pods       = "{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}"
	configMaps = "{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}"
)

func pairs() []pair {
	return []pair{
		{
			name: "a label with a precondition",
			source: rule(`
match: {any: [{resources: {kinds: [ConfigMap]}}]}
preconditions: {all: [{key: "{{ request.object.metadata.labels.tier || '' }}", operator: Equals, value: prod}]}
validate: {failureAction: Enforce, allowExistingViolations: false, message: "a team is wanted", pattern: {metadata: {labels: {team: "?*"}}}}`),
			result: validating(configMaps, `
matchConditions: [{name: tier, expression: "object.metadata.?labels.?tier.orValue('') == 'prod'"}]
validations: [{expression: "object.metadata.?labels.?team.orValue('') != ''", message: "a team is wanted"}]`),
			mutants: [][2]string{
				{"matchConditions: [{name: tier, expression: \"object.metadata.?labels.?tier.orValue('') == 'prod'\"}]", ""},
				{"== 'prod'", "!= 'prod'"}, {"!= ''", "== ''"}, {"?tier.orValue('')", "?tier.orValue('prod')"},
				{"?labels.?team.orValue('')", "labels.team"}, {"a team is wanted\"}]", "a team\"}]"}, {"CREATE, UPDATE", "CREATE"}, {"CREATE, UPDATE", "CREATE, UPDATE, DELETE"},
				{"[Deny]", "[Audit]"}, {"object.metadata.?labels.?team.orValue('') != ''", "true"}, {"?team.orValue('') != ''", "?team.orValue('').size() > 1"},
			},
		},
		{
			name: "the containers of a pod",
			source: rule(`
match: {any: [{resources: {kinds: [Pod]}}]}
exclude: {any: [{resources: {namespaces: [kube-*]}}]}
validate: {failureAction: Enforce, allowExistingViolations: false, message: "no privileges", pattern: {spec: {"=(initContainers)": [{"=(securityContext)": {"=(privileged)": "false"}}], containers: [{"=(securityContext)": {"=(privileged)": "false"}}]}}}`) +
				"",
			result: validating(pods, `
matchConditions: [{name: namespaces, expression: "!object.metadata.?namespace.orValue('').startsWith('kube-')"}]
variables: [{name: all, expression: "object.spec.containers + object.spec.?initContainers.orValue([])"}]
validations: [{expression: "variables.all.all(c, !c.?securityContext.?privileged.orValue(false))", message: "no privileges"}]`),
			mutants: [][2]string{
				{"!object.metadata", "object.metadata"}, {"startsWith('kube-')", "startsWith('kube')"}, {" + object.spec.?initContainers.orValue([])", ""},
				{"object.spec.containers + ", ""}, {".all(c, !c", ".exists(c, !c"}, {"!c.?", "c.?"}, {"orValue(false)", "orValue(true)"},
				{"c.?securityContext.?privileged.orValue(false)", "c.securityContext.privileged"}, {"object.spec.?initContainers.orValue([])", "object.spec.initContainers"},
			},
		},
		{
			name: "a bound",
			source: rule(`
match: {any: [{resources: {kinds: [Deployment]}}]}
validate: {failureAction: Enforce, allowExistingViolations: false, message: "{{ request.object.metadata.name }} has too many", pattern: {spec: {replicas: "2-5"}}}`),
			result: validating("{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}", `
validations: [{expression: "has(object.spec.replicas) && object.spec.replicas >= 2 && object.spec.replicas <= 5", messageExpression: "object.metadata.name + ' has too many'"}]`),
			mutants: [][2]string{
				{">= 2", "> 2"}, {"<= 5", "< 5"}, {">= 2", ">= 1"}, {"<= 5", "<= 6"}, {"has(object.spec.replicas) && ", ""}, {"has(object.spec.replicas) &&", "!has(object.spec.replicas) ||"},
				{"object.spec.replicas >= 2 && ", ""}, {" && object.spec.replicas <= 5", ""}, {"' has too many'", "' has many'"}, {"object.metadata.name +", "object.kind +"},
				{">= 2 &&", ">= 2 ||"},
			},
		},
		{
			name: "conditions over a list",
			source: rule(`
match: {any: [{resources: {kinds: [Service], operations: [CREATE, UPDATE]}}]}
validate:
  failureAction: Enforce
  allowExistingViolations: false
  message: "the type is not allowed"
  deny: {conditions: {any: [{key: "{{ request.object.spec.type || 'ClusterIP' }}", operator: AnyIn, value: [NodePort, LoadBalancer]}, {key: "{{ request.object.spec.externalIPs[] || ` + "`[]`" + ` | length(@) }}", operator: GreaterThan, value: 0}]}}`),
			result: validating("{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [services]}", `
validations:
- {expression: "!(object.spec.?type.orValue('ClusterIP') in ['NodePort', 'LoadBalancer'])", message: "the type is not allowed"}
- {expression: "object.spec.?externalIPs.orValue([]).size() == 0", message: "the type is not allowed"}`),
			mutants: [][2]string{
				{"'NodePort', ", ""}, {", 'LoadBalancer'", ""}, {"!(object", "(object"}, {"size() == 0", "size() <= 1"}, {"size() == 0", "size() != 0"},
				{"orValue('ClusterIP')", "orValue('NodePort')"}, {"spec.?externalIPs.orValue([])", "spec.externalIPs"}, {"resources: [services]", "resources: [services, configmaps]"},
			},
		},
		{
			name:    "who requests",
			untried: []string{"r: pass"},
			source: rule(`
match: {any: [{resources: {kinds: [ConfigMap], operations: [UPDATE, DELETE], selector: {matchLabels: {locked: "true"}}}}]}
exclude: {any: [{subjects: [{kind: Group, name: "system:masters"}]}]}
validate: {failureAction: Enforce, allowExistingViolations: false, message: locked, deny: {conditions: {any: [{key: "{{ request.operation }}", operator: NotEquals, value: CREATE}]}}}`),
			result: validating("{apiGroups: [''], apiVersions: [v1], operations: [UPDATE, DELETE], resources: [configmaps]}", `
matchConditions:
- {name: masters, expression: "!('system:masters' in request.userInfo.groups)"}
- {name: locked, expression: "(request.operation == 'DELETE' ? oldObject : object).metadata.?labels.?locked.orValue('') == 'true'"}
validations: [{expression: "false", message: locked}]`),
			mutants: [][2]string{
				{"- {name: masters, expression: \"!('system:masters' in request.userInfo.groups)\"}\n", ""}, {"!('system:masters'", "('system:masters'"},
				{"[UPDATE, DELETE]", "[UPDATE]"}, {"[UPDATE, DELETE]", "[DELETE]"}, {"== 'true'", "!= 'true'"}, {"? oldObject : object", "? oldObject : oldObject"},
				{`expression: "false"`, `expression: "true"`},
			},
		},
	}
}

// TestEqual: pairs that are equal differ for no object, and each changed operator, dropped null check and dropped
// precondition is found: at least 95 of 100.
func TestEqual(t *testing.T) {
	found, all := 0, 0
	for _, p := range slices.Concat(pairs(), otherPairs()) {
		t.Run(p.name, func(t *testing.T) {
			report := compare(t, p.source, p.result, false)
			for _, d := range report.Differences {
				t.Errorf("%+v", d)
			}
			if !slices.Equal(report.Untried, p.untried) {
				t.Errorf("untried: %q", report.Untried)
			}
			t.Logf("%d matched, %v", report.Matched, report.Verdicts)
			for _, m := range p.mutants {
				changed := strings.Replace(p.result, m[0], m[1], 1)
				if changed == p.result {
					t.Fatalf("%q is not in the result", m[0])
				}
				all++
				if report := compare(t, p.source, changed, true); !report.Equal() {
					found++
					continue
				}
				t.Logf("%q -> %q is not found", m[0], m[1])
			}
		})
	}
	t.Logf("found %d of %d", found, all)
	if found*100 < all*95 {
		t.Errorf("%d of %d changes were found", found, all)
	}
}

const (
	wantsTeam = "match: {any: [{resources: {kinds: [ConfigMap]}}]}\nvalidate: {failureAction: Enforce, allowExistingViolations: false, message: \"a team, {{ request.object.metadata.name }}\", pattern: {metadata: {labels: {team: \"?*\"}}}}"
	hasTeam   = "validations: [{expression: \"has(object.metadata.labels) && 'team' in object.metadata.labels\", messageExpression: \"'a team, ' + object.metadata.name\"}]"
)

// TestSmallest: a difference is shown with the smallest object that has it, and both verdicts.
func TestSmallest(t *testing.T) {
	report := compare(t, rule(wantsTeam), validating(configMaps, hasTeam), false)
	if len(report.Differences) != 1 {
		t.Fatalf("%+v", report)
	}
	d := report.Differences[0]
	want := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"labels": map[string]any{"team": ""}, "name": d.Sample.Object["metadata"].(map[string]any)["name"], "namespace": "default",
	}}
	if d.By != equality.ByVerdict || d.Source.Result != equality.Denied || d.Result.Result != equality.Admitted || len(d.Source.Messages) != 1 ||
		!strings.HasPrefix(d.Source.Messages[0], "a team, ") || !reflect.DeepEqual(d.Sample.Object, want) {
		t.Errorf("%+v", d)
	}
}

// TestRepeatable: one seed makes the same run, and another one does not.
func TestRepeatable(t *testing.T) {
	with := func(seed uint64) *equality.Report {
		report, err := equality.Check(t.Context(), equality.Options{
			Source: documents(t, rule(wantsTeam)), Result: documents(t, validating(configMaps, hasTeam)), Objects: 500, Seed: seed,
		})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	first, again, other := with(7), with(7), with(8)
	if first.Differing == 0 || !reflect.DeepEqual(first.Verdicts, again.Verdicts) || first.Differing != again.Differing || first.Matched != again.Matched {
		t.Errorf("%+v, then %+v", first, again)
	}
	if first.Matched == other.Matched && first.Differing == other.Differing {
		t.Errorf("both seeds: %+v", first)
	}
}

// TestRefused: nothing is said about unreadable policies.
func TestRefused(t *testing.T) {
	source, result := documents(t, rule(wantsTeam)), documents(t, validating(configMaps, hasTeam))
	for _, row := range []struct {
		reason string
		o      equality.Options
		want   string
	}{
		{"no source", equality.Options{Result: result}, "the source: no policy"},
		{"no result", equality.Options{Source: source}, "the result: no policy"},
		{"a result that does not compile", equality.Options{Source: source, Result: documents(t, validating(configMaps, `validations: [{expression: "object."}]`))}, "the result: "},
		{"too many objects", equality.Options{Source: source, Result: result, Objects: equality.MaxObjects + 1}, "want 1 to"},
		{"a given object that no API server has", equality.Options{Source: source, Result: result, Objects: 1, Given: documents(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: UPPER}")}, "is refused"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			if _, err := equality.Check(t.Context(), row.o); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
}

// TestGiven: a given object that differs is found among few generated ones.
func TestGiven(t *testing.T) {
	given := documents(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: given, namespace: shop, labels: {team: ''}}")
	o := equality.Options{Source: documents(t, rule(wantsTeam)), Result: documents(t, validating(configMaps, hasTeam)), Objects: 1, Given: given}
	report, err := equality.Check(t.Context(), o)
	if err != nil || report.Differing != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	o.Given = nil
	report, err = equality.Check(t.Context(), o)
	if err != nil || report.Differing != 0 {
		t.Errorf("without it: %+v, %v", report, err)
	}
}

// TestPairs: results are found by the names of their policies.
func TestPairs(t *testing.T) {
	doc := func(kind, name, spec string) string {
		group := "policies.kyverno.io/v1"
		switch {
		case kind == "ClusterPolicy":
			group = "kyverno.io/v1"
		case kind == "ConfigMap":
			group = "v1"
		case strings.HasPrefix(kind, "ValidatingAdmission"):
			group = "admissionregistration.k8s.io/v1"
		}
		return "---\napiVersion: " + group + "\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n"
	}
	for _, row := range []struct {
		reason, source, result string
		want                   string // the pairs, with the number of documents of their results
		fails                  string
	}{
		{"by name", doc("ClusterPolicy", "a", "") + doc("ClusterPolicy", "b", ""), doc("ValidatingPolicy", "b", "") + doc("ValidatingPolicy", "a", ""), "a 1, b 1", ""},
		{"several results", doc("ClusterPolicy", "a", "") + doc("ClusterPolicy", "a-b", ""), doc("ValidatingPolicy", "a", "") + doc("ValidatingPolicy", "a-b-2", "") + doc("ValidatingPolicy", "a-x", ""), "a 2, a-b 1", ""},
		{"a binding", doc("ClusterPolicy", "a", "") + doc("ClusterPolicy", "b", ""), doc("ValidatingAdmissionPolicy", "a", "") + doc("ValidatingAdmissionPolicyBinding", "x", "policyName: a") + doc("ValidatingPolicy", "b", ""), "a 2, b 1", ""},
		{"one policy", doc("ClusterPolicy", "a", "") + doc("ConfigMap", "c", ""), doc("ValidatingPolicy", "other", ""), "a 1", ""},
		{"no result", doc("ClusterPolicy", "a", "") + doc("ClusterPolicy", "b", ""), doc("ValidatingPolicy", "a", ""), "", "has no result"},
		{"no policy", doc("ClusterPolicy", "a", "") + doc("ClusterPolicy", "b", ""), doc("ValidatingPolicy", "c", ""), "", "the name of no policy"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			pairs, _, err := equality.Pairs(documents(t, row.source), documents(t, row.result))
			if row.fails != "" {
				if err == nil || !strings.Contains(err.Error(), row.fails) {
					t.Errorf("%v, want %q", err, row.fails)
				}
				return
			}
			var found []string
			for _, p := range pairs {
				found = append(found, fmt.Sprintf("%s %d", p.Name, len(p.Result)))
			}
			if err != nil || strings.Join(found, ", ") != row.want {
				t.Errorf("%q, %v", found, err)
			}
		})
	}
}
