package globals

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// New makes the Entries of a cluster.
func New(client *cluster.Client, store *globalcontext.Store, services Services, to *metrics.Metrics, log *slog.Logger) (*Entries, error) {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		return nil, err
	}
	compiler, err := globalcontext.NewCompiler(engine)
	if err != nil {
		return nil, err
	}
	return newEntries(compiler, store, clusterGlobals{client: client, services: services}, to, log), nil
}

// Services calls services that are not the API server.
type Services interface {
	Fetch(ctx context.Context, call *globalcontext.Call) (any, error)
}

// clusterGlobals reads the values of entries: from the API server with the gateway's own rights,
// and from services without any.
type clusterGlobals struct {
	client   *cluster.Client
	services Services
}

// Watch implements globalSource.
func (c clusterGlobals) Watch(ctx context.Context, of globalcontext.Resource, changed func([]any), failed func(error)) error {
	followed, err := cluster.NewCollection(cluster.CollectionOptions{
		Client: c.client, At: cluster.Place{Group: of.Group, Version: of.Version, Resource: of.Resource, Namespace: of.Namespace},
		Most: globalcontext.MaxValue, Weigh: globalcontext.Size, Changed: changed, Failed: failed,
	})
	if err != nil {
		return err
	}
	followed.Run(ctx)
	return nil
}

// Call implements globalSource.
func (c clusterGlobals) Call(ctx context.Context, call *globalcontext.Call) (any, error) {
	if call.URL == "" {
		return c.client.Call(ctx, call.Method, call.Path, call.Body)
	}
	return c.services.Fetch(ctx, call)
}
