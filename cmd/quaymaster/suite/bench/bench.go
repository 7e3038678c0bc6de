package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/engine"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/suite/given"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/workload"
)

// Config is what a Bench rests on.
type Config struct {
	// Compilers compile the policies; required, as are Registries and Prover.
	Compilers  engine.Compilers
	Registries gate.Registries
	Prover     gate.Prover
	// Policies are asked, in their order; at least one. Exceptions leave objects out.
	Policies   []Policy
	Exceptions []workload.Object
	// Targets are objects that are there already, which rules may alter.
	Targets []workload.Object
	// Values are given in place of look-ups; nil for none.
	Values *given.Values
	// User is who asks; nil where nobody says, and then rules match whoever asks.
	User *policy.User
	// Labels returns the labels of a namespace, and whether they are known; nil knows
	// none.
	Labels func(namespace string) (map[string]string, bool)
	// Rewrite changes a policy's document before it is compiled; nil leaves it.
	Rewrite func(document any) any
	// Options are those of gates.
	Options []gate.Option
}

// Policy is a policy as it is written.
type Policy struct{ Object workload.Object }

// Is reports whether the policy is meant by a name: name, or namespace/name.
func (p Policy) Is(name string) bool {
	namespace, short, ok := strings.Cut(name, "/")
	if !ok {
		return p.Object.Name() == name
	}
	return p.Object.Name() == short && p.Object.Namespace() == namespace
}

