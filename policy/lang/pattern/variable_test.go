package pattern_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/pattern"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

var data = variable.Context{
	"allowed": "a* | b*",
	"limit":   map[string]any{"max": "1Gi", "count": 3.0, "on": true, "none": nil},
	"names":   []any{"x*"},
	"hostile": map[string]any{"(a)": "x", "b": "y"},
	"label":   "team/*",
	"text":    "{{ allowed }} $(/a)",
	"anchor":  "(a)",
	"star":    "*",
	"mixed":   []any{"x", map[string]any{}},
}

func TestVariables(t *testing.T) {
	for _, row := range []row{
		{`{"a": "{{ allowed }}"}`, `{"a": "bcd"}`, "fail", "/a/", "what a variable brings is plain text"},
		{`{"a": "{{ allowed }}"}`, `{"a": "a* | b*"}`, "held", "", "to the letter"},
		{`{"a": "{{ allowed }}"}`, `{"a": "cd"}`, "fail", "/a/", "another text"},
		{`{"a": "!{{ allowed }}"}`, `{"a": "cd"}`, "held", "", "not this text, in either reading"},
		{`{"a": "!{{ allowed }}"}`, `{"a": "ab"}`, "fail", "/a/", "not this text, and a* in the other reading"},
		{`{"a": "<={{ limit.max }}"}`, `{"a": "512Mi"}`, "held", "", "in an operator"},
		{`{"a": "<={{ limit.max }}"}`, `{"a": "2Gi"}`, "fail", "/a/", "too much"},
		{`{"a": "{{ limit.count }}"}`, `{"a": 3}`, "held", "", "a number"},
		{`{"a": "{{ limit.count }}"}`, `{"a": 4}`, "fail", "/a/", "another"},
		{`{"a": "{{ limit.on }}"}`, `{"a": true}`, "held", "", "a boolean"},
		{`{"a": "{{ limit.on }}"}`, `{"a": "true"}`, "fail", "/a/", "is not a string"},
		{`{"a": "{{ limit.none }}"}`, `{}`, "held", "", "null"},
		{`{"a": "{{ limit.none }}"}`, `{"a": "x"}`, "fail", "/a/", "is not a text"},
		{`{"a": "{{ names }}"}`, `{"a": ["x1", "x2"]}`, "fail", "/a/", "a list of plain texts"},
		{`{"a": "{{ names }}"}`, `{"a": ["x*", "x*"]}`, "held", "", "to the letter"},
		{`{"a": "{{ names }}"}`, `{"a": ["x1", "y"]}`, "fail", "/a/", "one does not match"},
		{`{"a": ["{{ names }}"]}`, `{"a": [["x*"]]}`, "held", "", "a list in a list"},
		{`{"a": ["{{ names }}"]}`, `{"a": ["x1"]}`, "fail", "/a/0/", "wants one"},
		{`{"a": "{{ limit }}"}`, `{"a": {"max": "1024Mi", "count": 3, "on": true, "more": 1}}`, "held", "", "an object"},
		{`{"a": "{{ limit }}"}`, `{"a": {"max": "1025Mi", "count": 3, "on": true}}`, "fail", "/a/max/", "one value differs"},
		{`{"a": ["{{ limit }}"]}`, `{"a": [{"max": "1Gi", "count": 3, "on": true}]}`, "held", "", "an object in a list"},
		{`{"a": ["{{ limit }}"]}`, `{"a": [{"max": "1Gi", "count": 2, "on": true}]}`, "fail", "/a/0/count/", "one differs"},
		{`{"o": "{{ hostile }}"}`, `{"o": {"a": "z", "b": "n"}}`, "fail", "/o/(a)/", "a variable brings no anchors"},
		{`{"o": "{{ hostile }}"}`, `{"o": {"(a)": "x", "b": "y"}}`, "held", "", "its keys are names"},
		{`{"a": "{{ text }}"}`, `{"a": "{{ allowed }} $(/a)"}`, "held", "", "nor variables or references"},
		{`{"a": "{{ text }}"}`, `{"a": "a"}`, "fail", "/a/", "nor variables or references"},
		{`{"a": "{{ star }}"}`, `{"a": {}}`, "fail", "/a/", "a star is a text"},
		{`{"a": "{{ star }}"}`, `{"a": "*"}`, "held", "", "this one"},
		{`{"a": "{{ star }}"}`, `{}`, "fail", "/a/", "a star is a text"},
		{`{"{{ limit.max }}": "x"}`, `{"1Gi": "x"}`, "held", "", "in a key"},
		{`{"{{ limit.max }}": "x"}`, `{"1Gi": "y"}`, "fail", "/1Gi/", "with another value"},
		{`{"=(k-{{ limit.max }})": "x"}`, `{}`, "held", "", "in a key with an anchor"},
		{`{"=(k-{{ limit.max }})": "x"}`, `{"k-1Gi": "y"}`, "fail", "/k-1Gi/", "with another value"},
		{`{"{{ anchor }}": "x", "b": "y"}`, `{"a": "z", "b": "n"}`, "fail", "/(a)/", "no anchor comes into a key"},
		{`{"{{ anchor }}": "x", "b": "y"}`, `{"(a)": "x", "b": "y"}`, "held", "", "it is the name"},
		{`{"metadata": {"labels": {"{{ label }}": "x"}}}`, `{"metadata": {"labels": {"team/a": "x"}}}`, "error", "", "a wildcard comes into no key"},
		{`{"metadata": {"labels": {"{{ limit.max }}/*": "x"}}}`, `{"metadata": {"labels": {"1Gi/a": "x"}}}`, "held", "", "the policy's own wildcard beside it"},
		{`{"metadata": {"labels": {"{{ limit.max }}/*": "x"}}}`, `{"metadata": {"labels": {"1Gi/a": "x", "1Gi/b": "y"}}}`, "fail", "/metadata/labels/1Gi/b/", "matches all"},
		{`{"metadata": {"labels": {"X({{ label }})": null}}}`, `{"metadata": {"labels": {"team/a": "x"}}}`, "error", "", "nor into one that is not to be there"},
		{`{"{{ label }}": "x"}`, `{"team/*": "x"}`, "held", "", "elsewhere it is a name"},
		{`{"{{ limit.max }}": {"{{ limit.count }}": "{{ allowed }}"}}`, `{"1Gi": {"3": "a* | b*"}}`, "held", "", "keys in keys"},
		{`{"{{ limit.max }}": {"{{ limit.count }}": "{{ allowed }}"}}`, `{"1Gi": {"3": "c"}}`, "fail", "/1Gi/3/", "with another value"},
		{`{"a": "\\{{ allowed }}"}`, `{"a": "{{ allowed }}"}`, "held", "", "escaped"},
		{`{"a": "\\{{ allowed }}"}`, `{"a": "a"}`, "fail", "/a/", "escaped"},
		{`{"=(a)": "{{ missing }}"}`, `{}`, "error", "", "all variables are evaluated"},
		{`{"=(a)": "{{ missing || 'x' }}"}`, `{}`, "held", "", "a default"},
		{`{"(a)": "x", "b": "{{ missing }}"}`, `{"a": "y"}`, "error", "", "also what a condition leaves out"},
		{`{"{{ missing }}": "x"}`, `{}`, "error", "", "in a key"},
		{`{"{{ star }}": 1, "*": 2}`, `{"*": 1}`, "error", "", "two keys become one"},
		{`{"a": ["x", "{{ limit }}"]}`, `{"a": ["x"]}`, "error", "/a/", "a list of objects and values"},
		{`{"a": "{{ mixed }}"}`, `{"a": ["x"]}`, "error", "/a/", "also if a variable brings it"},
	} {
		r := compile(t, row.pattern).Match(data, decode(t, row.resource))
		if got := outcome(r); got != row.want || r.Path != row.path {
			t.Errorf("%s on %s: %s at %q (%s %v), want %s at %q: %s",
				row.pattern, row.resource, got, r.Path, r.Why, r.Err, row.want, row.path, row.reason)
		}
	}
}

