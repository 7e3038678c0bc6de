package sigstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
)

// TestImportTraps: what a policy of policy-controller's would silently lose or gain
// by being read as it looks.
func TestImportTraps(t *testing.T) {
	names := func(t *testing.T, glob, ref string) bool {
		t.Helper()
		p := compile(t, sigstore.Options{}, strings.Replace(head, "ghcr.io/org/**", "'"+glob+"'", 1)+signedByKey)
		return outcome(plan(t, pod("prod"), ref, p)) == "checks"
	}
	refuses := func(t *testing.T, spec, path string) {
		t.Helper()
		_, err := sigstore.New(sigstore.Options{}).Compile([]byte(fill(t, head+spec)), "test.yaml")
		if err == nil || !strings.Contains(err.Error(), path+": ") {
			t.Errorf("%v; want an error at %s", err, path)
		}
	}
	private := trustRoots{"private": true}
	for name, trap := range map[string]func(*testing.T){
		"one star is Docker Hub's official images": func(t *testing.T) {
			if !names(t, "*", "nginx:1") || names(t, "*", "ghcr.io/nginx:1") || names(t, "*", "docker.io/org/app:1") {
				t.Error("* means another set of images")
			}
		},
		"star slash star is Docker Hub": func(t *testing.T) {
			if !names(t, "*/*", "org/app:1") || names(t, "*/*", "ghcr.io/app:1") {
				t.Error("*/* means another set of images")
			}
		},
		"one star is no slash and two are": func(t *testing.T) {
			if names(t, "ghcr.io/org/*", "ghcr.io/org/team/app:1") || !names(t, "ghcr.io/org/**", "ghcr.io/org/team/app:1") {
				t.Error("a star means another set of images")
			}
		},
		"globs are compared with index.docker.io": func(t *testing.T) {
			if !names(t, "index.docker.io/library/*", "nginx:1") || !names(t, "docker.io/library/*", "nginx:1") || !names(t, "nginx*", "docker.io/library/nginx:1") {
				t.Error("an image of Docker Hub escapes by a spelling")
			}
		},
		"other characters than a glob has": func(t *testing.T) {
			for _, glob := range []string{"ghcr.io/org/{a,b}", "ghcr.io/org/[ab]", "ghcr.io/org/a?", "ghcr.io/org/a+b"} {
				_, err := sigstore.New(sigstore.Options{}).Compile([]byte(fill(t, strings.Replace(head, "ghcr.io/org/**", "'"+glob+"'", 1)+signedByKey)), "test.yaml")
				if err == nil || !strings.Contains(err.Error(), "spec.images[0].glob: ") {
					t.Errorf("%s: %v", glob, err)
				}
			}
		},
		"short names of predicate types": func(t *testing.T) {
			check := only(t, compile(t, sigstore.Options{}, head+"  authorities: [{key: {data: $KEY}, attestations: [{name: a, predicateType: slsaprovenance}]}]\n"))
			if got := check.Attestations[0].PredicateType; got != "https://slsa.dev/provenance/v0.2" {
				t.Error(got)
			}
			refuses(t, "  authorities: [{key: {data: $KEY}, attestations: [{name: a, predicateType: sbom}]}]\n", "spec.authorities[0].attestations[0].predicateType")
		},
		"keys in Secrets of other namespaces": func(t *testing.T) {
			refuses(t, "  authorities: [{key: {secretRef: {name: a, namespace: team}}}]\n", "spec.authorities[0].key.secretRef.namespace")
		},
		"a bundle of several roots": func(t *testing.T) {
			refuses(t, keylessHead+", trustRootRef: a}, ctlog: {trustRootRef: b}, signatureFormat: bundle}]\n", "spec.authorities[0].ctlog.trustRootRef")
			refuses(t, keylessHead+", trustRootRef: a}, rfc3161timestamp: {trustRootRef: b}, signatureFormat: bundle}]\n", "spec.authorities[0].rfc3161timestamp.trustRootRef")
		},
		"a key without ctlog asks no log": func(t *testing.T) {
			if a := authorityOf(t, sigstore.Options{}, "  authorities: [{key: {data: $KEY}}]\n"); !a.Log.Ignore {
				t.Error("a log is asked for")
			}
			if a := authorityOf(t, sigstore.Options{}, "  authorities: [{key: {data: $KEY}, ctlog: {url: 'https://rekor.sigstore.dev'}}]\n"); a.Log.Ignore {
				t.Error("no log is asked for")
			}
		},
		"keyless with trustRootRef and without ctlog still wants a trusted time": func(t *testing.T) {
			for _, format := range []string{"", ", signatureFormat: legacy", ", signatureFormat: bundle"} {
				a := authorityOf(t, sigstore.Options{TrustRoots: private}, keylessHead+", trustRootRef: private}"+format+"}]\n")
				if a.Log.Ignore || len(a.TrustedRoot) == 0 {
					t.Errorf("%q: the log is ignored: %t", format, a.Log.Ignore)
				}
			}
		},
		"expressions match the whole text": func(t *testing.T) {
			a := authorityOf(t, sigstore.Options{}, strings.Replace(keylessHead, "subject: ann@example.com", "subjectRegExp: 'https://github.com/org/'", 1)+"}}]\n")
			if a.Keyless.Identities[0].Match("https://issuer.example", []string{"https://github.com/org/app"}) {
				t.Error("a part of the text matches")
			}
		},
		"keyless without identities": func(t *testing.T) {
			refuses(t, "  authorities: [{keyless: {url: 'https://fulcio.sigstore.dev'}}]\n", "spec.authorities[0].keyless.identities")
		},
		"bundles by keys": func(t *testing.T) {
			a := authorityOf(t, sigstore.Options{}, "  authorities: [{key: {data: $KEY}, signatureFormat: bundle}]\n")
			if len(a.Formats) != 1 || a.Formats[0] != attest.Bundle {
				t.Errorf("%v", a.Formats)
			}
		},
		"more sources than one": func(t *testing.T) {
			refuses(t, "  authorities: [{key: {data: $KEY}, source: [{oci: a.example/b}, {oci: a.example/c}]}]\n", "spec.authorities[0].source")
		},
	} {
		t.Run(name, trap)
	}
}

