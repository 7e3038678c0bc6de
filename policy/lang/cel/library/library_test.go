package library_test

import (
	"bytes"
	"compress/gzip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
)

const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// newEnv is an environment with the functions and a few values.
func newEnv(t *testing.T) *cel.Env {
	t.Helper()
	env, err := cel.NewEnv(append(library.Functions(),
		cel.Variable("bomb", cel.BytesType), cel.Variable("long", cel.StringType), cel.Variable("aliases", cel.StringType),
		cel.Variable("deep", cel.DynType), cel.Variable("document", cel.StringType), cel.Variable("quotes", cel.StringType), cel.OptionalTypes(),
	)...)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func values(t *testing.T) map[string]any {
	t.Helper()
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	if _, err := w.Write(make([]byte, 5<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	aliases := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for name := 'b'; name <= 'k'; name++ {
		aliases += string(name) + ": &" + string(name) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(name-1)+", ", 10), ", ") + "]\n"
	}
	var deep any = "x"
	for range 1000 {
		deep = []any{deep}
	}
	return map[string]any{
		"bomb": bomb.Bytes(), "long": strings.Repeat("x", 3<<20), "aliases": aliases, "deep": deep,
		"document": strings.Repeat("x", 2<<20-2), "quotes": strings.Repeat(`"`, 2<<20-1),
		"json": library.JSON(), "yaml": library.YAML(),
	}
}

type functionTest struct {
	reason, expression string
	want               any    // a bool, a text, a number
	err                string // part of the error of evaluating; empty means none
}

func try(t *testing.T, tests []functionTest) {
	t.Helper()
	env, given := newEnv(t), values(t)
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			got, err := evaluate(t, env, test.expression, given)
			if (err == nil) != (test.err == "") || (err != nil && !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(test.err))) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if err == nil && got.Value() != test.want {
				t.Errorf("got %v, want %v", got.Value(), test.want)
			}
		})
	}
}

