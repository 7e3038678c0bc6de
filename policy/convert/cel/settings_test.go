package cel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/policytest"
	"github.com/quaymaster/quaymaster/policy/set"
)

// failures are the actions of the rules that an object violates, each once, as a gateway collects them.
func failures(t testing.TB, s *policy.Subject, policies ...*policy.Policy) []string {
	t.Helper()
	all, err := set.New(policies...)
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, r := range all.Validate(t.Context(), s, nil) {
		if r.Skip == "" && r.Ruling.Result != policy.Pass {
			message, _, _ := strings.Cut(strings.TrimPrefix(r.Ruling.Reasons[0].Message, "validation error: "), " rule ") // the author's
			found = append(found, string(r.Action)+" "+string(r.Ruling.Result)+" "+message)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// compareFailures reports how many of the requests violate something.
func compareFailures(t testing.TB, reason, text string, options cel.Options, requests []*policy.Subject) (violate int, written string) {
	t.Helper()
	result := convertText(t, text, options)
	if len(result.Problems) > 0 {
		t.Fatalf("%s: %v", reason, result.Problems)
	}
	yaml, err := cel.YAML(result.Policies)
	if err != nil {
		t.Fatal(err)
	}
	source, made := sourcePolicy(t, []byte(text)), compiledResults(t, result.Policies)
	for _, s := range requests {
		want, got := failures(t, s, source), failures(t, s, made...)
		if !slices.Equal(want, got) {
			t.Errorf("%s: %s %s %s in %q: %q, was %q\n%s", reason, s.Operation, s.Kind, s.Name, s.Namespace, got, want, yaml)
			break
		}
		if len(want) > 0 {
			violate++
		}
	}
	return violate, string(yaml)
}

// TestActionsOfNamespaces: a policy for each action denies and audits in the namespaces of the source.
func TestActionsOfNamespaces(t *testing.T) {
	all := requests(t)
	for _, c := range []struct{ reason, settings, rule, kinds, written string }{
		{"audited namespaces", "validationFailureAction: Enforce, validationFailureActionOverrides: [{action: Audit, namespaces: [shop, 'infra-*']}]", "", "Pod", "name: test-audit"},
		{"enforced namespaces", "validationFailureAction: Audit, validationFailureActionOverrides: [{action: Enforce, namespaces: [shop]}]", "", "Pod, ClusterRole", "name: test-deny"},
		{"with warnings", "emitWarning: true, validationFailureActionOverrides: [{action: Enforce, namespaces: [shop]}]", "", "ConfigMap", "- Warn"},
		{"labels", "validationFailureActionOverrides: [{action: Enforce, namespaceSelector: {matchLabels: {env: prod}}}]", "", "Deployment", "namespaceObject.metadata.?labels.?env"},
		{"labels and names, of kinds that may be of the cluster", "validationFailureActionOverrides: [{action: Enforce, namespaces: ['*'], namespaceSelector: {matchLabels: {env: '*'}}}, {action: Enforce, namespaces: [kube-system]}]", "", "Schedule, ClusterRole", ""},
		{"labels that are missing", "validationFailureActionOverrides: [{action: Enforce, namespaceSelector: {matchExpressions: [{key: env, operator: DoesNotExist}]}}]", "", "ConfigMap, ClusterRole", "namespaceObject == null ||"},
		{"labels that are missing, audited", "validationFailureAction: Enforce, validationFailureActionOverrides: [{action: Audit, namespaceSelector: {matchExpressions: [{key: env, operator: DoesNotExist}]}}]", "", "ConfigMap, ClusterRole", "namespaceObject != null &&"},
		{"the first that fits", "validationFailureAction: Audit, validationFailureActionOverrides: [{action: Audit, namespaces: [shop]}, {action: Enforce, namespaceSelector: {matchLabels: {env: '*'}}}, {action: Audit, namespaces: ['*']}]", "", "ConfigMap", "!(request.namespace == 'shop') &&"},
		{"everywhere", "validationFailureAction: Audit, validationFailureActionOverrides: [{action: Enforce, namespaces: ['*']}]", "", "ConfigMap", "- Deny"},
		{"a rule's own", "validationFailureAction: Enforce", "failureActionOverrides: [{action: Audit, namespaces: [shop]}], ", "ConfigMap", "name: test-audit"},
		{"a rule's own and its action", "validationFailureActionOverrides: [{action: Enforce, namespaces: [infra-a]}]", "failureAction: Audit, failureActionOverrides: [{action: Enforce, namespaces: [shop]}], ", "ConfigMap", "name: test-deny"},
		{"a rule's own before the policy's", "validationFailureActionOverrides: [{action: Enforce, namespaces: ['*']}]", "failureActionOverrides: [{action: Audit, namespaces: [shop]}], ", "ConfigMap", ""},
	} {
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {%s, rules: [
  {name: r, match: {any: [{resources: {kinds: [%s]}}]}, validate: {message: not so, %s cel: {expressions: [{expression: "false"}]}}}]}}`, c.settings, c.kinds, c.rule)
		violate, written := compareFailures(t, c.reason, text, cel.Options{}, all)
		if violate == 0 || !strings.Contains(written, c.written) {
			t.Errorf("%s: %d requests violate it, lacks %s:\n%s", c.reason, violate, c.written, written)
		}
	}
	const refused = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {validationFailureActionOverrides: [{action: Enforce, namespaces: [shop]}], rules: [
  {name: r, match: {any: [{resources: {kinds: [Namespace]}}]}, validate: {message: not so, cel: {expressions: [{expression: "false"}]}}}]}}`
	if result := convertText(t, refused, cel.Options{}); len(result.Problems) != 1 || !strings.HasSuffix(result.Problems[0].Path, "spec.rules[0].match") {
		t.Errorf("Namespaces: %v", result.Problems)
	}
}

// TestExcuseOfActions: the excuse of updates is the usual action's, where that denies.
func TestExcuseOfActions(t *testing.T) {
	pod := func(host string) map[string]any {
		return policytest.Object(t, "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}, spec: {hostNetwork: true, hostname: "+host+"}}")
	}
	update := creation(pod("a"))
	update.Operation, update.OldObject = "UPDATE", policy.ContentOf(pod("b"))
	for _, settings := range []string{
		"validationFailureAction: Enforce, validationFailureActionOverrides: [{action: Audit, namespaces: [test]}]", "validationFailureAction: Audit, validationFailureActionOverrides: [{action: Enforce, namespaces: [shop]}]",
	} {
		text := strings.Replace(readOnly, "validationFailureAction: Enforce", strings.ReplaceAll(settings, ", validation", "\n  validation"), 1)
		compareFailures(t, settings, text, cel.Options{}, []*policy.Subject{update, creation(pod("a"))})
	}
}

// TestFirstRule: of several rules with the same effect the first one that applies decides.
func TestFirstRule(t *testing.T) {
	rule := func(name, match, exclude, more string) string {
		return fmt.Sprintf("{name: %s, match: {%s}, %s validate: {message: %s, %s cel: {expressions: [{expression: \"object == null || object.metadata.?name.orValue('') != 'a'\"}]}}}", name, match, excludeOf(exclude), name, more)
	}
	policyOf := func(settings string, rules ...string) string {
		return "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {applyRules: One, " + settings + " rules: [\n" + strings.Join(rules, ",\n") + "]}}"
	}
	all := requests(t)
	for _, c := range []struct {
		reason, settings string
		rules            []string
	}{
		{"a namespace first", "validationFailureAction: Enforce,", []string{rule("first", "any: [{resources: {kinds: [Pod], namespaces: [shop]}}]", "", ""), rule("other", "any: [{resources: {kinds: [Pod]}}]", "", "")}},
		{"three rules", "", []string{rule("first", "any: [{resources: {kinds: [ConfigMap], namespaces: [shop]}}]", "any: [{resources: {selector: {matchLabels: {app: web}}}}]", ""),
			rule("second", "any: [{resources: {kinds: [ConfigMap], names: [a]}}, {resources: {kinds: [Secret]}}]", "", ""), rule("third", "any: [{resources: {kinds: [ConfigMap, Deployment]}}]", "", "")}},
		{"other kinds", "", []string{rule("first", "any: [{resources: {kinds: [ConfigMap]}}]", "", ""), rule("other", "any: [{resources: {kinds: [Deployment]}}]", "", "")}},
		{"a kind of several", "", []string{rule("first", "any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]", "", ""), rule("other", "any: [{resources: {kinds: [Deployment, ConfigMap]}}]", "", "")}},
		{"another effect", "", []string{rule("first", "any: [{resources: {kinds: [ConfigMap]}}]", "", "failureAction: Enforce, "), rule("other", "any: [{resources: {kinds: [ConfigMap]}}]", "", "")}},
	} {
		if violate, written := compareFailures(t, c.reason, policyOf(c.settings, c.rules...), cel.Options{}, all); violate == 0 {
			t.Errorf("%s: no request violates it:\n%s", c.reason, written)
		}
	}
	first, other := rule("first", "any: [{resources: {kinds: [Pod], namespaces: [shop]}}]", "", ""), rule("other", "any: [{resources: {kinds: [Pod]}}]", "", "")
	for reason, text := range map[string]string{
		"all objects":                policyOf("", other, first),
		"errors are let through":     policyOf("failurePolicy: Ignore,", first, other),
		"preconditions":              policyOf("", strings.Replace(first, "validate:", "celPreconditions: [{name: a, expression: \"true\"}], validate:", 1), other),
		"actions of some namespaces": policyOf("validationFailureActionOverrides: [{action: Enforce, namespaces: [test]}],", first, other),
		"an excuse":                  policyOf("validationFailureAction: Enforce,", strings.Replace(first, "cel: {expressions: [{expression: \"object == null || object.metadata.?name.orValue('') != 'a'\"}]}", "pattern: {metadata: {name: a}}", 1), other),
	} {
		if result := convertText(t, text, cel.Options{}); len(result.Problems) == 0 || !strings.HasSuffix(result.Problems[0].Path, "spec.rules[1].name") {
			t.Errorf("%s: %v", reason, result.Problems)
		}
	}
}
