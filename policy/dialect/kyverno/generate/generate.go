package generate

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
	"github.com/quaymaster/quaymaster/policy/source"
)

// Settings are the settings in a policy's spec for all its rules.
type Settings struct {
	// Existing is generateExisting, Apply useServerSideApply, and OnPolicyUpdate
	// mutateExistingOnPolicyUpdate.
	Existing, Apply, OnPolicyUpdate bool
}

// generation is a compiled generate rule.
type generation struct {
	triggers
	terms policy.Terms
	one   maker // nil where there are loops
	loops []makeLoop
	guard source.Guard
}

var _ policy.Generation = (*generation)(nil)

type makeLoop struct {
	loop
	maker maker
}

// maker makes the objects of one entry, once for each pass.
type maker interface {
	produce(ctx context.Context, p *production, data variable.Context) error
}

// production holds the objects that are made for one trigger.
type production struct {
	sources     *source.Reader
	synchronize bool
	objects     []policy.Downstream
	// room is the memory that is left, in bytes.
	room int
}

// add adds an object, if its content fits within the limit.
func (p *production) add(object map[string]any, from source.Ref, path string) error {
	p.room -= limit.Held(object, p.room)
	if p.room < 0 {
		return field.Fail(path, "the content of the rule's objects %w of %d bytes", jmespath.ErrTooLarge, maxMade)
	}
	p.objects = append(p.objects, policy.Downstream{Object: object, Synchronize: p.synchronize, Source: from})
	return nil
}

// target is where an object is to be.
type target struct {
	path            string
	kind            policy.ObjectKind
	name, namespace *variable.Template // nil means none
	own             string             // the namespace of a Policy; empty for a ClusterPolicy
}

// dataMaker makes an object of data.
type dataMaker struct {
	target
	data *variable.Template
}

// CompileGenerate compiles a rule with `generate`, which is given as decoded JSON.
// The namespace of the options is the policy's own, empty for a ClusterPolicy. Errors
// are about fields.
func CompileGenerate(o rulecontext.Options, s Settings, r Rule, generate any) (policy.Generation, error) {
	path := r.Path + ".generate"
	var doc generateDocument
	if err := decode(generate, &doc, path); err != nil {
		return nil, err
	}
	g := &generation{terms: policy.Terms{Existing: s.Existing, Synchronize: doc.Synchronize, Orphan: doc.Orphan, Apply: s.Apply, SkipGenerated: r.SkipGenerated}}
	if doc.GenerateExisting != nil {
		g.terms.Existing = *doc.GenerateExisting
	}
	var err error
	g.triggers, err = compileTriggers(o, r, generate)
	if err != nil {
		return nil, err
	}
	if g.subresource != "" && doc.Synchronize {
		return nil, document.Unsupported(path+".synchronize", "the trigger "+g.subresource+
			" of a rule with synchronize: true (a later state of the object does not show whether the request would still require the generated one)")
	}
	g.terms.Deletions = g.deletions
	plain, err := document.Plain([]any{r.Context, generate})
	if err != nil {
		return nil, field.Below(path, err)
	}
	g.guard = source.NewGuard(o.Namespace, plain)
	if err := g.compileObjects(o, doc, path); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *generation) compileObjects(o rulecontext.Options, doc generateDocument, path string) error {
	if len(doc.ForEach) == 0 {
		var err error
		g.one, err = g.compileMaker(o, doc.objectDocument, path, g.Entries())
		return err
	}
	if !doc.empty() {
		return field.Fail(path, "want one of foreach and an object, and it has both")
	}
	if len(doc.ForEach) > maxLoops {
		return field.Fail(path+".foreach", "the number of loops %w of %d", jmespath.ErrTooLarge, maxLoops)
	}
	var errs []error
	for i, each := range doc.ForEach {
		place := path + ".foreach[" + strconv.Itoa(i) + "]"
		compiled, err := compileLoop(o, each.loopDocument, place, g.Entries())
		errs = append(errs, err)
		made, err := g.compileMaker(o, each.objectDocument, place, loopNames(g.Entries(), compiled.values))
		errs = append(errs, err)
		g.loops = append(g.loops, makeLoop{compiled, made})
	}
	return errors.Join(errs...)
}

