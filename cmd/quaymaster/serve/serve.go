// Package serve is the command quaymaster serve, which runs the gateway.
package serve

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

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/gateway/audit"
)

// New is the command.
func New(t command.Terminal) *cobra.Command {
	var path, roles string
	var dry time.Duration
	cmd := &cobra.Command{
		Use:   "serve [--config FILE] [--roles ROLES] [--dry-verdicts[=TIME]]",
		Short: "Run the admission gateway",
		Long: `Serve handles the API server's admission requests: it pins images to verified
digests, and denies images that violate policies. It runs in a cluster, or without
one with policies in a folder (standalone: true).

The configuration is a file of kind Configuration; docs/configuration.md lists
every setting. --roles replaces the configuration's roles of this process:
admission, scan, report and background, separated by commas; docs/roles.md
describes each. On SIGTERM the process becomes unready, finishes the current
requests, and exits.

With --dry-verdicts it evaluates all running workloads before it becomes ready, and
writes to standard output the verdicts that differ from the reports (or the
decision log) of the previous version. It becomes ready regardless of the result,
and at the latest when the time is up (docs/upgrade.md).

It reads the environment variables POD_NAME and POD_IP, which identify replicas,
OTEL_EXPORTER_OTLP_ENDPOINT if traces.endpoint is not set, and the usual ones of
proxies, clouds and Go's runtime (GOMEMLIMIT).

Exit status: 0 after a drain, 2 for a configuration that cannot be used, 3 if
it could not serve.`,
		Example: `  quaymaster serve
  quaymaster serve --config gateway.yaml
  quaymaster serve --config gateway.yaml --roles scan,report,background`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			configuration, err := config.Load(path)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("roles") {
				list, err := config.ParseRoles(roles)
				if err != nil {
					return fmt.Errorf("--roles: %w", err)
				}
				if err := configuration.Assign(list); err != nil {
					return fmt.Errorf("--roles %s: %w", roles, err)
				}
			}
			configuration.Traces.Endpoint = cmp.Or(configuration.Traces.Endpoint, t.Env("OTEL_EXPORTER_OTLP_ENDPOINT"))
			if dry < 0 || dry > audit.MaxDryVerdicts {
				return fmt.Errorf("--dry-verdicts=%s: want up to %s", dry, audit.MaxDryVerdicts)
			}
			return serve(cmd, configuration, t, dry)
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "configuration `file`; without it every setting has its default")
	cmd.Flags().DurationVar(&dry, "dry-verdicts", 0, "first report changed verdicts of running workloads, within this `time` (30s if omitted)")
	cmd.Flags().Lookup("dry-verdicts").NoOptDefVal = usualDryVerdicts.String()
	cmd.Flags().StringVar(&roles, "roles", "", "`roles` of this process: admission,scan,report,background,cleanup, or native alone (default: the configuration's, else all but native)")
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
func serve(cmd *cobra.Command, configuration config.Configuration, t command.Terminal, dry time.Duration) error {
	if t.Env("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	var said *slog.Logger
	version, revision, _ := strings.Cut(t.Version(), " ")
	err := gateway.Run(cmd.Context(), configuration, gateway.Options{
		Log: t.Err, Version: version, Revision: revision,
		Replica: cmp.Or(t.Env("POD_NAME"), gateway.Replica()), Address: t.Env("POD_IP"),
		DryVerdicts: dry, Verdicts: t.Out,
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
		return command.Status(command.ExitError)
	}
	return nil
}
