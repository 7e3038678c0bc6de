package pattern_test

import (
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/pattern"
)

// outcome is a result in one word.
func outcome(r pattern.Result) string {
	switch {
	case r.Err != nil:
		return "error"
	case r.Partly:
		return "partly"
	case r.Held:
		return "held"
	case r.Skip:
		return "skip"
	}
	return "fail"
}

type row struct {
	pattern, resource string
	want, path        string
	reason            string
}

func check(t *testing.T, rows []row) {
	t.Helper()
	for _, row := range rows {
		r := compile(t, row.pattern).Match(nil, decode(t, row.resource))
		if got := outcome(r); got != row.want || r.Path != row.path || (r.Why == "") != (r.Held && !r.Partly) {
			t.Errorf("%s on %s: %s at %q (%s %v), want %s at %q: %s",
				row.pattern, row.resource, got, r.Path, r.Why, r.Err, row.want, row.path, row.reason)
		}
	}
}

func TestObjects(t *testing.T) {
	check(t, []row{
		{`{}`, `{"a": 1}`, "held", "", "nothing is asked"},
		{`{}`, `[]`, "fail", "/", "but an object"},
		{`{"a": 1}`, `{"a": 1, "b": 2}`, "held", "", "a field that is not in the pattern does not count"},
		{`{"a": 1}`, `{"a": 2, "b": 1}`, "fail", "/a/", "a field in the pattern does"},
		{`{"a": {"b": {"c": "x"}}}`, `{"a": {"b": {"c": "x"}}}`, "held", "", "further in"},
		{`{"a": {"b": {"c": "x"}}}`, `{"a": {"b": {"c": "y"}}}`, "fail", "/a/b/c/", "with its path"},
		{`{"a": {"b": "x"}}`, `{"a": "x"}`, "fail", "/a/", "an object is wanted"},
		{`{"a": {"b": "x"}}`, `{}`, "fail", "/a/", "which must be there"},
		{`{"a": {}}`, `{"a": {}}`, "held", "", "an empty one for an empty one"},
		{`{"a": {}}`, `{}`, "fail", "/a/", "but it must be there"},
		{`{"a": "x"}`, `{"a": {"x": 1}}`, "fail", "/a/", "a value is wanted"},
		{`"x"`, `"x"`, "held", "", "a value alone"},
		{`"x"`, `"y"`, "fail", "/", "another"},
		{`{"a": "x", "b": "y"}`, `{"a": "1", "b": "2"}`, "fail", "/a/", "in the order of the keys"},

		{`{"a": "*"}`, `{"a": "x"}`, "held", "", "anything"},
		{`{"a": "*"}`, `{"a": ""}`, "held", "", "also an empty text"},
		{`{"a": "*"}`, `{"a": {}}`, "held", "", "also an object"},
		{`{"a": "*"}`, `{"a": []}`, "held", "", "also a list"},
		{`{"a": "*"}`, `{"a": false}`, "held", "", "also false"},
		{`{"a": "*"}`, `{}`, "fail", "/", "which must be there"},
		{`{"a": {"b": "*"}}`, `{"a": {"b": null}}`, "fail", "/a/", "and not null"},
		{`{"a": "?*"}`, `{"a": "x"}`, "held", "", "some text"},
		{`{"a": "?*"}`, `{"a": ""}`, "fail", "/a/", "no text"},
		{`{"a": "?*"}`, `{}`, "fail", "/a/", "not there"},
		{`{"a": "?*"}`, `{"a": {}}`, "fail", "/a/", "an object is no text"},
		{`{"a": null}`, `{}`, "held", "", "must not be there"},
		{`{"a": null}`, `{"a": null}`, "held", "", "null is not there"},
		{`{"a": null}`, `{"a": {}}`, "fail", "/a/", "but an object is"},
		{`{"a": null}`, `{"a": "x"}`, "fail", "/a/", "and so is a text"},
		{`{"a": "<5"}`, `{}`, "held", "", "a missing field counts as zero"},
		{`{"a": ">5"}`, `{}`, "fail", "/a/", "a missing field counts as zero"},
		{`{"a": "!x"}`, `{"a": "y"}`, "held", "", "another text"},
		{`{"a": "!x"}`, `{}`, "fail", "/a/", "no text at all"},
		{`{"replicas": "2-4"}`, `{"replicas": 3}`, "held", "", "a range"},
		{`{"replicas": "2-4"}`, `{"replicas": 5}`, "fail", "/replicas/", "out of it"},
		{`{"a b": "x"}`, `{"a b": "x"}`, "held", "", "a key with a space"},
		{`{"a b": "x"}`, `{"ab": "x"}`, "fail", "/a b/", "is that key"},
		{`{"!a": "x"}`, `{"!a": "x"}`, "held", "", "a key has no operators"},
		{`{"!a": "x"}`, `{"b": "x"}`, "fail", "/!a/", "but is that key"},
	})
}

