// Package policies is the command quaymaster policy: the policies of a cluster or of folders, as a gateway
// compiles them.
package policies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/policystate"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/policy/catalog"
)

// New is the command with its subcommands.
func New(t command.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "List policies", Args: usage.NoArguments, SuggestFor: []string{"policies"},
		Long: `Show the policies of a cluster or of folders.

Exit status: that of the subcommand.`,
		Example: `  quaymaster policy list
  quaymaster policy list policies/
  quaymaster policy list --context production -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(listCommand(t))
	return cmd
}

// listFlags are the flags of policy list.
type listFlags struct {
	setup  setup.Flags
	format string
}

func listCommand(t command.Terminal) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list [FILE|DIR...]",
		Short: "List policies with their mode, readiness and rules",
		Long: `List the policies of a cluster, or of files and folders, as a gateway compiles
them: the mode, whether they are ready, their rules, and the kinds that they match.
A policy that cannot be compiled is listed with the reason; in a cluster the
gateway denies what it matches until it is corrected.

In a cluster, READY is the condition that the gateway wrote. Of files, it is
whether the policy compiles; its kinds and look-ups are those of Kubernetes and of
--resource.

With policies.nativePolicies, ENFORCED BY is the API server, the webhook, or both,
with the reason if a policy stays in the webhook. Denials by the API server are in
its audit log, and not in the decision log.

Exit status: 0 if every policy can be evaluated, 1 if one cannot, 3 if the cluster
cannot be read, 2 for wrong use.`,
		Example: `  quaymaster policy list
  quaymaster policy list policies/
  quaymaster policy list --context production -o json`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := output.CheckDocument(f.format); err != nil {
				return err
			}
			if f.setup.Timeout <= 0 {
				return fmt.Errorf("--timeout %s must be positive", f.setup.Timeout)
			}
			if len(names) > 0 && (cmd.Flags().Changed("context") || cmd.Flags().Changed("kubeconfig")) {
				return errors.New("give files or a cluster, not both")
			}
			end := output.Wait(t, "reading policies")
			entries, err := f.entries(cmd, t, names)
			end()
			if err != nil {
				return err
			}
			return write(t, entries, f.format)
		},
	}
	flags := cmd.Flags()
	output.RegisterDocument(cmd, "output", &f.format)
	flags.StringArrayVar(&f.setup.Resources, "resource", nil, "`file` of ConfigMaps, Secrets, Namespaces or definitions that policies of files look up; may be repeated")
	f.setup.Cluster.Register(cmd)
	flags.DurationVar(&f.setup.Timeout, "timeout", 30*time.Second, "time to read the cluster")
	flags.StringVar(&f.setup.Cluster.GatewayConfig, "gateway-config", "", "gateway configuration `file`, in place of the ConfigMap quaymaster/quaymaster")
	return cmd
}

func (f *listFlags) entries(cmd *cobra.Command, t command.Terminal, names []string) ([]policystate.Entry, error) {
	if len(names) > 0 {
		read, err := f.setup.CompileEach(t, names)
		if err != nil {
			return nil, err
		}
		return policystate.Describe(read, nil), nil
	}
	if err := f.setup.Cluster.Resolve(t); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.setup.Timeout)
	defer cancel()
	entries, notes, err := policystate.OfCluster(ctx, t, &f.setup)
	if err != nil {
		fmt.Fprintf(t.Err, "quaymaster: %v\n", err)
		return nil, command.Status(command.ExitError)
	}
	for _, note := range notes {
		t.Warn(note)
	}
	return entries, nil
}

// write prints the entries, and returns the exit status.
func write(t command.Terminal, entries []policystate.Entry, format string) error {
	if format != output.Text {
		if err := output.WriteDocument(t.Out, format, list{APIVersion: "quaymaster.dev/v1alpha1", Kind: "PolicyList", Items: entries}); err != nil {
			return err
		}
	} else {
		fmt.Fprint(t.Out, table(entries))
	}
	for _, e := range entries {
		if e.State == string(catalog.Broken) {
			return command.Status(command.ExitDenied)
		}
	}
	return nil
}
