package trust

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sigstore/sigstore-go/pkg/tuf"

	"github.com/quaymaster/quaymaster/verify/internal/tufclient"
)

// TUF is a repository of The Update Framework (specification 1.0) with a trusted_root.json.
type TUF struct {
	// URL is the repository's address; empty means the public-good one.
	URL string
	// Root is the first root.json; it may be empty for the public-good
	// repository only.
	Root []byte
	// Target is the name of the trusted root; empty means trusted_root.json.
	Target string
	// Targets is the folder of the targets in the repository; empty means targets.
	Targets string
	// Files is the content of the repository by path, for Fetch without a connection. nil means
	// that the repository is at URL.
	Files map[string][]byte
	// CachePath is a directory for the repository's metadata, which prevents a rollback over a
	// restart: of versions, and to the keys of an earlier root. Empty disables it.
	CachePath string
	// Interval is the time between two refreshes; zero means
	// DefaultRootInterval.
	Interval time.Duration
	// Client sends the requests, and so decides which addresses are allowed; required.
	Client *http.Client
	// Parsing has a capacity of one; nil means that others do not matter. Repositories with the same
	// channel are parsed one at a time, because metadata takes many times its size in memory.
	Parsing chan struct{}
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

// client returns a client of the repository, which must have its defaults filled in.
func (t *TUF) client() *tufclient.Client {
	return tufclient.New(tufclient.Options{
		URL: t.URL, Root: t.Root, Target: t.Target, Targets: t.Targets, Files: t.Files, Folder: t.CachePath, HTTP: t.Client, Parsing: t.Parsing,
	})
}

// Fetch fetches the trusted root once, in a minute at most, and returns it if it can be parsed.
// Without a Root, the repository must be a copy of the public-good one, at any address. Fetch
// ignores Interval. It stores only the metadata in CachePath, and is too slow to run within a
// request.
func (t *TUF) Fetch(ctx context.Context) ([]byte, error) { return t.Fetcher()(ctx) }

// Fetcher returns a function that does what Fetch does. A call of it accepts nothing older than
// its earlier calls did, also without a CachePath.
func (t *TUF) Fetcher() func(context.Context) ([]byte, error) {
	filled := *t
	filled.URL = cmp.Or(t.URL, tuf.DefaultMirror)
	origin := filled.origin()
	if len(filled.Root) == 0 {
		filled.Root = tuf.DefaultRoot()
	}
	var err error
	switch {
	case t.Files != nil && t.URL != "":
		err = errors.New("trust: TUF wants a URL or files, and not both")
	case t.Files != nil:
		origin = "TUF repository of a document"
	case t.Client == nil:
		err = errors.New("trust: TUF wants an HTTP client")
	}
	client := filled.client()
	return func(ctx context.Context) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, rootTimeout)
		defer cancel()
		text, err := client.Fetch(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", origin, err)
		}
		if _, err := parseRoot(origin, text); err != nil {
			return nil, err
		}
		return text, nil
	}
}
