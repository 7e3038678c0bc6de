package usage_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
)

// TestAdapt: the usage of a command with subcommands and of one of them.
func TestAdapt(t *testing.T) {
	root := &cobra.Command{Use: "tool", Short: "Do things", Run: func(*cobra.Command, []string) {}}
	root.PersistentFlags().Bool("quiet", false, "print nothing")
	sub := &cobra.Command{
		Use: "copy FILE", Short: "Copy a file", Aliases: []string{"cp"}, Example: "  tool copy a", Run: func(*cobra.Command, []string) {},
	}
	sub.Flags().BoolP("force", "f", true, "replace what exists, although the description of this flag is longer than a line")
	sub.Flags().String("to", "here", "the `folder`")
	sub.Flags().String("secret", "", "not shown")
	if err := sub.Flags().MarkHidden("secret"); err != nil {
		t.Fatal(err)
	}
	root.AddCommand(sub)
	usage.Adapt(root, 0)
	for _, c := range []struct{ command, want string }{
		{"tool", `Usage:
  tool
  tool [command]

Commands:
  copy        Copy a file

Flags:
      --quiet                 print nothing

Use "tool [command] --help" for more information about a command.
`},
		{"copy", `Usage:
  tool copy FILE [flags]

Aliases:
  copy, cp

Examples:
  tool copy a

Flags:
  -f, --force                 replace what exists, although the description of
                              this flag is longer than a line (default true)
      --to folder             the folder (default "here")
      --quiet                 print nothing
`},
	} {
		out := new(bytes.Buffer)
		root.SetOut(out)
		cmd := root
		if c.command != "tool" {
			cmd = sub
		}
		if err := cmd.Usage(); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("%s: %s", c.command, out)
		}
		if is, err := root.PersistentFlags().GetBool("quiet"); err != nil || is {
			t.Errorf("%s: the flag is no longer a boolean one: %t, %v", c.command, is, err)
		}
	}
}

