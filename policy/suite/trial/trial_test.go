package trial_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy/suite/trial"
)

const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {containers: [{name: c, image: registry.example/web:v1}]}\n"

// rule is a ClusterPolicy with one rule about pods.
func rule(text string) string {
	return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  - name: r\n    match: {any: [{resources: {kinds: [Pod]}}]}\n    " +
		strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

// expression is a ValidatingPolicy about pods.
func expression(text string) string {
	return fmt.Sprintf("apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: v}\nspec:\n  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}\n  validations: [{expression: %q}]\n", text)
}

func offline(t testing.TB, timeout time.Duration) *trial.Offline {
	t.Helper()
	made, err := trial.NewOffline(timeout)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestEvaluate: documents decide, and a missing value or object could not be verified.
func TestEvaluate(t *testing.T) {
	const labelled = "validate: {failureAction: Enforce, message: wants a team, pattern: {metadata: {labels: {team: '?*'}}}}"
	const call = "context: [{name: found, apiCall: {urlPath: /api/v1/namespaces/shop/configmaps/c}}]\n"
	const denies = "validate: {failureAction: Enforce, message: refused, deny: {conditions: {any: [{key: '{{ found.data.open }}', operator: NotEquals, value: 'yes'}]}}}"
	const configMap = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: shop}\ndata: {open: 'yes'}\n"
	const exception = "apiVersion: kyverno.io/v2\nkind: PolicyException\nmetadata: {name: e, namespace: shop}\nspec:\n  match: {any: [{resources: {kinds: [Pod], names: [NAME]}}]}\n  exceptions: [{policyName: p, ruleNames: [r]}]\n"
	const values = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Values\nglobalValues: {found.data.open: 'OPEN'}\n"
	const user = "apiVersion: cli.kyverno.io/v1alpha1\nkind: UserInfo\nuserInfo: {username: NAME}\n"
	const byUser = "validate: {failureAction: Enforce, message: refused, deny: {conditions: {any: [{key: '{{ request.userInfo.username }}', operator: NotEquals, value: owner}]}}}"
	teamed := strings.Replace(pod, "namespace: shop", "namespace: shop, labels: {team: a}", 1)
	with := func(text, word, value string) string { return strings.ReplaceAll(text, word, value) }
	for _, row := range []struct {
		reason string
		d      trial.Documents
		want   gate.Result
		has    string // of the results of rules
	}{
		{"a pattern", trial.Documents{Policies: rule(labelled), Objects: teamed}, gate.Allow, "pass"},
		{"a pattern that fails, with its path", trial.Documents{Policies: rule(labelled), Objects: pod}, gate.Deny, "/metadata/labels"},
		{"under audit", trial.Documents{Policies: rule(with(labelled, "Enforce", "Audit")), Objects: pod}, gate.Allow, "fail"},
		{"an exception", trial.Documents{Policies: rule(labelled), Objects: pod, Exceptions: with(exception, "NAME", "web")}, gate.Allow, "skip"},
		{"an exception for another", trial.Documents{Policies: rule(labelled), Objects: pod, Exceptions: with(exception, "NAME", "other")}, gate.Deny, "fail"},
		{"a look-up next to the policy", trial.Documents{Policies: rule(call+denies) + configMap, Objects: pod}, gate.Allow, "pass"},
		{"a look-up among the objects", trial.Documents{Policies: rule(call + denies), Objects: pod + configMap}, gate.Allow, "pass"},
		{"a look-up of what is not there", trial.Documents{Policies: rule(call + denies), Objects: pod}, gate.Error, "no document has it"},
		{"a value", trial.Documents{Policies: rule(call + denies), Objects: pod, Parameters: with(values, "OPEN", "yes")}, gate.Allow, "pass"},
		{"another value", trial.Documents{Policies: rule(call + denies), Objects: pod, Parameters: with(values, "OPEN", "no")}, gate.Deny, "fail"},
		{"a service", trial.Documents{Policies: rule(with(call, "urlPath: /api/v1/namespaces/shop/configmaps/c", "method: GET, service: {url: 'http://127.0.0.1:1/'}") + denies), Objects: pod}, gate.Error, "at admission alone"},
		{"comments in place of parameters and exceptions", trial.Documents{Policies: rule(labelled), Objects: teamed, Parameters: "---\n# none\n", Exceptions: " # none"}, gate.Allow, "pass"},
		{"the user", trial.Documents{Policies: rule(byUser), Objects: pod, Parameters: with(user, "NAME", "owner")}, gate.Allow, "pass"},
		{"another user", trial.Documents{Policies: rule(byUser), Objects: pod, Parameters: with(user, "NAME", "stranger")}, gate.Deny, "fail"},
		{"an expression", trial.Documents{Policies: expression("size(object.spec.containers) == 1"), Objects: pod}, gate.Allow, "pass"},
		{"an expression that is false", trial.Documents{Policies: expression("size(object.spec.containers) == 2"), Objects: pod}, gate.Deny, "spec.validations[0]"},
		{"an expression that calls a service", trial.Documents{Policies: expression("http.Get('http://127.0.0.1:1/').ok == true"), Objects: pod}, gate.Error, "error"},
		{"image data", trial.Documents{Policies: rule("context: [{name: found, imageRegistry: {reference: registry.example/web:v1}}]\n" + denies), Objects: pod}, gate.Error, "registries are asked at admission alone"},
		{"an image's signature", trial.Documents{Policies: rule("verifyImages: [{imageReferences: ['*'], failureAction: Enforce, attestors: [{entries: [{keyless: {subject: a@example.com, issuer: 'https://issuer.example'}}]}]}]"), Objects: pod}, gate.Error, "/spec/containers/0/image"},
		{"a policy that does not compile", trial.Documents{Policies: rule(labelled) + "---\n" + with(expression("object.spec +"), "v1\nkind", "v1\nkind"), Objects: teamed}, gate.Error, "pass"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			report, err := offline(t, 5*time.Second).Evaluate(t.Context(), row.d)
			if err != nil || len(report.Objects) == 0 {
				t.Fatalf("%+v, %v", report, err)
			}
			got := report.Objects[0]
			if got.Result != row.want || !strings.Contains(fmt.Sprintf("%+v", got.Rules), row.has) {
				t.Errorf("%s, want %s with %q: %+v", got.Result, row.want, row.has, report)
			}
		})
	}
}

