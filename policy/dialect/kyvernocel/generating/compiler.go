package generating

import (
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	celgo "github.com/google/cel-go/cel"
	policieskyvernoio "github.com/kyverno/api/api/policies.kyverno.io"
	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/internal/trigger"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/source"
)

// Compiler compiles policies. It is immutable and safe for concurrent use.
type Compiler struct {
	options             kyvernocel.Options
	cluster, namespaced func() (*cel.Env, error)
	schemas             *schema.Finder
}

// The names of the one function of the library.
const (
	applyName      = "generator.Apply"
	lowerApplyName = "generator.apply"
)

// New makes a Compiler.
func New(options kyvernocel.Options) *Compiler {
	language := func(namespaced bool) func() (*cel.Env, error) {
		o := kyvernocel.Reach(namespaced)
		arguments := []*celgo.Type{celgo.ListType(celgo.MapType(celgo.StringType, celgo.DynType))}
		if !namespaced {
			arguments = append([]*celgo.Type{celgo.StringType}, arguments...)
		}
		o.Variables, o.Mixed = kyvernocel.OfObject(), true
		for _, name := range []string{applyName, lowerApplyName} {
			o.Functions = append(o.Functions, cel.Function{Name: name, Overloads: []cel.Overload{{ID: name, Arguments: arguments, Result: celgo.BoolType}}})
		}
		return sync.OnceValues(func() (*cel.Env, error) { return cel.NewEnv(o) })
	}
	return &Compiler{options: options, cluster: language(false), namespaced: language(true), schemas: schema.NewFinder()}
}

// Recognises reports whether a document of this apiVersion and kind is a policy of this dialect.
func (*Compiler) Recognises(apiVersion, kind string) bool {
	return kyvernocel.IsKind(apiVersion, kind, Kind)
}

// OnlyBackground reports that no rule of such a document is for admission.
func (*Compiler) OnlyBackground([]byte) bool { return true }

// Compile compiles one document; see kyvernocel.Compile.
func (c *Compiler) Compile(text []byte, source string) (*policy.Policy, error) {
	return kyvernocel.Compile(text, Kind, source, func(spec *v1alpha1.GeneratingPolicySpec, out *policy.Policy) error {
		return (&builder{Compiler: c, spec: spec, out: out}).build()
	})
}

// Broken returns a policy that replaces a document which does not compile. It is about no request, so that it
// denies none.
func (c *Compiler) Broken(text []byte, source string, why error) *policy.Policy {
	p, _ := kyvernocel.ReadBroken(text, source, why, kyvernocel.Roughly{Targets: func(doc *admission.MatchResources) ([]policy.Target, bool) {
		return constraint.Rough(doc, c.options.Kinds)
	}})
	if p != nil {
		p.Targets = nil
	}
	return p
}

// builder compiles one policy.
type builder struct {
	*Compiler
	spec *v1alpha1.GeneratingPolicySpec
	out  *policy.Policy
}

// who is the policy, in messages.
const who = "a generating policy"

func (b *builder) build() error {
	if err := b.settings(); err != nil {
		return err
	}
	g := &generation{name: b.out.Name, compiler: b.Compiler, namespace: b.out.Namespace}
	if err := b.guard(g); err != nil {
		return err
	}
	if err := b.program(g); err != nil {
		return err
	}
	var err error
	g.match, err = b.options.CompileMatch(b.spec.MatchConstraints, b.out, false)
	if err != nil {
		return err
	}
	g.sorts, err = trigger.Read(b.spec.MatchConstraints, who)
	if err != nil {
		return err
	}
	g.terms = b.terms(g.sorts.Deletion != "")
	if g.terms.Synchronize && g.sorts.Request != "" {
		return kyvernocel.Unsupported(g.sorts.Request, "a request for a subresource, in a policy with synchronize "+
			"(a later state of the object does not show whether the request would still require the generated one),")
	}
	g.triggers = kyvernocel.Confine(g.match.TargetsOfAll(), b.out.Namespace)
	programs := g.programs()
	g.requester = kyvernocel.ReadsRequester(programs...)
	if g.requester {
		if err := g.sorts.WithoutRequester(who); err != nil {
			return err
		}
		b.out.Targets = append(b.out.Targets, g.triggers...)
	}
	b.out.Generations = append(b.out.Generations, g)
	kyvernocel.OmitFromScans(b.out, programs...)
	check := kyvernocel.FieldCheck{Finder: b.schemas, EveryGroup: kyvernocel.EveryGroup(b.spec.MatchConstraints)}
	return check.Note(b.out, g.match.Kinds(), programs...)
}

// settings reads the fields other than expressions and matches.
func (b *builder) settings() error {
	settings := kyvernocel.Settings{Webhook: b.spec.WebhookConfiguration, Mode: policieskyvernoio.EvaluationModeKubernetes}
	_, err := settings.Apply(b.out)
	b.out.Timeout = 0 // of requests, which do not evaluate it
	if !b.spec.AdmissionEnabled() {
		err = errors.Join(err, kyvernocel.Unsupported("spec.evaluation.admission.enabled",
			"false, with which new triggers would not count and existing ones might,"))
	}
	return err
}

func (b *builder) terms(deletions bool) policy.Terms {
	return policy.Terms{
		Existing: b.spec.GenerateExistingEnabled(), Synchronize: b.spec.SynchronizationEnabled(), Orphan: b.spec.OrphanDownstreamOnPolicyDeleteEnabled(),
		SkipGenerated: b.spec.SkipBackgroundRequestsEnabled(), Apply: b.spec.UseServerSideApply, Deletions: deletions,
	}
}

// guard reads the names that the policy contains.
func (b *builder) guard(g *generation) error {
	text, err := json.Marshal([]any{b.spec.MatchConditions, b.spec.Variables, b.spec.Generation})
	if err != nil {
		return err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return err
	}
	g.guard = source.NewGuard(b.out.Namespace, plain)
	return nil
}

func (b *builder) program(g *generation) error {
	env := b.cluster
	if b.out.Namespace != "" {
		env = b.namespaced
	}
	var err error
	g.scope, err = kyvernocel.NewScope(env)
	if err != nil {
		return err
	}
	if err := kyvernocel.Declare(g.scope, b.spec.Variables); err != nil {
		return err
	}
	var errs [3]error
	g.conditions, errs[0] = kyvernocel.CompileConditions(g.scope, b.spec.MatchConditions, "spec.matchConditions")
	errs[1] = b.entries(g)
	g.annotations, errs[2] = kyvernocel.CompileAnnotations(g.scope, b.spec.AuditAnnotations)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	var unread []error
	for _, each := range g.programs() {
		unread = append(unread, kyvernocel.ReadsKnown(each))
	}
	return errors.Join(unread...)
}

func (b *builder) entries(g *generation) error {
	if n := len(b.spec.Generation); n == 0 || n > kyvernocel.MaxEntries {
		return field.Fail("spec.generate", "want 1 to %d, found %d", kyvernocel.MaxEntries, n)
	}
	var errs []error
	for i, doc := range b.spec.Generation {
		path := "spec.generate[" + strconv.Itoa(i) + "]"
		one := entry{path: path}
		var err error
		switch {
		case (doc.Template == nil) == (doc.Expression == ""):
			err = field.Fail(path, "want one of expression and template")
		case doc.Template != nil:
			one.template, err = compileTemplate(g.scope, doc.Template, path+".template")
		default:
			one.expression, err = g.scope.Compile(path+".expression", doc.Expression, celgo.BoolType)
		}
		errs = append(errs, err)
		g.entries = append(g.entries, one)
	}
	return errors.Join(errs...)
}