func TestLists(t *testing.T) {
	check(t, []row{
		{`{"a": [{"n": "x*"}]}`, `{"a": [{"n": "x1"}, {"n": "x2"}]}`, "held", "", "every element"},
		{`{"a": [{"n": "x*"}]}`, `{"a": [{"n": "x1"}, {"n": "y"}]}`, "fail", "/a/1/n/", "not every element"},
		{`{"a": [{"n": "x*"}]}`, `{"a": []}`, "held", "", "of none every element"},
		{`{"a": [{"n": "x*"}]}`, `{}`, "fail", "/a/", "the list must be there"},
		{`{"a": [{"n": "x*"}]}`, `{"a": null}`, "fail", "/a/", "and not be null"},
		{`{"a": [{"n": "x*"}]}`, `{"a": {"n": "x1"}}`, "fail", "/a/", "nor an object"},
		{`{"a": [{"n": "x*"}]}`, `{"a": ["x1"]}`, "fail", "/a/0/", "of objects"},
		{`{"a": ["x*"]}`, `{"a": ["x1", "x2"]}`, "held", "", "every value"},
		{`{"a": ["x*"]}`, `{"a": ["x1", "y"]}`, "fail", "/a/", "not every value"},
		{`{"a": ["x*"]}`, `{"a": "x1"}`, "fail", "/a/", "a list is wanted"},
		{`{"a": ["x*"]}`, `{"a": [["x1"]]}`, "fail", "/a/", "not of lists"},
		{`{"a": ["x | y"]}`, `{"a": ["y", "x", "x"]}`, "held", "", "each one of two"},
		{`{"a": ["x | y"]}`, `{"a": ["y", "z"]}`, "fail", "/a/", "one is not"},
		{`{"a": "x | y"}`, `{"a": ["y", "x"]}`, "held", "", "a value for a list is for each"},
		{`{"a": "x | y"}`, `{"a": ["y", "z"]}`, "fail", "/a/", "one is not"},
		{`{"a": "x | y"}`, `{"a": [{}]}`, "fail", "/a/", "an object is not"},
		{`{"a": "!x"}`, `{"a": ["y", "z"]}`, "held", "", "none is"},
		{`{"a": "!x"}`, `{"a": ["y", "x"]}`, "fail", "/a/", "one is"},
		{`{"a": "x"}`, `{"a": []}`, "held", "", "of none every element"},
		{`{"a": null}`, `{"a": []}`, "held", "", "of none every element"},
		{`{"a": null}`, `{"a": [1]}`, "fail", "/a/", "one is not null"},
		{`{"a": ">1"}`, `{"a": [2, "3"]}`, "held", "", "numbers"},
		{`{"a": ">1"}`, `{"a": [2, 1]}`, "fail", "/a/", "one is too small"},
		{`{"a": []}`, `{"a": []}`, "fail", "/a/", "an empty list is no pattern"},
		{`{"a": []}`, `{}`, "fail", "/a/", "at all"},
		{`{"a": [["x"], ["y"]]}`, `{"a": [["x"], ["y"], ["z"]]}`, "held", "", "lists one by one"},
		{`{"a": [["x"], ["y"]]}`, `{"a": [["x"], ["z"]]}`, "fail", "/a/1/", "the second differs"},
		{`{"a": [["x"], ["y"]]}`, `{"a": [["x"]]}`, "fail", "/a/", "the second is missing"},
		{`{"a": [{"n": "x*"}, {"n": "*y"}]}`, `{"a": [{"n": "xy"}]}`, "held", "", "every item counts"},
		{`{"a": [{"n": "x*"}, {"n": "*y"}]}`, `{"a": [{"n": "xz"}]}`, "fail", "/a/0/n/", "and not only the first"},
		{`{"a": ["!x", "!y"]}`, `{"a": ["z"]}`, "held", "", "every item counts"},
		{`{"a": ["!x", "!y"]}`, `{"a": ["y"]}`, "fail", "/a/", "and not only the first"},
		{`[{"n": "x"}]`, `[{"n": "x"}]`, "held", "", "a list alone"},
		{`[{"n": "x"}]`, `[{"n": "y"}]`, "fail", "/0/n/", "with its path"},
	})
}

