package globalcontext

// IgnoredField is a field that is accepted and has no effect here.
type IgnoredField struct{ Path, Reason string }

// Ignored returns the fields that are accepted and have no effect here. Every other one is
// honoured or refused.
func Ignored() []IgnoredField {
	return []IgnoredField{
		{"status", "the API server's record of what Kyverno did"},
	}
}
