package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// keyed writes a policy of a namespace that wants a signature by one of the keys, as they
// stand in its field publicKeys: PEM, or the reference of a Secret.
func keyed(s *scene, name string, logged bool, keys ...string) string {
	terms := "rekor: {ignoreTlog: true}, "
	if logged {
		terms = fmt.Sprintf("rekor: {pubkey: %q}, ", s.env.Sigstore.Rekor.PublicPEM())
	}
	entries := make([]string, len(keys))
	for i, key := range keys {
		entries[i] = fmt.Sprintf("{keys: {publicKeys: %q, %sctlog: {ignoreSCT: true}}}", key, terms)
	}
	return fmt.Sprintf(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: %[1]s}
spec:
  rules:
    - name: signed
      match: {any: [{resources: {kinds: [Pod], namespaces: [%[2]s]}}]}
      verifyImages:
        - imageReferences: ["%[3]s/*"]
          failureAction: Enforce
          attestors: [{count: 1, entries: [%[4]s]}]
`, name, s.namespace, s.env.Registry.Host(), strings.Join(entries, ", "))
}

// step is the result of a policy at one moment: by image, the code of the refusal, or nothing
// if it is admitted.
type step struct {
	image gatetest.Image
	code  string
}

// expect evaluates each image, at once: cached facts must not count.
func (s *scene) expect(t *testing.T, when string, steps ...step) {
	t.Helper()
	for _, e := range steps {
		_, err := s.dryRun(t.Context(), pod("asked", e.image.Name))
		switch {
		case e.code != "":
			denied(t, when+": "+e.image.Name, err, e.code)
		case err != nil:
			t.Errorf("%s: %s: %v", when, e.image.Name, err)
		}
	}
}

// awaitAsked waits until the API server asks about pods of the namespace: at the mutating webhook,
// too, which it may learn of after the validating one.
func (s *scene) awaitAsked(t *testing.T) {
	t.Helper()
	bare := s.env.Unsigned("keys/bare", "1.0")
	eventually(t, func(ctx context.Context) error {
		_, err := s.dryRun(ctx, pod("asked", bare.Name))
		if err == nil || !strings.Contains(err.Error(), "[unsigned]") || strings.Contains(err.Error(), "[missing-digest]") {
			return fmt.Errorf("%w: %w", errNotYet, err)
		}
		return nil
	})
}

// signedByBoth is an image with two signatures.
func (s *scene) signedByBoth(t *testing.T, repository string) gatetest.Image {
	t.Helper()
	image := s.env.Unsigned(repository, "1.0")
	for _, signer := range []*verifytest.Signer{s.env.Signer, s.env.Stranger} {
		must(t, s.env.SignLegacy(image, verifytest.Claim{Signer: signer, NoLog: true}, nil))
	}
	return image
}

// TestKeyIsReplaced: one key follows another, with a time in which either counts. The facts
// of the old one are evicted with it.
func TestKeyIsReplaced(t *testing.T) {
	s := guard(t, "keys-replaced", gateway.Configuration{})
	older, newer := string(s.env.Signer.PublicPEM()), string(s.env.Stranger.PublicPEM())
	byOld, err := s.env.Signed("keys/old", "1.0")
	must(t, err)
	byNew, err := s.env.SignedBy(s.env.Stranger, "keys/new", "1.0")
	must(t, err)
	both := s.signedByBoth(t, "keys/both")

	s.put(t, keyed(s, s.namespace, false, older))
	s.awaitAsked(t)
	s.expect(t, "the old key alone", step{byOld, ""}, step{byNew, "wrong-key"}, step{both, ""})
	change := func(keys ...string) {
		s.effect(t, func(ctx context.Context) error { return s.plane.ApplyYAML(ctx, keyed(s, s.namespace, false, keys...)) })
	}
	change(older, newer)
	s.expect(t, "either key", step{byOld, ""}, step{byNew, ""}, step{both, ""})
	change(newer)
	s.expect(t, "the new key alone", step{byOld, "wrong-key"}, step{byNew, ""}, step{both, ""})
}

// fingerprint of a key, as records show it.
func fingerprint(t *testing.T, key []byte) string {
	t.Helper()
	block, _ := pem.Decode(key)
	if block == nil {
		t.Fatal("no key")
	}
	sum := sha256.Sum256(block.Bytes)
	return hex.EncodeToString(sum[:])
}

// TestKeyLeaks: a leaked key is retired in one place, for all policies: signatures before
// that count where a log proves their time, and no others do.
func TestKeyLeaks(t *testing.T) {
	s := unguarded(t, "keys-leaked")
	must(t, s.plane.Namespace(t.Context(), "keys-leaked-unlogged"))
	s.vacate(t)
	lost, leaked := s.env.Signer, time.Now().Add(-time.Hour)
	signed := func(repository string, claim verifytest.Claim) gatetest.Image {
		image := s.env.Unsigned(repository, "1.0")
		claim.Signer = lost
		must(t, s.env.SignLegacy(image, claim, nil))
		return image
	}
	before := signed("leak/before", verifytest.Claim{Time: leaked.Add(-time.Hour)})
	after := signed("leak/after", verifytest.Claim{Time: leaked.Add(30 * time.Minute)})
	unlogged := signed("leak/unlogged", verifytest.Claim{NoLog: true})
	policy := keyed(s, s.namespace, true, string(lost.PublicPEM()))
	timeless := *s
	timeless.namespace = "keys-leaked-unlogged"
	other := keyed(&timeless, timeless.namespace, false, string(lost.PublicPEM()))
	root := write(t, t.TempDir(), "trusted_root.json", string(s.env.Sigstore.TrustedRoot()), 0o600)

	c := gateway.Configuration{}
	c.Trust.TrustedRoot = root // its timestamp authorities give trusted times
	s.gateway = s.start(t, c)
	must(t, s.gateway.Ready(t.Context()))
	timeless.gateway = s.gateway
	s.put(t, policy)
	timeless.put(t, other)
	s.awaitAsked(t)
	timeless.awaitAsked(t)
	s.expect(t, "before the leak", step{before, ""}, step{after, ""})
	timeless.expect(t, "before the leak", step{unlogged, ""})

	c.Trust.RetiredKeys = map[string]string{fingerprint(t, lost.PublicPEM()): leaked.UTC().Format(time.RFC3339)}
	next := s.start(t, c) // as a Deployment does when its configuration changes
	must(t, next.Ready(t.Context()))
	must(t, s.gateway.Terminate())
	<-s.gateway.Done()
	s.gateway, timeless.gateway = next, next
	s.awaitRefused(t, after.Name, "[outside-validity]")
	s.expect(t, "once it is retired", step{before, ""}, step{after, "outside-validity"})
	timeless.expect(t, "once it is retired", step{unlogged, "no-timestamp"})
}

// TestKeyGoesAway: a policy names a Secret, which is changed, and then deleted.
func TestKeyGoesAway(t *testing.T) {
	s := guard(t, "keys-secret", gateway.Configuration{})
	byOld, err := s.env.Signed("secret/old", "1.0")
	must(t, err)
	byNew, err := s.env.SignedBy(s.env.Stranger, "secret/new", "1.0")
	must(t, err)
	secrets := s.client.CoreV1().Secrets(s.namespace)
	kept, err := secrets.Create(t.Context(), &core.Secret{
		ObjectMeta: meta.ObjectMeta{Name: "release-key"}, Data: map[string][]byte{"cosign.pub": s.env.Signer.PublicPEM()},
	}, meta.CreateOptions{})
	must(t, err)
	s.allowSecrets(t)
	s.put(t, keyed(s, s.namespace, false, "k8s://"+s.namespace+"/release-key"))
	s.awaitAsked(t)
	s.expect(t, "the first key", step{byOld, ""}, step{byNew, "wrong-key"})

	must(t, secrets.Delete(t.Context(), kept.Name, meta.DeleteOptions{}))
	s.expect(t, "the Secret is gone, and the key known", step{byOld, ""})
	again := s.start(t, gateway.Configuration{})
	must(t, again.Ready(t.Context()))
	s.gateway.Kill()
	s.gateway = again
	s.endLead(t)
	s.awaitRefused(t, byOld.Name, "could not be verified", "release-key", "not found")
	kept.ResourceVersion, kept.UID = "", ""
	kept.Data["cosign.pub"] = s.env.Stranger.PublicPEM()
	_, err = secrets.Create(t.Context(), kept, meta.CreateOptions{})
	must(t, err)
	s.awaitAdmitted(t, byNew.Name)
	s.expect(t, "another key in its place", step{byOld, "wrong-key"})
}

// allowSecrets lets the gateway read the Secrets of the namespace, which no release does.
func (s *scene) allowSecrets(t *testing.T) {
	t.Helper()
	must(t, s.plane.ApplyYAML(t.Context(), fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: keys, namespace: %[1]s}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: keys, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: keys}
subjects: [{kind: ServiceAccount, name: quaymaster, namespace: quaymaster}]
`, s.namespace)))
}

