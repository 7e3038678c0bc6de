package generate

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/requirement"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
	"github.com/quaymaster/quaymaster/policy/source"
)

// maxKinds bounds the kinds of a cloneList: each is a list of its own.
const maxKinds = 50

// cloner copies one object of the target's kind.
type cloner struct {
	target
	fromName, fromNamespace *variable.Template // fromNamespace may be nil
}

// compileClone reads clone. Errs are the errors so far.
func compileClone(o rulecontext.Options, to target, doc objectDocument, errs error) (maker, error) {
	path := to.path + ".clone"
	if doc.Clone.Name == "" {
		errs = errors.Join(errs, field.Fail(path+".name", "is empty"))
	}
	if of, known := builtin.Find(groupOf(doc.APIVersion), doc.Kind); known && of.Cluster != (doc.Clone.Namespace == "") {
		if of.Cluster {
			errs = errors.Join(errs, field.Fail(path+".namespace", "a %s is in no namespace: leave it out", doc.Kind))
		} else {
			errs = errors.Join(errs, field.Fail(path+".namespace", "is missing, and a %s is in a namespace", doc.Kind))
		}
	}
	c := cloner{target: to}
	var err [2]error
	c.fromName, err[0] = compileName(o, doc.Clone.Name, path+".name")
	c.fromNamespace, err[1] = compileName(o, doc.Clone.Namespace, path+".namespace")
	return c, errors.Join(errs, err[0], err[1], inOwn(o.Namespace, doc.Clone.Namespace, "copy objects of", path+".namespace"))
}

// produce copies the object. Without it there is none to make.
func (c cloner) produce(ctx context.Context, p *production, data variable.Context) error {
	namespace, name, err := c.place(data)
	if err != nil {
		return err
	}
	from := source.Ref{APIVersion: c.kind.APIVersion, Kind: c.kind.Kind}
	from.Name, err = text(c.fromName, data, c.path+".clone.name")
	if err == nil && from.Name == "" {
		err = field.Fail(c.path+".clone.name", "is empty once its variables are filled in")
	}
	if err != nil {
		return err
	}
	from.Namespace, err = fill(c.fromNamespace, data, c.path+".clone.namespace")
	if err != nil {
		return err
	}
	if from.Namespace == namespace && from.Name == name {
		return nil // the object itself, as in Kyverno
	}
	object, err := p.sources.Get(ctx, from)
	switch {
	case errors.Is(err, source.ErrMissing):
		return nil
	case err != nil:
		return field.Below(c.path+".clone", err)
	}
	return p.add(source.Copy(object, namespace, name), from, c.path+".clone")
}

// fill fills in a name that may be absent.
func fill(t *variable.Template, data variable.Context, path string) (string, error) {
	if t == nil {
		return "", nil
	}
	return text(t, data, path)
}

// listCloner copies the objects of a namespace that a selector matches, with their names.
type listCloner struct {
	target
	kinds  []policy.ObjectKind
	from   *variable.Template
	labels string
}

func (g *generation) compileCloneList(o rulecontext.Options, doc objectDocument, path string, known []string) (maker, error) {
	list, at := doc.CloneList, path+".cloneList"
	c := listCloner{target: target{path: path, own: o.Namespace}}
	errs := []error{
		undefinedNames("", doc.Namespace, path, known), undefinedNames("", list.Namespace, at, known),
		inOwn(o.Namespace, doc.Namespace, "generate into", path+".namespace"), inOwn(o.Namespace, list.Namespace, "copy objects of", at+".namespace"),
	}
	for name, value := range map[string]string{"apiVersion": doc.APIVersion, "kind": doc.Kind, "name": doc.Name} {
		if value != "" {
			errs = append(errs, field.Fail(path+"."+name, "is of one object, and cloneList copies several, each with its own: leave it out"))
		}
	}
	for name, value := range map[string]string{path: doc.Namespace, at: list.Namespace} {
		if value == "" {
			errs = append(errs, field.Fail(name+".namespace", "is missing, and each copy has the name of its source: write two namespaces"))
		}
	}
	if len(list.Kinds) == 0 || len(list.Kinds) > maxKinds {
		errs = append(errs, field.Fail(at+".kinds", "want 1 to %d kinds, found %d", maxKinds, len(list.Kinds)))
	}
	for i, written := range list.Kinds {
		kind, err := listedKind(written, at+".kinds["+strconv.Itoa(i)+"]")
		errs = append(errs, err)
		c.kinds = append(c.kinds, kind)
		g.addKind(kind)
	}
	var err error
	c.namespace, err = compileName(o, doc.Namespace, path+".namespace")
	errs = append(errs, err)
	c.from, err = compileName(o, list.Namespace, at+".namespace")
	errs = append(errs, err)
	if list.Selector != nil {
		by, err := requirement.Selector(list.Selector)
		if err == nil {
			c.labels = by.String()
		}
		errs = append(errs, field.Below(at+".selector", err))
	}
	return c, errors.Join(errs...)
}

// listedKind reads a kind of a cloneList, VERSION/KIND or GROUP/VERSION/KIND, of objects in namespaces.
func listedKind(written, path string) (policy.ObjectKind, error) {
	i := strings.LastIndex(written, "/")
	if i < 0 {
		return policy.ObjectKind{}, field.Fail(path, "%q: want VERSION/KIND or GROUP/VERSION/KIND, as in v1/ConfigMap", written)
	}
	kind := policy.ObjectKind{APIVersion: written[:i], Kind: written[i+1:]}
	if err := plainKind(kind.APIVersion, kind.Kind, path); err != nil {
		return kind, err
	}
	if of, known := builtin.Find(groupOf(kind.APIVersion), kind.Kind); known && of.Cluster {
		return kind, document.Unsupported(path, "a "+kind.Kind+", which is in no namespace, so that its copy would be itself,")
	}
	return kind, nil
}

// produce copies the objects.
func (c listCloner) produce(ctx context.Context, p *production, data variable.Context) error {
	namespace, _, err := c.place(data)
	if err != nil {
		return err
	}
	from, err := text(c.from, data, c.path+".cloneList.namespace")
	if err != nil {
		return err
	}
	if namespace == "" || from == "" {
		return field.Fail(c.path, "namespace and cloneList.namespace must not be empty once their variables are filled in")
	}
	if from == namespace {
		return nil // the objects themselves, as in Kyverno
	}
	for _, kind := range c.kinds {
		of := source.Ref{APIVersion: kind.APIVersion, Kind: kind.Kind, Namespace: from, Labels: c.labels}
		objects, err := p.sources.List(ctx, of)
		if err != nil {
			return field.Below(c.path+".cloneList", err)
		}
		for _, object := range objects {
			metadata, _ := object["metadata"].(map[string]any)
			name, _ := metadata["name"].(string)
			one := of
			one.Name, one.Labels = name, ""
			if err := p.add(source.Copy(object, namespace, name), one, c.path+".cloneList"); err != nil {
				return err
			}
		}
	}
	return nil
}