func TestFunctions(t *testing.T) {
	try(t, []functionTest{
		{reason: "Docker Hub by Kyverno's name for it", expression: "image('nginx').registry()", want: "index.docker.io"},
		{reason: "Docker Hub by its short name", expression: "image('docker.io/nginx').registry()", want: "index.docker.io"},
		{reason: "another registry", expression: "parseImageReference('ghcr.io/a/b:1').registry()", want: "ghcr.io"},
		{reason: "a registry with a port", expression: "image('localhost:5000/a').registry()", want: "localhost:5000"},
		{reason: "the library of Docker Hub", expression: "image('nginx').repository()", want: "library/nginx"},
		{reason: "a repository of several parts", expression: "image('ghcr.io/a/b/c:1').repository()", want: "a/b/c"},
		{reason: "a tag", expression: "image('nginx:1.27').tag()", want: "1.27"},
		{reason: "no tag is latest", expression: "image('nginx').tag()", want: "latest"},
		{reason: "no tag beside a digest", expression: "image('nginx@" + digest + "').tag()", want: ""},
		{reason: "a tag beside a digest", expression: "image('nginx:1@" + digest + "').tag()", want: "1"},
		{reason: "a digest", expression: "image('nginx@" + digest + "').digest()", want: digest},
		{reason: "no digest", expression: "image('nginx').digest()", want: ""},
		{reason: "with a digest", expression: "image('nginx@" + digest + "').containsDigest()", want: true},
		{reason: "without a digest", expression: "image('nginx:1').containsDigest()", want: false},
		{reason: "an identifier by tag", expression: "image('nginx:1').identifier()", want: "1"},
		{reason: "an identifier by digest", expression: "image('nginx@" + digest + "').identifier()", want: digest},
		{reason: "an identifier by both", expression: "image('nginx:1@" + digest + "').identifier()", want: "1@" + digest},
		{reason: "an identifier with its separator", expression: "image('nginx').identifierWithSeparator()", want: ":latest"},
		{reason: "the digest's separator", expression: "image('nginx:1@" + digest + "').identifierWithSeparator()", want: "@" + digest},
		{reason: "two spellings are one image", expression: "image('nginx') == image('docker.io/library/nginx:latest')", want: true},
		{reason: "two images", expression: "image('nginx') == image('nginx:1')", want: false},
		{reason: "it is an image", expression: "isImage('nginx:1')", want: true},
		{reason: "it is none", expression: "isImage('not an image')", want: false},
		{reason: "a reference that is none", expression: "image('not an image').tag()", err: "image reference"},
		{reason: "a digest that is none", expression: "image('nginx@sha256:abc').digest()", err: "digest"},

		{reason: "a service account", expression: "user.parseServiceAccount('system:serviceaccount:ns:builder').Name", want: "builder"},
		{reason: "its namespace, by the short name", expression: "parseServiceAccount('system:serviceaccount:ns:builder').Namespace", want: "ns"},
		{reason: "a person is no service account", expression: "user.parseServiceAccount('alice').Name", want: ""},
		{reason: "too few parts", expression: "user.parseServiceAccount('system:serviceaccount:ns').Namespace", want: ""},
		{reason: "whether it has a name", expression: "has(user.parseServiceAccount('alice').Name)", want: false},
		{reason: "when the type is not known", expression: "dyn(user.parseServiceAccount('system:serviceaccount:ns:b')).Name", want: "b"},
		{reason: "a field that it has not", expression: "dyn(user.parseServiceAccount('alice')).Group == ''", err: "no such field"},

		{reason: "sha256 as sha256sum has it", expression: "hash.sha256('abc')", want: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{reason: "sha256 by its short name", expression: "sha256('abc') == hash.sha256('abc')", want: true},
		{reason: "sha1", expression: "hash.sha1('abc')", want: "a9993e364706816aba3e25717850c26c9cd0d89d"},
		{reason: "sha1 by its short name", expression: "sha1('abc') == hash.sha1('abc')", want: true},
		{reason: "md5", expression: "hash.md5('abc')", want: "900150983cd24fb0d6963f7d28e17f72"},
		{reason: "md5 by its short name", expression: "md5('abc') == hash.md5('abc')", want: true},

		{reason: "two digits", expression: "math.round(1.256, 2)", want: 1.26},
		{reason: "no digits", expression: "math.round(1.5, 0)", want: 2.0},
		{reason: "tens", expression: "math.round(1234.0, -2)", want: 1200.0},
		{reason: "more digits than there are", expression: "math.round(1.25, 300)", want: 1.25},
		{reason: "far too many digits", expression: "math.round(1.25, 1000)", err: "1000 digits"},
		{reason: "a very large number", expression: "math.round(1.7e308, 10)", want: 1.7e308},

		{reason: "a cron expression", expression: "time.toCron(timestamp('2026-03-04T05:06:07Z'))", want: "6 5 4 3 3"},
		{reason: "the hour", expression: "time.truncate(timestamp('2026-03-04T05:06:07Z'), duration('1h')) == timestamp('2026-03-04T05:00:00Z')", want: true},

		{reason: "lists become a map", expression: "transform.listObjToMap([{'n': 'a'}, {'n': 'b'}], [{'v': 1}, {'v': 2}], 'n', 'v').b", want: int64(2)},
		{reason: "by the short name", expression: "listObjToMap([{'n': 'a'}] + [{'n': 'b'}], [{'v': 1}, {'v': 2}], 'n', 'v').size()", want: int64(2)},
		{reason: "no lists, no map", expression: "transform.listObjToMap([], [], 'n', 'v').size()", want: int64(0)},
		{reason: "a value that is missing is null", expression: "transform.listObjToMap([{'n': 'a'}], [{'x': 1}], 'n', 'v').a == null", want: true},
		{reason: "and is written as null", expression: "json.marshal(transform.listObjToMap([{'n': 'a'}], [{'x': 1}], 'n', 'v'))", want: `{"a":null}`},
		{reason: "lists of different lengths", expression: "transform.listObjToMap([{'n': 'a'}], [], 'n', 'v').size()", err: "equally long"},
		{reason: "a key that is missing", expression: "transform.listObjToMap([{'x': 'a'}], [{'v': 1}], 'n', 'v').size()", err: "no text as its n"},
		{reason: "a key that is no text", expression: "transform.listObjToMap([{'n': 1}], [{'v': 1}], 'n', 'v').size()", err: "no text as its n"},
		{reason: "an item that is no map", expression: "transform.listObjToMap(['a'], [{'v': 1}], 'n', 'v').size()", err: "no map"},
		{reason: "an item of the other list that is no map", expression: "transform.listObjToMap([{'n': 'a'}], [1], 'n', 'v').size()", err: "no map"},

		{reason: "packed and unpacked", expression: "gzip.decompress(gzip.compress('abc'))", want: "abc"},
		{reason: "the same text gives the same bytes", expression: "gzip.compress('abc') == gzip.compress('abc')", want: true},
		{reason: "not packed", expression: "gzip.decompress(b'abc')", err: "gzip.decompress"},
		{reason: "a bomb", expression: "gzip.decompress(bomb).size()", err: "larger than 4194304 bytes"},
		{reason: "packing a number", expression: "gzip.compress(1).size()", err: "no such overload"},

		{reason: "JSON is read", expression: "json.unmarshal('{\"a\": [1, null]}').a[0] == 1", want: true},
		{reason: "JSON that is none", expression: "json.unmarshal('{') == 1", err: "unexpected end"},
		{reason: "JSON with a tail", expression: "json.unmarshal('1 2') == 1", err: "invalid character"},
		{reason: "JSON that is no text", expression: "json.unmarshal(1) == 1", err: "no such overload"},
		{reason: "too much JSON", expression: "json.unmarshal(long) == 1", err: "larger than 2097152 bytes"},
		{reason: "JSON is written, keys in order", expression: "json.marshal({'b': dyn([1, 2]), 'a': dyn('x')})", want: `{"a":"x","b":[1,2]}`},
		{reason: "every kind of value is written", expression: "json.marshal([dyn(1u), dyn(1.5), dyn(true), dyn(null), dyn(duration('1s')), dyn(b'a')])", want: `[1,1.5,true,null,"1s","YQ=="]`},
		{reason: "a key that JSON has not", expression: "json.marshal({1: 2})", err: "no key of type int"},
		{reason: "a value that JSON has not", expression: "json.marshal(image('nginx'))", err: "no word"},
		{reason: "a value in a value that JSON has not", expression: "json.marshal([{'a': image('nginx')}])", err: "no word"},
		{reason: "too much to write", expression: "json.marshal([long, long])", err: "larger than 4194304"},
		{reason: "too deep to write", expression: "json.marshal(deep)", err: "deeper than 256"},

		{reason: "YAML is read", expression: "yaml.parse('a: [1, {b: c}]').a[1].b", want: "c"},
		{reason: "an alias", expression: "yaml.parse('a: &x [1]\\nb: *x').b[0] == 1", want: true},
		{reason: "YAML that is none", expression: "yaml.parse('a: [') == 1", err: "yaml"},
		{reason: "aliases that grow", expression: "yaml.parse(aliases).k.size()", err: "with its aliases written out"},
		{reason: "an alias in itself", expression: "yaml.parse('a: &x [*x]').a.size()", err: "yaml alias"},
		{reason: "too much YAML", expression: "yaml.parse(long)", err: "larger than 2097152 bytes"},
		{reason: "too much YAML that is no value", expression: "yaml.parse('# ' + long)", err: "the document is larger than 2097152 bytes"},
		{reason: "YAML with a key that is a list", expression: "yaml.parse('? [a]\\n: b') == 1", err: "json"},
	})
}

// TestLimits has the last that is accepted beside the first that is not.
func TestLimits(t *testing.T) {
	try(t, []functionTest{
		{reason: "the most JSON", expression: `json.unmarshal('"' + document + '"').size()`, want: int64(2<<20 - 2)},
		{reason: "a byte more", expression: `json.unmarshal('"' + document + '" ')`, err: "the document is larger than 2097152 bytes"},
		{reason: "the most YAML", expression: "yaml.parse('#\\n' + document).size()", want: int64(2<<20 - 2)},
		{reason: "a byte more of YAML", expression: "yaml.parse('# \\n' + document).size()", err: "the document is larger than 2097152 bytes"},
		{reason: "the largest value in YAML", expression: "yaml.parse(document).size()", want: int64(2<<20 - 2)},
		{reason: "a larger one", expression: "yaml.parse(document + 'x').size()", err: "with its aliases written out"},
		{reason: "the most that is written, with its escapes", expression: "json.marshal(quotes).size()", want: int64(4 << 20)},
		{reason: "one more that is escaped", expression: `json.marshal(quotes + '"').size()`, err: "the JSON is larger than 4194304 bytes"},
		{reason: "a number that JSON has not", expression: "json.marshal(1.0 / 0.0)", err: "unsupported value"},

		{reason: "the most digits before the point", expression: "math.round(1.25, -300)", want: 0.0},
		{reason: "a digit more after the point", expression: "math.round(1.25, 301)", err: "301 digits"},
		{reason: "a digit more before the point", expression: "math.round(1.25, -301)", err: "-301 digits"},
		{reason: "infinity has no digits", expression: "math.round(1.0 / 0.0, 2) == 1.0 / 0.0", want: true},
		{reason: "NaN has none", expression: "math.round(0.0 / 0.0, 2) == 1.0", want: false},
	})
}

// TestValues are what values of our own types are to the language itself.
func TestValues(t *testing.T) {
	try(t, []functionTest{
		{reason: "images have one type", expression: "type(image('nginx')) == type(image('alpine'))", want: true},
		{reason: "which is not that of texts", expression: "type(dyn(image('nginx'))) == string", want: false},
		{reason: "an image is no text", expression: "dyn(image('nginx')) == dyn('nginx')", want: false},
		{reason: "an image becomes no text", expression: "string(dyn(image('nginx')))", err: "no such overload"},
		{reason: "a variable is itself", expression: "dyn(json) == dyn(json)", want: true},
		{reason: "and no other", expression: "dyn(json) == dyn(yaml)", want: false},
		{reason: "its type", expression: "type(json) == type(yaml)", want: false},

		{reason: "an account is itself", expression: "user.parseServiceAccount('system:serviceaccount:ns:a') == user.parseServiceAccount('system:serviceaccount:ns:a')", want: true},
		{reason: "another account", expression: "user.parseServiceAccount('system:serviceaccount:ns:a') == user.parseServiceAccount('system:serviceaccount:ns:b')", want: false},
		{reason: "a user with a name like an account", expression: "user.parseServiceAccount('ns:builder').Name", want: ""},
		{reason: "in no namespace", expression: "user.parseServiceAccount('ns:builder').Namespace", want: ""},
		{reason: "a name that is there, when the type is not known", expression: "has(dyn(user.parseServiceAccount('system:serviceaccount:ns:b')).Name)", want: true},
		{reason: "a name that is not", expression: "has(dyn(user.parseServiceAccount('alice')).Name)", want: false},
		{reason: "a field that there is not", expression: "has(dyn(user.parseServiceAccount('system:serviceaccount:ns:b')).Group)", want: false},
		{reason: "the type of an account", expression: "type(user.parseServiceAccount('alice')) == string", want: false},
	})
}

func TestConversions(t *testing.T) {
	for _, value := range []ref.Val{library.JSON(), library.YAML()} {
		if got := value.ConvertToType(types.TypeType); got != ref.Val(value.Type().(*types.Type)) {
			t.Errorf("the type of %v is %v", value.Type(), got)
		}
		if got := value.ConvertToType(types.StringType); !types.IsError(got) {
			t.Errorf("%v became %v", value.Type(), got)
		}
	}
	given := values(t)
	for _, expression := range []string{"json", "yaml", "image('nginx')", "user.parseServiceAccount('alice')"} {
		value, err := evaluate(t, newEnv(t), expression, given)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := value.ConvertToNative(reflect.TypeFor[string]()); got != nil || err == nil {
			t.Errorf("%s became %v", expression, got)
		}
	}
}

func evaluate(t *testing.T, env *cel.Env, expression string, given map[string]any) (ref.Val, error) {
	t.Helper()
	// The fields of the objects are known by their values, too.
	ast, issues := env.Parse(expression)
	if !strings.Contains(expression, "ServiceAccount") {
		ast, issues = env.Compile(expression)
	}
	if err := issues.Err(); err != nil {
		t.Fatal(err)
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := program.Eval(given)
	return value, err
}

func TestObjects(t *testing.T) {
	field := library.Objects()["user.ServiceAccount"]["Name"]
	value, err := evaluate(t, newEnv(t), "user.parseServiceAccount('system:serviceaccount:ns:b')", values(t))
	if err != nil {
		t.Fatal(err)
	}
	if name, err := field.GetFrom(value); name != "b" || err != nil || !field.IsSet(value) {
		t.Error(name, err)
	}
	nobody, err := evaluate(t, newEnv(t), "user.parseServiceAccount('alice')", values(t))
	if err != nil || field.IsSet(nobody) {
		t.Error("a person is a service account by name", err)
	}
	if _, err := field.GetFrom("x"); err == nil || field.IsSet("x") {
		t.Error("a text is a service account")
	}
}

func TestNativeIsBounded(t *testing.T) {
	nested := func(depth int) ref.Val {
		value := types.DefaultTypeAdapter.NativeToValue("x")
		for range depth {
			value = types.DefaultTypeAdapter.NativeToValue([]ref.Val{value})
		}
		return value
	}
	list := func(items ...ref.Val) ref.Val { return types.DefaultTypeAdapter.NativeToValue(items) }
	large := strings.Repeat("x", 4<<20)
	for _, test := range []struct {
		reason         string
		refused, taken ref.Val
	}{
		{"depth", nested(257), nested(256)},
		{"a text", types.String(large), types.String(large[1:])},
		{"bytes", types.Bytes(large), types.Bytes(large[1:])},
		{"the last text of a list", list(types.String("x"), types.String(large[3:])), list(types.String("x"), types.String(large[4:]))},
		{"a key", types.DefaultTypeAdapter.NativeToValue(map[string]any{large[1:]: nil}), types.DefaultTypeAdapter.NativeToValue(map[string]any{large[2:]: nil})},
	} {
		if _, err := library.Native(test.refused); err == nil {
			t.Errorf("%s: more than is allowed", test.reason)
		}
		if _, err := library.Native(test.taken); err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

func TestNativeOfTime(t *testing.T) {
	moment := types.Timestamp{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if native, err := library.Native(moment); native != "2026-01-02T03:04:05Z" || err != nil {
		t.Error(native, err)
	}
}
