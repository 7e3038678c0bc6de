package gateway

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// clusterImagePolicy requires an authority for images of a repository.
func clusterImagePolicy(name, glob, authority string) string {
	return fmt.Sprintf(`apiVersion: policy.sigstore.dev/v1beta1
kind: ClusterImagePolicy
metadata: {name: %s}
spec: {images: [{glob: %q}], authorities: [%s]}
`, name, glob, authority)
}

func keyData(key *verifytest.Signer) string { return fmt.Sprintf("{data: %q}", key.PublicPEM()) }

// imageValidatingPolicy wants a signature by a key on each image of a registry.
func imageValidatingPolicy(kind, metadata, host string, key *verifytest.Signer) string {
	return fmt.Sprintf(`apiVersion: policies.kyverno.io/v1
kind: %s
metadata: %s
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]
  matchImageReferences: [{glob: "%s/**"}]
  attestors:
  - name: ours
    cosign: {key: {data: %q}, ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true}}
  validations:
  - expression: images.containers.map(image, verifyImageSignatures(image, [attestors.ours])).all(n, n > 0)
    message: an image is not signed by us
`, kind, metadata, host, key.PublicPEM())
}

func namespaceText(name, labels string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {%s}}\n", name, labels)
}

func overrideText(name, effect, match string) string {
	return fmt.Sprintf(`apiVersion: quaymaster.dev/v1alpha1
kind: ImageOverride
metadata: {name: %s}
spec: {effect: %s, reason: a bad day, expires: %q, match: %s}
`, name, effect, time.Now().Add(time.Hour).UTC().Format(time.RFC3339), match)
}

// TestEveryDialect: the gateway enforces policies of each language that it reads,
// and what leaves images out of them.
func TestEveryDialect(t *testing.T) {
	d := newEnv(t)
	host := d.Registry.Host()
	cip := clusterImagePolicy("signed", host+"/signed", "{key: "+keyData(d.key)+"}")
	foreign := clusterImagePolicy("signed", host+"/signed", "{key: "+keyData(d.other)+"}")
	elsewhere := namespaceText("shop", "team: blue")
	optedIn := namespaceText("shop", `policy.sigstore.dev/include: "true"`)
	all := imageValidatingPolicy("ImageValidatingPolicy", "{name: signed}", host, d.key)
	ofShop := imageValidatingPolicy("NamespacedImageValidatingPolicy", "{name: signed, namespace: shop}", host, d.key)
	exception := `apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: legacy, namespace: office}
spec: {policyRefs: [{name: signed, kind: ImageValidatingPolicy}]}
`
	policies := func(settings string) string { return "policies: {folders: [FOLDER/policies], " + settings + "}\n" }
	for _, c := range []struct {
		reason    string
		documents []string
		settings  string
		namespace string
		image     string
		refused   string // why; empty: admitted
	}{
		{"a ClusterImagePolicy is met", []string{cip, elsewhere}, "", "shop", d.signed.Name, ""},
		{"a ClusterImagePolicy is not met", []string{foreign, elsewhere}, "", "shop", d.signed.Name, "ClusterImagePolicy/signed"},
		{"an image that none names", []string{cip, elsewhere}, "", "shop", d.unsigned.Name, ""},
		{"in a namespace that opted in", []string{cip, optedIn}, "", "shop", d.unsigned.Name, "no ClusterImagePolicy names"},
		{"there is none that could name it", []string{optedIn, all}, "", "shop", d.signed.Name, ""},
		{"the setting denies everywhere", []string{cip, elsewhere}, policies("clusterImagePolicies: {noMatch: deny}"), "shop", d.unsigned.Name, "no ClusterImagePolicy names"},
		{"the setting denies while there is none", []string{elsewhere}, policies("clusterImagePolicies: {noMatch: deny}"), "shop", d.unsigned.Name, "no ClusterImagePolicy names"},
		{"the setting allows in a namespace that opted in", []string{cip, optedIn}, policies("clusterImagePolicies: {noMatch: allow}"), "shop", d.unsigned.Name, ""},
		{"only where it is labelled", []string{foreign, elsewhere}, policies("clusterImagePolicies: {optIn: true}"), "shop", d.signed.Name, ""},
		{"and it is labelled", []string{foreign, optedIn}, policies("clusterImagePolicies: {optIn: true}"), "shop", d.signed.Name, "ClusterImagePolicy/signed"},
		{"an ImageValidatingPolicy is met", []string{all}, "", "shop", d.signed.Name, ""},
		{"an ImageValidatingPolicy is not met", []string{all}, "", "shop", d.unsigned.Name, "an image is not signed by us"},
		{"a policy of the namespace", []string{ofShop}, "", "shop", d.unsigned.Name, "an image is not signed by us"},
		{"a policy of another namespace", []string{ofShop}, "", "market", d.unsigned.Name, ""},
		{"an exception", []string{all, exception}, "exceptions: {namespaces: [office]}\n", "shop", d.unsigned.Name, ""},
		{"an exception of a namespace that does not count", []string{all, exception}, "", "shop", d.unsigned.Name, "an image is not signed by us"},
		{"an override allows", []string{all, overrideText("bad-day", "Allow", "{repositories: ["+host+"/unsigned]}")}, "", "shop", d.unsigned.Name, ""},
		{"an override denies", []string{all, overrideText("bad-day", "Deny", "{repositories: ["+host+"/signed]}")}, "", "shop", d.signed.Name, "a bad day"},
		{"an override denies what no policy names", []string{overrideText("bad-day", "Deny", "{repositories: ["+host+"/signed]}"), ofShop}, "", "market", d.signed.Name, "a bad day"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			own := *d
			own.folder = t.TempDir()
			own.write(t, "policies/all.yaml", strings.Join(c.documents, "---\n"))
			r := own.start(t, c.settings)
			for _, endpoint := range []string{"/mutate", "/validate"} {
				image := c.image
				if endpoint == "/validate" {
					image = (map[string]string{d.signed.Name: d.signed.ByDigest(), d.unsigned.Name: d.unsigned.ByDigest()})[c.image]
				}
				got := r.mustAsk(t, endpoint, "Pod", c.namespace, image)
				if got.Allowed != (c.refused == "") || !strings.Contains(got.Status.Message, c.refused) {
					t.Errorf("%s: allowed %t: %s, want %q", endpoint, got.Allowed, got.Status.Message, c.refused)
				}
			}
		})
	}
}

