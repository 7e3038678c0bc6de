package kyverno

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/verify"
)

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

func (b builder) keyless(doc keyless, path string) (verify.Authority, error) {
	var errs [5]error
	a, err := b.common(doc.Rekor, doc.CTLog, path)
	errs[0] = err
	a.Keyless = &verify.Keyless{}
	var identity verify.Identity
	identity.Issuer, errs[1] = b.matcher(doc.Issuer, doc.IssuerRegExp, path, "issuer")
	identity.Subject, errs[2] = b.matcher(doc.Subject, doc.SubjectRegExp, path, "subject")
	a.Keyless.Identities = []verify.Identity{identity}
	a.Keyless.Roots, errs[3] = b.pem(doc.Roots, path+".roots", aCertificate)
	a.Keyless.CT, errs[4] = b.ct(doc.CTLog, path)
	for _, name := range slices.Sorted(maps.Keys(doc.AdditionalExtensions)) {
		place := path + ".additionalExtensions[" + name + "]"
		oid, known := extensionOID(name)
		if !known {
			return a, errors.Join(append(errs[:], fail(place, "is no extension of Fulcio's, neither by name nor by identifier (%sN)", fulcioArc))...)
		}
		value := doc.AdditionalExtensions[name]
		if value == "" {
			return a, errors.Join(append(errs[:], fail(place, "is empty: write * for any value"))...)
		}
		a.Keyless.Extensions = append(a.Keyless.Extensions, verify.Extension{OID: oid, Name: name, Value: verify.Wildcard(value)})
	}
	return a, errors.Join(errs[:]...)
}

// matcher compiles a text with wildcards, or an expression, which must match
// the whole text. One of them is required: an identity of which half is left
// open is one that anybody can get.
func (b builder) matcher(text, expression, path, name string) (verify.Matcher, error) {
	place := path + "." + name
	switch {
	case text != "" && expression != "":
		return verify.Matcher{}, fail(place, "stands beside %sRegExp: want one of them", name)
	case b.open(text) || b.open(expression):
		return verify.Matcher{}, nil
	case text != "":
		return verify.Wildcard(text), nil
	case expression != "":
		m, err := verify.Expression(expression)
		return m, below(place+"RegExp", err)
	}
	return verify.Matcher{}, fail(place, "is missing, so that any %s would do: name it, or write \"*\" if that is meant", name)
}
