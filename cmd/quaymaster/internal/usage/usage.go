// Package usage adapts the usage texts and errors of cobra 1.10: descriptions of flags wrap at 80
// columns, switches have no value, and errors about arguments suggest a fix.
package usage

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Adapt changes the usage texts of a command and of its subcommands.
func Adapt(root *cobra.Command) {
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "FlagUsages", "FlagUsagesWrapped 80"))
	root.SetUsageFunc(withPlainSwitches(root.UsageFunc()))
}

// plainSwitch is a boolean flag in a usage text. pflag writes [=true|false] after the name of a flag
// of type bool, which makes the column wider than the descriptions need.
type plainSwitch struct{ pflag.Value }

// Type implements pflag.Value.
func (plainSwitch) Type() string { return "boolfunc" }

// withPlainSwitches returns a usage function that describes boolean flags by their names alone.
func withPlainSwitches(usage func(*cobra.Command) error) func(*cobra.Command) error {
	return func(cmd *cobra.Command) error {
		values := map[*pflag.Flag]pflag.Value{}
		plain := func(f *pflag.Flag) {
			if f.Value.Type() == "bool" {
				values[f], f.Value = f.Value, plainSwitch{f.Value}
			}
		}
		cmd.LocalFlags().VisitAll(plain)
		cmd.InheritedFlags().VisitAll(plain)
		err := usage(cmd)
		for f, value := range values {
			f.Value = value
		}
		return err
	}
}
