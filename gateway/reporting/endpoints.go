package reporting

import (
	"context"
	"log/slog"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/webhook/api"
	"github.com/quaymaster/quaymaster/webhook/externaldata"
	"github.com/quaymaster/quaymaster/webhook/imagepolicy"
)

// ImageRecorder records image reviews.
type ImageRecorder struct {
	Recorder
	Shadow bool
}

// Record implements imagepolicy.Recorder.
func (r ImageRecorder) Record(ctx context.Context, review imagepolicy.Review) {
	const endpoint = "imagereview"
	r.answered(endpoint, string(review.Cause), review.Allowed, r.Shadow)
	if review.Cause == imagepolicy.Decided {
		occasion := report.Occasion{Endpoint: endpoint, Allowed: review.Allowed || r.Shadow, Shadow: r.Shadow}
		r.decided(ctx, occasion, review.Outcome, slog.String("namespace", review.Namespace))
		return
	}
	r.undecided(ctx, endpoint, string(review.Cause), review.Err, slog.String("namespace", review.Namespace))
}

// DataRecorder records external data requests.
type DataRecorder struct {
	Recorder
	Shadow bool
}

// Record implements externaldata.Recorder.
func (r DataRecorder) Record(ctx context.Context, batch externaldata.Batch) {
	endpoint := string(batch.Endpoint)
	if len(batch.Items) == 0 {
		r.answered(endpoint, string(batch.Cause), false, r.Shadow)
		r.undecided(ctx, endpoint, string(batch.Cause), batch.Err)
	}
	for i := range batch.Items {
		item := &batch.Items[i]
		r.answered(endpoint, string(item.Cause), item.Allowed, r.Shadow)
		if item.Cause == externaldata.Decided {
			r.decided(ctx, report.Occasion{Endpoint: endpoint, Allowed: item.Allowed || r.Shadow, Shadow: r.Shadow}, item.Outcome)
			continue
		}
		r.undecided(ctx, endpoint, string(item.Cause), item.Err, slog.String("key", gateway.Shorten(item.Key, MaxLogged)))
	}
}

// APIRecorder records calls of the API.
type APIRecorder struct {
	Recorder
	Endpoint string
}

// Record implements api.Recorder.
func (r APIRecorder) Record(ctx context.Context, call api.Call) {
	about := []slog.Attr{slog.String("user", call.User), slog.String("namespace", call.Namespace)}
	if call.Cause != api.Decided {
		r.Metrics.Admitted(r.Endpoint, string(call.Cause), false)
		r.undecided(ctx, r.Endpoint, string(call.Cause), call.Err, about...)
		return
	}
	allowed := true
	for _, outcome := range call.Outcomes {
		admitted := outcome.Result.Admits()
		allowed = allowed && admitted
		r.decided(ctx, report.Occasion{Endpoint: r.Endpoint, User: call.User, Allowed: admitted}, outcome, about...)
	}
	r.Metrics.Admitted(r.Endpoint, string(call.Cause), allowed)
}

// answered counts a response.
func (r Recorder) answered(endpoint, cause string, allowed, shadow bool) {
	if shadow {
		r.Metrics.Shadowed(endpoint, cause, allowed)
		return
	}
	r.Metrics.Admitted(endpoint, cause, allowed)
}

// decided records an outcome at an endpoint that is not a webhook. There is no object for an
// event.
func (r Recorder) decided(ctx context.Context, on report.Occasion, outcome gate.Outcome, about ...slog.Attr) {
	about = append([]slog.Attr{slog.String("endpoint", on.Endpoint)}, about...)
	if on.Shadow {
		r.Metrics.DecidedInShadow(outcome)
		about = append(about, slog.Bool("shadow", true))
	} else {
		r.Metrics.Decided(outcome)
	}
	report.Log(ctx, r.Log, outcome, about...)
	on.Time, on.Process = time.Now(), report.ProcessAdmission
	r.Sinks.Take(report.Decided{Occasion: on, Outcome: outcome})
}

// MaxLogged bounds a text of an untrusted client in the log, in bytes.
const MaxLogged = 300

// undecided logs a request without a decision. Errors that untrusted clients can cause must not
// fill the log.
func (r Recorder) undecided(ctx context.Context, endpoint, cause string, err error, about ...slog.Attr) {
	level := slog.LevelWarn
	switch api.Cause(cause) {
	case api.Malformed, api.Unauthenticated, api.Forbidden, api.WrongMethod, api.TooLarge, api.WrongMediaType, api.TooMany:
		level = slog.LevelDebug
	}
	about = append([]slog.Attr{slog.String("endpoint", endpoint), slog.String("cause", cause)}, about...)
	if err != nil {
		about = append(about, slog.String("error", err.Error()))
	}
	if level == slog.LevelWarn && api.Cause(cause) != api.Panicked {
		r.Strangers.Log(ctx, level, "not decided", about...)
		return
	}
	r.Log.LogAttrs(ctx, level, "not decided", about...)
}
