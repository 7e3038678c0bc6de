package kyverno

// IgnoredField is a field that is accepted and means nothing here.
type IgnoredField struct{ Path, Reason string }

// Ignored returns the fields that are accepted and mean nothing here. Every
// other one is honoured or refused.
func Ignored() []IgnoredField {
	return []IgnoredField{
		{"status", "the API server's record of what Kyverno did"},
		{"spec.schemaValidation", "checks the form of patterns and patches, which are always checked here when they are loaded"},
		{"spec.rules[].skipBackgroundRequests", "belongs to Kyverno's background controller"},
		{"spec.rules[].verifyImages[].cosignOCI11", "signatures are found as tags and as referrers without being told"},
		{"PolicyException spec.background", "says whether scans heed the exception; here a scan heeds every exception, as admission does"},
		{"spec.rules[].validate.cel.generate", "has the API server ask the rule instead; here it is asked all the same"},
	}
}
