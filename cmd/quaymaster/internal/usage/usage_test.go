package usage_test

import (
	"bytes"
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
	usage.Adapt(root)
	for _, c := range []struct{ command, want string }{
		{"tool", `Usage:
  tool [flags]
  tool [command]

Available Commands:
  copy        Copy a file

Flags:
      --quiet   print nothing

Use "tool [command] --help" for more information about a command.
`},
		{"copy", `Usage:
  tool copy FILE [flags]

Aliases:
  copy, cp

Examples:
  tool copy a

Flags:
  -f, --force       replace what exists, although the description of this
                    flag is longer than a line (default true)
      --to folder   the folder (default "here")

Global Flags:
      --quiet   print nothing
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
