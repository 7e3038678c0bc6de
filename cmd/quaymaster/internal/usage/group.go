package usage

// group is a group of flags in help texts.
type group string

// The groups, in the order in which help texts have them.
const (
	inputs     group = "Objects and images"
	policies   group = "Policies"
	signers    group = "Signers"
	trusts     group = "Trust and time"
	registries group = "Registries"
	clusters   group = "Cluster and gateway"
	outputs    group = "Output"
	others     group = "Other flags"
)

func groups() []group {
	return []group{inputs, policies, signers, trusts, registries, clusters, outputs, others}
}

// groupOf returns the group of a flag. A name has one meaning in all commands but those that
// apply and test take from Kyverno's program.
func groupOf(command, flag string) group {
	if g, ok := ofCommands()[command+" "+flag]; ok {
		return g
	}
	for g, names := range members() {
		for _, name := range names {
			if name == flag {
				return g
			}
		}
	}
	return others
}

func ofCommands() map[string]group {
	return map[string]group{
		"apply resource": inputs, "apply cluster": inputs, "apply namespace": inputs,
		"log verify key": trusts, "serve config": clusters, "bundle create output": outputs, "mirror offline": registries, "mirror check": inputs,
		"status namespace": clusters, "doctor namespace": clusters,
	}
}

func members() map[group][]string {
	return map[group][]string{
		inputs: {"filename", "payload", "namespace", "platforms", "exclude-namespace", "label", "file-name", "test-case-selector",
			"last", "from", "code", "signer", "compare", "anchor"},
		policies: {"policy", "resource", "userinfo", "exception", "values-file", "set", "effective-time", "bundle", "bundle-digest",
			"root", "insecure-drop-signed-identity"},
		signers: {"key", "annotation", "attestation", "certificate-identity", "certificate-identity-regexp", "certificate-oidc-issuer",
			"certificate-oidc-issuer-regexp", "certificate-chain", "notation-cert", "signature-digest-algorithm", "accept-vsa",
			"accept-vsa-max-age", "accept-vsa-policy"},
		trusts: {"trusted-root", "refresh-trust", "rekor-key", "retired-key", "signed-not-before", "signed-not-after",
			"insecure-ignore-tlog", "insecure-ignore-sct"},
		registries: {"mirrors", "oci-layout", "offline", "plain-http", "registry-ca", "registry-requests", "signature-repository"},
		clusters: {"from-cluster", "kubeconfig", "context", "gateway-config", "qps", "gateway", "gateway-ca", "token-file",
			"decision-log", "reports", "audit-log", "metrics", "roles", "dry-verdicts"},
		outputs: {"output", "output-format", "verbose", "require-match", "all", "json", "mutated", "generated", "detailed-results",
			"remove-color", "fail-only", "audit-warn", "warn-exit-code", "warn-no-pass", "require-tests", "vsa-key", "vsa-policy-uri",
			"vsa-push", "vsa-repository", "vsa-verifier-id"},
		others: {"config", "help", "version", "timeout", "keep"},
	}
}
