package mutating_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/policytest"
	"github.com/quaymaster/quaymaster/policy/set"
)

const targets = "resourceRules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments]}]"

// existing writes a policy that changes existing objects because of a ConfigMap.
func existing(constraints string) string {
	return head + about("configmaps", "  evaluation: {mutateExisting: {enabled: true}}\n  targetMatchConstraints: {"+constraints+"}\n"+
		merges("Object{metadata: Object.metadata{annotations: {'of': object.metadata.name + ' by ' + request.name}}}"))
}

const trigger = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}"

func alter(t *testing.T, p *policy.Policy, s *policy.Subject) []set.AlterResult {
	t.Helper()
	set, err := set.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return set.Alterations(t.Context(), s, nil)
}

// TestExisting changes objects because of others.
func TestExisting(t *testing.T) {
	for _, c := range []struct{ reason, constraints, want string }{
		{"a kind", targets, "apps/v1 Deployment "},
		{"names", strings.Replace(targets, "[deployments]", "[deployments], resourceNames: [a, b]", 1), "apps/v1 Deployment a, apps/v1 Deployment b "},
		{"kinds", "resourceRules: [{apiGroups: ['', apps], apiVersions: [v1], operations: [DELETE], resources: [pods, deployments]}]", "v1 Pod , apps/v1 Deployment "},
		{"any scope", strings.Replace(targets, "[deployments]", "[deployments], scope: '*'", 1), "apps/v1 Deployment "},
		{"any namespace", targets + ", namespaceSelector: {}", "apps/v1 Deployment "},
		{"any labels", targets + ", objectSelector: {}", "apps/v1 Deployment "},
		{"labels", targets + ", objectSelector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: Exists}]}", "apps/v1 Deployment  a=b,c"},
	} {
		p := compile(t, existing(c.constraints))
		if len(p.Mutations) != 0 {
			t.Errorf("%s: it changes its triggers, too", c.reason)
		}
		results := alter(t, p, subject(t, trigger))
		if len(results) != 1 || results[0].Ruling.Result != policy.Pass {
			t.Fatalf("%s: %+v", c.reason, results)
		}
		var got []string
		for i, s := range results[0].Selections {
			got = append(got, s.APIVersion+" "+s.Kind+" "+s.Name)
			if s.Position != i || s.Namespace != "" {
				t.Errorf("%s: %+v", c.reason, s)
			}
			if strings.Contains(c.want, "=") != (s.Labels != nil) {
				t.Errorf("%s: labels that select: %v", c.reason, s.Labels)
			}
			if s.Labels != nil && (s.Labels.Matches(map[string]string{"a": "b"}) || !s.Labels.Matches(map[string]string{"a": "b", "c": "d"})) {
				t.Errorf("%s: its labels", c.reason)
			}
		}
		if text := strings.Join(got, ", ") + strings.TrimRight(" "+results[0].Selections[0].Query, " "); strings.TrimRight(text, " ") != strings.TrimRight(c.want, " ") {
			t.Errorf("%s: %q, want %q", c.reason, text, c.want)
		}
	}
}

// TestTargetsOfNamespaces: a namespaceSelector selects by the labels of the targets' namespaces.
func TestTargetsOfNamespaces(t *testing.T) {
	p := compile(t, existing(targets+", namespaceSelector: {matchLabels: {team: a}}"))
	by := alter(t, p, subject(t, trigger))[0].Selections[0]
	if by.Namespaces == nil || !by.Namespaces.Matches(map[string]string{"team": "a"}) || by.Namespaces.Matches(map[string]string{"team": "b"}) || by.Labels != nil {
		t.Errorf("%+v", by)
	}
}

