package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// captain and password are the credential of the closed registries.
const captain, password = "captain", "open-sesame"

// TestCredentials: a private image is verified with the pull credentials of its pod, and a
// refusal names them.
func TestCredentials(t *testing.T) {
	s := unguarded(t, "credentials")
	closed := registrytest.Options{Auth: registrytest.Auth{Scheme: registrytest.Basic, Username: captain, Password: password}}
	private, gatewayed := openEnv(t, closed), openEnv(t, closed)
	private.Signer, gatewayed.Signer = s.env.Signer, s.env.Signer
	must(t, s.pullSecret(t, "quaymaster", "gateway-pull", gatewayed.Registry.Host(), password))
	t.Cleanup(func() {
		_ = s.client.CoreV1().Secrets("quaymaster").Delete(context.WithoutCancel(t.Context()), "gateway-pull", meta.DeleteOptions{})
	})

	c := gateway.Configuration{}
	c.PlainHTTP(private.Registry.Host(), gatewayed.Registry.Host())
	c.Registries.PullSecrets = []string{"quaymaster/gateway-pull"}
	s.endLead(t)
	s.gateway = s.start(t, c)
	must(t, s.gateway.Ready(t.Context()))
	other := s.in(t, "credentials-other")
	s.enforce(t, env.Policy{Name: "credentials", Namespaces: []string{s.namespace, other.namespace}, Images: []string{
		s.env.Registry.Host() + "/*", private.Registry.Host() + "/*", gatewayed.Registry.Host() + "/*",
	}})

	host := private.Registry.Host()
	must(t, s.pullSecret(t, s.namespace, "right", host, password), s.pullSecret(t, s.namespace, "wrong", host, "guess"))
	must(t, s.pullSecret(t, other.namespace, "wrong", host, "guess"))
	_, err := s.client.CoreV1().ServiceAccounts(s.namespace).Create(t.Context(), &core.ServiceAccount{
		ObjectMeta: meta.ObjectMeta{Name: "puller"}, ImagePullSecrets: []core.LocalObjectReference{{Name: "right"}},
	}, meta.CreateOptions{})
	must(t, err)
	signed, err := private.Signed("shop/web", "1.0")
	must(t, err)
	bare := private.Unsigned("shop/bare", "1.0")
	byGateway, err := gatewayed.Signed("shop/web", "1.0")
	must(t, err)

	const failure = "could not be verified"
	for i, row := range []struct {
		reason        string
		in            *scene
		image, secret string // of the pod
		account       string
		pinned        string   // the image that it becomes, or
		says          []string // why it does not
	}{
		{"without credentials, first", s, signed.Name, "", "", "", []string{failure, "anonymously"}},
		{"the pod's own, and it is wrong", s, signed.Name, "wrong", "", "", []string{failure, `the credential from imagePullSecret "wrong" does not allow it`}},
		{"the pod's own", s, signed.Name, "right", "", env.Pinned(signed), nil},
		{"the pod's own, for an unsigned image", s, bare.Name, "right", "", "", []string{"[unsigned]"}},
		{"its service account's", s, signed.Name, "", "puller", env.Pinned(signed), nil},
		{"without credentials, after it was verified", s, signed.Name, "", "", "", []string{failure, "anonymously"}},
		{"a secret that there is not", s, signed.Name, "missing", "", "", []string{failure, `imagePullSecret "missing" does not exist`}},
		{"a wrong one of another namespace", other, signed.Name, "wrong", "", "", []string{failure, `the credential from imagePullSecret "wrong" does not allow it`}},
		{"a right one that another namespace has", other, signed.Name, "right", "", "", []string{failure, `imagePullSecret "right" does not exist`}},
		{"the gateway's", other, byGateway.Name, "", "", env.Pinned(byGateway), nil},
	} {
		t.Run(row.reason, func(t *testing.T) {
			p := pod(fmt.Sprintf("row-%d", i), row.image)
			p.Spec.ServiceAccountName = row.account
			if row.secret != "" {
				p.Spec.ImagePullSecrets = []core.LocalObjectReference{{Name: row.secret}}
			}
			got, err := row.in.create(t, p)
			if row.pinned != "" {
				must(t, err)
				if !slices.Equal(images(got), []string{row.pinned}) {
					t.Errorf("it became %v, want %s", images(got), row.pinned)
				}
				return
			}
			for _, word := range row.says {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("the refusal does not say %q: %v", word, err)
				}
			}
			if err != nil && strings.Contains(err.Error(), "unsigned") != slices.Contains(row.says, "[unsigned]") {
				t.Errorf("the refusal takes one for the other: %v", err)
			}
		})
	}
	for _, secret := range []string{password, "guess", base64.StdEncoding.EncodeToString([]byte(captain + ":" + password))} {
		if strings.Contains(s.gateway.Log(), secret) {
			t.Errorf("the log holds the password %s", secret)
		}
	}
	if !private.Registry.SawAuthorization() || s.env.Registry.SawAuthorization() {
		t.Error("the credential went to another registry, or to none")
	}
}

// pullSecret makes a secret with a credential for a registry.
func (s *scene) pullSecret(t *testing.T, namespace, name, host, password string) error {
	t.Helper()
	content := fmt.Sprintf(`{"auths":{%q:{"username":%q,"password":%q}}}`, host, captain, password)
	_, err := s.client.CoreV1().Secrets(namespace).Create(t.Context(), &core.Secret{
		ObjectMeta: meta.ObjectMeta{Name: name}, Type: core.SecretTypeDockerConfigJson, Data: map[string][]byte{core.DockerConfigJsonKey: []byte(content)},
	}, meta.CreateOptions{})
	return err
}
