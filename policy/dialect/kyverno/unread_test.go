package kyverno_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// closed is an object that notes whether it was decoded.
type closed struct{ opened bool }

func (c *closed) Content() map[string]any {
	c.opened = true
	return map[string]any{"metadata": map[string]any{"name": "web", "labels": map[string]any{"owner": "ann"}}, "spec": map[string]any{}}
}

// TestTheObjectIsDecodedOnlyWhereARuleReadsIt: most rules select by kinds and images alone.
func TestTheObjectIsDecodedOnlyWhereARuleReadsIt(t *testing.T) {
	const match = "resources:\n          kinds: [Pod]"
	for _, c := range []struct {
		before, after string // in the policy
		reads         bool
		reason        string
	}{
		{"", "", false, "kinds"},
		{match, "resources: {kinds: [Pod], names: [web], namespaces: [prod-eu], operations: [CREATE]}", false, "fields of the request"},
		{match, "subjects: [{kind: User, name: ann}]", false, "the user"},
		{match, "resources: {kinds: [Pod], selector: {matchLabels: {owner: ann}}}", true, "labels"},
		{match, "resources: {kinds: [Pod], annotations: {a: b}}", true, "annotations"},
		{"    verifyImages:", "    preconditions: {all: [{key: '{{ request.object.metadata.name }}', operator: Equals, value: web}]}\n    verifyImages:", true, "a precondition"},
	} {
		object, subject := &closed{}, pod("prod-eu")
		subject.Object = policy.ContentFrom(object)
		applies(t, ruleOf(t, compile(t, nil, c.before, c.after), "signed"), subject)
		if object.opened != c.reads {
			t.Errorf("%s: decoded %t, want %t", c.reason, object.opened, c.reads)
		}
	}
}