func TestConditions(t *testing.T) {
	const pulled = `{"containers": [{"name": "*", "(image)": "*:latest | !*:*", "pull": "!Always"}]}`
	check(t, []row{
		{pulled, `{"containers": [{"name": "a", "image": "a:1", "pull": "Always"}]}`, "skip", "/containers/0/image/", "the condition does not hold"},
		{pulled, `{"containers": [{"name": "a", "image": "a", "pull": "Never"}]}`, "held", "", "it does, and the rest does"},
		{pulled, `{"containers": [{"name": "a", "image": "a", "pull": "Always"}]}`, "fail", "/containers/0/pull/", "it does, and the rest does not"},
		{pulled, `{"containers": [{"name": "a", "image": "a:1", "pull": "Always"}, {"name": "b", "image": "b", "pull": "Never"}]}`, "held", "", "it does for one"},
		{pulled, `{"containers": [{"name": "a", "image": "a:1", "pull": "Always"}, {"name": "b", "image": "b", "pull": "Always"}]}`, "fail", "/containers/1/pull/", "which the other does not excuse"},
		{pulled, `{"containers": [{"name": "b", "image": "b", "pull": "Always"}, {"name": "a", "image": "a:1", "pull": "Always"}]}`, "fail", "/containers/0/pull/", "in any order"},
		{pulled, `{"containers": [{"name": "a", "pull": "Always"}]}`, "skip", "/containers/0/image/", "it is not there"},
		{pulled, `{"containers": []}`, "held", "", "there is nothing to leave out"},
		{pulled, `{}`, "fail", "/containers/", "the list must be there"},

		{`{"(a)": "x", "b": "y"}`, `{"a": "z", "b": "z"}`, "skip", "/a/", "at the top it skips the rule"},
		{`{"(a)": "x", "b": "y"}`, `{"a": "x", "b": "z"}`, "fail", "/b/", "it holds"},
		{`{"(a)": "x", "b": "y"}`, `{"a": "x", "b": "y"}`, "held", "", "and so does the rest"},
		{`{"(a)": "x", "(c)": "x", "b": "y"}`, `{"a": "x", "b": "z"}`, "skip", "/c/", "all conditions must hold"},
		{`{"(a)": "x", "(c)": "x", "b": "y"}`, `{"a": "x", "c": "x", "b": "z"}`, "fail", "/b/", "they do"},
		{`{"(a)": "*", "b": "y"}`, `{"a": null, "b": "z"}`, "skip", "/a/", "null is no text"},
		{`{"(a)": null, "b": "y"}`, `{"a": null, "b": "z"}`, "fail", "/b/", "but null is null"},
		{`{"(a)": null, "b": "y"}`, `{"b": "z"}`, "skip", "/a/", "if it is there"},
		{` {" (a) ": "x", "b": "y"}`, `{"a": "z"}`, "skip", "/a/", "space around an anchor"},
		{`{"(a)": {"b": "x"}, "c": "y"}`, `{"a": {"b": "z"}}`, "skip", "/a/b/", "all that is in a condition is one"},
		{`{"(a)": {"b": "x"}, "c": "y"}`, `{"a": {"b": "x"}}`, "fail", "/c/", "it holds"},
		{`{"(a)": {"X(b)": null}, "c": "y"}`, `{"a": {"b": "x"}}`, "skip", "/a/b/", "an anchor in it, too"},
		{`{"(a)": {"X(b)": null}, "c": "y"}`, `{"a": {}}`, "fail", "/c/", "it holds"},
		{`{"(a)": [{"b": "x"}], "c": "y"}`, `{"a": [{"b": "x"}, {"b": "z"}]}`, "skip", "/a/1/b/", "a list in it must match whole"},
		{`{"(a)": [{"b": "x"}], "c": "y"}`, `{"a": [{"b": "x"}]}`, "fail", "/c/", "it does"},

		{`{"meta": {"(app)": "x"}, "spec": {"a": "y"}}`, `{"meta": {"app": "z"}, "spec": {"a": "n"}}`, "skip", "/meta/app/", "outside of lists it skips the rule"},
		{`{"meta": {"(app)": "x"}, "spec": {"a": "y"}}`, `{"meta": {"app": "x"}, "spec": {"a": "n"}}`, "fail", "/spec/a/", "it holds"},
		{`{"meta": {"label": "x"}, "(spec)": {"(vols)": [{"(host)": {"path": "/s"}}]}}`, `{"meta": {}, "spec": {}}`, "skip", "/spec/vols/", "a condition in a condition"},
		{`{"meta": {"label": "x"}, "(spec)": {"(vols)": [{"(host)": {"path": "/s"}}]}}`, `{"meta": {}, "spec": {"vols": [{"host": {"path": "/r"}}]}}`, "skip", "/spec/vols/0/host/path/", "which no element holds"},
		{`{"meta": {"label": "x"}, "(spec)": {"(vols)": [{"(host)": {"path": "/s"}}]}}`, `{"meta": {}, "spec": {"vols": [{"name": "v"}, {"host": {"path": "/s"}}]}}`, "fail", "/meta/label/", "one does"},
		{`{"meta": {"label": "x"}, "(spec)": {"(vols)": [{"(host)": {"path": "/s"}}]}}`, `{"meta": {"label": "x"}, "spec": {"vols": [{"host": {"path": "/s"}}]}}`, "held", "", "and has the label"},
	})
}

