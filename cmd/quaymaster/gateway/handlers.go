package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/pinnable"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/deleting"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/lookups"
	cmdreporting "github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/endpoints"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	generated "github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/api"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/externaldata"
	"github.com/quaymaster/quaymaster/webhook/peers"
	"github.com/quaymaster/quaymaster/webhook/probe"
	"github.com/quaymaster/quaymaster/webhook/ui"
)

// handlers are the handlers of the endpoints.
type handlers struct {
	byPath map[string]http.Handler
	socket http.Handler // nil unless there is one
}

// newHandlers makes the handlers of the endpoints.
func (g *assembly) newHandlers(made *gate.Gate, key []byte) (h handlers, err error) {
	c := g.configuration
	records, err := generated.New(key)
	if err != nil {
		return h, err
	}
	analysis, err := g.review(key)
	if err != nil {
		return h, err
	}
	images := endpoints.Images{
		Decider: made, Namespaces: g.around.Namespaces, State: g.state, Queue: g.serving.queue,
		Recorder: recorderOf(g.telemetry, g.records.Sinks, g.around.Cluster), Shadow: c.Shadow(),
	}
	objects := admission.Config{
		Decider: made, Namespaces: g.around.Namespaces, Roles: g.around.Roles, Failure: endpoints.Failure{State: g.state}, Recorder: images.Recorder,
		Queue: g.serving.queue, Copies: endpoints.Copies{State: g.state}, Rules: endpoints.Failure{State: g.state},
		Requesters: endpoints.Requesters{State: g.state, Records: records}, Reproduce: cmdreporting.Explain(c, g.documents.Policies.Resources),
	}
	if g.documents.Kinds != nil {
		objects.Kinds = g.documents.Kinds
	}
	h.byPath, err = admissionHandlers(c, objects, admission.PolicyConfig{
		Checker: checkerOf(g.documents, g.around.Cluster), Recorder: images.Recorder, Queue: g.serving.queue, ImpactAnalysis: analysis,
	})
	if err != nil {
		return h, err
	}
	h.byPath[configuration.ProbePath] = probe.New(configuration.ProbePath)
	if err := addImageHandlers(h.byPath, c.Endpoints, images, func() (api.Authenticator, error) {
		return newAuthenticator(c.Endpoints.API, g.around.Cluster, &g.group)
	}); err != nil {
		return h, err
	}
	for path, handler := range h.byPath {
		if path != configuration.DocumentsPath && !c.Shadows(path) {
			h.byPath[path] = durable(c.DecisionLog, g.records.Decisions, handler, g.log)
		}
	}
	if g.serving.socket != nil {
		h.socket, err = images.Socket()
		if err != nil {
			return h, err
		}
		h.socket = durable(c.DecisionLog, g.records.Decisions, h.socket, g.log)
	}
	if g.around.Cluster == nil {
		return h, nil
	}
	if err := deleting.AddEndpoint(deleting.Options{Configuration: c, Around: g.around, Log: g.log}, h.byPath, g.serving.queue, records); err != nil {
		return h, err
	}
	return h, addReplicaHandlers(h.byPath, key, made, g.records.Pages)
}

// addReplicaHandlers adds the endpoints of other replicas, of which their key authenticates the requests.
func addReplicaHandlers(to map[string]http.Handler, key []byte, made *gate.Gate, pages *ui.Handler) (err error) {
	if pages != nil {
		to[peers.ViewPath], err = peers.NewViewHandler(peers.ViewConfig{Key: key, Viewer: pages})
		if err != nil {
			return err
		}
	}
	to[peers.Path], err = peers.NewHandler(peers.HandlerConfig{Key: key, Memory: made})
	return err
}