func (g *generation) compileMaker(o rulecontext.Options, doc objectDocument, path string, known []string) (maker, error) {
	forms := 0
	for _, is := range []bool{doc.Data != nil, doc.Clone != nil, doc.CloneList != nil} {
		if is {
			forms++
		}
	}
	switch {
	case forms > 1:
		return nil, field.Fail(path, "want one of data, clone and cloneList, and it has %d", forms)
	case doc.CloneList != nil:
		return g.compileCloneList(o, doc, path, known)
	}
	to, err := g.compileTarget(o, doc, path, known)
	if doc.Clone != nil {
		return compileClone(o, to, doc, errors.Join(err, rulecontext.Undefined([]any{doc.Clone.Name, doc.Clone.Namespace}, path+".clone", known)))
	}
	errs := []error{err, rulecontext.Undefined(doc.Data, path+".data", known)}
	data := doc.Data
	if data == nil { // a Namespace or ServiceAccount needs no more than a name
		data = map[string]any{}
	}
	if _, ok := data.(map[string]any); !ok {
		errs = append(errs, field.Fail(path+".data", "want an object"))
	}
	m := dataMaker{target: to}
	m.data, err = variable.Compile(o.Engine, data)
	return m, errors.Join(append(errs, field.Below(path+".data", err))...)
}

// compileTarget reads the fields that name the object.
func (g *generation) compileTarget(o rulecontext.Options, doc objectDocument, path string, known []string) (target, error) {
	to := target{path: path, kind: policy.ObjectKind{APIVersion: doc.APIVersion, Kind: doc.Kind}, own: o.Namespace}
	errs := []error{plainKind(doc.APIVersion, doc.Kind, path), checkScope(doc, path), undefinedNames(doc.Name, doc.Namespace, path, known)}
	g.addKind(to.kind)
	if doc.Name == "" {
		errs = append(errs, field.Fail(path+".name", "is empty"))
	}
	var err error
	to.name, err = compileName(o, doc.Name, path+".name")
	errs = append(errs, err)
	to.namespace, err = compileName(o, doc.Namespace, path+".namespace")
	return to, errors.Join(append(errs, err, inOwn(o.Namespace, doc.Namespace, "generate into", path+".namespace"))...)
}

func (g *generation) addKind(kind policy.ObjectKind) {
	if !slices.Contains(g.terms.Kinds, kind) {
		g.terms.Kinds = append(g.terms.Kinds, kind)
	}
}

// compileName compiles a name with variables; nil for an empty one.
func compileName(o rulecontext.Options, name, path string) (*variable.Template, error) {
	if name == "" {
		return nil, nil
	}
	t, err := variable.Compile(o.Engine, name)
	return t, field.Below(path, err)
}

// inOwn refuses a namespace without variables that is not the one of a Policy.
func inOwn(own, namespace, what, path string) error {
	if own == "" || containsVariable(namespace) || namespace == own {
		return nil
	}
	return foreign(path, own, what, namespace)
}

// checkScope refuses a kind of Kubernetes without the namespace that its objects need, or with one
// that they cannot have: none could be created. The scope of other kinds is the cluster's to say.
func checkScope(doc objectDocument, path string) error {
	of, known := builtin.Find(groupOf(doc.APIVersion), doc.Kind)
	switch {
	case known && !of.Cluster && doc.Namespace == "":
		return field.Fail(path+".namespace", "is missing, and a %s is in a namespace", doc.Kind)
	case known && of.Cluster && doc.Namespace != "":
		return field.Fail(path+".namespace", "a %s is in no namespace: leave it out", doc.Kind)
	}
	return nil
}

