package sigstore

// IgnoredField is a field that is accepted and means nothing here.
type IgnoredField struct{ Path, Reason string }

// Ignored returns the fields that are accepted and mean nothing here. Every
// other one is honoured or refused.
func Ignored() []IgnoredField {
	return []IgnoredField{
		{"status", "the API server's record of what policy-controller did"},
		{"spec.authorities[].keyless.url", "where certificates are issued; it is not contacted, and the trusted root determines the accepted issuers"},
		{"spec.authorities[].static.message", "of an authority that passes, or that is combined with others in one check"},
	}
}
