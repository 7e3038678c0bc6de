package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/pinnable"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/keychain/provider"
)

// complaints are the errors of a configuration.
type complaints []error

func (c *complaints) refuse(wrong bool, format string, args ...any) {
	if wrong {
		*c = append(*c, fmt.Errorf(format, args...))
	}
}

// check refuses contradictory and meaningless settings.
func (c *Configuration) check() error {
	var found complaints
	found.refuse(c.Standalone && len(c.Policies.Folders) == 0, "standalone: without a cluster the policies must come from policies.folders")
	found.refuse(c.Standalone && c.Kubernetes.Kubeconfig != "", "standalone contradicts kubernetes.kubeconfig: remove one")
	found.refuse(c.Kubernetes.Context != "" && c.Kubernetes.Kubeconfig == "", "kubernetes.context: a service account has none: set kubernetes.kubeconfig")
	found.refuse(c.Kubernetes.QPS < 0 || c.Kubernetes.Burst < 0, "kubernetes: qps and burst cannot be negative")
	found.refuse(c.Limits.Requests < 0 || c.Limits.Images < 0, "limits cannot be negative")
	found.refuse(c.Trust.Refresh && c.Trust.TrustedRoot != "", "trust.refresh follows the public-good instance, and trust.trustedRoot is in place of it: remove one")
	found.refuse(!slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level), "log.level: unknown level %q", c.Log.Level)
	found.refuse(!slices.Contains([]string{"json", "text"}, c.Log.Format), "log.format: want json or text, found %q", c.Log.Format)
	if _, err := labels.Parse(c.Policies.Selector); err != nil {
		found.refuse(true, "policies.selector: %w", err)
	}
	for _, name := range c.Exceptions.Namespaces {
		found.refuse(name != "*" && len(validation.IsDNS1123Label(name)) > 0, "exceptions.namespaces: %q: want the name of a namespace, or \"*\" for all", name)
	}
	if _, err := c.Required(); err != nil {
		found.refuse(true, "%w", err)
	}
	c.checkRoles(&found)
	c.checkMode(&found)
	found.refuse(c.Policies.NativePolicies != "" && (c.Standalone || c.Webhooks.Disabled), "policies.nativePolicies needs the webhook configurations: remove it, or standalone and webhooks.disabled")
	c.Policies.ClusterImagePolicies.check(&found)
	c.Policies.Expressions.check(&found)
	c.checkGuard(&found)
	c.Listen.check(c.Paths(), &found)
	c.Endpoints.API.check(c.Standalone, &found)
	c.Mirrors.check(c.Standalone, &found)
	found.refuse(time.Duration(*c.Ages.Stale) > policy.MaxStale, "ages.stale: want at most %s", policy.MaxStale)
	c.Snapshot.check(&found)
	c.DecisionLog.check(&found)
	c.Reports.check(&found)
	c.Scan.check(&found)
	c.Cleanup.check(&found)
	c.Dashboard.check(c.Standalone, &found)
	c.SharedMemory.check(c, &found)
	c.Webhooks.check(&found)
	c.Registries.check(&found)
	c.checkCertificate(&found)
	if c.Peers.Address != "" {
		_, _, err := net.SplitHostPort(c.Peers.Address)
		found.refuse(err != nil, "peers.address: want host:port: %w", err)
	}
	return errors.Join(found...)
}

func (c *Configuration) checkCertificate(found *complaints) {
	files := c.Certificate.CertificateFile != ""
	found.refuse(files != (c.Certificate.KeyFile != ""), "certificate: certificateFile and keyFile belong together")
	found.refuse(files && !c.Standalone && !c.Webhooks.Disabled && c.Certificate.CAFile == "", "certificate.caFile: the webhook configurations must say which authority signed the certificate")
	found.refuse(!files && c.Certificate.CAFile != "", "certificate.caFile belongs to certificateFile and keyFile")
	found.refuse(files && len(c.Certificate.Names) > 0, "certificate.names is for the own certificate; certificateFile has its own names")
	found.refuse(c.Certificate.Folder != "" && !c.Standalone, "certificate.folder is for running standalone; in a cluster the certificate is in a Secret")
}

func (l Listen) check(paths []string, found *complaints) {
	for _, named := range [][2]string{{"listen.address", l.Address}, {"listen.plain", l.Plain}} {
		_, _, err := net.SplitHostPort(named[1])
		found.refuse(err != nil, "%s: want host:port: %w", named[0], err)
	}
	if l.Profiling != "" {
		address, err := netip.ParseAddrPort(l.Profiling)
		found.refuse(err != nil || !address.Addr().IsLoopback(), "listen.profiling: %q: want a loopback address such as 127.0.0.1:6060; profiles tell much", l.Profiling)
	}
	found.refuse(len(l.ClientNames)+len(l.ClientEndpoints) > 0 && l.ClientCA == "", "listen.clientNames and listen.clientEndpoints need listen.clientCA")
	found.refuse(l.Socket != "" && !filepath.IsAbs(l.Socket), "listen.socket: %q: want an absolute path", l.Socket)
	for _, path := range l.ClientEndpoints {
		found.refuse(!slices.Contains(paths, path), "listen.clientEndpoints: there is no endpoint %q, or it is not turned on: want some of %s", path, strings.Join(paths, ", "))
	}
}

func (w Webhooks) check(found *complaints) {
	w.checkFailurePolicy(found)
	found.refuse(w.URL != "" && (!strings.HasPrefix(w.URL, "https://") || HostOf(w.URL) == ""), "webhooks.url: want https://host[:port]")
	found.refuse(w.Port < 1 || w.Port > 65535, "webhooks.port: %d: want 1 to 65535", w.Port)
	found.refuse(w.OnlyPods && len(w.MutateControllers) > 0, "webhooks.onlyPods: contradicts webhooks.mutateControllers")
	for _, kind := range w.MutateControllers {
		_, known := pinnable.Controllers()[kind]
		found.refuse(!known, "webhooks.mutateControllers: %q: want some of %s", kind, pinnable.Kinds())
	}
}

func (r Registries) check(found *complaints) {
	found.refuse(r.PerHost < 0 || r.Total < 0, "registries: perHost and total cannot be negative")
	found.refuse((r.PerHost == 0) != (r.Total == 0), "registries: give both perHost and total, or neither")
	for _, secret := range r.PullSecrets {
		found.refuse(strings.Count(secret, "/") != 1, "registries.pullSecrets: %q: want namespace/name", secret)
	}
	for _, name := range r.Providers {
		found.refuse(!slices.Contains(provider.Names(), name), "registries.providers: %q: want one of %s", name, strings.Join(provider.Names(), ", "))
	}
	for _, host := range slices.Sorted(maps.Keys(r.Hosts)) {
		h := r.Hosts[host]
		found.refuse((h.CertificateFile == "") != (h.KeyFile == ""), "registries.hosts[%s]: certificateFile and keyFile belong together", host)
		found.refuse(h.PlainHTTP && h.CAFile+h.CertificateFile != "", "registries.hosts[%s]: plainHTTP contradicts certificates", host)
	}
}
