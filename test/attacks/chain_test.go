package attacks

import (
	"time"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// anchored wants the releaser below a root that the policy gives: which intermediates
// lead there, travels with the signature. More is what else the attestor has.
func anchored(more string) string {
	return signedBy("{keyless: {issuer: ISSUER, subject: SUBJECT, roots: ANCHORS" + more + "}}")
}

// The time for which the certificates of these cases are made: they hold now, and did an
// hour ago.
const began, lasts = time.Hour, 2 * time.Hour

// below signs as the releaser by a certificate of an authority, with the chain, at a time
// that a log confirms; unlogged if that is zero.
func below(authority func(s *scene) *verifytest.CA, logged time.Duration) func(*scene) verifytest.Claim {
	return func(s *scene) verifytest.Claim {
		signer := s.person(func(id *verifytest.Identity) {
			id.CA, id.NotBefore, id.Lifetime = authority(s), ago(began), lasts
		})
		claim := verifytest.Claim{Signer: signer, Version: "0.1", NoLog: logged == 0}
		if logged > 0 {
			claim.Time = ago(logged)
		}
		return claim
	}
}

// branch is another intermediate of the trusted root.
func branch(o verifytest.BranchOptions) func(*scene) *verifytest.CA {
	return func(s *scene) *verifytest.CA {
		if !o.NotAfter.IsZero() && o.NotBefore.IsZero() {
			o.NotBefore = ago(48 * time.Hour)
		}
		return testkit.Must(s.sigstore.CA.Branch(o))(s.t)
	}
}

// endedBranch is an intermediate that ended half an hour ago.
func endedBranch(s *scene) *verifytest.CA {
	return branch(verifytest.BranchOptions{NotAfter: ago(began / 2)})(s)
}

// chained plays two authorities against each other under a policy that gives a root.
func chained(policy string, signs func(func(*scene) verifytest.Claim) func(*scene, gatetest.Image) error, good, bad func(*scene) verifytest.Claim, codes ...policy.Code) func(*scene) {
	return func(s *scene) {
		s.words = map[string][]byte{"ANCHORS": s.sigstore.CA.RootPEM()}
		judged(policy, signs(good), signs(bad), codes...)(s)
	}
}

func chainAttacks() []attack {
	const (
		ended   = "GHSA-wfqv-66vq-46rm, CVE-2026-24122"
		long    = "CVE-2026-32280: chains without end"
		crossed = "certificates that cross"
	)
	unlogged := anchored(", rekor: {ignoreTlog: true}")
	live := branch(verifytest.BranchOptions{})
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, everywhere(), play}
	}
	both := func(name, what, source, policy string, good, bad func(*scene) verifytest.Claim) []attack {
		return []attack{
			row(name, what, source, chained(policy, signsLegacy, good, bad)),
			row(name+"-in-bundle", "The same in a bundle.", source, chained(policy, signsBundle, good, bad)),
		}
	}
	var all []attack
	for _, rows := range [][]attack{
		both("intermediate-that-ended", "The certificate is valid, and the certificate of its issuer has ended since; the signature has no time. It is denied: a chain ends with the first of its certificates.", ended,
			unlogged, below(live, 0), below(endedBranch, 0)),
		both("logged-after-the-intermediate", "The log's time is within the certificate's, and after the end of its issuer's. It is denied; before that end it is admitted.", ended,
			anchored(""), below(endedBranch, began*3/4), below(endedBranch, began/4)),
		both("chain-longer-than-ten", "The chain has twelve authorities. It is denied before the chain is built; with three it is admitted.", long,
			unlogged, below(branch(verifytest.BranchOptions{Depth: 3}), 0), below(branch(verifytest.BranchOptions{Depth: 12}), 0)),
		both("intermediate-signed-by-sha1", "The root signed the authority's certificate with SHA-1, which can be forged. It is denied.", "weak digests",
			unlogged, below(live, 0), below(branch(verifytest.BranchOptions{SHA1: true}), 0)),
		both("certificate-that-issues", "The holder of a certificate of the trusted authority issues another with it, in the releaser's name. It is denied: that certificate may not issue.", "basic constraints",
			unlogged, below(live, 0), below(func(s *scene) *verifytest.CA {
				return testkit.Must(s.person(func(id *verifytest.Identity) {
					id.URI, id.NotBefore, id.Lifetime = "https://evil.example/x", ago(began), lasts
				}).Issuing())(s.t)
			}, 0)),
		both("authority-of-the-same-name", "The attacker's authority and its root have the trusted ones' names. It is denied: keys count, and no names.", crossed,
			unlogged, below(live, 0), below(func(s *scene) *verifytest.CA { return testkit.Must(verifytest.New(verifytest.Options{}))(s.t).CA }, 0)),
	} {
		all = append(all, rows...)
	}
	all = append(all, crossings(crossed)...)
	return append(all, doublings()...)
}

