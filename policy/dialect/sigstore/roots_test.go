package sigstore_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

func encode(text []byte) string { return base64.StdEncoding.EncodeToString(text) }

// keysOf is a TrustRoot of the keys of a Sigstore.
func keysOf(name string, s *verifytest.Sigstore) string {
	return rootDocument(name, map[string]any{"sigstoreKeys": map[string]any{
		"certificateAuthorities": []any{map[string]any{
			"subject": map[string]any{"organization": "o", "commonName": "c"}, "uri": "https://fulcio.example", "certChain": encode(s.CA.ChainPEM()),
		}},
		"tLogs":                []any{map[string]any{"baseURL": s.Rekor.URL(), "hashAlgorithm": "sha-256", "publicKey": encode(s.Rekor.PublicPEM())}},
		"ctLogs":               []any{map[string]any{"baseURL": s.CTLog.URL(), "hashAlgorithm": "sha-256", "publicKey": encode(s.CTLog.PublicPEM())}},
		"timestampAuthorities": []any{map[string]any{"subject": map[string]any{}, "uri": "https://tsa.example", "certChain": encode(s.TSA.ChainPEM())}},
	}})
}

func rootDocument(name string, spec map[string]any) string {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "policy.sigstore.dev/v1alpha1", "kind": "TrustRoot", "metadata": map[string]any{"name": name}, "spec": spec,
	})
	if err != nil { // made of our own values only
		panic(err)
	}
	return string(text)
}

