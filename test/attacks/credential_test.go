package attacks

import (
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// The credential that registries fish for.
const user, password = "puller", "s3cret-of-the-shop"

// keychain has a credential for one host.
type keychain string

// Resolve implements authn.Keychain.
func (k keychain) Resolve(of authn.Resource) (authn.Authenticator, error) {
	if of.RegistryStr() != string(k) {
		return authn.Anonymous, nil
	}
	return &authn.Basic{Username: user, Password: password}, nil
}

// poison is a keychain with a credential that makes a registry fail.
type poison string

// Resolve implements authn.Keychain.
func (k poison) Resolve(of authn.Resource) (authn.Authenticator, error) {
	if of.RegistryStr() != string(k) {
		return authn.Anonymous, nil
	}
	return &authn.Basic{Username: "poison", Password: "poison"}, nil
}

// failsFor answers one user with an error of the registry's own, and all others honestly.
func failsFor(name string, status int) registrytest.Action {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if given, _, _ := q.BasicAuth(); given == name {
				w.WriteHeader(status)
				return
			}
			next.ServeHTTP(w, q)
		})
	}
}

// poisoned plays a pull secret with a first entry that makes the registry fail, under a policy that
// admits images while registries are down.
func poisoned(status int) func(*scene) {
	return func(s *scene) {
		image := private(s, basic(""))
		bare := s.built("bare")
		host := s.Registry.Host()
		s.config = registry.Config{Credentials: []registry.Source{
			{Name: "the pod's pull secret", Keychain: poison(host), Foreign: true}, {Name: "the pod's second", Keychain: keychain(host), Foreign: true},
		}}
		s.policies(strings.Replace(signedBy(ofKey), "spec:\n", "spec:\n  failurePolicy: Ignore\n", 1))
		s.misbehaves(registrytest.Fault{Do: failsFor("poison", status)})
		s.runs(image.Name, image)
		s.again(short)
		s.refused(bare.Name, policy.Unsigned)
		s.config.Credentials, s.registries = s.config.Credentials[:1], nil
		s.again(short)
		s.refused(bare.Name, policy.AccessRefused)
	}
}

// private is a scene of a registry that wants a credential.
func private(s *scene, auth registrytest.Auth) gatetest.Image {
	auth.Username, auth.Password = user, password
	s.hostile(registrytest.Options{Auth: auth})
	s.registries = nil
	s.config = registry.Config{Credentials: []registry.Source{{Name: "the test", Keychain: keychain(s.Registry.Host())}}}
	image := s.signed("private")
	s.policies(signedBy(ofKey))
	return image
}

// fished plays a registry that wants the credential to go elsewhere; the control is the
// same registry without it.
func fished(honest, hostile func(other string) registrytest.Auth, fault func(other string) *registrytest.Fault) func(*scene) {
	return func(s *scene) {
		other := s.elsewhere(registrytest.Options{Address: "127.0.0.2:0", Auth: registrytest.Auth{Scheme: registrytest.Basic, Username: "x", Password: "y"}})
		image := private(s, honest(other.URL()))
		s.runs(image.Name, image)
		s.again(short)
		image = private(s, hostile(other.URL()))
		if fault != nil {
			s.misbehaves(*fault(other.URL()))
		}
		s.refused(image.Name)
		if other.SawAuthorization() || other.Saw(password) {
			s.t.Errorf("a credential reached another host: %v", other.Requests())
		}
	}
}

func basic(string) registrytest.Auth { return registrytest.Auth{Scheme: registrytest.Basic} }
func token(string) registrytest.Auth { return registrytest.Auth{Scheme: registrytest.Token} }

// realm is at a URL, or at the other host.
func realm(url string) func(string) registrytest.Auth {
	return func(other string) registrytest.Auth {
		if url == "" {
			url = other + "/token"
		}
		return registrytest.Auth{Scheme: registrytest.Token, Realm: url}
	}
}

// sent elsewhere redirects, or continues a list.
func sent(kind registrytest.Kind, do func(url string) registrytest.Action, path string) func(string) *registrytest.Fault {
	return func(other string) *registrytest.Fault {
		if path == "" {
			other += "/v2/shop/private/manifests/1"
		} else {
			other = path
		}
		return &registrytest.Fault{Kind: kind, Do: do(other)}
	}
}

func credentialAttacks() []attack {
	const (
		realms    = "GHSA-xf85-363p-868w, CVE-2026-48978; GHSA-28r5-37g7-p6mp; GHSA-3p65-76g6-3w7r, CVE-2026-33540"
		redirects = "GHSA-vh4v-2xq2-g5cg; go-containerregistry 2337"
		metadata  = "http://169.254.169.254/latest/meta-data"
	)
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, remembering(), play}
	}
	return []attack{
		row("pull-secret-that-makes-the-registry-fail", "The first entry of a pod's pull secret makes the registry answer with an error of its own, and the policy admits images while registries are down. The next entry is tried, and without one the failure is the credential's: the unsigned image is denied.", "a policy with failurePolicy Ignore", poisoned(http.StatusInternalServerError)),
		row("pull-secret-with-headers-too-large", "The same, with an entry that the registry's front refuses for its size.", "a policy with failurePolicy Ignore", poisoned(http.StatusRequestHeaderFieldsTooLarge)),
		row("realm-on-another-host", "The challenge names a token service on a host that has nothing to do with the registry. The credential does not go there, and the image is denied.", realms, fished(token, realm(""), nil)),
		row("realm-at-the-metadata-service", "The challenge names the cloud's metadata service. No request is sent, and the image is denied.", realms, fished(token, realm(metadata), nil)),
		row("realm-that-is-no-address", "The challenge names something that is no URL. The image is denied, and nothing ends.", realms, fished(token, realm("::not a realm"), nil)),
		row("redirect-with-a-credential", "Manifests are redirected to another host, which challenges. The credential does not follow, and the image is denied.", redirects, fished(basic, basic, sent(registrytest.Manifest, registrytest.RedirectTo, ""))),
		row("blob-redirect-with-a-credential", "Blobs are redirected to another host, which challenges. The credential does not follow.", redirects, fished(basic, basic, sent(registrytest.Blob, registrytest.RedirectTo, ""))),
		row("token-after-a-redirect", "The same, with a token in place of a password. The token does not follow.", redirects, fished(token, token, sent(registrytest.Manifest, registrytest.RedirectTo, ""))),
		row("redirect-to-the-metadata-service", "Manifests are redirected to the cloud's metadata service. No request is sent, and the image is denied.", "SSRF by a redirect", fished(basic, basic, sent(registrytest.Manifest, registrytest.RedirectTo, metadata))),
		{"next-page-on-another-host", "The list of referrers continues on another host. The credential does not go there, and what that host lists does not count.", "cross-host links; go-containerregistry 2332", remembering(), func(s *scene) {
			other := s.elsewhere(registrytest.Options{Address: "127.0.0.2:0"})
			image := private(s, basic(""))
			bare := s.built("bare")
			s.runs(image.Name, image)
			s.again(short)
			s.misbehaves(registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.LinkTo(other.URL() + "/v2/shop/bare/referrers/" + bare.Manifest.Digest)})
			s.refused(bare.Name)
			if other.SawAuthorization() {
				s.t.Error("a credential reached another host")
			}
		}},
	}
}
