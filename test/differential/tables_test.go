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
	untold map[string]bool // programs with another answer and without a row
}

// difference is a row of a table: a way in which we and another one answer differently,
// and why.
type difference struct {
	// What is the question or the stored content, and Why we differ; for the page, too.
	What, Why string
	// Who are the programs with another answer.
	Who []string
	// Code is our reason, where we refuse; empty in the table of what we accept.
	Code string
	// Says is part of the message of the one that refuses; of several, one.
	Says []string
	// When narrows it further; nil does not.
	When func(p *played) bool
	// Example must still show the difference with each of Who that it asks; Others are
	// for those that it does not ask.
	Example recipe
	Others  []recipe
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

// Annotations in which cosign has signatures and timestamps.
const (
	signatureAt = "dev.cosignproject.cosign/signature"
	stampAt     = "dev.sigstore.cosign/rfc3161timestamp"
)

// noBundle is cosign's message where it can read none of the referrers as a bundle:
// cosign 2, and cosign 3 of signatures and of attestations.
func noBundle() []string {
	return []string{"no valid bundles exist in registry", "no signatures found", "no matching attestations: \nerror during"}
}

func either() []string { return []string{cosign2, cosign3} }

func everybody() []string { return []string{cosign2, cosign3, notation} }

// explained returns the row that explains another program's different answer.
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
			What: "a bundle in a layer of another media type, in a manifest with a bundle's artifact type",
			Why:  "the media type is not signed; the layer is parsed as a bundle, and as nothing else",
			Who:  either(), Says: noBundle(), When: and(isFormat(bundles), or(bentAt("layers.0.mediaType"), damagedAt("media type"))),
			Example: signedBy(bundles, bent("other capitals", "layers.0.mediaType")),
		},
		{
			What: "a bundle with a message signature over the image's manifest",
			Why:  "it is a signature by the Sigstore bundle specification, and signs the exact bytes; cosign reads envelopes alone",
			Who:  either(), Says: []string{"does not contain a DSSE envelope"}, When: hasFault("a message in place of an envelope"),
			Example: signedBy(bundles, func(r *recipe) { r.Fault = "a message in place of an envelope" }),
		},
		{
			What: "a bundle in a manifest of which another part is broken, such as its config",
			Why:  "the rest of the manifest is not evidence and is not read; the bundle is verified, and its signed content names the image",
			Who:  either(), Says: noBundle(), When: and(isFormat(bundles), bentAt(besides...)),
			Example: signedBy(bundles, bent("empty", "config.digest")),
		},
		{
			What: "a bundle next to other layers in one manifest",
			Why:  "each layer is read by its media type; cosign reads a manifest of one layer",
			Who:  either(), Says: noBundle(), When: and(isFormat(bundles), bentAt("layers", "layers.0"), done("something more", "an empty object more", "twice, the same", "twice, another first", "twice, another last", "twice, nothing last")),
			Example: signedBy(bundles, bent("something more", "layers")),
		},
		{
			What: "another signature in a manifest with an unrelated broken part, such as its schema version",
			Why:  "the rest of the manifest is not evidence and is not read; the signature is verified, and its signed content names the image",
			Who:  everybody(), Says: []string{"json: cannot unmarshal", "cannot parse hash", "hex digits", "non-hex", "unsupported hash"}, When: and(not(isFormat(bundles)), bentAt(besides...)),
			Example: signedBy(tags, bent("a number as text", "schemaVersion")),
			Others:  []recipe{signedBy(jws, bent("a number as text", "schemaVersion"))},
		},
		{
			What: "a good signature next to one with a manifest or envelope that cannot be fetched or read",
			Why:  "a user with push access could otherwise disable every signature; other evidence does not invalidate a signature",
			Who:  []string{notation}, Says: []string{"unable to retrieve digital signature"},
			When: and(ofNotation, isBeside(companions[0])),
			Example: signedBy(jws, func(r *recipe) {
				r.Beside, r.Bent = companions[0], []change{{What: "twice, the same", Where: "layers.0"}}
			}),
		},
		{
			What: "a good signature at cosign's tag next to a layer with a broken descriptor",
			Why:  "other evidence does not invalidate a signature; cosign reads every layer or none",
			Who:  either(), Says: []string{"cannot parse hash", "hex digits", "non-hex", "unsupported hash"},
			When: and(isFormat(tags), isBeside(companions[0]), bentAt("layers.0.digest", "layers.1.digest")),
			Example: signedBy(tags, func(r *recipe) {
				r.Beside, r.Bent = companions[0], []change{{What: "empty", Where: "layers.1.digest"}}
			}),
		},
		{
			What: "a good signature next to one with a null body of its log entry",
			Why:  "other evidence does not invalidate a signature; cosign 2 panics",
			Who:  []string{cosign2}, Says: []string{"interface conversion: interface {} is nil, not string"},
			When: and(isFormat(tags), isBeside(companions[0]), damagedAt("dev.sigstore.cosign/bundle > Payload*")),
			Example: signedBy(tags, func(r *recipe) {
				r.Log, r.Ask.IgnoreLog, r.Beside = "rekor", false, companions[0]
				r.Damages = []change{{What: "null", Where: "dev.sigstore.cosign/bundle > Payload.body"}}
			}),
		},
	}
}