// TestPartly: where a condition skips a part and the rest holds, the object is no match of an
// existence anchor, because Kyverno skips all of it.
func TestPartly(t *testing.T) {
	const (
		context = `{"=(context)": {"(privileged)": false, "user": ">0"}, "=(tty)": false}`
		named   = `[{"(name)": "web*", "user": ">0"}, {"image": "*"}]`
	)
	check(t, []row{
		{context, `{"context": {"privileged": false, "user": 1}}`, "held", "", "the condition holds"},
		{context, `{"context": {"privileged": true, "user": 0}}`, "partly", "/context/privileged/", "it does not, and the other field is not there"},
		{context, `{"context": {"privileged": true, "user": 0}, "tty": true}`, "fail", "/tty/", "the other field counts"},
		{`{"(a)": "x", "=(b)": {"(c)": "x", "d": "y"}}`, `{"a": "x", "b": {"c": "n"}}`, "partly", "/b/c/", "beside a condition that holds"},
		{`{"(a)": "x", "=(b)": {"(c)": "x", "d": "y"}}`, `{"a": "n", "b": {"c": "n"}}`, "skip", "/a/", "beside one that does not"},
		{`{"X(a)": null, "=(b)": {"(c)": "x", "d": "y"}}`, `{"b": {"c": "n"}}`, "partly", "/b/c/", "beside a field that must not be there"},
		{`{"X(a)": null, "=(b)": {"(c)": "x", "d": "y"}}`, `{"b": {"c": "x", "d": "y"}}`, "held", "", "nothing is skipped"},
		{`{"a": ` + context + `}`, `{"a": {"context": {"privileged": true}}}`, "partly", "/a/context/privileged/", "further in"},
		{`{"(a)": ` + context + `, "b": "x"}`, `{"a": {"context": {"privileged": true}}, "b": "x"}`, "partly", "/a/context/privileged/", "in a condition"},
		{`{"(a)": ` + context + `, "b": "x"}`, `{"a": {"context": {"privileged": true}}, "b": "y"}`, "fail", "/b/", "which does not skip the rest"},
		{`{"metadata": {"labels": {"(a*)": ` + context + `}}}`, `{"metadata": {"labels": {"a": {"context": {"privileged": true}}}}}`, "partly", "/metadata/labels/a/context/privileged/", "in a condition with a wildcard"},
		{`{"metadata": {"labels": {"=(a*)": ` + context + `}}}`, `{"metadata": {"labels": {"a": {"context": {"privileged": true}}}}}`, "partly", "/metadata/labels/a/context/privileged/", "under a wildcard"},
		{`[` + context + `]`, `[{"context": {"privileged": true}}]`, "partly", "/0/context/privileged/", "in all elements of a list"},
		{`[` + context + `]`, `[{"context": {"privileged": true}}, {"context": {"privileged": false, "user": 1}}]`, "held", "", "in one of them, which is left out"},
		{`[[` + context + `]]`, `[[{"context": {"privileged": true}}]]`, "partly", "/0/0/context/privileged/", "in a list of lists"},
		{named, `[{"name": "db", "image": "a"}]`, "partly", "/0/name/", "one item skips all elements"},
		{named, `[{"name": "db", "image": "a"}, {"name": "web", "user": 1, "image": "b"}]`, "held", "", "it applies to one element"},
		{named, `[{"name": "db", "image": "a"}, {"name": "web", "user": 0, "image": "b"}]`, "fail", "/1/user/", "which fails"},
		{named, `[]`, "held", "", "there is no element to skip"},
		{`[{"(a)": "x"}, {"(b)": "x"}]`, `[{}]`, "skip", "/0/b/", "both items skip all elements"},

		{`{"^(a)": [` + context + `]}`, `{"a": [{"context": {"privileged": true, "user": 0}}]}`, "fail", "/a/", "the only element is skipped"},
		{`{"^(a)": [` + context + `]}`, `{"a": [{"context": {"privileged": true, "user": 0}}, {"context": {"privileged": false, "user": 1}}]}`, "held", "", "another one is a match"},
		{`{"^(a)": [{"b": ` + named + `}]}`, `{"a": [{"b": [{"name": "db", "image": "a"}]}]}`, "fail", "/a/", "a list in it is skipped"},
		{`{"^(a)": [{"b": ` + named + `}]}`, `{"a": [{"b": [{"name": "web", "user": 1, "image": "a"}]}]}`, "held", "", "it is not"},
	})
}

// TestLeftOut is about what stands beside something that a condition leaves out.
func TestLeftOut(t *testing.T) {
	const (
		users = `{"=(init)": [{"(name)": "!mesh", "=(user)": ">0"}], "=(main)": [{"=(user)": ">0"}]}`
		both  = `{"init": [{"(image)": "*:latest", "pull": "x"}], "main": [{"(image)": "*:latest", "pull": "x"}]}`
		mixed = `{"=(init)": [{"(image)": "*:latest", "pull": "x"}], "main": [{"user": ">0"}]}`
	)
	check(t, []row{
		{users, `{"init": [{"name": "mesh", "user": 0}], "main": [{"user": 1000}]}`, "partly", "/init/0/name/", "one list is left out, the other holds"},
		{users, `{"init": [{"name": "mesh", "user": 0}], "main": [{"user": 0}]}`, "fail", "/main/0/user/", "the other does not hold"},
		{users, `{"init": [{"name": "mesh", "user": 0}]}`, "partly", "/init/0/name/", "the other is not there"},
		{users, `{"init": [{"name": "a", "user": 0}], "main": [{"user": 1}]}`, "fail", "/init/0/user/", "nothing is left out"},
		{both, `{"init": [{"image": "a:1"}], "main": [{"image": "b:1"}]}`, "skip", "/init/0/image/", "both are left out"},
		{both, `{"init": [{"image": "a:1"}], "main": [{"image": "b:latest", "pull": "y"}]}`, "fail", "/main/0/pull/", "one list does not excuse another"},
		{both, `{"init": [{"image": "a:latest", "pull": "y"}], "main": [{"image": "b:1"}]}`, "fail", "/init/0/pull/", "in any order"},
		{both, `{"init": [{"image": "a:1"}], "main": [{"image": "b:latest", "pull": "x"}]}`, "skip", "/init/0/image/", "nothing fails"},
		{mixed, `{"init": [{"image": "a:1"}], "main": [{"user": 0}]}`, "fail", "/main/0/user/", "a field without a condition counts"},
		{mixed, `{"init": [{"image": "a:1"}], "main": [{"user": 1}]}`, "skip", "/init/0/image/", "all that has an anchor is left out"},
		{mixed, `{"main": [{"user": 1}]}`, "held", "", "there is nothing to leave out"},
		{`{"=(a)": {"(b)": "x", "c": "y"}, "d": "z"}`, `{"a": {"b": "n"}, "d": "n"}`, "fail", "/d/", "a condition in =() applies to the fields in it"},
		{`{"=(a)": {"(b)": "x", "c": "y"}, "d": "z"}`, `{"a": {"b": "n"}, "d": "z"}`, "skip", "/a/b/", "nothing fails"},
		{`{"a": [{"b": [{"(c)": "x", "d": "y"}]}]}`, `{"a": [{"b": [{"c": "n"}]}, {"b": [{"c": "x", "d": "n"}]}]}`, "fail", "/a/1/b/0/d/", "a list in a list"},
		{`{"a": [{"b": [{"(c)": "x", "d": "y"}]}]}`, `{"a": [{"b": [{"c": "n"}]}, {"b": [{"c": "x", "d": "y"}]}]}`, "held", "", "one element holds"},
		{`{"a": [{"b": [{"(c)": "x", "d": "y"}]}]}`, `{"a": [{"b": [{"c": "n"}]}]}`, "skip", "/a/0/b/0/c/", "none does"},
		{`{"a": [[{"(c)": "x", "d": "y"}]]}`, `{"a": [[{"c": "n"}]]}`, "skip", "/a/0/0/c/", "lists of lists"},
		{`{"a": [[{"(c)": "x", "d": "y"}]]}`, `{"a": [[{"c": "x"}]]}`, "fail", "/a/0/0/d/", "it holds"},
		{`{"a": {"owner": "team"}}`, `{"a": {"owner": "conditional anchor mismatch"}}`, "fail", "/a/owner/", "text is no reason to skip"},
		{`{"a": {"owner": "team"}}`, `{"a": {"owner": "team"}}`, "held", "", "text is text"},
	})
}

