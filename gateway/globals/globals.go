package globals

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

const (
	// maxGlobalCalls bounds the concurrent calls: one without a response delays only a few
	// others.
	maxGlobalCalls = 8
	// globalRetryPause is the pause before the second call of a turn; it doubles.
	globalRetryPause = 500 * time.Millisecond
	// globalPause is the pause before the next turn after a failed one; it doubles up to the
	// entry's own interval.
	globalPause = 10 * time.Second
	// boundPause is the pause before reading again after a bound was exceeded.
	boundPause = time.Minute
)

// globalSource is the source of values.
type globalSource interface {
	// Watch passes on all objects of a resource whenever they change, or the error that prevents
	// it, until ctx ends.
	Watch(ctx context.Context, of globalcontext.Resource, changed func(objects []any), failed func(error)) error
	// Call makes one call.
	Call(ctx context.Context, call *globalcontext.Call) (any, error)
}

// Entries keeps the values of GlobalContextEntries up to date in the background. Each replica
// does, because rules need the values locally.
type Entries struct {
	compiler      *globalcontext.Compiler
	Store         *globalcontext.Store
	source        globalSource
	metrics       *metrics.Metrics
	log           *slog.Logger
	calling       chan struct{}  // holds one for each concurrent call
	changed       gateway.Signal // documents came, changed or went
	StatusChanged gateway.Signal // a status may have changed

	mu      sync.Mutex
	objects map[string]documents.Object
	logged  documents.States
}

func newEntries(compiler *globalcontext.Compiler, store *globalcontext.Store, source globalSource, to *metrics.Metrics, log *slog.Logger) *Entries {
	return &Entries{
		compiler: compiler, Store: store, source: source, metrics: to, log: log, calling: make(chan struct{}, maxGlobalCalls),
		objects: map[string]documents.Object{}, logged: documents.States{},
	}
}

// Changed implements document.Consumer.
func (g *Entries) Changed(_ context.Context, upserts []document.Document, deletes []document.Key) {
	for _, d := range upserts {
		g.put(d)
	}
	for _, key := range deletes {
		g.Store.Remove(key.Name)
		g.mu.Lock()
		delete(g.objects, key.Name)
		delete(g.logged, key.Name)
		g.mu.Unlock()
	}
	g.metrics.SetGlobalContext(g.names())
	g.changed.Notify()
	g.StatusChanged.Notify()
}

// names are the names of all entries, including unreadable ones.
func (g *Entries) names() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.objects))
}

// Known returns for each entry the age of its value, and whether rules can use it.
func (g *Entries) Known() []metrics.GlobalContext {
	var list []metrics.GlobalContext
	for _, name := range g.names() {
		age, err := g.Store.Age(name)
		list = append(list, metrics.GlobalContext{Entry: name, Age: age, Usable: err == nil})
	}
	return list
}

func (g *Entries) put(d document.Document) {
	g.mu.Lock()
	g.objects[d.Key.Name] = documents.ObjectOf(d)
	g.mu.Unlock()
	entry, err := g.Compile(d.Raw)
	if err == nil {
		err = g.Store.Put(entry)
	}
	if err != nil {
		g.Store.Break(d.Key.Name, err)
		g.note(d.Key.Name, err)
	}
}

// Compile compiles a document. A document that makes the compiler panic is broken, and does not
// end the process.
func (g *Entries) Compile(text []byte) (*globalcontext.Entry, error) {
	return documents.Compile(func() (*globalcontext.Entry, error) { return g.compiler.Compile(text) })
}

// Run keeps the values up to date until ctx ends, and returns when all readers have ended.
func (g *Entries) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	kept := map[*globalcontext.Entry]context.CancelFunc{}
	for {
		changed := g.changed.Changed()
		wanted := map[*globalcontext.Entry]bool{}
		for _, entry := range g.Store.Entries() {
			wanted[entry] = true
			if kept[entry] != nil {
				continue
			}
			own, stop := context.WithCancel(ctx)
			kept[entry] = stop
			all.Go(func() { g.keep(own, entry) })
		}
		for entry, stop := range kept {
			if !wanted[entry] {
				stop()
				delete(kept, entry)
			}
		}
		select {
		case <-ctx.Done():
			for _, stop := range kept {
				stop()
			}
			return
		case <-changed:
		}
	}
}

