package differential

import (
	"slices"
	"strings"
)

// played is a case with its answers.
type played struct {
	recipe *recipe
	did    []string
	mine   answer
	theirs map[string]answer
}

// difference is a row of a table: a way in which we and another one answer differently,
// and why.
type difference struct {
	// What is asked or lies there, and Why we say what we say; for the page, too.
	What, Why string
	// Who says something else than we do.
	Who []string
	// Code is our reason, where we refuse; empty in the table of what we accept.
	Code string
	// Says is part of what the one who refuses says; of several, one.
	Says []string
	// When narrows it further; nil does not.
	When func(p *played) bool
	// Example must still show the difference with each of Who.
	Example recipe
}

func (d *difference) explains(p *played, who string) bool {
	if !slices.Contains(d.Who, who) || d.When != nil && !d.When(p) {
		return false
	}
	if d.Code == "" {
		return p.mine.Accepted && !p.theirs[who].Accepted && says(p.theirs[who], d.Says)
	}
	return !p.mine.Accepted && p.theirs[who].Accepted && slices.Contains(p.mine.codes, d.Code) && says(p.mine, d.Says)
}

func says(a answer, parts []string) bool {
	return len(parts) == 0 || slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(a.Said, part) })
}

func either() []string { return []string{cosign2, cosign3} }

func everybody() []string { return []string{cosign2, cosign3, notation} }

// explained returns the row that explains why one of them says something else.
func explained(p *played, who string) *difference {
	for _, table := range [][]difference{exceptions(), stricter()} {
		for _, row := range table {
			if row.explains(p, who) {
				return &row
			}
		}
	}
	return nil
}

// did reports whether a change touched one of some places.
func did(places ...string) func(*played) bool {
	return func(p *played) bool {
		return slices.ContainsFunc(p.did, func(one string) bool {
			return slices.ContainsFunc(places, func(place string) bool { return strings.Contains(one, place) })
		})
	}
}

// signedBy is a plain recipe.
func signedBy(f format, change func(r *recipe)) recipe {
	r := recipe{Format: f, Writer: ours, Key: "p256", Log: "none", Certified: f.isNotation(), Ask: question{By: byKey, IgnoreLog: true}}
	if f.isNotation() {
		r.Ask.By = byAuthority
	}
	change(&r)
	return r
}

func bent(what, where string) func(*recipe) {
	return func(r *recipe) { r.Bent = []change{{What: what, Where: where}} }
}

func oddly(what, where string) func(*recipe) {
	return func(r *recipe) { r.Oddities = []change{{What: what, Where: where}} }
}

// exceptions are what we accept and one of them refuses.
func exceptions() []difference { return slices.Concat(aroundEvidence(), inEvidence()) }

// aroundEvidence: the manifest differs, or what lies beside.
func aroundEvidence() []difference {
	return []difference{
		{
			What: "a bundle in a layer of another media type, in a manifest whose artifact type is a bundle's",
			Why:  "nobody signs a media type; what is in the layer is read as a bundle, and as nothing else",
			Who:  either(), Says: []string{"no "}, When: and(isFormat(bundles), did("ediaType", "media type")),
			Example: signedBy(bundles, bent("other capitals", "layers.0.mediaType")),
		},
		{
			What: "a bundle with a message signature over the image's manifest",
			Why:  "it is what the Sigstore bundle specification calls a signature, and signs the very bytes; cosign reads envelopes alone",
			Who:  either(), Says: []string{"does not contain a DSSE envelope"},
			Example: signedBy(bundles, func(r *recipe) { r.Fault = "a message in place of an envelope" }),
		},
		{
			What: "a bundle in a manifest of which another part is broken, such as its config",
			Why:  "the rest of the manifest proves nothing and is not looked at; the bundle is proved, and is about the image by its own words",
			Who:  either(), Says: []string{"no "}, When: and(isFormat(bundles), inManifest),
			Example: signedBy(bundles, bent("empty", "config.digest")),
		},
		{
			What: "a bundle beside other layers in one manifest",
			Why:  "each layer is read as what it says it is; cosign reads a manifest of one layer",
			Who:  either(), Says: []string{"no "}, When: and(isFormat(bundles), did(" at layers")),
			Example: signedBy(bundles, bent("something more", "layers")),
		},
		{
			What: "another signature in a manifest of which a part is broken that says nothing of it, such as its schema version",
			Why:  "the rest of the manifest proves nothing and is not looked at; the signature is proved, and is about the image by its own words",
			Who:  everybody(), Says: []string{"json: cannot unmarshal", "cannot parse hash", "hex digits", "non-hex", "unsupported hash"}, When: inManifest,
			Example: signedBy(tags, bent("a number as text", "schemaVersion")),
		},
		{
			What: "a good signature beside one whose manifest or envelope cannot be had or read",
			Why:  "whoever may push could take every signature away; a proof does not end by what lies beside it",
			Who:  []string{notation}, Says: []string{"unable to retrieve digital signature"},
			When: func(p *played) bool { return p.recipe.Beside == companions[0] },
			Example: signedBy(jws, func(r *recipe) {
				r.Beside, r.Bent = companions[0], []change{{What: "twice, the same", Where: "layers.0"}}
			}),
		},
	}
}

