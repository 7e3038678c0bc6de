package generating

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
	"github.com/quaymaster/quaymaster/policy/source"
)

const (
	// maxObjects bounds the objects of one trigger: the author of a trigger may choose how often an
	// expression applies.
	maxObjects = 1000
	// maxMade bounds their memory, in bytes: they exist at the same time.
	maxMade = 16 << 20
)

// production holds the objects of one evaluation, and what they are made of. It is for one goroutine.
type production struct {
	rule    *generation
	sources *source.Reader
	outside cel.Resources // nil: none
	// from are the objects that were read, by kind, namespace and name.
	from    map[[3]string]source.Ref
	objects []policy.Downstream
	room    int
}

func newProduction(g *generation, sources source.Objects) *production {
	return &production{rule: g, sources: source.NewReader(sources, g.guard), from: map[[3]string]source.Ref{}, room: maxMade}
}

// read returns what was read. Sources are missing only for a result: an expression may do without one.
func (p *production) read(isMissing bool) source.Read {
	read := p.sources.Read()
	if !isMissing {
		read.Missing = nil
	}
	return read
}

func (p *production) undecided(err error, path string) policy.Generated {
	reasons, _ := kyvernocel.Reasons(err, path)
	return policy.Generated{Result: policy.Indeterminate, Reasons: reasons, Read: p.read(false)}
}

var _ cel.Resources = (*production)(nil)

// Get implements cel.Resources.
func (p *production) Get(ctx context.Context, of cel.ResourceRef) (map[string]any, error) {
	if strings.Contains(of.Resource, "/") { // a subresource is no object that could be copied
		if p.outside == nil {
			return nil, unavailable()
		}
		return p.outside.Get(ctx, of)
	}
	from := refOf(of)
	from.Name = of.Name
	object, err := p.sources.Get(ctx, from)
	if err != nil {
		return nil, looked(err)
	}
	p.from[identity(object)] = from
	return object, nil
}

// List implements cel.Resources.
func (p *production) List(ctx context.Context, of cel.ResourceRef, having map[string]string) (map[string]any, error) {
	from := refOf(of)
	selector, err := labels.ValidatedSelectorFromSet(having)
	if err != nil {
		return nil, err
	}
	from.Labels = selector.String()
	objects, err := p.sources.List(ctx, from)
	if err != nil {
		return nil, looked(err)
	}
	items := make([]any, len(objects))
	for i, object := range objects {
		one := refOf(of)
		at := identity(object)
		one.Namespace, one.Name = at[1], at[2]
		p.from[at], items[i] = one, object
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items}, nil
}

// Post implements cel.Resources.
func (p *production) Post(ctx context.Context, of cel.ResourceRef, object map[string]any) (map[string]any, error) {
	if p.outside == nil {
		return nil, unavailable()
	}
	return p.outside.Post(ctx, of, object)
}

// Kind implements cel.Resources.
func (p *production) Kind(ctx context.Context, apiVersion, kind string) (group, version, resource string, err error) {
	if p.outside == nil {
		return "", "", "", unavailable()
	}
	return p.outside.Kind(ctx, apiVersion, kind)
}

func unavailable() error {
	return &cel.UnknownError{Gaps: []error{errors.New("the cluster cannot be read here")}}
}

// looked distinguishes an indeterminate result from an answer: that an object does not exist is an answer.
func looked(err error) error {
	if errors.Is(err, source.ErrMissing) {
		return err
	}
	return &cel.UnknownError{Gaps: []error{err}}
}

func refOf(of cel.ResourceRef) source.Ref {
	return source.Ref{APIVersion: schema.GroupVersion{Group: of.Group, Version: of.Version}.String(), Resource: of.Resource, Namespace: of.Namespace}
}

func text(members map[string]any, name string) string {
	s, _ := members[name].(string)
	return s
}

// identity is the kind with its group, the namespace and the name of an object.
func identity(object map[string]any) [3]string {
	metadata, _ := object["metadata"].(map[string]any)
	kind := schema.FromAPIVersionAndKind(text(object, "apiVersion"), text(object, "kind"))
	return [3]string{kind.GroupKind().String(), text(metadata, "namespace"), text(metadata, "name")}
}