// inEvidence: the signature itself differs from the usual one.
func inEvidence() []difference {
	return []difference{
		{
			What: "an attestation at cosign's tag in a layer with a signature of its own in an annotation, or without that annotation",
			Why:  "an attestation's signatures are in its envelope, and the log entry must be of one of them; the annotation is not read",
			Who:  either(), Says: []string{"signature in bundle does not match signature being verified", "illegal base64 data", `is missing "dev.cosignproject.cosign/signature" annotation`},
			When: and(isFormat(tags), attests, or(damagedAt(signatureAt, signatureAt+" > "+encoded), bentAt("layers.0.annotations"))),
			Example: signedBy(tags, func(r *recipe) {
				r.Certified, r.Attests, r.Log, r.Ask = true, true, "rekor", question{By: byIdentity, Attestation: "own"}
				r.Damages = []change{{What: "line after", Where: signatureAt}}
			}),
			Others: []recipe{signedBy(tags, func(r *recipe) {
				r.Attests, r.Ask.Attestation, r.Damages = true, "own", []change{{What: "left out", Where: signatureAt}}
			})},
		},
		{
			What: "a certificate that names its issuer in Fulcio's newer extension alone",
			Why:  "that is the current extension, and the older one is deprecated; cosign reads the older one at its tags",
			Who:  either(), Says: []string{"none of the expected identities matched"}, When: and(isFormat(tags), hasFault(newIssuer)),
			Example: signedBy(tags, func(r *recipe) {
				r.Certified, r.Log, r.Fault, r.Ask = true, "rekor", newIssuer, question{By: byIdentity}
			}),
		},
		{
			What: "a bundle without a timestamp by a certificate that is valid now, where cosign has --use-signed-timestamps",
			Why:  "quaymaster verify has no such flag (policies require timestamps), and verifies the certificate at the present time, as cosign does without it",
			Who:  either(), Says: []string{"threshold not met for verified signed timestamps: 0 < 1"}, When: and(isFormat(bundles), logIgnored, noStamps),
			Example: signedBy(bundles, func(r *recipe) {
				r.Certified, r.Stamped, r.Fault, r.Ask = true, true, noStamp, question{By: byIdentity, IgnoreLog: true, Stamps: true}
			}),
		},
		{
			What: "a bundle with a log entry without a promise, and so without a time, and with a timestamp, where cosign has no --use-signed-timestamps",
			Why:  "the entry is verified by its inclusion proof, and the trusted timestamp authority gives the time; cosign reads the timestamp only with that flag",
			Who:  either(), Says: []string{"threshold not met for verified log entry integrated timestamps: 0 < 1"},
			When: and(isFormat(bundles), stampedInLog, not(asksStamps), noPromise),
			Example: signedBy(bundles, func(r *recipe) {
				r.Certified, r.Stamped, r.Log, r.Fault, r.Ask = true, true, "rekor", withoutPromise, question{By: byIdentity}
			}),
		},
		{
			What: "a statement with a member that in-toto does not define",
			Why:  "the specification requires readers to ignore such members; cosign's parsers do not in bundles, and cosign 3 nowhere",
			Who:  either(), Says: []string{"invalid attestation: decoding json", "could not parse predicate"}, When: and(oddAt("*"), done("something more", "in capitals, beside", "in snake case, beside")),
			Example: signedBy(bundles, oddly("something more", "subject.0")),
		},
		{
			What: "a bundle of version 0.1 or 0.2",
			Why:  "the older versions are equivalent, and are verified in the same way; cosign reads 0.3 and later in registries",
			Who:  either(), Says: noBundle(), When: hasFault("a bundle of version 0.1", "a bundle of version 0.2"),
			Example: signedBy(bundles, func(r *recipe) { r.Fault, r.Log, r.Ask.IgnoreLog = "a bundle of version 0.2", "rekor", false }),
		},
	}
}

