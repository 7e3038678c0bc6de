package trust

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/tuf"
	"github.com/theupdateframework/go-tuf/v2/metadata"
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
	// restart; empty disables it.
	CachePath string
	// Interval is the time between two refreshes; zero means
	// DefaultRootInterval.
	Interval time.Duration
	// Client sends the requests, and so decides which addresses are allowed; required.
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
		Fetcher:           fetcher{ctx: ctx, tuf: t},
	})
	if err != nil {
		return nil, err
	}
	return client.GetTarget(cmp.Or(t.Target, "trusted_root.json"))
}

// Fetch fetches the trusted root once, in a minute at most, and returns it if it can be parsed.
// Without a Root, the repository must be a copy of the public-good one, at any address. Fetch
// ignores Interval. It stores only the metadata in CachePath, and is too slow to run within a
// request.
func (t *TUF) Fetch(ctx context.Context) (text []byte, err error) {
	filled := *t
	filled.URL = cmp.Or(t.URL, tuf.DefaultMirror)
	origin := "TUF repository " + filled.URL
	if len(filled.Root) == 0 {
		filled.Root = tuf.DefaultRoot()
	}
	switch {
	case t.Files != nil && t.URL != "":
		return nil, errors.New("trust: TUF wants a URL or files, and not both")
	case t.Files != nil:
		filled.URL, origin = carried, "TUF repository of a document"
	case t.Client == nil:
		return nil, errors.New("trust: TUF wants an HTTP client")
	}
	defer func() { // the server is untrusted: a policy chooses it
		if recovered := recover(); recovered != nil {
			text, err = nil, fmt.Errorf("%s: its metadata cannot be read: %v", origin, recovered)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, rootTimeout)
	defer cancel()
	text, err = filled.fetch(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", origin, err)
	}
	if _, err := parseRoot(origin, text); err != nil {
		return nil, err
	}
	return text, nil
}

const (
	// carried is the address of a repository without one.
	carried = "https://repository.invalid"
	// packed is the folder of the repository in archives from TUF's tools, which
	// policy-controller's TrustRoots contain.
	packed = "repository/"
)

// fetcher is go-tuf's Fetcher on the given client, or on files. It holds the context of one
// refresh, because go-tuf has no parameter for one.
type fetcher struct {
	ctx context.Context
	tuf *TUF
}

// DownloadFile implements go-tuf's Fetcher.
func (f fetcher) DownloadFile(address string, most int64, _ time.Duration) ([]byte, error) {
	address = f.tuf.locate(address)
	if f.tuf.Files != nil {
		return f.tuf.file(address, most)
	}
	request, err := http.NewRequestWithContext(f.ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := f.tuf.Client.Do(request)
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

// locate inserts the folder of the targets into the address of a target.
func (t *TUF) locate(address string) string {
	if t.Targets == "" {
		return address
	}
	base := strings.TrimRight(t.URL, "/") + "/"
	if target, ok := strings.CutPrefix(address, base+"targets/"); ok {
		return base + strings.Trim(t.Targets, "/") + "/" + target
	}
	return address
}

// file returns the file at an address from a repository in memory.
func (t *TUF) file(address string, most int64) ([]byte, error) {
	name := strings.TrimPrefix(address, carried+"/")
	data, ok := t.Files[name]
	if !ok {
		data, ok = t.Files[packed+name]
	}
	if !ok {
		return nil, &metadata.ErrDownloadHTTP{StatusCode: http.StatusNotFound, URL: address}
	}
	if int64(len(data)) > most {
		return nil, &metadata.ErrDownloadLengthMismatch{Msg: fmt.Sprintf("%s has more than the expected %d bytes", address, most)}
	}
	return data, nil
}
