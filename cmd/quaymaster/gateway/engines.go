package gateway

import (
	"context"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
)

// kyverno returns a check whether Kyverno is installed; nil without a cluster.
func (g *assembly) kyverno() func() bool {
	if g.cluster == nil {
		return nil
	}
	found := cluster.NewKyverno(g.cluster.Client.Typed, time.Now)
	return func() bool { return found.Installed(context.Background()) }
}