// foreign is the error for an object outside of a Policy's namespace.
func foreign(path, own, what, namespace string) error {
	if namespace == "" {
		return field.Fail(path, "a Policy in namespace %s can %s that namespace alone: write it here", own, what)
	}
	return field.Fail(path, "a Policy in namespace %s cannot %s namespace %s: use a ClusterPolicy", own, what, namespace)
}

// Terms returns the lifetime settings of the objects.
func (g *generation) Terms() policy.Terms { return g.terms }

// Generate returns the objects that the object of a case requires.
func (g *generation) Generate(ctx context.Context, about policy.Case) policy.Generated {
	data, no := g.ask(ctx, about)
	words := g.Properties().In(data)
	if no != nil {
		return policy.Generated{Result: no.Result, Reasons: no.Reasons, Properties: words}
	}
	p := production{sources: source.NewReader(about.Sources, g.guard), synchronize: g.terms.Synchronize, room: maxMade}
	if err := g.produce(ctx, &p, data); err != nil {
		no = rule.Undecided(err)
		return policy.Generated{Result: no.Result, Reasons: no.Reasons, Read: p.sources.Read(), Properties: words}
	}
	return policy.Generated{Result: policy.Pass, Objects: p.objects, Read: p.sources.Read(), Properties: words}
}

// produce makes all objects. With some of them missing, the obsolete ones could not be determined.
func (g *generation) produce(ctx context.Context, p *production, data variable.Context) error {
	if g.one != nil {
		return g.one.produce(ctx, p, data)
	}
	left := budget{maxElements}
	for i := range g.loops {
		l := &g.loops[i]
		if err := l.each(ctx, data, &left, func(within variable.Context) error { return l.maker.produce(ctx, p, within) }); err != nil {
			return err
		}
	}
	return nil
}

// place fills in the namespace and the name.
func (t *target) place(data variable.Context) (namespace, name string, err error) {
	if t.name != nil {
		name, err = text(t.name, data, t.path+".name")
		if err == nil && name == "" {
			err = field.Fail(t.path+".name", "is empty once its variables are filled in")
		}
		if err != nil {
			return "", "", err
		}
	}
	if t.namespace != nil {
		namespace, err = text(t.namespace, data, t.path+".namespace")
		if err != nil {
			return "", "", err
		}
	}
	if t.own != "" && namespace != t.own {
		return "", "", foreign(t.path+".namespace", t.own, "generate into", namespace)
	}
	return namespace, name, nil
}

// produce creates the whole object. The rule's fields next to data name it and take precedence over data.
func (m dataMaker) produce(_ context.Context, p *production, data variable.Context) error {
	namespace, name, err := m.place(data)
	if err != nil {
		return err
	}
	filled, err := m.data.Execute(data)
	if err != nil {
		return field.Below(m.path+".data", err)
	}
	object, _ := withoutNulls(filled).(map[string]any)
	if object == nil {
		return field.Fail(m.path+".data", "want an object")
	}
	toTexts(object, m.kind)
	metadata := map[string]any{}
	switch written := object["metadata"].(type) {
	case nil:
	case map[string]any:
		metadata = written
	default:
		return field.Fail(m.path+".data.metadata", "want an object")
	}
	metadata["name"] = name
	delete(metadata, "namespace")
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	object["metadata"], object["apiVersion"], object["kind"] = metadata, m.kind.APIVersion, m.kind.Kind
	return p.add(object, source.Ref{}, m.path+".data")
}

// withoutNulls returns a copy in which no object has a member that is null: the API
// server keeps none, and a rule writes `|| null` for a field that may be absent.
func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(v))
		for key, member := range v {
			if member != nil {
				copied[key] = withoutNulls(member)
			}
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i, item := range v {
			copied[i] = withoutNulls(item)
		}
		return copied
	}
	return value
}
