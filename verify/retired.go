package verify

import (
	"errors"
	"fmt"
	"time"
)

// MaxRetired bounds the retired identities: each signature by a short-lived certificate is compared with all.
const MaxRetired = 1000

// RetiredIdentity bounds in time the signatures of an identity in a short-lived certificate, by whichever
// identity or expression a policy names it.
type RetiredIdentity struct {
	Identity Identity `json:"identity"`
	// NotBefore and NotAfter bound the trusted time of signing; zero means unbounded, and one of them is
	// set.
	NotBefore time.Time `json:"notBefore,omitzero"`
	NotAfter  time.Time `json:"notAfter,omitzero"`
}

// ValidateRetired refuses identities that match nothing or are not bounded, and too many of them.
func ValidateRetired(list []RetiredIdentity) error {
	if len(list) > MaxRetired {
		return fmt.Errorf("%d retired identities are more than the bound of %d", len(list), MaxRetired)
	}
	var errs []error
	for i, r := range list {
		switch {
		case r.Identity.Issuer.IsZero() || r.Identity.Subject.IsZero():
			errs = append(errs, fmt.Errorf("retired identity %d: want an issuer and a subject", i))
		case r.NotBefore.IsZero() && r.NotAfter.IsZero():
			errs = append(errs, fmt.Errorf("retired identity %d: want notBefore or notAfter", i))
		case !r.NotAfter.IsZero() && !r.NotBefore.Before(r.NotAfter):
			errs = append(errs, fmt.Errorf("retired identity %d: notBefore %s is not before notAfter %s", i, stamp(r.NotBefore), stamp(r.NotAfter)))
		}
	}
	return errors.Join(errs...)
}

// Within returns the authority with the bounds of all retired identities that an issuer and one of the
// subjects of a certificate meet.
func (a Authority) Within(issuer string, subjects []string) Authority {
	for _, r := range a.RetiredIdentities {
		if !r.Identity.Match(issuer, subjects) {
			continue
		}
		if r.NotBefore.After(a.NotBefore) {
			a.NotBefore = r.NotBefore
		}
		if !r.NotAfter.IsZero() && (a.NotAfter.IsZero() || r.NotAfter.Before(a.NotAfter)) {
			a.NotAfter = r.NotAfter
		}
	}
	return a
}