// TestTrustRootsAreFollowed: a changed TrustRoot applies from the next request on.
func TestTrustRootsAreFollowed(t *testing.T) {
	d := newEnv(t)
	logged := d.Build("logged", "v1", "3")
	if err := d.SignLegacy(logged, verifytest.Claim{Signer: d.key}, nil); err != nil { // with an entry in the log
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(d.folder, "policies", "policy.yaml")); err != nil {
		t.Fatal(err)
	}
	d.write(t, "policies/cip.yaml", clusterImagePolicy("logged", d.Registry.Host()+"/logged", "{key: "+keyData(d.key)+", ctlog: {trustRootRef: ours}}"))
	other := verifytest.Must(verifytest.New(verifytest.Options{}))
	root := func(of *verifytest.Sigstore, more string) string {
		text := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
		return fmt.Sprintf(`apiVersion: policy.sigstore.dev/v1alpha1
kind: TrustRoot
metadata: {name: ours}
spec:
  sigstoreKeys:
    certificateAuthorities: [{subject: {organization: o, commonName: c}, uri: "https://fulcio.example", certChain: %s}]
    tLogs: [{baseURL: %q, hashAlgorithm: sha-256, publicKey: %s%s}]
`, text(of.CA.ChainPEM()), of.Rekor.URL(), text(of.Rekor.PublicPEM()), more)
	}
	r := d.start(t, "")
	for _, step := range []struct{ reason, root, refused string }{
		{"the root is unknown", "", "there is no TrustRoot ours"},
		{"the log of the root", root(d.Sigstore, ""), ""},
		{"another log", root(other, ""), "ClusterImagePolicy/logged"},
		{"the log of the root, again", root(d.Sigstore, ""), ""},
		{"a root that is broken", root(d.Sigstore, ", key: 1"), "spec.sigstoreKeys.tLogs[0].key"},
		{"it is mended", root(d.Sigstore, ""), ""},
		{"it is gone", "", "there is no TrustRoot ours"},
	} {
		d.write(t, "policies/root.yaml", step.root)
		testkit.Eventually(t, func() error {
			got, err := r.ask("/validate", "Pod", "shop", logged.ByDigest())
			if err != nil || got.Allowed != (step.refused == "") || !strings.Contains(got.Status.Message, step.refused) {
				return fmt.Errorf("%s: allowed %t, %s, want %q, %w", step.reason, got.Allowed, got.Status.Message, step.refused, err)
			}
			return nil
		})
	}
}