// trustRoots are TrustRoots by name, with any content.
type trustRoots map[string]bool

func (r trustRoots) TrustedRoot(name string) ([]byte, error) {
	if !r[name] {
		return nil, errors.New("there is none of that name")
	}
	return []byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`), nil
}

// TestUnknownTrustRootAtTheGate: a TrustRoot that is missing, broken or unread makes
// what names it undecided, and never weaker, whatever else would pass.
func TestUnknownTrustRootAtTheGate(t *testing.T) {
	y := newYard(t)
	roots := &trustroot.Roots{}
	text := strings.ReplaceAll(head, "ghcr.io/org", y.Registry.Host()+"/shop") + keylessHead + ", trustRootRef: private}}, {key: {data: " + quoted(t, y.release.PublicPEM()) + "}}]\n"
	p := compile(t, sigstore.Options{TrustRoots: roots}, text)
	g, err := y.Gate(p)
	done(t, err)
	image := y.build("shop")
	byKey(release)(t, y, image)
	ann(true, false)(t, y, image)
	for _, c := range []struct {
		does   func()
		want   gate.Result
		reason string
	}{
		{func() {}, gate.Error, "missing"},
		{func() { roots.Break("private", errors.New("torn")) }, gate.Error, "broken"},
		{func() { roots.Put(parseRoot(t, remoteDocument("private"))) }, gate.Error, "not read yet"},
		{func() { roots.Put(parseRoot(t, keysOf("private", y.private.Sigstore))) }, gate.Allow, "there"},
		{func() { roots.Remove("private") }, gate.Error, "gone, and remembered facts do not help"},
	} {
		c.does()
		if out := g.Decide(t.Context(), request(t, podObject, image.Name)); out.Result != c.want {
			t.Errorf("%s: %s %+v; want %s", c.reason, out.Result, out.Verdicts[0].Reasons, c.want)
		}
	}
}

func remoteDocument(name string) string {
	return rootDocument(name, map[string]any{"remote": map[string]any{"root": encode([]byte(`{"signed":{"_type":"root"}}`)), "mirror": "https://tuf.example"}})
}

// TestCertificateInSecret: ca-cert from a Secret proves as it does from the document.
func TestCertificateInSecret(t *testing.T) {
	y := newYard(t)
	options := func(pem []byte) sigstore.Options {
		return sigstore.Options{
			Secrets:    secrets{"cosign-system/ca": {"chain.pem": pem}},
			TrustRoots: trustedRoots{"private": y.private.Sigstore.TrustedRoot()},
		}
	}
	text := strings.ReplaceAll(head, "ghcr.io/org", y.Registry.Host()+"/shop") +
		"  authorities: [{keyless: {ca-cert: {secretRef: {name: ca}}, insecureIgnoreSCT: true, identities: [{issuer: 'https://issuer.example', subject: ann@example.com}]}, ctlog: {trustRootRef: private}}]\n"
	image := y.build("shop")
	ann(true, false)(t, y, image)
	for _, c := range []struct {
		pem    []byte
		want   gate.Result
		reason string
	}{
		{y.private.Sigstore.CA.ChainPEM(), gate.Allow, "the issuer of the certificate"},
		{y.Sigstore.CA.ChainPEM(), gate.Deny, "another issuer"},
		{[]byte("x"), gate.Error, "no certificate"},
	} {
		g, err := y.Gate(compile(t, options(c.pem), text))
		done(t, err)
		if out := g.Decide(t.Context(), request(t, podObject, image.Name)); out.Result != c.want {
			t.Errorf("%s: %s %+v; want %s", c.reason, out.Result, out.Verdicts[0].Reasons, c.want)
		}
	}
	if _, err := sigstore.New(sigstore.Options{Secrets: secrets{}}).Compile([]byte(strings.Replace(text, "name: ca}", "name: ca, namespace: team}", 1)), "test.yaml"); err == nil || !strings.Contains(err.Error(), "ca-cert.secretRef.namespace: ") {
		t.Errorf("a Secret of another namespace: %v", err)
	}
}

// trustedRoots are TrustRoots by their names.
type trustedRoots map[string][]byte

func (r trustedRoots) TrustedRoot(name string) ([]byte, error) {
	if text, ok := r[name]; ok {
		return text, nil
	}
	return nil, errors.New("there is none of that name")
}
