// Package scan is the command quaymaster scan: running workloads and manifests as if admitted now,
// and comparisons with the reports of another engine.
package scan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/listing"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/manifest"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/scan/internal/deletions"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/scan/findings"
	"github.com/quaymaster/quaymaster/workload"
)

// scanFlags select the objects and the policies.
type scanFlags struct {
	files, excluded []string
	objects         []workload.Object // of the files
	scopes          evaluation.Scopes // of objects
	namespace       string
	outputs         output.Flags
	all             bool
	qps             float32
	perHost         int
	setup           setup.Flags
	authorities     authority.Flags
	signer          signerFlags
	compare         compareFlags
}

// scanPageTimeout is the time for one page of objects; all of their images may be uncached.
const scanPageTimeout = 10 * time.Minute

// scanLong is the command's description.
const scanLong = `Scan evaluates the objects of a cluster, or of files, as if each were admitted
now, and reports which would be denied and why. It changes nothing.

Without --policy, the policies are the cluster's own, with its exceptions,
overrides, mirrors, ConfigMaps and keys, as its gateway reads them. With --policy
(or --key and similar flags) only those are evaluated, to find the running
workloads that a new policy would deny before it is enforced.

The objects that the next runs of policies which delete (CleanupPolicy,
DeletingPolicy) would delete are listed, with the limits of a run. See docs/cleanup.md.

Policies that read the requesting user, and those with background: false, are
skipped and listed at the end. Private images require the caller's own registry
credentials.

--signer X lists the workloads that depend on a key (its fingerprint or its file),
an identity, an image digest or a policy (policy:KIND/NAME). It reads them from a
gateway (--gateway), its decision log (--decision-log), or the reports in the
cluster (--reports), and verifies nothing. See docs/scan.md.

--compare verifies nothing either: it compares the gateway's reports in the cluster
and decision logs (--decision-log) with Kyverno's reports and events and the API
server's audit log (--audit-log), and shows where the verdicts differ. With it, -f
names files of reports and events in place of a cluster. The exit status is 0 if the
gateway would deny nothing new, 1 if it would, 3 if something could not be verified or
read. See docs/compare.md.

Outputs are those of verify except vsa: -o FORMAT writes to standard output,
-o FORMAT=PATH to a file, also if the scan fails. text and json list the findings of
workloads, the others every object.

Exit status: 0 if everything would be admitted (a failure under audit is reported),
1 if an object would be denied, 3 if one could not be verified, 2 for wrong use.`

// New is the command.
func New(t command.Terminal) *cobra.Command {
	f := scanFlags{outputs: Outputs()}
	cmd := &cobra.Command{
		Use:   "scan [-f FILE...] [--policy NEW...]",
		Short: "Audit running workloads",
		Long:  scanLong,
		Example: `  quaymaster scan
  quaymaster scan --context production --policy new-policy.yaml
  helm template . | quaymaster scan -f - --policy policies/
  quaymaster scan --signer cosign.pub --gateway http://localhost:8001
  quaymaster scan --compare --audit-log audit.log`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.compare.compare {
				return f.runCompare(cmd.Context(), t)
			}
			if f.compare.given() {
				return errors.New("--audit-log and --metrics are for --compare")
			}
			if f.signer.signer != "" {
				return f.runSigner(cmd.Context(), t)
			}
			return f.run(cmd, t)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "manifest `file`, folder, or - for standard input, in place of a cluster; may be repeated")
	flags.StringVarP(&f.namespace, "namespace", "n", "default", "`namespace` of manifests without one")
	flags.StringArrayVar(&f.excluded, "exclude-namespace", nil, "`pattern` of namespaces to skip; may be repeated")
	f.outputs.RegisterFormats(cmd)
	flags.BoolVar(&f.all, "all", false, "show all findings of workloads, not only the first 50")
	flags.Float32Var(&f.qps, "qps", 20, "maximum `requests` per second to the API server")
	flags.IntVar(&f.perHost, "registry-requests", 16, "maximum `number` of images to verify concurrently")
	f.setup.RegisterOnline(cmd)
	timeout := flags.Lookup("timeout")
	timeout.Usage, timeout.DefValue = "time for one page of 250 objects", scanPageTimeout.String()
	f.setup.Timeout = scanPageTimeout
	f.setup.Cluster.Register(cmd)
	flags.StringVar(&f.setup.Cluster.GatewayConfig, "gateway-config", "", "gateway configuration `file`, in place of the ConfigMap quaymaster/quaymaster")
	f.authorities.Register(cmd)
	f.signer.register(cmd)
	f.compare.register(cmd)
	return cmd
}

