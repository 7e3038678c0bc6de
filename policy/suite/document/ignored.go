package document

// IgnoredField is a field that is accepted and has no effect in suites.
type IgnoredField struct{ Path, Reason string }

// Ignored returns the fields that are accepted and have no effect in suites. Every other field
// is honoured or refused; an unknown one is a warning.
func Ignored() []IgnoredField {
	return []IgnoredField{
		{"Test metadata", "except for its name, labels and annotations of the file, which decide nothing"},
		{"Test results[].isValidatingPolicy, isImageValidatingPolicy, isMutatingPolicy, isGeneratingPolicy, isDeletingPolicy, isValidatingAdmissionPolicy, isMutatingAdmissionPolicy", "selects one of Kyverno's engines; here a policy is found by its name, and by the kind only among several of one name"},
		{"Values spec.variables", "values for Kyverno's policies on HTTP requests, which are not supported"},
		{"Values spec.subresources[].subresource.singularName, verbs, shortNames, categories", "say how kubectl shows the kind"},
		{"UserInfo synchronize", "of the form in which Kyverno keeps requests; it is a setting of a rule, not of a user"},
	}
}
