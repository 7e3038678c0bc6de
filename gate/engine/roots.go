package engine

import (
	"context"
	"net/http"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// Fetcher reads the TUF repositories that policies and TrustRoots name.
type Fetcher struct {
	client  *http.Client
	parsing chan struct{} // policies choose the repositories, so they are parsed one at a time
}

// NewFetcher makes a Fetcher with the guarded dialer.
func NewFetcher() Fetcher {
	return Fetcher{client: &http.Client{Transport: GuardedTransport()}, parsing: make(chan struct{}, 1)}
}

// TrustRoot returns a function that fetches the trusted_root.json of the repository that a
// TrustRoot names or embeds. Folder stores its metadata, against rollback; it may be empty.
func (f Fetcher) TrustRoot(t *trustroot.TUF, folder string) func(context.Context) ([]byte, error) {
	return (&trust.TUF{
		URL: t.Mirror, Root: t.Root, Target: t.Target, Targets: t.Targets, Files: t.Files, CachePath: folder, Client: f.client, Parsing: f.parsing,
	}).Fetcher()
}

// Attestor does the same for a repository that an attestor names.
func (f Fetcher) Attestor(t attestor.TUF, folder string) func(context.Context) ([]byte, error) {
	return (&trust.TUF{URL: t.Mirror, Root: t.Root, CachePath: folder, Client: f.client, Parsing: f.parsing}).Fetcher()
}
