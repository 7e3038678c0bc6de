package imageverification

// Fold moves the deprecated fields to where they are now: a signer to the attestations if there are any, and
// else to the attestors. Where they contradict each other, it returns the field and the problem, and moves no
// signer.
func (e *Entry) Fold() (field, problem string) {
	if e.Image != "" {
		e.ImageReferences = append(e.ImageReferences, e.Image)
		e.Image = ""
	}
	signer := Attestor{Annotations: e.Annotations}
	identity := e.Issuer != "" || e.Subject != "" || e.Roots != "" || len(e.AdditionalExtensions) > 0
	switch {
	case e.Key != "" && identity:
		return "key", "cannot be combined with issuer, subject, roots or additionalExtensions: want one kind of signer"
	case e.Key != "":
		signer.Keys = &Keys{PublicKeys: e.Key}
	case identity:
		signer.Keyless = &Keyless{Issuer: e.Issuer, Subject: e.Subject, Roots: e.Roots, AdditionalExtensions: e.AdditionalExtensions}
	case len(e.Annotations) > 0:
		return "annotations", "belong to a signer, and the entry has neither key nor issuer: move them to an attestor"
	default:
		return "", ""
	}
	e.Key, e.Issuer, e.Subject, e.Roots, e.AdditionalExtensions, e.Annotations = "", "", "", "", nil, nil
	set := AttestorSet{Entries: []Attestor{signer}}
	for i := range e.Attestations {
		e.Attestations[i].Attestors = append(e.Attestations[i].Attestors, set)
	}
	if len(e.Attestations) == 0 {
		e.Attestors = append(e.Attestors, set)
	}
	return "", ""
}
