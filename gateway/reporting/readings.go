package reporting

import (
	"context"
	"log/slog"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/policy/subresource"
	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
	"github.com/quaymaster/quaymaster/report/decisionlog/sink"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/publish"
	"github.com/quaymaster/quaymaster/report/result"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// ReportLog implements publish.Observer.
type ReportLog struct {
	Log     *slog.Logger
	Metrics *metrics.Metrics
}

// Wrote counts.
func (l ReportLog) Wrote(what publish.Written) { l.Metrics.ReportWritten(string(what)) }

// Dropped counts.
func (l ReportLog) Dropped(why publish.Drop, count int) { l.Metrics.ReportDropped(string(why), count) }

// Failed logs an error.
func (l ReportLog) Failed(err error) {
	l.Log.Warn("a report was not written", slog.String("error", err.Error()))
}

// Served logs whether an API is served.
func (l ReportLog) Served(api policyreport.API, served bool) {
	if served {
		l.Log.Info("the API server knows reports of this API now", slog.String("api", string(api)))
		return
	}
	l.Log.Info("the API server does not know reports of this API, so that none are written until its definitions are installed; set reports.apis to write others, or none",
		slog.String("api", string(api)))
}

// LeftOut are the policies that a scan does not evaluate: their results from admission stay.
func LeftOut(view *scan.View) []result.Policy {
	left, err := view.LeftOut(context.Background())
	if err != nil {
		return nil // no scan has started
	}
	list := make([]result.Policy, len(left))
	for i, each := range left {
		list[i] = result.Policy{Kind: each.Policy.Kind, Namespace: each.Policy.Namespace, Name: each.Policy.Name}
	}
	return list
}

// AboutOthers returns the rules about other objects that may have a result for an object, which a scan
// does not evaluate: the generate rules that it may be a trigger of, and all mutate-existing rules, whose
// targets are any objects. Active returns the active policies; nil until they are loaded.
func AboutOthers(active func() *set.Set) func(of *policy.Subject) []result.Rule {
	return func(of *policy.Subject) []result.Rule {
		set := active()
		if set == nil || of == nil {
			return nil
		}
		var list []result.Rule
		created, updated := *of, *of
		created.Operation, updated.Operation = "CREATE", "UPDATE"
		for _, p := range set.Policies() {
			name := result.Policy{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
			for _, g := range p.Generations {
				if g.Selects(&created) || g.Selects(&updated) || subresource.Any(of, g.Selects) {
					list = append(list, result.Rule{Policy: name, Rule: g.Name()})
				}
			}
			for _, a := range p.Alterations {
				list = append(list, result.Rule{Policy: name, Rule: a.Name()})
			}
		}
		return list
	}
}

// DecisionLogReadings are the values of the gauges of the decision log and its sinks.
func DecisionLogReadings(of *journal.Journal, followers []*sink.Follower) metrics.DecisionLog {
	s := of.Stats()
	now := metrics.DecisionLog{Written: s.Written, Lost: s.Lost, Failures: s.Failures, Queued: s.Queued, Flushed: s.Flushed, Bytes: s.Bytes}
	for _, f := range followers {
		s := f.Stats()
		now.Sinks = append(now.Sinks, metrics.DecisionLogSink{Name: f.Name(), Delivered: s.Delivered, Dropped: s.Dropped, Failures: s.Failures, Behind: s.Behind})
	}
	return now
}