// inEvidence: the signature itself differs from the usual one.
func inEvidence() []difference {
	return []difference{
		{
			What: "an attestation at cosign's tag whose layer has a signature of its own in an annotation",
			Why:  "an attestation's signatures stand in its envelope, and the log entry must be of one of them; the annotation is not looked at",
			Who:  either(), Says: []string{"signature in bundle does not match signature being verified", "illegal base64 data"}, When: func(p *played) bool { return p.recipe.Attests && did("dev.cosignproject.cosign/signature")(p) },
			Example: signedBy(tags, func(r *recipe) {
				r.Certified, r.Attests, r.Log, r.Ask = true, true, "rekor", question{By: byIdentity, Attestation: "own"}
				r.Damages = []change{{What: "line after", Where: "dev.cosignproject.cosign/signature"}}
			}),
		},
		{
			What: "a certificate that names its issuer in Fulcio's newer extension alone",
			Why:  "that is the extension in force, and the older one is deprecated; cosign looks for the older one at its tags",
			Who:  either(), Says: []string{"none of the expected identities matched"}, When: func(p *played) bool { return p.recipe.Fault == newIssuer && p.recipe.Format == tags },
			Example: signedBy(tags, func(r *recipe) {
				r.Certified, r.Log, r.Fault, r.Ask = true, "rekor", newIssuer, question{By: byIdentity}
			}),
		},
		{
			What: "a bundle without a timestamp by a certificate that is valid now, where cosign is told --use-signed-timestamps",
			Why:  "quaymaster verify has no such flag (policies ask for timestamps), and judges the certificate by the present time, as cosign does without it",
			Who:  either(), Says: []string{"threshold not met for verified signed timestamps: 0 < 1"}, When: func(p *played) bool { return p.recipe.Fault == noStamp && p.recipe.Ask.IgnoreLog },
			Example: signedBy(bundles, func(r *recipe) {
				r.Certified, r.Stamped, r.Fault, r.Ask = true, true, noStamp, question{By: byIdentity, IgnoreLog: true, Stamps: true}
			}),
		},
		{
			What: "a statement with a member that in-toto does not know",
			Why:  "the specification asks readers to pass over such members; cosign's parsers do not in bundles, and cosign 3 nowhere",
			Who:  either(), Says: []string{"invalid attestation: decoding json", "could not parse predicate"}, When: did("something more at ", "in capitals, beside at ", "in snake case, beside at "),
			Example: signedBy(bundles, oddly("something more", "subject.0")),
		},
		{
			What: "a bundle of version 0.1 or 0.2",
			Why:  "the older versions say the same in other words, and are proved in the same way; cosign looks at 0.3 and later in registries",
			Who:  either(), Says: []string{"no "}, When: func(p *played) bool { return strings.HasPrefix(p.recipe.Fault, "a bundle of version 0.") },
			Example: signedBy(bundles, func(r *recipe) { r.Fault, r.Log, r.Ask.IgnoreLog = "a bundle of version 0.2", "rekor", false }),
		},
	}
}

// inManifest reports whether a part of the manifest was bent that says nothing of what
// the manifest carries.
func inManifest(p *played) bool {
	return len(p.recipe.Bent) > 0 && slices.ContainsFunc(p.did, func(one string) bool {
		return strings.Contains(one, " at ") && !strings.Contains(one, " at layers") && !strings.Contains(one, " at subject.digest")
	})
}

