package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	imagepolicy "k8s.io/api/imagepolicy/v1alpha1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// caller of image reviews, by its certificate, and where they are answered.
const imageReviewer, imageReviewPath = "kube-apiserver-images", "/imagereview"

// imagePlugin configures the API server's ImagePolicyWebhook: the shortest cache of answers,
// and a denial without an answer.
const imagePlugin = `
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
  - name: ImagePolicyWebhook
    configuration:
      imagePolicy: {kubeConfigFile: %q, allowTTL: 1, denyTTL: 1, retryBackoff: 100, defaultAllow: false}
`

// pinboard is a scene with an API server that calls the gateway by ImagePolicyWebhook, and by
// nothing else.
type pinboard struct {
	*scene
	authority *controlplane.Authority // of both sides
	near      *env.Env                // a mirror
	config    gateway.Configuration
}

// pin starts a control plane of its own, for the plugin asks about every pod, and a
// gateway that answers it.
func pin(t *testing.T) *pinboard {
	t.Helper()
	plane(t) // skips in short runs, and builds the programs
	authority, err := controlplane.NewAuthority("images")
	must(t, err)
	b := &pinboard{scene: &scene{env: openEnv(t, registrytest.Options{}), namespace: "images"}, authority: authority}
	folder := t.TempDir()
	b.near = openEnv(t, registrytest.Options{})
	write := func(name string, content []byte) string {
		file := filepath.Join(folder, name)
		must(t, os.WriteFile(file, content, 0o600))
		return file
	}
	serving, err := authority.Server()
	must(t, err)
	client, err := authority.Client(imageReviewer)
	must(t, err)
	c := &b.config
	c.PlainHTTP(b.near.Registry.Host())
	c.Listen.Address, err = process.FreeAddress(t.Context())
	must(t, err)
	c.Listen.ClientCA, c.Listen.ClientNames, c.Listen.ClientEndpoints = write("ca.crt", authority.PEM()), []string{imageReviewer}, []string{imageReviewPath}
	c.Listen.DrainDelay = "100ms"
	c.Certificate.CertificateFile, c.Certificate.KeyFile = write("tls.crt", serving.Certificate), write("tls.key", serving.Key)
	c.Webhooks.Disabled, c.Endpoints.ImageReview = true, true
	c.Webhooks.URL = "https://" + c.Listen.Address // the certificate is for no Service

	kubeconfig := filepath.Join(folder, "images.kubeconfig")
	must(t, controlplane.WriteKubeconfig(kubeconfig, &rest.Config{
		Host:            "https://" + c.Listen.Address + imageReviewPath,
		TLSClientConfig: rest.TLSClientConfig{CAData: authority.PEM(), CertData: client.Certificate, KeyData: client.Key},
	}))
	own := filepath.Join(folder, "plane")
	must(t, os.Mkdir(own, 0o700))
	b.plane, err = controlplane.Start(t.Context(), controlplane.Options{
		Folder: own, Admission: fmt.Appendf(nil, imagePlugin, kubeconfig), Flags: []string{"--enable-admission-plugins=ImagePolicyWebhook"},
	})
	must(t, err)
	t.Cleanup(b.plane.Close)
	must(t, b.plane.Namespace(t.Context(), b.namespace), b.plane.Namespace(t.Context(), "images-free"))
	b.client = clientset(t, b.plane.Admin())
	b.identity, err = b.plane.Install(t.Context())
	must(t, err)
	b.gateway = b.start(t, b.config)
	must(t, b.gateway.Ready(t.Context()))
	b.config = b.gateway.Configuration
	return b
}

