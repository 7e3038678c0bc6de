package main

import (
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
