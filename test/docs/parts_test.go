package docs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/docs"
)

func page(t *testing.T, text string) *docs.Page {
	t.Helper()
	p, err := docs.Parse("docs/page.md", []byte(text))
	must(t, err)
	return p
}

func TestParse(t *testing.T) {
	p := page(t, `# The Page: a `+"`name`"+`, and more
## Twice
[here](other.md#a) and
![there](picture.svg)
## Twice

<!-- not run: needs
a cloud -->
`+"```console\n$ true\n```"+`

    indented

<!-- run by TestThis -->

    by another
`)
	if p.Title == "" || !p.Anchors["the-page-a-name-and-more"] || !p.Anchors["twice"] || !p.Anchors["twice-1"] || p.Anchors["twice-2"] {
		t.Errorf("title %q, anchors %v", p.Title, p.Anchors)
	}
	if want := []docs.Link{{Line: 3, Target: "other.md#a"}, {Line: 4, Target: "picture.svg"}}; !slices.Equal(p.Links, want) {
		t.Errorf("links %v, want %v", p.Links, want)
	}
	want := []docs.Block{
		{Line: 10, Language: "console", Text: "$ true\n", NotRun: "needs a cloud"},
		{Line: 13, Text: "indented\n"},
		{Line: 17, Text: "by another\n", RunBy: "TestThis"},
	}
	if !slices.Equal(p.Blocks, want) {
		t.Errorf("blocks %+v, want %+v", p.Blocks, want)
	}
	if _, err := docs.Parse("docs/page.md", []byte("<!-- note run: typing error -->\n```console\n$ true\n```\n")); err == nil {
		t.Error("an unknown comment is accepted")
	}
}

func TestCommands(t *testing.T) {
	got, err := docs.Commands(docs.Block{Line: 5, Text: "$ one \\\n    two\nsays\n$ cat > f <<'EOF'\n$ not a command\nEOF\n$ three |\n    four\n$ jq 'a\n    \"b' # isn't\nc\n"})
	must(t, err)
	want := []docs.Command{
		{Line: 5, Text: "one \\\n    two", Output: []string{"says"}},
		{Line: 8, Text: "cat > f <<'EOF'\n$ not a command\nEOF"},
		{Line: 11, Text: "three |\n    four"},
		{Line: 13, Text: "jq 'a\n    \"b' # isn't", Output: []string{"c"}},
	}
	if !slices.EqualFunc(got, want, func(a, b docs.Command) bool {
		return a.Line == b.Line && a.Text == b.Text && slices.Equal(a.Output, b.Output)
	}) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for reason, text := range map[string]string{
		"output before a command": "says\n$ one\n",
		"no end":                  "$ one \\\n",
		"no end of the input":     "$ cat <<EOF\nmore\n",
		"no end of a quote":       "$ echo 'more\nand more\n",
		"no status":               "$ one\n$ echo $?\nnone\n",
	} {
		if _, err := docs.Commands(docs.Block{Line: 1, Text: text}); err == nil {
			t.Errorf("%s: taken", reason)
		}
	}
}

func TestPrints(t *testing.T) {
	for _, row := range []struct {
		reason, shown, printed string
		want                   bool
	}{
		{"nothing is shown", "", "anything\n", true},
		{"the same", "one\ntwo", "one  \ntwo\n\n", true},
		{"one line more", "one", "one\ntwo\n", false},
		{"one line less", "one\ntwo", "one\n", false},
		{"a part is left out", "digest sha256:... of app", "digest sha256:abc of app\n", true},
		{"a part is left out, another is not", "digest sha256:... of app", "digest sha256:abc of web\n", false},
		{"a part goes over no line", "one ... four", "one two\nthree four\n", false},
		{"lines are left out", "one\n...\nfour", "one\ntwo\nthree\nfour\n", true},
		{"no lines are left out", "one\n...\nfour", "one\nfour\n", true},
		{"lines are left out, and the last one is missing", "one\n...\nfour", "one\ntwo\n", false},
		{"all is left out", "...", "", true},
		{"it is no expression", "a.c", "abc\n", false},
	} {
		c := docs.Command{}
		if row.shown != "" {
			c.Output = strings.Split(row.shown, "\n")
		}
		if c.Prints(row.printed) != row.want {
			t.Errorf("%s: %t", row.reason, !row.want)
		}
	}
}

// ExampleCommand_Prints shows how output is compared.
func ExampleCommand_Prints() {
	c := docs.Command{Text: "quaymaster verify registry.example/app", Output: []string{"  ✓ allow   registry.example/app", "    digest    sha256:...", "..."}}
	fmt.Println(c.Prints("  ✓ allow   registry.example/app\n    digest    sha256:12ab\n    why       signed by key 34cd\n"))
	fmt.Println(c.Prints("  ✗ deny    registry.example/app\n    digest    sha256:12ab\n"))
	// Output:
	// true
	// false
}

