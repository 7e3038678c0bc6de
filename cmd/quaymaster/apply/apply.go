// Package apply is the command quaymaster apply: policies against manifests or the objects of a
// cluster.
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/preview"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/deletion"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/policy/suite/trial"
	"github.com/quaymaster/quaymaster/workload"
)

// applyFlags are the command's policies, objects and options.
type applyFlags struct {
	resources, exceptions, set []string
	values, user, namespace    string
	cluster                    bool
	output                     applyOutput
	setup                      setup.Flags
}

// New is the command.
func New(t command.Terminal) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply POLICY... -r RESOURCE...",
		Short: "Apply policies to manifests or live objects",
		Long: `Apply evaluates policies against objects as at admission: mutation rules, then
images, then validation rules. It reports the result of each rule for each object,
the objects that generate rules would create, and those that the next runs of
policies which delete would delete. It changes nothing.

Policies and objects are files, folders, or - for standard input. Policies can
look up the objects of the resource files, and ConfigMaps, Secrets, Namespaces and
GlobalContextEntries in the policy files. With --cluster, the objects are those of
the kinds that the policies match.
See docs/apply.md.

Exit status: 0 if every object would be admitted (failures and errors of policies
under audit are reported and do not count), 1 if one would be denied, 3 if an
enforced rule or one that deletes could not be evaluated, 2 for wrong use, or if a policy could not be
read: the results of the others are reported, and no objects are written.
--warn-exit-code replaces 0 if there are warnings, or failures or errors under
audit.`,
		Example: `  quaymaster apply policies/ -r deploy/
  kustomize build . | quaymaster apply policies/ -r - --mutated - > out.yaml
  quaymaster apply policies/ --cluster -n shop`,
		Args: usage.Arguments("a policy", 0),
		RunE: func(cmd *cobra.Command, policies []string) error { return f.run(cmd, t, policies) },
	}
	flags := cmd.Flags()
	flags.SetNormalizeFunc(singular)
	flags.StringArrayVarP(&f.resources, "resource", "r", nil, "manifest `file`, folder, or - for standard input; may be repeated")
	flags.BoolVarP(&f.cluster, "cluster", "c", false, "evaluate the objects of a cluster")
	f.setup.Cluster.RegisterFor(cmd, "--cluster")
	flags.StringArrayVarP(&f.exceptions, "exception", "e", nil, "`file` or folder of PolicyExceptions; may be repeated")
	flags.StringVarP(&f.values, "values-file", "f", "", "`file` of values that replace look-ups and fields of the request")
	flags.StringArrayVarP(&f.set, "set", "s", nil, "value for every rule and object, as `key=value`; may be repeated")
	flags.StringVarP(&f.user, "userinfo", "u", "", "`file` with the requesting user; without it, rules match every user")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "`namespace` of objects without one (default is default), or to list with --cluster")
	f.output.register(cmd)
	flags.StringVar(&f.setup.TrustedRoot, "trusted-root", "", "trusted_root.json `file` (default: the public-good instance's)")
	flags.StringArrayVar(&f.setup.Layouts, "oci-layout", nil, "OCI layout `folder` or archive, in place of registries, or REPOSITORY=PATH; may be repeated")
	flags.BoolVar(&f.setup.Offline, "offline", false, "open no connection; rules that need a registry fail with an error")
	flags.StringVar(&f.setup.RegistryCA, "registry-ca", "", "PEM `file` of certificate authorities for registries, in addition to the system's")
	flags.StringArrayVar(&f.setup.PlainHTTP, "plain-http", nil, "`host[:port]` of a registry without TLS; loopback hosts are always included")
	flags.DurationVar(&f.setup.Timeout, "timeout", 30*time.Second, "time for one object")
	return cmd
}

// singular accepts the plural spellings of Kyverno's command line.
func singular(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "resources", "exceptions":
		name = strings.TrimSuffix(name, "s")
	}
	return pflag.NormalizedName(name)
}

// applied is the state of one run of apply.
type applied struct {
	evaluator *evaluation.Evaluator
	policies  []evaluation.Policy
	objects   []workload.Object
	answers   []evaluation.Answer
	warnings  []string
	unread    []error // about policies
}

func (f *applyFlags) run(cmd *cobra.Command, t command.Terminal, policies []string) error {
	if err := f.check(policies); err != nil {
		return err
	}
	ctx := cmd.Context()
	progress := output.NewProgress(t)
	end := progress.Wait("reading policies and objects")
	work, err := f.open(ctx, t, policies)
	end()
	if err != nil {
		return err
	}
	end = progress.Wait("evaluating " + command.Count(len(work.objects), "object"))
	work.evaluate(ctx)
	end()
	if ctx.Err() != nil {
		fmt.Fprintln(t.Err, "quaymaster: interrupted; nothing is decided")
		return command.Status(command.ExitError)
	}
	return f.output.tell(t, work)
}

func (f *applyFlags) check(policies []string) error {
	switch {
	case command.Inputs(policies, f.resources) > 1:
		return errors.New("standard input can be read once: give - once, for policies or for -r")
	case len(f.resources) == 0 && !f.cluster:
		return errors.New("no objects: set -r FILE, or --cluster")
	case !f.cluster && f.setup.Cluster.Context+f.setup.Cluster.Kubeconfig != "":
		return errors.New("--kubeconfig and --context are for --cluster, which is not given")
	case f.cluster && f.setup.Offline:
		return errors.New("--offline opens no connection, and --cluster needs one")
	case f.setup.Timeout <= 0:
		return fmt.Errorf("--timeout %s must be positive", f.setup.Timeout)
	}
	return f.output.check()
}

