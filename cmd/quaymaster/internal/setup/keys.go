package setup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/certpool"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// Bounds of a key that is not in a file.
const (
	// maxKey is in bytes; a public key in PEM has some hundred.
	maxKey = 64 << 10
	// keyTimeout is the time for one key, within that of the run.
	keyTimeout = 15 * time.Second
	// maxKeyRedirects is the number of redirects; a release's download has one or two.
	maxKeyRedirects = 5
)

// readKeys reads the keys of --key that are URLs or standard input.
func (f *Flags) readKeys(ctx context.Context, t command.Terminal, authorities *authority.Flags) error {
	for _, name := range authorities.Elsewhere() {
		var text []byte
		var err error
		if name == authority.StandardInput {
			text, err = keyOfInput(t)
		} else {
			text, err = f.fetchKey(ctx, name)
		}
		if err != nil {
			return fmt.Errorf("--key %s: %w", authority.Shown(name), err)
		}
		authorities.Add(name, text)
	}
	return nil
}

// keyOfInput reads a key from standard input, which must not be a terminal: the command would wait
// without a word.
func keyOfInput(t command.Terminal) ([]byte, error) {
	if command.IsTerminal(t.In) {
		return nil, errors.New("standard input is a terminal: pipe the key into the command, or name a file")
	}
	text, err := limit.ReadAll(t.In, maxKey, "standard input")
	if err == nil && len(text) == 0 {
		err = errors.New("standard input is empty")
	}
	return text, err
}

// fetchKey fetches a key over HTTPS. Redirects stay on HTTPS: an on-path attacker could replace the key
// otherwise.
func (f *Flags) fetchKey(ctx context.Context, name string) ([]byte, error) {
	address, err := url.Parse(name)
	switch {
	case err != nil || address.Host == "":
		return nil, errors.New("want a URL such as https://example.com/cosign.pub")
	case address.Scheme != "https":
		return nil, errors.New("keys are fetched over https alone: an on-path attacker could replace the key")
	case address.User != nil:
		return nil, errors.New("the URL has a user or a password, which the output would show: download the key to a file")
	case f.Offline:
		return nil, errors.New("--offline opens no connection: download the key to a file")
	}
	client, err := f.keyClient()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, name, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if nested, ok := errors.AsType[*url.Error](err); ok {
		err = nested.Err // the name is in the message already
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %d %s", response.Request.URL.Host, response.StatusCode, http.StatusText(response.StatusCode))
	}
	return limit.ReadAll(response.Body, maxKey, "the answer")
}

// keyClient returns the client of keys. The authorities of --registry-ca are trusted as well.
func (f *Flags) keyClient() (*http.Client, error) {
	client := &http.Client{CheckRedirect: func(next *http.Request, before []*http.Request) error {
		switch {
		case next.URL.Scheme != "https":
			return fmt.Errorf("it redirects to %s://%s: keys are fetched over https alone", next.URL.Scheme, next.URL.Host)
		case len(before) > maxKeyRedirects:
			return fmt.Errorf("it redirects more than %d times", maxKeyRedirects)
		}
		next.Header.Del("Referer") // the address before may be presigned
		return nil
	}}
	transport := engine.GuardedTransport()
	if f.RegistryCA != "" {
		pool, err := certpool.Read(f.RegistryCA, true)
		if err != nil {
			return nil, fmt.Errorf("--registry-ca: %w", err)
		}
		if guarded, ok := transport.(*http.Transport); ok {
			guarded.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		}
	}
	client.Transport = transport
	return client, nil
}
