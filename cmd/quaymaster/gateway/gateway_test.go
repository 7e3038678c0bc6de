package gateway

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/lookups"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

func TestStandaloneAdmitsAndPins(t *testing.T) {
	d := newEnv(t)
	r := d.start(t, "")
	got := r.mustAsk(t, "/mutate", "Pod", "shop", d.signed.Name)
	if !got.Allowed || !strings.Contains(string(got.Patch), d.signed.Name+"@"+d.signed.Manifest.Digest) {
		t.Errorf("a signed image by tag: allowed %t, patch %s, %s", got.Allowed, got.Patch, got.Status.Message)
	}
	for endpoint, image := range map[string]string{"/mutate": d.unsigned.Name, "/validate": d.unsigned.ByDigest()} {
		if got := r.mustAsk(t, endpoint, "Pod", "shop", image); got.Allowed || !strings.Contains(got.Status.Message, "no signature found") {
			t.Errorf("%s of an unsigned image: allowed %t, %s", endpoint, got.Allowed, got.Status.Message)
		}
	}
	if got := r.mustAsk(t, "/validate", "Pod", "shop", d.signed.ByDigest()); !got.Allowed || len(got.Patch) > 0 {
		t.Errorf("a signed image by digest: allowed %t, patch %s, %s", got.Allowed, got.Patch, got.Status.Message)
	}
	_, page := get(t, "http://"+r.plain+"/metrics")
	for _, line := range []string{
		`quaymaster_admissions_total{answer="allow",cause="decided",endpoint="mutate"} 1`,
		`quaymaster_admissions_total{answer="deny",cause="decided",endpoint="mutate"} 1`,
		`quaymaster_decisions_total{outcome="pass",policy="ClusterPolicy/signed"} 2`,
		`quaymaster_decisions_total{outcome="fail",policy="ClusterPolicy/signed"} 2`,
		`quaymaster_policies{state="ours"} 1`, `quaymaster_policies{state="broken"} 0`,
		`quaymaster_registry_requests_total{host="` + d.Registry.Host() + `",status="2xx"}`,
		`quaymaster_requests_total{endpoint="validate",status="200"} 2`, `quaymaster_build_info{`, `version="test"`,
		"quaymaster_certificate_expiry_timestamp_seconds 1.", "quaymaster_trust_age_seconds", "quaymaster_queue_working 0",
	} {
		if !strings.Contains(page, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if err := r.end(t); err != nil {
		t.Errorf("after a drain: %v", err)
	}
	for line := range strings.Lines(r.log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of the log is no JSON: %s", line)
		}
	}
}

func TestReadinessListsChecks(t *testing.T) {
	r := newEnv(t).start(t, "")
	status, page := get(t, "http://"+r.plain+"/readyz")
	if want := "ok: drain\nok: certificate\nok: trust\nok: policies\nok: mirrors\nok: endpoints\n"; status != http.StatusOK || page != want {
		t.Errorf("HTTP %d:\n%s", status, page)
	}
}

func TestFoldersAreFollowed(t *testing.T) {
	d := newEnv(t)
	r := d.start(t, "")
	if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.signed.Name); !got.Allowed {
		t.Fatal(got.Status.Message)
	}
	d.write(t, "policies/policy.yaml", policyText("signed", "Pod", d.other))
	testkit.Eventually(t, func() error {
		if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.signed.Name); got.Allowed {
			return errors.New("the old policy is asked still")
		}
		return nil
	})
	d.write(t, "policies/policy.yaml", "{")
	testkit.Eventually(t, func() error {
		if !strings.Contains(r.log.String(), "those that were active stay so") {
			return errors.New("the log does not report the unreadable folder")
		}
		return nil
	})
	if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.signed.Name); got.Allowed {
		t.Error("without a folder that can be read, everything is admitted")
	}
}

