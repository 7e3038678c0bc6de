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
	if cmd.Flags().Lookup("kubeconfig") != nil {
		usage.CompleteBy(cmd, "context", func() []string { return contextsOf(cmd, t) })
	}
}

// contextsOf returns the contexts of the kubeconfig that the command line names; none if it cannot be read, which the
// command itself reports.
func contextsOf(cmd *cobra.Command, t command.Terminal) []string {
	names, err := kubeconfig.Contexts(t.Kubeconfig(cmd.Flags().Lookup("kubeconfig").Value.String()))
	if err != nil {
		return nil
	}
	return names
}

// checkContext refuses the name of a context as the first image of --from-cluster: the current context would be
// used in place of the one that was meant.
func checkContext(cmd *cobra.Command, t command.Terminal, args []string) error {
	use := cmd.Flags().Lookup("from-cluster")
	if use == nil || use.Value.String() != "true" || cmd.Flags().Changed("context") || len(args) == 0 || !slices.Contains(contextsOf(cmd, t), args[0]) {
		return nil
	}
	return fmt.Errorf("%s is a context: write --from-cluster --context %s; if it is an image, name the context, too", args[0], args[0])
}