// besides are the manifest's fields without meaning for its content.
var besides = []string{"schemaVersion", "config*", "artifactType", "annotations*", "subject.mediaType", "subject.size"}

// stricter are what we refuse and one of them accepts.
func stricter() []difference {
	return slices.Concat(strictAnswers(), strictDocuments(), strictEvidence())
}

// strictAnswers: the evidence is as it should be, and does not answer the question, or is
// not where it belongs.
func strictAnswers() []difference {
	return []difference{
		{
			What: "a bundle without the required annotation",
			Why:  "cosign 2 reports verified annotations, and does not compare them",
			Who:  []string{cosign2}, Code: "wrong-annotation", When: and(isFormat(bundles), asksAnnotation),
			Example: signedBy(bundles, func(r *recipe) { r.Ask.Annotation = "value" }),
		},
		{
			What: "an expression that matches a part of the identity",
			Why:  "an expression must match the whole: an attacker can put a part into a name of their own",
			Who:  either(), Code: "wrong-identity", When: asksBy(byPart),
			Example: signedBy(bundles, func(r *recipe) { r.Certified, r.Ask.By = true, byPart }),
		},
		{
			What: "an attestation where a signature is required",
			Why:  "permission to attest is not permission to release",
			Who:  either(), Code: "unsigned", Says: []string{"an attestation of type"}, When: and(asksSignature, or(attests, oddAt("predicateType"))),
			Example: signedBy(bundles, func(r *recipe) { r.Attests = true }),
			Others:  []recipe{signedBy(bundles, oddly("other capitals", "predicateType"))},
		},
		{
			What: "a layer at cosign's tag with another media type than a signature's",
			Why:  "the media type determines the layer; other layers are not guessed to be signatures",
			Who:  either(), Code: "malformed", Says: []string{"none of its layers is a signature or attestation of a known media type"}, When: and(isFormat(tags), or(bentAt("layers.0.mediaType", "layers", "layers.0"), damagedAt("media type"))),
			Example: signedBy(tags, bent("null", "layers.0.mediaType")),
		},
		{
			What: "a manifest at cosign's tag with another media type than the registry's header",
			Why:  "a registry that contradicts itself has not answered",
			Who:  either(), Code: "contradiction", Says: []string{"the answer contradicts itself"}, When: and(isFormat(tags), bentAt("mediaType")),
			Example: signedBy(tags, bent("other capitals", "mediaType")),
		},
		{
			What: "a referrer's manifest with another media type than the registry's header",
			Why:  "two readers could interpret it differently; the digest shows that it was pushed so",
			Who:  everybody(), Code: "malformed", Says: []string{"the answer contradicts itself"}, When: and(not(isFormat(tags)), bentAt("mediaType")),
			Example: signedBy(bundles, bent("other capitals", "mediaType")),
			Others:  []recipe{signedBy(jws, bent("other capitals", "mediaType"))},
		},
		{
			What: "a bundle that its manifest gives another artifact type",
			Why:  "of an image's referrers, only those with an artifact type of evidence are fetched: a bound on the data that others can make the verifier read",
			Who:  either(), Code: "unsigned", When: and(isFormat(bundles), bentAt("artifactType")),
			Example: signedBy(bundles, bent("a blank more", "artifactType")),
		},
		{
			What: "a bundle with an attestation that its manifest gives another artifact type",
			Why:  "as for a signature: referrers of other artifact types are not fetched",
			Who:  either(), Code: "no-attestation", When: and(isFormat(bundles), attests, bentAt("artifactType")),
			Example: signedBy(bundles, func(r *recipe) {
				r.Attests, r.Ask.Attestation, r.Bent = true, "own", []change{{What: "other capitals", Where: "artifactType"}}
			}),
		},
		{
			What: "an attestation in a layer with an annotation of another type",
			Why:  "an attestation that is required by type must declare it; others are not read",
			Who:  either(), Code: "no-attestation", When: and(attests, or(damagedAt("predicateType*"), bentAt("layers.0.annotations.predicateType"))),
			Example: signedBy(tags, func(r *recipe) {
				r.Attests, r.Ask.Attestation, r.Damages = true, "own", []change{{What: "byte after", Where: "predicateType"}}
			}),
		},
	}
}