func TestUndefinedVariable(t *testing.T) {
	r := compile(t, `{"spec": {"a/b": "x{{ request.missing }}"}}`).Match(data, decode(t, `{}`))
	failed, undefined := (*variable.Error)(nil), (*jmespath.UndefinedError)(nil)
	if !errors.As(r.Err, &failed) || failed.Path != "/spec/a~1b" || failed.Variable != "request.missing" || !errors.As(r.Err, &undefined) {
		t.Errorf("%#v", r)
	}
	if r.Held || r.Skip {
		t.Errorf("%#v is a result", r)
	}
}

func TestReferences(t *testing.T) {
	const memory = `{"c": [{"resources": {"requests": {"memory": "$(<=./../../limits/memory)"}, "limits": {"memory": "2Gi"}}}]}`
	check(t, []row{
		{memory, `{"c": [{"resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "2048Mi"}}}]}`, "held", "", "a relative path"},
		{memory, `{"c": [{"resources": {"requests": {"memory": "3Gi"}, "limits": {"memory": "2Gi"}}}]}`, "fail", "/c/0/resources/requests/memory/", "more than the pattern has"},
		{`{"^(c)": [{"live": {"port": "$(./../../ready/port)"}, "ready": {"port": "3000"}}]}`, `{"c": [{}, {"live": {"port": 3000}, "ready": {"port": 3000}}]}`, "held", "", "out of ^()"},
		{`{"^(c)": [{"live": {"port": "$(./../../ready/port)"}, "ready": {"port": "3000"}}]}`, `{"c": [{"live": {"port": 3001}, "ready": {"port": 3000}}]}`, "fail", "/c/", "another port"},
		{`{"a": "$(>/b)", "b": "5"}`, `{"a": 6, "b": 5}`, "held", "", "an absolute path"},
		{`{"a": "$(>/b)", "b": "5"}`, `{"a": 5, "b": 5}`, "fail", "/a/", "not more"},
		{`{"a": "$(>=/b)", "b": 5}`, `{"a": 5, "b": 5}`, "held", "", "a number"},
		{`{"a": "$(>=/b)", "b": 5}`, `{"a": 4, "b": 5}`, "fail", "/a/", "less"},
		{`{"a": "$(!/b)", "b": "x"}`, `{"a": "y", "b": "x"}`, "held", "", "not the same"},
		{`{"a": "$(!/b)", "b": "x"}`, `{"a": "x", "b": "x"}`, "fail", "/a/", "the same"},
		{`{"a": "$(/b) | y", "b": "x*"}`, `{"a": "x1", "b": "x2"}`, "held", "", "a pattern, in a longer one"},
		{`{"a": "$(/b) | y", "b": "x*"}`, `{"a": "z", "b": "x2"}`, "fail", "/a/", "neither"},
		{`{"=(a)": {"(b)": "$(./../c)", "=(c)": "x"}}`, `{"a": {"b": "x", "c": "x"}}`, "held", "", "anchors on the way"},
		{`{"=(a)": {"(b)": "$(./../c)", "=(c)": "x"}}`, `{"a": {"b": "x", "c": "y"}}`, "fail", "/a/c/", "anchors on the way"},
		{`{"a": "$(./../lim(its/mem)ory)", "lim(its": {"mem)ory": "x"}}`, `{"a": "x", "lim(its": {"mem)ory": "x"}}`, "held", "", "parentheses in names"},
		{`{"a": "$(./../lim(its/mem)ory)", "lim(its": {"mem)ory": "x"}}`, `{"a": "y", "lim(its": {"mem)ory": "x"}}`, "fail", "/a/", "parentheses in names"},
		{`{"a": "$(/b~1c)", "b/c": "x"}`, `{"a": "x", "b/c": "x"}`, "held", "", "a slash in a name"},
		{`{"a": "$(/b~1c)", "b/c": "x"}`, `{"a": "y", "b/c": "x"}`, "fail", "/a/", "a slash in a name"},
		{`{"a": "\\$(HOME)"}`, `{"a": "$(HOME)"}`, "held", "", "escaped"},
		{`{"a": "\\$(HOME)"}`, `{"a": "x"}`, "fail", "/a/", "escaped"},
		{`{"a": "$(HOME"}`, `{"a": "$(HOME"}`, "held", "", "not closed, it is text"},
		{`{"a": "$(HOME"}`, `{"a": "x"}`, "fail", "/a/", "not closed, it is text"},
		{`{"a": ["$(/b)"], "b": "x"}`, `{"a": ["x"], "b": "x"}`, "held", "", "in a list"},
		{`{"a": ["$(/b)"], "b": "x"}`, `{"a": ["y"], "b": "x"}`, "fail", "/a/", "in a list"},
	})
	r := compile(t, `{"a": "$(/b)", "b": "{{ allowed }}"}`).Match(data, decode(t, `{"a": "a* | b*", "b": "a* | b*"}`))
	if !r.Held {
		t.Errorf("a reference to a variable: %#v", r)
	}
}

