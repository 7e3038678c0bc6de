package webhook_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/quaymaster/quaymaster/webhook"
)

// noCertificate refuses every connection; see webhook/certificate for real ones.
type noCertificate struct{}

func (noCertificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errors.New("not loaded yet")
}

// A server runs until its context ends, then drains.
func Example() {
	server, err := webhook.New(webhook.Config{
		Address: "127.0.0.1:0", Plain: "127.0.0.1:0",
		Certificates: noCertificate{},
		Endpoints:    map[string]webhook.Endpoint{"/validate": {Handler: http.NotFoundHandler()}},
		Checks:       []webhook.Check{{Name: "certificate", Ready: func() error { return errors.New("not loaded yet") }}},
		Metrics:      http.NotFoundHandler(),
		Log:          slog.New(slog.DiscardHandler),
	}, webhook.WithDrainDelay(0))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	stop() // as SIGTERM would, by way of signal.NotifyContext
	fmt.Println(server.Run(ctx))
	// Output: <nil>
}
