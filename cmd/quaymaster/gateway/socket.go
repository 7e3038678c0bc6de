package gateway

import (
	"context"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/webhook/api"
)

// socketUser is the user of requests at the socket: the file's permissions control access.
const socketUser = "unix-socket"

// openSocket serves at listen.socket until ctx ends. The endpoints are active by then.
func (g *assembly) openSocket(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return g.socket.Close()
	case <-g.open:
	}
	door, err := api.New(api.Config{
		User: socketUser, Decider: g.engines.admission, Namespaces: g.around.Namespaces, Recorder: reporting.APIRecorder{Recorder: g.recorder(), Endpoint: "socket"},
	})
	if err != nil {
		return err
	}
	return g.socket.Serve(ctx, config.APIPath, g.durable("socket", door))
}
