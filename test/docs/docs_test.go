package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/docs"
	"github.com/quaymaster/quaymaster/test/peers"
)

func checkout(t *testing.T) string {
	t.Helper()
	folder, err := peers.Checkout()
	must(t, err)
	return folder
}

func load(t *testing.T) *docs.Site {
	t.Helper()
	site, err := docs.Load(checkout(t))
	must(t, err)
	return site
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLinks follows every link and anchor of every page, and wants each page of docs/
// to be reachable from its index.
func TestLinks(t *testing.T) {
	site := load(t)
	for _, broken := range site.Broken() {
		t.Error(broken)
	}
	for _, name := range site.Unreachable("docs/README.md", "docs") {
		t.Errorf("%s: docs/README.md does not lead there", name)
	}
}

// TestFlags compares the flags of quaymaster on each page with those of the program.
func TestFlags(t *testing.T) {
	site := load(t)
	program, err := docs.NewProgram(site.Pages["docs/cli.md"])
	must(t, err)
	for _, name := range site.Names() {
		for _, unknown := range program.Unknown(site.Pages[name]) {
			t.Error(unknown)
		}
	}
}

// maxNotRun bounds the blocks that no test runs: they need an environment that no test has.
const maxNotRun = 18

// commands are how a line of code begins that is meant to be typed.
var commands = regexp.MustCompile(`(?m)^(\$ )?(bin/)?(quaymaster|kubectl|helm|cosign|crane|notation|kustomize|curl|docker|skopeo|openssl|make|go|git|jq) `)

// TestEveryBlockIsRun is the inventory of the commands in the documentation: a block is run
// with its page, by another test, or has a reason why it is not.
func TestEveryBlockIsRun(t *testing.T) {
	site := load(t)
	declared := tests(t)
	notRun := 0
	for _, name := range site.Names() {
		if name != "README.md" && !strings.HasPrefix(name, "docs/") || name == "docs/cli.md" {
			continue // the help of the commands themselves has examples, which TestFlags holds
		}
		ran, other := docs.Pages()[name] != docs.Nowhere, docs.Others()[name]
		if ran && other != (docs.Other{}) {
			t.Errorf("%s is run twice", name)
		}
		for _, b := range site.Pages[name].Blocks {
			isConsole := b.Language == "console"
			if b.RunBy == "" && b.NotRun == "" && (isConsole || commands.MatchString(b.Text)) {
				b.RunBy, b.NotRun = other.RunBy, other.NotRun
			}
			switch {
			case b.RunBy != "":
				if !declared[b.RunBy] {
					t.Errorf("%s:%d: there is no test %s", name, b.Line, b.RunBy)
				}
			case b.NotRun != "":
				notRun++
				t.Logf("%s:%d: not run: %s", name, b.Line, b.NotRun)
			case isConsole && !ran:
				t.Errorf("%s:%d: no test runs the page: add it to Pages", name, b.Line)
			case isConsole:
				if _, err := docs.Commands(b); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			case commands.MatchString(b.Text):
				t.Errorf("%s:%d: these are commands: make it a console block, or name the test that runs it", name, b.Line)
			}
		}
	}
	if notRun > maxNotRun {
		t.Errorf("%d blocks are not run, and %d may be", notRun, maxNotRun)
	}
	for name := range docs.Pages() {
		if site.Pages[name] == nil {
			t.Errorf("there is no page %s", name)
		}
	}
	for name := range docs.Others() {
		if site.Pages[name] == nil {
			t.Errorf("there is no page %s", name)
		}
	}
}

// tests returns the names of all tests of the checkout.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Example)\w*)\(`)
	there := map[string]bool{}
	err := filepath.WalkDir(checkout(t), func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		for _, name := range declared.FindAllSubmatch(text, -1) {
			there[string(name[1])] = true
		}
		return err
	})
	must(t, err)
	return there
}

// TestBuild builds the pages as HTML, and looks for what each of them refers to.
func TestBuild(t *testing.T) {
	folder := t.TempDir()
	must(t, load(t).Build(folder))
	reference := regexp.MustCompile(` (?:href|src)="([^"#]+)(?:#[^"]*)?"`)
	found := 0
	err := filepath.WalkDir(folder, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".html" {
			return err
		}
		text, err := os.ReadFile(file)
		for _, link := range reference.FindAllSubmatch(text, -1) {
			to := string(link[1])
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			found++
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), filepath.FromSlash(to))); err != nil {
				t.Errorf("%s: %s is not there", file, to)
			}
		}
		return err
	})
	must(t, err)
	if found == 0 {
		t.Error("no page refers to another one")
	}
}

// derived are figures of docs/sizing.md that are not measured, and their derivation.
func derived() map[string]string {
	return map[string]string{
		"256 MiB": "the chart's limit", "5 %": "100 pods a second, of 0.54 ms each",
		"23 %":  "100 pods a second, of 4.1 s for 1,780",
		"80 MB": "10,000 Deployments of the bytes of 100", "1.6 GB": "a million lines of 1,642 bytes",
		"1 GiB": "the default of totalSize", "30 seconds": "the default of ages.tag",
	}
}

// TestSizing: each figure that docs/sizing.md has stands in docs/engineering/performance.md.
func TestSizing(t *testing.T) {
	site := load(t)
	missing, found := docs.Figures(site.Pages["docs/sizing.md"], site.Pages["docs/engineering/performance.md"])
	for _, figure := range missing {
		if derived()[figure.What] == "" {
			t.Errorf("%v: docs/engineering/performance.md has no such figure", figure)
		}
	}
	if found < 20 {
		t.Errorf("%d figures: the test reads the page wrongly", found)
	}
	for _, row := range []struct {
		reason, copied string
		missing        int
	}{
		{"the same", "it takes 67 ms, 2 to 3 s", 0},
		{"another number", "it takes 68 ms", 1},
		{"another unit", "it takes 67 s", 1},
		{"a part of a number", "it takes 7 ms", 1},
		{"no figure", "a page of 12 lines", 0},
	} {
		if missing, _ := docs.Figures(page(t, row.copied), page(t, "67 ms; 1.7 ms, 2 to 3 s")); len(missing) != row.missing {
			t.Errorf("%s: %v", row.reason, missing)
		}
	}
}
