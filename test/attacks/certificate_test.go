package attacks

import (
	"crypto/x509"
	"time"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// stamped has a timestamp and no log entry.
func stamped(change func(*scene, *verifytest.Stamp)) func(*scene) verifytest.Claim {
	return func(s *scene) verifytest.Claim {
		var stamp verifytest.Stamp
		if change != nil {
			change(s, &stamp)
		}
		return verifytest.Claim{Signer: s.release, NoLog: true, Stamps: []verifytest.Stamp{stamp}}
	}
}

// byTimestamp wants the releaser, and a timestamp in place of a log.
const byTimestamp = "{keyless: {issuer: ISSUER, subject: SUBJECT, rekor: {ignoreTlog: true}}}"

// expression wants the releaser by an expression.
func expression(text string) string {
	return signedBy("{keyless: {issuer: ISSUER, subjectRegExp: '" + text + "'}}")
}

func certificateAttacks() []attack {
	who, chain := code(verify.WrongIdentity), code(verify.UntrustedChain)
	policy := signedBy(ofPeople)
	person := func(name, what, source string, change func(*scene, *verifytest.Identity), codes ...verify.Code) attack {
		var all = codesOf(codes)
		return attack{name, what, source, everywhere(), judged(policy, signsLegacy(released), signsLegacy(as(change)), all...)}
	}
	expressed := func(name, what, source, pattern string, change func(*verifytest.Identity)) attack {
		return attack{name, what, source, everywhere(), judged(expression(pattern), signsLegacy(released), signsLegacy(as(func(_ *scene, id *verifytest.Identity) { change(id) })), who)}
	}
	return []attack{
		person("another-subject", "Another identity of the same issuer signs. It is denied.", "kyverno 4668", func(_ *scene, id *verifytest.Identity) {
			id.URI = "https://git.example/org/other/release.yaml@refs/heads/main"
		}, verify.WrongIdentity),
		person("another-issuer", "Another issuer vouches for the very same subject. It is denied.", "kyverno 4668", func(_ *scene, id *verifytest.Identity) { id.Issuer = "https://token.evil.example" }, verify.WrongIdentity),
		person("issuer-with-a-tail", "The issuer begins like the trusted one and goes on. It is denied.", "unanchored identities", func(_ *scene, id *verifytest.Identity) { id.Issuer = issuer + ".evil.example" }, verify.WrongIdentity),
		person("no-subject-at-all", "The certificate has no alternative name, so that there is nothing to compare. It is denied.", "kyverno: a certificate without a name skips the check", func(_ *scene, id *verifytest.Identity) {
			id.URI, id.NoSAN = "", true
		}),
		person("subject-as-an-email", "The certificate has the subject's text as an e-mail address of another person. It is denied.", "kinds of alternative names confused", func(_ *scene, id *verifytest.Identity) {
			id.URI, id.Email = "", "release@evil.example"
		}, verify.WrongIdentity),
		person("foreign-authority", "A certificate authority of the attacker's issues the right names. It is denied.", "GHSA-8gw7-4j42-w388: identity unchecked", func(s *scene, id *verifytest.Identity) { id.CA = s.foreign.CA }, verify.UntrustedChain),
		person("no-certificate-timestamp", "The certificate was never shown to a certificate transparency log. It is denied.", "kyverno 17125", func(_ *scene, id *verifytest.Identity) { id.NoSCT = true }, verify.NoSCT),
		person("broken-certificate-timestamp", "The certificate's timestamp is not signed by the log. It is denied.", "kyverno 17125", func(_ *scene, id *verifytest.Identity) { id.WrongSCT = true }, verify.BadSCT),
		person("foreign-certificate-log", "The certificate's timestamp is of an untrusted log. It is denied.", "kyverno 17125", func(s *scene, id *verifytest.Identity) { id.CTLog = s.foreign.CTLog }, verify.BadSCT),
		person("certificate-for-servers", "The trusted authority issued the certificate for servers and not for signing. It is denied.", "extended key usage", func(_ *scene, id *verifytest.Identity) {
			id.Usage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}),
		expressed("unanchored-expression", "The policy's expression has no anchors, and the attacker's subject ends like the right one. It is denied: an expression is for the whole subject.", "unanchored identities",
			`https://git\.example/org/app/.*`, func(id *verifytest.Identity) { id.URI = "https://evil.example/" + releaser }),
		expressed("expression-before-the-end", "The attacker's host begins like the organisation that the expression names. It is denied.", "keyless prefix without a slash",
			`https://git\.example/org/app/release\.yaml@refs/heads/main`, func(id *verifytest.Identity) { id.URI = releaser + "-evil" }),
		expressed("subject-of-two-lines", "The attacker's subject has a line break, with the right subject in a line of its own. It is denied.", "multi-line expressions",
			`.*git\.example/org/app.*main$`, func(id *verifytest.Identity) { id.URI = "https://evil.example/%0Ahttps://git.example/org/other" }),
		{"expressions-are-not-ignored", "The policy names the subject and the issuer by expressions alone, and another identity of the authority signs. It is denied.", "GHSA-46mp-8w32-6g94, CVE-2025-29778", everywhere(),
			judged(signedBy(`{keyless: {issuerRegExp: 'https://token\.example', subjectRegExp: 'https://git\.example/org/app/.*'}}`), signsLegacy(released),
				signsLegacy(as(func(_ *scene, id *verifytest.Identity) {
					id.Issuer, id.URI = "https://accounts.evil.example", "https://evil.example/x"
				})), who)},
		{"identity-in-bundle", "A bundle of another identity, by the trusted authority and with an entry of the trusted log. It is denied.", "GHSA-8gw7-4j42-w388: identity unchecked with a bundle", everywhere(),
			judged(policy, signsBundle(released), signsBundle(as(func(_ *scene, id *verifytest.Identity) { id.URI = "https://evil.example/x" })), who)},
		{"foreign-authority-in-bundle", "A bundle with the right names by an authority of the attacker's. It is denied.", "GHSA-8gw7-4j42-w388", everywhere(),
			judged(policy, signsBundle(released), signsBundle(as(func(s *scene, id *verifytest.Identity) { id.CA = s.foreign.CA })), chain)},
		{"no-trusted-time", "A short-lived certificate signs, without a log entry or a timestamp. It is denied: a stolen key could sign for ever.", "GHSA-wqqc-jjcq-vfxm", everywhere(),
			judged(policy, signsLegacy(released), signsLegacy(func(s *scene) verifytest.Claim { return by(s.release) }))},
		{"timestamp-of-a-foreign-authority", "The timestamp is by an untrusted authority. It is denied.", "GHSA-xm5m-wgh2-rrg3, CVE-2026-39984", everywhere(),
			judged(signedBy(byTimestamp), signsBundle(stamped(nil)), signsBundle(stamped(func(s *scene, stamp *verifytest.Stamp) { stamp.TSA = s.foreign.TSA })))},
		{"timestamp-of-another-signature", "The timestamp is genuine, and of another signature. It is denied.", "GHSA-xm5m-wgh2-rrg3", everywhere(),
			judged(signedBy(byTimestamp), signsBundle(stamped(nil)), signsBundle(stamped(func(_ *scene, stamp *verifytest.Stamp) { stamp.OtherSignature = true })))},
		{"timestamp-outside-validity", "The timestamp is genuine, with a time at which the certificate was not valid. It is denied.", "GHSA-wqqc-jjcq-vfxm", everywhere(),
			judged(signedBy(byTimestamp), signsBundle(stamped(nil)), signsBundle(stamped(func(_ *scene, stamp *verifytest.Stamp) { stamp.Time = ago(48 * time.Hour) })))},
		{"timestamp-in-a-crowd", "The timestamp is genuine, and contains certificates that have issued one another, so that a search for a chain goes from each to each. It is denied before the search.", "CVE-2026-32280", everywhere(),
			judged(signedBy(byTimestamp), signsBundle(stamped(nil)), signsBundle(stamped(func(s *scene, stamp *verifytest.Stamp) {
				stamp.TSA = testkit.Must(s.sigstore.TSA.Crowded(6))(s.t)
			})), code(verify.Malformed))},
		{"own-roots-only", "The policy names its own root, and the signer has a certificate of the public authority. It is denied: the root takes the place of the others.", "kyverno: roots ignored for bundles", everywhere(), func(s *scene) {
			roots := func(pem []byte) string {
				s.words = map[string][]byte{"ANCHORS": pem}
				return signedBy("{keyless: {issuer: ISSUER, subject: SUBJECT, roots: ANCHORS}}")
			}
			image := s.built("honest")
			s.check(s.SignBundle(image, released(s), nil))
			s.policies(roots(s.sigstore.CA.ChainPEM()))
			s.runs(image.Name, image)
			s.again(ample)
			s.policies(roots(s.foreign.CA.ChainPEM()))
			s.refused(image.Name, chain)
		}},
		{"own-log-key-only", "The policy names its own log's key, and the entry is of the trusted root's log. It is denied: the key takes the place of the others.", "kyverno: rekor.pubkey ignored for bundles", everywhere(), func(s *scene) {
			keyed := func(pem []byte) string {
				s.words = map[string][]byte{"LOG": pem}
				return signedBy("{keys: {publicKeys: KEY, rekor: {pubkey: LOG}}}")
			}
			image := s.built("honest")
			s.check(s.SignBundle(image, logged(s), nil))
			s.policies(keyed(s.sigstore.Rekor.PublicPEM()))
			s.runs(image.Name, image)
			s.again(ample)
			s.policies(keyed(s.foreign.Rekor.PublicPEM()))
			s.refused(image.Name, code(verify.BadLogEntry))
		}},
		{"notation-after-its-end", "The notary's signature has expired by its own expiration time. It is denied.", "GHSA-57wx-m636-g3g8", everywhere(),
			judged(notarized(), notation(nil, ""), notation(func(n *verifytest.Notation) { n.Time, n.Expiry = ago(2*time.Hour), time.Hour }, ""), code(verify.Expired))},
		{"notation-certificate-ended", "The notary's certificate ended, and nothing shows an earlier time of the signature. It is denied.", "GHSA-45v3-38pc-874v", everywhere(), func(s *scene) {
			late := testkit.Must(verifytest.NewNotary(verifytest.NotaryOptions{Name: "late", NotBefore: ago(48 * time.Hour), NotAfter: ago(24 * time.Hour)}))(s.t)
			image, ended := s.built("honest"), s.built("ended")
			s.check(s.SignNotation(image, s.notary, verifytest.Notation{}), s.SignNotation(ended, late, verifytest.Notation{Time: ago(36 * time.Hour)}))
			s.words = map[string][]byte{"NOTARY": append(s.notary.RootPEM(), late.RootPEM()...)}
			s.policies(notarized())
			s.runs(image.Name, image)
			s.refused(ended.Name, code(verify.ExpiredCertificate))
		}},
	}
}
