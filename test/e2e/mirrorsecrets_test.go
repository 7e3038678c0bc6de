package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestMirrorPullSecrets: a redirected pod gets the pull secret of the target, next to its
// own, if it exists.
func TestMirrorPullSecrets(t *testing.T) {
	m := &mirrored{scene: unguarded(t, "pull-secrets")}
	m.far = openEnv(t, registrytest.Options{})
	m.near = openEnv(t, registrytest.Options{Auth: registrytest.Auth{Scheme: registrytest.Basic, Username: captain, Password: password}})
	m.endLead(t)
	c := gateway.Configuration{}
	c.PlainHTTP(m.near.Registry.Host(), m.far.Registry.Host())
	c.Ages.Secret = "1s"
	m.gateway = m.start(t, c)
	must(t, m.gateway.Ready(t.Context()))
	lacking := m.within(t, "pull-secrets-lacking")
	must(t, m.pullSecret(t, m.namespace, "mirror-pull", m.near.Registry.Host(), password),
		m.pullSecret(t, m.namespace, "own", "elsewhere.example", password), m.pullSecret(t, m.namespace, "spare", "elsewhere.example", password))
	m.enforceMirrored(t, env.Policy{Name: "pull-secrets"})
	m.redirectBy(t, document(t, "pull-secrets",
		m.entry("", map[string]any{"pullSecrets": []any{"mirror-pull"}}),
		m.entry("open", map[string]any{"pullSecrets": []any{"mirror-pull", "spare"}, "targets": []any{m.at(m.far)}}),
	))
	m.isRedirected(t, m.near)
	image, open := m.copied(t, "shop/web", "1.0", m.near), m.copied(t, "open/web", "1.0", m.far)
	bare := m.env.Unsigned("shop/bare", "1.0")
	m.copyTo(t, bare, "shop/bare", "1.0", m.near)

	for i, row := range []struct {
		reason  string
		in      *mirrored
		image   string
		has     []string // the pod
		becomes string
		secrets []string
		warns   string
	}{
		{"a pod that has none", m, image.Name, nil, exact(m.near, image), []string{"mirror-pull"}, ""},
		{"a pod that has another", m, image.Name, []string{"own"}, exact(m.near, image), []string{"own", "mirror-pull"}, ""},
		{"a pod that has it", m, image.Name, []string{"mirror-pull", "own"}, exact(m.near, image), []string{"mirror-pull", "own"}, ""},
		{"two, of which it has one", m, open.Name, []string{"spare"}, exact(m.far, open), []string{"spare", "mirror-pull"}, ""},
		{"a namespace without it", lacking, open.Name, []string{"own"}, exact(m.far, open), []string{"own"}, "no-pull-secret"},
		{"a target that cannot be looked at without it", lacking, image.Name, nil, env.Pinned(image), nil, "it stays at"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			p := pod(fmt.Sprint("pulled-", i), row.image)
			for _, name := range row.has {
				p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, core.LocalObjectReference{Name: name})
			}
			heard, said := row.in.heard(t)
			got, err := heard.create(t, p)
			must(t, err)
			var secrets []string
			for _, s := range got.Spec.ImagePullSecrets {
				secrets = append(secrets, s.Name)
			}
			if images(got)[0] != row.becomes || !slices.Equal(secrets, row.secrets) {
				t.Errorf("images %v with %v, want %s with %v", images(got), secrets, row.becomes, row.secrets)
			}
			if warnings := said(); (warnings == "") != (row.warns == "") || !strings.Contains(warnings, row.warns) {
				t.Errorf("the warning is %q, want %q", warnings, row.warns)
			}
			again := got.DeepCopy()
			again.UID, again.ResourceVersion, again.ManagedFields, again.Name = "", "", nil, got.Name+"-again"
			twice, err := row.in.dryRun(t.Context(), again)
			must(t, err)
			if !equality.Semantic.DeepEqual(twice.Spec, got.Spec) || twice.Annotations[written] != got.Annotations[written] {
				t.Errorf("admitted again, %v became %v", got.Spec, twice.Spec)
			}
		})
	}
	t.Run("a pod that exists", func(t *testing.T) { lacking.tryExisting(t, open) })
	_, err := m.create(t, pod("bare", bare.Name))
	denied(t, "an unsigned image that the mirror has", err, "unsigned")
	must(t, m.pullSecret(t, lacking.namespace, "mirror-pull", m.near.Registry.Host(), password))
	eventually(t, func(ctx context.Context) error { // once it is there
		got, err := lacking.dryRun(ctx, pod("later", image.Name))
		if err == nil && (images(got)[0] != exact(m.near, image) || len(got.Spec.ImagePullSecrets) != 1) {
			err = errNotYet
		}
		return err
	})
	for _, secret := range []string{password, base64.StdEncoding.EncodeToString([]byte(captain + ":" + password))} {
		if strings.Contains(m.gateway.Log(), secret) {
			t.Errorf("the log holds the password %s", secret)
		}
	}
	if m.env.Registry.SawAuthorization() || m.far.Registry.SawAuthorization() {
		t.Error("the credential went to another registry")
	}
}

// tryExisting: the pull secrets of an existing pod cannot be changed, which is a warning.
func (m *mirrored) tryExisting(t *testing.T, open gatetest.Image) {
	must(t, m.pullSecret(t, m.namespace, "spare", "elsewhere.example", password))
	got, err := m.create(t, pod("existing", "elsewhere.example/tool@sha256:"+strings.Repeat("a", 64)))
	must(t, err)
	heard, said := m.heard(t)
	with := got.DeepCopy()
	with.Spec.EphemeralContainers = []core.EphemeralContainer{{EphemeralContainerCommon: core.EphemeralContainerCommon{Name: "shell", Image: open.Name}}}
	after, err := heard.client.CoreV1().Pods(m.namespace).UpdateEphemeralContainers(t.Context(), "existing", with, meta.UpdateOptions{})
	must(t, err)
	if image := after.Spec.EphemeralContainers[0].Image; image != exact(m.far, open) || len(after.Spec.ImagePullSecrets) != 0 {
		t.Errorf("the ephemeral container has %s with %v, want %s without", image, after.Spec.ImagePullSecrets, exact(m.far, open))
	}
	if warnings := said(); !strings.Contains(warnings, "the pull secrets of a pod that exists cannot be changed") {
		t.Errorf("the warning is %q", warnings)
	}
}
