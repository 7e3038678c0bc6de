// Package status is the commands quaymaster status and quaymaster doctor: the state of a gateway in its
// cluster, and the fix of each finding about it.
package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/diagnosis"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/health"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/policystate"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/report"
)

// apiVersion is that of the JSON output.
const apiVersion = "quaymaster.dev/v1alpha1"

const (
	// qps and burst bound the requests to the API server: most are reviews of permissions.
	qps, burst = 100, 200
	// policiesShare is the part of --timeout after which policies are unknown: a kind that may not be
	// listed is retried, and must not use the time of the other parts.
	policiesShare = 2
)

// flags name the cluster and the output.
type flags struct {
	setup  setup.Flags
	format string
}

func (f *flags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	output.RegisterDocument(cmd, "output", &f.format)
	flags.StringVarP(&f.setup.Cluster.Namespace, "namespace", "n", "quaymaster", "`namespace` of the gateway")
	f.setup.Cluster.Register(cmd)
	flags.DurationVar(&f.setup.Timeout, "timeout", 30*time.Second, "time to read the cluster")
}

func (f *flags) check() error {
	if err := output.CheckDocument(f.format); err != nil {
		return err
	}
	if f.setup.Timeout <= 0 {
		return fmt.Errorf("--timeout %s must be positive", f.setup.Timeout)
	}
	if f.setup.Cluster.Namespace == "" {
		return errors.New("--namespace is empty: name the namespace of the gateway")
	}
	return nil
}

// New is the command status.
func New(t command.Terminal) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "status", Short: "Show the state of a gateway", Args: usage.NoArguments,
		Long: `Status shows the gateway of a cluster on one page: its replicas and their version,
the leader, the certificate, the webhook configurations, the policies by kind, the
age of the trust material, the registries, the permissions of the gateway, and the
clocks. Each line has the result of its check: ok, warning, problem, or unknown for
a fact that could not be read, with the reason.

The metrics of the replicas are read through the API server; see docs/troubleshooting.md
for the permissions of your user.

Exit status: 0 if the state was read, whatever it is, 3 if the API server cannot be
read, 2 for wrong use. quaymaster doctor has an exit status for problems.`,
		Example: `  quaymaster status
  quaymaster status --context production -n image-policy
  quaymaster status -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := f.read(cmd.Context(), t)
			if err != nil {
				return err
			}
			if state.failure != nil {
				fmt.Fprintf(t.Err, "quaymaster: %s\n", report.Escape(state.failure.Error()))
				return command.Status(command.ExitError)
			}
			return f.write(t, statusDocument(state), statusText(state))
		},
	}
	f.register(cmd)
	return cmd
}

// NewDoctor is the command doctor.
func NewDoctor(t command.Terminal) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check a gateway and suggest fixes", Args: usage.NoArguments,
		Long: `Doctor checks the gateway of a cluster, and shows the fix of each finding: replicas
that are not ready, no leader, a certificate that expires, webhook configurations that
are not in step with the policies, policies that are not ready, old trust material,
registries that do not answer, missing permissions, and clocks that differ.

A result is ok, warning, problem, or unknown: a fact could not be read, which is never
ok. The checks change nothing.

Exit status: 0 without a problem, 1 with one, 3 if there is none and something could
not be checked, 2 for wrong use. Warnings do not count.`,
		Example: `  quaymaster doctor
  quaymaster doctor --context production -n image-policy
  quaymaster doctor -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := f.read(cmd.Context(), t)
			if err != nil {
				return err
			}
			if err := f.write(t, doctorDocument(state), doctorText(state)); err != nil {
				return err
			}
			switch counts := diagnosis.Count(state.findings); {
			case counts.Problems > 0:
				return command.Status(command.ExitDenied)
			case counts.Unknown > 0:
				return command.Status(command.ExitError)
			}
			return nil
		},
	}
	f.register(cmd)
	return cmd
}

// state is the state of a gateway with the findings about it.
type state struct {
	namespace string
	value     *health.State // nil with a failure
	findings  []diagnosis.Finding
	failure   error // of the API server
	program   string
}

// apiServer is the check that a kubeconfig reaches an API server.
const apiServer = "api-server"

// read reads the state. An error is one of use; that of the API server is in the state.
func (f *flags) read(ctx context.Context, t command.Terminal) (*state, error) {
	defer output.Wait(t, "reading the cluster")()
	if err := f.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.setup.Timeout)
	defer cancel()
	s := &state{namespace: f.setup.Cluster.Namespace, program: t.Name()}
	client, err := cluster.NewClient(cluster.ClientOptions{
		Kubeconfig: t.Kubeconfig(f.setup.Cluster.Kubeconfig), Context: f.setup.Cluster.Context, Version: t.Version(), QPS: qps, Burst: burst,
	})
	if err == nil {
		reader := health.Reader{Client: client, Namespace: s.namespace, Now: time.Now,
			Policies: func(ctx context.Context) ([]health.Policy, error) { return f.policies(ctx, t) }}
		s.value, err = reader.Read(ctx)
	}
	if err != nil {
		s.failure = err
		s.findings = []diagnosis.Finding{{
			Check: apiServer, Result: diagnosis.Unknown, Message: err.Error() + "; nothing else was checked",
			Fix: "check --kubeconfig and --context, and the network: kubectl version",
		}}
		return s, nil
	}
	s.findings = diagnosis.Of(s.value)
	return s, nil
}

// policies reads the policies as quaymaster policy list does, without those that are not the gateway's, and
// without exceptions, which have no condition.
func (f *flags) policies(ctx context.Context, t command.Terminal) ([]health.Policy, error) {
	ctx, cancel := context.WithTimeout(ctx, f.setup.Timeout/policiesShare)
	defer cancel()
	entries, _, err := policystate.OfCluster(ctx, t, &f.setup)
	if err != nil {
		return nil, err
	}
	var list []health.Policy
	for _, e := range entries {
		kind, name, _ := strings.Cut(e.ID, "/")
		if e.State == string(catalog.NotOurs) || kind == "PolicyException" {
			continue
		}
		list = append(list, health.Policy{Kind: kind, Name: name, Ready: e.Ready, Reason: e.Reason, Message: e.Message, EnforcedBy: e.EnforcedBy})
	}
	return list, nil
}

// write writes a document or its text.
func (f *flags) write(t command.Terminal, document any, text string) error {
	if f.format != output.Text {
		return output.WriteDocument(t.Out, f.format, document)
	}
	if _, err := fmt.Fprint(t.Out, text); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	return nil
}