// apply implements generator.Apply: the namespace, if the policy has none, and the objects.
func (p *production) apply(_ context.Context, arguments []ref.Val) (any, error) {
	namespace := p.rule.namespace
	if namespace == "" {
		name, _ := arguments[0].(types.String)
		namespace, arguments = string(name), arguments[1:]
	}
	native, err := library.Native(arguments[0])
	if err != nil {
		return nil, fmt.Errorf("generator.Apply: %w", err)
	}
	list, _ := native.([]any)
	for _, item := range list {
		object, is := item.(map[string]any)
		if !is {
			return nil, errors.New("generator.Apply: want a list of objects")
		}
		if err := p.addAll(object, namespace); err != nil {
			return nil, fmt.Errorf("generator.Apply: %w", err)
		}
	}
	return true, nil
}

// addAll adds an object, or the items of a list of objects.
func (p *production) addAll(object map[string]any, namespace string) error {
	items, isList := object["items"].([]any)
	if !isList || !strings.HasSuffix(text(object, "kind"), "List") {
		return p.add(object, namespace)
	}
	for _, item := range items {
		one, is := item.(map[string]any)
		if !is {
			return errors.New("an item of a list is no object")
		}
		if err := p.add(one, namespace); err != nil {
			return err
		}
	}
	return nil
}

// add adds an object in a namespace. One for the same place replaces an earlier one, as in Kyverno, which
// writes them one after the other.
func (p *production) add(object map[string]any, namespace string) error {
	cleaned, err := plain(object)
	if err != nil {
		return err
	}
	object = cleaned.(map[string]any)
	apiVersion, kind, name := text(object, "apiVersion"), text(object, "kind"), identity(object)[2]
	switch {
	case apiVersion == "" || kind == "":
		return errors.New("an object has no apiVersion or kind")
	case name == "":
		return fmt.Errorf("a %s has no metadata.name", kind)
	}
	of, known := builtin.Find(schema.FromAPIVersionAndKind(apiVersion, kind).Group, kind)
	if known && of.Cluster {
		if p.rule.namespace != "" {
			return fmt.Errorf("a policy of namespace %s cannot generate %s %s, which is in no namespace", p.rule.namespace, kind, name)
		}
		namespace = ""
	}
	made := policy.Downstream{Synchronize: p.rule.terms.Synchronize}
	from, isCopy := p.from[identity(object)]
	if isCopy {
		if from.Namespace == namespace {
			return nil // the object itself
		}
		made.Object, made.Source, made.Orphan = source.Copy(object, namespace, name), from, true
	} else {
		made.Object = placed(object, namespace)
	}
	p.room -= limit.Held(made.Object, p.room)
	switch i := slices.IndexFunc(p.objects, func(had policy.Downstream) bool { return identity(had.Object) == identity(made.Object) }); {
	case p.room < 0:
		return fmt.Errorf("the objects for one trigger exceed %d bytes", maxMade)
	case i >= 0:
		p.objects[i] = made
	case len(p.objects) == maxObjects:
		return fmt.Errorf("more than %d objects for one trigger", maxObjects)
	default:
		p.objects = append(p.objects, made)
	}
	return nil
}

// placed puts an object into a namespace, without what the API server writes.
func placed(object map[string]any, namespace string) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	for _, name := range []string{"namespace", "uid", "selfLink", "creationTimestamp", "managedFields", "resourceVersion", "generation"} {
		delete(metadata, name)
	}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return object
}

// plain copies a value of an expression as decoded JSON of an API server.
func plain(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(v))
		for key, member := range v {
			if member == nil {
				continue // the API server keeps none
			}
			var err error
			copied[key], err = plain(member)
			if err != nil {
				return nil, err
			}
		}
		return copied, nil
	case []any:
		copied := make([]any, len(v))
		for i, item := range v {
			var err error
			copied[i], err = plain(item)
			if err != nil {
				return nil, err
			}
		}
		return copied, nil
	case uint64:
		if v > math.MaxInt64 {
			return nil, fmt.Errorf("the number %d is too large", v)
		}
		return int64(v), nil
	case []byte:
		return base64.StdEncoding.EncodeToString(v), nil
	}
	return value, nil
}