// TestTargetsOfAnExpression: an object, or those in items, of the kinds that are named besides.
func TestTargetsOfAnExpression(t *testing.T) {
	const (
		one   = "{'apiVersion': dyn('v1'), 'kind': dyn('Secret'), 'metadata': dyn({'name': object.metadata.name, 'namespace': dyn('shop')})}"
		web   = "{'apiVersion': dyn('apps/v1'), 'kind': dyn('Deployment'), 'metadata': dyn({'name': 'web', 'namespace': 'bank'})}"
		space = "{'apiVersion': dyn('v1'), 'kind': dyn('Namespace'), 'metadata': dyn({'name': 'shop'})}"
	)
	items := func(objects ...string) string { return "{'items': dyn([" + strings.Join(objects, ", ") + "])}" }
	for _, c := range []struct{ reason, expression, more, want string }{
		{"an object", one, "", "v1 Secret shop/settings"},
		{"a list", items(one, web, space), "", "v1 Secret shop/settings, apps/v1 Deployment bank/web, v1 Namespace /shop"},
		{"an empty list", items(), "", ""},
		{"of named kinds", items(one, web, space), ", " + targets, "apps/v1 Deployment bank/web"},
		{"of named kinds and names", items(one, web), ", " + strings.Replace(targets, "[deployments]", "[deployments], resourceNames: [api]", 1), ""},
		{"with selectors", one, ", objectSelector: {matchLabels: {a: b}}, namespaceSelector: {matchLabels: {c: d}}", "v1 Secret shop/settings by labels by namespaces"},
		{"what is no object", "{'items': dyn([{'kind': 'Secret'}])}", "", "error"},
		{"which cannot be evaluated", "{'a': dyn(object).none}", "", "error"},
	} {
		text := existing("expression: \"" + c.expression + "\"" + c.more)
		result := alter(t, compile(t, text), subject(t, trigger))[0]
		var got []string
		for i, s := range result.Selections {
			name := s.APIVersion + " " + s.Kind + " " + s.Namespace + "/" + s.Name
			if s.Labels != nil {
				name += " by labels"
			}
			if s.Namespaces != nil {
				name += " by namespaces"
			}
			got = append(got, name)
			if s.Position != i {
				t.Errorf("%s: position %d", c.reason, s.Position)
			}
		}
		if (result.Ruling.Result == policy.Indeterminate) != (c.want == "error") || c.want != "error" && strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %+v, %v, want %s", c.reason, result.Ruling, got, c.want)
		}
	}
	namespaced := strings.Replace(existing("expression: \""+items(one, web, space)+"\""), "kind: MutatingPolicy\nmetadata: {name: test}", "kind: NamespacedMutatingPolicy\nmetadata: {name: test, namespace: shop}", 1)
	if s := alter(t, compile(t, namespaced), subject(t, trigger))[0].Selections; len(s) != 1 || s[0].Namespace != "shop" {
		t.Errorf("a policy of a namespace chooses %+v", s)
	}
	many := existing("expression: \"{'items': dyn([" + strings.Repeat("1, ", 1001) + "1])}\"")
	if result := alter(t, compile(t, many), subject(t, trigger))[0]; result.Ruling.Result != policy.Indeterminate || !strings.Contains(result.Ruling.Reasons[0].Message, "more than 1000 objects") {
		t.Errorf("too many: %+v", result.Ruling)
	}
	if !compile(t, existing("expression: \"{'a': dyn(request.userInfo.username)}\"")).Alterations[0].NeedsRequester() {
		t.Error("an expression that chooses targets reads the requester")
	}
}

// TestAlter has expressions see the target, and the request of the trigger.
func TestAlter(t *testing.T) {
	more := "  targetMatchConditions: [{name: web, expression: \"object.metadata.name == 'web'\"}]\n"
	p := compile(t, existing(targets)+more)
	results := alter(t, p, subject(t, trigger))
	by := results[0].Selections[0]
	web := policytest.Object(t, deployment(onePod))
	before := written(web)
	changed := results[0].Alter(t.Context(), by, web)
	if changed.Result != policy.Pass || !strings.Contains(written(changed.Object), `"annotations":{"of":"web by settings"}`) {
		t.Errorf("%+v", changed)
	}
	if written(web) != before {
		t.Error("the object that was given is another")
	}
	if again := results[0].Alter(t.Context(), by, changed.Object); again.Result != policy.Pass || again.Object != nil {
		t.Errorf("a second time: %+v", again)
	}
	other := policytest.Object(t, strings.Replace(deployment(onePod), "name: web", "name: other", 1))
	if left := results[0].Alter(t.Context(), by, other); left.Result != policy.Skipped {
		t.Errorf("a condition that does not hold: %+v", left)
	}
	fails := compile(t, existing(targets)+"  targetMatchConditions: [{name: web, expression: 'dyn(object.spec).none == 1'}]\n")
	if left := alter(t, fails, subject(t, trigger))[0].Alter(t.Context(), by, web); left.Result != policy.Indeterminate {
		t.Errorf("a condition that cannot be evaluated: %+v", left)
	}
}

// TestNamespaceOfTheTarget: the labels of the trigger's namespace are known, and those of
// another namespace are not.
func TestNamespaceOfTheTarget(t *testing.T) {
	p := compile(t, existing(targets)+"  targetMatchConditions: [{name: team, expression: \"namespaceObject.metadata.labels.team == 'a'\"}]\n")
	result := alter(t, p, subject(t, trigger))[0]
	for namespace, want := range map[string]policy.Result{"shop": policy.Pass, "other": policy.Indeterminate} {
		web := policytest.Object(t, strings.Replace(deployment(onePod), "{name: web", "{namespace: "+namespace+", name: web", 1))
		if got := result.Alter(t.Context(), result.Selections[0], web); got.Result != want {
			t.Errorf("%s: %+v", namespace, got)
		}
	}
}

