package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/suite/document"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/workload"
)

// hold evaluates the entries of the suite, and those with a document among its objects.
func (s *loaded) hold() error {
	isEntry := func(o workload.Object) bool { return globalcontext.Recognises(o.APIVersion(), o.Kind()) }
	if len(s.Globals) == 0 && !slices.ContainsFunc(s.cluster.Objects, isEntry) {
		return nil
	}
	globals, err := evaluation.NewGlobals(s.cluster.Globals)
	if err != nil {
		return err
	}
	given := map[string]bool{}
	for i := range s.Globals {
		e := &s.Globals[i]
		if given[e.Name] {
			return fmt.Errorf("globalContextEntries[%d]: %s is there twice", i, e.Name)
		}
		given[e.Name] = true
		if err := s.holdGiven(globals, e); err != nil {
			return fmt.Errorf("globalContextEntries[%d]: %w", i, err)
		}
	}
	for _, o := range s.cluster.Objects {
		if !isEntry(o) || given[o.Name()] {
			continue
		}
		if err := s.holdDocument(globals, o); err != nil {
			return fmt.Errorf("%s: %w", o.Source(), err)
		}
	}
	return nil
}

// holdGiven sets an entry to the suite's value. With projections of the suite it is an object of them, as in Kyverno's
// command line; the entry's document has projections of its own.
func (s *loaded) holdGiven(globals *evaluation.Globals, e *document.GlobalEntry) error {
	value, err := s.valueOf(globals.Expressions, e)
	if err != nil {
		return err
	}
	spec := map[string]any{"apiCall": map[string]any{"urlPath": "/apis/suite/v1/values"}}
	var projections []any
	if len(e.Projections) > 0 {
		value, projections, err = projected(globals.Expressions, e, value)
		if err != nil {
			return err
		}
	} else {
		projections = s.writtenProjections(e.Name)
	}
	if projections != nil {
		spec["projections"] = projections
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "kyverno.io/v2", "kind": "GlobalContextEntry", "metadata": map[string]any{"name": e.Name}, "spec": spec,
	})
	if err != nil {
		return err
	}
	return globals.Put(text, func(*globalcontext.Entry) (any, error) { return value, nil })
}

// projected returns an object of the suite's projections of a value, and projections of that object to its members.
func projected(expressions *jmespath.Engine, e *document.GlobalEntry, value any) (any, []any, error) {
	members, projections := map[string]any{}, []any{}
	for i, p := range e.Projections {
		place := fmt.Sprintf("projections[%d]", i)
		if _, twice := members[p.Name]; p.Name == "" || twice {
			return nil, nil, fmt.Errorf("%s.name: %q is empty, or there twice", place, p.Name)
		}
		query, err := expressions.Compile(p.Path)
		if err != nil {
			return nil, nil, fmt.Errorf("%s.path: %w", place, err)
		}
		members[p.Name], err = query.Search(value)
		if err != nil {
			return nil, nil, fmt.Errorf("%s.path: %w", place, err)
		}
		name, err := json.Marshal(p.Name)
		if err != nil {
			return nil, nil, err
		}
		projections = append(projections, map[string]any{"name": p.Name, "jmesPath": string(name)})
	}
	return members, projections, nil
}

// writtenProjections returns the projections of an entry's document; nil for none.
func (s *loaded) writtenProjections(name string) (projections []any) {
	for _, o := range s.cluster.Objects {
		if globalcontext.Recognises(o.APIVersion(), o.Kind()) && o.Name() == name {
			written, _ := o.Content()["spec"].(map[string]any)
			projections, _ = written["projections"].([]any)
		}
	}
	return projections
}

// valueOf returns the suite's value of an entry.
func (s *loaded) valueOf(expressions *jmespath.Engine, e *document.GlobalEntry) (any, error) {
	value := e.Data
	for _, name := range e.ResourceFiles {
		objects, err := readObjects(s.file(name))
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			e.Resources = append(e.Resources, object.Content())
		}
	}
	switch {
	case value == nil && e.Resources == nil:
		return nil, errors.New("want data, resources or resourceFiles")
	case value == nil:
		list := make([]any, len(e.Resources))
		for i, object := range e.Resources {
			list[i] = object
		}
		value = list
	}
	if e.FieldPath == "" {
		return value, nil
	}
	query, err := expressions.Compile(e.FieldPath)
	if err != nil {
		return nil, fmt.Errorf("fieldPath: %w", err)
	}
	return query.Search(value)
}

// holdDocument evaluates an entry's document against the objects of the suite, or the suite's
// calls.
func (s *loaded) holdDocument(globals *evaluation.Globals, o workload.Object) error {
	text, err := json.Marshal(o.Content())
	if err != nil {
		return err
	}
	return globals.Put(text, func(e *globalcontext.Entry) (any, error) {
		ctx := context.Background() // evaluation opens no connection
		switch {
		case e.Resource != nil:
			list, err := s.cluster.List(ctx, cel.ResourceRef{
				Group: e.Resource.Group, Version: e.Resource.Version, Resource: e.Resource.Resource, Namespace: e.Resource.Namespace,
			}, nil)
			if err != nil {
				return nil, err
			}
			return list["items"], nil
		case e.Call.URL != "":
			return s.cluster.Answer(strings.ToUpper(e.Call.Method), e.Call.URL)
		}
		return s.cluster.API(ctx, rulecontext.APICall{Method: e.Call.Method, Path: e.Call.Path})
	})
}