// stricter are what we refuse and one of them accepts.
func stricter() []difference {
	return slices.Concat(strictAnswers(), strictDocuments(), strictEvidence())
}

// strictAnswers: the evidence is as it should be, and does not answer the question, or is
// not where it belongs.
func strictAnswers() []difference {
	return []difference{
		{
			What: "a bundle without the annotation that is asked for",
			Why:  "cosign 2 says that annotations were verified, and does not compare them",
			Who:  []string{cosign2}, Code: "wrong-annotation", When: isFormat(bundles),
			Example: signedBy(bundles, func(r *recipe) { r.Ask.Annotation = "value" }),
		},
		{
			What: "an expression that fits a part of the identity",
			Why:  "an expression must fit the whole: a part is what an attacker can put into a name of his own",
			Who:  either(), Code: "wrong-identity", When: func(p *played) bool { return p.recipe.Ask.By == byPart },
			Example: signedBy(bundles, func(r *recipe) { r.Certified, r.Ask.By = true, byPart }),
		},
		{
			What: "an attestation where a signature is asked for",
			Why:  "whoever may attest may not therefore release",
			Who:  either(), Code: "unsigned", Says: []string{"an attestation of type"},
			Example: signedBy(bundles, func(r *recipe) { r.Attests = true }),
		},
		{
			What: "a layer at cosign's tag whose media type is no signature's",
			Why:  "a layer says what it is; other layers are not guessed to be signatures",
			Who:  either(), Code: "malformed", Says: []string{"none of its layers is a signature or attestation of a known media type"},
			Example: signedBy(tags, bent("null", "layers.0.mediaType")),
		},
		{
			What: "a manifest that calls itself another media type than the registry does",
			Why:  "a registry that contradicts itself has not answered",
			Who:  everybody(), Code: "contradiction", Says: []string{"the answer contradicts itself"},
			Example: signedBy(tags, bent("other capitals", "mediaType")),
		},
		{
			What: "a bundle that its manifest gives another artifact type",
			Why:  "of what refers to an image, only what says that it is evidence is opened: a bound on what others can have us read",
			Who:  either(), Code: "unsigned", When: did(" at artifactType"),
			Example: signedBy(bundles, bent("a blank more", "artifactType")),
		},
		{
			What: "an attestation in a layer whose annotation names another type",
			Why:  "what is asked for by its type must call itself by it; others are not read",
			Who:  either(), Code: "no-attestation", When: did("predicateType >", ".annotations.predicateType"),
			Example: signedBy(tags, func(r *recipe) {
				r.Attests, r.Ask.Attestation, r.Damages = true, "own", []change{{What: "byte after", Where: "predicateType"}}
			}),
		},
	}
}

// strictDocuments: what was signed is read strictly.
func strictDocuments() []difference {
	return []difference{
		{
			What: "a bundle whose statement writes the digest in capitals",
			Why:  "a digest has one spelling, in small letters",
			Who:  []string{cosign2}, Code: "wrong-digest", When: and(isFormat(bundles), did("other capitals at subject.0.digest.sha256")),
			Example: signedBy(bundles, oddly("other capitals", "subject.0.digest.sha256")),
		},
		{
			What: "JSON in which a name stands twice",
			Why:  "readers differ about which one counts",
			Who:  everybody(), Code: "malformed", Says: []string{"is there twice"},
			Example: signedBy(tags, bent("twice, the same", "schemaVersion")),
		},
		{
			What: "a statement of another type than in-toto's v0.1 and v1",
			Why:  "what another type means is not known",
			Who:  either(), Code: "malformed", Says: []string{"is neither https://in-toto.io/Statement/v0.1 nor"},
			Example: signedBy(bundles, oddly("empty", "_type")),
		},
		{
			What: "JSON in which a name is written in other capitals",
			Why:  "some readers take it for the name, and others do not",
			Who:  everybody(), Code: "malformed", Says: []string{"did you mean"},
			Example: signedBy(tags, bent("in capitals", "layers")),
		},
		{
			What: "a statement without a type of its predicate",
			Why:  "it does not say what it means",
			Who:  either(), Code: "malformed", Says: []string{"it has no predicateType"},
			Example: signedBy(bundles, oddly("null", "predicateType")),
		},
		{
			What: "a statement that names its predicate's type as protocol buffers may, too",
			Why:  "readers differ about which one counts",
			Who:  []string{cosign2}, Code: "malformed", Says: []string{`it has "predicate_type"`},
			Example: signedBy(tags, func(r *recipe) {
				r.Attests, r.Ask.Attestation, r.Oddities = true, "own", []change{{What: "in snake case, beside", Where: "predicateType"}}
			}),
		},
		{
			What: "a bundle whose statement names its predicate's type as protocol buffers may, and in no other way",
			Why:  "in-toto's JSON has one name for it",
			Who:  either(), Code: "malformed", Says: []string{`it has "predicate_type"`}, When: isFormat(bundles),
			Example: signedBy(bundles, oddly("in snake case", "predicateType")),
		},
		{
			What: "a statement with a subject that has no digest",
			Why:  "it is about something that cannot be told, and no statement by the specification",
			Who:  either(), Code: "malformed", Says: []string{"it has no digest"},
			Example: signedBy(bundles, oddly("an empty object more", "subject")),
		},
	}
}