func parseRoot(t *testing.T, text string) *trustroot.TrustRoot {
	t.Helper()
	root, err := trustroot.Parse([]byte(text), "root.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// TestTrustRootProves goes from TrustRoots and a policy to real signatures: those
// of the Sigstore that is named are proved, those of another one are not.
func TestTrustRootProves(t *testing.T) {
	ours := verifytest.Must(verifytest.New(verifytest.Options{Name: "ours"}))
	theirs := verifytest.Must(verifytest.New(verifytest.Options{Name: "theirs"}))
	roots := &trustroot.Roots{}
	roots.Put(parseRoot(t, keysOf("ours", ours)))
	roots.Put(parseRoot(t, keysOf("theirs", theirs)))
	roots.Put(parseRoot(t, rootDocument("whole", map[string]any{"trustedRootJSON": string(ours.TrustedRoot())})))
	roots.Put(parseRoot(t, strings.ReplaceAll(keysOf("sha512", ours), "sha-256", "sha512")))
	roots.Put(parseRoot(t, rootDocument("tuf", map[string]any{"remote": map[string]any{"root": encode([]byte(`{"signed":{"_type":"root"}}`)), "mirror": "https://tuf.example"}})))
	roots.Put(parseRoot(t, rootDocument("both", map[string]any{"trustedRootJSON": string(theirs.TrustedRoot(ours))})))
	roots.Put(parseRoot(t, rootDocument("ended", map[string]any{"trustedRootJSON": ended(t, theirs)})))
	relabelled := verifytest.Must(trustroot.Unmarshal(ours.TrustedRoot()))
	for i, log := range slices.Concat(relabelled.GetTlogs(), relabelled.GetCtlogs()) {
		log.LogId.KeyId = []byte{byte(i)}
	}
	roots.Put(parseRoot(t, rootDocument("relabelled", map[string]any{"trustedRootJSON": string(verifytest.Must(trustroot.Marshal(relabelled)))})))
	digest := image.DigestOf([]byte("manifest"))
	subject, err := image.MustParse("ghcr.io/org/app:v1").Pin(image.Descriptor{Digest: digest})
	if err != nil {
		t.Fatal(err)
	}
	// The gateway's own root is theirs, so that nothing is proved by mistake.
	store := verifytest.Must(trust.New(trust.Options{TrustedRoot: theirs.TrustedRoot()}))
	const ann = "identities: [{issuer: 'https://issuer.example', subject: ann@example.com}]"
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	stamped := func(c *verifytest.Claim) { c.NoLog, c.Stamps = true, []verifytest.Stamp{{}} }
	for _, c := range []struct {
		authority string
		format    attest.Format
		signedBy  *verifytest.Sigstore
		change    func(*verifytest.Claim)
		want      verify.Code // empty: proved
		reason    string
	}{
		{"keyless: {" + ann + ", trustRootRef: ours}, ctlog: {trustRootRef: ours}", attest.Cosign, ours, nil, "", "ours"},
		{"keyless: {" + ann + ", trustRootRef: ours}, ctlog: {trustRootRef: ours}", attest.Cosign, theirs, nil, verify.UntrustedChain, "theirs"},
		{"keyless: {" + ann + ", trustRootRef: whole}, ctlog: {trustRootRef: whole}", attest.Cosign, ours, nil, "", "ours, of a trusted_root.json"},
		{"keyless: {" + ann + ", trustRootRef: whole}, ctlog: {trustRootRef: whole}", attest.Cosign, theirs, nil, verify.UntrustedChain, "theirs, with a trusted_root.json of ours"},
		{"keyless: {" + ann + ", trustRootRef: whole}, ctlog: {trustRootRef: whole}, signatureFormat: bundle", attest.Bundle, ours, nil, "", "a bundle, with a trusted_root.json"},
		{"keyless: {" + ann + ", trustRootRef: sha512}, ctlog: {trustRootRef: sha512}", attest.Cosign, ours, nil, "", "ours, with another hash algorithm of the log (import trap)"},
		{"keyless: {" + ann + ", trustRootRef: sha512}, ctlog: {trustRootRef: sha512}", attest.Cosign, theirs, nil, verify.UntrustedChain, "theirs, with another hash algorithm of the log"},
		{"keyless: {" + ann + ", trustRootRef: ours}", attest.Cosign, ours, nil, "", "without ctlog, an entry of the same root (import trap)"},
		{"keyless: {" + ann + ", trustRootRef: ours}", attest.Cosign, ours, func(c *verifytest.Claim) { c.NoLog = true }, verify.NoLogEntry, "without ctlog and without an entry (import trap)"},
		{"keyless: {" + ann + ", trustRootRef: ours}, ctlog: {trustRootRef: theirs}", attest.Cosign, ours, nil, verify.BadLogEntry, "the log of another root"},
		{"keyless: {" + ann + ", trustRootRef: ours}, rfc3161timestamp: {trustRootRef: ours}", attest.Cosign, ours, func(c *verifytest.Claim) { c.NoLog, c.Stamps = true, []verifytest.Stamp{{}} }, "", "a timestamp of the same root"},
		{"keyless: {" + ann + ", trustRootRef: ours}, rfc3161timestamp: {trustRootRef: theirs}", attest.Cosign, ours, func(c *verifytest.Claim) { c.NoLog, c.Stamps = true, []verifytest.Stamp{{}} }, verify.BadTimestamp, "a timestamp of another root"},
		{"keyless: {" + ann + ", trustRootRef: ours}, ctlog: {trustRootRef: ours}, signatureFormat: bundle", attest.Bundle, ours, nil, "", "a bundle"},
		{"keyless: {" + ann + ", trustRootRef: ours}, ctlog: {trustRootRef: ours}, signatureFormat: bundle", attest.Bundle, theirs, nil, verify.UntrustedChain, "a bundle of theirs"},
		{"keyless: {" + ann + "}, ctlog: {trustRootRef: theirs}", attest.Cosign, theirs, nil, "", "the gateway's own root, and a log beside"},
		{"keyless: {" + ann + "}, ctlog: {trustRootRef: ours}", attest.Cosign, theirs, nil, verify.BadLogEntry, "the gateway's own root, and another log beside"},
		{"keyless: {" + ann + "}, rfc3161timestamp: {trustRootRef: theirs}", attest.Cosign, theirs, func(c *verifytest.Claim) { c.NoLog, c.Stamps = true, []verifytest.Stamp{{}} }, "", "the gateway's own root, and a timestamp authority beside"},
		{"keyless: {" + ann + "}, rfc3161timestamp: {trustRootRef: ours}", attest.Cosign, theirs, func(c *verifytest.Claim) { c.NoLog, c.Stamps = true, []verifytest.Stamp{{}} }, verify.BadTimestamp, "the gateway's own root, and another timestamp authority beside"},
		{"keyless: {" + ann + ", ca-cert: {data: " + quoted(t, ours.CA.ChainPEM()) + "}, insecureIgnoreSCT: true}, ctlog: {trustRootRef: ours}", attest.Cosign, ours, nil, "", "a certificate of ours"},
		{"keyless: {" + ann + ", ca-cert: {data: " + quoted(t, ours.CA.ChainPEM()) + "}, insecureIgnoreSCT: true}, ctlog: {trustRootRef: theirs}", attest.Cosign, theirs, nil, verify.UntrustedChain, "a certificate of ours, signed by theirs"},
		{"key: {data: " + quoted(t, key.PublicPEM()) + "}, ctlog: {trustRootRef: ours}", attest.Cosign, ours, func(c *verifytest.Claim) { c.Signer = key }, "", "a key, and our log"},
		{"key: {data: " + quoted(t, key.PublicPEM()) + "}, ctlog: {trustRootRef: ours}", attest.Cosign, theirs, func(c *verifytest.Claim) { c.Signer = key }, verify.BadLogEntry, "a key, and their log"},
		{"key: {data: " + quoted(t, key.PublicPEM()) + "}, rfc3161timestamp: {trustRootRef: ours}", attest.Cosign, ours, func(c *verifytest.Claim) { c.Signer, c.NoLog, c.Stamps = key, true, []verifytest.Stamp{{}} }, "", "a key, and our timestamp"},
		{"keyless: {" + ann + ", trustRootRef: relabelled}", attest.Cosign, ours, nil, "", "logs under other identifiers"},
		{"keyless: {" + ann + ", trustRootRef: relabelled}", attest.Cosign, theirs, nil, verify.UntrustedChain, "theirs, with our logs under other identifiers"},
		{"keyless: {" + ann + ", trustRootRef: relabelled}, signatureFormat: bundle", attest.Bundle, ours, nil, "", "a bundle, with logs under other identifiers"},
		{"keyless: {" + ann + "}, ctlog: {trustRootRef: both}", attest.Cosign, theirs, nil, "", "one log of several"},
		{"keyless: {" + ann + "}, ctlog: {trustRootRef: both}, signatureFormat: legacy", attest.Cosign, theirs, func(c *verifytest.Claim) { c.NoLog = true }, verify.NoLogEntry, "no entry of several logs"},
		{"keyless: {" + ann + "}, ctlog: {trustRootRef: ended}", attest.Cosign, theirs, nil, verify.BadLogEntry, "a log after its period"},
		{"keyless: {" + ann + "}, rfc3161timestamp: {trustRootRef: both}", attest.Cosign, theirs, stamped, "", "one timestamp authority of several"},
		{"keyless: {" + ann + "}, rfc3161timestamp: {trustRootRef: ended}", attest.Cosign, theirs, stamped, verify.BadTimestamp, "a timestamp authority after its period"},
		{"key: {data: " + quoted(t, key.PublicPEM()) + "}, ctlog: {trustRootRef: both}", attest.Cosign, theirs, func(c *verifytest.Claim) { c.Signer = key }, "", "a key, and one log of several"},
		{"key: {data: " + quoted(t, key.PublicPEM()) + "}, ctlog: {trustRootRef: ended}", attest.Cosign, theirs, func(c *verifytest.Claim) { c.Signer = key }, verify.BadLogEntry, "a key, and a log after its period"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			a := authorityOf(t, sigstore.Options{TrustRoots: roots}, "  authorities: [{"+c.authority+"}]\n")
			claim := verifytest.Claim{Signer: verifytest.Must(c.signedBy.Keyless(verifytest.Identity{Email: "ann@example.com", Issuer: "https://issuer.example"}))}
			if c.change != nil {
				c.change(&claim)
			}
			a, err := store.Snapshot().Resolve(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			_, err = prove(t, store.Snapshot(), c.format, c.signedBy, claim, subject, a)
			rejection, refused := errors.AsType[*verify.Rejection](err)
			if c.want == "" && err != nil || c.want != "" && (!refused || rejection.Code != c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

// ended is the root of a Sigstore after the periods of its logs and timestamp authority.
func ended(t *testing.T, s *verifytest.Sigstore) string {
	t.Helper()
	root, err := trustroot.Unmarshal(s.TrustedRoot())
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range root.GetTlogs() {
		log.PublicKey.ValidFor.End = timestamppb.New(log.GetPublicKey().GetValidFor().GetStart().AsTime().Add(time.Second))
	}
	for _, authority := range root.GetTimestampAuthorities() {
		authority.ValidFor.End = timestamppb.New(authority.GetValidFor().GetStart().AsTime().Add(time.Second))
	}
	return string(verifytest.Must(trustroot.Marshal(root)))
}

func prove(t *testing.T, snapshot *trust.Snapshot, format attest.Format, s *verifytest.Sigstore, claim verifytest.Claim, subject image.Pinned, a verify.Authority) (verify.Fact, error) {
	t.Helper()
	digest := subject.Digest().String()
	if format == attest.Bundle {
		claim.Statement = verifytest.CosignSignature(digest, nil)
		payload := verifytest.Must(s.Bundle(claim))
		return bundle.New(snapshot).Verify(t.Context(), subject, attest.Evidence{Format: format, Role: attest.Signature, Payload: payload, PredicateType: attest.PredicateCosignSign}, a)
	}
	claim.Image = &verifytest.SimpleSigning{Reference: "ghcr.io/org/app", Digest: digest}
	layer := verifytest.Must(s.Layer(claim))
	return cosign.New(snapshot).Verify(t.Context(), subject, attest.Evidence{Format: format, Role: attest.Signature, Payload: layer.Payload, Annotations: layer.Annotations}, a)
}

// TestTrustRootsChange: the current trusted root counts, and an unknown one is
// indeterminate.
func TestTrustRootsChange(t *testing.T) {
	ours := verifytest.Must(verifytest.New(verifytest.Options{Name: "ours"}))
	theirs := verifytest.Must(verifytest.New(verifytest.Options{Name: "theirs"}))
	roots := &trustroot.Roots{}
	p := compile(t, sigstore.Options{TrustRoots: roots}, head+keylessHead+", trustRootRef: corp}}]\n")
	hash := func() string {
		made := plan(t, pod("prod"), "ghcr.io/org/app:v1", p)
		if len(made.Checks) != 1 {
			return made.Results[0].Err.Error()
		}
		sum, err := made.Checks[0].Questions()[0].Authority.Hash()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	if got := hash(); !strings.Contains(got, "there is no TrustRoot corp") {
		t.Errorf("missing: %s", got)
	}
	first := parseRoot(t, keysOf("corp", ours))
	roots.Put(first)
	one := hash()
	if again := hash(); again != one || len(one) != 64 {
		t.Errorf("the same root gives %s and %s", one, again)
	}
	roots.Put(parseRoot(t, keysOf("corp", theirs)))
	if got := hash(); got == one || len(got) != 64 {
		t.Errorf("another root gives %s after %s", got, one)
	}
	roots.Put(first)
	if got := hash(); got != one {
		t.Errorf("the first root again gives %s, not %s", got, one)
	}
	roots.Break("corp", errors.New("torn"))
	if got := hash(); !strings.Contains(got, "torn") {
		t.Errorf("broken: %s", got)
	}
	remote := parseRoot(t, rootDocument("corp", map[string]any{"remote": map[string]any{"root": encode([]byte(`{"signed":{"_type":"root"}}`)), "mirror": "https://tuf.example"}}))
	roots.Put(remote)
	if got := hash(); !strings.Contains(got, "was not read yet") {
		t.Errorf("unread: %s", got)
	}
	if err := roots.Answer("corp", remote.Hash, []byte("nonsense")); err == nil {
		t.Error("nonsense was taken for a root")
	}
	if err := roots.Answer("corp", "another", ours.TrustedRoot()); err == nil {
		t.Error("an answer for another document was taken")
	}
	if err := roots.Answer("corp", remote.Hash, ours.TrustedRoot()); err != nil {
		t.Error(err)
	}
	if got := hash(); len(got) != 64 {
		t.Errorf("read: %s", got)
	}
	roots.Put(remote) // the same document keeps its root
	if got := hash(); len(got) != 64 {
		t.Errorf("put again: %s", got)
	}
	roots.Remove("corp")
	if got := hash(); !strings.Contains(got, "there is no TrustRoot corp") {
		t.Errorf("removed: %s", got)
	}
	if made := plan(t, pod("prod"), "ghcr.io/org/app:v1", compile(t, sigstore.Options{}, head+keylessHead+", trustRootRef: corp}}]\n")); outcome(made) != "error" {
		t.Errorf("without TrustRoots: %s", outcome(made))
	}
}
