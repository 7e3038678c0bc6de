package usage

import "github.com/spf13/cobra"

// Complete completes the values of a flag with names, and not with files. The flag must be registered.
func Complete(cmd *cobra.Command, flag string, names ...string) {
	completeWith(cmd, flag, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// Documents are the extensions of policies and manifests.
func Documents() []string { return []string{"yaml", "yml", "json"} }

// CompleteFiles completes the values of a flag with folders and with files of these extensions.
func CompleteFiles(cmd *cobra.Command, flag string, extensions ...string) {
	completeWith(cmd, flag, cobra.FixedCompletions(extensions, cobra.ShellCompDirectiveFilterFileExt))
}

// CompleteBy completes the values of a flag with the names that a function returns, and not with files.
func CompleteBy(cmd *cobra.Command, flag string, names func() []string) {
	completeWith(cmd, flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return names(), cobra.ShellCompDirectiveNoFileComp
	})
}

func completeWith(cmd *cobra.Command, flag string, function cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, function); err != nil {
		panic(err) // no such flag: every use of the program would fail
	}
}