func TestCompileErrors(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 250) + "1" + strings.Repeat("}", 250)
	for _, test := range []struct{ pattern, path, want, reason string }{
		{`{"spec": {"a/b": ["{{ a b }}"]}}`, "/spec/a~1b/0", "SyntaxError", "a bad expression"},
		{`{"spec": {"{{ a b }}": "x"}}`, "/spec/{{ a b }}", "SyntaxError", "in a key"},
		{`{"spec": "{{ a"}`, "/spec", "not closed", "never closed"},
		{`{"spec": "{{ frobnicate(a) }}"}`, "/spec", "no function", "no such function"},
		{`{"+(a)": "x"}`, "/+(a)", "adds in a mutation", "an anchor for mutation"},
		{`{"a": [{"+(b)": "x"}]}`, "/a/0/+(b)", "adds in a mutation", "further in"},
		{`{"=()": "x"}`, "/=()", "without a name", "no name"},
		{`{"metadata": {"labels": {"(a)": null}}, "b": "y"}`, "/metadata/labels/(a)", "never holds", "a label is never null"},
		{`{"metadata": {"=(annotations)": {"(a*)": null}}, "b": "y"}`, "/metadata/=(annotations)/(a*)", "never holds", "nor is an annotation"},
		{`{"data": {"X(a*)": null}}`, "/data/X(a*)", "labels and annotations alone", "a wildcard in a negation of no label"},
		{`{"data": {"=(a?)": "x"}}`, "/data/=(a?)", "labels and annotations alone", "a wildcard in a key that need not be there"},
		{`{"spec": {"(a*)": "x", "b": "y"}}`, "/spec/(a*)", "labels and annotations alone", "a wildcard in a condition"},
		{`{"spec": {"<(a*)": "x", "b": "y"}}`, "/spec/<(a*)", "labels and annotations alone", "a wildcard in a global condition"},
		{`{"spec": {"^(a*)": [{"b": "y"}]}}`, "/spec/^(a*)", "labels and annotations alone", "a wildcard in an existence anchor"},
		{`{"": "x"}`, "/", "without a name", "no name"},
		{`{"^(a)": "x"}`, "/^(a)", "is for lists", "no list"},
		{`{"^(a)": []}`, "/^(a)", "at least one", "an empty list"},
		{`{"^(a)": ["x"]}`, "/^(a)/0", "want an object", "no object"},
		{`{"^(a)": [{}, "{{ x }}"]}`, "/^(a)/1", "want an object", "perhaps no object"},
		{`{"a": ["x", {"b": 1}]}`, "/a", "split it up", "a list of two kinds"},
		{`{"a": [["x"], "y"]}`, "/a", "split it up", "a list of two kinds"},
		{`{"a": "$(/b)"}`, "/a", "nothing there", "a reference to nothing"},
		{`{"a": "$(./../../../b)"}`, "/a", "nothing there", "out of the pattern"},
		{`{"a": "$(/b/1)", "b": ["x"]}`, "/a", "nothing there", "out of a list"},
		{`{"a": "$(/b/c)", "b": "x"}`, "/a", "nothing there", "into a value"},
		{`{"a": "$(/b)", "b": {}}`, "/a", "want a string", "to an object"},
		{`{"a": "$(/b)", "b": 5}`, "/a", "want a string", "to a number, without an operator"},
		{`{"a": "$(>/b)", "b": true}`, "/a", "want a string", "to a boolean"},
		{`{"a": "$(/b)", "b": "$(/a)"}`, "/a", "a reference to a reference", "in a circle"},
		{`{"a": "$(=</b)", "b": "x"}`, "/a", "no operator =<", "no such operator"},
		{`{"a": "$()"}`, "/a", "want a path", "no path"},
		{`{"a": "$(>)"}`, "/a", "want a path", "no path"},
		{`{"$(/a)": "x", "a": "b"}`, "/$(~1a)", "write the key out", "in a key"},
		{deep, "", "exceeds the bound", "too deep"},
		{`{"a": "` + strings.Repeat("a|", 5000) + `"}`, "/a", "exceeds the bound", "too many alternatives"},
	} {
		_, err := pattern.Compile(newEngine(t), decode(t, test.pattern))
		failed := (*variable.CompileError)(nil)
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), test.want) || test.path != "" && failed.Path != test.path {
			t.Errorf("%.80s: %v, want %q at %s: %s", test.pattern, err, test.want, test.path, test.reason)
		}
	}
	if _, err := pattern.Compile(newEngine(t), map[string]any{"a": struct{}{}}); err == nil {
		t.Error("a value that is no JSON compiles")
	}
}

