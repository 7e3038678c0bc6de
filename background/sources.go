package background

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/background/internal/follow"
	"github.com/quaymaster/quaymaster/background/internal/queue"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/policy/source"
)

// watcher implements follow.Watcher.
type watcher struct{ *Controller }

// WatchSource implements follow.Watcher.
func (w watcher) WatchSource(ctx context.Context, of source.Ref, to *follow.Feed) {
	w.options.Sources.WatchSource(ctx, of, to)
}

// SourceChanged implements follow.Watcher.
func (w watcher) SourceChanged(trigger record.Trigger, rule queue.RuleID) {
	w.putBack(trigger, record.Origin{Policy: rule.Policy, Rule: rule.Rule})
}

// SourceFailed implements follow.Watcher.
func (w watcher) SourceFailed(of source.Ref, err error) {
	w.options.Observer.Failed(fmt.Errorf("watch %s, a source of generated objects: %w", of, err))
}

// followSources watches the sources of the trigger's results for rules that keep objects in step. Moment is that
// before the sources were read.
func followSources(ctx context.Context, e *evaluation, set *set.Set, results map[queue.RuleID]*generated, moment uint64) {
	made := map[queue.RuleID]bool{}
	for _, k := range e.there.of(e.at) {
		made[queue.RuleID{Policy: k.origin.Policy, Rule: k.origin.Rule}] = true
	}
	for id, r := range results {
		switch {
		case !r.Terms.Synchronize || r.Exception != nil || !r.entitled && !made[id]:
			e.sources.Set(ctx, e.self, id, nil, moment)
		case len(r.Sources) > 0 || r.Skip != "" || r.Ruling.Result == policy.Pass: // else it is not known what it reads
			e.sources.Set(ctx, e.self, id, r.Sources, moment)
		}
	}
	e.sources.Keep(e.at, func(id queue.RuleID) bool {
		_, known := termsOf(set, id)
		return known && (results[id] != nil || !e.sees(set, id))
	})
}

// missing returns the sources of a rule that do not exist, as errors.
func missing(of source.Read) []error {
	var list []error
	for _, ref := range of.Missing {
		list = append(list, fmt.Errorf("source %s: %w: create it, or name another one in the rule", ref, source.ErrMissing))
	}
	return list
}

// addKind records that there may be objects of a kind, before there are any: expressions make objects of kinds
// that are not known before.
func addKind(ctx context.Context, c *Controller, kind Kind) error {
	of := policy.ObjectKind{APIVersion: kind.APIVersion(), Kind: kind.Kind}
	c.mu.Lock()
	had := c.progress.Kinds
	if slices.ContainsFunc(had, func(k policy.ObjectKind) bool { return isOf(k, kind) }) {
		c.mu.Unlock()
		return nil
	}
	c.progress.Kinds = append(slices.Clone(had), of)
	progress := c.progress
	c.mu.Unlock()
	if err := c.options.Memory.Save(ctx, progress); err != nil {
		c.mu.Lock()
		c.progress.Kinds = slices.DeleteFunc(slices.Clone(c.progress.Kinds), func(k policy.ObjectKind) bool { return k == of })
		c.mu.Unlock()
		return errors.Join(fmt.Errorf("save that there may be generated objects of kind %s", kind.Kind), err)
	}
	select {
	case c.wake <- struct{}{}: // to watch them
	default:
	}
	return nil
}
