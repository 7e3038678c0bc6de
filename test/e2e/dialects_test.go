package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestDialects: a policy of each language is enforced, and what leaves images out of
// policies or denies them counts, each with a twin that is otherwise.
func TestDialects(t *testing.T) {
	c := gateway.Configuration{}
	c.Exceptions.Namespaces = []string{"dialects-office"}
	s := guard(t, "dialects", c)
	s.in(t, "dialects-office")

	t.Run("an ImageValidatingPolicy", s.tryImagePolicy)
	t.Run("a NamespacedImageValidatingPolicy", s.tryNamespacedImagePolicy)
	t.Run("a ClusterImagePolicy and its TrustRoot", s.tryClusterImagePolicy)
	t.Run("an exception from an ImageValidatingPolicy", s.tryImageException)
	t.Run("an ImageOverride", s.tryOverride)
}

// quay is a repository with an image that is signed, one that is not and one that a
// stranger signed.
type quay struct {
	glob                  string
	signed, bare, foreign gatetest.Image
}

func (s *scene) quay(t *testing.T, name string) quay {
	t.Helper()
	q := quay{glob: s.env.Registry.Host() + "/" + name + "/*", bare: s.env.Unsigned(name+"/bare", "1.0")}
	var errs [2]error
	q.signed, errs[0] = s.env.Signed(name+"/signed", "1.0")
	q.foreign, errs[1] = s.env.SignedBy(s.env.Stranger, name+"/foreign", "1.0")
	must(t, errs[:]...)
	return q
}

// imagePolicy writes an image policy of Kyverno that wants signatures by the
// environment's signer.
func (s *scene) imagePolicy(kind, metadata, glob string) string {
	return fmt.Sprintf(`
apiVersion: policies.kyverno.io/v1
kind: %s
metadata: {%s}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]
  matchImageReferences: [{glob: %q}]
  attestors:
    - name: ours
      cosign: {key: {data: %q}, ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true}}
  validations:
    - expression: images.containers.map(image, verifyImageSignatures(image, [attestors.ours])).all(n, n > 0)
      message: an image is not signed by the trusted key
`, kind, metadata, glob, s.env.Signer.PublicPEM())
}

func plural(kind string) string {
	name := strings.ToLower(kind)
	if stem, ok := strings.CutSuffix(name, "y"); ok {
		return stem + "ies"
	}
	return name + "s"
}

// awaitRefused returns when the API server asks about a pod of the image and the
// answer is no for the reason that the words say. It may know one of the gateway's two
// configurations before the other: the validating alone refuses for want of a digest.
func (s *scene) awaitRefused(t *testing.T, image string, words ...string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		_, err := s.dryRun(ctx, pod("refused", image))
		for _, word := range append(words, "quaymaster") {
			if err == nil || !strings.Contains(err.Error(), word) {
				return fmt.Errorf("%s: got %w, want a refusal with %q", image, err, word)
			}
		}
		return nil
	})
}

func (s *scene) awaitAdmitted(t *testing.T, image string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		_, err := s.dryRun(ctx, pod("admitted", image))
		return err
	})
}

// refuseBroken checks that the API server refuses a document with the field's path.
func (s *scene) refuseBroken(t *testing.T, text, path string) {
	t.Helper()
	if err := s.plane.ApplyYAML(t.Context(), text); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "is broken") {
		t.Errorf("a broken document: %v, want that %s is refused", err, path)
	}
}

