package audit

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/quaymaster/quaymaster/scan"
	changes "github.com/quaymaster/quaymaster/scan/follow"
)

// scanLog implements scan.Observer.
type scanLog struct {
	log     *slog.Logger
	metrics Metrics
	leftOut func(context.Context) ([]scan.LeftOut, error)
	logged  map[string]string // the logged reasons for omitted policies
}

// Began logs the omitted policies after a change.
func (l *scanLog) Began(p scan.Position) {
	l.log.Debug("a scan begins", slog.Int("onlyKinds", len(p.Only)), slog.String("at", p.Kind.Resource))
	left, err := l.leftOut(context.Background())
	if err != nil {
		return // the round reports it
	}
	now := map[string]string{}
	for _, each := range left {
		now[each.Policy.ID()] = each.Why
	}
	if maps.Equal(l.logged, now) {
		return
	}
	l.logged = now
	for _, each := range left {
		l.log.Info("a policy is left out of scans", slog.String("policy", each.Policy.ID()), slog.String("why", each.Why))
	}
}

// Ended summarises a round.
func (l *scanLog) Ended(s scan.Summary, err error) {
	l.metrics.ScanEnded(s.Duration, err == nil && s.Complete(), s.Began.Add(s.Duration))
	if err != nil {
		return // it continues, and its owner logs the reason
	}
	l.log.Info("a scan is done", slog.Int("kinds", s.Kinds), slog.Int("objects", s.Objects), slog.Int("denied", s.Denied), slog.Int("errors", s.Errors),
		slog.Int("refusedKinds", len(s.Refused)),
		slog.Bool("resumed", s.Resumed), slog.Duration("took", s.Duration.Round(time.Millisecond)))
}

// Looked counts.
func (l *scanLog) Looked(_ scan.Kind, objects int, _ int64) { l.metrics.Scanned(objects) }

// Refused logs the missing permission.
func (l *scanLog) Refused(kind scan.Kind, err error) {
	l.log.Warn("a kind that policies match is not scanned; grant the gateway's service account list on it",
		slog.String("kind", kind.String()), slog.String("error", err.Error()))
}

// Failed logs errors with a retry.
func (l *scanLog) Failed(err error) { l.log.Warn("scan", slog.String("error", err.Error())) }

var _ scan.Observer = (*scanLog)(nil)

// followLog implements changes.Observer.
type followLog struct {
	log     *slog.Logger
	metrics Metrics
}

// Changed counts.
func (l followLog) Changed(what changes.Result, count int) { l.metrics.Followed(string(what), count) }

// Unfollowed logs the missing permission.
func (l followLog) Unfollowed(kind scan.Kind, err error) {
	l.log.Warn("changes of a kind that is scanned are not followed, so that rounds alone find them; grant the gateway's service account get and watch on it",
		slog.String("kind", kind.String()), slog.String("error", err.Error()))
}

// Failed logs errors with a retry.
func (l followLog) Failed(err error) { l.log.Warn("scan", slog.String("error", err.Error())) }

var _ changes.Observer = followLog{}
