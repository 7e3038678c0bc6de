package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// format is how evidence is written.
type format string

const (
	tags    format = "cosign's tags"
	bundles format = "bundles"
	jws     format = "notation JWS"
	cose    format = "notation COSE"
)

func (f format) isNotation() bool { return f == jws || f == cose }

// The words of recipes. The first of each is the plain one.
var (
	allFormats = []format{tags, bundles, jws, cose}
	keyKinds   = []string{"p256", "p384", "p521", "rsa2048", "rsa3072", "ed25519"}
	logs       = []string{"rekor", "none", "rekor2", "rekor with intoto"}
)

// recipe has the making of a case and its question. A case depends on nothing else,
// but for keys, signatures and the time.
type recipe struct {
	Format format
	// Writer is the signer: our own code, or the program of this name.
	Writer string
	// Attests: a statement with a predicate, and no signature.
	Attests bool
	// Certified: the key has a certificate of the certificate authority.
	Certified bool
	Key       string
	// OtherHash: the signature is over SHA-384 or SHA-512 in place of SHA-256.
	OtherHash bool
	Log       string
	Stamped   bool
	Annotated bool
	// Fault is the mistake of the signer or the log, by its name in faults.
	Fault string
	// Oddities are of the document before it was signed, Damages of the stored one,
	// and Bent of the manifest that carries it.
	Oddities, Damages, Bent []change
	// Beside is a second signature, by its name in companions.
	Beside string
	Ask    question
}

// change is one edit: an operator, by its name, at a place. Without a place the number
// chooses one.
type change struct {
	What, Where string
	At          uint64
}

// question is the request to the judges.
type question struct {
	// By is the trusted signer, by its name in signersAsked.
	By string
	// Moved: about another image than the one that was signed.
	Moved bool
	// Attestation: of "" nothing, "own" the type that was attested, "other" another one.
	Attestation string
	Annotation  string // "", "right", "value" (another one) or "name" (one that is not there)
	IgnoreLog   bool
	IgnoreSCT   bool
	// Stamps has cosign look at timestamps.
	Stamps bool
	// OtherHash names that digest.
	OtherHash bool
	// NoTSA: the trusted root names no timestamp authority.
	NoTSA bool
}

// wrongly reports whether the question itself must be answered with no, whatever was
// done to the evidence.
func (r *recipe) wrongly() bool {
	q := r.Ask
	return q.Moved || q.Annotation == "value" || q.Annotation == "name" || q.Annotation == "right" && !r.Annotated ||
		q.Attestation == "other" || q.Attestation == "own" && !r.Attests || q.Attestation == "" && r.Attests ||
		slices.Contains(wrongSigners, q.By) || q.By == byIdentity && !r.Certified
}

// isPlain reports whether nothing is wrong: everybody must accept.
func (r *recipe) isPlain() bool {
	return !r.wrongly() && r.Ask.By != byLeaf && r.Fault == "" && len(r.Oddities)+len(r.Damages)+len(r.Bent) == 0
}

// isHarmed reports whether something was done that may be noticed.
func (r *recipe) isHarmed() bool {
	return !r.wrongly() && (r.Fault != "" || len(r.Oddities)+len(r.Damages)+len(r.Bent) > 0)
}

// String writes the recipe in one line.
func (r *recipe) String() string {
	words := []string{string(r.Format), "by", r.Writer, r.Key}
	say := func(is bool, word string) {
		if is {
			words = append(words, word)
		}
	}
	say(r.Certified, "certified")
	say(r.OtherHash, r.hashName())
	say(r.Attests, "attests")
	say(!r.Format.isNotation(), "log:"+r.Log)
	say(r.Stamped, "stamped")
	say(r.Annotated, "annotated")
	say(r.Fault != "", "fault:"+r.Fault)
	say(r.Beside != "", "beside:"+r.Beside)
	for _, list := range []struct {
		of      string
		changes []change
	}{{"document", r.Oddities}, {"stored", r.Damages}, {"manifest", r.Bent}} {
		for _, c := range list.changes {
			words = append(words, fmt.Sprintf("%s:%s(%s %d)", list.of, c.What, c.Where, c.At))
		}
	}
	return strings.Join(words, " ") + " asked " + fmt.Sprintf("%+v", r.Ask)
}

