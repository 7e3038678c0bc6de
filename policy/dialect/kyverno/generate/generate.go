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
	one   *maker // nil where there are loops
	loops []makeLoop
}

var _ policy.Generation = (*generation)(nil)

type makeLoop struct {
	loop
	maker *maker
}

// maker makes one object.
type maker struct {
	path                  string
	kind                  policy.ObjectKind
	name, namespace, data *variable.Template // namespace may be nil
	own                   string
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

func (g *generation) compileMaker(o rulecontext.Options, doc objectDocument, path string, known []string) (*maker, error) {
	if doc.Clone != nil {
		return nil, document.Unsupported(path+".clone", "the copying of another object")
	}
	if doc.CloneList != nil {
		return nil, document.Unsupported(path+".cloneList", "the copying of other objects")
	}
	m := &maker{path: path, kind: policy.ObjectKind{APIVersion: doc.APIVersion, Kind: doc.Kind}, own: o.Namespace}
	errs := []error{plainKind(doc.APIVersion, doc.Kind, path), checkScope(doc, path), undefinedNames(doc.Name, doc.Namespace, path, known),
		rulecontext.Undefined(doc.Data, path+".data", known)}
	if !slices.Contains(g.terms.Kinds, m.kind) {
		g.terms.Kinds = append(g.terms.Kinds, m.kind)
	}
	template := func(value any, name string) *variable.Template {
		t, err := variable.Compile(o.Engine, value)
		errs = append(errs, field.Below(path+"."+name, err))
		return t
	}
	if doc.Name == "" {
		errs = append(errs, field.Fail(path+".name", "is empty"))
	}
	m.name = template(doc.Name, "name")
	if doc.Namespace != "" {
		m.namespace = template(doc.Namespace, "namespace")
	}
	data := doc.Data
	if data == nil { // a Namespace or ServiceAccount needs no more than a name
		data = map[string]any{}
	}
	if _, ok := data.(map[string]any); !ok {
		errs = append(errs, field.Fail(path+".data", "want an object"))
	}
	m.data = template(data, "data")
	if o.Namespace != "" && !containsVariable(doc.Namespace) && doc.Namespace != o.Namespace {
		errs = append(errs, foreign(path+".namespace", o.Namespace, "generate into", doc.Namespace))
	}
	return m, errors.Join(errs...)
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
	objects, err := g.objects(ctx, data)
	if err != nil {
		no = rule.Undecided(err)
		return policy.Generated{Result: no.Result, Reasons: no.Reasons, Properties: words}
	}
	return policy.Generated{Result: policy.Pass, Objects: objects, Properties: words}
}

// objects returns all objects or none: with some of them missing, the obsolete ones could not be
// determined.
func (g *generation) objects(ctx context.Context, data variable.Context) ([]policy.Downstream, error) {
	var list []policy.Downstream
	room := maxMade
	add := func(m *maker, data variable.Context) error {
		object, err := m.object(data, &room)
		if err == nil {
			list = append(list, policy.Downstream{Object: object, Synchronize: g.terms.Synchronize})
		}
		return err
	}
	if g.one != nil {
		return list, add(g.one, data)
	}
	left := budget{maxElements}
	for i := range g.loops {
		l := &g.loops[i]
		if err := l.each(ctx, data, &left, func(within variable.Context) error { return add(l.maker, within) }); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// object creates the whole object, if its content fits within the limit. The rule's fields next
// to data name it and take precedence over data.
func (m *maker) object(data variable.Context, room *int) (map[string]any, error) {
	name, err := text(m.name, data, m.path+".name")
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, field.Fail(m.path+".name", "is empty once its variables are filled in")
	}
	namespace := ""
	if m.namespace != nil {
		namespace, err = text(m.namespace, data, m.path+".namespace")
		if err != nil {
			return nil, err
		}
	}
	if m.own != "" && namespace != m.own {
		return nil, foreign(m.path+".namespace", m.own, "generate into", namespace)
	}
	filled, err := m.data.Execute(data)
	if err != nil {
		return nil, field.Below(m.path+".data", err)
	}
	*room -= limit.Held(filled, *room)
	if *room < 0 {
		return nil, field.Fail(m.path+".data", "the content of the rule's objects %w of %d bytes", jmespath.ErrTooLarge, maxMade)
	}
	object, _ := withoutNulls(filled).(map[string]any)
	if object == nil {
		return nil, field.Fail(m.path+".data", "want an object")
	}
	toTexts(object, m.kind)
	metadata := map[string]any{}
	switch written := object["metadata"].(type) {
	case nil:
	case map[string]any:
		metadata = written
	default:
		return nil, field.Fail(m.path+".data.metadata", "want an object")
	}
	metadata["name"] = name
	delete(metadata, "namespace")
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	object["metadata"], object["apiVersion"], object["kind"] = metadata, m.kind.APIVersion, m.kind.Kind
	return object, nil
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