func TestKeyInAConfigMapOfTheFolder(t *testing.T) {
	d := newEnv(t)
	configMap := func(key *verifytest.Signer) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: keys, namespace: security}\ndata:\n  cosign: |\n    " +
			strings.ReplaceAll(strings.TrimSpace(string(key.PublicPEM())), "\n", "\n    ") + "\n"
	}
	d.write(t, "policies/policy.yaml", policyOfKey("signed", "{resources: {kinds: [Pod]}}",
		"      context: [{name: keys, configMap: {name: keys, namespace: security}}]\n", "{{ keys.data.cosign }}"))
	d.write(t, "policies/keys.yaml", configMap(d.other))
	r := d.start(t, "")
	if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.signed.Name); got.Allowed {
		t.Fatal("another key is taken")
	}
	d.write(t, "policies/keys.yaml", configMap(d.key))
	testkit.Eventually(t, func() error {
		if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.signed.Name); !got.Allowed {
			return errors.New(got.Status.Message)
		}
		return nil
	})
	d.write(t, "policies/keys.yaml", strings.ReplaceAll(configMap(d.key), "name: keys", "name: others"))
	testkit.Eventually(t, func() error {
		got := r.mustAsk(t, "/mutate", "Pod", "shop", d.signed.Name)
		if got.Allowed || !strings.Contains(got.Status.Message, lookups.InFolder) {
			return fmt.Errorf("allowed %t: %s", got.Allowed, got.Status.Message)
		}
		return nil
	})
}

func TestLabelsOfNamespacesInTheFolder(t *testing.T) {
	d := newEnv(t)
	d.write(t, "policies/policy.yaml", policyOfKey("signed",
		"{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {team: blue}}}}", "", string(d.key.PublicPEM())))
	d.write(t, "policies/namespaces.yaml", `apiVersion: v1
kind: Namespace
metadata: {name: blue, labels: {team: blue}}
---
apiVersion: v1
kind: Namespace
metadata: {name: red, labels: {team: red}}
`)
	r := d.start(t, "")
	for _, c := range []struct {
		reason, namespace, image string
		allowed                  bool
		says                     string
	}{
		{"selected and signed", "blue", d.signed.Name, true, ""},
		{"selected and unsigned", "blue", d.unsigned.Name, false, "no signature found"},
		{"not selected", "red", d.unsigned.Name, true, ""},
		{"of an unknown namespace and unsigned", "green", d.unsigned.Name, false, "labels"},
		{"of an unknown namespace and signed, which passes in either reading", "green", d.signed.Name, true, ""},
	} {
		if got := r.mustAsk(t, "/mutate", "Pod", c.namespace, c.image); got.Allowed != c.allowed || !strings.Contains(got.Status.Message, c.says) {
			t.Errorf("%s: allowed %t: %s", c.reason, got.Allowed, got.Status.Message)
		}
	}
}

func TestBrokenPolicyDeniesItsKinds(t *testing.T) {
	d := newEnv(t)
	broken := strings.ReplaceAll(policyText("broken", "Deployment", d.key), "imageReferences", "imageReference")
	d.write(t, "policies/broken.yaml", broken)
	r := d.start(t, "")
	if got := r.mustAsk(t, "/validate", "Deployment", "shop", d.signed.Name); got.Allowed || !strings.Contains(got.Status.Message, "imageReference") {
		t.Errorf("what a broken policy names: allowed %t: %s", got.Allowed, got.Status.Message)
	}
	if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.signed.Name); !got.Allowed {
		t.Errorf("a kind that it does not name: %s", got.Status.Message)
	}
	if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.unsigned.Name); got.Allowed {
		t.Error("the other policy is not asked any more")
	}
	_, page := get(t, "http://"+r.plain+"/metrics")
	for _, line := range []string{`quaymaster_policies{state="broken"} 1`, `quaymaster_policies{state="ours"} 1`, `quaymaster_policy_broken{policy="ClusterPolicy/broken"} 1`} {
		if !strings.Contains(page, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

// TestDrainAnswersPendingRequests: the gateway is stopped while the registry keeps a
// request waiting.
func TestDrainAnswersPendingRequests(t *testing.T) {
	d := newEnv(t)
	r := d.start(t, "listen: {drainDelay: 200ms}\n")
	r.mustAsk(t, "/mutate", "Pod", "shop", d.unsigned.Name)
	asked, release := make(chan struct{}), make(chan struct{})
	d.Registry.SetFaults(registrytest.Fault{Repository: d.signed.Repository, Nth: 1, Do: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			close(asked)
			<-release
			next.ServeHTTP(w, q)
		})
	}})
	answered := make(chan error, 1)
	go func() {
		got, err := r.ask("/mutate", "Pod", "shop", d.signed.Name)
		if err == nil && !got.Allowed {
			err = errors.New(got.Status.Message)
		}
		answered <- err
	}()
	select {
	case <-asked:
	case err := <-answered:
		t.Fatalf("answered without the registry: %v", err)
	}
	r.stop()
	testkit.Eventually(t, func() error {
		if status, page := get(t, "http://"+r.plain+"/readyz"); status != http.StatusServiceUnavailable {
			return fmt.Errorf("HTTP %d:\n%s", status, page)
		}
		return nil
	})
	if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.unsigned.Name); got.Allowed {
		t.Error("a request that comes while the gateway drains is admitted unseen")
	}
	select {
	case err := <-r.ended:
		t.Fatalf("the gateway left a request behind: %v", err)
	default:
	}
	close(release)
	if err := <-answered; err != nil {
		t.Errorf("the request that was at work: %v", err)
	}
	if err := r.end(t); err != nil {
		t.Error(err)
	}
}

