package attestor_test

import (
	"context"
	"crypto"
	"errors"
	"strings"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/notation"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

const issuer, release = "https://token.example", "https://git.example/org/app/release.yaml@refs/heads/main"

// town has the signers: two of everything, of which the gateway trusts ours.
type town struct {
	ours, theirs     *verifytest.Sigstore
	store            *trust.Store
	ann, ben, eve    *verifytest.Signer // keys
	workflow, other  *verifytest.Signer // of our certificate authority
	noSCT, foreign   *verifytest.Signer
	notary, impostor *verifytest.Notary
	subject          image.Pinned
	manifest         image.Descriptor
	notations        *notation.Verifier
	wide             *verifytest.Signer
	foreignSCT       *verifytest.Signer
}

func newTown() *town {
	h := &town{
		ours:   verifytest.Must(verifytest.New(verifytest.Options{Name: "ours"})),
		theirs: verifytest.Must(verifytest.New(verifytest.Options{Name: "theirs"})),
		ann:    verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})),
		ben:    verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})),
		eve:    verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})),
		wide:   verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{Hash: crypto.SHA512})),
	}
	h.store = verifytest.Must(trust.New(trust.Options{TrustedRoot: h.ours.TrustedRoot()}))
	id := func(uri, trigger string) verifytest.Identity {
		return verifytest.Identity{URI: uri, Issuer: issuer, Lifetime: 24 * time.Hour, Extensions: map[verifytest.Extension]string{
			verifytest.BuildTrigger: trigger, verifytest.WorkflowRepository: "org/app",
		}}
	}
	h.workflow = verifytest.Must(h.ours.Keyless(id(release, "push")))
	h.other = verifytest.Must(h.ours.Keyless(id("https://evil.example/"+release+"/evil", "dispatch")))
	bare := id(release, "push")
	bare.NoSCT = true
	h.noSCT = verifytest.Must(h.ours.Keyless(bare))
	elsewhere := id(release, "push")
	elsewhere.CTLog = h.theirs.CTLog
	h.foreignSCT = verifytest.Must(h.ours.Keyless(elsewhere))
	h.foreign = verifytest.Must(h.theirs.Keyless(id(release, "push")))
	h.notary = verifytest.Must(verifytest.NewNotary(verifytest.NotaryOptions{Name: "ours"}))
	h.impostor = verifytest.Must(verifytest.NewNotary(verifytest.NotaryOptions{Name: "theirs"}))
	h.manifest = image.Descriptor{MediaType: image.MediaTypeManifest, Digest: image.DigestOf([]byte("{}")), Size: 2}
	h.subject = verifytest.Must(verifytest.Must(image.Parse("registry.example/app:v1")).Pin(h.manifest))
	h.notations = verifytest.Must(notation.New(notation.Options{}))
	return h
}

// signed is signed evidence.
type signed struct {
	claim       verifytest.Claim
	by          *verifytest.Sigstore // ours if nil
	annotations map[string]any
	predicate   string // an attestation of the type

	notary   *verifytest.Notary
	notation verifytest.Notation
}

// evidence writes the claim in both of cosign's formats, or in notation's.
func (h *town) evidence(s signed) []attest.Evidence {
	digest := h.manifest.Digest.String()
	if s.notary != nil {
		s.notation.Target = ocispec.Descriptor{MediaType: h.manifest.MediaType, Digest: godigest.Digest(digest), Size: h.manifest.Size}
		return []attest.Evidence{{
			Format: attest.Notation, Role: attest.Signature, MediaType: verifytest.NotationJWS, Payload: verifytest.Must(s.notary.Sign(s.notation)),
		}}
	}
	by := s.by
	if by == nil {
		by = h.ours
	}
	old, recent, role := s.claim, s.claim, attest.Signature
	old.Image = &verifytest.SimpleSigning{Reference: "registry.example/app", Digest: digest, Annotations: s.annotations}
	recent.Statement = verifytest.CosignSignature(digest, s.annotations)
	if s.predicate != "" {
		role, old.Image = attest.Attestation, nil
		old.Statement = verifytest.Attestation(digest, s.predicate, map[string]any{"a": 1})
		recent.Statement = old.Statement
	}
	layer := verifytest.Must(by.Layer(old))
	list := []attest.Evidence{{Format: attest.Cosign, Role: role, MediaType: layer.MediaType, Payload: layer.Payload, Annotations: layer.Annotations}}
	if s.claim.Signer != h.wide { // a bundle leaves no choice of the digest algorithm
		list = append(list, attest.Evidence{Format: attest.Bundle, Role: role, Payload: verifytest.Must(by.Bundle(recent))})
	}
	return list
}