func (s *scene) tryImagePolicy(t *testing.T) {
	q := s.quay(t, "ivpol")
	text := s.imagePolicy("ImageValidatingPolicy", "name: dialects", q.glob)
	s.put(t, text)
	s.awaitRefused(t, q.bare.Name, "an image is not signed by the trusted key")
	s.awaitRefused(t, q.foreign.Name, "an image is not signed by the trusted key")
	got, err := s.create(t, pod("ivpol", q.signed.Name))
	must(t, err)
	if want := []string{env.Pinned(q.signed)}; !slices.Equal(images(got), want) {
		t.Errorf("images %v, want %v", images(got), want)
	}
	_, err = s.create(t, pod("ivpol-two", q.signed.Name, q.bare.Name))
	if err == nil || !strings.Contains(err.Error(), "an image is not signed by the trusted key") {
		t.Errorf("an unsigned image beside a signed one: %v", err)
	}
	s.refuseBroken(t, strings.Replace(text, "validations:", "validationz:", 1), "spec.validationz")
	s.refuseBroken(t, strings.Replace(text, "all(n, n > 0)", "all(n, n > )", 1), "spec.validations[0].expression")
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	policies := client.Resource(schema.GroupVersionResource{Group: "policies.kyverno.io", Version: "v1", Resource: "imagevalidatingpolicies"})
	eventually(t, func(ctx context.Context) error {
		got, err := policies.Get(ctx, "dialects", meta.GetOptions{})
		if err != nil {
			return err
		}
		if ready, _, _ := unstructured.NestedBool(got.Object, "status", "conditionStatus", "ready"); !ready {
			return fmt.Errorf("the status is %v", got.Object["status"])
		}
		return nil
	})
}

func (s *scene) tryNamespacedImagePolicy(t *testing.T) {
	q := s.quay(t, "nivpol")
	other := s.in(t, "dialects-other")
	s.put(t, s.imagePolicy("NamespacedImageValidatingPolicy", "name: dialects, namespace: "+s.namespace, q.glob))
	s.awaitRefused(t, q.bare.Name, "an image is not signed by the trusted key")
	s.awaitAdmitted(t, q.signed.Name)
	if _, err := other.dryRun(t.Context(), pod("bare", q.bare.Name)); err != nil {
		t.Errorf("a pod of another namespace: %v", err)
	}
	s.refuseBroken(t, s.imagePolicy("NamespacedImageValidatingPolicy", "name: broken, namespace: "+s.namespace, "${"), "spec.matchImageReferences[0].glob")
}

// trustRoot writes the TrustRoot dialects of a Sigstore instance.
func trustRoot(of *verifytest.Sigstore, more string) string {
	text := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
	return fmt.Sprintf(`
apiVersion: policy.sigstore.dev/v1alpha1
kind: TrustRoot
metadata: {name: dialects}
spec:
  sigstoreKeys:
    certificateAuthorities: [{subject: {organization: o, commonName: c}, uri: "https://fulcio.example", certChain: %s}]
    tLogs: [{baseURL: %q, hashAlgorithm: sha-256, publicKey: %s%s}]
`, text(of.CA.ChainPEM()), of.Rekor.URL(), text(of.Rekor.PublicPEM()), more)
}

func (s *scene) tryClusterImagePolicy(t *testing.T) {
	q := s.quay(t, "cip")
	logged := s.env.Unsigned("cip/logged", "1.0")
	must(t, s.env.SignLegacy(logged, verifytest.Claim{Signer: s.env.Signer}, nil)) // with an entry in the log
	other, err := verifytest.New(verifytest.Options{})
	must(t, err)
	text := fmt.Sprintf(`
apiVersion: policy.sigstore.dev/v1beta1
kind: ClusterImagePolicy
metadata: {name: dialects}
spec:
  images: [{glob: %q}]
  authorities: [{name: trusted, key: {data: %q}, ctlog: {trustRootRef: dialects}}]
`, q.glob, s.env.Signer.PublicPEM())
	s.put(t, text)
	s.awaitRefused(t, logged.Name, "could not be verified", "there is no TrustRoot dialects")
	s.put(t, trustRoot(s.env.Sigstore, ""))
	got, err := s.create(t, pod("cip", logged.Name))
	must(t, err)
	if want := []string{env.Pinned(logged)}; !slices.Equal(images(got), want) {
		t.Errorf("images %v, want %v", images(got), want)
	}
	s.awaitRefused(t, q.bare.Name, "[unsigned]")
	s.awaitRefused(t, q.foreign.Name, "[wrong-key]")
	unnamed := s.env.Unsigned("unnamed/app", "1.0")
	s.awaitAdmitted(t, unnamed.Name)
	s.in(t, "dialects-opted-in", "policy.sigstore.dev/include", "true").awaitRefused(t, unnamed.Name, "no ClusterImagePolicy names")

	must(t, s.plane.ApplyYAML(t.Context(), trustRoot(other, "")))
	s.awaitRefused(t, logged.Name, "ClusterImagePolicy/dialects")
	must(t, s.plane.ApplyYAML(t.Context(), trustRoot(s.env.Sigstore, "")))
	s.awaitAdmitted(t, logged.Name)
	s.refuseBroken(t, trustRoot(s.env.Sigstore, ", key: 1"), "spec.sigstoreKeys.tLogs[0].key")
	s.refuseBroken(t, strings.Replace(text, "images:", "image:", 1), "spec.image")
}

