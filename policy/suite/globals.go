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

// holdGiven sets an entry to the suite's value. Projections are the suite's, else those of the
// entry's document.
func (s *loaded) holdGiven(globals *evaluation.Globals, e *document.GlobalEntry) error {
	value, err := s.valueOf(globals.Expressions, e)
	if err != nil {
		return err
	}
	spec := map[string]any{"apiCall": map[string]any{"urlPath": "/apis/suite/v1/values"}}
	var projections []any
	for _, p := range e.Projections {
		projections = append(projections, map[string]any{"name": p.Name, "jmesPath": p.Path})
	}
	if projections == nil {
		for _, o := range s.cluster.Objects {
			if globalcontext.Recognises(o.APIVersion(), o.Kind()) && o.Name() == e.Name {
				written, _ := o.Content()["spec"].(map[string]any)
				projections, _ = written["projections"].([]any)
			}
		}
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