func (f *scanFlags) check(cmd *cobra.Command) error {
	switch {
	case command.Inputs(f.files, f.authorities.Keys) > 1:
		return errors.New("standard input can be read once: give - to one of -f and --key, once")
	case f.qps <= 0:
		return fmt.Errorf("--qps %g must be positive", f.qps)
	case f.perHost < 1:
		return fmt.Errorf("--registry-requests %d must be positive", f.perHost)
	case f.setup.Timeout <= 0:
		return fmt.Errorf("--timeout %s must be positive", f.setup.Timeout)
	case len(f.files) == 0 && cmd.Flags().Changed("namespace"):
		return errors.New("--namespace is for manifests (-f) without a namespace: a cluster is scanned in all namespaces except those of --exclude-namespace PATTERN")
	case f.signer.gateway != "" || f.signer.tokenFile != "" || len(f.signer.decisionLogs) > 0 || f.signer.reports:
		return errors.New("--gateway, --token-file, --decision-log and --reports are for --signer and --compare")
	}
	return f.authorities.Check(cmd)
}

func (f *scanFlags) run(cmd *cobra.Command, t command.Terminal) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	files, err := f.outputs.Open(t)
	if err != nil {
		return err
	}
	found, err := f.look(cmd.Context(), t)
	if err != nil {
		found = &scanned{Verdicts: output.Verdicts{Failure: err}}
	}
	found.all = f.all
	err = writeAll(t, files, found, found.Failure)
	if err != nil {
		return err
	}
	return found.exit()
}

// roundError is the error of a failed round.
type roundError struct{ error }

// writeAll writes a result, and prints the error of a failed round.
func writeAll(t command.Terminal, files output.Outputs, found output.Result, failure error) error {
	err := files.Write(t, found, failure)
	if failed, ok := errors.AsType[roundError](err); ok {
		fmt.Fprintf(t.Err, "quaymaster: %v\n", failed)
		return command.Status(command.ExitError)
	}
	return err
}

// look runs the round.
func (f *scanFlags) look(ctx context.Context, t command.Terminal) (*scanned, error) {
	from, err := f.foundation(ctx, t)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	counted := findings.New(f.outputs.HasOther(output.Text, output.JSON))
	told := &scanProgress{line: output.NewProgress(t), t: t}
	scanner, view, o, err := f.scanner(t, from, counted, told)
	if err != nil {
		return nil, err
	}
	end := told.line.Wait("scanning")
	summary, err := scanner.Round(ctx)
	end()
	if ctx.Err() != nil {
		fmt.Fprintln(t.Err, "quaymaster: interrupted; the remaining objects were not evaluated")
		return nil, command.Status(command.ExitError)
	}
	if err != nil {
		return nil, roundError{err}
	}
	left, err := view.LeftOut(ctx)
	if err != nil {
		return nil, err
	}
	found := newScanned(summary, counted, left)
	var refused []scan.RefusedKind
	found.deletions, refused, err = deletions.List(ctx, deletions.Options{
		Policies: from.Set, Limits: limitsOf(from), Cluster: o.Cluster, Namespaces: o.Namespaces, Excluded: f.excluded,
	})
	if err != nil {
		return nil, roundError{err}
	}
	found.refuse(refused)
	return found, nil
}

// whatIf reports whether only policies of the command line are evaluated.
func (f *scanFlags) whatIf() bool { return len(f.setup.Policies) > 0 || f.authorities.Given() }

// foundation reads the policies and their look-ups.
func (f *scanFlags) foundation(ctx context.Context, t command.Terminal) (*setup.Inputs, error) {
	if len(f.files) > 0 {
		if f.setup.Cluster != (setup.ClusterFlags{}) {
			return nil, errors.New("--kubeconfig, --context and --gateway-config are about a cluster, and -f is in place of one")
		}
		if err := f.readFiles(t); err != nil {
			return nil, err
		}
		return f.setup.Read(ctx, t, &f.authorities, time.Now)
	}
	if err := f.setup.Cluster.Resolve(t); err != nil {
		return nil, err
	}
	f.setup.Cluster.Use = true
	reading := f.setup
	reading.Timeout = 2 * time.Minute
	from, err := reading.Read(ctx, t, &f.authorities, time.Now)
	if err != nil {
		return nil, err
	}
	if len(f.setup.Policies) > 0 || !f.whatIf() {
		err = f.addNative(ctx, t, from)
	}
	if err == nil && f.whatIf() {
		from.Set, err = onlyNew(from.Set)
	}
	if err != nil {
		from.Close()
	}
	return from, err
}

// onlyNew removes the policies that are in force.
func onlyNew(active *set.Set) (*set.Set, error) {
	own := slices.DeleteFunc(slices.Clone(active.Policies()), func(p *policy.Policy) bool { return strings.HasPrefix(p.Source, ofCluster) })
	return set.Join(own, active.Exceptions(), active.Overrides())
}