// TestChanges: mutated, made and other changed objects are there before and after; an object that no rule
// changes has no change.
func TestChanges(t *testing.T) {
	const mutates = "mutate: {patchStrategicMerge: {metadata: {labels: {+(team): a}}}}"
	const generates = "generate: {apiVersion: v1, kind: ConfigMap, name: made, namespace: shop, synchronize: false, data: {data: {a: b}}}"
	const existing = "mutate: {targets: [{apiVersion: v1, kind: ConfigMap, name: made, namespace: shop}], patchStrategicMerge: {data: {a: c}}}"
	const made = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: made, namespace: shop}\ndata: {a: old}\n"
	o := offline(t, 5*time.Second)
	evaluate := func(policies, objects string) trial.Object {
		t.Helper()
		report, err := o.Evaluate(t.Context(), trial.Documents{Policies: policies, Objects: objects})
		if err != nil || len(report.Objects) == 0 || len(report.Objects[0].Rules) != 1 {
			t.Fatalf("%+v, %v", report, err)
		}
		return report.Objects[0]
	}
	changed := evaluate(rule(mutates), pod)
	if changed.Mutation == nil || strings.Contains(changed.Mutation.Before, "team") || !strings.Contains(changed.Mutation.After, "team: a") || !changed.Rules[0].Changed {
		t.Errorf("got %+v", changed)
	}
	if same := evaluate(rule(mutates), strings.Replace(pod, "namespace: shop", "namespace: shop, labels: {team: b}", 1)); same.Mutation != nil {
		t.Errorf("nothing changes, and there is %+v", same.Mutation)
	}
	for _, row := range []struct {
		reason, objects, before string
	}{
		{"a new object", pod, ""},
		{"an object that is there", pod + made, "a: old"},
	} {
		found := evaluate(rule(generates), row.objects).Rules[0].Generates
		if len(found) != 1 || found[0].Name != "ConfigMap/shop/made" || !strings.Contains(found[0].After, "a: b") ||
			(found[0].Before == "") != (row.before == "") || !strings.Contains(found[0].Before, row.before) {
			t.Errorf("%s: %+v", row.reason, found)
		}
	}
	if other := evaluate(rule(existing), pod+made).Rules[0].Mutates; len(other) != 1 || !strings.Contains(other[0].Before, "a: old") || !strings.Contains(other[0].After, "a: c") {
		t.Errorf("got %+v", other)
	}
	if none := evaluate(rule(existing), pod).Rules[0].Mutates; len(none) != 0 {
		t.Errorf("there is no target, and it is changed: %+v", none)
	}
}

