package attestor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/verify"
)

func (b *builder) keyless(doc *v1alpha1.Keyless, log *v1alpha1.CTLog, path string) (*verify.Keyless, error) {
	place := path + ".keyless"
	switch {
	case len(doc.Identities) == 0:
		return nil, fail(place+".identities", "is empty, so that anybody with a certificate could sign: say who must")
	case len(doc.Identities) > maxEntries:
		return nil, fail(place+".identities", "%d are more than %d", len(doc.Identities), maxEntries)
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
		errs = append(errs, err)
	}
	out.Extensions, err = extensions(doc.AdditionalExtensions, place+".additionalExtensions")
	errs = append(errs, err)
	out.CT, err = certificateLog(log, path+".ctlog")
	return out, errors.Join(append(errs, err)...)
}

// identity compiles an issuer and a subject. Both are required: an identity of
// which half is left open is one that anybody can get.
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
		if errs[1] = err; err == nil && !open {
			out.Subject, errs[1] = pattern(text, place)
		}
	}
	return out, errors.Join(errs[:]...)
}

// exactly compares letter by letter, as Kyverno does here; its older policies have
// wildcards in the same place.
func exactly(text, path string) (verify.Matcher, error) {
	if strings.Contains(text, "*") {
		return verify.Matcher{}, fail(path, "%q is compared letter by letter, so that * is no wildcard: use %sRegExp", shorten(text), path[strings.LastIndex(path, ".")+1:])
	}
	return verify.Exactly(text), nil
}

// pattern compiles an expression that must match the whole text.
func pattern(text, path string) (verify.Matcher, error) {
	if len(text) > maxRegexp {
		return verify.Matcher{}, fail(path, "%d bytes are more than %d", len(text), maxRegexp)
	}
	m, err := verify.Expression(text)
	return m, below(path, err)
}

// extensions compiles certificate extensions, whose values may have wildcards, as
// in Kyverno's older policies. All must match.
func extensions(doc map[string]string, path string) ([]verify.Extension, error) {
	if len(doc) > maxEntries {
		return nil, fail(path, "%d are more than %d", len(doc), maxEntries)
	}
	var out []verify.Extension
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		place := path + "[" + shorten(name) + "]"
		oid, known := extensionOID(name)
		switch {
		case !known:
			errs = append(errs, fail(place, "is no extension of Fulcio's, neither by name nor by identifier (%sN)", fulcioArc))
		case doc[name] == "":
			errs = append(errs, fail(place, "is empty: write * for any value"))
		}
		out = append(out, verify.Extension{OID: oid, Name: name, Value: verify.Wildcard(doc[name])})
	}
	return out, errors.Join(errs...)
}

// fulcioArc is where Fulcio's certificate extensions stand (its oid-info.md).
const fulcioArc = "1.3.6.1.4.1.57264.1."

// extensionOID returns the object identifier of one of Fulcio's extensions, by
// that identifier or by a name: Fulcio's own, or one of cosign's older names.
func extensionOID(name string) (string, bool) {
	if number, ok := strings.CutPrefix(name, fulcioArc); ok {
		n, err := strconv.Atoi(number)
		// 7 is no extension but the identifier of a subject alternative name.
		return name, err == nil && n >= 1 && n != 7 && strconv.Itoa(n) == number
	}
	for n, names := range extensionNames() {
		for _, known := range names {
			if strings.EqualFold(strings.ReplaceAll(name, " ", ""), known) {
				return fulcioArc + strconv.Itoa(n), true
			}
		}
	}
	return "", false
}

// extensionNames are the names by the last number of the identifier.
func extensionNames() map[int][]string {
	return map[int][]string{
		1: {"oidcIssuer", "issuerV1"}, 2: {"githubWorkflowTrigger"}, 3: {"githubWorkflowSha"},
		4: {"githubWorkflowName"}, 5: {"githubWorkflowRepository"}, 6: {"githubWorkflowRef"},
		8: {"issuer", "issuerV2"}, 9: {"buildSignerURI"}, 10: {"buildSignerDigest"}, 11: {"runnerEnvironment"},
		12: {"sourceRepositoryURI"}, 13: {"sourceRepositoryDigest"}, 14: {"sourceRepositoryRef"},
		15: {"sourceRepositoryIdentifier"}, 16: {"sourceRepositoryOwnerURI"}, 17: {"sourceRepositoryOwnerIdentifier"},
		18: {"buildConfigURI"}, 19: {"buildConfigDigest"}, 20: {"buildTrigger"}, 21: {"runInvocationURI"},
		22: {"sourceRepositoryVisibilityAtSigning"}, 23: {"deploymentEnvironment"}, 24: {"tokenSubject"},
	}
}
