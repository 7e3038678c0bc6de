package catalog_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

const good = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: good
  labels: {gateway: quaymaster}
spec:
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["*"]
      attestors:
      - entries:
        - keyless: {issuer: https://issuer.example, subject: ann@example.com}
`

const exempting = `apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: legacy, namespace: exceptions}
spec:
  exceptions: [{policyName: good, ruleNames: [signed]}]
  match: {any: [{resources: {kinds: [Pod]}}]}
`

// counting counts the documents that are compiled.
type counting struct {
	kyverno.Policies
	compiled *int
}

func (c counting) Compile(text []byte, source string) (*policy.Policy, error) {
	*c.compiled++
	return c.Policies.Compile(text, source)
}

func newCatalog(tb testing.TB, change func(*catalog.Options)) (*catalog.Catalog, *int) {
	tb.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		tb.Fatal(err)
	}
	compiler, err := kyverno.New(kyverno.Options{Engine: engine})
	if err != nil {
		tb.Fatal(err)
	}
	compiled := new(int)
	options := catalog.Options{
		Dialects:            []catalog.Dialect{counting{kyverno.Policies{Compiler: compiler}, compiled}},
		Exceptions:          []catalog.Exceptions{kyverno.Exceptions{Compiler: compiler}},
		ExceptionNamespaces: []string{"exceptions"},
	}
	if change != nil {
		change(&options)
	}
	c, err := catalog.New(options)
	if err != nil {
		tb.Fatal(err)
	}
	return c, compiled
}

func document(key, text string) catalog.Document {
	return catalog.Document{Key: key, Text: []byte(text), Source: "source of " + key}
}

// sized is a document that no dialect recognises, of a number of bytes.
func sized(bytes int) string {
	const text = `{"apiVersion": "v1", "kind": "Other"}`
	return text + strings.Repeat(" ", bytes-len(text))
}

func TestStates(t *testing.T) {
	for _, c := range []struct {
		text, before, after string
		state               catalog.State
		why                 string
		active              int // policies
		reason              string
	}{
		{good, "", "", catalog.Ours, "", 1, "a policy"},
		{good, "verifyImages:", "validate: {message: x}\n    other:", catalog.Broken, "unknown field", 1, "a rule about objects that is broken"},
		{good, "gateway: quaymaster", "gateway: other", catalog.NotOurs, "policy selector", 0, "left out by the selector"},
		{good, "attestors:", "attestor:", catalog.Broken, "did you mean attestors?", 1, "broken"},
		{good, "    verifyImages:", "    bad: {}\n    generate: {}\n    other:", catalog.Broken, "bad: unknown field", 1, "broken, and of rules about other objects alone"},
		{good, "    verifyImages:", "    nothing:", catalog.Broken, "has none of verifyImages", 1, "broken, and of no kind of rules"},
		{good, "kind: ClusterPolicy", "kind: CleanupPolicy", catalog.NotOurs, "no kind of policy", 0, "another kind"},
		{exempting, "metadata: {", "metadata: {labels: {gateway: quaymaster}, ", catalog.Ours, "", 0, "an exception"},
		{exempting, "namespace: exceptions", "namespace: tenant, labels: {gateway: quaymaster}", catalog.NotOurs, "not accepted from namespace tenant", 0, "an exception of another namespace"},
		{exempting, "metadata: {name: legacy, namespace: exceptions}\nspec:", "metadata: {name: legacy, namespace: exceptions, labels: {gateway: quaymaster}}\nspec:\n  podSecurity: [{}]", catalog.Broken, "podSecurity", 0, "an exception that is broken"},
		{"a: [", "", "", catalog.Broken, "yaml", 0, "no document"},
		{good, "labels: {gateway: quaymaster}", "labels: [gateway]", catalog.NotOurs, "policy selector", 0, "labels that cannot be read select nothing"},
		{good, "    verifyImages:", "    deep:\n      " + strings.Repeat("- ", 9990) + strings.Repeat("[", 20) + strings.Repeat("]", 20) + "\n    verifyImages:", catalog.Broken, "depth", 0, "deeper than JSON may be"},
		{`{"apiVersion": "v1", "kind": "\ud83d\ude00"}`, "", "", catalog.NotOurs, "policy selector", 0, "JSON that is no YAML"},
		{`{"apiVersion": "v1", "kind": "\ud83d\ude00"`, "", "", catalog.Broken, "yaml", 0, "and half of it, which is neither"},
		{sized(3 << 20), "", "", catalog.NotOurs, "policy selector", 0, "as large as the API server takes"},
		{sized(3<<20 + 1), "", "", catalog.Broken, "exceeds the bound", 0, "a byte larger"},
	} {
		cat, _ := newCatalog(t, func(o *catalog.Options) {
			o.Selects = func(labels map[string]string) bool { return labels["gateway"] == "quaymaster" }
		})
		text := strings.Replace(c.text, c.before, c.after, 1)
		snapshot := cat.Put(document("k", text))
		entry := snapshot.Entries[0]
		if entry.State != c.state || !strings.Contains(entry.Why, c.why) || len(snapshot.Set.Policies()) != c.active {
			t.Errorf("%s: %s, %q, %d active", c.reason, entry.State, entry.Why, len(snapshot.Set.Policies()))
		}
		if err := cat.Check([]byte(text)); (err != nil) != (c.state == catalog.Broken) {
			t.Errorf("%s: the check returns %v", c.reason, err)
		}
	}
}

func TestAllExceptionNamespaces(t *testing.T) {
	for _, text := range []string{exempting, strings.ReplaceAll(exempting, "namespace: exceptions", "namespace: tenant")} {
		cat, _ := newCatalog(t, func(o *catalog.Options) { o.ExceptionNamespaces = []string{"*"} })
		if snapshot := cat.Put(document("k", text)); len(snapshot.Set.Exceptions()) != 1 {
			t.Errorf("not accepted: %+v", snapshot.Entries)
		}
	}
}

func TestNoExceptionNamespaces(t *testing.T) {
	cat, _ := newCatalog(t, func(o *catalog.Options) { o.ExceptionNamespaces = nil })
	if snapshot := cat.Put(document("k", exempting)); len(snapshot.Set.Exceptions()) != 0 || snapshot.Entries[0].State != catalog.NotOurs {
		t.Errorf("accepted from everywhere: %+v", snapshot.Entries)
	}
}

func TestUnchangedIsNotCompiled(t *testing.T) {
	cat, compiled := newCatalog(t, nil)
	other := strings.Replace(good, "name: good", "name: other", 1)
	before := cat.Put(document("a", good), document("b", other))
	cat.Put(document("a", good), document("b", strings.Replace(other, "ann@", "bob@", 1)))
	if *compiled != 3 {
		t.Errorf("compiled %d times, want 3", *compiled)
	}
	after := cat.Replace("", []catalog.Document{document("a", good)})
	if *compiled != 3 || len(after.Set.Policies()) != 1 || len(before.Set.Policies()) != 2 {
		t.Errorf("compiled %d times; %d policies, and %d in the old snapshot", *compiled, len(after.Set.Policies()), len(before.Set.Policies()))
	}
	if after.Set.Hash() == before.Set.Hash() || cat.Snapshot() != after {
		t.Error("the snapshot was not swapped")
	}
	if none := cat.Remove("a"); len(none.Set.Policies()) != 0 || len(none.Entries) != 0 {
		t.Error("a removed policy is active")
	}
}

// TestReplace: documents that the source no longer has are removed, those of other sources stay.
func TestReplace(t *testing.T) {
	cat, _ := newCatalog(t, nil)
	cat.Put(document("folder/a", policyNamed("a")), document("folder/b", policyNamed("b")), document("f", policyNamed("f")), document("folder", policyNamed("g")), document("other/a", policyNamed("o")))
	snapshot := cat.Replace("folder/", []catalog.Document{document("folder/b", policyNamed("b")), document("folder/c", policyNamed("c"))})
	var keys []string
	for _, e := range snapshot.Entries {
		keys = append(keys, e.Key)
	}
	if got := strings.Join(keys, " "); got != "f folder folder/b folder/c other/a" {
		t.Error(got)
	}
}

// TestPut: a document that is new or was moved is reported, even if it is empty.
func TestPut(t *testing.T) {
	cat, _ := newCatalog(t, nil)
	for _, c := range []struct {
		reason   string
		document catalog.Document
		entries  int
	}{
		{"an empty one", catalog.Document{Key: "a", Source: "file"}, 1},
		{"an empty one that comes from nowhere", catalog.Document{Key: "b"}, 2},
		{"a policy", catalog.Document{Key: "c", Source: "file", Text: []byte(good)}, 3},
		{"the same one", catalog.Document{Key: "c", Source: "file", Text: []byte(good)}, 3},
		{"the same one, elsewhere", catalog.Document{Key: "c", Source: "another file", Text: []byte(good)}, 3},
	} {
		snapshot := cat.Put(c.document)
		if last := snapshot.Entries[len(snapshot.Entries)-1]; len(snapshot.Entries) != c.entries || last.Key != c.document.Key || last.Source != c.document.Source {
			t.Errorf("%s: %+v", c.reason, snapshot.Entries)
		}
	}
}

// TestTexts: of policies, broken ones included, and of nothing else.
func TestTexts(t *testing.T) {
	cat, _ := newCatalog(t, nil)
	broken := strings.Replace(policyNamed("broken"), "attestors:", "attestor:", 1)
	cat.Put(document("c", good), document("b", broken), document("a", exempting), document("d", "a: ["))
	var got []string
	cat.Texts(func(entry catalog.Entry, text []byte) { got = append(got, entry.Key+string(text)) })
	if want := []string{"b" + broken, "c" + good}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestDefinedTwice(t *testing.T) {
	changed := strings.Replace(good, "ann@", "bob@", 1)
	var hashes []string
	for _, order := range [][]catalog.Document{
		{document("a", good), document("b", changed)},
		{document("b", changed), document("a", good)},
	} {
		cat, _ := newCatalog(t, nil)
		var snapshot *catalog.Snapshot
		for _, d := range order {
			snapshot = cat.Put(d)
		}
		if snapshot.Entries[0].State != catalog.Ours || snapshot.Entries[1].State != catalog.Broken ||
			!strings.Contains(snapshot.Entries[1].Why, "defined twice") {
			t.Errorf("entries %+v", snapshot.Entries)
		}
		hashes = append(hashes, snapshot.Set.Hash())
		if last := cat.Remove("a"); last.Entries[0].State != catalog.Ours {
			t.Error("the other one does not become active when the first goes")
		}
	}
	if hashes[0] != hashes[1] {
		t.Error("which one is active depends on the order in which they came")
	}
}

func TestRefusedOptions(t *testing.T) {
	if _, err := catalog.New(catalog.Options{}); err == nil {
		t.Error("a catalog without a dialect")
	}
	cat, _ := newCatalog(t, nil)
	for _, o := range []catalog.FolderOptions{{Catalog: cat}, {Paths: []string{"x"}}, {Paths: []string{"x"}, Catalog: cat, Interval: -1}} {
		if _, err := catalog.NewFolder(o); err == nil {
			t.Errorf("accepted %+v", o)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(exempting))
	cat, _ := newCatalog(f, nil)
	f.Fuzz(func(t *testing.T, text []byte) {
		err := cat.Check(text)
		snapshot := cat.Put(catalog.Document{Key: "k", Text: text, Source: "fuzz"})
		if (err != nil) != (snapshot.Entries[0].State == catalog.Broken) {
			t.Errorf("checked %v, then %s", err, snapshot.Entries[0].State)
		}
		if len(snapshot.Entries) != 1 {
			t.Errorf("%d entries: %v", len(snapshot.Entries), snapshot.Entries[1].Err)
		}
	})
}

func Example() {
	engine, _ := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	compiler, _ := kyverno.New(kyverno.Options{Engine: engine})
	cat, _ := catalog.New(catalog.Options{Dialects: []catalog.Dialect{kyverno.Policies{Compiler: compiler}}})
	snapshot := cat.Put(
		catalog.Document{Key: "1", Text: []byte(good), Source: "good.yaml"},
		catalog.Document{Key: "2", Text: []byte(exempting), Source: "exception.yaml"},
	)
	for _, e := range snapshot.Entries {
		fmt.Printf("%s: %s (%s)\n", e.Key, e.State, e.Why)
	}
	// Output:
	// 1: ours ()
	// 2: not-ours (kyverno.io/v2 PolicyException is no kind of policy that is known here)
}
