package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/test/docs"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
	"github.com/quaymaster/quaymaster/webhook/certificate"
)

// silentResolver is an address without a DNS server, so that each lookup takes its full
// timeout.
const silentResolver = "127.0.10.53"

// tryWithoutNames starts a gateway with an unresponsive resolver, as a cluster's DNS is
// before its pods run, with every feature on that has a host name.
func (c *cold) tryWithoutNames(t *testing.T) {
	program := c.nameless(t)
	c.stop(t)
	c.restart(t)
	configuration := c.configuration
	configuration.Trust.Refresh = true
	configuration.SharedMemory.Address = "redis.cache.svc:6379"
	configuration.DecisionLog.Folder, configuration.DecisionLog.Webhook.URL = c.whole.TempDir(), "https://sink.audit.svc/"
	c.returns(t, configuration, program, "NO_PROXY=*", "GODEBUG=netdns=go")
	until(t, awaitTimeout, func(ctx context.Context) error { // and it did ask
		samples, err := c.gateway.Metrics(ctx)
		if err == nil && gateway.Sum(samples, "quaymaster_shared_cache_total", "result", "failed") == 0 {
			err = errors.New("the shared cache answers without DNS")
		}
		return err
	})
}

// nameless returns a program that runs the gateway where /etc/resolv.conf names a resolver
// that does not answer. It takes a mount namespace of its own.
func (c *cold) nameless(t *testing.T) string {
	t.Helper()
	silent, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", silentResolver+":53")
	if err != nil {
		t.Skipf("a resolver that does not answer cannot be had: %v", err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	folder := t.TempDir()
	resolver := write(t, folder, "resolv.conf", "nameserver "+silentResolver+"\n", 0o644)
	inside := fmt.Sprintf(`exec unshare --mount sh -c 'mount --bind %s /etc/resolv.conf && exec "$@"' sh`, resolver)
	if said, err := exec.CommandContext(t.Context(), "sh", "-c", inside+" grep -q "+silentResolver+" /etc/resolv.conf").CombinedOutput(); err != nil {
		t.Skipf("a mount namespace cannot be had: %v %s", err, said)
	}
	return write(t, folder, "quaymaster", "#!/bin/sh\n"+inside+" "+c.program(t)+` "$@"`+"\n", 0o700)
}

// tryExpired: a cluster that was off for longer than a certificate is good for.
func (c *cold) tryExpired(t *testing.T) {
	c.stop(t)
	c.restart(t)
	secret := c.secret(t)
	leafUntil(t, secret, time.Now().Add(-time.Hour))
	_, err := c.client.CoreV1().Secrets(releaseNamespace).Update(t.Context(), secret, meta.UpdateOptions{})
	must(t, err)
	c.returns(t, c.configuration, c.program(t))
	if err := c.gateway.IsReady(t.Context()); err != nil {
		t.Errorf("it serves, and %v", err)
	}
}

// tryStaleBundle: the configurations have an authority that no longer exists, as after etcd
// was restored, so that the API server trusts no gateway. The gateway repairs it through the
// API, which calls no webhook for that.
func (c *cold) tryStaleBundle(t *testing.T) {
	c.stop(t)
	c.restart(t)
	other, err := controlplane.NewAuthority("of another time")
	must(t, err)
	registered := c.client.AdmissionregistrationV1()
	mutating, err := registered.MutatingWebhookConfigurations().Get(t.Context(), ownName, meta.GetOptions{})
	must(t, err)
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.CABundle = other.PEM()
	}
	_, err = registered.MutatingWebhookConfigurations().Update(t.Context(), mutating, meta.UpdateOptions{})
	must(t, err)
	validating, err := registered.ValidatingWebhookConfigurations().Get(t.Context(), ownName, meta.GetOptions{})
	must(t, err)
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = other.PEM()
	}
	_, err = registered.ValidatingWebhookConfigurations().Update(t.Context(), validating, meta.UpdateOptions{})
	must(t, err)
	c.returns(t, c.configuration, c.program(t))
	if kept := c.secret(t).Data[certificate.EntryBundle]; !bytes.Equal(c.bundle(t), kept) {
		t.Error("the webhooks have other authorities than the Secret")
	}
}

