package main

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// TestServeRefusesConfigurations: what cannot be used ends at once with the status
// for wrong use, and nothing is started.
func TestServeRefusesConfigurations(t *testing.T) {
	h := &env{folder: t.TempDir()}
	const head = "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\nlisten: {address: '127.0.0.1:0', plain: '127.0.0.1:0'}\n"
	h.file(t, "policies.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
	h.file(t, "torn.yaml", "{")
	standalone := head + "standalone: true\npolicies: {folders: [" + h.path("policies.yaml") + "]}\n"
	for _, c := range []struct{ reason, text, says string }{
		{"an unknown field", head + "polices: {}\n", "unknown field"},
		{"no policies", head + "standalone: true\n", "policies.folders"},
		{"a folder that is not there", head + "standalone: true\npolicies: {folders: [/no/such/folder]}\n", "/no/such/folder"},
		{"a policy file that is torn", head + "standalone: true\npolicies: {folders: [" + h.path("torn.yaml") + "]}\n", "torn.yaml"},
		{"a kubeconfig that is not there", head + "kubernetes: {kubeconfig: /no/such/kubeconfig}\n", "/no/such/kubeconfig"},
		{"a trusted root that is none", standalone + "trust: {trustedRoot: " + h.path("policies.yaml") + "}\n", "trust"},
		{"an authority for registries that is none", standalone + "registries: {caFile: " + h.path("policies.yaml") + "}\n", "registries.caFile"},
		{"traces to nowhere", standalone + "traces: {endpoint: collector}\n", "traces"},
	} {
		if code, _, errs := quaymaster(t, "serve", "--config", h.file(t, "gateway.yaml", c.text)); code != command.ExitUsage || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit status %d, want %d and a word of %q: %s", c.reason, code, command.ExitUsage, c.says, errs)
		}
	}
	for roles, says := range map[string]string{
		"report": "give it scan or admission", "scan,scan": "named twice", "scans": "want some of admission,scan,report,background,cleanup", "": "leave roles out for all",
		"scan": "standalone", // the flag wins, and goes with the rest of the file
	} {
		if code, _, errs := quaymaster(t, "serve", "--roles", roles, "--config", h.file(t, "gateway.yaml", standalone)); code != command.ExitUsage || !strings.Contains(errs, says) {
			t.Errorf("--roles %q: exit status %d, want %d and a word of %q: %s", roles, code, command.ExitUsage, says, errs)
		}
	}
	if code, _, errs := quaymaster(t, "serve", "--config", h.path("missing.yaml")); code != command.ExitUsage || !strings.Contains(errs, "missing.yaml") {
		t.Errorf("a missing file: exit status %d: %s", code, errs)
	}
}

// TestServeThatCannotListen: the configuration is valid, and the error is logged in the log's own
// format.
func TestServeThatCannotListen(t *testing.T) {
	h := &env{folder: t.TempDir()}
	h.file(t, "policies.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
	text := "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\nstandalone: true\npolicies: {folders: [" + h.path("policies.yaml") +
		"]}\nlisten: {address: '192.0.2.1:1', plain: '127.0.0.1:0'}\n"
	code, _, errs := quaymaster(t, "serve", "--config", h.file(t, "gateway.yaml", text))
	if code != command.ExitError || !strings.Contains(errs, `"msg":"the gateway ends","error":"webhook: listen: `) {
		t.Errorf("exit status %d, want %d: %s", code, command.ExitError, errs)
	}
}
