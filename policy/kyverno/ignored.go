package kyverno

// IgnoredField is a field that is accepted and means nothing here.
type IgnoredField struct{ Path, Reason string }

// Ignored returns the fields that are accepted and mean nothing here. Every
// other one is honoured or refused.
func Ignored() []IgnoredField {
	return []IgnoredField{
		{"status", "the API server's record of what Kyverno did"},
		{"spec.schemaValidation", "checks the form of patterns and patches, which rules with verifyImages do not have"},
		{"spec.background", "says whether Kyverno's reports controller scans; an audit scan here covers every policy"},
		{"spec.mutateExistingOnPolicyUpdate", "belongs to mutate rules"},
		{"spec.generateExisting", "belongs to generate rules"},
		{"spec.generateExistingOnPolicyUpdate", "belongs to generate rules"},
		{"spec.useServerSideApply", "belongs to generate rules"},
		{"spec.rules[].skipBackgroundRequests", "belongs to Kyverno's background controller"},
		{"spec.rules[].reportProperties", "decorates Kyverno's reports and decides nothing"},
		{"spec.rules[].verifyImages[].cosignOCI11", "signatures are found as tags and as referrers without being told"},
	}
}
