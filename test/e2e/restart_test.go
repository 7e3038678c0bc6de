package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// admissionConfiguration has the API server present a client certificate to webhooks.
const admissionConfiguration = `
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
  - name: MutatingAdmissionWebhook
    configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: FILE}
  - name: ValidatingAdmissionWebhook
    configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: FILE}
`

// callerName is the API server's common name, for webhooks.
const callerName = "the-api-server"

// ownPlane is a scene with a control plane of its own, and an API server that presents a
// certificate of the authority to webhooks.
func ownPlane(t *testing.T, namespace string, callers *controlplane.Authority) *scene {
	t.Helper()
	plane(t) // skips in short runs, and builds the programs
	folder := t.TempDir()
	pair, err := callers.Client(callerName)
	must(t, err)
	// The user named * is the client of every webhook.
	kubeconfig, err := controlplane.Kubeconfig(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: pair.Certificate, KeyData: pair.Key}})
	must(t, err)
	file := filepath.Join(folder, "webhooks.kubeconfig")
	must(t, os.WriteFile(file, []byte(strings.Replace(string(kubeconfig), `"name":"default","user":{"client`, `"name":"*","user":{"client`, 1)), 0o600))
	c, err := controlplane.Start(t.Context(), controlplane.Options{
		Folder: folder, Admission: []byte(strings.ReplaceAll(admissionConfiguration, "FILE", file)),
	})
	must(t, err)
	t.Cleanup(c.Close)
	s := &scene{plane: c, env: openEnv(t, registrytest.Options{}), namespace: namespace}
	must(t, c.Namespace(t.Context(), namespace))
	s.client = clientset(t, c.Admin())
	s.identity, err = c.Install(t.Context())
	must(t, err)
	return s
}

// TestAPIServer has a control plane of its own, with an API server that presents a client
// certificate and is started again.
func TestAPIServer(t *testing.T) {
	t.Parallel()
	callers, err := controlplane.NewAuthority("callers")
	must(t, err)
	s := ownPlane(t, "guarded", callers)
	file := filepath.Join(t.TempDir(), "callers.crt")
	must(t, os.WriteFile(file, callers.PEM(), 0o600))
	s.gateway = s.start(t, gateway.Configuration{Listen: gateway.Listen{ClientCA: file, ClientNames: []string{callerName}}})
	must(t, s.gateway.Ready(t.Context()))
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")

	t.Run("the API server that shows its certificate is served, others are not", func(t *testing.T) {
		_, err := s.dryRun(t.Context(), pod("signed", signed.Name))
		must(t, err)
		_, err = s.dryRun(t.Context(), pod("bare", bare.Name))
		denied(t, "an unsigned image", err, "unsigned")
		s.tryCallers(t, callers, signed.ByDigest())
	})
	t.Run("the API server is started again", func(t *testing.T) { s.tryRestart(t, callers, signed, bare) })
}

func (s *scene) tryCallers(t *testing.T, callers *controlplane.Authority, image string) {
	strangers, err := controlplane.NewAuthority("strangers")
	must(t, err)
	authorities := s.secret(t).Data["ca.crt"]
	for _, row := range []struct {
		reason string
		of     *controlplane.Authority // nil: none is shown
		name   string
		served bool
	}{
		{"the API server's certificate", callers, callerName, true},
		{"another name of the same authority", callers, "ann", false},
		{"the name by another authority", strangers, callerName, false},
		{"no certificate", nil, "", false},
	} {
		endpoint := newCaller(t, s.gateway, authorities, shows(t, row.of, row.name))
		for _, path := range []string{"/mutate", "/validate", "/policies"} {
			said, err := endpoint.ask(t.Context(), path, s.reviewOf(pod("asked", image), "ann"))
			if served := err == nil; served != row.served {
				t.Errorf("%s at %s: %+v, %v; want that it is served: %t", row.reason, path, said, err, row.served)
			}
		}
	}
}

// shows has a caller present a certificate; without an authority it presents none.
func shows(t *testing.T, of *controlplane.Authority, name string) func(*tls.Config) {
	t.Helper()
	if of == nil {
		return nil
	}
	pair, err := of.Client(name)
	must(t, err)
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	must(t, err)
	return func(c *tls.Config) { c.Certificates = []tls.Certificate{certificate} }
}

// tryRestart ends the API server, asks the gateway meanwhile, starts it again and
// has a policy come before the gateway can have noticed.
func (s *scene) tryRestart(t *testing.T, callers *controlplane.Authority, signed, bare gatetest.Image) {
	endpoint := newCaller(t, s.gateway, s.secret(t).Data["ca.crt"], shows(t, callers, callerName))
	pid := s.gateway.Pid()
	s.plane.KillAPIServer()
	if err := alive(t.Context(), s.gateway); err != nil {
		t.Errorf("without an API server: %v", err)
	}
	must(t, s.gateway.IsReady(t.Context()))
	for image, allowed := range map[string]bool{signed.ByDigest(): true, bare.ByDigest(): false} {
		if said, err := endpoint.ask(t.Context(), "/validate", s.reviewOf(pod("asked", image), "ann")); err != nil || said.Allowed != allowed {
			t.Errorf("without an API server, %s: %+v, %v; want allowed: %t", image, said, err, allowed)
		}
	}
	must(t, s.plane.StartAPIServer(t.Context()))

	other := s.in(t, "guarded-later")
	text, err := s.env.YAML(env.Policy{Name: other.namespace, Namespaces: []string{other.namespace}})
	must(t, err)
	eventually(t, func(ctx context.Context) error { return s.plane.ApplyYAML(ctx, text) })
	eventually(t, func(ctx context.Context) error {
		_, err := s.dryRun(ctx, pod("signed", signed.Name))
		return err
	})
	_, err = s.dryRun(t.Context(), pod("bare", bare.Name))
	denied(t, "an unsigned image, as before", err, "unsigned")
	s.awaitGuard(t, other, bare.Name, true)
	// The API server loads the configuration that pins after the one that denies, or before.
	eventually(t, func(ctx context.Context) error {
		got, err := other.dryRun(ctx, pod("signed", signed.Name))
		if err == nil && images(got)[0] != env.Pinned(signed) {
			err = fmt.Errorf("%q is not pinned", images(got)[0])
		}
		return err
	})
	if s.gateway.Pid() != pid {
		t.Error("the gateway is another process")
	}
}
