package evaluation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/deletion"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/policy/suite/fixtures"
	"github.com/quaymaster/quaymaster/workload"
	"github.com/quaymaster/quaymaster/workload/stored"
)

// Config are the inputs of a Evaluator.
type Config struct {
	// Compilers compile the policies; required, as are Registries and Prover.
	Compilers  engine.Compilers
	Registries gate.Registries
	Prover     gate.Prover
	// Policies are evaluated in their order; Evaluate and EvaluateAll want one at least. Exceptions exempt
	// objects.
	Policies   []Policy
	Exceptions []workload.Object
	Existing   Existing
	// Values replace look-ups; nil for none.
	Values *fixtures.Values
	// NoOldObject: at UPDATE, expressions read no old object if none is given. Else they read the
	// object itself, as in Kyverno's suites, where nothing is ever different.
	NoOldObject bool
	// Stored: objects of built-in kinds that the values change are as an API server has them.
	Stored bool
	// User is the requesting user; nil if unknown: rules then match every user.
	User *policy.User
	// Labels returns the labels of a namespace, and whether they are known; a nil function means
	// that all are unknown.
	Labels func(namespace string) (map[string]string, bool)
	// Scopes are those of objects whose kinds only definitions next to them define.
	Scopes Scopes
	// Rewrite changes a policy's document before it is compiled; nil means no change.
	Rewrite func(document any) any
	// Deletions decides for rules that delete existing objects, without Exceptions.
	Deletions deletion.Decider
	// Options are the options of the gates.
	Options []gate.Option
}

// Annotation returns an annotation of the document; empty where there is none.
func (p Policy) Annotation(key string) string {
	meta, _ := p.Object.Content()["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	value, _ := annotations[key].(string)
	return value
}

// Made reports whether a compiled policy is from the document.
func (p Policy) Made(compiled *policy.Policy) bool {
	return compiled.Kind == p.Object.Kind() && compiled.Name == p.Object.Name() &&
		(compiled.Namespace == "" || compiled.Namespace == p.Object.Namespace())
}

// Evaluator evaluates policies against objects. It is not safe for concurrent use.
type Evaluator struct {
	config     Config // with the policies that compile
	unread     []Unread
	warnings   []string // about bindings
	exceptions []*policy.Exception
	compiled   map[string]*policy.Policy // by the policy's index and its values
	keys       map[keyed]string          // of compiled
	gates      map[string]*policyGate    // by the policies that they have
}

// keyed is a policy for the objects of a name.
type keyed struct {
	place  int
	object string
}

// policyGate is a gate with the policies of its set.
type policyGate struct {
	gate *gate.Gate
	set  *set.Set
}

// Unread is a policy that does not compile, and why.
type Unread struct {
	Policy
	Err error
}

// New compiles the policies. One that does not compile does not hide the others: callers report Unread,
// and do not admit.
func New(config Config) (*Evaluator, error) {
	if config.Registries == nil || config.Prover == nil {
		return nil, errors.New("evaluation: registries and prover must not be nil")
	}
	if config.Values == nil {
		config.Values = &fixtures.Values{}
	}
	policies, unbound, err := joined(config.Policies)
	if err != nil {
		return nil, err
	}
	config.Policies = nil
	e := &Evaluator{config: config, compiled: map[string]*policy.Policy{}, keys: map[keyed]string{}, gates: map[string]*policyGate{}, warnings: unbound}
	var errs []error
	for _, object := range config.Exceptions {
		compiled, err := e.exception(object)
		errs = append(errs, err)
		e.exceptions = append(e.exceptions, compiled)
	}
	for place := 0; len(policies) > 0; policies = policies[1:] {
		e.config.Policies = append(e.config.Policies[:place], policies[0])
		var failed error
		for _, object := range append([]string{""}, config.Values.Objects(policies[0].Object.Name())...) {
			_, err := e.key(place, object)
			failed = cmp.Or(failed, err)
		}
		if failed != nil {
			e.unread, e.config.Policies = append(e.unread, Unread{policies[0], failed}), e.config.Policies[:place]
			maps.DeleteFunc(e.keys, func(of keyed, _ string) bool { return of.place == place })
			continue
		}
		place++
	}
	return e, errors.Join(errs...)
}

// Policies returns the policies that compile; indexes are those of this list.
func (e *Evaluator) Policies() []Policy { return e.config.Policies }

// Unread returns the policies that do not compile.
func (e *Evaluator) Unread() []Unread { return e.unread }

// Policy returns the policy at an index, compiled for objects without values of their own.
func (e *Evaluator) Policy(place int) *policy.Policy { return e.compiled[e.keys[keyed{place: place}]] }

func (e *Evaluator) exception(object workload.Object) (*policy.Exception, error) {
	text, err := json.Marshal(object.Content())
	if err != nil {
		return nil, err
	}
	for _, dialect := range e.config.Compilers.Exceptions() {
		if dialect.Recognises(object.APIVersion(), object.Kind()) {
			return dialect.Compile(text, object.Source())
		}
	}
	return nil, fmt.Errorf("%s: unsupported kind %s %s; supported: PolicyException (kyverno.io/v2, v2beta1; policies.kyverno.io/v1, v1beta1, v1alpha1)", object.Source(), object.APIVersion(), object.Kind())
}

// key compiles the policy at an index for the objects of a name, once for equal values, and
// returns its key.
func (e *Evaluator) key(place int, object string) (string, error) {
	of := keyed{place: place}
	if slices.Contains(e.config.Values.Objects(e.config.Policies[place].Object.Name()), object) {
		of.object = object
	}
	if key, done := e.keys[of]; done {
		return key, nil
	}
	text, err := e.written(place, of.object)
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("%d %s", place, text)
	if _, done := e.compiled[key]; !done {
		source := e.config.Policies[place].Object.Source()
		dialect, err := e.dialect(e.config.Policies[place].Object)
		if err != nil {
			return "", err
		}
		compiled, err := dialect.Compile(text, source)
		if err != nil {
			return "", err
		}
		e.compiled[key] = compiled
	}
	e.keys[of] = key
	return key, nil
}

// written returns the document of a policy with the values for objects of a name.
func (e *Evaluator) written(place int, object string) ([]byte, error) {
	document := e.config.Policies[place].Object
	content := document.Content()
	if document.Group() == "kyverno.io" {
		var err error
		content, err = e.config.Values.Policy(content, object)
		if err != nil {
			return nil, err
		}
		if e.config.User == nil {
			content = fixtures.WithoutUsers(content)
		}
	}
	if e.config.Rewrite == nil {
		return json.Marshal(content)
	}
	return json.Marshal(e.config.Rewrite(content))
}

// dialect compiles documents of some kinds.
type dialect interface {
	Compile(document []byte, source string) (*policy.Policy, error)
}

func (e *Evaluator) dialect(object workload.Object) (dialect, error) {
	for _, dialect := range e.config.Compilers.Dialects() {
		if dialect.Recognises(object.APIVersion(), object.Kind()) {
			return dialect, nil
		}
	}
	if e.config.Compilers.Native.Recognises(object.APIVersion(), object.Kind()) {
		return e.config.Compilers.Native, nil
	}
	return nil, engine.UnsupportedKind(object)
}

// gate returns the gate with the policies at the indexes, for objects of a name.
func (e *Evaluator) gate(object string, places []int) (*policyGate, error) {
	keys := make([]string, len(places))
	policies := make([]*policy.Policy, len(places))
	for i, place := range places {
		key, err := e.key(place, object)
		if err != nil {
			return nil, err
		}
		keys[i], policies[i] = key, e.compiled[key]
	}
	all := strings.Join(keys, "\n")
	if found, ok := e.gates[all]; ok {
		return found, nil
	}
	set, err := set.New(policies...)
	if err != nil {
		return nil, err
	}
	set, err = set.With(e.exceptions...)
	if err != nil {
		return nil, err
	}
	made, err := gate.New(gate.Config{Registries: e.config.Registries, State: gate.Fixed{Policies: set, Prover: e.config.Prover}}, e.config.Options...)
	if err != nil {
		return nil, err
	}
	e.gates[all] = &policyGate{gate: made, set: set}
	return e.gates[all], nil
}

// Together returns the indexes of the policies that are evaluated together with the policy at
// the given index: those with equal values for the request and the objects of a name.
func (e *Evaluator) Together(place int, object string) []int {
	of := func(i int) string {
		said := e.config.Values.Request(e.config.Policies[i].Object.Name(), object)
		if len(said) == 0 {
			return ""
		}
		return fmt.Sprint(said) // fmt sorts the keys of a map
	}
	wanted := of(place)
	var places []int
	for i := range e.config.Policies {
		if of(i) == wanted {
			places = append(places, i)
		}
	}
	return places
}

// Evaluate evaluates the policies at the indexes against an object. The policies have to be Together;
// an empty operation is CREATE, unless values set another.
func (e *Evaluator) Evaluate(ctx context.Context, object workload.Object, operation string, places []int) Answer {
	return e.EvaluateAll(ctx, []workload.Object{object}, operation, places)[0]
}

// EvaluateAll evaluates several objects, in one batch where the policies are the same.
func (e *Evaluator) EvaluateAll(ctx context.Context, objects []workload.Object, operation string, places []int) []Answer {
	answers := make([]Answer, len(objects))
	var gates []*policyGate
	batches := map[*policyGate][]int{} // indexes in answers
	requests := make([]gate.Request, len(objects))
	scopes := e.config.Scopes
	scopes.Labels = e.labels
	for i, object := range objects {
		answers[i].Object = object
		request, err := e.request(object, operation, places)
		var with *policyGate
		if err == nil {
			with, err = e.gate(object.Name(), places)
		}
		if err != nil {
			answers[i].Err = err
			continue
		}
		requests[i] = request
		if batches[with] == nil {
			gates = append(gates, with)
		}
		batches[with] = append(batches[with], i)
	}
	for _, with := range gates {
		batch := make([]gate.Request, len(batches[with]))
		for n, i := range batches[with] {
			batch[n] = requests[i]
		}
		for n, outcome := range scopes.DecideAll(ctx, with.gate, batch, nil) {
			i := batches[with][n]
			answers[i].fill(ctx, with.set, outcome, existing{e.config.Existing, e.labels})
			if operation == "" {
				answers[i].delete(ctx, with.set, batch[n], e.config.Deletions)
			}
		}
	}
	return answers
}

// request makes the request for an object, with the values for the request.
func (e *Evaluator) request(object workload.Object, operation string, places []int) (gate.Request, error) {
	if object.IsDocument() {
		return gate.ForDocument(object), nil
	}
	request := gate.Request{Object: object}
	s := &request.Subject
	s.Operation = operation
	if e.config.User != nil {
		s.User = *e.config.User
	}
	s.User.RolesKnown = true // no other source of roles exists
	if parent, subresource, ok := e.config.Values.Parent(object.Group(), object.Version(), object.Kind()); ok {
		s.Group, s.Version, s.Kind, s.Subresource = parent.Group, parent.Version, parent.Kind, subresource
	}
	request, err := fixtures.Apply(request, e.config.Values.Request(e.config.Policies[places[0]].Object.Name(), object.Name()), e.isRead)
	if err != nil {
		return request, err
	}
	if e.config.Stored {
		request.Object, request.Old = stored.Object(request.Object), stored.Object(request.Old)
	}
	s = &request.Subject
	if e.config.NoOldObject && s.OldObject.IsAssumed() {
		s.OldObject = policy.Content{}
	}
	if s.Namespace == "" {
		s.Namespace = object.Namespace()
	}
	e.describeNamespace(s)
	return request, nil
}

// isRead reports whether the text of a policy of kyverno.io reads a member of the request. Suites define
// members that no AdmissionRequest has, such as request.mode, for variables; one that no policy reads is
// misspelt. CEL has the members of the type alone.
func (e *Evaluator) isRead(member string) bool {
	read := regexp.MustCompile(`\brequest\.` + regexp.QuoteMeta(member) + `\b`)
	return slices.ContainsFunc(e.config.Policies, func(p Policy) bool {
		return p.Object.Group() == "kyverno.io" && read.Match(p.Object.JSON())
	})
}

func (e *Evaluator) describeNamespace(s *policy.Subject) {
	if s.Namespace == "" {
		return
	}
	if labels := e.labels(s.Namespace); labels != nil {
		s.NamespaceKnown, s.NamespaceLabels = true, labels
	}
}

// labels returns the labels of a namespace; nil if they are unknown.
func (e *Evaluator) labels(namespace string) map[string]string {
	labels, ok := e.config.Values.NamespaceLabels(namespace)
	if !ok && e.config.Labels != nil {
		labels, ok = e.config.Labels(namespace)
	}
	if !ok {
		return nil
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels["kubernetes.io/metadata.name"] = namespace // as the API server sets it
	return labels
}
