// Package clock compares the clock of this machine with that of an API server, by the header Date of a
// response (RFC 9110, section 6.6.1).
package clock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/internal/limit"
)

const (
	// timeout bounds the request.
	timeout = 10 * time.Second
	// maxVersion bounds its response in bytes.
	maxVersion = 64 << 10
	// resolution is that of the header, which has whole seconds.
	resolution = time.Second
)

// Reading is one comparison.
type Reading struct {
	// Server is the time of the API server at the end of the request.
	Server time.Time
	// Ahead is the difference of the local clock to that of the API server; Accuracy bounds its error.
	Ahead, Accuracy time.Duration
	// Version is the version of the API server.
	Version string
}

// Read sends one request to the API server, for its version. Now is the local clock.
func Read(ctx context.Context, config *rest.Config, now func() time.Time) (Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return Reading{}, fmt.Errorf("read the clock of the API server: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return Reading{}, fmt.Errorf("read the clock of the API server: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.JoinPath("version").String(), nil)
	if err != nil {
		return Reading{}, fmt.Errorf("read the clock of the API server: %w", err)
	}
	sent := now()
	response, err := client.Do(request)
	if err != nil {
		return Reading{}, fmt.Errorf("read the clock of the API server: %w", err)
	}
	received := now()
	text, err := limit.ReadAll(response.Body, maxVersion, "the version of the API server")
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return Reading{}, fmt.Errorf("read the clock of the API server: %w", err)
	}
	if response.StatusCode == http.StatusUnauthorized {
		return Reading{}, errors.New("the API server does not accept the credentials of the kubeconfig (401 Unauthorized)")
	}
	return compare(response.Header.Get("Date"), text, sent, received)
}

// compare evaluates a response between two moments of the local clock. The version is optional: a user
// may lack the permission to read it, and a refusal has a date as well.
func compare(date string, text []byte, sent, received time.Time) (Reading, error) {
	at, err := http.ParseTime(date)
	if err != nil {
		return Reading{}, fmt.Errorf("read the clock of the API server: its response has no date: %w", err)
	}
	var version struct{ GitVersion string }
	_ = json.Unmarshal(text, &version) // not JSON: there is no version
	half := received.Sub(sent) / 2
	middle := at.Add(resolution / 2)
	return Reading{
		Server: middle.Add(half).UTC(), Ahead: sent.Add(half).Sub(middle), Accuracy: half + resolution/2, Version: version.GitVersion,
	}, nil
}
