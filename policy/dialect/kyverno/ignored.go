package kyverno

// IgnoredField is a field that is accepted and means nothing here.
type IgnoredField struct{ Path, Reason string }

// Ignored returns the fields that are accepted and mean nothing here. Every
// other one is honoured or refused.
func Ignored() []IgnoredField {
	return []IgnoredField{
		{"status", "the API server's record of what Kyverno did"},
		{"spec.schemaValidation", "deprecated, and not read by Kyverno any more; patterns and patches are always checked here when they are loaded"},
		{"spec.rules[].skipBackgroundRequests", "of rules about the object itself; those with generate and mutate.targets honour it"},
		{"spec.rules[].verifyImages[].cosignOCI11", "the storage of signatures; here both tags and referrers are always searched"},
		{"spec.rules[].validate.cel.expressions[].reason", "not used by Kyverno's webhook, only by a ValidatingAdmissionPolicy that it makes; an unknown value is refused"},
	}
}
