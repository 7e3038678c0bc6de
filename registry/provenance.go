package registry

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/quaymaster/quaymaster/image"
)

// Provenance describes the origin of a Client's credentials in refusals. It is separate
// from the credentials, since two workloads with the same credential, and so the same
// tokens, may have it from different sources.
type Provenance struct {
	// Sources replace the Names of the Client's first Sources.
	Sources []string
	// Notes say which places were of no use, and why, as in "secret pull does
	// not exist". They hold no credential.
	Notes []string
	// Advice is the remedy for a refusal where there was no credential; "" is advice for a
	// command line.
	Advice string
	// FailedLookups names a source that failed although it precedes the used one; "" means none.
	// Its credential might have more rights: a refusal, and an image that is not found, are
	// then errors of the kind Doubt; "" means image.Unavailable.
	FailedLookups string
	Doubt         image.Kind
}

// From returns a Client that shares everything with c, tokens too, and reports p as the
// origin of its credentials.
func (c *Client) From(p Provenance) *Client {
	other := *c
	other.from = p
	other.from.Notes, other.from.Sources = slices.Clone(p.Notes), slices.Clone(p.Sources)
	return &other
}

// hint adds the remedy for a refusal: it names the source, never the value.
func (r *requester) hint(ctx context.Context, q request, failure *Error) {
	failure.denied, failure.missing = failure.Kind == image.Refused, failure.Kind == image.NotFound
	switch doubted := r.doubt(q, failure); {
	case doubted || failure.Kind == image.Refused:
		failure.Hint = r.blame(ctx, q.repository)
	case failure.Status == http.StatusTooManyRequests:
		failure.Hint = "the registry limits requests: wait, log in, or use a mirror"
	case failure.Kind == image.NotFound:
		failure.Hint = "check the name and that it was pushed"
	}
}

// doubt turns an answer into an error if an unavailable credential might have changed it.
// Missing evidence is not doubted: a credential with pull access to a repository can read
// all of it.
func (r *requester) doubt(q request, failure *Error) (doubted bool) {
	aboutImage := q.op == opResolve || q.op == opDescribe
	doubted = r.from.FailedLookups != "" && (failure.Kind == image.Refused || failure.Kind == image.NotFound && aboutImage)
	if doubted {
		failure.Kind, failure.final = cmp.Or(r.from.Doubt, image.Unavailable), true
	}
	return doubted
}

// blame names the credential that was tried.
func (r *requester) blame(ctx context.Context, repository image.Repository) string {
	var text strings.Builder
	switch names := r.tried(context.WithoutCancel(ctx), repository); {
	case len(names) == 1:
		text.WriteString("the credential from " + names[0] + " does not allow it: check that it is current and may pull")
	case len(names) > 1:
		text.WriteString("the credentials from " + strings.Join(names, " and from ") + " do not allow it: check that one is current and may pull")
	case r.from.Advice != "":
		text.WriteString("it was asked anonymously: " + r.from.Advice)
	default:
		text.WriteString("it was asked anonymously: if it exists, log in with \"docker login " + repository.Registry() + "\" or name a credential")
	}
	if r.from.FailedLookups != "" {
		text.WriteString("; before it, " + r.from.FailedLookups)
	}
	for _, note := range r.from.Notes {
		text.WriteString("; " + note)
	}
	return text.String()
}

// tried names the sources that have a credential for a repository.
func (r *requester) tried(ctx context.Context, repository image.Repository) []string {
	var names []string
	for i, source := range r.credentials {
		if credential, _ := r.credentials.at(ctx, i, repository); credential == auth.EmptyCredential {
			continue
		}
		if i < len(r.from.Sources) {
			source.Name = r.from.Sources[i]
		}
		if named, is := source.Keychain.(Entries); is {
			if entry := named.Entry(ctx, resource(repository)); entry != "" {
				source.Name += fmt.Sprintf(" (entry %q)", entry)
			}
		}
		names = append(names, source.Name)
	}
	return names
}
