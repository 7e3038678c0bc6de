package validate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// TestIndeterminate: what holds in one reading of the object and not in another neither
// passes a rule nor takes it away. Each row has its twins: a value that is refused for
// certain, and one that is admitted.
func TestIndeterminate(t *testing.T) {
	const pass, fail, undecided, skipped = policy.Pass, policy.Fail, policy.Indeterminate, policy.Skipped
	role := func(verbs string) string { return "{rules: [{verbs: " + verbs + "}]}" }
	const loop = "list: 'request.object.spec.rules[]'"
	bind := "deny: {conditions: {all: [{key: '{{ element.verbs }}', operator: %s, value: [bind, escalate]}]}}"
	for _, c := range []struct {
		body, spec string
		want       policy.Result
		reason     string
	}{
		{"validate: {foreach: [{" + loop + ", " + fmt.Sprintf(bind, "AnyIn") + "}]}", role("['*']"), fail, "a wildcard covers"},
		{"validate: {foreach: [{" + loop + ", " + fmt.Sprintf(bind, "AnyIn") + "}]}", role("[escalate]"), fail, "the verb"},
		{"validate: {foreach: [{" + loop + ", " + fmt.Sprintf(bind, "AnyIn") + "}]}", role("[get, 'l*']"), pass, "others"},
		{"validate: {foreach: [{" + loop + ", " + fmt.Sprintf(bind, "AllIn") + "}]}", role("['esc*']"), fail, "a prefix covers"},
		{"validate: {foreach: [{" + loop + ", " + fmt.Sprintf(bind, "AnyNotIn") + "}]}", role("['*']"), undecided, "more than the allowed values"},
		{"validate: {foreach: [{" + loop + ", " + fmt.Sprintf(bind, "AnyNotIn") + "}]}", role("[get]"), fail, "not allowed"},
		{"validate: {foreach: [{" + loop + ", " + fmt.Sprintf(bind, "AnyNotIn") + "}]}", role("[bind]"), pass, "allowed"},
		{"validate: {foreach: [{" + loop + ", deny: {conditions: {any: [{key: escalate, operator: AnyIn, value: '{{ element.verbs }}'}]}}}]}", role("['*']"), fail, "a wildcard in the value"},
		{"validate: {foreach: [{" + loop + ", deny: {conditions: {any: [{key: escalate, operator: AnyIn, value: '{{ element.verbs }}'}]}}}]}", role("[get]"), pass, "another value"},
		{"validate: {foreach: [{" + loop + ", preconditions: {all: [{key: '{{ element.verbs }}', operator: AnyIn, value: [escalate]}]}, deny: {}}]}", role("['*']"), undecided, "a precondition in doubt"},
		{"validate: {foreach: [{" + loop + ", preconditions: {all: [{key: '{{ element.verbs }}', operator: AnyIn, value: [escalate]}]}, deny: {}}]}", role("[escalate]"), fail, "one that holds"},
		{"validate: {foreach: [{" + loop + ", preconditions: {all: [{key: '{{ element.verbs }}', operator: AnyIn, value: [escalate]}]}, deny: {}}]}", role("[get]"), skipped, "one that does not"},
		{"preconditions: {all: [{key: '{{ request.object.spec.size }}', operator: GreaterThan, value: 5}]}, validate: {deny: {}}", "{size: many}", undecided, "a precondition of the rule in doubt"},
		{"preconditions: {all: [{key: '{{ request.object.spec.size }}', operator: GreaterThan, value: 5}]}, validate: {deny: {}}", "{size: 9}", fail, "one that holds"},
		{"preconditions: {all: [{key: '{{ request.object.spec.size }}', operator: NotEquals, value: '1*'}]}, validate: {deny: {}}}", "{size: '10'}", undecided, "a precondition that holds in Kyverno, for a quantity"},
		{"preconditions: {all: [{key: '{{ request.object.spec.size }}', operator: NotEquals, value: '1*'}]}, validate: {pattern: {metadata: {name: web}}}}", "{size: '10'}", pass, "what passes passes"},
		{"preconditions: {all: [{key: '{{ request.object.spec.size }}', operator: NotEquals, value: '1*'}]}, validate: {deny: {}}}", "{size: 1x}", skipped, "one that holds nowhere"},
		{"preconditions: {all: [{key: '{{ request.object.spec.size }}', operator: NotEquals, value: '1*'}]}, validate: {deny: {}}}", "{size: 2x}", fail, "one that holds in both"},
		{"preconditions: {all: [{key: '{{ request.object.spec.size }}', operator: AnyNotIn, value: 1!-10}]}, validate: {deny: {}}}", "{size: '5'}", fail, "no range in Kyverno"},
		{"preconditions: {all: [{key: '{{ request.object.spec.size }}', operator: AnyIn, value: 1!-10}]}, validate: {deny: {}}}", "{size: '20'}", skipped, "nor outside of one"},
		{"preconditions: {all: [{key: '{{ request.object.spec.size }}', operator: AnyIn, value: 1!-10}]}, validate: {deny: {}}}", "{size: 1!-10}", fail, "it is a text"},
		{"preconditions: {all: [{key: '{{ request.object.spec.size }}', operator: GreaterThan, value: 5}]}, validate: {deny: {}}", "{size: null}", skipped, "null does not hold"},
		{"preconditions: {all: [{key: '{{ request.object.spec.size }}', operator: GreaterThan, value: 5}]}, validate: {pattern: {metadata: {name: web}}}", "{size: many}", pass, "what passes in either reading passes"},
		{"validate: {deny: {conditions: {any: [{key: '{{ request.object.spec.size }}', operator: GreaterThan, value: 5}, {key: '{{ request.name }}', operator: Equals, value: web}]}}}", "{size: many}", fail, "another condition decides"},
		{"validate: {deny: {conditions: {all: [{key: '{{ request.object.spec.size }}', operator: GreaterThan, value: 5}, {key: '{{ request.name }}', operator: Equals, value: other}]}}}", "{size: many}", pass, "another condition decides"},
		{"validate: {deny: {conditions: {any: [{key: '{{ request.object.spec.debug || `false` }}', operator: Equals, value: true}]}}}", "{debug: 'true'}", undecided, "a text that reads as true"},
		{"validate: {deny: {conditions: {any: [{key: '{{ request.object.spec.debug || `false` }}', operator: Equals, value: true}]}}}", "{debug: true}", fail, "true"},
		{"validate: {deny: {conditions: {any: [{key: '{{ request.object.spec.debug || `false` }}', operator: Equals, value: true}]}}}", "{a: b}", pass, "a missing field"},
		{"validate: {deny: {conditions: {any: [{key: '{{ request.object.spec.list[?size > `5`] | length(@) }}', operator: GreaterThan, value: 0}]}}}", "{list: [{size: many}]}", undecided, "a filter over text"},
		{"validate: {deny: {conditions: {any: [{key: '{{ request.object.spec.list[?size > `5`] | length(@) }}', operator: GreaterThan, value: 0}]}}}", "{list: [{size: 9}]}", fail, "a filter over a number"},
		{"validate: {deny: {conditions: {any: [{key: '{{ request.object.spec.list[?size > `5`] | length(@) }}', operator: GreaterThan, value: 0}]}}}", "{list: [{other: 9}]}", pass, "a filter over a missing field"},
		{"validate: {pattern: {spec: {sa: '{{ request.object.spec.team }}-*'}}}", "{sa: admin-a, team: '!x'}", fail, "an operator from the object"},
		{"validate: {pattern: {spec: {sa: '{{ request.object.spec.team }}-*'}}}", "{sa: shop-a, team: shop}", pass, "a text from the object"},
		{"validate: {foreach: [{list: 'request.object.spec.list', pattern: {sa: '{{ element.team }}-*'}}]}", "{list: [{sa: admin-a, team: 'admin-a | b'}]}", fail, "an alternative from an element"},
		{"validate: {anyPattern: [{spec: {sa: '{{ request.object.spec.team }}'}}, {spec: {sa: none}}]}", "{sa: admin-a, team: '*'}", fail, "a wildcard from the object"},
		{"validate: {anyPattern: [{spec: {(size): '>5', sa: none}}, {spec: {sa: a}}]}", "{sa: a, size: many}", pass, "one of several patterns decides"},
		{"validate: {anyPattern: [{spec: {(size): '>5', sa: none}}, {spec: {sa: b}}]}", "{sa: a, size: many}", undecided, "none of several patterns decides"},
		{"validate: {pattern: {spec: {(size): '>5', sa: none}}}", "{sa: a, size: many}", undecided, "a condition of a pattern in doubt"},
		{"validate: {pattern: {spec: {(size): '>5', sa: none}}}", "{sa: a, size: 3}", skipped, "one that does not hold"},
		{"validate: {pattern: {spec: {size: '>5'}}}", "{size: many}", fail, "a value without an order"},
	} {
		r, err := compile(t, options(t), c.body)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		if got := ask(t, r, pod(t, c.spec)); got.Result != c.want {
			t.Errorf("%s: %s on %s: %q %v; want %q", c.reason, c.body, c.spec, got.Result, got.Reasons, c.want)
		}
	}
}

