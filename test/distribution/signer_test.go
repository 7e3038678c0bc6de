package distribution

import (
	"net/netip"
	"testing"

	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/quaymaster/quaymaster/test/peers/notary"
)

// notarize has a notary sign an image by digest, with an envelope of a media type.
func notarize(t *testing.T, n *notary.Notary, host, image, mediaType string) {
	t.Helper()
	repository, err := remote.NewRepository(image)
	check(t, err)
	repository.PlainHTTP = true
	repository.Client = &auth.Client{
		BlockedRealmPrefixes: []netip.Prefix{}, // the token server is this machine, too
		Credential:           auth.StaticCredential(host, auth.Credential{Username: user, Password: password}),
		Cache:                auth.NewCache(),
	}
	check(t, n.Sign(t.Context(), repository, repository.Reference.Reference, mediaType))
}
