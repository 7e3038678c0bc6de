package deleting

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/schedule"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// constraintsPath is the location of the match.
const constraintsPath = "spec.matchConstraints"

// Compiler compiles policies. It is immutable and safe for concurrent use.
type Compiler struct {
	options             kyvernocel.Options
	cluster, namespaced func() (*cel.Env, error)
	schemas             *schema.Finder
}

// New makes a Compiler.
func New(options kyvernocel.Options) *Compiler {
	language := func(namespaced bool) func() (*cel.Env, error) {
		o := kyvernocel.Reach(namespaced)
		// There is no request, and so neither its objects nor a requester.
		o.RequestObjects, o.Authorizer = false, false
		o.Variables = slices.DeleteFunc(kyvernocel.OfObject(), func(v cel.Variable) bool {
			return v.Name != kyvernocel.ObjectName && v.Name != kyvernocel.NamespaceName
		})
		return sync.OnceValues(func() (*cel.Env, error) { return cel.NewEnv(o) })
	}
	return &Compiler{options: options, cluster: language(false), namespaced: language(true), schemas: schema.NewFinder()}
}

// Recognises reports whether a document of this apiVersion and kind is a policy of this dialect.
func (*Compiler) Recognises(apiVersion, kind string) bool {
	return kyvernocel.IsKind(apiVersion, kind, Kind)
}

// Compile compiles one document; see kyvernocel.Compile.
func (c *Compiler) Compile(text []byte, source string) (*policy.Policy, error) {
	return kyvernocel.Compile(text, Kind, source, func(spec *v1alpha1.DeletingPolicySpec, out *policy.Policy) error {
		return (&builder{Compiler: c, spec: spec, out: out}).build()
	})
}

// Broken returns a policy that replaces a document which does not compile; nil for text that is no
// document at all. It has no rules: it deletes nothing, and admission does not depend on it.
func (c *Compiler) Broken(text []byte, source string, why error) *policy.Policy {
	p, _ := kyvernocel.ReadBroken(text, source, why, kyvernocel.Roughly{
		Targets: func(*admission.MatchResources) ([]policy.Target, bool) { return nil, true },
	})
	if p != nil {
		p.AuditOnly = true // nothing of it denies
	}
	return p
}

// OnlyBackground reports that admission does not depend on these policies.
func (*Compiler) OnlyBackground([]byte) bool { return true }

// builder compiles one policy.
type builder struct {
	*Compiler
	spec *v1alpha1.DeletingPolicySpec
	out  *policy.Policy
}

func (b *builder) build() error {
	r := &rule{name: b.out.Name, namespace: b.out.Namespace, options: b.options}
	var errs [3]error
	r.Terms, errs[0] = schedule.ParseTerms(b.spec.Schedule, (*string)(b.spec.DeletionPropagationPolicy), b.options.Now)
	errs[1] = b.match(r)
	errs[2] = b.expressions(r)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if err := b.checkFields(r); err != nil {
		return err
	}
	b.out.Deletions = []policy.Deletion{r}
	return nil
}

// match compiles matchConstraints, for stored objects of any version.
func (b *builder) match(r *rule) error {
	doc := b.spec.MatchConstraints
	if doc == nil {
		if b.out.Namespace != "" {
			return field.Fail(constraintsPath, "is missing, and so the policy would delete nothing: name resources in resourceRules")
		}
		b.out.Warnings = append(b.out.Warnings, constraintsPath+" is missing, and so the policy deletes nothing in a cluster: name resources in resourceRules")
		return nil
	}
	if err := checkResources(doc); err != nil {
		return err
	}
	var err error
	r.match, err = b.options.CompileMatch(stored(doc), b.out, false)
	if err != nil {
		return err
	}
	for _, t := range r.match.Kinds() {
		switch {
		case t.Subresource != "": // the containers that are added to pods
			continue
		case wildcard.Contains(t.Kind):
			// On the command line the kind follows from the objects that are given. A cluster has it
			// from discovery, and objects of every kind are never listed.
			const unknown = constraintsPath + ".resourceRules names a resource of which the kind is not known: a cluster's objects of it are not deleted until its group is named and its definition is installed"
			if !slices.Contains(b.out.Warnings, unknown) {
				b.out.Warnings = append(b.out.Warnings, unknown)
			}
			continue
		}
		if doc.NamespaceSelector != nil && t.Kind != "Namespace" && constraint.IsClusterScoped(t.Group, t.Kind) {
			b.out.Warnings = append(b.out.Warnings, constraintsPath+".namespaceSelector does not restrict "+t.Kind+
				", which is in no namespace, as in Kubernetes: its objects are deleted whatever the selector is; restrict them by conditions")
		}
		t.Operations = nil
		r.targets = append(r.targets, t)
	}
	r.targets = kyvernocel.Confine(r.targets, b.out.Namespace)
	if selector := doc.ObjectSelector; selector != nil {
		labels, err := meta.LabelSelectorAsSelector(selector)
		if err != nil {
			return field.Fail(constraintsPath+".objectSelector", "%w", err)
		}
		r.labels = labels.String()
	}
	return nil
}

// checkResources refuses wildcards: a policy deletes only kinds that it names. Kyverno finds no
// resource for them.
func checkResources(doc *admission.MatchResources) error {
	var errs []error
	for i, r := range doc.ResourceRules {
		for j, resource := range r.Resources {
			path := constraintsPath + ".resourceRules[" + strconv.Itoa(i) + "].resources[" + strconv.Itoa(j) + "]"
			switch {
			case strings.Contains(resource, "*"):
				errs = append(errs, field.Fail(path, "%q: a policy that deletes objects names their resources one by one", resource))
			case strings.Contains(resource, "/"):
				errs = append(errs, field.Fail(path, "%q: a subresource cannot be deleted: name the resource", resource))
			}
		}
	}
	return errors.Join(errs...)
}

// stored returns the constraints for stored objects, which no operation brings. An exclusion holds
// for the objects of a resource in every version, because the policy reads them in one of them.
func stored(doc *admission.MatchResources) *admission.MatchResources {
	doc = doc.DeepCopy()
	all := []admission.OperationType{admission.OperationAll}
	for i := range doc.ResourceRules {
		doc.ResourceRules[i].Operations = all
	}
	for i := range doc.ExcludeResourceRules {
		doc.ExcludeResourceRules[i].Operations = all
		if doc.MatchPolicy == nil || *doc.MatchPolicy != admission.Exact {
			doc.ExcludeResourceRules[i].APIVersions = []string{"*"}
		}
	}
	return doc
}

// expressions compiles variables and conditions.
func (b *builder) expressions(r *rule) error {
	env := b.cluster
	if b.out.Namespace != "" {
		env = b.namespaced
	}
	var err error
	r.scope, err = kyvernocel.NewScope(env)
	if err != nil {
		return err
	}
	if err := kyvernocel.Declare(r.scope, b.spec.Variables); err != nil {
		return err
	}
	for _, v := range r.scope.Variables() {
		if err := kyvernocel.ReadsKnown(v); err != nil {
			return err
		}
	}
	r.conditions, err = kyvernocel.CompileConditions(r.scope, b.spec.Conditions, "spec.conditions")
	return err
}

// checkFields refuses expressions that read a field that none of the policy's kinds has.
func (b *builder) checkFields(r *rule) error {
	if r.match == nil {
		return nil
	}
	check := kyvernocel.FieldCheck{Finder: b.schemas, EveryGroup: kyvernocel.EveryGroup(b.spec.MatchConstraints)}
	return check.Note(b.out, r.match.Kinds(), slices.Concat(r.scope.Variables(), r.conditions)...)
}
