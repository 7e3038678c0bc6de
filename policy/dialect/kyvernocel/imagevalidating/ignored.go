package imagevalidating

// IgnoredField is a field that is accepted and means nothing here.
type IgnoredField struct{ Path, Reason string }

// Ignored returns the fields that are accepted and mean nothing here. Every other
// one is honoured or refused.
func Ignored() []IgnoredField {
	return []IgnoredField{
		{"status", "the API server's record of what Kyverno did"},
		{"spec.validations[].reason", "not used by Kyverno; an unknown value is refused"},
	}
}
