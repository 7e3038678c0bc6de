package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/internal/redact"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
)

const (
	// fetchTimeout bounds one fetch of a policy's text. It is shorter than the shortest default
	// timeout of a webhook's caller (10 s).
	fetchTimeout = 5 * time.Second
	// fetchPause is the time before an address that failed is tried again.
	fetchPause = 10 * time.Second
	// maxFetched bounds a text, in bytes, and maxTexts the number of cached texts: more than the
	// policies at URLs in any cluster.
	maxFetched = 1 << 20
	maxTexts   = 100
	// maxRedirects bounds the redirects of one fetch.
	maxRedirects = 5
)

// texts fetches the texts of policies, each once. It caches only a text with the expected
// checksum; any other response is an error for a while.
type texts struct {
	client *http.Client
	flight *cache.Flight[string, []byte]

	mu    sync.Mutex
	known map[string]text
}

// text is a response, or an error with the time of the next attempt.
type text struct {
	content []byte
	err     error
	until   time.Time
}

var _ sigstore.Fetcher = (*texts)(nil)

func newTexts(transport http.RoundTripper) (*texts, error) {
	flight, err := cache.NewFlight[string, []byte](fetchTimeout)
	if err != nil {
		return nil, err
	}
	return &texts{flight: flight, known: map[string]text{}, client: &http.Client{
		Transport: transport,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Scheme != "https" || len(via) > maxRedirects {
				return errors.New("it sends on without TLS, or too often")
			}
			return nil
		},
	}}, nil
}

// Fetch implements sigstore.Fetcher.
func (t *texts) Fetch(ctx context.Context, address, sum string) ([]byte, error) {
	key := sum + " " + address
	t.mu.Lock()
	have, ok := t.known[key]
	t.mu.Unlock()
	if ok && (have.err == nil || time.Now().Before(have.until)) {
		return have.content, have.err
	}
	return t.flight.Do(ctx, key, func(ctx context.Context) ([]byte, error) {
		content, err := t.get(ctx, address)
		if got := sha256.Sum256(content); err == nil && hex.EncodeToString(got[:]) != sum {
			content, err = nil, fmt.Errorf("what stands there has the SHA-256 %x", got)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(t.known) >= maxTexts {
			clear(t.known)
		}
		t.known[key] = text{content: content, err: err, until: time.Now().Add(fetchPause)}
		return content, err
	})
}

func (t *texts) get(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, redact.Error(err)
	}
	response, err := t.client.Do(request)
	if err != nil {
		return nil, redact.Error(err)
	}
	content, err := limit.ReadAll(response.Body, maxFetched, "the policy at "+redact.URL(request.URL))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers with status %d", redact.URL(request.URL), response.StatusCode)
	}
	return content, nil
}