func TestGlobal(t *testing.T) {
	const (
		latest  = `{"containers": [{"name": "*", "<(image)": "*:latest", "pull": "!Always"}]}`
		secrets = `{"containers": [{"name": "*", "<(image)": "corp/*"}], "secrets": [{"name": "corp"}]}`
	)
	check(t, []row{
		{latest, `{"containers": [{"name": "a", "image": "a:1", "pull": "Always"}]}`, "skip", "/containers/0/image/", "it does not hold"},
		{latest, `{"containers": [{"name": "a", "image": "a:latest", "pull": "Always"}]}`, "fail", "/containers/0/pull/", "it does, the rest does not"},
		{latest, `{"containers": [{"name": "a", "image": "a:latest", "pull": "Never"}]}`, "held", "", "the rest does"},
		{latest, `{"containers": [{"name": "a", "image": "a:latest", "pull": "Never"}, {"name": "b", "image": "b:1", "pull": "Always"}]}`, "held", "", "one element is left out"},
		{latest, `{"containers": [{"name": "b", "image": "b:1", "pull": "Always"}, {"name": "a", "image": "a:latest", "pull": "Always"}]}`, "fail", "/containers/1/pull/", "which does not excuse the other"},
		{latest, `{"containers": [{"name": "a", "pull": "Always"}]}`, "fail", "/containers/0/pull/", "not there, it holds"},
		{secrets, `{"containers": [{"name": "a", "image": "a"}], "secrets": [{"name": "other"}]}`, "skip", "/containers/0/image/", "it applies to the fields next to the list"},
		{secrets, `{"containers": [{"name": "a", "image": "corp/a"}], "secrets": [{"name": "other"}]}`, "fail", "/secrets/0/name/", "it holds"},
		{secrets, `{"containers": [{"name": "a", "image": "a"}, {"name": "b", "image": "corp/b"}]}`, "fail", "/secrets/", "for one element"},
		{secrets, `{"containers": [{"name": "a", "image": "corp/a"}], "secrets": [{"name": "corp"}]}`, "held", "", "and so does the rest"},
		{`{"meta": {"<(name)": "x"}, "spec": {"a": "y"}}`, `{"meta": {"name": "z"}, "spec": {"a": "n"}}`, "skip", "/meta/name/", "it applies to the rule"},
		{`{"meta": {"<(name)": "x"}, "spec": {"a": "y"}}`, `{"meta": {"name": "x"}, "spec": {"a": "n"}}`, "fail", "/spec/a/", "it holds"},
		{`{"=(meta)": {"<(name)": "x"}, "spec": {"a": "y"}}`, `{"meta": {"name": "z"}, "spec": {"a": "n"}}`, "skip", "/meta/name/", "out of =(), too"},
		{`{"=(meta)": {"<(name)": "x"}, "spec": {"a": "y"}}`, `{"spec": {"a": "n"}}`, "fail", "/spec/a/", "there is none"},
		{`{"a": [{"(b)": "x", "<(c)": "x", "d": "y"}], "e": "y"}`, `{"a": [{"b": "n"}, {"b": "x", "c": "n"}], "e": "n"}`, "fail", "/e/", "it skips the rule only if it does for all elements"},
		{`{"a": [{"(b)": "x", "<(c)": "x", "d": "y"}], "e": "y"}`, `{"a": [{"b": "x", "c": "n"}], "e": "n"}`, "skip", "/a/0/c/", "which it does here"},
	})
}