// strictEvidence: what travels along is.
func strictEvidence() []difference {
	return []difference{
		{
			What: "a log entry that cannot be read, where none is asked for",
			Why:  "what travels along is read strictly or not at all",
			Who:  either(), Code: "malformed", Says: []string{"annotation dev.sigstore.cosign/bundle"},
			Example: signedBy(tags, func(r *recipe) {
				r.Log, r.Damages = "rekor", []change{{What: "left out", Where: "dev.sigstore.cosign/bundle > SignedEntryTimestamp"}}
			}),
		},
		{
			What: "a payload of cosign's whose type is not that of a signature",
			Why:  "the same key may sign payloads that mean something else",
			Who:  either(), Code: "malformed", Says: []string{"simple signing payload: its type is"},
			Example: signedBy(tags, oddly("empty", "critical.type")),
		},
		{
			What: "base64 whose last letter has bits that stand for nothing",
			Why:  "the same bytes have one spelling",
			Who:  either(), Code: "malformed", Says: []string{"illegal base64 data"},
			Example: signedBy(tags, func(r *recipe) {
				r.Key, r.Attests, r.Ask.Attestation = "ed25519", true, "own"
				r.Damages = []change{{What: "encoded with loose end", Where: "body > signatures.0.sig"}}
			}),
		},
		{
			What: "a timestamp from outside the certificate's time, beside a log entry from within",
			Why:  "a time that a trusted authority states must not contradict the certificate, whoever states another one",
			Who:  either(), Code: "expired-certificate", Says: []string{"valid at the time of signing"},
			Example: signedBy(bundles, func(r *recipe) {
				r.Certified, r.Stamped, r.Log, r.Fault, r.Ask = true, true, "rekor", "a timestamp of an hour ago", question{By: byIdentity}
			}),
		},
		{
			What: "a bundle's timestamp that does not hold, beside a log entry that does",
			Why:  "evidence that is there must hold, where an authority for timestamps is known",
			Who:  either(), Code: "bad-timestamp", When: isFormat(bundles),
			Example: signedBy(bundles, func(r *recipe) {
				r.Certified, r.Stamped, r.Log, r.Fault, r.Ask = true, true, "rekor", "a foreign timestamp authority", question{By: byIdentity}
			}),
		},
		{
			What: "a certificate in a block of another type, or more than one where the signer's stands",
			Why:  "which one is meant must not depend on the reader",
			Who:  either(), Code: "malformed", Says: []string{"annotation dev.sigstore.cosign/certificate:", "annotation dev.sigstore.cosign/chain:"},
			Example: signedBy(tags, func(r *recipe) {
				r.Certified, r.Log, r.Ask = true, "rekor", question{By: byIdentity}
				r.Damages = []change{{What: "certificates twice", Where: "dev.sigstore.cosign/certificate"}}
			}),
		},
		{
			What: "a notation signature with a critical attribute that is not known",
			Why:  "the specification asks verifiers to refuse it; notation passes over it",
			Who:  []string{notation}, Code: "wrong-format", Says: []string{"has the critical attribute"},
			Example: signedBy(jws, func(r *recipe) { r.Fault = "a critical attribute" }),
		},
	}
}

func isFormat(f format) func(*played) bool {
	return func(p *played) bool { return p.recipe.Format == f }
}

// and holds where both do.
func and(first, second func(*played) bool) func(*played) bool {
	return func(p *played) bool { return first(p) && second(p) }
}