// prove proves evidence by any of the authorities; else it returns the reason why
// the last of them refuses.
func (h *town) prove(ctx context.Context, authorities []*verify.Authority, e attest.Evidence) error {
	var last error
	for _, authority := range authorities {
		resolved, err := h.store.Snapshot().Resolve(ctx, *authority)
		if err != nil {
			return err
		}
		var verifier verify.Verifier = h.notations
		switch e.Format {
		case attest.Cosign:
			verifier = cosign.New(h.store.Snapshot())
		case attest.Bundle:
			verifier = bundle.New(h.store.Snapshot())
		}
		_, last = verifier.Verify(ctx, h.subject, e, resolved)
		if last == nil {
			return nil
		}
	}
	return last
}

// row is a document and the evidence that is verified by it.
type row struct {
	text   string
	made   signed
	want   verify.Code // empty: accepted
	reason string
}

func (h *town) keyRows() []row {
	ann, both := q(h.ann.PublicPEM()), q(append(h.ann.PublicPEM(), h.ben.PublicPEM()...))
	by := func(s *verifytest.Signer) signed { return signed{claim: verifytest.Claim{Signer: s}} }
	unlogged := by(h.ann)
	unlogged.claim.NoLog = true
	foreignLog := by(h.ann)
	foreignLog.by = h.theirs
	wide := by(h.wide) // no log knows this algorithm
	wide.claim.NoLog = true
	marked, wrongly := by(h.ann), by(h.ann)
	marked.annotations = map[string]any{"env": "prod", "team": "a"}
	wrongly.annotations = map[string]any{"env": "prod*"}
	statement := by(h.ann)
	statement.predicate = attest.PredicateSLSAv1
	foreignStatement := by(h.eve)
	foreignStatement.predicate = attest.PredicateSLSAv1
	return []row{
		{"cosign: {key: {data: " + ann + "}}", by(h.ann), "", "the key signed"},
		{"cosign: {key: {data: " + ann + "}}", by(h.eve), verify.WrongKey, "another key signed"},
		{"cosign: {key: {data: " + both + "}}", by(h.ben), "", "the second of two keys"},
		{"cosign: {key: {data: " + both + "}}", by(h.eve), verify.WrongKey, "neither of two keys"},
		{"cosign: {key: {data: " + q(h.wide.PublicPEM()) + ", hashAlgorithm: sha512}, ctlog: {insecureIgnoreTlog: true}}", wide, "", "a digest algorithm"},
		{"cosign: {key: {data: " + q(h.wide.PublicPEM()) + "}, ctlog: {insecureIgnoreTlog: true}}", wide, verify.WrongKey, "another digest algorithm than sha256"},
		{"cosign: {key: {data: " + ann + "}}", unlogged, verify.NoLogEntry, "a log entry is required by default"},
		{"cosign: {key: {data: " + ann + "}, ctlog: {url: https://rekor.sigstore.dev}}", unlogged, verify.NoLogEntry, "a log entry is wanted"},
		{"cosign: {key: {data: " + ann + "}, ctlog: {url: https://rekor.sigstore.dev}}", by(h.ann), "", "any log of the root"},
		{"cosign: {key: {data: " + ann + "}, ctlog: {insecureIgnoreSCT: true}}", unlogged, verify.NoLogEntry, "to ignore one thing is not to ignore the other"},
		{"cosign: {key: {data: " + ann + "}, ctlog: {insecureIgnoreTlog: true, url: https://rekor.sigstore.dev}}", unlogged, "", "the log is ignored"},
		{"cosign: {key: {data: " + ann + "}, ctlog: {insecureIgnoreTlog: true}}", by(h.eve), verify.WrongKey, "the log is ignored, and the key is not"},
		{"cosign: {key: {data: " + ann + "}, ctlog: {rekorPubKey: " + q(h.theirs.Rekor.PublicPEM()) + "}}", foreignLog, "", "a log by its key"},
		{"cosign: {key: {data: " + ann + "}, ctlog: {rekorPubKey: " + q(h.theirs.Rekor.PublicPEM()) + "}}", by(h.ann), verify.BadLogEntry, "another log than that of the key"},
		{"cosign: {key: {data: " + ann + "}}", foreignLog, verify.BadLogEntry, "a log that the root does not have"},
		{"cosign: {key: {data: " + ann + "}, trustedRoot: {value: " + q(h.theirs.TrustedRoot()) + "}}", foreignLog, "", "a root of the document's"},
		{"cosign: {key: {data: " + ann + "}, trustedRoot: {value: " + q(h.theirs.TrustedRoot()) + "}}", by(h.ann), verify.BadLogEntry, "the document's root goes before the gateway's"},
		{"cosign: {key: {data: " + ann + "}, annotations: {env: prod}}", marked, "", "an annotation among others"},
		{"cosign: {key: {data: " + ann + "}, annotations: {env: prod}}", by(h.ann), verify.WrongAnnotation, "no annotations"},
		{"cosign: {key: {data: " + ann + "}, annotations: {env: prod}}", wrongly, verify.WrongAnnotation, "another value"},
		{"cosign: {key: {data: " + ann + "}, annotations: {env: 'prod*'}}", marked, verify.WrongAnnotation, "values are compared letter by letter"},
		{"cosign: {key: {data: " + ann + "}, annotations: {env: prod, team: b}}", marked, verify.WrongAnnotation, "one of two"},
		{"cosign: {key: {data: " + ann + "}}", statement, "", "an attestation"},
		{"cosign: {key: {data: " + ann + "}}", foreignStatement, verify.WrongKey, "an attestation by another key"},
	}
}