// TestDoubtIsNoExcuse: an object with an indeterminate result before has not violated the
// rule, and an indeterminate result now is not excused by the old one.
func TestDoubtIsNoExcuse(t *testing.T) {
	body := "validate: {deny: {conditions: {any: [{key: '{{ request.object.spec.debug }}', operator: Equals, value: true}]}}}"
	r, err := compile(t, options(t), body)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		before, now string
		want        policy.Result
	}{
		{"{debug: 'true'}", "{debug: true}", policy.Fail}, {"{debug: true}", "{debug: 'true'}", policy.Indeterminate},
		{"{debug: 'true'}", "{debug: 'true'}", policy.Indeterminate}, {"{debug: true, size: 1}", "{debug: true}", policy.Skipped}, {"{debug: true}", "{debug: false}", policy.Pass},
	} {
		s := pod(t, c.now)
		s.Operation, s.OldObject = "UPDATE", pod(t, c.before).Object
		if got := ask(t, r, s); got.Result != c.want {
			t.Errorf("%s after %s: %q %v; want %q", c.now, c.before, got.Result, got.Reasons, c.want)
		}
	}
}

// config answers for every image.
type config struct{ layers any }

func (c config) ImageData(context.Context, string, policy.Credentials) (map[string]any, error) {
	return map[string]any{"configData": map[string]any{"layers": c.layers}, "list": []any{map[string]any{"size": c.layers}}}, nil
}

