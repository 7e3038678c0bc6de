package rollout

import (
	"context"
	"errors"
	"log/slog"

	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/rollout"
	"github.com/quaymaster/quaymaster/policy/set"
)

// Config holds the dependencies of the components of a rollout.
type Config struct {
	Effective *Effective
	Catalog   *catalog.Catalog
	Policies  Policies
	Approvals Store
	Metrics   Metrics
	Events    Events // nil: none are written
	Log       *slog.Logger
}

// Policies are the published ones.
type Policies interface {
	// Policies returns the active ones; nil until they are loaded.
	Policies() *set.Set
	// Changed returns a channel that is closed when they change.
	Changed() <-chan struct{}
	// Republish publishes them again after approvals, and no longer waits for the source.
	Republish(source string)
}

// Metrics counts the results of dry runs.
type Metrics interface {
	PolicyAnalyzed(result string)
}

// Events writes events soon and never waits.
type Events interface {
	Record(event record.Event)
}

// approve puts approvals into force.
func (c Config) approve(source string, approvals *rollout.Approvals) {
	c.Effective.approvals.Store(approvals)
	c.Policies.Republish(source)
}

// failed logs an error after which the process continues.
func (c Config) failed(what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		c.Log.Warn(what, slog.String("error", err.Error()))
	}
}