func (s *scene) tryImageException(t *testing.T) {
	q := s.quay(t, "polex")
	s.put(t, s.imagePolicy("ImageValidatingPolicy", "name: excepted", q.glob))
	s.awaitRefused(t, q.bare.Name, "an image is not signed by the trusted key")
	exception := func(namespace, field string) string {
		return fmt.Sprintf(`
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: dialects, namespace: %s}
spec: {%s: [{name: excepted, kind: ImageValidatingPolicy}]}
`, namespace, field)
	}
	s.put(t, exception(s.namespace, "policyRefs"))
	if _, err := s.dryRun(t.Context(), pod("bare", q.bare.Name)); err == nil {
		t.Error("an exception of a namespace that does not count admits")
	}
	drop := s.put(t, exception("dialects-office", "policyRefs"))
	_, err := s.dryRun(t.Context(), pod("bare", q.bare.Name))
	must(t, err)
	drop()
	if _, err := s.dryRun(t.Context(), pod("bare", q.bare.Name)); err == nil {
		t.Error("an exception that is gone admits")
	}
	s.refuseBroken(t, exception("dialects-office", "policyRef"), "spec.policyRef")
}

func (s *scene) tryOverride(t *testing.T) {
	q := s.quay(t, "override")
	s.put(t, s.imagePolicy("ImageValidatingPolicy", "name: overridden", q.glob))
	s.awaitRefused(t, q.bare.Name, "an image is not signed by the trusted key")
	override := func(name, effect, match string) string {
		return fmt.Sprintf(`
apiVersion: quaymaster.dev/v1alpha1
kind: ImageOverride
metadata: {name: %s}
spec: {effect: %s, reason: a bad day, expires: %q, match: {%s}}
`, name, effect, time.Now().Add(time.Hour).UTC().Format(time.RFC3339), match)
	}
	drop := s.put(t, override("dialects-allow", "Allow", "digests: ['"+q.bare.Manifest.Digest+"']"))
	_, err := s.create(t, pod("overridden", q.bare.Name))
	must(t, err)
	if _, err := s.dryRun(t.Context(), pod("foreign", q.foreign.Name)); err == nil {
		t.Error("an override for one image admits another")
	}
	s.put(t, override("dialects-deny", "Deny", "digests: ['"+q.bare.Manifest.Digest+"']"))
	_, err = s.dryRun(t.Context(), pod("denied", q.bare.Name))
	denied(t, "an image that is allowed and denied", err, "override-denied")
	drop()

	unnamed := s.env.Unsigned("nobody/app", "1.0")
	s.awaitAdmitted(t, unnamed.Name)
	drop = s.put(t, override("dialects-repository", "Deny", "repositories: ["+s.env.Registry.Host()+"/nobody/app]"))
	s.awaitRefused(t, unnamed.Name, "[override-denied]", "a bad day")
	drop()
	_, err = s.dryRun(t.Context(), pod("unnamed", unnamed.Name))
	must(t, err)
	broken := override("dialects-broken", "Deny", "digests: ['"+q.bare.Manifest.Digest+"']")
	s.refuseBroken(t, strings.Replace(broken, "reason:", "why: x, reason:", 1), "spec.why")
}
