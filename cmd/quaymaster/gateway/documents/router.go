package documents

import (
	"context"
	"log/slog"
	"slices"

	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// router is the document.Consumer of global context entries, mirrors and policies.
type router struct {
	globals, mirrors, policies document.Consumer
	told                       bool
}

// Changed implements document.Consumer: each consumer gets its own documents, and the first time
// also an empty list.
func (s *router) Changed(ctx context.Context, upserts []document.Document, deletes []document.Key) {
	// Policies last: a new policy must not be evaluated without its dependencies.
	for _, to := range []struct {
		consumer document.Consumer
		owns     func(document.Key) bool
	}{
		{s.globals, kinds.IsGlobalContext},
		{s.mirrors, func(key document.Key) bool { return !kinds.IsGlobalContext(key) && !kinds.IsPolicy(key) }},
		{s.policies, kinds.IsPolicy},
	} {
		own := slices.DeleteFunc(slices.Clone(upserts), func(d document.Document) bool { return !to.owns(d.Key) })
		gone := slices.DeleteFunc(slices.Clone(deletes), func(key document.Key) bool { return !to.owns(key) })
		if !s.told || len(own)+len(gone) > 0 {
			to.consumer.Changed(ctx, own, gone)
		}
	}
	s.told = true
}

// documentLog is the document.Observer of the log.
type documentLog struct{ log *slog.Logger }

// Pruned implements document.Observer.
func (d documentLog) Pruned(kind schema.GroupVersionResource, place string) {
	d.log.Warn("the API server drops unknown fields of these documents before anybody can see and refuse them: a misspelt field is lost without a word",
		slog.String("resource", kind.GroupResource().String()), slog.String("version", kind.Version), slog.String("below", place))
}

// Served implements document.Observer.
func (d documentLog) Served(kind schema.GroupVersionResource, served bool) {
	d.log.Info("custom resource", slog.String("resource", kind.GroupResource().String()), slog.String("version", kind.Version), slog.Bool("watched", served))
}

// Failed implements document.Observer.
func (d documentLog) Failed(err error) {
	d.log.Warn("policies and mirrors cannot be watched; those that were active stay so", slog.String("error", err.Error()))
}
