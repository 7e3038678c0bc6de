package cel_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/validating"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/policytest"
	"github.com/quaymaster/quaymaster/workload"
)

// convertText converts the policies of a text.
func convertText(t testing.TB, text string, options cel.Options) cel.Result {
	t.Helper()
	objects, err := workload.ReadDocuments(strings.NewReader(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	result, err := cel.Convert(objects, options)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// sourcePolicy compiles a policy of kyverno.io.
func sourcePolicy(t testing.TB, text []byte) *policy.Policy {
	t.Helper()
	p, err := compilerOf(t).Compile(text, "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func compilerOf(t testing.TB) *kyverno.Compiler {
	t.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := kyverno.New(kyverno.Options{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	return compiler
}

// compiledResults compiles the written policies, as a gateway reads it.
func compiledResults(t testing.TB, policies []cel.Policy) []*policy.Policy {
	t.Helper()
	var list []*policy.Policy
	for i := range policies {
		text, err := policies[i].YAML()
		if err != nil {
			t.Fatal(err)
		}
		var compiler interface {
			Compile(text []byte, source string) (*policy.Policy, error)
		} = validating.New(kyvernocel.Options{})
		if strings.HasSuffix(policies[i].Kind, "ImageValidatingPolicy") {
			compiler = imagevalidating.New(imagevalidating.Options{})
		}
		p, err := compiler.Compile(text, "test.yaml")
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		list = append(list, p)
	}
	return list
}

// flat is a text without the lines into which expressions are broken.
func flat(text []byte) string {
	return strings.NewReplacer("( ", "(", " )", ")").Replace(strings.Join(strings.Fields(string(text)), " "))
}

// admits reports whether policies admit a subject, and the message if not. An undecided one is denied.
func admits(t testing.TB, s *policy.Subject, policies ...*policy.Policy) (bool, string) {
	t.Helper()
	for _, p := range policies {
		for _, v := range p.Validations {
			got := v.Validate(t.Context(), policy.Case{Subject: s})
			if got.Result == policy.Fail || got.Result == policy.Indeterminate {
				return false, string(got.Result) + ": " + got.Reasons[0].Message
			}
		}
	}
	return true, ""
}

func creation(object map[string]any) *policy.Subject {
	s := policytest.Subject(object)
	s.Operation, s.Time, s.NamespaceKnown = "CREATE", time.Unix(1_800_000_000, 0), true
	return s
}

// values of a field: nothing, null, values of each type and those at a boundary.
var values = []string{
	"", "null", "true", "false", "0", "1", "2", "'true'", "'0'", "''", "'1'", "'2'", "'a'", "'ab'", "'b'", "'1Gi'",
	"'2Gi'", "'500Mi'", "[]", "[a]", "[a, b]", "[null]", "{}", "{x: a}", "{x: null}", "{x: 1}", "{x: true}", "{x: false}",
	"{y: b}", "{x: a, y: b}", "{x: a, y: c}", "{x: b, y: c}", "[{}]", "[{x: a}]", "[{x: b}]", "[{x: a}, {x: b}]",
	"[{x: a, y: b}, {x: b, y: c}]", "[{x: a, y: c}]", "[{x: {y: a}}]", "{x: {y: a}}", "{x: {y: b}}", "{x: {}}",
	"{x: [{y: a}]}", "{x: []}", "{x: [{y: b}]}",
}

// TestPatterns: for each pattern of a field, source and result admit the same objects. The result never admits more; it
// denies a list in place of a value, which a pattern takes as its elements, null in place of an amount,
// and an object or null in place of the text of a condition.
func TestPatterns(t *testing.T) {
	for _, c := range []struct{ reason, pattern, written string }{
		{"a boolean", "field: true", "object.?data.?field.orValue(false) == true"},
		{"its negation", "field: false", "object.?data.?field.orValue(true) == false"},
		{"a number", "field: 1", "string(object.?data.?field.orValue('')) == '1'"},
		{"null", "field: null", ""},
		{"any value", "field: '*'", "object.?data.?field.orValue(null) != null"},
		{"some text", "field: '?*'", "string(object.?data.?field.orValue('')) != ''"},
		{"a text", "field: a", "string(object.?data.?field.orValue('')) == 'a'"},
		{"another text", "field: '!a'", ""},
		{"a start", "field: 'a*'", "string(object.?data.?field.orValue('')).startsWith('a')"},
		{"an end", "field: '*b'", ""},
		{"a part", "field: '*a*'", ""},
		{"not a start", "field: '!a*'", ""},
		{"a shape", "field: 'a?'", ""},
		{"one of two", "field: a | b", "string(object.?data.?field.orValue('')) in ['a', 'b']"},
		{"neither of two", "field: '!a & !b'", ""},
		{"a start, or a text", "field: 'a* | b'", ""},
		{"more", "field: '>1'", "has(object.data) && type(object.data) == map && quantity(string(object.data.?field.orValue(0))).compareTo(quantity('1')) > 0"},
		{"at most", "field: '<=1Gi'", ""},
		{"less", "field: '<2'", ""},
		{"a range", "field: 1-2", "compareTo(quantity('1')) >= 0 && quantity"},
		{"outside of a range", "field: '1!-1'", ""},
		{"an amount", "field: 1Gi", ""},
		{"a number as text", "field: '1'", ""},
		{"a text like a number", "field: '1.*'", ""},
		{"an element", "^(field): [{x: a}]", ".exists(item, "},
		{"an element of two sorts", "^(field): [{x: a}, {x: b}]", ""},
		{"an element with a condition", "^(field): [{(x): a, y: b}]", ""},
		{"an element with a value if there", "^(field): [{=(x): a}]", ""},
		{"conditions within one", "(field): {(x): a}, other: b", "!(has("},
		{"a list within a condition", "(field): [{x: a}], other: b", ""},
		{"conditions in a list within one", "(field): [{(x): a}], other: b", ".size() == 0 || "},
		{"conditions with more in a list within one", "(field): [{(x): a, y: b}], other: b", ""},
		{"an object within a condition", "(field): {x: {(y): a}}, other: b", ""},
		{"a global condition", "<(field): a, other: b", "(!has("},
		{"a global condition on an object", "<(field): {x: a}, other: b", ""},
		{"if there", "=(field): false", "has(object.data) && type(object.data) == map && object.data.?field.orValue(false) == false"},
		{"a text if there", "=(field): a", ""},
		{"nothing", "X(field): 'null'", ""},
		{"an object", "field: {x: a}", "string(object.?data.?field.?x.orValue('')) == 'a'"},
		{"an object if there", "=(field): {x: a}", ""},
		{"an object with a field if there", "field: {=(x): a}", ""},
		{"objects if there", "=(field): {=(x): {y: a}}", ""},
		{"a condition", "=(field): {(x): a, y: b}", ""},
		{"a condition for the rule", "field: {(x): a, y: b}", ""},
		{"a list", "field: [{x: a}]", "object.?data.?field.hasValue() && type(object.data.field) == list && " +
			"object.data.field.all(item, string(item.?x.orValue('')) == 'a')"},
		{"a list if there", "=(field): [{=(x): a}]", ""},
		{"a condition in a list", "field: [{(x): a, y: b}]", ""},
		{"values", "field: [a]", ""},
		{"other values", "field: ['!a']", ""},
		{"lists in an object", "=(field): {=(x): [{y: a}]}", ""},
		{"a condition that is there", "field: [{(x): '*', y: b}]", ""},
		{"objects in a list", "field: [{x: {y: a}}]", ""},
	} {
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {validationFailureAction: Enforce, rules: [
  {name: r, match: {any: [{resources: {kinds: [ControllerRevision]}}]},
   validate: {message: not so, allowExistingViolations: false, pattern: {data: {%s}}}}]}}`, c.pattern)
		result := convertText(t, text, cel.Options{})
		if len(result.Problems) > 0 {
			t.Errorf("%s: %v", c.reason, result.Problems)
			continue
		}
		source, made := sourcePolicy(t, []byte(text)), compiledResults(t, result.Policies)
		written, err := cel.YAML(result.Policies)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(flat(written), flat([]byte(c.written))) {
			t.Errorf("%s:\n%s\nlacks %s", c.reason, written, c.written)
		}
		for _, value := range values {
			spec := "{field: " + value + "}"
			if value == "" {
				spec = "{}"
			}
			objects := []string{"data: " + spec, "data: null", "metadata: {name: a}"}
			for _, object := range objects {
				object = "{apiVersion: apps/v1, kind: ControllerRevision, " + object + "}"
				s := creation(policytest.Object(t, object))
				want, why := admits(t, s, source)
				got, instead := admits(t, s, made...)
				if got && !want {
					t.Errorf("%s: %s is admitted, and denied before: %s\n%s", c.pattern, object, why, written)
				}
				byAccident := strings.Contains(value, "[") || value == "null" && strings.ContainsAny(c.pattern, "<>12") ||
					(strings.Contains(c.pattern, "(x): a") || strings.Contains(c.pattern, "(field): ")) && (strings.Contains(value, "null") || strings.Contains(value, "{x: {") || strings.HasPrefix(value, "{") && strings.Contains(c.pattern, "(field): a"))
				if want && !got && !byAccident {
					t.Errorf("%s: %s is denied, and was admitted: %s\n%s", c.pattern, object, instead, written)
				}
			}
		}
	}
}

// TestKeysWithWildcards: labels and annotations may be named by a wildcard.
func TestKeysWithWildcards(t *testing.T) {
	for _, c := range []struct{ reason, pattern, written string }{
		{"none of some", "=(annotations): {'X(a/*)': x}", "!object.metadata.annotations.exists(key, key.startsWith('a/'))"},
		{"none of some, there", "annotations: {'X(*-x)': x}", ""},
		{"all of some", "labels: {'a*': 'v*'}", ".all(key, !key.startsWith('a') || "},
		{"all of some beside others", "labels: {'a*': '?*', b: v}", ""},
		{"all of some if there", "=(labels): {'=(a?)': v}", ""},
		{"any", "labels: {'*': '?*'}", ""},
		{"a condition on others", "(annotations): {'X(a/*)': x}, labels: {b: v}", ""},
	} {
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {validationFailureAction: Enforce, rules: [
  {name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]},
   validate: {message: not so, allowExistingViolations: false, pattern: {metadata: {%s}}}}]}}`, c.pattern)
		result := convertText(t, text, cel.Options{})
		if len(result.Problems) > 0 {
			t.Errorf("%s: %v", c.reason, result.Problems)
			continue
		}
		source, made := sourcePolicy(t, []byte(text)), compiledResults(t, result.Policies)
		written, err := cel.YAML(result.Policies)
		if err != nil || !strings.Contains(flat(written), flat([]byte(c.written))) {
			t.Errorf("%s: %v\n%s\nlacks %s", c.reason, err, written, c.written)
		}
		admitted := 0
		for _, meta := range []string{
			"", "labels: {}, annotations: {}", "labels: {a: v}", "labels: {a1: v, ab: x, b: v}", "labels: {a1: v, ab: vv, b: v}", "labels: {b: v}", "labels: {a1: ''}, annotations: {a/b: x}", "annotations: {a/b: x}",
			"annotations: {b-x: y}", "annotations: {b: y}", "labels: {a1: v, b: v}, annotations: {c: y}", "labels: {b: x}, annotations: {c: y}",
		} {
			s := creation(policytest.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, "+meta+"}}"))
			same(t, c.reason+": "+meta, s, source, made)
			if got, _ := admits(t, s, made...); got {
				admitted++
			}
		}
		if admitted == 0 || admitted == 12 {
			t.Errorf("%s: %d are admitted", c.reason, admitted)
		}
	}
}

// TestAlternativesWithConditions: a pattern that is skipped is no match, where another is not.
func TestAlternativesWithConditions(t *testing.T) {
	const text = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {validationFailureAction: Enforce, rules: [
  {name: r, match: {any: [{resources: {kinds: [ControllerRevision]}}]}, validate: {message: not so, allowExistingViolations: false, anyPattern: [ONE, OTHER]}}]}}`
	const other = "{data: {field: {y: b}}}"
	for _, one := range []string{"{data: {field: {(x): a, y: c}}}", "{data: {(field): {x: a}}}", "{data: {field: [{(x): a, y: b}]}}", "{(data): {field: {x: a}}}", "{data: {=(field): [{(x): a, y: b}]}}"} {
		written := strings.NewReplacer("ONE", one, "OTHER", other).Replace(text)
		result := convertText(t, written, cel.Options{})
		if len(result.Problems) > 0 {
			t.Errorf("%s: %v", one, result.Problems)
			continue
		}
		source, made := sourcePolicy(t, []byte(written)), compiledResults(t, result.Policies)
		for _, value := range values {
			s := creation(policytest.Object(t, "{apiVersion: apps/v1, kind: ControllerRevision, data: {"+strings.TrimSuffix("field: "+value, "field: ")+"}}"))
			want, why := admits(t, s, source)
			if got, instead := admits(t, s, made...); got != want && !strings.Contains(instead, "no such overload") {
				t.Errorf("%s: %s is admitted %t (%s), was %t (%s)", one, value, got, instead, want, why)
			}
		}
	}
	all := convertText(t, strings.NewReplacer("ONE", "{data: {(x): a}}", "OTHER", "{data: {(y): b, z: c}}").Replace(text), cel.Options{})
	if len(all.Problems) != 1 || !strings.HasSuffix(all.Problems[0].Path, "validate.anyPattern") {
		t.Errorf("conditions in each: %v", all.Problems)
	}
}
