package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/cluster/probe"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// ProbeLabel selects the ConfigMaps of dry-run requests that the probes are about.
const ProbeLabel = "quaymaster.dev/native-probe"

// settleTime is the time between two probes that must both succeed. An API server that reads all objects anew, as
// after a lost connection, may have later ones before earlier ones; it takes up changes each second.
const settleTime = 3 * time.Second

// probePrefix begins the names of probes; a mark follows.
const probePrefix = "quaymaster-native-probe-"

// probes find out whether every API server evaluates the objects that were written. A probe is a policy with a binding
// of its own, which are written after all others: an API server reads each resource in the order of writes, so that one
// which answers with the mark of a probe has read all that was written before it.
type probes struct {
	servers   Prober
	namespace string
	api       api

	mark  string
	first time.Time // of the first answer with the mark from all API servers; zero for none
	done  bool      // a second one came after settleTime
}

// seen reports whether all API servers evaluate the objects.
func (p *probes) seen(ctx context.Context, written []stored, have map[key]stored, served versions) (bool, error) {
	if mark := markOf(written); mark != p.mark {
		p.mark, p.first, p.done = mark, time.Time{}, false
	}
	if p.done {
		return true, nil
	}
	marks, err := p.write(ctx, have, served)
	if err != nil {
		return false, err
	}
	if err := p.clean(ctx, have); err != nil { // those of earlier marks
		return false, err
	}
	if !p.first.IsZero() && time.Since(p.first) < settleTime {
		return false, nil
	}
	if err := p.servers.Probe(ctx, marks...); err != nil {
		return false, err
	}
	p.servers.Forget()
	if p.first.IsZero() {
		p.first = time.Now()
		return false, nil
	}
	p.done = true
	return true, p.clean(ctx, have)
}

// markOf identifies objects in their versions.
func markOf(written []stored) string {
	var lines []string
	for _, s := range written {
		lines = append(lines, fmt.Sprint(s.resource, " ", s.content.GetName(), " ", s.content.GetUID(), " ", s.content.GetGeneration()))
	}
	slices.Sort(lines)
	sum := sha256.Sum256(fmt.Append(nil, lines))
	return hex.EncodeToString(sum[:8])
}

// write writes the objects of the current mark that are not there, and returns the marks that warnings show.
func (p *probes) write(ctx context.Context, have map[key]stored, served versions) ([]string, error) {
	objects, marks, err := p.objects(served)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if _, ok := have[o.key()]; ok {
			continue
		}
		made, err := p.api.write(ctx, o)
		if err != nil {
			return nil, err
		}
		have[o.key()] = made
	}
	return marks, nil
}

// objects are the policy and binding of a mark, for each kind that is served. The validating policy warns, and never
// denies; the annotation of the mutating one is in the warning.
func (p *probes) objects(served versions) (list []object, marks []string, err error) {
	name := probePrefix + p.mark
	resources := admission.MatchResources{
		NamespaceSelector: &meta.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": p.namespace}},
		ObjectSelector:    &meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{{Key: ProbeLabel, Operator: meta.LabelSelectorOpExists}}},
		ResourceRules: []admission.NamedRuleWithOperations{{RuleWithOperations: admission.RuleWithOperations{
			Operations: []admission.OperationType{admission.Create},
			Rule:       admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}}},
	}
	ignore := admission.Ignore
	add := func(r resource, version string, spec any) {
		made, failed := newObject(r, version, name, spec)
		if failed == nil {
			made.content.SetLabels(map[string]string{Label: ofProbe, configuration.ManagedBy: configuration.Name})
		}
		list, err = append(list, made), errors.Join(err, failed)
	}
	validations := []admission.Validation{{Expression: "false", Message: probe.WarningOf(ProbeLabel, p.mark)}}
	marks = []string{p.mark}
	if served.mutating != "" {
		mutated := "mutated-" + p.mark
		// An API server that still has the probe of another mark may evaluate that one last.
		annotation := ProbeLabel + "-" + p.mark
		marks = append(marks, mutated)
		add(mutatingPolicies, served.mutating, admission.MutatingAdmissionPolicySpec{
			MatchConstraints: &resources, FailurePolicy: &ignore, ReinvocationPolicy: admission.NeverReinvocationPolicy,
			Mutations: []admission.Mutation{{PatchType: admission.PatchTypeApplyConfiguration, ApplyConfiguration: &admission.ApplyConfiguration{
				Expression: `Object{metadata: Object.metadata{annotations: {"` + annotation + `": "` + mutated + `"}}}`}}},
		})
		add(mutatingBindings, served.mutating, admission.MutatingAdmissionPolicyBindingSpec{PolicyName: name})
		validations = append(validations, admission.Validation{
			Expression:        "!has(object.metadata.annotations) || !('" + annotation + "' in object.metadata.annotations)",
			MessageExpression: "'" + probe.WarningOf(ProbeLabel, "") + "' + object.metadata.annotations['" + annotation + "']",
		})
	}
	if served.validating == "" {
		return nil, nil, errors.New("the API server serves no ValidatingAdmissionPolicy, without which nothing is probed")
	}
	add(validatingPolicies, served.validating, admission.ValidatingAdmissionPolicySpec{
		MatchConstraints: &resources, FailurePolicy: &ignore, Validations: validations,
	})
	add(validatingBindings, served.validating, admission.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admission.ValidationAction{admission.Warn},
	})
	return list, marks, err
}

// clean deletes the probes but the pending one.
func (p *probes) clean(ctx context.Context, have map[key]stored) error {
	for at, s := range have {
		if s.content.GetLabels()[Label] != ofProbe || !p.done && s.content.GetName() == probePrefix+p.mark {
			continue
		}
		if err := p.api.remove(ctx, s); err != nil {
			return err
		}
		delete(have, at)
	}
	return nil
}