func TestCallersMustShowACertificate(t *testing.T) {
	d := newEnv(t)
	authority, pair := apiServer(t, "kube-apiserver")
	_, stranger := apiServer(t, "kube-apiserver")
	d.write(t, "callers.crt", string(authority))
	r := d.start(t, "listen: {clientCA: "+filepath.Join(d.folder, "callers.crt")+", clientNames: [kube-apiserver]}\n")
	own, err := os.ReadFile(filepath.Join(d.folder, "certificate", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason string
		shown  []tls.Certificate
		enters bool
	}{
		{"the API server", []tls.Certificate{pair}, true},
		{"no certificate", nil, false},
		{"the same name of another authority", []tls.Certificate{stranger}, false},
	} {
		r.client = clientOf(own, c.shown...)
		for _, endpoint := range []string{"/mutate", "/validate"} {
			if got, err := r.ask(endpoint, "Pod", "shop", d.signed.ByDigest()); (err == nil && got.Allowed) != c.enters {
				t.Errorf("%s at %s: %v, allowed %t", c.reason, endpoint, err, got.Allowed)
			}
		}
	}
	if status, _ := get(t, "http://"+r.plain+"/healthz"); status != http.StatusOK {
		t.Errorf("probes need a certificate, too: HTTP %d", status)
	}
}

// apiServer makes an authority and a certificate of it for clients.
func apiServer(t *testing.T, name string) (authority []byte, pair tls.Certificate) {
	t.Helper()
	root, rootKey := certificateOf(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "callers"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	leaf, key := certificateOf(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, root, rootKey)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw}), tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}
}

func certificateOf(t *testing.T, template, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if parent == nil {
		parent, by = template, key
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

func TestProfilesAreOnTheirOwnAddress(t *testing.T) {
	d := newEnv(t)
	at := freeAddress(t)
	r := d.start(t, "listen: {profiling: '"+at+"'}\n")
	if status, _ := get(t, "http://"+at+"/debug/pprof/cmdline"); status != http.StatusOK {
		t.Errorf("HTTP %d at the address that was asked for", status)
	}
	if status, _ := get(t, "http://"+r.plain+"/debug/pprof/cmdline"); status != http.StatusNotFound {
		t.Errorf("HTTP %d where everybody may ask", status)
	}
}

// freeAddress is an address without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

// TestWithoutTheAPIServer: probes are answered while the gateway waits for the API
// server, no endpoint is active, and a stop ends it at once, however long a drain is.
func TestWithoutTheAPIServer(t *testing.T) {
	folder := t.TempDir()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://%s"}}]
contexts: [{name: c, context: {cluster: c, user: ""}}]
current-context: c
`, freeAddress(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	plain, address := freeAddress(t), freeAddress(t)
	c, err := config.Parse(fmt.Appendf([]byte(head), "kubernetes: {kubeconfig: %s}\nlisten: {address: %q, plain: %q, drainDelay: 1m}\n", kubeconfig, address, plain))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log, ended := &testkit.Log{}, make(chan error, 1)
	go func() { ended <- Run(ctx, c, Options{Log: log, Version: "test", Replica: "test"}) }()
	testkit.Eventually(t, func() error {
		response, err := http.Get("http://" + plain + "/healthz")
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("healthz: HTTP %d", response.StatusCode)
		}
		return nil
	})
	status, page := get(t, "http://"+plain+"/readyz")
	if status != http.StatusServiceUnavailable {
		t.Errorf("ready without an API server: HTTP %d", status)
	}
	for _, name := range []string{"certificate", "namespaces", "policies", "mirrors", "watch", "endpoints"} {
		if !strings.Contains(page, "not ready: "+name+": ") {
			t.Errorf("no word of %s:\n%s", name, page)
		}
	}
	if response, err := clientOf(nil).Get("https://" + address + "/validate"); err == nil {
		_ = response.Body.Close()
		t.Error("an endpoint is active without a certificate")
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatalf("the gateway waits still:\n%s", log)
	}
}