// crossings are certificates that belong to others.
func crossings(source string) []attack {
	row := func(name, what string, play func(*scene)) attack {
		return attack{name, what, source, everywhere(), play}
	}
	foreign := func(s *scene) *verifytest.CA { return s.foreign.CA }
	cross := func(s *scene) *verifytest.CA { return testkit.Must(s.sigstore.CA.Crossed(s.foreign.CA))(s.t) }
	named := func(signs func(func(*scene) verifytest.Claim) func(*scene, gatetest.Image) error) func(*scene) {
		return func(s *scene) {
			s.words = map[string][]byte{"ANCHORS": s.foreign.CA.ChainPEM()}
			judged(anchored(", rekor: {ignoreTlog: true}"), signs(below(foreign, 0)), signs(below(cross, 0)))(s)
		}
	}
	shown := func(signer func(*scene) *verifytest.Signer) func(*scene) verifytest.Claim {
		return func(s *scene) verifytest.Claim { return verifytest.Claim{Signer: signer(s), Shown: s.release} }
	}
	stranger := func(s *scene) *verifytest.Signer { return s.stranger }
	evil := func(s *scene) *verifytest.Signer {
		return s.person(func(id *verifytest.Identity) { id.URI = "https://evil.example/x" })
	}
	return []attack{
		row("crossed-certificate", "The policy gives an intermediate with its root, and the root has certified another authority, too: the chain leads to the root, past the intermediate. It is denied.", named(signsLegacy)),
		row("crossed-certificate-in-bundle", "The same in a bundle.", named(signsBundle)),
		row("certificate-of-another-signer", "Another identity signs and is logged, and the releaser's certificate replaces its own. It is denied.", judged(signedBy(ofPeople), signsLegacy(released), signsLegacy(shown(evil)))),
		row("certificate-of-another-signer-in-bundle", "The same in a bundle.", judged(signedBy(ofPeople), signsBundle(released), signsBundle(shown(evil)))),
		row("certificate-beside-a-key", "A bare key signs, and the releaser's certificate travels with it. It is denied.", judged(signedBy(ofPeople), signsLegacy(released), signsLegacy(shown(stranger)))),
	}
}

// doublings are things that stand twice, to pass for two.
func doublings() []attack {
	const twice = "GHSA-9vcr-p3rj-q5q6, CVE-2026-49834"
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, everywhere(), play}
	}
	repeated := func(change func(s *scene, id *verifytest.Identity)) func(*scene) verifytest.Claim {
		return as(func(s *scene, id *verifytest.Identity) {
			id.RepeatSCT = true
			if change != nil {
				change(s, id)
			}
		})
	}
	stamps := func(tsa func(s *scene) *verifytest.TSA) func(*scene) verifytest.Claim {
		return func(s *scene) verifytest.Claim {
			stamp := verifytest.Stamp{TSA: tsa(s)}
			return verifytest.Claim{Signer: s.release, NoLog: true, Stamps: []verifytest.Stamp{stamp, stamp}}
		}
	}
	foreign := func(s *scene, id *verifytest.Identity) { id.CTLog = s.foreign.CTLog }
	misissued := func(s *scene, stamp *verifytest.Stamp) {
		stamp.TSA, stamp.ForgedCertificate = testkit.Must(s.sigstore.TSA.Misissued())(s.t), true
	}
	people := images("attestors: [{count: 2, entries: [" + ofPeople + ", {keyless: {issuer: ISSUER, subjectRegExp: 'https://git\\.example/org/app/.*'}}]}]")
	another := as(func(_ *scene, id *verifytest.Identity) {
		id.URI = "https://git.example/org/app/review.yaml@refs/heads/main"
	})
	again := as(func(*scene, *verifytest.Identity) {})
	return []attack{
		row("certificate-timestamp-twice", "The certificate contains a timestamp of an untrusted log twice. It is denied; the trusted log's, twice, is one.", twice,
			judged(signedBy(ofPeople), signsLegacy(repeated(nil)), signsLegacy(repeated(foreign)), code(verify.BadSCT))),
		row("certificate-timestamp-twice-in-bundle", "The same in a bundle.", twice,
			judged(signedBy(ofPeople), signsBundle(repeated(nil)), signsBundle(repeated(foreign)))),
		row("timestamp-twice", "The signature has two timestamps of one untrusted authority. It is denied.", twice,
			judged(signedBy(byTimestamp), signsBundle(stamped(nil)), signsBundle(stamps(func(s *scene) *verifytest.TSA { return s.foreign.TSA })))),
		row("forged-certificate-in-a-timestamp", "The trusted authority certified a code signer, which makes the timestamp; a forged certificate with the name and the usage for timestamps precedes its own. It is denied: the actual signer counts.", "GHSA-xm5m-wgh2-rrg3, CVE-2026-39984",
			judged(signedBy(byTimestamp), signsBundle(stamped(nil)), signsBundle(stamped(misissued)))),
		row("forged-certificate-in-a-legacy-timestamp", "The same below cosign's tag.", "GHSA-xm5m-wgh2-rrg3, CVE-2026-39984",
			judged(signedBy(byTimestamp), signsLegacy(stamped(nil)), signsLegacy(stamped(misissued)))),
		row("certificate-signed-by-sha1", "The trusted authority signed the certificate with SHA-1. It is denied.", "weak digests",
			judged(signedBy(ofPeople), signsLegacy(released), signsLegacy(as(func(_ *scene, id *verifytest.Identity) { id.SHA1 = true })))),
		row("certificate-signed-by-sha1-in-bundle", "The same in a bundle.", "weak digests",
			judged(signedBy(ofPeople), signsBundle(released), signsBundle(as(func(_ *scene, id *verifytest.Identity) { id.SHA1 = true })))),
		row("one-person-with-two-certificates", "Two people of two are wanted, and one of them signs twice, with a new certificate each time. It is denied: people count, and no certificates.", twice,
			judged(people, func(s *scene, image gatetest.Image) error {
				return first(s.SignLegacy(image, released(s), nil), s.SignLegacy(image, another(s), nil))
			}, func(s *scene, image gatetest.Image) error {
				return first(s.SignLegacy(image, released(s), nil), s.SignBundle(image, again(s), nil))
			}, policy.TooFewSigners)),
	}
}