// Annotation returns an annotation of the document; empty where there is none.
func (p Policy) Annotation(key string) string {
	meta, _ := p.Object.Content()["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	value, _ := annotations[key].(string)
	return value
}

// Made reports whether a compiled policy was made of the document.
func (p Policy) Made(compiled *policy.Policy) bool {
	return compiled.Kind == p.Object.Kind() && compiled.Name == p.Object.Name() &&
		(compiled.Namespace == "" || compiled.Namespace == p.Object.Namespace())
}

// Bench asks policies about objects. It is for one goroutine.
type Bench struct {
	config     Config
	exceptions []*policy.Exception
	compiled   map[string]*policy.Policy // by the policy's place and what is given for it
	keys       map[keyed]string          // of compiled
	asked      map[string]*asked         // by the policies that they have
}

// keyed is a policy for the objects of a name.
type keyed struct {
	place  int
	object string
}

// asked is a gate with the policies of its set.
type asked struct {
	gate *gate.Gate
	set  *policy.Set
}

// New compiles the policies, and refuses those that do not compile.
func New(config Config) (*Bench, error) {
	if len(config.Policies) == 0 || config.Registries == nil || config.Prover == nil {
		return nil, errors.New("bench: want policies, registries and a prover")
	}
	if config.Values == nil {
		config.Values = &given.Values{}
	}
	b := &Bench{config: config, compiled: map[string]*policy.Policy{}, keys: map[keyed]string{}, asked: map[string]*asked{}}
	var errs []error
	for _, object := range config.Exceptions {
		compiled, err := b.exception(object)
		errs = append(errs, err)
		b.exceptions = append(b.exceptions, compiled)
	}
	for place := range config.Policies {
		_, err := b.key(place, "")
		errs = append(errs, err)
	}
	return b, errors.Join(errs...)
}

// Policy returns the policy at a place, compiled as it is for objects of which nothing
// is said in particular.
func (b *Bench) Policy(place int) *policy.Policy { return b.compiled[b.keys[keyed{place: place}]] }

func (b *Bench) exception(object workload.Object) (*policy.Exception, error) {
	text, err := json.Marshal(object.Content())
	if err != nil {
		return nil, err
	}
	for _, dialect := range b.config.Compilers.Exceptions() {
		if dialect.Recognises(object.APIVersion(), object.Kind()) {
			return dialect.Compile(text, object.Source())
		}
	}
	return nil, fmt.Errorf("%s: %s %s is no exception that this version reads", object.Source(), object.APIVersion(), object.Kind())
}

// key compiles the policy at a place for the objects of a name, once for all that the
// same is given for, and returns its key.
func (b *Bench) key(place int, object string) (string, error) {
	of := keyed{place: place}
	if b.config.Values.Particular(b.config.Policies[place].Object.Name(), object) {
		of.object = object
	}
	if key, done := b.keys[of]; done {
		return key, nil
	}
	text, err := b.written(place, of.object)
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("%d %s", place, text)
	if _, done := b.compiled[key]; !done {
		source := b.config.Policies[place].Object.Source()
		dialect, err := b.dialect(b.config.Policies[place].Object)
		if err != nil {
			return "", err
		}
		compiled, err := dialect.Compile(text, source)
		if err != nil {
			return "", err
		}
		b.compiled[key] = compiled
	}
	b.keys[of] = key
	return key, nil
}

// written returns the document of a policy with what is given for objects of a name.
func (b *Bench) written(place int, object string) ([]byte, error) {
	document := b.config.Policies[place].Object
	content := document.Content()
	if document.Group() == "kyverno.io" {
		var err error
		if content, err = b.config.Values.Policy(content, object); err != nil {
			return nil, err
		}
		if b.config.User == nil {
			content = given.WithoutUsers(content)
		}
	}
	if b.config.Rewrite == nil {
		return json.Marshal(content)
	}
	return json.Marshal(b.config.Rewrite(content))
}

func (b *Bench) dialect(object workload.Object) (catalog.Dialect, error) {
	for _, dialect := range b.config.Compilers.Dialects() {
		if dialect.Recognises(object.APIVersion(), object.Kind()) {
			return dialect, nil
		}
	}
	return nil, fmt.Errorf("%s: %s %s is not a policy that this version reads", object.Source(), object.APIVersion(), object.Kind())
}

// gate returns one with the policies at places, as they are for objects of a name.
func (b *Bench) gate(object string, places []int) (*asked, error) {
	keys := make([]string, len(places))
	policies := make([]*policy.Policy, len(places))
	for i, place := range places {
		key, err := b.key(place, object)
		if err != nil {
			return nil, err
		}
		keys[i], policies[i] = key, b.compiled[key]
	}
	all := strings.Join(keys, "\n")
	if found, ok := b.asked[all]; ok {
		return found, nil
	}
	set, err := policy.NewSet(policies...)
	if err != nil {
		return nil, err
	}
	if set, err = set.With(b.exceptions...); err != nil {
		return nil, err
	}
	made, err := gate.New(gate.Config{Registries: b.config.Registries, State: gate.Fixed{Policies: set, Prover: b.config.Prover}}, b.config.Options...)
	if err != nil {
		return nil, err
	}
	b.asked[all] = &asked{gate: made, set: set}
	return b.asked[all], nil
}

// Together returns the places of the policies that are asked together with the one at
// a place about the objects of a name: those for which the same is said of the
// request.
func (b *Bench) Together(place int, object string) []int {
	of := func(i int) string {
		said := b.config.Values.Request(b.config.Policies[i].Object.Name(), object)
		if len(said) == 0 {
			return ""
		}
		return fmt.Sprint(said) // of a map it is sorted by its keys
	}
	wanted := of(place)
	var places []int
	for i := range b.config.Policies {
		if of(i) == wanted {
			places = append(places, i)
		}
	}
	return places
}

// Ask asks the policies at places about an object. They have to be Together; an empty
// operation is CREATE, unless values say another.
func (b *Bench) Ask(ctx context.Context, object workload.Object, operation string, places []int) Answer {
	return b.AskAll(ctx, []workload.Object{object}, operation, places)[0]
}

// AskAll asks about several objects, all at once where the same policies are asked.
func (b *Bench) AskAll(ctx context.Context, objects []workload.Object, operation string, places []int) []Answer {
	answers := make([]Answer, len(objects))
	var gates []*asked
	batches := map[*asked][]int{} // places in answers
	requests := make([]gate.Request, len(objects))
	for i, object := range objects {
		answers[i].Object = object
		request, err := b.request(object, operation, places)
		var with *asked
		if err == nil {
			with, err = b.gate(object.Name(), places)
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
		for n, outcome := range with.gate.DecideAll(ctx, batch, nil) {
			i := batches[with][n]
			answers[i].fill(ctx, with.set, outcome, b.config.Targets)
		}
	}
	return answers
}

// request makes the request about an object, with what values say of it.
func (b *Bench) request(object workload.Object, operation string, places []int) (gate.Request, error) {
	if object.IsDocument() {
		return gate.ForDocument(object), nil
	}
	request := gate.Request{Object: object}
	s := &request.Subject
	s.Operation = operation
	if b.config.User != nil {
		s.User = *b.config.User
	}
	s.User.RolesKnown = true // there is nobody else to know
	if parent, subresource, ok := b.config.Values.Parent(object.Group(), object.Version(), object.Kind()); ok {
		s.Group, s.Version, s.Kind, s.Subresource = parent.Group, parent.Version, parent.Kind, subresource
	}
	request, err := given.Apply(request, b.config.Values.Request(b.config.Policies[places[0]].Object.Name(), object.Name()))
	if err != nil {
		return request, err
	}
	s = &request.Subject
	if s.Namespace == "" {
		s.Namespace = object.Namespace()
	}
	b.describeNamespace(s)
	return request, nil
}

func (b *Bench) describeNamespace(s *policy.Subject) {
	if s.Namespace == "" {
		return
	}
	labels, ok := b.config.Values.NamespaceLabels(s.Namespace)
	if !ok && b.config.Labels != nil {
		labels, ok = b.config.Labels(s.Namespace)
	}
	if !ok {
		return
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels["kubernetes.io/metadata.name"] = s.Namespace // as the API server sets it
	s.NamespaceKnown, s.NamespaceLabels = true, labels
}
