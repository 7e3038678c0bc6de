package reporting

import (
	"log/slog"

	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/publish"
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