// draw makes a recipe up.
func draw(random *rand.Rand) *recipe {
	chance := func(percent int) bool { return random.IntN(100) < percent }
	r := &recipe{Format: pick(random, []format{tags, tags, bundles, bundles, bundles, jws, cose}), Writer: ours, Key: pick(random, keyKinds)}
	if chance(50) {
		r.Key = keyKinds[0]
	}
	r.Annotated, r.Stamped = chance(40), chance(30)
	r.OtherHash = chance(4)
	if r.Format.isNotation() {
		r.drawNotation(random)
	} else {
		r.drawSigstore(random)
	}
	r.drawQuestion(random)
	if chance(35) {
		if chance(25) && !r.endsInPanic() {
			r.Beside = pick(random, companions)
		}
		if r.Beside == ofAnother && r.Ask.Moved {
			r.Beside = "" // it would be the right one
		}
		return r // nothing is done to it
	}
	switch kind := random.IntN(10); {
	case kind < 3 && len(faultsOf(r)) > 0:
		r.Fault = pick(random, faultsOf(r))
	case kind < 5:
		r.Oddities = drawChanges(random)
	case kind < 8:
		r.Damages = drawChanges(random)
	default:
		r.Bent = drawChanges(random)
	}
	if chance(8) && !r.byHand() && !r.endsInPanic() {
		r.Beside = companions[0]
	}
	return r
}

// endsInPanic reports whether cosign may end in a panic for a timestamp that does not
// hold, or accept the signature beside it, depending on which it comes to first.
func (r *recipe) endsInPanic() bool { return r.Format == tags && r.Ask.Stamps }

// byHand reports whether a notation signature is one that only a penman makes: then the
// usual notaries are not trusted.
func (r *recipe) byHand() bool {
	return r.Format.isNotation() && (len(r.Oddities) > 0 || r.Fault != "")
}

func (r *recipe) drawNotation(random *rand.Rand) {
	r.Certified, r.Log, r.Stamped = true, "none", false
	if r.Key == "ed25519" {
		r.Key = keyKinds[0]
	}
	r.OtherHash = false
}

func (r *recipe) drawSigstore(random *rand.Rand) {
	r.Attests, r.Certified = random.IntN(3) == 0, random.IntN(2) == 0
	r.Log = pick(random, []string{"rekor", "rekor", "none"})
	if r.Format == bundles && random.IntN(4) == 0 {
		r.Log = "rekor2"
	}
	if r.Log == "rekor" && (r.Attests || r.Format == bundles) && random.IntN(4) == 0 {
		r.Log = "rekor with intoto"
	}
	if random.IntN(6) == 0 {
		r.Writer = pick(random, []string{cosign2, cosign3})
		r.asWritten()
	}
	r.keep()
}

// keep drops the parts that the formats and logs do not have.
func (r *recipe) keep() {
	if r.Certified && r.Key == "rsa3072" {
		r.Key = "rsa2048" // every certificate has a key of its own, and these take a second
	}
	if r.Key == "ed25519" || r.Certified {
		r.OtherHash = false
	}
	message := r.Format == tags && !r.Attests
	if message && r.Key == "ed25519" && r.Log != "none" {
		r.Log = "none" // Rekor takes no such entry
	}
	if message && r.OtherHash {
		r.Log = "none" // cosign does not read such entries
	}
	if r.Log == "rekor2" { // which takes what belongs to the key
		r.OtherHash = !r.Certified && isWide(r.Key)
	}
	if r.Attests && r.Format == tags {
		r.Annotated = false // v0.1 statements have no room for it
	}
}

// isWide reports whether another digest than SHA-256 belongs to a key.
func isWide(key string) bool { return key == "p384" || key == "p521" }

func (r *recipe) drawQuestion(random *rand.Rand) {
	chance := func(percent int) bool { return random.IntN(100) < percent }
	q := question{
		By: pick(random, rightSigners(r)), IgnoreLog: r.Log == "none" || chance(15), IgnoreSCT: chance(10),
		OtherHash: r.OtherHash,
	}
	if r.Log == "rekor2" && r.Certified {
		r.Stamped = true // or the time is unknown
	}
	// cosign has a flag to use a timestamp where it is the only proof of the time.
	q.Stamps = r.Certified && r.Stamped && (q.IgnoreLog || r.Log == "rekor2")
	if r.Attests {
		q.Attestation = "own"
	}
	if r.Log == "none" && r.Certified && !q.Stamps {
		q.NoTSA = chance(20)
	}
	if r.Annotated && !r.Attests && chance(60) { // verify-attestation has no such flag
		q.Annotation = "right"
	}
	if chance(25) {
		r.askWrongly(random, &q)
	}
	r.Ask = q
}

// askWrongly asks for something other than the signed content.
func (r *recipe) askWrongly(random *rand.Rand, q *question) {
	switch random.IntN(8) {
	case 0, 1:
		q.By = pick(random, wrongSignersOf(r))
	case 2, 3, 7:
		q.Moved = true
	case 4:
		if !r.Format.isNotation() {
			q.Attestation = "other"
		}
	case 5:
		if !r.Format.isNotation() {
			q.Attestation = map[bool]string{true: "", false: "own"}[r.Attests]
		}
	default:
		if !r.Attests {
			q.Annotation = pick(random, []string{"value", "name"})
		}
	}
}

// drawChanges draws one change, and now and then two.
func drawChanges(random *rand.Rand) []change {
	all := []change{{At: random.Uint64()}}
	if random.IntN(5) == 0 {
		all = append(all, change{At: random.Uint64()})
	}
	return all
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }
