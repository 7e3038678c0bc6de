package sigstore_test

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/peers"
	"github.com/quaymaster/quaymaster/test/peers/sigstore"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

const (
	alice   = "alice@org.example"
	mallory = "mallory@org.example"
	release = "https://forge.example/org/app/.github/workflows/release.yml@refs/heads/main"
)

// port is Sigstore's servers, a registry with an image, and the program.
type port struct {
	*gatetest.Yard
	issuers     *issuers
	log         *sigstore.CTLog
	fulcio      *fulcio
	tsa         *tsa
	quaymaster  *peers.Program
	folder      string
	trustedRoot string         // a file
	former      *tsa           // another authority, which is gone
	misled      gatetest.Image // with a timestamp of the former authority
}

func newPort(t *testing.T) *port {
	t.Helper()
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	p := &port{
		Yard: gatetest.New(server, nil), issuers: newIssuers(t), log: sigstore.NewCTLog(t),
		quaymaster: peers.Quaymaster(t), folder: t.TempDir(),
	}
	p.fulcio = startFulcio(t, p.issuers, p.log)
	p.tsa = startTSA(t)
	p.misled = p.signed(t, "misled", p.fulcio, people, alice)
	p.former, p.tsa = p.tsa, nil
	p.former.Stop()
	p.tsa = startTSA(t)
	p.trustedRoot = write(t, p.folder, "trusted_root.json", trustedRoot(t, p.fulcio, p.tsa, p.log))
	return p
}

// trustedRoot composes a trusted_root.json.
func trustedRoot(t testing.TB, f *fulcio, a *tsa, log *sigstore.CTLog) []byte {
	t.Helper()
	return sigstore.Roots{Fulcio: f.Fulcio, TSA: a.TSA, CTLog: log}.JSON(t)
}

// signing is a signature on its way into a bundle.
type signing struct {
	key         *ecdsa.PrivateKey
	envelope    dsse.Envelope
	signature   []byte
	certificate *x509.Certificate
	stamps      [][]byte
}

// newSigning signs a statement of a cosign signature of the digest.
func newSigning(t testing.TB, digest string) *signing {
	t.Helper()
	statement, err := json.Marshal(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": verifytest.CosignSignPredicateType, "predicate": struct{}{},
		"subject": []any{map[string]any{"digest": map[string]string{"sha256": strings.TrimPrefix(digest, "sha256:")}}},
	})
	check(t, err)
	s := &signing{key: newKey(t)}
	s.signature = sign(t, s.key, dsse.PAE(verifytest.IntotoPayloadType, statement))
	s.envelope = dsse.Envelope{
		PayloadType: verifytest.IntotoPayloadType, Payload: base64Of(statement),
		Signatures: []dsse.Signature{{Sig: base64Of(s.signature)}},
	}
	return s
}

// bundle writes a Sigstore bundle v0.3.
func (s *signing) bundle(t testing.TB) []byte {
	t.Helper()
	stamps := []any{}
	for _, stamp := range s.stamps {
		stamps = append(stamps, map[string]any{"signedTimestamp": stamp})
	}
	text, err := json.Marshal(map[string]any{
		"mediaType": verifytest.BundleMediaType,
		"verificationMaterial": map[string]any{
			"certificate":               map[string]any{"rawBytes": s.certificate.Raw},
			"timestampVerificationData": map[string]any{"rfc3161Timestamps": stamps},
		},
		"dsseEnvelope": s.envelope,
	})
	check(t, err)
	return text
}

// certify gets the certificate of a person.
func (p *port) certify(t testing.TB, s *signing, f *fulcio, issuer, mail string) {
	t.Helper()
	var err error
	s.certificate, err = f.certify(t, s.key, p.issuers.person(t, issuer, mail), mail)
	check(t, err)
}

// image builds an image of its own.
func (p *port) image(tag string) gatetest.Image { return p.Build("app", tag, tag) }

func (p *port) push(t testing.TB, image gatetest.Image, s *signing) {
	t.Helper()
	check(t, p.PutBundle(image, s.bundle(t), verifytest.CosignSignPredicateType))
}

// signed is an image with a usual signature.
func (p *port) signed(t testing.TB, tag string, f *fulcio, issuer, mail string) gatetest.Image {
	t.Helper()
	image := p.image(tag)
	s := newSigning(t, image.Manifest.Digest)
	p.certify(t, s, f, issuer, mail)
	s.stamps = [][]byte{p.tsa.stamp(t, s.signature)}
	p.push(t, image, s)
	return image
}

// judgement is the program's result for one image.
type judgement struct {
	Result  string
	Reasons []struct{ Code, Message, Expected, Found string }
	said    string
}

