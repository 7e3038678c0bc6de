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

// NoArguments refuses arguments. To a command with subcommands they are unknown commands.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return fmt.Errorf("%s takes no arguments, found %q", cmd.CommandPath(), args[0])
	}
	return fmt.Errorf("unknown command %q%s; see: %s --help", args[0], spelling.DidYouMean(similarCommand(cmd, args[0])), cmd.CommandPath())
}

// similarCommand returns the subcommand that a misspelt name was meant to be, or the path of one below
// another command.
func similarCommand(cmd *cobra.Command, name string) string {
	var names []string
	below := ""
	for _, child := range cmd.Commands() {
		if !child.IsAvailableCommand() && child.Name() != "help" {
			continue
		}
		if slices.Contains(child.SuggestFor, name) {
			return child.Name()
		}
		names = append(append(names, child.Name()), child.Aliases...)
		for _, grandchild := range child.Commands() {
			if grandchild.Name() == name && child.Name() != "completion" && below == "" {
				below = child.Name() + " " + name
			}
		}
	}
	if similar := spelling.Similar(name, names); similar != "" {
		return similar
	}
	return below
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

// Choice refuses a value of a flag that is none of the names, and suggests the most similar one.
func Choice(flag, value string, names ...string) error {
	if slices.Contains(names, value) {
		return nil
	}
	last := len(names) - 1
	wanted := fmt.Sprintf("want %s or %s", strings.Join(names[:last], ", "), names[last])
	if suggestion := spelling.DidYouMean(spelling.Similar(value, names)); suggestion != "" {
		return fmt.Errorf("%s %s%s %s", flag, value, suggestion, wanted)
	}
	return fmt.Errorf("%s %s: %s", flag, value, wanted)
}

// flagError replaces the error of a command line that cannot be parsed.
func flagError(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%s; see: %s --help", flagText(cmd, err), cmd.CommandPath())
}

func flagText(cmd *cobra.Command, err error) string {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(cmd, unknown)
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		placeholder, _ := pflag.UnquoteUsage(missing.GetFlag())
		return fmt.Sprintf("--%s needs a value: %s", missing.GetFlag().Name, placeholder)
	}
	if syntax, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return syntax.GetSpecifiedFlag() + " is no flag: want --NAME or --NAME=VALUE"
	}
	return ValueError(err).Error()
}

// unknownFlag suggests a flag in place of an unknown one. Of shorthands the whole group may be the name
// of a flag: -key is --key with a dash too few.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	name, group := unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames()
	if group == "" {
		return "unknown flag --" + name + flagSuggestion(spelling.Similar(name, names))
	}
	whole, _, _ := strings.Cut(group, "=")
	if len(group) == 1 {
		return "unknown flag -" + group
	}
	return "unknown flag -" + name + " in -" + whole + flagSuggestion(spelling.Similar(whole, names))
}

func flagSuggestion(name string) string {
	if name == "" {
		return ""
	}
	return spelling.DidYouMean("--" + name)
}

// ValueError returns an error about the value of a flag that names the accepted values, in place of one
// of the library's. It returns any other error as it is.
func ValueError(err error) error {
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	wanted := errors.Unwrap(wrong).Error()
	switch kind := wrong.GetFlag().Value.Type(); {
	case kind == "duration":
		wanted = "want a duration such as 30s or 5m"
	case kind == "bool":
		wanted = "want true or false"
	case strings.HasPrefix(kind, "float"):
		wanted = "want a number"
	case strings.HasPrefix(kind, "uint"):
		wanted = "want a whole number from 0"
	case strings.HasPrefix(kind, "int"):
		wanted = "want a whole number"
	}
	return fmt.Errorf("--%s %s: %s", wrong.GetFlag().Name, wrong.GetValue(), wanted)
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
				shell.Args = NoArguments
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