// strictDocuments: signed documents are read strictly.
func strictDocuments() []difference {
	return []difference{
		{
			What: "a bundle with a statement that has the digest in capitals",
			Why:  "a digest has one spelling, in small letters",
			Who:  []string{cosign2}, Code: "wrong-digest", When: and(isFormat(bundles), oddAt("subject.0.digest.sha256"), done("other capitals")),
			Example: signedBy(bundles, oddly("other capitals", "subject.0.digest.sha256")),
		},
		{
			What: "JSON with a duplicate name",
			Why:  "readers differ about which one counts",
			Who:  everybody(), Code: "malformed", Says: []string{"is there twice"},
			Example: signedBy(tags, bent("twice, the same", "schemaVersion")),
			Others:  []recipe{signedBy(jws, bent("twice, the same", "schemaVersion"))},
		},
		{
			What: "a statement of another type than in-toto's v0.1 and v1",
			Why:  "the meaning of another type is unknown",
			Who:  either(), Code: "malformed", Says: []string{"is neither https://in-toto.io/Statement/v0.1 nor"},
			Example: signedBy(bundles, oddly("empty", "_type")),
		},
		{
			What: "JSON in which a name is written in other capitals",
			Why:  "some readers take it for the name, and others do not",
			Who:  everybody(), Code: "malformed", Says: []string{"did you mean"},
			Example: signedBy(tags, bent("in capitals", "layers")),
			Others:  []recipe{signedBy(jws, bent("in capitals", "layers"))},
		},
		{
			What: "a statement without a type of its predicate",
			Why:  "its meaning is undefined",
			Who:  either(), Code: "malformed", Says: []string{"it has no predicateType"},
			Example: signedBy(bundles, oddly("null", "predicateType")),
		},
		{
			What: "a statement that names its predicate's type as protocol buffers may, in addition",
			Why:  "readers differ about which one counts",
			Who:  []string{cosign2}, Code: "malformed", Says: []string{`it has "predicate_type"`},
			Example: signedBy(tags, func(r *recipe) {
				r.Attests, r.Ask.Attestation, r.Oddities = true, "own", []change{{What: "in snake case, beside", Where: "predicateType"}}
			}),
		},
		{
			What: "a bundle with a statement that names its predicate's type as protocol buffers may, and in no other way",
			Why:  "in-toto's JSON has one name for it",
			Who:  either(), Code: "malformed", Says: []string{`it has "predicate_type"`}, When: isFormat(bundles),
			Example: signedBy(bundles, oddly("in snake case", "predicateType")),
		},
		{
			What: "a statement with a subject that has no digest",
			Why:  "its subject is undefined, and it is no statement by the specification",
			Who:  either(), Code: "malformed", Says: []string{"it has no digest"},
			Example: signedBy(bundles, oddly("an empty object more", "subject")),
		},
		{
			What: "an attestation at cosign's tag with null among its subjects",
			Why:  "null is no subject; cosign 2 ignores it, cosign 3 and the parsers of bundles do not",
			Who:  []string{cosign2}, Code: "malformed", Says: []string{"want a JSON object, got null"}, When: and(isFormat(tags), oddAt("subject", "subject.0")),
			Example: signedBy(tags, func(r *recipe) {
				r.Attests, r.Ask.Attestation, r.Oddities = true, "own", []change{{What: "twice, nothing last", Where: "subject.0"}}
			}),
		},
	}
}