// TestImagePolicyWebhook: a real API server asks by the plugin of that name, which
// can change nothing.
func TestImagePolicyWebhook(t *testing.T) {
	b := pin(t)
	text, err := b.env.YAML(env.Policy{Name: "images", Namespaces: []string{b.namespace}})
	must(t, err)
	b.put(t, text)
	signed, err := b.env.Signed("shop/web", "1.0")
	must(t, err)
	foreign, err := b.env.SignedBy(b.env.Stranger, "shop/foreign", "1.0")
	must(t, err)
	bare := b.env.Unsigned("shop/bare", "1.0")

	for i, row := range []struct {
		reason string
		images []string
		says   []string // none: admitted
	}{
		{"signed, by tag and digest", []string{env.Pinned(signed)}, nil},
		{"signed, by digest", []string{signed.ByDigest()}, nil},
		{"signed, by tag", []string{signed.Name}, []string{"[missing-digest]", "use " + env.Pinned(signed)}},
		{"unsigned", []string{bare.ByDigest()}, []string{"[unsigned]", bare.ByDigest(), "ClusterPolicy/images, rule signed"}},
		{"by another key", []string{foreign.ByDigest()}, []string{"[wrong-key]"}},
		{"an unsigned second one", []string{signed.ByDigest(), bare.ByDigest()}, []string{"1 of 2 images denied", "[unsigned]"}},
	} {
		got, err := b.create(t, pod(fmt.Sprint("pod-", i), row.images...))
		b.expect(t, row.reason, err, row.says)
		if err == nil && (images(got)[0] != row.images[0] || got.Annotations[written] != "") {
			t.Errorf("%s: it became %v", row.reason, images(got))
		}
	}
	init := pod("init", signed.ByDigest())
	init.Spec.InitContainers = []core.Container{{Name: "init", Image: bare.ByDigest()}}
	_, err = b.create(t, init)
	b.expect(t, "an unsigned init container", err, []string{"[unsigned]"})

	t.Run("an ephemeral container", func(t *testing.T) { b.tryDebugging(t, signed, bare) })
	t.Run("another namespace", func(t *testing.T) {
		free := *b.scene
		free.namespace = "images-free"
		if _, err := free.dryRun(t.Context(), pod("bare", bare.Name)); err != nil {
			t.Errorf("where no policy matches: %v", err)
		}
	})
	t.Run("a mirror that is to be used", b.tryMirror)
	t.Run("permissions", func(t *testing.T) { b.tryReviewers(t, signed.ByDigest(), bare.ByDigest()) })
	t.Run("the registry is away", func(t *testing.T) {
		unseen, err := b.env.Signed("shop/unseen", "1.0")
		must(t, err)
		b.env.Registry.SetFaults(registrytest.Fault{Do: breakOff})
		defer b.env.Registry.SetFaults()
		_, err = b.dryRun(t.Context(), pod("unseen", unseen.ByDigest()))
		b.expect(t, "an image that could not be verified", err, []string{"could not be verified"})
		if err != nil && strings.Contains(err.Error(), "[unsigned]") {
			t.Errorf("it takes one for the other: %v", err)
		}
	})
	t.Run("the gateway is away", func(t *testing.T) {
		again, err := b.env.Signed("shop/again", "1.0")
		must(t, err)
		must(t, b.gateway.Terminate())
		<-b.gateway.Done()
		if _, err := b.dryRun(t.Context(), pod("again", again.ByDigest())); err == nil {
			t.Error("a pod is admitted without an answer of the gateway")
		}
		b.gateway = b.freshStart(t, b.config)
		must(t, b.gateway.Ready(t.Context()))
		eventually(t, func(ctx context.Context) error {
			_, err := b.dryRun(ctx, pod("again", again.ByDigest()))
			return err
		})
	})
}

// expect checks that the plugin refused, with all these words, or admitted if there are none.
func (b *pinboard) expect(t *testing.T, reason string, err error, says []string) {
	t.Helper()
	if len(says) == 0 {
		if err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		return
	}
	for _, word := range append(says, "image policy webhook backend denied") {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: got %v, want %q in it", reason, err, word)
		}
	}
}