// TestTrustedRootIsReplaced: the file of a trusted root is another, as of a Sigstore with a
// lost authority, and so is the TrustRoot that a policy names.
func TestTrustedRootIsReplaced(t *testing.T) {
	s := unguarded(t, "keys-root")
	s.vacate(t)
	other, err := verifytest.New(verifytest.Options{Name: "other"})
	must(t, err)
	logged := s.env.Unsigned("root/logged", "1.0")
	must(t, s.env.SignLegacy(logged, verifytest.Claim{Signer: s.env.Signer}, nil))
	folder := t.TempDir()
	c := gateway.Configuration{}
	c.Trust.TrustedRoot = write(t, folder, "trusted_root.json", string(s.env.Sigstore.TrustedRoot()), 0o600)
	s.gateway = s.start(t, c)
	must(t, s.gateway.Ready(t.Context()))
	policy := strings.Replace(keyed(s, s.namespace, false, string(s.env.Signer.PublicPEM())), "rekor: {ignoreTlog: true}, ", "", 1)
	s.put(t, policy)
	s.awaitAsked(t)
	s.expect(t, "the root that has the log", step{logged, ""})
	replace := func(of *verifytest.Sigstore) {
		write(t, folder, "trusted_root.json", string(of.TrustedRoot()), 0o600)
		next := s.start(t, c)
		must(t, next.Ready(t.Context()))
		s.gateway.Kill()
		s.gateway = next
		s.endLead(t)
	}
	replace(other)
	s.awaitRefused(t, logged.Name, "[bad-log-entry]")
	samples, err := s.gateway.Metrics(t.Context())
	must(t, err)
	if gateway.Sum(samples, "quaymaster_trust_expiry_timestamp_seconds", "part", "fulcio") == 0 {
		t.Error("no metric has the end of the root")
	}
	replace(s.env.Sigstore)
	s.awaitAdmitted(t, logged.Name)
}