// TestFaults: an unreadable text has a message with its name, and admits nothing.
func TestFaults(t *testing.T) {
	good := trial.Documents{Policies: expression("true"), Objects: pod}
	for _, row := range []struct {
		reason, in, says string
		change           func(d *trial.Documents)
	}{
		{"no policy", "policies", "no policy", func(d *trial.Documents) { d.Policies = "" }},
		{"no YAML", "policies", "policies, document 1", func(d *trial.Documents) { d.Policies = "a: [" }},
		{"no kind", "objects", "kind", func(d *trial.Documents) { d.Objects = "a: b" }},
		{"no objects", "objects", "no objects", func(d *trial.Documents) { d.Objects = " \n" }},
		{"an unknown field of values", "parameters", "globalValue", func(d *trial.Documents) { d.Parameters = "kind: Values\nglobalValue: {a: b}" }},
		{"another kind", "parameters", "want kind Values", func(d *trial.Documents) { d.Parameters = "kind: Pod" }},
		{"two of one kind", "parameters", "two documents of one kind", func(d *trial.Documents) { d.Parameters = "kind: Values\n---\nkind: Values\n" }},
		{"no exception", "exceptions", "unsupported kind", func(d *trial.Documents) { d.Exceptions = pod }},
		{"a policy of an unknown kind", "policies", "unsupported", func(d *trial.Documents) { d.Policies = "apiVersion: kyverno.io/v1\nkind: Other\nmetadata: {name: a}" }},
	} {
		d := good
		row.change(&d)
		report, err := offline(t, time.Second).Evaluate(t.Context(), d)
		if err != nil || len(report.Objects) != 0 || len(report.Errors) != 1 || report.Errors[0].In != row.in || !strings.Contains(report.Errors[0].Message, row.says) {
			t.Errorf("%s: %+v, %v", row.reason, report, err)
		}
	}
	if report, err := offline(t, time.Second).Evaluate(t.Context(), good); err != nil || len(report.Errors) != 0 || report.Objects[0].Result != gate.Allow {
		t.Errorf("without a fault: %+v, %v", report, err)
	}
}

// TestBounds: the numbers of documents, the cost of expressions and the time are bounded.
func TestBounds(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "---\n%s", strings.Replace(pod, "name: web", fmt.Sprint("name: web-", i), 1))
		}
		return b.String()
	}
	o := offline(t, 5*time.Second)
	if report, err := o.Evaluate(t.Context(), trial.Documents{Policies: expression("true"), Objects: many(trial.MaxObjects)}); err != nil || len(report.Objects) != trial.MaxObjects {
		t.Errorf("%d objects, %v", len(report.Objects), err)
	}
	_, err := o.Evaluate(t.Context(), trial.Documents{Policies: expression("true"), Objects: many(trial.MaxObjects + 1)})
	if tooMany, ok := errors.AsType[*trial.TooManyError](err); !ok || tooMany.In != "objects" {
		t.Errorf("one more: %v", err)
	}
	list := "[" + strings.Repeat("1,", 99) + "1]"
	endless := fmt.Sprintf("%[1]s.all(a, %[1]s.all(b, %[1]s.all(c, %[1]s.all(d, a + b + c + d > 0))))", list)
	report, err := o.Evaluate(t.Context(), trial.Documents{Policies: expression(endless), Objects: pod})
	if err != nil || len(report.Errors) == 0 && report.Objects[0].Result != gate.Error {
		t.Errorf("an endless expression: %+v, %v", report, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.Evaluate(ended, trial.Documents{Policies: expression("true"), Objects: pod}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the time: %v", err)
	}
}

func ExampleOffline_Evaluate() {
	o, err := trial.NewOffline(time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := o.Evaluate(context.Background(), trial.Documents{Policies: expression("size(object.spec.containers) == 2"), Objects: pod})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Objects[0].Result, report.Objects[0].Rules[0].Reasons[0].Path)
	// Output: deny spec.validations[0]
}
