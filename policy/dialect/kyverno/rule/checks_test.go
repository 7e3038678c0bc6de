package rule_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// labelled is an object with a label, or none.
func labelled(value string) policy.Content {
	labels := map[string]any{}
	if value != "" {
		labels["a"] = value
	}
	return policy.ContentOf(map[string]any{"metadata": map[string]any{"labels": labels}})
}

// TestApplies: what an object was before an update does not count; where it is deleted, it does.
func TestApplies(t *testing.T) {
	const (
		wants    = "{name: r, match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {a: b}}}}]}}"
		excludes = "{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{resources: {selector: {matchLabels: {a: b}}}}]}}"
		unknown  = "{name: r, match: {any: [{roles: ['prod:x']}, {resources: {selector: {matchLabels: {a: b}}}}]}}"
	)
	for _, c := range []struct {
		reason, text  string
		object, older policy.Content
		want, errs    bool
	}{
		{"as it is", wants, labelled("b"), labelled(""), true, false},
		{"as it was", wants, labelled(""), labelled("b"), false, false},
		{"neither", wants, labelled(""), labelled(""), false, false},
		{"made anew, and wanted", wants, labelled("b"), policy.Content{}, true, false},
		{"made anew, and excluded", excludes, labelled("b"), policy.Content{}, false, false},
		{"made anew, and not excluded", excludes, labelled(""), policy.Content{}, true, false},
		{"excluded now, and not before", excludes, labelled("b"), labelled(""), false, false},
		{"excluded before, and not now", excludes, labelled(""), labelled("b"), true, false},
		{"excluded, and deleted", excludes, policy.Content{}, labelled("b"), false, false},
		{"deleted", wants, policy.Content{}, labelled("b"), true, false},
		{"deleted, and not wanted", wants, policy.Content{}, labelled(""), false, false},
		{"as it is, whatever the user's roles are", unknown, labelled("b"), labelled(""), true, false},
		{"as it was, and the roles are not known", unknown, labelled(""), labelled("b"), false, true},
		{"the roles alone", unknown, labelled(""), labelled("a"), false, true},
	} {
		head, err := compile(t, rule.Options{}, c.text)
		if err != nil {
			t.Fatal(err)
		}
		s := &policy.Subject{Version: "v1", Kind: "Pod", Name: "web", Operation: "UPDATE", User: policy.User{Name: "ann"}, Object: c.object, OldObject: c.older}
		if got, err := head.Applies(s); got != c.want || (err != nil) != c.errs {
			t.Errorf("%s: applies %t, %v", c.reason, got, err)
		}
	}
}

// TestPlain: a rule that reads nothing has no context, unless its preconditions read one.
func TestPlain(t *testing.T) {
	const asks = ", preconditions: {all: [{key: a, operator: Equals, value: '{{ request.name }}'}]}"
	for _, c := range []struct {
		reason, name, more string
		plain              bool
		context            bool
		want               policy.Result
	}{
		{"nothing is read", "a", "", true, false, ""},
		{"empty preconditions read nothing", "a", ", preconditions: {}", true, false, ""},
		{"something is read", "a", "", false, true, ""},
		{"preconditions are met", "a", asks, true, true, ""},
		{"preconditions are not met", "b", asks, true, true, policy.Skipped},
		{"preconditions are met in one reading", "*", asks, true, true, ""},
		{"preconditions are met in no reading", "b*", asks, true, true, policy.Skipped},
	} {
		head, err := compile(t, rule.Options{Plain: c.plain}, "{name: r, match: {any: [{resources: {kinds: [Pod]}}]}"+c.more+"}")
		if err != nil {
			t.Fatal(err)
		}
		data, answer, _ := head.Ask(t.Context(), policy.Case{Subject: &policy.Subject{Version: "v1", Kind: "Pod", Name: c.name, Operation: "CREATE", Object: labelled("")}})
		got := policy.Result("")
		if answer != nil {
			got = answer.Result
		}
		if got != c.want || (data != nil) != c.context {
			t.Errorf("%s: %q, a context %t", c.reason, got, data != nil)
		}
	}
}

// TestBackground: a requester has a name, or groups alone.
func TestBackground(t *testing.T) {
	head, err := compile(t, rule.Options{Background: true}, "{name: r, match: {any: [{resources: {kinds: [Pod]}}]}}")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		user policy.User
		asks bool
	}{{policy.User{}, true}, {policy.User{Name: "ann"}, false}, {policy.User{Groups: []string{"dev"}}, false}} {
		_, answer, _ := head.Ask(t.Context(), policy.Case{Subject: &policy.Subject{Version: "v1", Kind: "Pod", Operation: "CREATE", User: c.user, Object: labelled("")}})
		if (answer == nil) != c.asks {
			t.Errorf("%+v: the rule is asked: %t", c.user, answer == nil)
		}
	}
}

// TestWithoutFinder: without a finder there are no images.
func TestWithoutFinder(t *testing.T) {
	head, err := compile(t, rule.Options{}, "{name: r, match: {any: [{resources: {kinds: [Pod]}}]}}")
	if err != nil {
		t.Fatal(err)
	}
	data, answer, _ := head.Ask(t.Context(), policy.Case{Subject: &policy.Subject{Version: "v1", Kind: "Pod", Operation: "CREATE", Object: labelled("")}})
	read, err := variable.Compile(newEngine(t), "{{ images }}")
	if err != nil || answer != nil {
		t.Fatal(err, answer)
	}
	if got, err := read.Execute(data); err != nil || fmt.Sprint(got) != "map[]" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestReasonOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		code policy.Code
	}{
		{fmt.Errorf("look up: %w", context.DeadlineExceeded), policy.TimedOut},
		{errors.New("no such entry"), policy.PolicyError},
	} {
		if got := rule.ReasonOf(c.err); got.Code != c.code || got.Message != c.err.Error() {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
}

// TestCompileForms: fields that can be written in two forms, or in the old one.
func TestCompileForms(t *testing.T) {
	const pods = "any: [{resources: {kinds: [Pod]}}]"
	for _, c := range []struct {
		text string
		old  bool
		want string
	}{
		{"{name: r, match: {" + pods + "}, exclude: {any: [{resources: {kinds: [Pod], names: [a]}}]}}", false, ""},
		{"{name: r, match: {" + pods + ", all: [{resources: {kinds: [Pod]}}]}}", false, "rule.match: want one of any, all"},
		{"{name: r, match: {" + pods + "}, exclude: {resources: {kinds: [Pod]}}}", false, "the old form without any and all"},
		{"{name: r, match: {" + pods + "}, exclude: {resources: {kinds: [Pod], names: [a]}}}", true, ""},
		{"{name: r, match: {" + pods + "}, exclude: {" + pods + "}}", false, "rule.exclude: leaves out everything"},
	} {
		_, err := compile(t, rule.Options{OldForm: c.old}, c.text)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", c.text, err, c.want)
		}
	}
}