// judge runs "quaymaster verify" and reads its record.
func (p *port) judge(t testing.TB, image gatetest.Image, args ...string) judgement {
	t.Helper()
	args = append([]string{"verify", "-o", "json", "--trusted-root", p.trustedRoot, image.Name}, args...)
	said, err := p.quaymaster.Run(t.Context(), args...)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("quaymaster gave no answer: %v", err)
	}
	var report struct {
		Items []struct{ Images []judgement }
	}
	if err := json.NewDecoder(strings.NewReader(said)).Decode(&report); err != nil || len(report.Items) != 1 || len(report.Items[0].Images) != 1 {
		t.Fatalf("the record cannot be read (%v):\n%s", err, said)
	}
	j := report.Items[0].Images[0]
	j.said = said
	if (j.Result == "allow") != (err == nil) {
		t.Errorf("the answer is %s, the exit status is %v", j.Result, err)
	}
	return j
}

// by asks for a person's signature, without a transparency log.
func (p *port) by(issuer, mail string, more ...string) []string {
	return append([]string{
		"--certificate-identity", mail, "--certificate-oidc-issuer", p.issuers.URL + issuer, "--insecure-ignore-tlog",
	}, more...)
}

// expect fails the test unless an image is judged so, with the code first.
func (p *port) expect(t testing.TB, image gatetest.Image, answer, code string, args ...string) {
	t.Helper()
	got := p.judge(t, image, args...)
	if got.Result != answer || len(got.Reasons) == 0 || got.Reasons[0].Code != code {
		t.Errorf("%s is judged %s, want %s with %s first:\n%s", image.Name, got.Result, answer, code, got.said)
	}
}

const (
	allow = "allow"
	deny  = "deny"
)

func TestKeyless(t *testing.T) {
	p := newPort(t)
	good := p.signed(t, "good", p.fulcio, people, alice)
	p.expect(t, good, allow, "verified", p.by(people, alice)...)

	t.Run("policy", func(t *testing.T) { p.policies(t, good) })
	t.Run("certificate", p.certificates)
	t.Run("timestamp", p.timestamps)
	t.Run("digest", func(t *testing.T) {
		other := p.image("other-digest")
		s := newSigning(t, good.Manifest.Digest)
		p.certify(t, s, p.fulcio, people, alice)
		s.stamps = [][]byte{p.tsa.stamp(t, s.signature)}
		p.push(t, other, s)
		p.expect(t, other, deny, "wrong-digest", p.by(people, alice)...)
	})
	t.Run("signature", func(t *testing.T) {
		image := p.image("other-signature")
		s := newSigning(t, image.Manifest.Digest)
		p.certify(t, s, p.fulcio, people, alice)
		s.signature = sign(t, newKey(t), []byte("other bytes, by another key"))
		s.envelope.Signatures[0].Sig = base64Of(s.signature)
		s.stamps = [][]byte{p.tsa.stamp(t, s.signature)}
		p.push(t, image, s)
		p.expect(t, image, deny, "bad-signature", p.by(people, alice)...)
	})
	t.Run("extensions", p.extensions)
}

// policies: the good image under policies that ask for something else.
func (p *port) policies(t *testing.T, good gatetest.Image) {
	for _, c := range []struct {
		reason string
		args   []string
		answer string
		code   string
	}{
		{"the identity matches an expression", []string{
			"--certificate-identity-regexp", `.*@org\.example`, "--certificate-oidc-issuer", p.issuers.URL + people, "--insecure-ignore-tlog",
		}, allow, "verified"},
		{"another identity", p.by(people, mallory), deny, "wrong-identity"},
		{"another issuer", p.by(others, alice), deny, "wrong-identity"},
		{"an entry of a log is asked for", []string{
			"--certificate-identity", alice, "--certificate-oidc-issuer", p.issuers.URL + people, "--rekor-key", write(t, p.folder, "rekor.pub", p.log.PublicPEM()),
		}, deny, "no-log-entry"},
		{"signed after a bound", p.by(people, alice, "--signed-not-before", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)), allow, "verified"},
		{"signed before a bound", p.by(people, alice, "--signed-not-before", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)), deny, "outside-validity"},
	} {
		t.Run(c.reason, func(t *testing.T) { p.expect(t, good, c.answer, c.code, c.args...) })
	}
}

// certificates: other certificates than the policy asks for.
func (p *port) certificates(t *testing.T) {
	t.Run("of another identity", func(t *testing.T) {
		image := p.signed(t, "mallory", p.fulcio, people, mallory)
		p.expect(t, image, deny, "wrong-identity", p.by(people, alice)...)
		p.expect(t, image, allow, "verified", p.by(people, mallory)...)
	})
	t.Run("of another issuer", func(t *testing.T) {
		image := p.signed(t, "stranger", p.fulcio, others, alice)
		p.expect(t, image, deny, "wrong-identity", p.by(people, alice)...)
		p.expect(t, image, allow, "verified", p.by(others, alice)...)
	})
	t.Run("of another fulcio", func(t *testing.T) {
		image := p.signed(t, "foreign", startFulcio(t, p.issuers, p.log), people, alice)
		p.expect(t, image, deny, "untrusted-chain", p.by(people, alice)...)
	})
	t.Run("without a certificate timestamp", func(t *testing.T) {
		f := startFulcio(t, p.issuers, nil)
		image := p.signed(t, "unlogged", f, people, alice)
		trusting := p.trusting(t, f, p.tsa, p.log)
		trusting.expect(t, image, deny, "no-sct", p.by(people, alice)...)
		trusting.expect(t, image, allow, "verified", p.by(people, alice, "--insecure-ignore-sct")...)
	})
	t.Run("with a timestamp of another certificate log", func(t *testing.T) {
		image := p.signed(t, "otherlog", p.fulcio, people, alice)
		p.trusting(t, p.fulcio, p.tsa, sigstore.NewCTLog(t)).expect(t, image, deny, "bad-sct", p.by(people, alice)...)
	})
	t.Run("fulcio checks the identity", func(t *testing.T) {
		foreign := newIssuers(t)
		foreign.URL = p.issuers.URL // claims to be ours, with another key
		if _, err := p.fulcio.certify(t, newKey(t), foreign.person(t, people, alice), alice); err == nil {
			t.Error("fulcio believed a token that our issuer did not sign")
		}
	})
}

