package policies

import (
	"context"
	"log/slog"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/gateway/kinds"
)

// Router is the document.Consumer of global context entries, mirrors and policies.
type Router struct {
	Globals, Mirrors, Policies document.Consumer

	begun bool // each consumer got its first documents
}

// Changed implements document.Consumer: each consumer gets its own documents, and the first time
// also an empty list.
func (s *Router) Changed(ctx context.Context, upserts []document.Document, deletes []document.Key) {
	// Policies last: a new policy must not be evaluated without its dependencies.
	for _, to := range []struct {
		consumer document.Consumer
		owns     func(document.Key) bool
	}{
		{s.Globals, kinds.IsGlobalContext},
		{s.Mirrors, func(key document.Key) bool { return !kinds.IsGlobalContext(key) && !kinds.IsPolicy(key) }},
		{s.Policies, kinds.IsPolicy},
	} {
		own := slices.DeleteFunc(slices.Clone(upserts), func(d document.Document) bool { return !to.owns(d.Key) })
		gone := slices.DeleteFunc(slices.Clone(deletes), func(key document.Key) bool { return !to.owns(key) })
		if !s.begun || len(own)+len(gone) > 0 {
			to.consumer.Changed(ctx, own, gone)
		}
	}
	s.begun = true
}

// Log is the document.Observer of the log.
type Log struct{ To *slog.Logger }

// Pruned implements document.Observer.
func (l Log) Pruned(kind schema.GroupVersionResource, place string) {
	l.To.Warn("the API server drops unknown fields of these documents: a misspelt field is lost and cannot be refused",
		slog.String("resource", kind.GroupResource().String()), slog.String("version", kind.Version), slog.String("below", place))
}

// Served implements document.Observer.
func (l Log) Served(kind schema.GroupVersionResource, served bool) {
	l.To.Info("custom resource", slog.String("resource", kind.GroupResource().String()), slog.String("version", kind.Version), slog.Bool("watched", served))
}

// Failed implements document.Observer.
func (l Log) Failed(err error) {
	l.To.Warn("policies and mirrors cannot be watched; those that were active stay so", slog.String("error", err.Error()))
}