// TestGlobalWithinEquality is about what stands next to =() with a global anchor in it, which an
// author of objects may let hold or not.
func TestGlobalWithinEquality(t *testing.T) {
	const (
		lists  = `{"=(init)": [{"<(image)": "corp/*"}], "=(network)": "false", "secrets": [{"name": "corp"}], "main": [{"<(image)": "corp/*"}]}`
		levels = `{"=(context)": {"=(options)": {"<(type)": "t"}}, "X(network)": null, "user": ">0"}`
		plain  = `{"=(context)": {"options": [{"<(type)": "t"}]}, "=(network)": false}`
		direct = `{"=(pod)": {"=(context)": {"<(type)": "t"}, "user": ">0"}, "=(network)": false}`
		after  = `{"=(pod)": {"=(context)": {"(type)": "t"}, "<(name)": "a"}, "=(zone)": false}`
		ports  = `{"main": [{"ports": [{"<(port)": 80}]}], "user": ">0"}`
		inList = `{"main": [{"=(context)": {"<(type)": "t"}, "user": ">0"}], "network": false}`
	)
	check(t, []row{
		{lists, `{"init": [{"image": "evil/a"}], "secrets": [{"name": "corp"}], "main": [{"image": "corp/a"}]}`, "partly", "/init/0/image/", "the rest counts, and holds"},
		{lists, `{"init": [{"image": "evil/a"}], "secrets": [{"name": "other"}], "main": [{"image": "corp/a"}]}`, "fail", "/secrets/0/name/", "a field next to it counts"},
		{lists, `{"init": [{"image": "evil/a"}], "main": [{"image": "corp/a"}]}`, "fail", "/secrets/", "and must be there"},
		{lists, `{"init": [{"image": "evil/a"}], "network": "true", "secrets": [{"name": "corp"}]}`, "fail", "/network/", "another anchor counts"},
		{lists, `{"init": [{"image": "evil/a"}], "main": [{"image": "evil/a"}]}`, "skip", "/main/0/image/", "a list of a plain key skips the rest"},
		{levels, `{"context": {"options": {"type": "other"}}, "user": 1}`, "partly", "/context/options/type/", "two levels of objects"},
		{levels, `{"context": {"options": {"type": "other"}}, "network": true, "user": 1}`, "fail", "/network/", "what must not be there counts"},
		{levels, `{"context": {"options": {"type": "other"}}, "user": 0}`, "fail", "/user/", "and so does a field"},
		{levels, `{"context": {"options": {"type": "t"}}, "user": 1}`, "held", "", "the anchor holds"},
		{plain, `{"context": {"options": [{"type": "other"}]}}`, "partly", "/context/options/0/type/", "a list of a plain key within =()"},
		{plain, `{"context": {"options": [{"type": "other"}]}, "network": true}`, "fail", "/network/", "skips no further than =()"},
		{direct, `{"pod": {"context": {"type": "other"}, "user": 0}}`, "partly", "/pod/context/type/", "directly in =() it skips what encloses that, too"},
		{direct, `{"pod": {"context": {"type": "other"}, "user": 0}, "network": true}`, "fail", "/network/", "up to the next =()"},
		{direct, `{"pod": {"context": {"type": "t"}, "user": 0}}`, "fail", "/pod/user/", "it holds"},
		{after, `{"pod": {"context": {"type": "other"}, "name": "b"}}`, "partly", "/pod/name/", "next to a condition that does not hold"},
		{after, `{"pod": {"context": {"type": "other"}, "name": "b"}, "zone": true}`, "fail", "/zone/", "it skips no more than that"},
		{after, `{"pod": {"context": {"type": "t"}, "name": "b"}, "zone": true}`, "skip", "/pod/name/", "next to one that holds it skips the rest, as in Kyverno"},
		{ports, `{"main": [{"ports": [{"port": 81}]}], "user": 1}`, "skip", "/main/0/ports/0/port/", "nothing fails"},
		{ports, `{"main": [{"ports": [{"port": 81}]}], "user": 0}`, "fail", "/user/", "a list in a list skips no more than the outer one"},
		{inList, `{"main": [{"context": {"type": "other"}, "user": 0}], "network": false}`, "skip", "/main/0/context/type/", "nothing fails"},
		{inList, `{"main": [{"context": {"type": "other"}, "user": 0}], "network": true}`, "fail", "/network/", "the elements of a list alone"},
	})
}

func TestEquality(t *testing.T) {
	check(t, []row{
		{`{"=(a)": "x"}`, `{"a": "x"}`, "held", "", "it is there and matches"},
		{`{"=(a)": "x"}`, `{"a": "y"}`, "fail", "/a/", "it does not match"},
		{`{"=(a)": "x"}`, `{}`, "held", "", "it is not there"},
		{`{"=(a)": "x"}`, `{"a": null}`, "fail", "/a/", "null is there"},
		{`{"=(a)": "*"}`, `{"a": "x"}`, "held", "", "a text"},
		{`{"=(a)": "*"}`, `{"a": {}}`, "fail", "/a/", "an object is no text behind an anchor"},
		{`{"=(a)": {"=(b)": "x"}}`, `{"a": {}}`, "held", "", "one in another"},
		{`{"=(a)": {"=(b)": "x"}}`, `{"a": {"b": "y"}}`, "fail", "/a/b/", "it does not match"},
		{`{"=(a)": {"b": "x"}}`, `{}`, "held", "", "the fields in it are not required"},
		{`{"=(a)": {"b": "x"}}`, `{"a": {}}`, "fail", "/a/b/", "but here it is"},
		{`{"=(a)": [{"=(b)": "x"}]}`, `{"a": [{}, {"b": "x"}]}`, "held", "", "in a list"},
		{`{"=(a)": [{"=(b)": "x"}]}`, `{"a": [{}, {"b": "y"}]}`, "fail", "/a/1/b/", "the second"},
		{`{"=(port)": 0}`, `{"port": 0}`, "held", "", "a number"},
		{`{"=(port)": 0}`, `{"port": 80}`, "fail", "/port/", "another"},
		{notPrivileged, threeContainers, "held", "", "containers that are not privileged"},
		{notPrivileged, `{"spec": {"containers": [{"securityContext": {"privileged": true}}]}}`, "fail", "/spec/containers/0/securityContext/privileged/", "one that is"},
		{notPrivileged, `{"spec": {"containers": [{}], "initContainers": [{"securityContext": {"privileged": true}}]}}`, "fail", "/spec/initContainers/0/securityContext/privileged/", "an init container"},
		{notPrivileged, `{"spec": {"containers": [{}], "ephemeralContainers": [{"securityContext": {"privileged": true}}]}}`, "fail", "/spec/ephemeralContainers/0/securityContext/privileged/", "an ephemeral one"},
	})
}