// trusting is the port with another trusted root.
func (p *port) trusting(t testing.TB, f *fulcio, a *tsa, log *sigstore.CTLog) *port {
	t.Helper()
	other := *p
	other.trustedRoot = write(t, t.TempDir(), "trusted_root.json", trustedRoot(t, f, a, log))
	return &other
}

// timestamps: other times of signing than the certificate has room for.
func (p *port) timestamps(t *testing.T) {
	start := func(t *testing.T, tag string) (gatetest.Image, *signing) {
		image := p.image(tag)
		return image, newSigning(t, image.Manifest.Digest)
	}
	t.Run("none, while the certificate is valid", func(t *testing.T) {
		image, s := start(t, "unstamped")
		p.certify(t, s, p.fulcio, people, alice)
		p.push(t, image, s)
		p.expect(t, image, allow, "verified", p.by(people, alice)...)
		until := s.certificate.NotAfter.UTC().Format(time.RFC3339)
		if got := p.judge(t, image, p.by(people, alice)...); !strings.Contains(got.said, `"expiresAt": "`+until+`"`) {
			t.Errorf("the proof does not end with the certificate at %s:\n%s", until, got.said)
		}
	})
	t.Run("none, where one is asked for", func(t *testing.T) {
		image, s := start(t, "timeless")
		p.certify(t, s, p.fulcio, people, alice)
		p.push(t, image, s)
		p.expect(t, image, deny, "no-timestamp", p.by(people, alice, "--signed-not-before", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))...)
	})
	t.Run("of another authority", func(t *testing.T) {
		p.expect(t, p.misled, deny, "bad-timestamp", p.by(people, alice)...)
		p.trusting(t, p.fulcio, p.former, p.log).expect(t, p.misled, allow, "verified", p.by(people, alice)...)
	})
	t.Run("of another signature", func(t *testing.T) {
		image, s := start(t, "strangestamp")
		p.certify(t, s, p.fulcio, people, alice)
		s.stamps = [][]byte{p.tsa.stamp(t, []byte("another signature"))}
		p.push(t, image, s)
		p.expect(t, image, deny, "bad-timestamp", p.by(people, alice)...)
	})
	t.Run("from before the certificate", func(t *testing.T) {
		image, s := start(t, "early")
		s.stamps = [][]byte{p.tsa.stamp(t, s.signature)}
		p.certifyAfter(t, s, time.Now())
		p.push(t, image, s)
		p.expect(t, image, deny, "expired-certificate", p.by(people, alice)...)
	})
}

// certifyAfter gets a certificate that is not valid before a time that is
// passing now; certificates count in seconds.
func (p *port) certifyAfter(t testing.TB, s *signing, at time.Time) {
	t.Helper()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		p.certify(t, s, p.fulcio, people, alice)
		if s.certificate.NotBefore.After(at) {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the certificate never starts later")
		}
	}
}

const clusterPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: released}
spec:
  validationFailureAction: Enforce
  rules:
  - name: released
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["*"]
      type: SigstoreBundle
      attestors:
      - entries:
        - keyless:
            subject: %q
            issuer: %q
            rekor: {url: "https://rekor.example", ignoreTlog: true}
            additionalExtensions: {githubWorkflowTrigger: %s, runnerEnvironment: github-hosted, sourceRepositoryURI: "https://forge.example/org/app"}
`

// extensions: what fulcio writes about a run of a workflow.
func (p *port) extensions(t *testing.T) {
	image := p.image("workflow")
	s := newSigning(t, image.Manifest.Digest)
	var err error
	s.certificate, err = p.fulcio.certify(t, s.key, p.issuers.workflow(t, "push"), "repo:org/app")
	check(t, err)
	s.stamps = [][]byte{p.tsa.stamp(t, s.signature)}
	p.push(t, image, s)
	for _, c := range []struct{ reason, trigger, answer, code string }{
		{"the workflow ran as it should", "push", allow, "verified"},
		{"something else started the workflow", "pull_request", deny, "wrong-extension"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			policy := write(t, t.TempDir(), "policy.yaml", fmt.Appendf(nil, clusterPolicy, release, p.issuers.URL+workflows, c.trigger))
			p.expect(t, image, c.answer, c.code, "--policy", policy)
		})
	}
}
