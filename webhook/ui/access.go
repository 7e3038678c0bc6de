package ui

import (
	"context"
	"net/http"
	"strings"
)

// admit authenticates and authorises a request. The response does not reveal why authentication
// failed.
func (h *Handler) admit(r *http.Request) error {
	if h.everybody {
		return nil
	}
	token, ok := tokenOf(r)
	if !ok {
		return problem{http.StatusUnauthorized, "unauthenticated", "exactly one header Authorization: Bearer TOKEN is required"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	user, err := h.config.Authenticator.Authenticate(ctx, token)
	switch {
	case err != nil:
		return problem{http.StatusServiceUnavailable, "indeterminate", "the token could not be verified; retry"}
	case user.Name == "":
		return problem{http.StatusUnauthorized, "unauthenticated", "the token is not valid"}
	case h.authorizer == nil:
		return nil
	}
	may, err := h.authorizer.MayRead(ctx, user)
	switch {
	case err != nil:
		return problem{http.StatusServiceUnavailable, "indeterminate", "your permission could not be verified; retry"}
	case !may:
		return problem{http.StatusForbidden, "forbidden", "permission denied: request the right to get the dashboard's path"}
	}
	return nil
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