func TestBounds(t *testing.T) {
	many := make([]any, 100_001)
	deep := any("x")
	for range 250 {
		deep = []any{deep}
	}
	empty := make([]any, 10_000)
	for i := range empty {
		empty[i] = map[string]any{}
	}
	long := strings.Repeat("ab", 50_000)
	big := variable.Context{"many": many, "deep": deep, "parts": strings.Repeat("a|", 5000), "pattern": strings.Repeat("?a", 10_000) + "b",
		"objects": empty}
	for _, test := range []struct {
		pattern  string
		resource any
		reason   string
	}{
		{`{"a": "{{ many }}"}`, map[string]any{"a": []any{}}, "a variable brings too many values"},
		{`{"a": "{{ deep }}"}`, map[string]any{"a": []any{}}, "or too deep ones"},
		{`{"a": "{{ parts }}"}`, map[string]any{"a": "x"}, "or too many alternatives"},
		{`{"a": "{{ pattern }}"}`, map[string]any{"a": []any{long, long, long, long}}, "or an expensive pattern"},
		{`{"(a)": "{{ pattern }}"}`, map[string]any{"a": []any{long, long, long, long}}, "which skips nothing"},
		{`{"^(a)": [{"b": "{{ pattern }}"}]}`, map[string]any{"a": []any{map[string]any{"b": []any{long, long, long, long}}}}, "nor does another element excuse it"},
		{`{"a": "{{ objects }}"}`, map[string]any{"a": empty}, "or many cheap ones, for each of many elements"},
		{`{"a": ["!5"]}`, map[string]any{"a": []any{strings.Repeat("5", 100)}}, "a number beyond any in use"},
		{`{"(a)": "!5", "b": "x"}`, map[string]any{"a": strings.Repeat("5", 100)}, "which skips nothing"},
	} {
		r := compile(t, test.pattern).Match(big, test.resource)
		if !errors.Is(r.Err, jmespath.ErrTooLarge) || r.Held || r.Skip {
			t.Errorf("%s: %v %v: %s", test.pattern, outcome(r), r.Err, test.reason)
		}
	}
	nodes := make([]any, 200_000)
	for i := range nodes {
		nodes[i] = "x"
	}
	if _, err := pattern.Compile(newEngine(t), nodes); !errors.Is(err, jmespath.ErrTooLarge) {
		t.Errorf("a pattern of 200,000 values: %v", err)
	}
	// A deep object is only looked at as deep as the pattern goes.
	for range 100_000 {
		deep = map[string]any{"a": deep}
	}
	if r := compile(t, `{"a": {"b": "x"}}`).Match(nil, deep); outcome(r) != "fail" {
		t.Errorf("%#v", r)
	}
}

