package imagevalidating

// warnings are problems of a policy that compiles, for its author.
func (r *rule) warnings() []string {
	var list []string
	if r.required && len(r.program.asks) == 0 {
		list = append(list, "no expression verifies a signature or an attestation, and spec.validationConfigurations.required is true (the default): "+
			"an image that no other policy verifies is denied; set required: false if the validations are all that matters")
	}
	for i := range r.program.extractors {
		if e := &r.program.extractors[i]; len(e.places) == 0 {
			list = append(list, e.program.Path()+": names no place in the object that can be seen in the expression, so that an object for which it names an image is denied; "+
				"name images by a path, as in object.spec.steps.map(s, s.image)")
		}
	}
	return list
}