// TestWidth: descriptions and flags are as wide as the terminal, between bounds.
func TestWidth(t *testing.T) {
	const words = "aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii jjjj kkkk llll mmmm nnnn oooo pppp qqqq rrrr ssss tttt uuuu vvvv wwww xxxx yyyy zzzz"
	for _, c := range []struct {
		reason        string
		columns, want int
	}{
		{"no terminal", 0, 80},
		{"a narrow one", 20, 60},
		{"a terminal", 100, 100},
		{"a wide one", 400, 120},
	} {
		cmd := &cobra.Command{Use: "tool", Short: "Do things", Long: words + "\n\n    as it is, also where it is wider than any terminal, with its blanks, and without a break anywhere in the whole of the line", Run: func(*cobra.Command, []string) {}}
		cmd.Flags().String("a", "", words)
		usage.Adapt(cmd, c.columns)
		out := new(bytes.Buffer)
		cmd.SetOut(out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		widest := 0
		for line := range strings.Lines(out.String()) {
			if !strings.HasPrefix(line, "    as it is") {
				widest = max(widest, len(line)-1)
			}
		}
		// A line ends at most one word of four letters before the width.
		if widest > c.want || widest < c.want-5 {
			t.Errorf("%s: %d columns, want %d:\n%s", c.reason, widest, c.want, out)
		}
	}
}

// TestGroups: many flags stand in groups.
func TestGroups(t *testing.T) {
	cmd := &cobra.Command{Use: "verify", Short: "Verify", Run: func(*cobra.Command, []string) {}}
	for _, name := range []string{"key", "policy", "output", "mirrors", "filename", "unheard", "certificate-oidc-issuer-regexp"} {
		cmd.Flags().String(name, "", "the `"+name+"`")
	}
	usage.Adapt(cmd, 0)
	out := new(bytes.Buffer)
	cmd.SetOut(out)
	if err := cmd.Usage(); err != nil {
		t.Fatal(err)
	}
	const want = `Usage:
  verify [flags]

Objects and images:
      --filename filename     the filename

Policies:
      --policy policy         the policy

Signers:
      --certificate-oidc-issuer-regexp certificate-oidc-issuer-regexp
                              the certificate-oidc-issuer-regexp
      --key key               the key

Registries:
      --mirrors mirrors       the mirrors

Output:
      --output output         the output

Other flags:
      --unheard unheard       the unheard
`
	if out.String() != want {
		t.Errorf("%s", out)
	}
}

func TestChoice(t *testing.T) {
	for _, c := range []struct{ reason, value, want string }{
		{"a name", "json", ""},
		{"a misspelt name", "jsno", "-o jsno: did you mean json? want text, json or sarif"},
		{"another text", "html", "-o html: want text, json or sarif"},
		{"none", "", "-o : want text, json or sarif"},
	} {
		err := usage.Choice("-o", c.value, "text", "json", "sarif")
		if got := fmt.Sprint(err); err == nil && c.want != "" || err != nil && got != c.want {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// TestErrors: no error about a command line has the words of a library, and each suggests what was meant.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ reason, line, want string }{
		{"a misspelt command", "copu", `unknown command "copu": did you mean copy?; see: tool --help`},
		{"the beginning of a command", "cop", `unknown command "cop": did you mean copy?; see: tool --help`},
		{"a command of another program", "duplicate", `unknown command "duplicate": did you mean copy?; see: tool --help`},
		{"a command below another", "list", `unknown command "list": did you mean store list?; see: tool --help`},
		{"a misspelt command below another", "store lst", `unknown command "lst": did you mean list?; see: tool store --help`},
		{"another word", "verify", `unknown command "verify"; see: tool --help`},
		{"an argument of a shell", "completion bash x", `tool completion bash takes no arguments, found "x"`},
		{"a misspelt flag", "copy --frce", "unknown flag --frce: did you mean --force?; see: tool copy --help"},
		{"the beginning of a flag", "copy --time=1s", "unknown flag --time: did you mean --timeout?; see: tool copy --help"},
		{"another flag", "copy --zone", "unknown flag --zone; see: tool copy --help"},
		{"a letter", "copy -z", "unknown flag -z; see: tool copy --help"},
		{"a flag with one dash", "copy -timeout 1s", "unknown flag -t in -timeout: did you mean --timeout?; see: tool copy --help"},
		{"letters", "copy -fz", "unknown flag -z; see: tool copy --help"},
		{"a flag without a value", "copy --timeout", "--timeout needs a value: duration; see: tool copy --help"},
		{"a short flag without a value", "copy -c", "--count needs a value: N; see: tool copy --help"},
		{"no duration", "copy --timeout 5", "--timeout 5: want a duration such as 30s or 5m; see: tool copy --help"},
		{"no number", "copy --count x", "--count x: want a whole number; see: tool copy --help"},
		{"a negative number", "copy --least -1", "--least -1: want a whole number from 0; see: tool copy --help"},
		{"no fraction", "copy --share x", "--share x: want a number; see: tool copy --help"},
		{"no boolean", "copy --force=maybe", "--force maybe: want true or false; see: tool copy --help"},
		{"no name", "copy --=x", "--=x is no flag: want --NAME or --NAME=VALUE; see: tool copy --help"},
		{"arguments", "copy a", `tool copy takes no arguments, found "a"`},
		{"nothing", "store list", "name a store: tool store list STORE [flags]"},
		{"two arguments", "store list a b", "tool store list takes 1 argument, found 2: tool store list STORE [flags]"},
	} {
		root := &cobra.Command{Use: "tool", Args: usage.NoArguments, SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return nil }}
		done := func(*cobra.Command, []string) {}
		copies := &cobra.Command{Use: "copy", SuggestFor: []string{"duplicate"}, Args: usage.NoArguments, Run: done}
		copies.Flags().BoolP("force", "f", false, "")
		copies.Flags().IntP("count", "c", 0, "the `N`")
		copies.Flags().Uint32("least", 0, "")
		copies.Flags().Float64("share", 0, "")
		copies.Flags().Duration("timeout", 0, "")
		store := &cobra.Command{Use: "store", Args: usage.NoArguments, Run: done}
		store.AddCommand(&cobra.Command{Use: "list STORE", Args: usage.Arguments("a store", 1), Run: done})
		root.AddCommand(copies, store)
		root.SetOut(new(bytes.Buffer))
		usage.AdaptErrors(root)
		root.SetArgs(strings.Fields(c.line))
		if err := root.Execute(); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
}

// TestRightCommandLines: the counterparts are accepted.
func TestRightCommandLines(t *testing.T) {
	for _, line := range []string{"copy --timeout 5s", "copy --count 1", "copy -fc 2", "copy --force=true"} {
		root := &cobra.Command{Use: "tool", SilenceErrors: true, SilenceUsage: true}
		copies := &cobra.Command{Use: "copy", Args: usage.NoArguments, Run: func(*cobra.Command, []string) {}}
		copies.Flags().BoolP("force", "f", false, "")
		copies.Flags().IntP("count", "c", 0, "the `N`")
		copies.Flags().Duration("timeout", 0, "")
		root.AddCommand(copies)
		usage.AdaptErrors(root)
		root.SetArgs(strings.Fields(line))
		if err := root.Execute(); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}
