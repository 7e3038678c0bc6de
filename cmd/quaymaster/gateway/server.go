package gateway

import (
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// newQueue bounds the concurrent requests.
func newQueue(c config.Limits) (*admission.Queue, error) {
	return admission.NewQueue(admission.QueueBounds{Requests: int64(c.Requests)})
}

// listeners makes the listeners.
func listeners(c config.Listen, config webhook.Config, observers metrics.Observers) (*webhook.Server, error) {
	config.Address, config.Plain = c.Address, c.Plain
	options := []webhook.Option{webhook.WithObserver(observers), webhook.WithDrainDelay(time.Duration(c.DrainDelay))}
	if c.Profiling != "" {
		options = append(options, webhook.WithProfiling(c.Profiling))
	}
	return webhook.New(config, options...)
}
