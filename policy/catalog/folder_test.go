package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/dialect/override"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/workload"
)

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
		t.Errorf("a file that cannot be read changed the active policies: %v", err)
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

// policyNamed is the good policy with another name.
func policyNamed(name string) string { return strings.Replace(good, "name: good", "name: "+name, 1) }

// lay makes files by their names below a folder; "-> " begins a link, and a name that ends
// with / is a folder.
func lay(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(at), 0o700)
		target, link := strings.CutPrefix(text, "-> ")
		switch {
		case err != nil:
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o700)
		case link:
			err = os.Symlink(target, at)
		default:
			err = os.WriteFile(at, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// loaded reads paths below a folder, and returns the names of the policies and the error.
func loaded(t *testing.T, dir string, paths ...string) ([]string, error) {
	t.Helper()
	cat, _ := newCatalog(t, nil)
	var below []string
	for _, path := range paths {
		below = append(below, dir+"/"+path)
	}
	folder, err := catalog.NewFolder(catalog.FolderOptions{Paths: below, Catalog: cat})
	if err != nil {
		t.Fatal(err)
	}
	changed, err := folder.Load()
	if changed != (err == nil) {
		t.Errorf("%v: changed %t, %v", paths, changed, err)
	}
	var names []string
	for _, e := range cat.Snapshot().Entries {
		names = append(names, "broken")
		if e.State == catalog.Ours {
			names[len(names)-1] = e.Policy.Name
		}
	}
	return names, err
}

func TestWhichFilesAreRead(t *testing.T) {
	for _, c := range []struct {
		reason string
		files  map[string]string
		paths  []string
		want   string // names of policies, or a part of the error
	}{
		{"below folders, too", map[string]string{"p/a.yaml": policyNamed("a"), "p/q/r/b.json": policyNamed("b")}, []string{"p"}, "[a b]"},
		{"a folder with the name of a file", map[string]string{"p/a.yaml": policyNamed("a"), "p/b.yaml/c.yml": policyNamed("c")}, []string{"p"}, "[a c]"},
		{"a file that is hidden is left out, and what stands behind it is not", map[string]string{"p/.a.yaml": policyNamed("a"), "p/b.yaml": policyNamed("b")}, []string{"p"}, "[b]"},
		{"a ConfigMap that is mounted", map[string]string{"p/..1/a.yaml": policyNamed("a"), "p/..data": "-> ..1", "p/a.yaml": "-> ..data/a.yaml"}, []string{"p"}, "[a]"},
		{"a hidden folder that is asked for", map[string]string{".p/a.yaml": policyNamed("a")}, []string{".p"}, "[a]"},
		{"a folder that is a link", map[string]string{"p/a.yaml": policyNamed("a"), "q": "-> p"}, []string{"q"}, "[a]"},
		{"a file that is asked for, whatever its name", map[string]string{"a.policy": policyNamed("a"), "b.policy": policyNamed("b")}, []string{"a.policy"}, "[a]"},
		{"twice, and read once", map[string]string{"p/a.yaml": policyNamed("a")}, []string{"p", "p/a.yaml", "p"}, "[a]"},
		{"a folder without files", map[string]string{"p/": ""}, []string{"p"}, "[]"},
		{"a folder that there is not", nil, []string{"p"}, "no such file"},
		{"one of two that there is not", map[string]string{"p/a.yaml": policyNamed("a")}, []string{"p", "q"}, "no such file"},
		{"what no JSON can say", map[string]string{"p/a.yaml": strings.Replace(good, "https://issuer.example", ".nan", 1)}, []string{"p"}, "a.yaml"},
	} {
		dir := t.TempDir()
		lay(t, dir, c.files)
		names, err := loaded(t, dir, c.paths...)
		got := fmt.Sprint(names)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) || (err == nil) != (c.want[0] == '[') {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}

// TestFolderThatCannotBeListed: its files are not ignored. Its path is longer than a
// system call takes, since a folder without permissions can be read by root.
func TestFolderThatCannotBeListed(t *testing.T) {
	dir := t.TempDir()
	lay(t, dir, map[string]string{"p/a.yaml": policyNamed("a")})
	if names, err := loaded(t, dir, "p"); err != nil || len(names) != 1 {
		t.Fatalf("%v, %v", names, err)
	}
	at, err := os.OpenRoot(filepath.Join(dir, "p"))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("d", 250)
	for range 20 {
		if err := at.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		below, err := at.OpenRoot(name)
		if err := errors.Join(err, at.Close()); err != nil {
			t.Fatal(err)
		}
		at = below
	}
	if err := at.Close(); err != nil {
		t.Fatal(err)
	}
	if names, err := loaded(t, dir, "p"); err == nil {
		t.Errorf("a folder was overlooked: %v", names)
	}
}

// TestBoundsOfFolders: ten thousand files are counted, and not read, since they are links to
// nothing.
func TestBoundsOfFolders(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"one/a.yaml": "", "large/a.yaml": ""}
	for i := range 100 {
		files[fmt.Sprintf("hundred/%d.yaml", i)] = "-> nothing"
	}
	lay(t, dir, files)
	if err := os.Truncate(filepath.Join(dir, "large", "a.yaml"), 256<<20+1); err != nil {
		t.Fatal(err)
	}
	most := slices.Repeat([]string{"hundred"}, 99)
	for _, c := range []struct {
		reason string
		paths  []string
		want   string // a part of the error
	}{
		{"as many files as may be", append(most[:99:99], "hundred"), "no such file"},
		{"one more", append(most[:99:99], "hundred", "one"), "more than 10000 files"},
		{"a byte more than may be", []string{"large"}, "exceed the bound"},
	} {
		if _, err := loaded(t, dir, c.paths...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.want)
		}
	}
}