// admissionHandlers makes the endpoints of the API server's webhooks by their paths.
func admissionHandlers(c config.Configuration, objects admission.Config, documents admission.PolicyConfig) (map[string]http.Handler, error) {
	objects.Controllers, objects.OnlyPods, objects.KyvernoDenials = mutated(c.Webhooks.MutateControllers), c.Webhooks.OnlyPods, c.Webhooks.KyvernoDenials
	made, err := endpoints.NewModes(objects, documents)
	if err != nil {
		return nil, err
	}
	return made.ByPath(c.Shadow() && !c.CutsOver())
}

// addImageHandlers adds the enabled endpoints of other systems.
func addImageHandlers(to map[string]http.Handler, c config.Endpoints, images endpoints.Images, authenticator func() (api.Authenticator, error)) (err error) {
	if c.ImageReview {
		to[config.ImageReviewPath], err = images.Review()
		if err != nil {
			return err
		}
	}
	if c.ExternalData {
		for path, endpoint := range map[string]externaldata.Endpoint{config.DataVerifyPath: externaldata.Verify, config.DataMutatePath: externaldata.Mutate} {
			to[path], err = images.ExternalData(endpoint)
			if err != nil {
				return err
			}
		}
	}
	if !c.API.IsOpen() {
		return nil
	}
	accepted, err := authenticator()
	if err != nil {
		return err
	}
	to[config.APIPath], err = images.API(accepted, api.Callers{Users: c.API.Users, Groups: c.API.Groups})
	return err
}

// newAuthenticator accepts the tokens of the file, and authenticates others at the API server.
func newAuthenticator(c config.API, in *lookups.Cluster, group *gateway.Group) (api.Authenticator, error) {
	var all api.AnyOf
	if c.Tokens != "" {
		file, err := api.NewTokenFile(c.Tokens, nil)
		if err != nil {
			return nil, fmt.Errorf("endpoints.api.tokens: %w", err)
		}
		all = append(all, file)
	}
	if c.TokenReview {
		tokens, err := cluster.NewTokens(cluster.TokenOptions{Client: in.Client.Typed, Audiences: c.Audiences})
		if err != nil {
			return nil, err
		}
		group.OnClose(tokens.Close)
		all = append(all, tokens)
	}
	return all, nil
}

// durable makes an endpoint respond only after its decisions are on disk, if that is configured.
func durable(c config.DecisionLog, log *journal.Journal, handler http.Handler, errors *slog.Logger) http.Handler {
	if log == nil || !c.Waits() {
		return handler
	}
	return &endpoints.Durable{
		Handler: handler, Decisions: log, Wait: time.Duration(c.FlushTimeout), Deny: c.OnFailure == config.OnFailureDeny, Log: errors,
	}
}

// mutated gives the kinds of the settings their groups.
func mutated(kinds []string) []admission.Kind {
	groups := pinnable.Controllers()
	var list []admission.Kind
	for _, kind := range kinds {
		list = append(list, admission.Kind{Group: groups[kind], Kind: kind})
	}
	return list
}

// checkerOf returns the checker of documents.
func checkerOf(d *documents.Documents, in *lookups.Cluster) endpoints.Checker {
	made := endpoints.Checker{Policies: d.Policies.Catalog, Kyverno: kyvernoOf(in)}
	if d.Globals != nil { // an interface of a nil pointer would not be nil
		made.Entries = d.Globals
	}
	return made
}

// kyvernoOf returns a check whether Kyverno is installed; nil without a cluster.
func kyvernoOf(in *lookups.Cluster) func() bool {
	if in == nil {
		return nil
	}
	found := cluster.NewKyverno(in.Client.Typed, time.Now)
	return func() bool { return found.Installed(context.Background()) }
}

// recorderOf returns the recorder of decisions.
func recorderOf(t telemetry, sinks reporting.Sinks, in *lookups.Cluster) reporting.Recorder {
	made := reporting.Recorder{Log: t.log, Strangers: webhook.NewErrorLog(t.log), Metrics: t.metrics, Sinks: sinks, Creations: &reporting.Creations{}}
	if in != nil && in.Events != nil {
		made.Events = in.Events
	}
	return made
}
