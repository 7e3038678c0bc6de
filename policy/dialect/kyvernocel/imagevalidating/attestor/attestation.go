package attestor

import (
	"errors"
	"fmt"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// Attestation is a kind of statement that a policy names.
type Attestation struct {
	// Name is its name in expressions: attestations.<name>.
	Name string
	// Type is a predicate type, in full; with Artifact it is the artifact type of a
	// referrer that notation signed.
	Type     string
	Artifact bool
}

// Attestations reads spec.attestations; path is the location of the list.
func Attestations(path string, list []v1alpha1.Attestation) ([]Attestation, error) {
	if len(list) > maxEntries {
		return nil, field.Fail(path, "%d are more than %d", len(list), maxEntries)
	}
	var out []Attestation
	var errs []error
	names := map[string]bool{}
	for i, doc := range list {
		place := fmt.Sprintf("%s[%d]", path, i)
		a := Attestation{Name: doc.Name}
		switch {
		case doc.Name == "":
			errs = append(errs, field.Fail(place+".name", "is empty"))
		case names[doc.Name]:
			errs = append(errs, field.Fail(place+".name", "%q is the name of an earlier attestation", doc.Name))
		}
		names[doc.Name] = true
		where := ".intoto.type"
		errs = append(errs, one(place, "intoto and referrer", doc.InToto != nil, doc.Referrer != nil))
		switch {
		case doc.InToto != nil:
			a.Type = attest.PredicateURI(doc.InToto.Type)
		case doc.Referrer != nil:
			a.Type, a.Artifact, where = doc.Referrer.Type, true, ".referrer.type"
		default:
			continue
		}
		if a.Type == "" {
			errs = append(errs, field.Fail(place+where, "is empty"))
		}
		out = append(out, a)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// Proves returns nil if the attestor can verify statements of the kind, or the reason why it
// never can: cosign signs in-toto statements, and notation signs referrers.
func (a *Attestor) Proves(s Attestation) error {
	switch {
	case a.Notary && !s.Artifact:
		return fmt.Errorf("attestors.%s is a notary, which signs referrers: attestations.%s is an in-toto statement", a.Name, s.Name)
	case !a.Notary && s.Artifact:
		return fmt.Errorf("attestors.%s is of cosign, which signs in-toto statements: attestations.%s is a referrer", a.Name, s.Name)
	}
	return nil
}
