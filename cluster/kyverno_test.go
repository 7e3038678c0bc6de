package cluster_test

import (
	"errors"
	"testing"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/cluster"
)

// TestKyverno: its webhook configurations or its Deployment show that it is installed, and
// those of others do not.
func TestKyverno(t *testing.T) {
	named := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "policies", Labels: labels}
	}
	controller := func(partOf string) map[string]string {
		return map[string]string{"app.kubernetes.io/component": "admission-controller", "app.kubernetes.io/part-of": partOf}
	}
	for _, row := range []struct {
		reason    string
		object    runtime.Object
		installed bool
	}{
		{"a validating configuration", &admission.ValidatingWebhookConfiguration{ObjectMeta: named("kyverno-resource-validating-webhook-cfg", nil)}, true},
		{"a mutating configuration", &admission.MutatingWebhookConfiguration{ObjectMeta: named("kyverno-policy-mutating-webhook-cfg", nil)}, true},
		{"a Deployment", &apps.Deployment{ObjectMeta: named("admission", controller("kyverno"))}, true},
		{"the gateway's configuration", &admission.ValidatingWebhookConfiguration{ObjectMeta: named("quaymaster", nil)}, false},
		{"another admission controller", &apps.Deployment{ObjectMeta: named("admission", controller("other"))}, false},
		{"another Deployment of that name", &apps.Deployment{ObjectMeta: named("kyverno", nil)}, false},
	} {
		if got := cluster.NewKyverno(fake.NewClientset(row.object), time.Now).Installed(t.Context()); got != row.installed {
			t.Errorf("%s: %t", row.reason, got)
		}
	}
}

// TestKyvernoIsRemembered for a minute, and longer while the API server does not answer.
func TestKyvernoIsRemembered(t *testing.T) {
	client := fake.NewClientset(&admission.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kyverno-policy"}})
	now, lists, fails := time.Now(), 0, false
	client.PrependReactor("list", "validatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
		lists++
		return fails, nil, errors.New("no answer")
	})
	kyverno := cluster.NewKyverno(client, func() time.Time { return now })
	for _, row := range []struct {
		reason string
		after  time.Duration
		fails  bool
		lists  int
	}{
		{"at first", 0, false, 1}, {"soon after", 59 * time.Second, false, 1}, {"later", 2 * time.Second, false, 2}, {"without an answer", time.Hour, true, 3}, {"which is tried again", 0, true, 4},
	} {
		now, fails = now.Add(row.after), row.fails
		if !kyverno.Installed(t.Context()) || lists != row.lists {
			t.Errorf("%s: forgotten, or %d lists", row.reason, lists)
		}
	}
	fails = true
	if cluster.NewKyverno(client, time.Now).Installed(t.Context()) {
		t.Error("an unlisted installation counts as installed")
	}
}
