package gateway

import (
	"fmt"
	"net/http"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway/endpoints"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/webhook/api"
	"github.com/quaymaster/quaymaster/webhook/externaldata"
	"github.com/quaymaster/quaymaster/webhook/imagepolicy"
)

// otherDoors makes the enabled optional endpoints, by their paths.
func (g *assembly) otherDoors(engine *gate.Gate, told reporting.Recorder) (map[string]http.Handler, error) {
	made, shadow := map[string]http.Handler{}, g.configuration.Shadow()
	if g.configuration.Endpoints.ImageReview {
		door, err := imagepolicy.New(imagepolicy.Config{
			Decider: engine, Namespaces: g.around.Namespaces, Failure: endpoints.Failure{State: g.state}, Queue: g.queue,
			Recorder: reporting.ImageRecorder{Recorder: told, Shadow: shadow}, Shadow: shadow,
		})
		if err != nil {
			return nil, err
		}
		made[config.ImageReviewPath] = door
	}
	if g.configuration.Endpoints.ExternalData {
		for path, door := range map[string]externaldata.Endpoint{config.DataVerifyPath: externaldata.Verify, config.DataMutatePath: externaldata.Mutate} {
			handler, err := externaldata.New(externaldata.Config{
				Endpoint: door, Decider: engine, Namespaces: g.around.Namespaces, Queue: g.queue,
				Recorder: reporting.DataRecorder{Recorder: told, Shadow: shadow}, Shadow: shadow,
			})
			if err != nil {
				return nil, err
			}
			made[path] = handler
		}
	}
	if settings := g.configuration.Endpoints.API; settings.IsOpen() {
		whose, err := g.authenticator(settings)
		if err != nil {
			return nil, err
		}
		c := api.Config{
			Authenticator: whose, Decider: engine, Namespaces: g.around.Namespaces, Recorder: reporting.APIRecorder{Recorder: told, Endpoint: "api"}, Shadow: shadow,
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
			return nil, fmt.Errorf("endpoints.api.tokens: %w", err)
		}
		all = append(all, file)
	}
	if c.TokenReview {
		tokens, err := cluster.NewTokens(cluster.TokenOptions{Client: g.cluster.Client.Typed, Audiences: c.Audiences})
		if err != nil {
			return nil, err
		}
		g.group.OnClose(tokens.Close)
		all = append(all, tokens)
	}
	return all, nil
}