// TestTrustedRootIsAMonthOld: a gateway starts while the TUF repository has been away for a
// month. It trusts the last version that it read, not the built-in one, and reports its age.
func TestTrustedRootIsAMonthOld(t *testing.T) {
	const month = 30 * 24 * time.Hour
	s := unguarded(t, "keys-month")
	logged := s.env.Unsigned("month/logged", "1.0")
	must(t, s.env.SignLegacy(logged, verifytest.Claim{Signer: s.env.Signer}, nil))
	policy := strings.Replace(keyed(s, s.namespace, false, string(s.env.Signer.PublicPEM())), "rekor: {ignoreTlog: true}, ", "", 1)
	c := gateway.Configuration{}
	c.Trust.Refresh = true // behind a proxy that does not run
	begin := func(folder string) {
		c.Trust.CacheFolder = folder
		s.vacate(t)
		s.gateway = s.start(t, c)
		must(t, s.gateway.Ready(t.Context()))
	}
	kept := t.TempDir()
	write(t, kept, "last_trusted_root.json", fmt.Sprintf(`{"url": "https://tuf-repo-cdn.sigstore.dev", "confirmed": %q, "trustedRoot": %s}`,
		time.Now().Add(-month).UTC().Format(time.RFC3339), s.env.Sigstore.TrustedRoot()), 0o600)
	begin(kept)
	s.put(t, policy)
	s.awaitAsked(t)
	s.expect(t, "a month later", step{logged, ""})
	until(t, awaitTimeout, func(ctx context.Context) error {
		samples, err := s.gateway.Metrics(ctx)
		age, failed := gateway.Sum(samples, "quaymaster_trust_age_seconds"), gateway.Sum(samples, "quaymaster_trust_refresh_failed")
		if err == nil && (failed != 1 || age < month.Seconds()) {
			err = fmt.Errorf("the trust is %v s old, and a refresh failed: %v: %w", age, failed, errNotYet)
		}
		return err
	})
	s.gateway.Kill()
	begin(t.TempDir())
	s.awaitRefused(t, logged.Name, "[bad-log-entry]")
}
