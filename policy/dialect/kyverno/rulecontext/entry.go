package rulecontext

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// maxEntries bounds the entries of one context.
const maxEntries = 200

// Options are the dependencies of entries. If a dependency is nil, an entry that needs it fails
// with an error.
type Options struct {
	// Engine evaluates expressions; required.
	Engine  *jmespath.Engine
	Lookup  Lookup
	Caller  Caller
	Images  Images
	Globals Globals
	// Namespace is the one that entries may read from; empty means any.
	Namespace string
	// SecretNamespace is where registry secrets are that are named without one.
	SecretNamespace string
}

// Entries are the entries of a context, in their order. They are immutable and safe
// for concurrent use.
type Entries struct{ list []entry }

// entry is one of them.
type entry struct {
	name, path string
	loader     loader
	// adds: what the entry finds is added to the members of a former entry of its name.
	adds bool
}

// loader computes the value of an entry.
type loader interface {
	load(ctx context.Context, data variable.Context) (any, error)
	// reads records the context members that the loader reads.
	reads(r *reads)
}

// reads are the members of the context that a loader reads, as far as they are known before the
// evaluation.
type reads struct{ names []string }

func (r *reads) template(t *variable.Template) {
	if t != nil {
		names, _ := t.Reads()
		r.names = append(r.names, names...)
	}
}

func (r *reads) expression(e *variable.Expression, on bool) {
	if e != nil {
		names, _ := e.Reads(on)
		r.names = append(r.names, names...)
	}
}

// Reserved reports whether a name is one of those that every rule's context has.
func Reserved(name string) bool {
	switch name {
	case "request", "images", "serviceAccountName", "serviceAccountNamespace":
		return true
	}
	return false
}

// Compile reads entries. Path is their location, for errors, which refer to fields. Known are
// names that exist before the entries, in addition to those of every context: an entry may
// redefine one of them and read its previous value.
func Compile(options Options, list []Document, path string, known ...string) (Entries, error) {
	if len(list) > maxEntries {
		return Entries{}, field.Fail(path, "the number of entries %w of %d", jmespath.ErrTooLarge, maxEntries)
	}
	var out Entries
	c := compiler{options.Reading(list), variable.Context{}}
	var errs []error
	for i, doc := range list {
		place := path + "[" + strconv.Itoa(i) + "]"
		errs = append(errs, checkName(doc, place+".name"))
		loads, err := c.loader(doc, place)
		errs = append(errs, err)
		doc.constant(options.Engine, c.constants)
		out.list = append(out.list, entry{name: doc.Name, path: place, loader: loads, adds: doc.Variable == nil})
	}
	if err := errors.Join(errs...); err != nil {
		return Entries{}, err
	}
	return out, errors.Join(out.inOrder(known), undefinedEntries(list, path, known))
}

// checkName refuses a name that every context has, or a member of one. Kyverno reads a name with
// dots as a path, where the entry is a variable.
func checkName(doc Document, path string) error {
	head, _, nested := strings.Cut(doc.Name, ".")
	switch {
	case doc.Name == "" || Reserved(head) || head == age.Variable:
		return field.Fail(path, "%q cannot be the name of a variable", doc.Name)
	case nested && doc.Variable != nil:
		return field.Fail(path, "%q is a path into %q, which is not supported: write one entry %q with the whole value", doc.Name, head, head)
	}
	return nil
}

// inOrder refuses an entry that reads a later one or itself: that variable would never be defined.
func (e Entries) inOrder(known []string) error {
	var errs []error
	for i, one := range e.list {
		var r reads
		one.loader.reads(&r)
		for _, name := range r.names {
			means := func(other entry) bool { return other.name == name }
			if slices.Contains(known, name) || slices.ContainsFunc(e.list[:i], means) || !slices.ContainsFunc(e.list[i:], means) {
				continue
			}
			if name == one.name {
				errs = append(errs, field.Fail(one.path, "reads %s, which is itself", name))
			} else {
				errs = append(errs, field.Fail(one.path, "reads %s, which comes later: put it before", name))
			}
		}
	}
	return errors.Join(errs...)
}

// Len returns how many entries there are.
func (e Entries) Len() int { return len(e.list) }