// open reads everything and compiles the policies.
func (f *applyFlags) open(ctx context.Context, t command.Terminal, policies []string) (*applied, error) {
	from, err := f.read(t, policies)
	if err != nil {
		return nil, err
	}
	with, err := f.trial(ctx, t, from)
	if err != nil {
		return nil, err
	}
	options, config := from.Options(with)
	config.Deletions = deletion.Decider{Protection: limits().Protection}
	var live *liveCluster
	var source trial.Live
	if f.cluster {
		live, err = openCluster(t, f)
		if err != nil {
			return nil, err
		}
		live.answer(&options, &config)
		source = live
	}
	held, err := from.HoldGlobals(ctx, source)
	if err != nil {
		return nil, err
	}
	options.Globals = engine.Globals{Expressions: globalcontext.Expressions{Store: held}}
	config.Existing.Sources = evaluation.Sources{Resources: options.Resources}
	evaluator, err := from.Compile(ctx, options, config, setup.UnreadRoot(t))
	if err != nil {
		return nil, err
	}
	work := &applied{evaluator: evaluator, policies: evaluator.Policies(), objects: from.Objects, unread: from.Unread}
	work.warnings = append(from.Warnings, evaluator.Warnings()...)
	if live == nil {
		return work, nil
	}
	listed, err := live.Matching(ctx, work.targets()) // they depend on the policies
	if err != nil {
		return nil, fmt.Errorf("--cluster: %w", err)
	}
	work.objects = append(work.objects, listed...)
	return work, nil
}

// trial returns the settings of the flags.
func (f *applyFlags) trial(ctx context.Context, t command.Terminal, from *trial.Input) (trial.Setup, error) {
	with := trial.Setup{Offline: f.setup.Offline, Timeout: f.setup.Timeout, Warn: t.Warn}
	var err error
	with.Values, with.User, err = f.given()
	if err != nil {
		return with, err
	}
	store, err := f.setup.TrustStore(ctx)
	if err != nil {
		return with, err
	}
	with.Prover, err = engine.NewProver(store.Snapshot())
	if err != nil {
		return with, err
	}
	requests := make([]gate.Request, len(from.Objects))
	for i, object := range from.Objects {
		requests[i].Object = object
	}
	with.Registries, err = f.registries(t, from.Known, requests)
	return with, err
}

// registries returns the source of images and evidence; nowhere if offline.
func (f *applyFlags) registries(t command.Terminal, known *engine.Resources, requests []gate.Request) (gate.Registries, error) {
	if f.setup.Offline && len(f.setup.Layouts) == 0 {
		return trial.Nowhere{Why: "no connection is to be opened (--offline)"}, nil
	}
	return f.setup.Registries(t, known, requests)
}

// targets are the kinds of objects that the policies match.
func (w *applied) targets() []policy.Target {
	var all []policy.Target
	for place := range w.policies {
		all = append(all, w.evaluator.Targets(place)...)
	}
	return all
}

// limits are those of a gateway with its defaults: apply reads no gateway's settings.
func limits() preview.Limits { return preview.Defaults("quaymaster") }

// deletions are the next runs of the policies that delete, without objects; nil for none.
func (w *applied) deletions() *preview.Preview {
	var list *preview.Preview
	for place := range w.policies {
		p := w.evaluator.Policy(place)
		for _, rule := range p.Deletions {
			if list == nil {
				list = preview.New(limits(), time.Now())
			}
			list.Rule(p, rule)
		}
	}
	return list
}

// evaluate evaluates the policies against the objects.
func (w *applied) evaluate(ctx context.Context) {
	var batch []workload.Object
	w.answers, batch = w.evaluator.EvaluateEvery(ctx, w.objects)
	matched := func(a evaluation.Answer) bool {
		return a.Err != nil || slices.ContainsFunc(a.Rules, func(r evaluation.RuleResult) bool {
			return r.Deletion == nil || r.Deletion.Verdict != deletion.Unmatched
		})
	}
	if len(w.answers) > 0 && !slices.ContainsFunc(w.answers, matched) {
		w.warnings = append(w.warnings, "no rule matches any object: check the paths, and the kinds in the policies")
	}
	w.measure(ctx, batch)
}

// measure reports the cost of policies that match every kind: the API server calls the webhook
// for every write.
func (w *applied) measure(ctx context.Context, objects []workload.Object) {
	for place := range w.policies {
		compiled := w.evaluator.Policy(place)
		every := func(t policy.Target) bool {
			// Writes to one subresource of every kind are rare.
			return t.Resource == "" && wildcard.Match(t.Kind, "\x00") && wildcard.Match(t.Group, "\x00") &&
				wildcard.Match(t.Version, "\x00") && wildcard.Match(t.Subresource, "")
		}
		if len(objects) == 0 || !slices.ContainsFunc(w.evaluator.Targets(place), every) {
			continue
		}
		started := time.Now()
		w.evaluator.EvaluateAll(ctx, objects, "", []int{place})
		w.warnings = append(w.warnings, fmt.Sprintf("%s matches every kind of object (%d evaluated in %s): in a cluster, it is evaluated for every write; name the kinds in its match",
			compiled.ID(), len(objects), time.Since(started).Round(10*time.Microsecond)))
	}
}
