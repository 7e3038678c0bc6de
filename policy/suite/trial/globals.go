package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/workload"
)

func isGlobalEntry(o workload.Object) bool {
	return globalcontext.Recognises(o.APIVersion(), o.Kind())
}

// Live is a cluster that global entries read, in place of the documents.
type Live interface {
	// List returns the objects of a resource, as a list.
	List(ctx context.Context, of cel.ResourceRef) (any, error)
	// Call returns the answer to a call of the API server.
	Call(ctx context.Context, call rulecontext.APICall) (any, error)
}

// HoldGlobals evaluates the GlobalContextEntries of the documents against the documents, or against a
// cluster where live is not nil. Rules that read an entry without a value get its error.
func (r *Input) HoldGlobals(ctx context.Context, live Live) (*globalcontext.Store, error) {
	held := globalcontext.NewStore(nil)
	documents := slices.Concat(r.globals, slices.DeleteFunc(slices.Clone(r.Objects), func(o workload.Object) bool { return !isGlobalEntry(o) }))
	if len(documents) == 0 {
		return held, nil
	}
	globals, err := evaluation.NewGlobals(held)
	if err != nil {
		return nil, err
	}
	for _, document := range documents {
		text, err := json.Marshal(document.Content())
		if err == nil {
			err = globals.Put(text, func(entry *globalcontext.Entry) (any, error) { return r.globalValue(ctx, entry, live) })
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", document.Source(), err)
		}
	}
	return held, nil
}

// globalValue is the value of an entry.
func (r *Input) globalValue(ctx context.Context, entry *globalcontext.Entry, live Live) (any, error) {
	switch {
	case entry.Resource == nil && (live == nil || entry.Call.URL != ""):
		return nil, errors.New("API calls are not made for files: " + r.advice.Value)
	case entry.Resource == nil:
		return live.Call(ctx, rulecontext.APICall{Method: entry.Call.Method, Path: entry.Call.Path})
	}
	of := entry.Resource
	if live != nil {
		return live.List(ctx, cel.ResourceRef{Group: of.Group, Version: of.Version, Resource: of.Resource, Namespace: of.Namespace})
	}
	items := []any{}
	for _, object := range slices.Concat(r.Objects, r.beside) {
		is := func(k constraint.Resource) bool {
			return k.Name == of.Resource && k.Group == of.Group && k.Group == object.Group() && k.Kind == object.Kind()
		}
		if slices.ContainsFunc(slices.Concat(r.evaluated, r.kinds), is) && (of.Namespace == "" || object.Namespace() == of.Namespace) {
			items = append(items, object.Content())
		}
	}
	return items, nil
}
