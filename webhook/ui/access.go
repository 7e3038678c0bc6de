package ui

import (
	"context"
	"net/http"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/internal/page"
)

// admit authenticates and authorises a request, and returns the user; none without tokens. The
// response does not reveal why authentication failed.
func (h *Handler) admit(r *http.Request) (policy.User, error) {
	if h.everybody {
		return policy.User{}, nil
	}
	token, ok := tokenOf(r)
	if !ok {
		return policy.User{}, page.Problem{
			Status: http.StatusUnauthorized, Reason: "unauthenticated", Message: "exactly one header Authorization: Bearer TOKEN is required",
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	user, err := h.config.Authenticator.Authenticate(ctx, token)
	switch {
	case err != nil:
		return policy.User{}, page.Problem{
			Status: http.StatusServiceUnavailable, Reason: "indeterminate", Message: "the token could not be verified; retry",
		}
	case user.Name == "":
		return policy.User{}, page.Problem{Status: http.StatusUnauthorized, Reason: "unauthenticated", Message: "the token is not valid"}
	case h.authorizer == nil:
		return user, nil
	}
	may, err := h.authorizer.MayRead(ctx, user)
	switch {
	case err != nil:
		return policy.User{}, page.Problem{
			Status: http.StatusServiceUnavailable, Reason: "indeterminate", Message: "your permission could not be verified; retry",
		}
	case !may:
		return policy.User{}, page.Problem{
			Status: http.StatusForbidden, Reason: "forbidden", Message: "permission denied: request the right to get the dashboard's path",
		}
	}
	return user, nil
}

// tokenOf returns the bearer token of a request (RFC 6750, section 2.1).
func tokenOf(r *http.Request) (string, bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	isOdd := func(c rune) bool { return c <= ' ' || c > '~' }
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken || strings.ContainsFunc(token, isOdd) {
		return "", false
	}
	return token, true
}
