package catalog_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/kyverno"
	"github.com/quaymaster/quaymaster/workload"
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

// counting counts what is compiled.
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
		{good, "    verifyImages:", "    bad: {}\n    generate: {}\n    other:", catalog.NotOurs, "", 0, "broken, and of rules about other objects alone"},
		{good, "kind: ClusterPolicy", "kind: CleanupPolicy", catalog.NotOurs, "no kind of policy", 0, "another kind"},
		{exempting, "metadata: {", "metadata: {labels: {gateway: quaymaster}, ", catalog.Ours, "", 0, "an exception"},
		{exempting, "namespace: exceptions", "namespace: tenant, labels: {gateway: quaymaster}", catalog.NotOurs, "not accepted from namespace tenant", 0, "an exception of another namespace"},
		{exempting, "metadata: {name: legacy, namespace: exceptions}\nspec:", "metadata: {name: legacy, namespace: exceptions, labels: {gateway: quaymaster}}\nspec:\n  podSecurity: [{}]", catalog.Broken, "podSecurity", 0, "an exception that is broken"},
		{"a: [", "", "", catalog.Broken, "yaml", 0, "no document"},
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
			t.Errorf("%s: the check says %v", c.reason, err)
		}
	}
}

func TestNoExceptionNamespaces(t *testing.T) {
	cat, _ := newCatalog(t, func(o *catalog.Options) { o.ExceptionNamespaces = nil })
	if snapshot := cat.Put(document("k", exempting)); len(snapshot.Set.Exceptions()) != 0 || snapshot.Entries[0].State != catalog.NotOurs {
		t.Errorf("accepted from everywhere: %+v", snapshot.Entries)
	}
}

func TestOnlyWhatChangedIsCompiled(t *testing.T) {
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

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("policies.yaml", good+"---\n"+exempting+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: keys, namespace: trust}\n")
	cat, _ := newCatalog(t, nil)
	var others []string
	folder, err := catalog.NewFolder(catalog.FolderOptions{Paths: []string{dir}, Catalog: cat, Others: func(objects []workload.Object) error {
		for _, o := range objects {
			others = append(others, o.Kind()+"/"+o.Name())
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	load := func(want bool, reason string) {
		t.Helper()
		if changed, err := folder.Load(); err != nil || changed != want {
			t.Fatalf("%s: changed %t, %v", reason, changed, err)
		}
	}
	load(true, "at first")
	load(false, "nothing changed")
	set := cat.Snapshot().Set
	if len(set.Policies()) != 1 || len(set.Exceptions()) != 1 || !slices.Equal(others, []string{"ConfigMap/keys"}) {
		t.Errorf("%d policies, %d exceptions, others %v", len(set.Policies()), len(set.Exceptions()), others)
	}
	write("more.yml", strings.Replace(good, "name: good", "name: more", 1))
	write("notes.txt", "no policy")
	load(true, "a file more")
	if n := len(cat.Snapshot().Set.Policies()); n != 2 {
		t.Errorf("%d policies", n)
	}
	write("more.yml", "a: [")
	if _, err := folder.Load(); err == nil || len(cat.Snapshot().Set.Policies()) != 2 {
		t.Errorf("a file that cannot be read changed what is active: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "more.yml")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink("nothing", link); err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Load(); !errors.Is(err, fs.ErrNotExist) || len(cat.Snapshot().Set.Policies()) != 2 {
		t.Errorf("a link to nothing, which is not a file that went away: %v", err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	load(true, "a file less")
	if n := len(cat.Snapshot().Set.Policies()); n != 1 {
		t.Errorf("%d policies", n)
	}
}

func TestFolderWatches(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(name, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	cat, _ := newCatalog(t, nil)
	folder, err := catalog.NewFolder(catalog.FolderOptions{Paths: []string{dir}, Catalog: cat, Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		folder.Watch(ctx, func(_ bool, err error) {
			select {
			case told <- err:
			case <-ctx.Done():
			}
		})
	}()
	if err := <-told; err != nil || len(cat.Snapshot().Set.Policies()) != 1 {
		t.Errorf("at first: %v", err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err != nil || len(cat.Snapshot().Set.Policies()) != 0 {
		t.Errorf("after the removal: %v", err)
	}
	cancel()
	<-done
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
