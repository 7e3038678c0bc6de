package deploy_test

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	strict "sigs.k8s.io/yaml"
)

// examples returns the documents, by kind, that docs/gateway.md gives for closing
// the endpoints; what has no kind is under "".
func examples(t *testing.T) map[string][]byte {
	t.Helper()
	content, err := os.ReadFile("../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "\n## Callers\n")
	section, _, _ = strings.Cut(section, "\n## ")
	found := make(map[string][]byte)
	for i, block := range strings.Split(section, "```") {
		document, ok := strings.CutPrefix(block, "yaml\n")
		if i%2 == 0 || !ok {
			continue
		}
		var meta metav1.TypeMeta
		if err := strict.Unmarshal([]byte(document), &meta); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		found[meta.Kind] = []byte(document)
	}
	return found
}

// reaches reports whether an address may connect to a port, as for a plugin that compares
// addresses; selectors match pods by the given labels.
func reaches(policies []*networking.NetworkPolicy, port, address string, labels map[string]string) bool {
	from := netip.MustParseAddr(address)
	for _, p := range policies {
		for _, rule := range p.Spec.Ingress {
			if rule.Ports[0].Port.StrVal != port {
				continue
			}
			if len(rule.From) == 0 {
				return true
			}
			for _, peer := range rule.From {
				if block := peer.IPBlock; block != nil && netip.MustParsePrefix(block.CIDR).Contains(from) {
					excepted := false
					for _, e := range block.Except {
						excepted = excepted || netip.MustParsePrefix(e).Contains(from)
					}
					if !excepted {
						return true
					}
				}
				if s := peer.PodSelector; s != nil && s.MatchLabels["app.kubernetes.io/name"] == labels["app.kubernetes.io/name"] {
					return true
				}
			}
		}
	}
	return false
}

// TestCallersOfTheEndpoints: with the policy of the documentation in place of the one
// that is shipped, a pod reaches no endpoint, and the API server and replicas do.
func TestCallersOfTheEndpoints(t *testing.T) {
	var closed networking.NetworkPolicy
	if err := strict.UnmarshalStrict(examples(t)["NetworkPolicy"], &closed); err != nil {
		t.Fatal(err)
	}
	shipped := all[networking.NetworkPolicy](t)
	var after []*networking.NetworkPolicy
	for _, p := range shipped {
		if p.Name == closed.Name && p.Namespace == closed.Namespace {
			p = &closed
		}
		after = append(after, p)
	}
	if len(shipped) != 2 || after[1] != &closed {
		t.Fatal("the documentation replaces nothing")
	}
	ours := all[core.Service](t)[0].Spec.Selector
	for _, row := range []struct {
		reason, address string
		labels          map[string]string
		open, shut      bool
	}{
		{"the API server", "192.0.2.10", nil, true, true},
		{"the API server by IPv6", "2001:db8::10", nil, true, true},
		{"another replica", "10.244.1.7", ours, true, true},
		{"another pod", "10.244.1.8", map[string]string{"app.kubernetes.io/name": "shop"}, true, false},
		{"its address of IPv6", "fd00:10:244::8", map[string]string{"app.kubernetes.io/name": "shop"}, true, false},
	} {
		if got := reaches(shipped, "webhook", row.address, row.labels); got != row.open {
			t.Errorf("as installed, %s reaches the endpoints: %t", row.reason, got)
		}
		if got := reaches(after, "webhook", row.address, row.labels); got != row.shut {
			t.Errorf("closed, %s reaches the endpoints: %t", row.reason, got)
		}
	}
}

// TestCertificateExamples reads the API server's files in the documentation.
func TestCertificateExamples(t *testing.T) {
	documents := examples(t)
	var admission struct {
		metav1.TypeMeta `json:",inline"`
		Plugins         []struct {
			Name          string `json:"name"`
			Configuration struct {
				metav1.TypeMeta `json:",inline"`
				KubeConfigFile  string `json:"kubeConfigFile"`
			} `json:"configuration"`
		} `json:"plugins"`
	}
	if err := strict.UnmarshalStrict(documents["AdmissionConfiguration"], &admission); err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, p := range admission.Plugins {
		names += p.Name + " "
		if p.Configuration.APIVersion != "apiserver.config.k8s.io/v1" || p.Configuration.Kind != "WebhookAdmissionConfiguration" || p.Configuration.KubeConfigFile == "" {
			t.Errorf("%+v", p)
		}
	}
	if names != "MutatingAdmissionWebhook ValidatingAdmissionWebhook " {
		t.Errorf("the plugins are %s", names)
	}
	config, err := clientcmd.Load(documents["Config"])
	if err != nil {
		t.Fatal(err)
	}
	service := all[core.Service](t)[0]
	user := config.AuthInfos[service.Name+"."+service.Namespace+".svc"]
	if user == nil || user.ClientCertificate == "" || user.ClientKey == "" || service.Spec.Ports[0].Port != 443 {
		t.Errorf("the API server would show the Service %s nothing: %+v", service.Name, config.AuthInfos)
	}
}
