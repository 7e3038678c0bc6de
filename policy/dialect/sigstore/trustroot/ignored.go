package trustroot

// IgnoredField is a field that is accepted and has no effect here.
type IgnoredField struct{ Path, Reason string }

// Ignored returns the fields that are accepted and have no effect here. Every other one is
// honoured or refused.
func Ignored() []IgnoredField {
	return []IgnoredField{
		{"status", "the API server's record of what policy-controller did"},
		{"spec.sigstoreKeys.certificateAuthorities[].subject, timestampAuthorities[].subject", "describes the authority; the names in its certificates are used"},
		{"spec.sigstoreKeys.certificateAuthorities[].uri, timestampAuthorities[].uri",
			"where certificates and timestamps are issued; nothing is requested from it, and an invalid one is refused"},
		{"spec.sigstoreKeys.tLogs[].hashAlgorithm, ctLogs[].hashAlgorithm",
			"not read by policy-controller's verification; logs are trees of SHA-256, and an unknown name is refused"},
	}
}
