package trust

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/sigstore/sigstore-go/pkg/tuf"
	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// TUF is a repository of The Update Framework (specification 1.0) that has a
// trusted_root.json.
type TUF struct {
	// URL is the repository's address; empty means the public-good one.
	URL string
	// Root is the first root.json; it may be empty for the public-good
	// repository only.
	Root []byte
	// Target is the name of the trusted root; empty means trusted_root.json.
	Target string
	// CachePath is a directory for the repository's metadata, which guards
	// against rollback over a restart; empty means to keep none.
	CachePath string
	// Interval is the time between two refreshes; zero means
	// DefaultRootInterval.
	Interval time.Duration
	// Client makes the requests, and so decides what may be dialled; required.
	Client *http.Client
}

// checked returns a copy with the defaults filled in; nil stays nil.
func (t *TUF) checked() (*TUF, error) {
	if t == nil {
		return nil, nil
	}
	filled := *t
	filled.URL = cmp.Or(t.URL, tuf.DefaultMirror)
	switch {
	case t.Client == nil:
		return nil, errors.New("trust: TUF wants an HTTP client")
	case t.Interval < 0:
		return nil, fmt.Errorf("trust: TUF interval %s is negative", t.Interval)
	case len(t.Root) == 0 && filled.URL != tuf.DefaultMirror:
		return nil, fmt.Errorf("trust: the TUF repository %s wants its first root.json", t.URL)
	case len(t.Root) == 0:
		filled.Root = tuf.DefaultRoot()
	}
	return &filled, nil
}

func (t *TUF) fetch(ctx context.Context) ([]byte, error) {
	client, err := tuf.New(&tuf.Options{
		Root:              t.Root,
		RepositoryBaseURL: t.URL,
		CachePath:         t.CachePath,
		DisableLocalCache: t.CachePath == "",
		Fetcher:           fetcher{ctx: ctx, client: t.Client},
	})
	if err != nil {
		return nil, err
	}
	return client.GetTarget(cmp.Or(t.Target, "trusted_root.json"))
}

// fetcher is go-tuf's Fetcher on the given client. It holds the context of one
// refresh, because go-tuf passes none.
type fetcher struct {
	ctx    context.Context
	client *http.Client
}

// DownloadFile implements go-tuf's Fetcher.
func (f fetcher) DownloadFile(address string, most int64, _ time.Duration) ([]byte, error) {
	request, err := http.NewRequestWithContext(f.ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, &metadata.ErrDownloadHTTP{StatusCode: response.StatusCode, URL: address}
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, &metadata.ErrDownloadLengthMismatch{Msg: fmt.Sprintf("%s has more than the expected %d bytes", address, most)}
	}
	return data, nil
}
