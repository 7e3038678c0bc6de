package verifyimages

import (
	"errors"
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/verifyimages/imageverification"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

func (b builder) keyless(doc imageverification.Keyless, path string) (verify.Authority, error) {
	var errs [5]error
	a, err := b.common(doc.Rekor, doc.CTLog, path)
	errs[0] = err
	a.Keyless = &verify.Keyless{}
	var identity verify.Identity
	identity.Issuer, errs[1] = b.matcher(doc.Issuer, doc.IssuerRegExp, path, "issuer")
	identity.Subject, errs[2] = b.matcher(doc.Subject, doc.SubjectRegExp, path, "subject")
	a.Keyless.Identities = []verify.Identity{identity}
	a.Keyless.Roots, errs[3] = b.pem(doc.Roots, path+".roots", field.Certificate, trust.CheckChain)
	a.Keyless.CT, errs[4] = b.ct(doc.CTLog, path)
	for _, name := range slices.Sorted(maps.Keys(doc.AdditionalExtensions)) {
		place := path + ".additionalExtensions[" + name + "]"
		oid, known := verify.FulcioExtension(name)
		if !known {
			return a, errors.Join(append(errs[:], field.Fail(place, "is no extension of Fulcio's, neither by name nor by identifier (%sN)", verify.FulcioArc))...)
		}
		value := doc.AdditionalExtensions[name]
		if value == "" {
			return a, errors.Join(append(errs[:], field.Fail(place, "is empty: write * for any value"))...)
		}
		a.Keyless.Extensions = append(a.Keyless.Extensions, verify.Extension{OID: oid, Name: name, Value: verify.Wildcard(value)})
	}
	return a, errors.Join(errs[:]...)
}

// matcher compiles a text with wildcards, or an expression, which must match the whole text. One
// of them is required: an identity with an open issuer or subject is one that any user can
// obtain.
func (b builder) matcher(text, expression, path, name string) (verify.Matcher, error) {
	place := path + "." + name
	switch {
	case text != "" && expression != "":
		return verify.Matcher{}, field.Fail(place, "cannot be combined with %sRegExp: want one of them", name)
	case b.open(text) || b.open(expression):
		return verify.Matcher{}, nil
	case text != "":
		return verify.Wildcard(text), nil
	case expression != "":
		m, err := verify.Expression(expression)
		return m, field.Below(place+"RegExp", err)
	}
	return verify.Matcher{}, field.Fail(place, "is missing, so that any %s would do: name it, or write \"*\" if that is meant", name)
}