func (h *town) keylessRows() []row {
	by := func(s *verifytest.Signer) signed { return signed{claim: verifytest.Claim{Signer: s}} }
	at := func(s *verifytest.Sigstore, by signed) signed { by.by = s; return by }
	exact := "{issuer: '" + issuer + "', subject: '" + release + "'}"
	who := func(identities, rest string) string {
		return "cosign: {keyless: {identities: [" + identities + "]" + rest + "}}"
	}
	with := func(rest string) string { return "cosign: {keyless: {identities: [" + exact + "]}, " + rest + "}" }
	return []row{
		{who(exact, ""), by(h.workflow), "", "the workflow signed"},
		{who(exact, ""), by(h.other), verify.WrongIdentity, "another subject"},
		{who("{issuer: 'https://evil.example', subject: '"+release+"'}", ""), by(h.workflow), verify.WrongIdentity, "another issuer"},
		{who("{issuer: '"+issuer+"', subject: nobody}, "+exact, ""), by(h.workflow), "", "the second of two identities"},
		{who("{issuer: '"+issuer+"', subject: nobody}, {issuer: 'https://evil.example', subject: '"+release+"'}", ""), by(h.workflow), verify.WrongIdentity, "the issuer of one identity and the subject of another"},
		{who("{issuerRegExp: 'https://.+', subjectRegExp: 'https://git\\.example/org/.+'}", ""), by(h.workflow), "", "expressions"},
		{who("{issuer: '"+issuer+"', subjectRegExp: '"+release+"'}", ""), by(h.other), verify.WrongIdentity, "an expression matches the whole subject"},
		{who("{issuerRegExp: token, subject: '"+release+"'}", ""), by(h.workflow), verify.WrongIdentity, "an expression matches the whole issuer"},
		{who(exact, ", additionalExtensions: {buildTrigger: push, githubWorkflowRepository: 'org/*'}"), by(h.workflow), "", "extensions"},
		{who(exact, ", additionalExtensions: {1.3.6.1.4.1.57264.1.20: push}"), by(h.workflow), "", "an extension by its identifier"},
		{who(exact, ", additionalExtensions: {buildTrigger: dispatch}"), by(h.workflow), verify.WrongExtension, "another value of an extension"},
		{who(exact, ", additionalExtensions: {buildTrigger: push, runnerEnvironment: '*'}"), by(h.workflow), verify.WrongExtension, "an extension that is not there"},
		{who(exact, ""), at(h.theirs, by(h.foreign)), verify.UntrustedChain, "a foreign certificate authority"},
		{with("trustedRoot: {value: " + q(h.theirs.TrustedRoot()) + "}"), at(h.theirs, by(h.foreign)), "", "a root of the document's"},
		{with("trustedRoot: {value: " + q(h.theirs.TrustedRoot()) + "}"), by(h.workflow), verify.UntrustedChain, "the document's root goes before the gateway's"},
		{who(exact, ", roots: "+q(h.ours.CA.ChainPEM())), by(h.workflow), "", "certificates of the document's"},
		{who(exact, ", roots: "+q(h.theirs.CA.ChainPEM())), by(h.workflow), verify.UntrustedChain, "other certificates"},
		{who(exact, ""), by(h.noSCT), verify.NoSCT, "a certificate timestamp is required by default"},
		{with("ctlog: {insecureIgnoreTlog: true}"), by(h.noSCT), verify.NoSCT, "to ignore the log is not to ignore the certificate's"},
		{with("ctlog: {insecureIgnoreSCT: true}"), by(h.noSCT), "", "the certificate's log is ignored"},
		{with("ctlog: {ctLogPubKey: " + q(h.theirs.CTLog.PublicPEM()) + "}"), by(h.foreignSCT), "", "a certificate's log by its key"},
		{with("ctlog: {ctLogPubKey: " + q(h.theirs.CTLog.PublicPEM()) + "}"), by(h.workflow), verify.BadSCT, "another certificate's log"},
		{who(exact, ""), by(h.foreignSCT), verify.BadSCT, "a certificate's log that the root does not have"},
	}
}

