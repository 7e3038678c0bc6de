package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway"
)

func serveCommand(t terminal) *cobra.Command {
	var path, roles string
	var dry time.Duration
	cmd := &cobra.Command{
		Use:   "serve [--config FILE] [--roles ROLES] [--dry-verdicts[=TIME]]",
		Short: "Run the gateway: admission for a Kubernetes API server",
		Long: `Serve answers the API server's admission requests: it pins images to the digests
that it proved, and denies those that policies do not let run. It runs in a
cluster, or without one on policies in a folder (standalone: true).

The configuration is a file of kind Configuration; docs/configuration.md lists
every setting. --roles says what this process does, in place of the
configuration's roles: some of admission, scan, report and background, with
commas between them; docs/roles.md says what each does and needs. On SIGTERM it
is not ready first, finishes what is at work, and leaves.

With --dry-verdicts it looks, before it calls itself ready, at everything that
runs, and writes to standard output which verdicts differ from those in the
reports (or in its decision log) of the version before. It becomes ready whatever
it finds, and when the time is up (docs/upgrade.md).

Of the environment it reads POD_NAME and POD_IP, by which replicas know one
another, OTEL_EXPORTER_OTLP_ENDPOINT where traces.endpoint is not set, and what
proxies, clouds and Go's runtime (GOMEMLIMIT) are used to.

Exit status: 0 after a drain, 2 for a configuration that cannot be used, 3 if
it could not serve.`,
		Example: `  quaymaster serve
  quaymaster serve --config gateway.yaml
  quaymaster serve --config gateway.yaml --roles scan,report,background`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			configuration, err := gateway.Load(path)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("roles") {
				list, err := gateway.ParseRoles(roles)
				if err != nil {
					return fmt.Errorf("--roles: %w", err)
				}
				if err := configuration.Assign(list); err != nil {
					return fmt.Errorf("--roles %s: %w", roles, err)
				}
			}
			configuration.Traces.Endpoint = cmp.Or(configuration.Traces.Endpoint, t.env("OTEL_EXPORTER_OTLP_ENDPOINT"))
			if dry < 0 || dry > gateway.MaxDryVerdicts {
				return fmt.Errorf("--dry-verdicts=%s: want up to %s", dry, gateway.MaxDryVerdicts)
			}
			return serve(cmd, configuration, t, dry)
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "configuration `file`; without it every setting has its default")
	cmd.Flags().DurationVar(&dry, "dry-verdicts", 0, "say first which verdicts on what runs differ from those before, within this `time`; 30s if none is given")
	cmd.Flags().Lookup("dry-verdicts").NoOptDefVal = usualDryVerdicts.String()
	cmd.Flags().StringVar(&roles, "roles", "", "`roles` of this process: some of admission,scan,report,background; the default is what the configuration says, else all")
	return cmd
}

// usualDryVerdicts bounds the wait of a start for its verdicts: a cluster that starts with no
// running workload has its gateway within a minute.
const usualDryVerdicts = 30 * time.Second

// collectAt is the growth of the heap in percent before a garbage collection, unless GOGC is
// set. The gateway's live heap is small compared with the garbage of requests: with Go's default
// of 100 it spends a fifth of its time on collecting a few megabytes. GOMEMLIMIT still bounds
// the heap.
const collectAt = 200

// serve runs the gateway. Its log is the default of package slog, so that the lines of libraries
// have the same format.
func serve(cmd *cobra.Command, configuration gateway.Configuration, t terminal, dry time.Duration) error {
	if t.env("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	var said *slog.Logger
	version, revision, _ := strings.Cut(strings.TrimPrefix(versionText(), "quaymaster "), " ")
	err := gateway.Run(cmd.Context(), configuration, gateway.Options{
		Log: t.err, Version: version, Revision: revision,
		Replica: cmp.Or(t.env("POD_NAME"), gateway.Replica()), Address: t.env("POD_IP"),
		DryVerdicts: dry, Verdicts: t.out,
		Logger: func(log *slog.Logger) {
			said = log
			slog.SetDefault(log) // and with it package log
			klog.SetSlogLogger(log)
		},
	})
	if _, unusable := errors.AsType[*gateway.ConfigurationError](err); unusable {
		return err
	}
	if err != nil {
		said.Error("the gateway ends", slog.String("error", err.Error()))
		return status(exitUnable)
	}
	return nil
}