// tryExpiredFiles: an external issuer has to make another certificate; the gateway reports
// that it waits, and takes it without a restart.
func (c *cold) tryExpiredFiles(t *testing.T) {
	c.stop(t)
	c.restart(t)
	folder, configuration := c.whole.TempDir(), c.configuration
	secret := c.secret(t)
	leafUntil(t, secret, time.Now().Add(-time.Hour))
	give := func() {
		for name, entry := range map[string]string{"tls.crt": certificate.EntryCertificate, "tls.key": certificate.EntryKey, "ca.crt": certificate.EntryBundle} {
			write(t, folder, name, string(secret.Data[entry]), 0o600)
		}
	}
	give()
	configuration.Certificate = gateway.Certificate{
		CertificateFile: filepath.Join(folder, "tls.crt"), KeyFile: filepath.Join(folder, "tls.key"), CAFile: filepath.Join(folder, "ca.crt"),
	}
	c.gateway = c.start(c.whole, configuration)
	until(t, coldTimeout, func(ctx context.Context) error {
		if err := c.gateway.IsReady(ctx); err == nil || !strings.Contains(err.Error(), "expired") {
			return fmt.Errorf("readiness with a certificate that has expired: %w", errors.Join(err, errNotYet))
		}
		return nil
	})
	if _, err := c.dryRun(t.Context(), pod("signed", c.signed.Name)); err == nil {
		t.Error("the API server believed a certificate that has expired")
	}
	leafUntil(t, secret, time.Now().Add(80*24*time.Hour))
	give()
	until(t, coldTimeout, func(ctx context.Context) error {
		_, err := c.dryRun(ctx, pod("signed", c.signed.Name))
		return err
	})
}

// tryFound: the cost of namespaces outside the webhooks, and how it is reported.
func (c *cold) tryFound(t *testing.T) {
	somebody := pod("somebody", c.bare.Name)
	restrict(&somebody.Spec) // as the namespace's Pod Security Standard wants
	_, err := c.in(t, releaseNamespace).create(t, somebody)
	refused(t, "a pod in the gateway's namespace, about which it is not asked", err, "'quaymaster-own-images'")
	reports, err := dynamic.NewForConfig(c.plane.Admin())
	must(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, controlplane.WriteKubeconfig(kubeconfig, c.plane.Admin()))
	said, err := exec.CommandContext(t.Context(), c.program(t), "scan", "--kubeconfig", kubeconfig).CombinedOutput()
	if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != 1 {
		t.Errorf("a scan of a cluster with unsigned images ends with %v", err)
	}
	for namespace, what := range map[string]string{
		"kube-system": "kube-system Deployment/dns", storageNamespace: storageNamespace + " DaemonSet/" + systemWorkload,
		releaseNamespace: releaseNamespace + " Pod/" + earlyPod,
	} {
		if !strings.Contains(string(said), what) {
			t.Errorf("the scan does not report %s:\n%s", what, said)
		}
		until(t, 2*awaitTimeout, func(ctx context.Context) error { return reported(ctx, reports, namespace) })
	}
}

// reported looks for a report with a failure of an image in a namespace.
func reported(ctx context.Context, client dynamic.Interface, namespace string) error {
	all, err := reportsIn(ctx, client, policyReports, namespace)
	if err != nil {
		return err
	}
	for _, r := range all {
		if slices.ContainsFunc(r.Results, func(e entry) bool { return e.Policy == "signed" && e.Result == "fail" }) {
			return nil
		}
	}
	return fmt.Errorf("none of %d reports in %s has an unsigned image: %w", len(all), namespace, errNotYet)
}

// tryPage runs the page's commands for a cluster that hangs: at first no gateway runs.
func (c *cold) tryPage(t *testing.T) {
	c.stop(t)
	c.restart(t)
	checkout, err := peers.Checkout()
	must(t, err)
	site, err := docs.Load(checkout)
	must(t, err)
	commands, err := site.Pages["docs/cold-start.md"].CommandsOf("TestColdStart")
	must(t, err)
	if len(commands) == 0 {
		t.Fatal("the page has no commands for this")
	}
	folder := t.TempDir()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	must(t, controlplane.WriteKubeconfig(kubeconfig, c.plane.Admin()))
	must(t, docs.Shell{
		Folder: folder, Env: []string{"HOME=" + folder, "KUBECONFIG=" + kubeconfig, "PATH=" + programs(t) + ":" + os.Getenv("PATH"), "NO_COLOR=1", "NO_PROXY=127.0.0.1"},
		Names: map[string]string{"registry.example/shop/web:1.0": c.signed.Name},
		After: func(ctx context.Context, command string) error {
			switch {
			case strings.HasSuffix(command, "--replicas=0"):
				return process.Eventually(ctx, func(ctx context.Context) error { return c.noPods(ctx) })
			case strings.HasSuffix(command, "--replicas=3"):
				c.gateway = c.startProgram(c.whole, c.program(t), c.configuration)
				return c.gateway.Ready(ctx)
			}
			return nil
		},
	}.Run(t.Context(), "docs/cold-start.md", commands))
}

func (c *cold) noPods(ctx context.Context) error {
	list, err := c.client.CoreV1().Pods(releaseNamespace).List(ctx, meta.ListOptions{LabelSelector: "app.kubernetes.io/name=quaymaster"})
	if err == nil && len(list.Items) > 0 {
		err = errNotYet
	}
	return err
}