func (h *town) certificateRows() []row {
	by := func(s *verifytest.Signer) signed { return signed{claim: verifytest.Claim{Signer: s}} }
	stamped := func(s verifytest.Stamp) signed {
		return signed{claim: verifytest.Claim{Signer: h.ann, NoLog: true, Stamps: []verifytest.Stamp{s}}}
	}
	cert, chain := q(h.workflow.CertificatePEM()), q(h.ours.CA.ChainPEM())
	tsa := "cosign: {key: {data: " + q(h.ann.PublicPEM()) + "}, ctlog: {insecureIgnoreTlog: true, tsaCertChain: " + q(h.ours.TSA.ChainPEM()) + "}}"
	withTSA := tsa[:strings.Index(tsa, "insecureIgnoreTlog: true, ")] + tsa[strings.Index(tsa, "tsaCertChain"):]
	unstamped := by(h.ann)
	unstamped.claim.NoLog = true
	return []row{
		{"cosign: {certificate: {cert: {value: " + cert + "}, certChain: {value: " + chain + "}}}", by(h.workflow), "", "a certificate and its chain"},
		{"cosign: {certificate: {cert: {value: " + cert + "}, certChain: {value: " + chain + "}}}", by(h.other), verify.WrongIdentity, "another certificate of the chain"},
		{"cosign: {certificate: {certChain: {value: " + chain + "}}}", by(h.other), "", "any certificate of the chain"},
		{"cosign: {certificate: {certChain: {value: " + q(h.theirs.CA.ChainPEM()) + "}}}", by(h.other), verify.UntrustedChain, "another chain"},
		{"cosign: {certificate: {certChain: {value: " + chain + "}}}", by(h.noSCT), verify.NoSCT, "a certificate timestamp is wanted"},
		{"cosign: {certificate: {certChain: {value: " + chain + "}}, ctlog: {insecureIgnoreSCT: true}}", by(h.noSCT), "", "the certificate's log is ignored"},
		{tsa, stamped(verifytest.Stamp{}), "", "a timestamp"},
		{tsa, unstamped, verify.NoTimestamp, "no timestamp"},
		{tsa, stamped(verifytest.Stamp{TSA: h.theirs.TSA}), verify.BadTimestamp, "a foreign timestamp authority"},
		{withTSA, stamped(verifytest.Stamp{}), verify.NoLogEntry, "a timestamp does not replace a log entry"},
	}
}

func (h *town) notaryRows() []row {
	ours := "notary: {certs: {value: " + q(h.notary.RootPEM()) + "}}"
	timed := "notary: {certs: {value: " + q(h.notary.RootPEM()) + "}, tsaCerts: {value: " + q(h.ours.TSA.RootPEM()) + "}}"
	return []row{
		{ours, signed{notary: h.notary}, "", "the notary signed"},
		{ours, signed{notary: h.impostor}, verify.UntrustedChain, "another notary signed"},
		{timed, signed{notary: h.notary, notation: verifytest.Notation{TSA: h.ours.TSA}}, "", "a timestamp"},
		{timed, signed{notary: h.notary}, verify.NoTimestamp, "no timestamp"},
		{timed, signed{notary: h.notary, notation: verifytest.Notation{TSA: h.theirs.TSA}}, verify.BadTimestamp, "a foreign timestamp authority"},
		{ours, signed{claim: verifytest.Claim{Signer: h.ann}}, verify.WrongFormat, "cosign's signature is no notation"},
	}
}

// TestProof: authorities of documents accept the expected evidence, and nothing that
// differs in one thing.
func TestProof(t *testing.T) {
	h := newTown()
	for _, r := range append(append(h.keyRows(), h.keylessRows()...), append(h.certificateRows(), h.notaryRows()...)...) {
		authorities, err := compile(t, r.text, attestor.Options{}).Authorities(t.Context(), attestor.Activations{})
		if err != nil {
			t.Errorf("%s: %v", r.reason, err)
			continue
		}
		for _, e := range h.evidence(r.made) {
			err := h.prove(t.Context(), authorities, e)
			rejection, refused := errors.AsType[*verify.Rejection](err)
			switch {
			case r.want == "" && err != nil:
				t.Errorf("%s (%s): %v", r.reason, e.Format, err)
			case r.want != "" && (!refused || rejection.Code != r.want):
				t.Errorf("%s (%s): got %v, want %s", r.reason, e.Format, err, r.want)
			case refused && !strings.HasPrefix(rejection.Authority, "attestors.who"):
				t.Errorf("%s: the verdict names %q", r.reason, rejection.Authority)
			}
		}
	}
}