// TestOthersRefuse: documents that Others refuses are not swapped in, and are tried again.
func TestOthersRefuse(t *testing.T) {
	dir := t.TempDir()
	lay(t, dir, map[string]string{"a.yaml": good})
	cat, _ := newCatalog(t, nil)
	refusal := errors.New("not now")
	folder, err := catalog.NewFolder(catalog.FolderOptions{Paths: []string{dir}, Catalog: cat, Others: func([]workload.Object) error { return refusal }})
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := folder.Load(); changed || !errors.Is(err, refusal) || len(cat.Snapshot().Entries) != 0 {
		t.Errorf("refused: changed %t, %v, %d entries", changed, err, len(cat.Snapshot().Entries))
	}
	refusal = nil
	if changed, err := folder.Load(); !changed || err != nil || len(cat.Snapshot().Entries) != 1 {
		t.Errorf("accepted: changed %t, %v, %d entries", changed, err, len(cat.Snapshot().Entries))
	}
}

// TestFolderSortsKinds: kinds of the catalog become documents, all others are passed to Others.
func TestFolderSortsKinds(t *testing.T) {
	overriding := "apiVersion: quaymaster.dev/v1alpha1\nkind: ImageOverride\nmetadata: {name: bad-day}\n"
	text := strings.Join([]string{good, exempting, trustRootText("ours", ""), overriding, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: keys}\n"}, "\n---\n")
	for _, c := range []struct {
		reason            string
		change            func(*catalog.Options)
		documents, others string
	}{
		{"policies and exceptions alone", nil, "[#000000 #000001]", "[TrustRoot ImageOverride ConfigMap]"},
		{"TrustRoots, too", func(o *catalog.Options) { o.TrustRoots = &trustroot.Roots{} }, "[#000000 #000001 #000002]", "[ImageOverride ConfigMap]"},
		{"overrides, too", func(o *catalog.Options) { o.Overrides = override.Overrides{} }, "[#000000 #000001 #000003]", "[TrustRoot ConfigMap]"},
		{"no exceptions", func(o *catalog.Options) { o.Exceptions = nil }, "[#000000]", "[PolicyException TrustRoot ImageOverride ConfigMap]"},
	} {
		dir := t.TempDir()
		lay(t, dir, map[string]string{"a.yaml": text})
		cat, _ := newCatalog(t, c.change)
		var documents, others []string
		folder, err := catalog.NewFolder(catalog.FolderOptions{Paths: []string{dir}, Catalog: cat, Others: func(objects []workload.Object) error {
			for _, o := range objects {
				others = append(others, o.Kind())
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := folder.Load(); err != nil {
			t.Fatal(err)
		}
		for _, e := range cat.Snapshot().Entries {
			documents = append(documents, e.Key[strings.Index(e.Key, "#"):])
		}
		if fmt.Sprint(documents) != c.documents || fmt.Sprint(others) != c.others {
			t.Errorf("%s: documents %v, others %v", c.reason, documents, others)
		}
	}
}

// TestFolderWatches: each change is reported, and each new error; once. The default interval is
// a second.
func TestFolderWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		cat, _ := newCatalog(t, nil)
		folder, err := catalog.NewFolder(catalog.FolderOptions{Paths: []string{dir}, Catalog: cat})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		ctx, cancel := context.WithCancel(t.Context())
		go folder.Watch(ctx, func(changed bool, err error) { told = append(told, fmt.Sprint(changed, err != nil)) })
		for _, step := range []struct {
			reason, text, want string
			active             int
		}{
			{"at first", good, "[true false]", 1},
			{"nothing changed", good, "[]", 1},
			{"it breaks", "a: [", "[false true]", 1},
			{"it is as broken as before", "a: [", "[]", 1},
			{"it is broken in another way", "{a: b}}", "[false true]", 1},
			{"it is mended, as it was", good, "[]", 1},
			{"it breaks again", "{a: b}}", "[false true]", 1},
			{"its content changes", strings.Replace(good, "ann@", "bob@", 1), "[true false]", 1},
			{"it is gone", "", "[true false]", 0},
		} {
			told = nil
			lay(t, dir, map[string]string{"a.yaml": step.text})
			<-time.After(time.Second)
			synctest.Wait()
			if got := fmt.Sprint(told); got != step.want || len(cat.Snapshot().Set.Policies()) != step.active {
				t.Errorf("%s: reported %s, want %s; %d active", step.reason, got, step.want, len(cat.Snapshot().Set.Policies()))
			}
		}
		cancel()
		synctest.Wait()
	})
}
