package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway"
)

func serveCommand(t terminal) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "serve [--config FILE]",
		Short: "Run the gateway: admission for a Kubernetes API server",
		Long: `Serve answers the API server's admission requests: it pins images to the digests
that it proved, and denies those that policies do not let run. It runs in a
cluster, or without one on policies in a folder (standalone: true).

The configuration is a file of kind Configuration; docs/configuration.md lists
every setting. On SIGTERM it is not ready first, finishes what is at work, and
leaves.

Exit status: 0 after a drain, 2 for a configuration that cannot be used, 3 if
it could not serve.`,
		Example: `  quaymaster serve
  quaymaster serve --config gateway.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			configuration, err := gateway.Load(path)
			if err != nil {
				return err
			}
			err = gateway.Run(cmd.Context(), configuration, gateway.Options{
				Log: t.err, Version: versionText(), Replica: cmp.Or(t.env("POD_NAME"), gateway.Replica()), Address: t.env("POD_IP"),
			})
			if err != nil && !errors.Is(err, cmd.Context().Err()) {
				fmt.Fprintf(t.err, "quaymaster: serve: %v\n", err)
				return status(exitUnable)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "configuration `file`; without it every setting has its default")
	return cmd
}