// scanner wires the scan.
func (f *scanFlags) scanner(
	t command.Terminal, from *setup.Inputs, tally report.Sink, told scan.Observer,
) (made *scan.Scanner, view *scan.View, o scan.Options, err error) {
	sources, err := f.setup.Registries(t, from.Known, nil)
	if err != nil {
		return nil, nil, o, err
	}
	prover, err := engine.NewProver(from.Store.Snapshot())
	if err != nil {
		return nil, nil, o, err
	}
	options, err := f.setup.Redirects(from)
	if err != nil {
		return nil, nil, o, err
	}
	view = scan.NewView(gate.Fixed{Policies: from.Set, Prover: prover, Mirrors: from.Mirrors})
	options = append(options, gate.WithTimeout(f.setup.Timeout), gate.WithConcurrency(f.perHost), gate.WithAges(gate.Ages{Tag: scanTagAge, None: scanTagAge}))
	from.Images.Use(gate.Config{Registries: sources, State: view})
	decider, err := gate.New(gate.Config{Registries: sources, State: view}, options...)
	if err != nil {
		return nil, nil, o, err
	}
	scopes := f.scopes
	scopes.Labels = func(namespace string) map[string]string {
		labels, _ := from.Known.Labels(namespace) // nil for unknown ones
		return labels
	}
	o = scan.Options{
		Decider: scoped{scopes, decider}, State: view, Observer: told, Sinks: []report.Sink{tally}, Excluded: f.excluded,
		Namespaces: scanNamespaces{from},
	}
	o.Cluster, err = f.cluster(t, from)
	if err != nil {
		return nil, nil, o, err
	}
	made, err = scan.New(o)
	return made, view, o, err
}

// scoped evaluates objects by their scopes.
type scoped struct {
	scopes  evaluation.Scopes
	decider evaluation.Decider
}

// DecideAll implements scan.Decider.
func (s scoped) DecideAll(ctx context.Context, requests []gate.Request, progress func(done, total int)) []gate.Outcome {
	return s.scopes.DecideAll(ctx, s.decider, requests, progress)
}

// scanTagAge is how long a scan caches the digest of a tag, and the absence of signatures, so
// that it requests each once.
const scanTagAge = time.Hour

// cluster is the source of objects: files or an API server.
func (f *scanFlags) cluster(t command.Terminal, from *setup.Inputs) (scan.Cluster, error) {
	if len(f.files) == 0 {
		client, err := f.client(t)
		if err != nil {
			return nil, err
		}
		return listing.New(client)
	}
	if err := addNamespaces(from.Known, f.objects); err != nil {
		return nil, err
	}
	definitions, err := f.setup.Definitions()
	if err != nil {
		return nil, err
	}
	return scan.NewFiles(f.objects, slices.Concat(definitions, constraint.Known())), nil
}

// readFiles reads the objects of -f, and the kinds that definitions among them define.
func (f *scanFlags) readFiles(t command.Terminal) error {
	definitions, err := f.setup.Definitions()
	if err != nil {
		return err
	}
	input := manifest.Flags{Files: f.files, Namespace: f.namespace, Definitions: definitions}
	requests, err := input.Requests(t, nil)
	if err != nil {
		return err
	}
	f.setup.Evaluated, f.scopes = input.Evaluated, input.Scopes(t)
	for i := range requests {
		f.objects = append(f.objects, requests[i].Object)
	}
	return nil
}

// addNamespaces adds the namespaces among evaluated objects to the known ones, which they do not replace.
func addNamespaces(known *engine.Resources, objects []workload.Object) error {
	found := engine.NewResources()
	namespaces := slices.DeleteFunc(slices.Clone(objects), func(o workload.Object) bool { return o.Kind() != "Namespace" || o.Group() != "" })
	for _, object := range namespaces {
		if err := found.Add(object); err != nil {
			return fmt.Errorf("%s: %w", object.Source(), err)
		}
		labels, _ := found.Labels(object.Name())
		if before, is := known.Labels(object.Name()); is && !maps.Equal(before, labels) {
			return fmt.Errorf("%s: %s has other labels than in the files of --resource or the policies: leave one of them out", object.Source(), object)
		}
	}
	for _, object := range namespaces {
		if err := known.Add(object); err != nil {
			return fmt.Errorf("%s: %w", object.Source(), err)
		}
	}
	return nil
}

// client is the client of the cluster that the flags name.
func (f *scanFlags) client(t command.Terminal) (*cluster.Client, error) {
	if err := f.setup.Cluster.Resolve(t); err != nil {
		return nil, err
	}
	return cluster.NewClient(cluster.ClientOptions{
		Kubeconfig: t.Kubeconfig(f.setup.Cluster.Kubeconfig), Context: f.setup.Cluster.Context,
		QPS: float64(f.qps), Burst: max(1, int(f.qps)), Version: t.Version(),
	})
}