// TestRequester: the requester of the trigger is recorded if any field reads it.
func TestRequester(t *testing.T) {
	changes := func(expression, more string) string {
		return strings.Replace(existing(targets), "object.metadata.name + ' by ' + request.name", expression, 1) + more
	}
	condition := func(field, expression string) string {
		return changes("'a'", "  "+field+": [{name: a, expression: \""+expression+"\"}]\n")
	}
	for _, c := range []struct {
		reason, text string
		want         bool
	}{
		{"nothing", changes("'a'", ""), false},
		{"a mutation", changes("request.userInfo.username", ""), true},
		{"another member", changes("request.name", ""), false},
		{"all of the request", changes("string([request].size())", ""), true},
		{"all of the object", changes("string([object].size())", ""), false},
		{"a member of the object", changes("string(dyn(object).userInfo)", ""), false},
		{"a condition on triggers", condition("matchConditions", "request.userInfo.username == 'ann'"), true},
		{"another one", condition("matchConditions", "request.name == 'ann'"), false},
		{"a condition on targets", condition("targetMatchConditions", "request.userInfo.username == 'ann'"), true},
		{"another one of those", condition("targetMatchConditions", "request.name == 'ann'"), false},
		{"an annotation", changes("'a'", "  auditAnnotations: [{key: a, valueExpression: request.userInfo.username}]\n"), true},
		{"a variable", changes("variables.who", "  variables: [{name: who, expression: request.userInfo.username}]\n"), true},
	} {
		if got := compile(t, c.text).Alterations[0].NeedsRequester(); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}

// TestSelects: the objects that may be triggers.
func TestSelects(t *testing.T) {
	text := strings.Replace(existing(targets), "[configmaps]", "[pods]", 1)
	some := strings.Replace(text, "  evaluation:", "    namespaceSelector: {matchLabels: {team: a}}\n  evaluation:", 1)
	ephemeral := func(s *policy.Subject) { s.Subresource = "ephemeralcontainers" }
	elsewhere := func(s *policy.Subject) { s.NamespaceLabels = map[string]string{"team": "b"} }
	for _, c := range []struct {
		reason, text string
		subject      *policy.Subject
		want         bool
	}{
		{"a kind that it matches", text, subject(t, pod(onePod)), true},
		{"another kind", text, subject(t, trigger), false},
		{"a subresource", text, subject(t, pod(onePod), ephemeral), false},
		{"a document", text, &policy.Subject{Shape: policy.Shape{Document: true}}, false},
		{"a namespace of these labels", some, subject(t, pod(onePod)), true},
		{"of others", some, subject(t, pod(onePod), elsewhere), false},
		{"of unknown labels", some, subject(t, pod(onePod), unknown), true},
	} {
		of := compile(t, c.text).Alterations[0]
		if got := of.Selects(c.subject); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
		selected := of.Existing(t.Context(), policy.Case{Subject: c.subject})
		if asked := selected.Result == policy.Pass; asked != (c.want && c.text == text || c.reason == "a namespace of these labels") {
			t.Errorf("%s: it is asked: %+v", c.reason, selected)
		}
	}
}

// TestTriggers: the objects that cause changes of existing ones.
func TestTriggers(t *testing.T) {
	p := compile(t, existing(targets)+"  matchConditions: [{name: a, expression: \"object.metadata.name == 'settings'\"}]\n")
	for text, want := range map[string]string{
		trigger: "pass", strings.Replace(trigger, "settings", "other", 1): "skip", pod(onePod): "nothing",
	} {
		s := subject(t, text)
		got := "nothing"
		if results := alter(t, p, s); len(results) > 0 {
			got = string(results[0].Ruling.Result)
			if results[0].Skip != "" {
				got = "skip"
			}
		}
		if selects := p.Alterations[0].Selects(s); got != want || selects != (want != "nothing") {
			t.Errorf("%s: %s, %v", text, got, selects)
		}
	}
	if results := alter(t, p, subject(t, trigger, deleted)); len(results) != 0 {
		t.Error("after a deletion:", results)
	}
}

// TestSelf changes the objects that it matches, at admission and as existing objects.
func TestSelf(t *testing.T) {
	text := head + about("configmaps", "  evaluation: {mutateExisting: {enabled: true}}\n"+merges("Object{metadata: Object.metadata{labels: {'a': 'b'}}}"))
	p := compile(t, text)
	if len(p.Mutations) != 1 || len(p.Alterations) != 1 || !p.Alterations[0].OnPolicyChange() || p.Alterations[0].NeedsRequester() {
		t.Fatalf("%+v", p)
	}
	if other := compile(t, existing(targets)); other.Alterations[0].OnPolicyChange() {
		t.Error("targets of their own")
	}
	for written, want := range map[string]bool{"": true, ", skipBackgroundRequests: true": true, ", skipBackgroundRequests: false": false} {
		p := compile(t, strings.Replace(text, "{enabled: true}}", "{enabled: true}"+written+"}", 1))
		if p.Alterations[0].SkipGenerated() != want {
			t.Errorf("%q: of triggers that a rule made: %t", written, !want)
		}
	}
	selections := alter(t, p, subject(t, trigger))[0].Selections
	if got := fmt.Sprint(selections[0].APIVersion, selections[0].Kind); got != "v1ConfigMap" {
		t.Error(got)
	}
	asks := compile(t, strings.Replace(existing(targets), "request.name", "request.userInfo.username", 1))
	if !asks.Alterations[0].NeedsRequester() {
		t.Error("it reads the requester")
	}
	own := compile(t, strings.NewReplacer("kind: MutatingPolicy", "kind: NamespacedMutatingPolicy", "{name: test}", "{name: test, namespace: shop}").Replace(text))
	if s := alter(t, own, subject(t, trigger))[0].Selections[0]; s.Namespace != "shop" {
		t.Errorf("a policy of a namespace: %+v", s)
	}
}
