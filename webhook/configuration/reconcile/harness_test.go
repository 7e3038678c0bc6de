package reconcile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

func bundle(t testing.TB) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// served is what a cluster serves, less what no test needs.
func served() []configuration.Resource {
	return []configuration.Resource{
		{Version: "v1", Name: "pods", Kind: "Pod", Namespaced: true, Subresources: []string{"binding", "ephemeralcontainers", "eviction", "exec", "status"}},
		{Version: "v1", Name: "namespaces", Kind: "Namespace", Subresources: []string{"finalize", "status"}},
		{Version: "v1", Name: "nodes", Kind: "Node"},
		{Version: "v1", Name: "events", Kind: "Event", Namespaced: true},
		{Version: "v1", Name: "configmaps", Kind: "ConfigMap", Namespaced: true},
		{Version: "v1", Name: "replicationcontrollers", Kind: "ReplicationController", Namespaced: true, Subresources: []string{"scale", "status"}},
		{Version: "v1", Name: "podtemplates", Kind: "PodTemplate", Namespaced: true},
		{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment", Namespaced: true, Subresources: []string{"scale", "status"}},
		{Group: "apps", Version: "v1", Name: "statefulsets", Kind: "StatefulSet", Namespaced: true},
		{Group: "apps", Version: "v1", Name: "controllerrevisions", Kind: "ControllerRevision", Namespaced: true},
		{Group: "batch", Version: "v1", Name: "cronjobs", Kind: "CronJob", Namespaced: true},
		{Group: "batch", Version: "v1beta1", Name: "cronjobs", Kind: "CronJob", Namespaced: true},
		{Group: "batch", Version: "v1", Name: "jobs", Kind: "Job", Namespaced: true},
		{Group: "coordination.k8s.io", Version: "v1", Name: "leases", Kind: "Lease", Namespaced: true},
		{Group: "authentication.k8s.io", Version: "v1", Name: "tokenreviews", Kind: "TokenReview"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Name: "validatingwebhookconfigurations", Kind: "ValidatingWebhookConfiguration"},
		{Group: "certificates.k8s.io", Version: "v1", Name: "certificatesigningrequests", Kind: "CertificateSigningRequest"},
		{Group: "kyverno.io", Version: "v1", Name: "clusterpolicies", Kind: "ClusterPolicy"},
		{Group: "tekton.dev", Version: "v1", Name: "tasks", Kind: "Task", Namespaced: true},
		{Group: "example.com", Version: "v1", Name: "fleets", Kind: "Fleet"},
	}
}

func input(t *testing.T, policies ...*policy.Policy) configuration.Input {
	return configuration.Input{
		Policies: policies, Resources: served(), CABundle: bundle(t),
		Endpoint: configuration.Endpoint{Namespace: "quaymaster", Service: "quaymaster"}, Namespace: "quaymaster", Exclusions: configuration.Exclusions{ExcludedNamespaces: []string{"kube-system"}},
	}
}

type edit func(*policy.Policy)

// about returns a policy about kinds of any group and version.
func about(kinds []string, edits ...edit) *policy.Policy {
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "p"}
	for _, kind := range kinds {
		p.Targets = append(p.Targets, policy.Target{Group: "*", Version: "*", Kind: kind})
	}
	for _, e := range edits {
		e(p)
	}
	return p
}

func named(name string) edit { return func(p *policy.Policy) { p.Name = name } }

func in(namespace string) edit {
	return func(p *policy.Policy) { p.Kind, p.Namespace = "Policy", namespace }
}

func open(p *policy.Policy) { p.FailOpen = true }

func patience(d time.Duration) edit { return func(p *policy.Policy) { p.Timeout = d } }

func full(t *testing.T) configuration.Input {
	in := input(t, about([]string{"Pod", "Deployment", "CronJob", "Task"}, named("signed")),
		about([]string{"Job"}, named("patient"), open, patience(25*time.Second)), about([]string{"StatefulSet", "Nothing"}, in("shop")))
	in.Documents = []schema.GroupResource{{Group: "kyverno.io", Resource: "policies"}, {Group: "kyverno.io", Resource: "clusterpolicies"}, {Group: "kyverno.io", Resource: "policyexceptions"}}
	in.Owner = metav1.OwnerReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "quaymaster", UID: "7b0e"}
	return in
}

// summed is the sum in the name of a webhook for single namespaces.
var summed = regexp.MustCompile("(-own|-not)-[0-9a-f]{8,32}")

// lines writes webhooks so that a person can compare them:
// "name [selector]: operations group/versions/resources ...".
func lines(webhooks []admission.ValidatingWebhook) []string {
	var all []string
	for _, w := range webhooks {
		if w.Name == probeName {
			continue // TestProbe looks at it
		}
		line := summed.ReplaceAllString(strings.TrimSuffix(w.Name, ".validate.quaymaster.dev"), "$1")
		for _, e := range chosen(w.NamespaceSelector) {
			line += " " + string(e.Operator) + "(" + strings.Join(e.Values, " ") + ")"
		}
		for _, r := range w.Rules {
			line += " | "
			for _, o := range r.Operations {
				line += string(o)[:1]
			}
			line += " " + r.APIGroups[0] + "/" + strings.Join(r.APIVersions, ",") + "/" + strings.Join(r.Resources, ",")
			if *r.Scope != admission.NamespacedScope {
				line += " " + string(*r.Scope)
			}
		}
		all = append(all, line)
	}
	return all
}

// chosen are the requirements of a selector but for that of BreakGlass, which nearly
// all have; see TestBreakGlass.
func chosen(selector *metav1.LabelSelector) []metav1.LabelSelectorRequirement {
	return slices.DeleteFunc(slices.Clone(selector.MatchExpressions), func(r metav1.LabelSelectorRequirement) bool { return r.Key == configuration.BreakGlass })
}
