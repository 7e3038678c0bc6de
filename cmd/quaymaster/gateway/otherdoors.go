package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/webhook/api"
	"github.com/quaymaster/quaymaster/webhook/externaldata"
	"github.com/quaymaster/quaymaster/webhook/imagepolicy"
)

// copies determines by the current mirrors whether an image is a copy.
type copies struct{ state *gate.Current }

// IsCopy implements admission.Copies.
func (c copies) IsCopy(copied, written image.Ref) bool {
	now, err := c.state.Snapshot(context.Background())
	return err == nil && now.Mirrors.IsCopy(copied, written)
}

// otherDoors makes the enabled optional endpoints, by their paths.
func (g *assembly) otherDoors(engine *gate.Gate, told recorder) (map[string]http.Handler, error) {
	made, shadow := map[string]http.Handler{}, g.configuration.Shadow()
	if g.configuration.Doors.ImageReview {
		door, err := imagepolicy.New(imagepolicy.Config{
			Decider: engine, Namespaces: g.around.namespaces, Failure: failure{g.state}, Queue: g.queue,
			Recorder: imageRecorder{told, shadow}, Shadow: shadow,
		})
		if err != nil {
			return nil, err
		}
		made[config.ImageReviewPath] = door
	}
	if g.configuration.Doors.ExternalData {
		for path, door := range map[string]externaldata.Endpoint{config.DataVerifyPath: externaldata.Verify, config.DataMutatePath: externaldata.Mutate} {
			handler, err := externaldata.New(externaldata.Config{
				Endpoint: door, Decider: engine, Namespaces: g.around.namespaces, Queue: g.queue,
				Recorder: dataRecorder{told, shadow}, Shadow: shadow,
			})
			if err != nil {
				return nil, err
			}
			made[path] = handler
		}
	}
	if settings := g.configuration.Doors.API; settings.IsOpen() {
		whose, err := g.authenticator(settings)
		if err != nil {
			return nil, err
		}
		c := api.Config{
			Authenticator: whose, Decider: engine, Namespaces: g.around.namespaces, Recorder: apiRecorder{told, "api"}, Shadow: shadow,
		}
		if len(settings.Users)+len(settings.Groups) > 0 {
			c.Callers = &api.Callers{Users: settings.Users, Groups: settings.Groups}
		}
		made[config.APIPath], err = api.New(c)
		if err != nil {
			return nil, err
		}
	}
	return made, nil
}

// authenticator accepts the tokens of the file, and authenticates others at the API server.
func (g *assembly) authenticator(c config.API) (api.Authenticator, error) {
	var all api.AnyOf
	if c.Tokens != "" {
		file, err := api.NewTokenFile(c.Tokens, nil)
		if err != nil {
			return nil, fmt.Errorf("doors.api.tokens: %w", err)
		}
		all = append(all, file)
	}
	if c.TokenReview {
		tokens, err := cluster.NewTokens(cluster.TokenOptions{Client: g.cluster.client.Typed, Audiences: c.Audiences})
		if err != nil {
			return nil, err
		}
		g.group.OnClose(tokens.Close)
		all = append(all, tokens)
	}
	return all, nil
}

// imageRecorder records image reviews.
type imageRecorder struct {
	recorder
	shadow bool
}

// Record implements imagepolicy.Recorder.
func (r imageRecorder) Record(ctx context.Context, review imagepolicy.Review) {
	const door = "imagereview"
	r.answered(door, string(review.Cause), review.Allowed, r.shadow)
	if review.Cause == imagepolicy.Decided {
		r.decided(ctx, report.Occasion{Door: door, Allowed: review.Allowed || r.shadow, Shadow: r.shadow}, review.Outcome, slog.String("namespace", review.Namespace))
		return
	}
	r.undecided(ctx, door, string(review.Cause), review.Err, slog.String("namespace", review.Namespace))
}

// dataRecorder records external data requests.
type dataRecorder struct {
	recorder
	shadow bool
}

// Record implements externaldata.Recorder.
func (r dataRecorder) Record(ctx context.Context, batch externaldata.Batch) {
	door := string(batch.Endpoint)
	if len(batch.Items) == 0 {
		r.answered(door, string(batch.Cause), false, r.shadow)
		r.undecided(ctx, door, string(batch.Cause), batch.Err)
	}
	for i := range batch.Items {
		item := &batch.Items[i]
		r.answered(door, string(item.Cause), item.Allowed, r.shadow)
		if item.Cause == externaldata.Decided {
			r.decided(ctx, report.Occasion{Door: door, Allowed: item.Allowed || r.shadow, Shadow: r.shadow}, item.Outcome)
			continue
		}
		r.undecided(ctx, door, string(item.Cause), item.Err, slog.String("key", gateway.Shorten(item.Key, maxLogged)))
	}
}

// apiRecorder records calls of the API.
type apiRecorder struct {
	recorder
	door string
}

// Record implements api.Recorder.
func (r apiRecorder) Record(ctx context.Context, call api.Call) {
	about := []slog.Attr{slog.String("user", call.User), slog.String("namespace", call.Namespace)}
	if call.Cause != api.Decided {
		r.metrics.Admitted(r.door, string(call.Cause), false)
		r.undecided(ctx, r.door, string(call.Cause), call.Err, about...)
		return
	}
	allowed := true
	for _, outcome := range call.Outcomes {
		admitted := outcome.Result.Admits()
		allowed = allowed && admitted
		r.decided(ctx, report.Occasion{Door: r.door, User: call.User, Allowed: admitted}, outcome, about...)
	}
	r.metrics.Admitted(r.door, string(call.Cause), allowed)
}

// answered counts a response.
func (r recorder) answered(door, cause string, allowed, shadow bool) {
	if shadow {
		r.metrics.Shadowed(door, cause, allowed)
		return
	}
	r.metrics.Admitted(door, cause, allowed)
}

// decided records an outcome at an endpoint that is not a webhook. There is no object for an
// event.
func (r recorder) decided(ctx context.Context, on report.Occasion, outcome gate.Outcome, about ...slog.Attr) {
	about = append([]slog.Attr{slog.String("door", on.Door)}, about...)
	if on.Shadow {
		r.metrics.DecidedInShadow(outcome)
		about = append(about, slog.Bool("shadow", true))
	} else {
		r.metrics.Decided(outcome)
	}
	report.Log(ctx, r.log, outcome, about...)
	on.Time, on.Process = time.Now(), report.ProcessAdmission
	r.sinks.Take(report.Decided{Occasion: on, Outcome: outcome})
}

// maxLogged bounds a text of an untrusted client in the log, in bytes.
const maxLogged = 300

// undecided logs a request without a decision. Errors that untrusted clients can cause must not
// fill the log.
func (r recorder) undecided(ctx context.Context, door, cause string, err error, about ...slog.Attr) {
	level := slog.LevelWarn
	switch api.Cause(cause) {
	case api.Malformed, api.Unauthenticated, api.Forbidden, api.WrongMethod, api.TooLarge, api.WrongMediaType, api.TooMany:
		level = slog.LevelDebug
	}
	about = append([]slog.Attr{slog.String("door", door), slog.String("cause", cause)}, about...)
	if err != nil {
		about = append(about, slog.String("error", err.Error()))
	}
	if level == slog.LevelWarn && api.Cause(cause) != api.Panicked {
		r.strangers.Log(ctx, level, "not decided", about...)
		return
	}
	r.log.LogAttrs(ctx, level, "not decided", about...)
}