func TestShell(t *testing.T) {
	for _, row := range []struct {
		reason, text string
		line         int // of the mistake; 0 for none
	}{
		{"the output matches", "$ echo one; false\none\n$ echo $?\n1\n", 0},
		{"a comment with the exit status", "$ false # exit status 1\n", 0},
		{"a comment with another exit status", "$ true # exit status 1\n", 3},
		{"another status than on the page", "$ (exit 2)\n$ echo $?\n1\n", 3},
		{"a part of a pipe fails", "$ false | cat\n", 3},
		{"a pipe without a reader", "$ yes | head -1\ny\n", 0},
		{"something else is printed", "$ true\n$ echo one\ntwo\n", 4},
		{"it fails, and the page does not show that", "$ true\n$ false\n", 4},
		{"it fails, and the page has the output without the status", "$ cat absent\ncat: ...: No such file or directory\n", 3},
		{"it fails, and the page shows all of that", "$ cat absent # exit status 1\ncat: ...: No such file or directory\n", 0},
		{"names are other ones here", "$ echo registry.example/app $PORT\nregistry.example/app 5000\n", 0},
		{"a server goes on", "$ sleep 1000 &\n$ echo one\none\n", 0},
		{"the shell ends", "$ exit 0\n", 3},
		{"it cannot be read", "$ echo )\n", 3},
		{"one command sees the file of another", "$ cat > f <<'EOF'\n$HOME\nEOF\n$ cat f\n$HOME\n", 0},
		{"a variable of the commands before the page", "$ echo $GIVEN\nyes\n", 0},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			var all []docs.Command
			for _, b := range page(t, "# Page\n```console\n"+row.text+"```\n").Blocks {
				commands, err := docs.Commands(b)
				must(t, err)
				all = append(all, commands...)
			}
			shell := docs.Shell{
				Folder: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH"), "PORT=5000"}, Before: "GIVEN=yes",
				Names: map[string]string{"registry.example": "127.0.0.1:5000"},
			}
			err := shell.Run(t.Context(), "page.md", all)
			var mistake docs.Mistake
			errors.As(err, &mistake)
			if (err == nil) != (row.line == 0) || mistake.Line != row.line {
				t.Errorf("got %v, want a mistake in line %d", err, row.line)
			}
		})
	}
}

func TestShellWaitsForAfter(t *testing.T) {
	folder := t.TempDir()
	shell := docs.Shell{Folder: folder, Env: []string{"PATH=" + os.Getenv("PATH")}, After: func(_ context.Context, command string) error {
		if command == "install" {
			return os.WriteFile(folder+"/installed", []byte("yes\n"), 0o600)
		}
		return nil
	}, Before: "install() { :; }"}
	must(t, shell.Run(t.Context(), "page.md", []docs.Command{{Text: "install"}, {Text: "cat installed", Output: []string{"yes"}}}))
}

func TestUnknownFlags(t *testing.T) {
	program, err := docs.NewProgram(page(t, "# Command line\n\n## quaymaster\n\nx\n\n## quaymaster bundle create\n\n```\n  -o, --output FILE\n      --key file\n```\n"))
	must(t, err)
	for _, row := range []struct{ line, unknown string }{
		{"quaymaster bundle create -o x --key=y", ""},
		{"quaymaster bundle create -o x --keys y", "--keys"},
		{"$ bin/quaymaster bundle create -o x \\\n    --nokey y", "--nokey"},
		{"helm template . | quaymaster bundle create --nokey", "--nokey"},
		{"quaymaster bundle create | jq --raw", ""},
		{"quaymaster bundles", "bundles"},
		{"kubectl -n quaymaster get pods --any", ""},
	} {
		got := program.Unknown(page(t, "# Page\n```\n"+row.line+"\n```\n"))
		if (len(got) == 0) != (row.unknown == "") || len(got) > 0 && !strings.Contains(got[0].What, row.unknown) {
			t.Errorf("%s: got %v, want %q", row.line, got, row.unknown)
		}
	}
}

func TestBrokenLinks(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"README.md":    "# One\n[a](docs/a.md#two) [b](docs/b.md) [c](docs/a.md#three) [d](../e.md) [f](https://example.com/x) [g](docs)\n",
		"docs/a.md":    "# A\n## Two\n[a](#two) [b](#a)\n[c](#none)\n",
		"docs/lone.md": "# Lone\n",
	} {
		must(t, os.MkdirAll(folder+"/docs", 0o700))
		must(t, os.WriteFile(folder+"/"+name, []byte(text), 0o600))
	}
	site, err := docs.Load(folder)
	must(t, err)
	var got []string
	for _, m := range site.Broken() {
		got = append(got, m.Error())
	}
	want := []string{
		"README.md:2: the link docs/b.md: there is no such file",
		"README.md:2: the link docs/a.md#three: there is no such heading",
		"README.md:2: the link ../e.md: it leads out of the repository",
		"docs/a.md:4: the link #none: there is no such heading",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := site.Unreachable("README.md", "docs"); !slices.Equal(got, []string{"docs/lone.md"}) {
		t.Errorf("unreachable: %v", got)
	}
}