func (b *pinboard) tryDebugging(t *testing.T, signed, bare gatetest.Image) {
	got, err := b.create(t, pod("debugged", signed.ByDigest()))
	must(t, err)
	for _, row := range []struct {
		reason, image string
		says          []string
	}{
		{"unsigned", bare.ByDigest(), []string{"[unsigned]"}},
		{"signed, by tag", signed.Name, []string{"[missing-digest]"}},
		{"signed", signed.ByDigest(), nil},
	} {
		with := got.DeepCopy()
		with.Spec.EphemeralContainers = []core.EphemeralContainer{{EphemeralContainerCommon: core.EphemeralContainerCommon{Name: "shell", Image: row.image}}}
		_, err := b.client.CoreV1().Pods(b.namespace).UpdateEphemeralContainers(t.Context(), "debugged", with, meta.UpdateOptions{})
		b.expect(t, "an ephemeral container, "+row.reason, err, row.says)
	}
}

// tryMirror: the plugin cannot redirect an image, so that its copy is to be written.
func (b *pinboard) tryMirror(t *testing.T) {
	m := &mirrored{scene: b.scene, near: b.near}
	image, bare := m.copied(t, "closed/web", "1.0", m.near), m.env.Unsigned("closed/bare", "1.0")
	m.copyTo(t, bare, "closed/bare", "1.0", m.near)
	m.redirectBy(t, document(t, "closed", map[string]any{
		"sources": []any{m.env.Registry.Host() + "/closed"}, "targets": []any{m.at(m.near)}, "otherwise": "Deny",
	}))
	_, err := m.create(t, pod("source", env.Pinned(image)))
	b.expect(t, "the source's name", err, []string{"[no-mirror]", "write " + exact(m.near, image)})
	_, err = m.create(t, pod("copy", exact(m.near, image)))
	b.expect(t, "the copy's name", err, nil)
	_, err = m.create(t, pod("copy-bare", exact(m.near, bare)))
	b.expect(t, "the copy of an unsigned image", err, []string{"[unsigned]"})
}

// tryReviewers asks as the API server does, by certificates of several kinds.
func (b *pinboard) tryReviewers(t *testing.T, signed, bare string) {
	own, err := b.authority.Client(imageReviewer)
	must(t, err)
	misnamed, err := b.authority.Client("somebody")
	must(t, err)
	strangers, err := controlplane.NewAuthority("images") // by the same name
	must(t, err)
	forged, err := strangers.Client(imageReviewer)
	must(t, err)
	for _, row := range []struct {
		reason   string
		pair     *controlplane.Pair
		image    string
		answered bool
		allowed  bool
	}{
		{"the API server", &own, signed, true, true},
		{"the API server, of an unsigned image", &own, bare, true, false},
		{"without a certificate", nil, signed, false, false},
		{"another name", &misnamed, signed, false, false},
		{"another authority", &forged, signed, false, false},
	} {
		endpoint := newCaller(t, b.gateway, b.authority.PEM(), func(c *tls.Config) {
			if row.pair != nil {
				certificate, err := tls.X509KeyPair(row.pair.Certificate, row.pair.Key)
				must(t, err)
				c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
			}
		})
		review := imagepolicy.ImageReview{
			TypeMeta: meta.TypeMeta{APIVersion: "imagepolicy.k8s.io/v1alpha1", Kind: "ImageReview"},
			Spec:     imagepolicy.ImageReviewSpec{Namespace: b.namespace, Containers: []imagepolicy.ImageReviewContainerSpec{{Image: row.image}}},
		}
		body, err := json.Marshal(review)
		must(t, err)
		status, _, answer, err := endpoint.post(t.Context(), imageReviewPath, "application/json", bytes.NewReader(body))
		var said imagepolicy.ImageReview
		_ = json.Unmarshal(answer, &said)
		answered := err == nil && status == http.StatusOK
		if answered != row.answered || answered && said.Status.Allowed != row.allowed {
			t.Errorf("%s: %d %s, %v; want an answer: %t, allowed: %t", row.reason, status, answer, err, row.answered, row.allowed)
		}
	}
}