// Names returns the names of the entries.
func (e Entries) Names() []string {
	names := make([]string, len(e.list))
	for i, one := range e.list {
		names[i] = one.name
	}
	return names
}

// Add adds the entries to data, which the caller created. Each entry is loaded when the first
// expression reads it, and reads the members of data and the previous entries. It ends with ctx.
// An error of an entry names the entry.
func (e Entries) Add(ctx context.Context, data variable.Context) {
	if len(e.list) == 0 {
		return
	}
	base := make(variable.Context, len(data)+len(e.list))
	for name, value := range data {
		base[name] = value
	}
	made := make([]*variable.Deferred, len(e.list))
	for i := range e.list {
		one := &e.list[i]
		made[i] = variable.Defer(func() (any, error) {
			seen := base
			if i > 0 {
				seen = make(variable.Context, len(base)+i)
				for name, value := range base {
					seen[name] = value
				}
				for j, earlier := range made[:i] {
					seen[e.list[j].name] = earlier
				}
			}
			return one.found(ctx, seen)
		})
		data[one.name] = made[i]
	}
}

func (e *entry) found(ctx context.Context, data variable.Context) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, field.Below(e.path, unfound(err))
	}
	value, err := e.loader.load(ctx, data)
	if err == nil {
		value, err = jmespath.Normalize(value)
	}
	if former, is := data[e.name]; is && e.adds && err == nil {
		value, err = variable.Merge(former, value)
	}
	return value, field.Below(e.path, unfound(err))
}

// unfoundError means that a member of the context is unknown. It is not absent, and so no default
// replaces it.
type unfoundError struct{ error }

func (e *unfoundError) Unwrap() error { return e.error }

// unfound makes an error an unfoundError, unless the error means that a value is absent.
func unfound(err error) error {
	if _, absent := errors.AsType[*jmespath.UndefinedError](err); err == nil || absent {
		return err
	}
	return &unfoundError{err}
}

type compiler struct {
	Options
	constants variable.Context // the former entries that are constant
}

// loader compiles one entry.
func (c compiler) loader(doc Document, path string) (loader, error) {
	kinds := 0
	for _, is := range []bool{doc.ConfigMap != nil, doc.Variable != nil, doc.APICall != nil, doc.ImageRegistry != nil, doc.GlobalReference != nil} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return nil, field.Fail(path, "want one of configMap, variable, apiCall, imageRegistry and globalReference, found %d", kinds)
	case doc.ConfigMap != nil:
		return c.configMap(doc.ConfigMap, path+".configMap")
	case doc.APICall != nil:
		return c.apiCall(doc.APICall, path+".apiCall")
	case doc.ImageRegistry != nil:
		return c.image(doc.ImageRegistry, path+".imageRegistry")
	case doc.GlobalReference != nil:
		return c.global(doc.GlobalReference, path+".globalReference")
	}
	return c.variable(doc.Variable, path+".variable")
}

func (c compiler) template(doc any, path string) (*variable.Template, error) {
	t, err := variable.Compile(c.Engine, doc)
	return t, field.Below(path, err)
}

// expression reads a jmesPath, in which there may be variables, and pastes constants into it; nil for none.
func (c compiler) expression(source, path string) (*variable.Expression, error) {
	if source == "" {
		return nil, nil
	}
	e, err := variable.CompileExpression(c.Engine, variable.Substitute(c.Engine, source, c.constants), "")
	return e, field.Below(path, err)
}

// text fills a template in where a string is wanted.
func text(t *variable.Template, data variable.Context) (string, error) {
	value, err := t.Execute(data)
	if err != nil {
		return "", err
	}
	return jmespath.Text(value), nil
}

// absent is the error for an entry that is nothing.
func absent(why string) error {
	return &jmespath.UndefinedError{Expression: why, Err: errors.New("is null, and there is no default")}
}

// selected applies a jmesPath to the loaded value.
func selected(e *variable.Expression, found any, data variable.Context) (any, error) {
	if e == nil {
		return found, nil
	}
	plain, err := jmespath.Normalize(found)
	if err != nil {
		return nil, err
	}
	value, err := e.EvaluateOn(plain, data)
	if err != nil {
		return nil, fmt.Errorf("jmesPath: %w", err)
	}
	return value, nil
}