func TestNegation(t *testing.T) {
	check(t, []row{
		{`{"X(a)": null}`, `{"b": 1}`, "held", "", "it is not there"},
		{`{"X(a)": null}`, `{"a": 1}`, "fail", "/a/", "it is"},
		{`{"X(a)": null}`, `{"a": null}`, "fail", "/a/", "null is there"},
		{`{"X(a)": "x"}`, `{"a": "y"}`, "fail", "/a/", "whatever it is"},
		{`{"vols": [{"X(host)": "null"}]}`, `{"vols": [{"empty": {}}]}`, "held", "", "in a list"},
		{`{"vols": [{"X(host)": "null"}]}`, `{"vols": [{"empty": {}}, {"host": {}}]}`, "fail", "/vols/1/host/", "the second has it"},
		{`{"X(a)": null, "b": "x"}`, `{"b": "x"}`, "held", "", "beside a field"},
		{`{"X(a)": null, "b": "x"}`, `{"b": "y"}`, "fail", "/b/", "which counts, with its path"},
	})
}

func TestExistence(t *testing.T) {
	check(t, []row{
		{`{"^(a)": [{"n": "x"}]}`, `{"a": [{"n": "y"}, {"n": "x"}]}`, "held", "", "one does"},
		{`{"^(a)": [{"n": "x"}]}`, `{"a": [{"n": "y"}]}`, "fail", "/a/", "none does"},
		{`{"^(a)": [{"n": "x"}]}`, `{"a": []}`, "fail", "/a/", "of none, none does"},
		{`{"^(a)": [{"n": "x"}]}`, `{}`, "held", "", "a list that is absent, as in Kyverno"},
		{`{"(a)": {"^(b)": [{"n": "x"}]}, "c": "y"}`, `{"a": {}, "c": "z"}`, "fail", "/c/", "and so the rule applies under a condition"},
		{`{"^(a)": [{"n": "x"}]}`, `{"a": null}`, "fail", "/a/", "null is no list"},
		{`{"^(a)": [{"n": "x"}]}`, `{"a": {"n": "x"}}`, "fail", "/a/", "an object is no list"},
		{`{"^(a)": [{"n": "x"}, {"n": "y"}]}`, `{"a": [{"n": "y"}, {"n": "x"}, {"n": "z"}]}`, "held", "", "one for each"},
		{`{"^(a)": [{"n": "x"}, {"n": "y"}]}`, `{"a": [{"n": "x"}, {"n": "z"}]}`, "fail", "/a/", "none for the second"},
		{`{"^(a)": [{"(n)": "x", "m": "y"}]}`, `{"a": [{"n": "x", "m": "y"}]}`, "held", "", "with a condition"},
		{`{"^(a)": [{"(n)": "x", "m": "y"}]}`, `{"a": [{"n": "z"}]}`, "fail", "/a/", "one that is left out is none"},
		{`{"^(a)": [{"(n)": "x", "m": "y"}]}`, `{"a": [{"n": "x", "m": "z"}]}`, "fail", "/a/", "and so is one that fails"},
		{`{"^(a)": [{"<(n)": "x"}]}`, `{"a": [{"n": "z"}]}`, "fail", "/a/", "a global anchor skips nothing in it"},
		{`{"^(a)": [{"<(n)": "x"}]}`, `{"a": [{"n": "x"}]}`, "held", "", "it holds"},
		{`{"^(a)": [{"(n)": "x*", "o": [{"(k)": "v*", "l": "v*"}]}]}`, `{"a": [{"n": "x1", "o": [{"k": "no", "l": "no"}]}, {"n": "x1", "o": [{"k": "v1", "l": "v2"}]}]}`, "held", "", "a list in a list"},
		{`{"^(a)": [{"(n)": "x*", "o": [{"(k)": "v*", "l": "v*"}]}]}`, `{"a": [{"n": "x1", "o": [{"k": "v1", "l": "no"}]}]}`, "fail", "/a/", "which fails"},
	})
}

