package imagevalidating

// IgnoredField is a field that is accepted and means nothing here.
type IgnoredField struct{ Path, Reason string }

// Ignored returns the fields that are accepted and mean nothing here. Every other
// one is honoured or refused.
func Ignored() []IgnoredField {
	return []IgnoredField{
		{"status", "the API server's record of what Kyverno did"},
		{"spec.validations[].reason", "the reason in Kubernetes' answer; a denial here has one code, and its reasons beside it"},
		{"PolicyException spec.properties", "notes for people, which decide nothing"},
	}
}
