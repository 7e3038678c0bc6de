package samples

// trials of one policy share a repository and an object.
type trials struct {
	repository, object string
	// audit: a refusal is a warning.
	audit bool
	// unpinned: the policy leaves tags as they are; then it lets an image pass
	// with that remark.
	unpinned bool
	list     []trial
}

// accept adds an image that the policy finds good.
func (r *trials) accept(reason string, proofs ...proof) *trials {
	return r.add(trial{reason: reason, proofs: proofs, answer: allow, code: "verified", pin: !r.unpinned})
}

// refuse adds one that it finds bad, for the reason of a code.
func (r *trials) refuse(reason, code string, proofs ...proof) *trials {
	if r.audit {
		return r.add(trial{reason: reason, proofs: proofs, answer: allow, warning: code})
	}
	return r.add(trial{reason: reason, proofs: proofs, answer: deny, code: code})
}

// add adds a trial, of the object and repository of all unless it has its own.
func (r *trials) add(one trial) *trials {
	if one.repository == "" {
		one.repository = r.repository
	}
	if one.object == "" {
		one.object = r.object
	}
	r.list = append(r.list, one)
	return r
}

// named is the last trial again, of an object that names the image by its digest.
func (r *trials) named() *trials {
	again := r.list[len(r.list)-1]
	again.reason, again.byDigest = again.reason+", named by digest", true
	r.list = append(r.list, again)
	return r
}

// saying wants the last trial's reasons to have a text.
func (r *trials) saying(text string) *trials { r.list[len(r.list)-1].says = text; return r }

// also wants the last trial to have a reason with another code, too: that of
// another attestor than the first.
func (r *trials) also(code string) *trials { r.list[len(r.list)-1].further = code; return r }

// of makes the next trials be of another object.
func (r *trials) of(object string) *trials { r.object = object; return r }

// The signers.
var (
	us        = who{key: signer}
	strangers = who{key: stranger}
	nobody    = who{}
)

// workflow signs under the name of a build workflow.
func workflow(name string) who { return who{name: name, issuer: builds} }

// signed is cosign's signature, with a log entry.
func signed(by who) proof { return proof{program: cosign2, by: by} }

// attested is cosign's attestation, with a log entry.
func attested(by who, kind, document string) proof {
	return proof{program: cosign2, by: by, kind: kind, document: document}
}

// withoutLog is the same without a log entry.
func (w proof) withoutLog() proof { w.unlogged = true; return w }

// withStamp is the same with a timestamp.
func (w proof) withStamp() proof { w.stamped = true; return w }

// annotated is the same with an annotation.
func (w proof) annotated(annotation string) proof { w.annotation = annotation; return w }

// bundled is the same by cosign 3.
func (w proof) bundled() proof { w.program = cosign3; return w }

// notarized is notation's signature.
func notarized(by who) proof { return proof{program: byNotation, by: by} }

// attached is a document that refers to the image, with notation's signature.
func attached(by who, kind, document string) proof {
	return proof{program: byNotation, by: by, kind: kind, document: document}
}
