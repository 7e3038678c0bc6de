package gateway

import (
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gateway/endpoints"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/peers"
)

// durable makes an endpoint, or the socket, respond only after its decisions are on disk, if that
// is configured. Endpoints without decisions stay unchanged.
func (g *assembly) durable(path string, door http.Handler) http.Handler {
	c := g.configuration.DecisionLog
	if g.records.Decisions == nil || !c.Waits() || path == peers.Path || path == peers.ViewPath ||
		path == configuration.DocumentsPath || g.configuration.Shadows(path) {
		return door
	}
	return &endpoints.Durable{
		Handler: door, Decisions: g.records.Decisions, Wait: time.Duration(c.FlushTimeout), Deny: c.OnFailure == config.OnFailureDeny, Log: g.log,
	}
}