func TestWhy(t *testing.T) {
	for _, test := range []struct{ pattern, resource, want, reason string }{
		{`{"a": "!*:latest"}`, `{"a": "x:latest"}`, `expected "!*:latest", found "x:latest"`, "texts"},
		{`{"a": "?*"}`, `{}`, `expected "?*", found nothing`, "not there"},
		{`{"a": "?*"}`, `{"a": null}`, `expected "?*", found null`, "null"},
		{`{"a": "*"}`, `{}`, `expected a value of a, found nothing`, "not there"},
		{`{"a": false}`, `{"a": true}`, `expected false, found true`, "booleans"},
		{`{"a": {"b": 1}}`, `{"a": [1, 2]}`, `expected an object, found a list of 2`, "a list"},
		{`{"a": ["x"]}`, `{"a": {}}`, `expected a list, found an object`, "an object"},
		{`{"a": []}`, `{"a": []}`, `expected no list at all, for the pattern's list is empty, found a list of 0`, "an empty list"},
		{`{"X(a)": null}`, `{"a": 5}`, `expected nothing, found 5`, "a negation"},
		{`{"^(a)": [{"b": 1}]}`, `{"a": [{}]}`, `expected a list with an element like the pattern, found a list of 1`, "an existence"},
		{`{"^(a)": [{"b": 1}]}`, `{"a": 1}`, `expected a list, found 1`, "no list"},
		{`{"a": [["x"], ["y"]]}`, `{"a": []}`, `expected a list of at least 2, found a list of 0`, "a short list"},
		{`{"(a)": "x"}`, `{"a": "y"}`, `the condition (a) does not hold: expected "x", found "y"`, "a condition"},
		{`{"(a)": "x"}`, `{}`, `the condition (a) does not hold: expected a value, found nothing`, "not there"},
		{`{"<(a)": {"b": "x"}}`, `{"a": {}}`, `the condition <(a) does not hold: expected "x", found nothing`, "a global one"},
		{`{"a": "x"}`, `{"a": "` + strings.Repeat("é", 300) + `"}`, `expected "x", found "` + strings.Repeat("é", 100) + `..."`, "a long text"},
	} {
		if r := compile(t, test.pattern).Match(nil, decode(t, test.resource)); r.Why != test.want {
			t.Errorf("%s on %s: %s, want %s: %s", test.pattern, test.resource, r.Why, test.want, test.reason)
		}
	}
}
