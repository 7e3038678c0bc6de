package attestor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

func (b *builder) keyless(doc *v1alpha1.Keyless, log *v1alpha1.CTLog, path string) (*verify.Keyless, error) {
	place := path + ".keyless"
	switch {
	case len(doc.Identities) == 0:
		return nil, field.Fail(place+".identities", "is empty, so that any certificate would be accepted: name the identities")
	case len(doc.Identities) > maxEntries:
		return nil, field.Fail(place+".identities", "%d are more than %d", len(doc.Identities), maxEntries)
	}
	out := &verify.Keyless{}
	var errs []error
	for i := range doc.Identities {
		identity, err := b.identity(&doc.Identities[i], fmt.Sprintf("%s.identities[%d]", place, i))
		errs = append(errs, err)
		out.Identities = append(out.Identities, identity)
	}
	var err error
	if doc.Roots != "" {
		out.Roots, err = certificatesPEM(doc.Roots, place+".roots")
		if err == nil {
			err = field.Below(place+".roots", trust.CheckChain(out.Roots))
		}
		errs = append(errs, err)
	}
	out.Extensions, err = extensions(doc.AdditionalExtensions, place+".additionalExtensions")
	errs = append(errs, err)
	out.CT, err = certificateLog(log, path+".ctlog")
	return out, errors.Join(append(errs, err)...)
}

// identity compiles an issuer and a subject. Both are required: an identity with an open issuer
// or subject is one that any user can obtain.
func (b *builder) identity(doc *v1alpha1.Identity, path string) (verify.Identity, error) {
	var out verify.Identity
	var errs [2]error
	switch err := one(path, "issuer and issuerRegExp", doc.Issuer != "", doc.IssuerRegExp != ""); {
	case err != nil:
		errs[0] = err
	case doc.Issuer != "":
		out.Issuer, errs[0] = exactly(doc.Issuer, path+".issuer")
	default:
		out.Issuer, errs[0] = pattern(doc.IssuerRegExp, path+".issuerRegExp")
	}
	switch err := one(path, "subject, subjectRegExp and subjectExpression", doc.Subject != "", doc.SubjectRegExp != "", doc.SubjectExpression != ""); {
	case err != nil:
		errs[1] = err
	case doc.Subject != "":
		out.Subject, errs[1] = exactly(doc.Subject, path+".subject")
	case doc.SubjectRegExp != "":
		out.Subject, errs[1] = pattern(doc.SubjectRegExp, path+".subjectRegExp")
	default:
		place := path + ".subjectExpression"
		text, open, err := b.imageExpression(doc.SubjectExpression, place)
		errs[1] = err
		if err == nil && !open {
			out.Subject, errs[1] = pattern(text, place)
		}
	}
	return out, errors.Join(errs[:]...)
}

// exactly compares letter by letter, as Kyverno does here; its older policies have
// wildcards in the same place.
func exactly(text, path string) (verify.Matcher, error) {
	if strings.Contains(text, "*") {
		return verify.Matcher{}, field.Fail(path, "%q is compared letter by letter, so that * is no wildcard: use %sRegExp",
			field.Shorten(text), path[strings.LastIndex(path, ".")+1:])
	}
	return verify.Exactly(text), nil
}

// pattern compiles an expression that must match the whole text.
func pattern(text, path string) (verify.Matcher, error) {
	m, err := verify.Expression(text)
	return m, field.Below(path, err)
}

// extensions compiles certificate extensions; their values may have wildcards, as in Kyverno's
// older policies. All must match.
func extensions(doc map[string]string, path string) ([]verify.Extension, error) {
	if len(doc) > maxEntries {
		return nil, field.Fail(path, "%d are more than %d", len(doc), maxEntries)
	}
	var out []verify.Extension
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		place := path + "[" + field.Shorten(name) + "]"
		oid, known := verify.FulcioExtension(name)
		switch {
		case !known:
			errs = append(errs, field.Fail(place, "is no extension of Fulcio's, neither by name nor by identifier (%sN)", verify.FulcioArc))
		case doc[name] == "":
			errs = append(errs, field.Fail(place, "is empty: write * for any value"))
		}
		out = append(out, verify.Extension{OID: oid, Name: name, Value: verify.Wildcard(doc[name])})
	}
	return out, errors.Join(errs...)
}