// keep keeps one entry up to date until ctx ends. After a panic it stops, and the value becomes
// stale.
func (g *Entries) keep(ctx context.Context, e *globalcontext.Entry) {
	defer func() {
		if p := recover(); p != nil {
			g.fail(e, fmt.Errorf("internal error, which is a defect: %v\n%s", p, debug.Stack()))
		}
	}()
	if e.Resource != nil {
		g.watch(ctx, e)
	} else {
		g.call(ctx, e)
	}
}

// watch follows a resource. After an exceeded bound it stops, and starts again later.
func (g *Entries) watch(ctx context.Context, e *globalcontext.Entry) {
	for ctx.Err() == nil {
		own, stop := context.WithCancel(ctx)
		err := g.source.Watch(own, *e.Resource, func(objects []any) {
			if !g.answer(e, objects) {
				stop()
			}
		}, func(why error) { g.fail(e, why) })
		stop()
		if err != nil {
			g.fail(e, err)
		}
		gateway.Idle(ctx, boundPause)
	}
}

// call makes calls in turns.
func (g *Entries) call(ctx context.Context, e *globalcontext.Entry) {
	pause := globalPause
	for ctx.Err() == nil {
		value, err := g.turn(ctx, e.Call)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			g.fail(e, err)
		case g.answer(e, value):
			pause = globalPause
			gateway.Idle(ctx, e.Call.Interval)
			continue
		}
		gateway.Idle(ctx, min(pause, e.Call.Interval))
		pause = min(2*pause, e.Call.Interval)
	}
}

// turn calls until there is a response, up to the entry's number of attempts.
func (g *Entries) turn(ctx context.Context, c *globalcontext.Call) (value any, err error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case g.calling <- struct{}{}:
		defer func() { <-g.calling }()
	}
	pause := globalRetryPause
	for try := range c.Retries {
		if try > 0 {
			gateway.Idle(ctx, pause)
			pause *= 2
		}
		value, err = g.source.Call(ctx, c)
		if err == nil || ctx.Err() != nil {
			return value, err
		}
	}
	return nil, err
}

// answer stores the value of an entry, and reports whether it is stored.
func (g *Entries) answer(e *globalcontext.Entry, value any) bool {
	err := g.Store.Answer(e.Name, e.Hash, value)
	if err != nil {
		g.metrics.GlobalContextFailed(e.Name)
	}
	g.note(e.Name, err)
	return err == nil
}

// fail records why an entry has no value.
func (g *Entries) fail(e *globalcontext.Entry, why error) {
	if exceeded, ok := errors.AsType[*limit.ExceededError](why); ok {
		why = fmt.Errorf("%w: %w", globalcontext.ErrTooLarge, exceeded)
	}
	g.Store.Fail(e.Name, e.Hash, why)
	g.metrics.GlobalContextFailed(e.Name)
	g.note(e.Name, why)
}

// note logs a changed state of an entry; nil means that it has a value.
func (g *Entries) note(name string, err error) {
	said := "known"
	if err != nil {
		said = err.Error()
	}
	g.StatusChanged.Notify()
	g.mu.Lock()
	changed := g.logged.Changed(name, said)
	g.mu.Unlock()
	switch {
	case !changed:
	case err != nil:
		g.log.Warn("a global context entry cannot be read or refreshed", slog.String("name", name), slog.String("error", said))
	default:
		g.log.Info("a global context entry is known", slog.String("name", name))
	}
}

// Unread reports whether there is an entry that was neither read nor failed.
func (g *Entries) Unread() bool {
	return slices.ContainsFunc(g.Store.Entries(), func(e *globalcontext.Entry) bool {
		read, err := g.Store.State(e.Name)
		unknown, is := errors.AsType[*globalcontext.Error](err)
		return read.IsZero() && is && unknown.Cause == nil
	})
}
