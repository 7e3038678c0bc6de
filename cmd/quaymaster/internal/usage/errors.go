package usage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quaymaster/quaymaster/internal/spelling"
)

// distance is the number of wrong letters in a name that still gets a suggestion.
func distance(name string) int { return min(2, len(name)/3) }

// NoArguments refuses arguments. To a command with subcommands they are unknown commands.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return fmt.Errorf("%s takes no arguments, found %q", cmd.CommandPath(), args[0])
	}
	cmd.SuggestionsMinimumDistance = distance(args[0])
	return fmt.Errorf("unknown command %q%s; see: %s --help", args[0], didYouMean(cmd.SuggestionsFor(args[0]), ""), cmd.CommandPath())
}

// Arguments requires at least one argument, and at most so many; 0 means any number. Name is
// the argument with its article.
func Arguments(name string, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("name %s: %s", name, cmd.UseLine())
		case most > 0 && len(args) > most:
			return fmt.Errorf("%s takes %d argument, found %d: %s", cmd.CommandPath(), most, len(args), cmd.UseLine())
		}
		return nil
	}
}

// didYouMean is the part of an error that suggests names.
func didYouMean(names []string, prefix string) string {
	if len(names) == 0 {
		return ""
	}
	return ": did you mean " + prefix + strings.Join(names, " or "+prefix) + "?"
}

// Choice refuses a value of a flag that is none of the names, and suggests the most similar one.
func Choice(flag, value string, names ...string) error {
	if slices.Contains(names, value) {
		return nil
	}
	nearest := ""
	if name := spelling.Nearest(value, names); name != "" {
		nearest = "did you mean " + name + "? "
	}
	last := len(names) - 1
	return fmt.Errorf("%s %s: %swant %s or %s", flag, value, nearest, strings.Join(names[:last], ", "), names[last])
}

// flagError suggests a flag in place of an unknown one.
func flagError(cmd *cobra.Command, err error) error {
	suggestion := ""
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && len(unknown.GetSpecifiedName()) > 1 {
		// cobra compares names of commands only.
		flags := &cobra.Command{SuggestionsMinimumDistance: distance(unknown.GetSpecifiedName())}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		})
		suggestion = didYouMean(flags.SuggestionsFor(unknown.GetSpecifiedName()), "--")
	}
	return fmt.Errorf("%w%s; see: %s --help", err, suggestion, cmd.CommandPath())
}

// AdaptErrors changes the errors of a command with subcommands, and adds cobra's own subcommands
// help and completion, which accept every argument otherwise.
func AdaptErrors(root *cobra.Command) {
	root.SetFlagErrorFunc(flagError)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Args = NoArguments
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			cmd.Long = "Completion prints a script that completes commands, flags and values in a shell." + completionStatus
			cmd.Example = completionExamples(root, "bash", "zsh", "fish")
			for _, shell := range cmd.Commands() {
				shell.Long += completionStatus
				shell.Example = completionExamples(root, shell.Name(), shell.Name()+" --no-descriptions", shell.Name()+" --help")
			}
		case "help":
			cmd.Long = "Help prints the description, the flags and examples of a command." + completionStatus
			name := root.Name() + " "
			cmd.Example = "  " + name + "help verify\n  " + name + "help log show\n  " + name + "verify --help"
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				found, rest, err := cmd.Root().Find(args)
				if err != nil {
					return err
				}
				return NoArguments(found, rest)
			}
		}
	}
}

const completionStatus = "\n\nExit status: 0, or 2 for wrong use."

func completionExamples(root *cobra.Command, arguments ...string) string {
	var lines []string
	for _, one := range arguments {
		lines = append(lines, "  "+root.Name()+" completion "+one)
	}
	return strings.Join(lines, "\n")
}
