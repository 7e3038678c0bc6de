package verify

import (
	"strconv"
	"strings"
)

// FulcioArc is the object identifier arc of Fulcio's certificate extensions (its oid-info.md).
const FulcioArc = "1.3.6.1.4.1.57264.1."

// FulcioExtension returns the object identifier of a Fulcio extension. The name is that
// identifier, Fulcio's own name, or one of cosign's older names.
func FulcioExtension(name string) (string, bool) {
	if number, ok := strings.CutPrefix(name, FulcioArc); ok {
		n, err := strconv.Atoi(number)
		// 7 is not an extension but the identifier of a subject alternative name.
		return name, err == nil && n >= 1 && n != 7 && strconv.Itoa(n) == number
	}
	for n, names := range fulcioNames() {
		for _, known := range names {
			if strings.EqualFold(strings.ReplaceAll(name, " ", ""), known) {
				return FulcioArc + strconv.Itoa(n), true
			}
		}
	}
	return "", false
}

// fulcioNames returns the names by the last number of the identifier.
func fulcioNames() map[int][]string {
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