func TestWildcardsInKeys(t *testing.T) {
	check(t, []row{
		{`{"metadata": {"annotations": {"t/*": "v"}}}`, `{"metadata": {"annotations": {"t/a": "v"}}}`, "held", "", "a key that matches"},
		{`{"metadata": {"annotations": {"t/*": "v"}}}`, `{"metadata": {"annotations": {"u/a": "v"}}}`, "fail", "/metadata/annotations/t/*/", "none"},
		{`{"metadata": {"annotations": {"t/*": "v"}}}`, `{"metadata": {"annotations": {"t/a": "w"}}}`, "fail", "/metadata/annotations/t/a/", "with another value"},
		{`{"metadata": {"annotations": {"t/b??": "v*"}}}`, `{"metadata": {"annotations": {"t/bar": "v1"}}}`, "held", "", "one character each"},
		{`{"metadata": {"annotations": {"t/b??": "v*"}}}`, `{"metadata": {"labels": {"t/bar": "v1"}}}`, "fail", "/metadata/annotations/", "no annotations"},
		{`{"metadata": {"labels": {"*/t": "v"}}}`, `{"metadata": {"labels": {"a/t": "v", "b": "w"}}}`, "held", "", "a label"},
		{`{"metadata": {"labels": {"a*": "v", "b*": "w"}}}`, `{"metadata": {"labels": {"a1": "v"}}}`, "fail", "/metadata/labels/b*/", "each key counts"},
		{`{"metadata": {"labels": {"a*": "v"}}}`, `{"metadata": {"labels": {"a1": "v", "a2": "v"}}}`, "held", "", "all that match"},
		{`{"metadata": {"labels": {"a*": "v"}}}`, `{"metadata": {"labels": {"a1": "v", "a2": "w"}}}`, "fail", "/metadata/labels/a2/", "not one at random"},
		{`{"metadata": {"labels": {"a*": "*"}}}`, `{"metadata": {"labels": {"a1": ""}}}`, "held", "", "any value"},
		{`{"metadata": {"labels": {"a*": "*"}}}`, `{"metadata": {"labels": {"b": ""}}}`, "fail", "/metadata/labels/", "of none"},
		{`{"=(metadata)": {"=(annotations)": {"=(armor/*)": "default | local/*"}}}`, `{}`, "held", "", "behind anchors"},
		{`{"=(metadata)": {"=(annotations)": {"=(armor/*)": "default | local/*"}}}`, `{"metadata": {"annotations": {"armor/a": "default", "armor/b": "local/x"}}}`, "held", "", "all hold"},
		{`{"=(metadata)": {"=(annotations)": {"=(armor/*)": "default | local/*"}}}`, `{"metadata": {"annotations": {"armor/a": "default", "armor/b": "none"}}}`, "fail", "/metadata/annotations/armor/b/", "one does not"},
		{`{"metadata": {"labels": {"X(a*)": null}}}`, `{"metadata": {"labels": {"b": "x"}}}`, "held", "", "none must be there"},
		{`{"metadata": {"labels": {"X(a*)": null}}}`, `{"metadata": {"labels": {"a1": "x"}}}`, "fail", "/metadata/labels/a1/", "one is"},
		{`{"metadata": {"labels": {"(a*)": "x"}}, "b": "y"}`, `{"metadata": {"labels": {"a1": "z", "a2": "x"}}, "b": "n"}`, "fail", "/b/", "for a condition one is enough"},
		{`{"metadata": {"labels": {"(a*)": "x"}}, "b": "y"}`, `{"metadata": {"labels": {"a1": "z"}}, "b": "n"}`, "skip", "/metadata/labels/a1/", "none is"},
		{`{"metadata": {"labels": {"<(a*)": "x"}}, "b": "y"}`, `{"metadata": {"labels": {"a1": "z", "a2": "x"}}, "b": "n"}`, "fail", "/b/", "for a global anchor, too"},
		{`{"metadata": {"labels": {"<(a*)": "x"}}, "b": "y"}`, `{"metadata": {"labels": {"a1": "z"}}, "b": "n"}`, "skip", "/metadata/labels/a1/", "none is"},
		{`{"metadata": {"labels": {"<(a*)": "x"}}, "b": "y"}`, `{"metadata": {"labels": {}}, "b": "n"}`, "fail", "/b/", "not there, it holds"},
		{`{"metadata": {"labels": {"X(a)": null}}}`, `{"metadata": {"labels": {"a": "x"}}}`, "fail", "/metadata/labels/a/", "null beside an anchor of a key"},
		{`{"metadata": {"labels": {"<(a*)": null}}, "b": "y"}`, `{"metadata": {"labels": {"a1": "x"}}, "b": "n"}`, "skip", "/metadata/labels/a1/", "there is one"},
		{`{"metadata": {"labels": {"<(a*)": null}}, "b": "y"}`, `{"metadata": {"labels": {"b": "x"}}, "b": "n"}`, "fail", "/b/", "there is none"},
		{`{"spec": {"template": {"metadata": {"labels": {"a*": "v"}}}}}`, `{"spec": {"template": {"metadata": {"labels": {"a1": "v"}}}}}`, "held", "", "further in"},
		{`{"spec": {"labels": {"a*": "v"}}}`, `{"spec": {"labels": {"a1": "v"}}}`, "fail", "/spec/labels/a*/", "only in metadata"},
		{`{"metadata": {"finalizers": {"a*": "v"}}}`, `{"metadata": {"finalizers": {"a1": "v"}}}`, "fail", "/metadata/finalizers/a*/", "only labels and annotations"},
	})
}

// TestConcurrent is for the race detector.
func TestConcurrent(t *testing.T) {
	p := compile(t, `{"{{ limit.max }}": "{{ allowed }}", "=(b)": [{"(c)": "x", "d": ">1"}]}`)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				if r := p.Match(data, map[string]any{"1Gi": "a* | b*", "b": []any{map[string]any{"c": "x", "d": 2.0}}}); !r.Held {
					t.Errorf("%#v", r)
				}
			}
		})
	}
	group.Wait()
}
