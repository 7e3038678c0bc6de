package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// admit finds out who asks, and whether he may.
func (x *exchange) admit(ctx context.Context, r *http.Request) error {
	if x.handler.everybody != "" {
		x.call.User = x.handler.everybody
		return nil
	}
	token, err := tokenOf(r)
	if err != nil {
		return err
	}
	leave, err := x.handler.queue.ask()
	if err != nil {
		return err
	}
	defer leave()
	user, groups, err := x.handler.config.Authenticator.Authenticate(ctx, token)
	if err != nil {
		return &problem{cause: CannotLook, message: "whose token it is could not be looked up; ask again", err: err}
	}
	if user == "" {
		return problemf(Unauthenticated, "nobody is known by this token")
	}
	x.call.User = user
	if x.handler.confined && !slices.Contains(x.handler.users, user) && !slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(x.handler.groups, g) }) {
		return problemf(Forbidden, "%s may not ask here: the gateway's settings name who may", user)
	}
	return nil
}

// AnyOf asks several, in order: the first who knows a token says whose it is. Where
// none does and one could not look, nobody could.
type AnyOf []Authenticator

// Authenticate implements Authenticator.
func (all AnyOf) Authenticate(ctx context.Context, token string) (user string, groups []string, err error) {
	var failed []error
	for _, one := range all {
		user, groups, err := one.Authenticate(ctx, token)
		if err == nil && user != "" {
			return user, groups, nil
		}
		failed = append(failed, err)
	}
	return "", nil, errors.Join(failed...)
}

// tokenOf returns the bearer token of a request (RFC 6750, section 2.1).
func tokenOf(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", problemf(Unauthenticated, "want one header Authorization: Bearer TOKEN")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	isOdd := func(c rune) bool { return c <= ' ' || c > '~' }
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken || strings.ContainsFunc(token, isOdd) {
		return "", problemf(Unauthenticated, "want a header Authorization: Bearer TOKEN")
	}
	return token, nil
}
