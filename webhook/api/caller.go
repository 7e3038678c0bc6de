package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
)

// authorise authenticates the caller, and checks that the settings allow the caller.
func (p *pending) authorise(ctx context.Context, r *http.Request) error {
	c := &p.handler.config
	if c.User != "" {
		p.call.User = c.User
		return nil
	}
	token, err := tokenOf(r)
	if err != nil {
		return err
	}
	leave, err := p.handler.queue.lookUp()
	if err != nil {
		return err
	}
	defer leave()
	user, err := c.Authenticator.Authenticate(ctx, token)
	if err != nil {
		return &problem{cause: Indeterminate, message: "the token could not be verified; retry", err: err}
	}
	if user.Name == "" {
		return problemf(Unauthenticated, "the token is not valid")
	}
	p.call.User = user.Name
	if c.Callers != nil && !c.Callers.include(user) {
		return problemf(Forbidden, "permission denied for %s: the gateway's settings list the allowed users and groups", user.Name)
	}
	return nil
}

func (c *Callers) include(user policy.User) bool {
	return slices.Contains(c.Users, user.Name) || slices.ContainsFunc(user.Groups, func(g string) bool { return slices.Contains(c.Groups, g) })
}

// AnyOf tries several authenticators in order and returns the first user. If none returns a user
// and one fails, the result is an error.
type AnyOf []Authenticator

// Authenticate implements Authenticator.
func (all AnyOf) Authenticate(ctx context.Context, token string) (policy.User, error) {
	var failed []error
	for _, one := range all {
		user, err := one.Authenticate(ctx, token)
		if err == nil && user.Name != "" {
			return user, nil
		}
		failed = append(failed, err)
	}
	return policy.User{}, errors.Join(failed...)
}

// tokenOf returns the bearer token of a request (RFC 6750, section 2.1).
func tokenOf(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", problemf(Unauthenticated, "exactly one header Authorization: Bearer TOKEN is required")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	isOdd := func(c rune) bool { return c <= ' ' || c > '~' }
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken || strings.ContainsFunc(token, isOdd) {
		return "", problemf(Unauthenticated, "a header Authorization: Bearer TOKEN is required")
	}
	return token, nil
}