// TestImageData: in what an image brings an order over null is indeterminate, by whatever
// way a rule reads it; beside it null does not hold.
func TestImageData(t *testing.T) {
	const context = "context: [{name: data, imageRegistry: {reference: x}}, {name: made, variable: {value: '{{ data.configData }}'}}], "
	deny := func(key string) string {
		return context + "validate: {deny: {conditions: {any: [{key: \"{{ " + key + " }}\", operator: GreaterThan, value: 5}]}}}"
	}
	for body, want := range map[string]policy.Result{
		deny("data.configData.layers"):                         policy.Indeterminate,
		deny("made.layers"):                                    policy.Indeterminate,
		deny("data.list[?size > `5`] | length(@)"):             policy.Indeterminate,
		deny("request.object.spec.size"):                       policy.Pass,
		deny("request.object.spec.list[?x > `5`] | length(@)"): policy.Pass,
		context + "validate: {foreach: [{list: data.list, deny: {conditions: {any: [{key: '{{ element.size }}', operator: GreaterThan, value: 5}]}}}]}":                                                      policy.Indeterminate,
		context + "validate: {foreach: [{list: request.object.spec.list, deny: {conditions: {any: [{key: '{{ element.x }}', operator: GreaterThan, value: 5}]}}}]}":                                          policy.Pass,
		"context: [{name: found, imageRegistry: {reference: x, jmesPath: 'list[?size > `5`] | length(@)'}}], validate: {deny: {conditions: {any: [{key: '{{ found }}', operator: GreaterThan, value: 0}]}}}": policy.Indeterminate,
	} {
		o := options(t)
		o.Rule.Context.Images = config{}
		r, err := compile(t, o, body)
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if got := ask(t, r, pod(t, "{size: null, list: [{x: null}]}")); got.Result != want {
			t.Errorf("%s: %q %v; want %q", body, got.Result, got.Reasons, want)
		}
		if strings.Contains(body, "request.object") {
			continue
		}
		o.Rule.Context.Images = config{layers: 3.0}
		r, err = compile(t, o, body)
		if err != nil {
			t.Fatal(err)
		}
		if got := ask(t, r, pod(t, "{}")); got.Result != policy.Pass {
			t.Errorf("%s of a small number: %q %v", body, got.Result, got.Reasons)
		}
	}
}
