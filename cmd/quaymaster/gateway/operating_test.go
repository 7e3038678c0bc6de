package gateway

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// TestOperatingMetrics: an operator sees the gateway's policies, its ability to apply them, expiry
// times, and unverified images.
func TestOperatingMetrics(t *testing.T) {
	d := newEnv(t)
	alone := func(text string) string {
		return strings.Replace(text, "metadata: {", `metadata: {annotations: {pod-policies.kyverno.io/autogen-controllers: none}, `, 1)
	}
	d.write(t, "policies/policy.yaml", alone(policyText("signed", "Pod", d.key)))
	lenient := strings.Replace(policyText("lenient", "Deployment", d.key), "spec:\n", "spec:\n  failurePolicy: Ignore\n", 1)
	audited := strings.Replace(alone(policyText("audited", "Pod", d.key)), "Action: Enforce", "Action: Audit", 1)
	d.write(t, "policies/lenient.yaml", lenient)
	d.write(t, "policies/audited.yaml", audited)
	d.write(t, "policies/override.yaml", overrideText("incident", "Allow", "{repositories: [registry.example/app]}"))
	d.write(t, "policies/broken.yaml", strings.Replace(policyText("typo", "CronJob", d.key), "imageReferences", "imageReferencez", 1))
	g := d.start(t, "")
	scrape := func() string {
		t.Helper()
		status, text := get(t, "http://"+g.plain+"/metrics")
		if status != 200 {
			t.Fatalf("HTTP %d: %s", status, text)
		}
		return text
	}
	want := func(when string, series ...string) {
		t.Helper()
		text := scrape()
		for _, each := range series {
			if !strings.Contains(text, "\n"+each) {
				t.Errorf("%s: there is no %s", when, each)
			}
		}
	}
	want("at the start",
		`quaymaster_ready{roles="admission,scan,report,background,cleanup"} 1`,
		`quaymaster_trust_expiry_timestamp_seconds{part="fulcio"} 1`, // and 9 more digits
		`quaymaster_trust_expiry_timestamp_seconds{part="rekor"} 0`,
		`quaymaster_trust_stale_keys 0`, `quaymaster_trust_unread_repositories 0`,
		`quaymaster_certificate_authority_expiry_timestamp_seconds 1`,
		`quaymaster_override_expiry_timestamp_seconds{effect="allow",override="incident"} `,
		`quaymaster_failed_open_total{policy="ClusterPolicy/lenient"} 0`,
		`quaymaster_policy_broken{policy="ClusterPolicy/typo"} 1`,
		`quaymaster_outcomes_total{result="error"} 0`,
	)
	// Standalone there is no leader, no webhook configuration and no scan; and the root
	// is not to be refreshed.
	text := scrape()
	for _, none := range []string{"quaymaster_leader", "quaymaster_webhook_configurations_kept", "quaymaster_scan_interval", "quaymaster_trust_refresh_failed"} {
		if strings.Contains(text, "\n"+none) {
			t.Errorf("there is a %s", none)
		}
	}

	g.mustAsk(t, "/validate", "Pod", "shop", d.unsigned.ByDigest())
	g.mustAsk(t, "/validate", "Pod", "shop", d.signed.ByDigest())
	want("after one of each",
		`quaymaster_outcomes_total{result="deny"} 1`, `quaymaster_outcomes_total{result="allow"} 1`, `quaymaster_outcomes_total{result="error"} 0`,
		`quaymaster_violations_total{action="enforce",policy="ClusterPolicy/signed"} 1`,
		`quaymaster_violations_total{action="audit",policy="ClusterPolicy/audited"} 1`,
	)

	d.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(500)})
	if got := g.mustAsk(t, "/validate", "Deployment", "shop", d.Build("new", "v1", "3").ByDigest()); !got.Allowed {
		t.Fatal("the policy fails open, and the object was denied")
	}
	if got := g.mustAsk(t, "/validate", "Pod", "shop", d.Build("new", "v2", "4").ByDigest()); got.Allowed {
		t.Fatal("the policy fails closed, and the object was admitted")
	}
	want("while the registry is away",
		`quaymaster_failed_open_total{policy="ClusterPolicy/lenient"} 1`, `quaymaster_outcomes_total{result="error"} 1`,
	)
}

// TestFailurePolicySetting: the setting takes the values of the API.
func TestFailurePolicySetting(t *testing.T) {
	for text, wrong := range map[string]string{"Fail": "", "Ignore": "", "ignore": "webhooks.failurePolicy", "Open": "webhooks.failurePolicy"} {
		_, err := config.Parse([]byte(head + "webhooks: {failurePolicy: " + text + "}\n"))
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
