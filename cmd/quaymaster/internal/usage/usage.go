// Package usage has the help texts and usage errors of the commands, in place of those of cobra
// 1.10: flags in groups, text as wide as the terminal, and errors about arguments that suggest a fix.
package usage

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The width of help texts, in columns: of what is no terminal, and the bounds for terminals, since
// a narrower text has no room for names of flags and a wider one is hard to read.
const (
	usualWidth = 80
	minWidth   = 60
	maxWidth   = 120
)

// textColumn is the column of the descriptions of flags. Longer names have them on the next line.
const textColumn = 30

// Adapt changes the help texts of a command and of its subcommands. Columns is the width of the
// terminal; 0 if there is none.
func Adapt(root *cobra.Command, columns int) {
	width := usualWidth
	if columns > 0 {
		width = min(max(columns, minWidth), maxWidth)
	}
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), usageText(cmd, width))
		return err
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		_, _ = io.WriteString(cmd.OutOrStdout(), Description(cmd, width)+"\n"+usageText(cmd, width)) // there is no other place to report it
	})
}

// Description is the description of a command at a width in columns. Lines that begin with a blank
// stay as they are.
func Description(cmd *cobra.Command, width int) string {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		if strings.HasPrefix(paragraph, " ") {
			b.WriteString(paragraph + "\n")
			continue
		}
		b.WriteString(strings.Join(fill(paragraph, width), "\n") + "\n")
	}
	return b.String()
}

// usageText is what follows the description.
func usageText(cmd *cobra.Command, width int) string {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s [command]\n", cmd.CommandPath())
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAliases:\n  %s\n", cmd.NameAndAliases())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", asNamed(cmd, cmd.Example))
	}
	writeCommands(&b, cmd)
	writeFlags(&b, cmd, width)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUse \"%s [command] --help\" for more information about a command.\n", cmd.CommandPath())
	}
	return b.String()
}

// asNamed returns examples with the name under which the program was started.
func asNamed(cmd *cobra.Command, examples string) string {
	root := cmd.Root()
	return strings.ReplaceAll(examples, root.Name()+" ", root.DisplayName()+" ")
}

// writeCommands writes the subcommands by their groups; those without a group come last.
func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	titles := append([]*cobra.Group{}, cmd.Groups()...)
	last := "Commands"
	if len(titles) > 0 {
		last = "Other commands"
	}
	for _, group := range append(titles, &cobra.Group{Title: last}) {
		fmt.Fprintf(b, "\n%s:\n", group.Title)
		for _, child := range cmd.Commands() {
			if child.GroupID == group.ID && (child.IsAvailableCommand() || child.Name() == "help") {
				fmt.Fprintf(b, "  %-*s %s\n", child.NamePadding(), child.Name(), child.Short)
			}
		}
	}
}

// fewFlags is the number of flags that need no groups.
const fewFlags = 6

// writeFlags writes the flags by their groups.
func writeFlags(b *strings.Builder, cmd *cobra.Command, width int) {
	_, path, _ := strings.Cut(cmd.CommandPath()[len(cmd.Root().DisplayName()):], " ")
	found := map[group][]*pflag.Flag{}
	count := 0
	visit := func(f *pflag.Flag) {
		if !f.Hidden {
			g := groupOf(path, f.Name)
			found[g], count = append(found[g], f), count+1
		}
	}
	cmd.LocalFlags().VisitAll(visit)
	cmd.InheritedFlags().VisitAll(visit)
	if count <= fewFlags {
		b.WriteString("\nFlags:\n")
		for _, g := range groups() {
			writeGroup(b, found[g], width)
		}
		return
	}
	for _, g := range groups() {
		if len(found[g]) > 0 {
			fmt.Fprintf(b, "\n%s:\n", g)
			writeGroup(b, found[g], width)
		}
	}
}

func writeGroup(b *strings.Builder, flags []*pflag.Flag, width int) {
	for _, f := range flags {
		name, text := spelled(f)
		lines := fill(text, width-textColumn)
		if len(name) > textColumn-2 {
			fmt.Fprintf(b, "%s\n", name)
			name = ""
		}
		for _, line := range lines {
			fmt.Fprintf(b, "%-*s%s\n", textColumn, name, line)
			name = ""
		}
	}
}

// spelled returns a flag with its value, and its description with its default.
func spelled(f *pflag.Flag) (name, text string) {
	value, text := pflag.UnquoteUsage(f)
	name = "      --" + f.Name
	if f.Shorthand != "" {
		name = "  -" + f.Shorthand + ", --" + f.Name
	}
	switch {
	case f.Value.Type() == "bool":
		value = ""
	case value == "strings":
		value = "string"
	}
	switch {
	case f.NoOptDefVal != "" && value != "":
		name += "[=" + value + "]"
	case value != "":
		name += " " + value
	}
	if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" {
		shown := f.DefValue
		if f.Value.Type() == "string" {
			shown = fmt.Sprintf("%q", shown)
		}
		text += " (default " + shown + ")"
	}
	return name, text
}

// fill breaks a text at blanks into lines of at most width columns. A longer word has its own line.
func fill(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}