// strictEvidence: what travels along is.
func strictEvidence() []difference {
	return []difference{
		{
			What: "a log entry that cannot be read, where none is required",
			Why:  "attached material is parsed strictly or not at all",
			Who:  either(), Code: "malformed", Says: []string{"annotation dev.sigstore.cosign/bundle"}, When: and(isFormat(tags), logIgnored),
			Example: signedBy(tags, func(r *recipe) {
				r.Log, r.Damages = "rekor", []change{{What: "left out", Where: "dev.sigstore.cosign/bundle > SignedEntryTimestamp"}}
			}),
		},
		{
			What: "a timestamp at cosign's tag that cannot be read, where cosign has no --use-signed-timestamps",
			Why:  "attached material is parsed strictly or not at all",
			Who:  either(), Code: "malformed", Says: []string{"annotation " + stampAt}, When: and(isFormat(tags), not(asksStamps)),
			Example: signedBy(tags, func(r *recipe) {
				r.Certified, r.Stamped, r.Log, r.Ask = true, true, "rekor", question{By: byIdentity}
				r.Damages = []change{{What: "null", Where: stampAt + " > SignedRFC3161Timestamp"}}
			}),
		},
		{
			What: "a payload of cosign's with another type than a signature's",
			Why:  "the same key may sign payloads with another meaning",
			Who:  either(), Code: "malformed", Says: []string{"simple signing payload: its type is"}, When: oddAt("critical.type"),
			Example: signedBy(tags, oddly("empty", "critical.type")),
		},
		{
			What: "base64 with unused bits set in its last letter",
			Why:  "the same bytes have one spelling",
			Who:  either(), Code: "malformed", Says: []string{"illegal base64 data"}, When: done("encoded with loose end", "another letter", "bit"),
			Example: signedBy(tags, func(r *recipe) {
				r.Key, r.Attests, r.Ask.Attestation = "ed25519", true, "own"
				r.Damages = []change{{What: "encoded with loose end", Where: "body > signatures.0.sig"}}
			}),
		},
		{
			What: "a timestamp from outside the certificate's validity, with a log entry from within",
			Why:  "the time of a trusted authority must not contradict the certificate, regardless of other times",
			Who:  either(), Code: "expired-certificate", Says: []string{"valid at the time of signing"}, When: stampedInLog,
			Example: signedBy(bundles, func(r *recipe) {
				r.Certified, r.Stamped, r.Log, r.Fault, r.Ask = true, true, "rekor", "a timestamp of an hour ago", question{By: byIdentity}
			}),
		},
		{
			What: "a bundle's invalid timestamp, with a valid log entry",
			Why:  "present evidence must be valid, where a timestamp authority is configured",
			Who:  either(), Code: "bad-timestamp", When: and(isFormat(bundles), stampedInLog),
			Example: signedBy(bundles, func(r *recipe) {
				r.Certified, r.Stamped, r.Log, r.Fault, r.Ask = true, true, "rekor", "a foreign timestamp authority", question{By: byIdentity}
			}),
		},
		{
			What: "a certificate in a block of another type, or more than one in place of the signer's",
			Why:  "the selected one must not depend on the reader",
			Who:  either(), Code: "malformed", Says: []string{"certificates: the PEM block is", "certificates: more than the bound of 1"},
			When: damagedAt("dev.sigstore.cosign/certificate", "dev.sigstore.cosign/chain"),
			Example: signedBy(tags, func(r *recipe) {
				r.Certified, r.Log, r.Ask = true, "rekor", question{By: byIdentity}
				r.Damages = []change{{What: "certificates twice", Where: "dev.sigstore.cosign/certificate"}}
			}),
		},
		{
			What: "a notation signature with an unknown critical attribute",
			Why:  "the specification requires verifiers to refuse it; notation ignores it",
			Who:  []string{notation}, Code: "wrong-format", Says: []string{"has the critical attribute"}, When: hasFault("a critical attribute"),
			Example: signedBy(jws, func(r *recipe) { r.Fault = "a critical attribute" }),
		},
	}
}
