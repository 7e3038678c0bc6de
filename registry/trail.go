package registry

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/quaymaster/quaymaster/registry/internal/guard"
)

// trail holds the observations of one try about credentials. All methods work on nil, too.
type trail struct {
	// mattered: a request carried a credential, or the registry asked for one.
	mattered bool
	// refusesBare: the registry requires a credential, and gives no token without.
	refusesBare bool
	isBasic     bool // the last challenge
}

// note records a request and its answer, which may be nil.
func (t *trail) note(home *url.URL, q *http.Request, answer *http.Response) {
	if t == nil {
		return
	}
	isBare := q.Header.Get("Authorization") == "" && (q.Body == nil || q.Body == http.NoBody)
	t.mattered = t.mattered || !isBare
	if answer == nil || answer.StatusCode != http.StatusUnauthorized || !guard.SameOrigin(home, q.URL) {
		return
	}
	scheme, _, _ := strings.Cut(strings.TrimSpace(answer.Header.Get("WWW-Authenticate")), " ")
	t.mattered = true
	t.isBasic = strings.EqualFold(scheme, "Basic")
	t.refusesBare = t.refusesBare || isBare && !strings.EqualFold(scheme, "Bearer")
}

// fits returns an error for a credential that the registry's scheme does not use. No request is sent
// with it.
func (t *trail) fits(credential auth.Credential) error {
	switch {
	case credential == auth.EmptyCredential:
		return nil
	case t != nil && t.isBasic && (credential.Username == "" || credential.Password == ""):
		return &unfitError{errors.New("the registry wants a user name and a password")}
	case !httpguts.ValidHeaderFieldValue(credential.AccessToken):
		return &unfitError{errors.New("the token has characters that no header may hold")}
	}
	return nil
}

// unfitError reports a credential that cannot be sent.
type unfitError struct{ error }
