package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cluster/kubeconfig"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
)

// completeContexts completes --context of all commands with the contexts of the
// kubeconfig that the command line names.
func completeContexts(cmd *cobra.Command, t command.Terminal) {
	for _, child := range cmd.Commands() {
		completeContexts(child, t)
	}
	flag := cmd.Flags().Lookup("kubeconfig")
	if flag == nil {
		return
	}
	usage.CompleteBy(cmd, "context", func() []string {
		names, err := kubeconfig.Contexts(t.Kubeconfig(flag.Value.String()))
		if err != nil {
			return nil // the command itself reports it
		}
		return names
	})
}

// checkContext refuses the name of a context as the first image of --from-cluster: the current context would be
// used in place of the one that was meant.
func checkContext(cmd *cobra.Command, t command.Terminal, args []string) error {
	flags := cmd.Flags()
	if use, err := flags.GetBool("from-cluster"); err != nil || !use || flags.Changed("context") || len(args) == 0 {
		return nil //nolint:nilerr // a command without the flag
	}
	names, err := kubeconfig.Contexts(t.Kubeconfig(flags.Lookup("kubeconfig").Value.String()))
	if err != nil || !slices.Contains(names, args[0]) {
		return nil //nolint:nilerr // the command itself reports it
	}
	return fmt.Errorf("%s is a context: write --from-cluster --context %s; if it is an image, name the context, too", args[0], args[0])
}
