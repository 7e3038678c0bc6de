package status

import (
	"errors"
	"log/slog"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/gateway/kinds"
)

func metadataOf(apiVersion, kind, name string, labels map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// TestStatusOwners: auto writes the status of an engine's kinds where that engine is absent,
// and not where this cannot be found out; our own kinds always have theirs.
func TestStatusOwners(t *testing.T) {
	configuration := func(kind, name string) runtime.Object {
		return metadataOf("admissionregistration.k8s.io/v1", kind, name, nil)
	}
	deployment := func(labels map[string]string) runtime.Object { return metadataOf("apps/v1", "Deployment", "x", labels) }
	component := "app.kubernetes.io/component"
	for _, row := range []struct {
		reason            string
		setting           string
		there             []runtime.Object
		refuse            string // the resource that may not be listed
		kyverno, sigstore bool
	}{
		{"no other engine", "", []runtime.Object{configuration("ValidatingWebhookConfiguration", "quaymaster"), deployment(map[string]string{component: "web"})}, "", true, true},
		{"the same, by name", "auto", nil, "", true, true},
		{"a webhook configuration of Kyverno's", "auto", []runtime.Object{configuration("ValidatingWebhookConfiguration", "kyverno-policy-validating-webhook-cfg")}, "", false, true},
		{"a mutating one", "auto", []runtime.Object{configuration("MutatingWebhookConfiguration", "kyverno-verify-mutating-webhook-cfg")}, "", false, true},
		{"Kyverno's Deployment", "auto", []runtime.Object{deployment(map[string]string{component: "admission-controller", "app.kubernetes.io/part-of": "kyverno"})}, "", false, true},
		{"its Deployment of a release with another name", "auto", []runtime.Object{deployment(map[string]string{component: "admission-controller", "app.kubernetes.io/part-of": "x", "helm.sh/chart": "kyverno-3.4.0"})}, "", false, true},
		{"another product's admission controller", "auto", []runtime.Object{deployment(map[string]string{component: "admission-controller", "app.kubernetes.io/part-of": "ingress"})}, "", true, true},
		{"a webhook configuration of policy-controller's", "auto", []runtime.Object{configuration("MutatingWebhookConfiguration", "policy.sigstore.dev")}, "", true, false},
		{"its Deployment", "auto", []runtime.Object{deployment(map[string]string{"app.kubernetes.io/name": "policy-controller"})}, "", true, false},
		{"Deployments may not be listed", "auto", nil, "deployments", false, false},
		{"webhook configurations may not be listed", "auto", nil, "validatingwebhookconfigurations", false, false},
		{"always", "always", []runtime.Object{configuration("ValidatingWebhookConfiguration", "kyverno-x")}, "", true, true},
		{"never", "never", nil, "", false, false},
	} {
		scheme := fake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		client := fake.NewSimpleMetadataClient(scheme, row.there...)
		if row.refuse != "" {
			client.PrependReactor("list", row.refuse, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("forbidden") })
		}
		o := &Owners{Always: row.setting == "always", Never: row.setting == "never", Client: client, Log: slog.New(slog.DiscardHandler)}
		if o.Writes(kinds.KyvernoGroup) != (row.setting == "always") || o.Writes(kinds.SigstoreGroup) != (row.setting == "always") {
			t.Errorf("%s: written before it is known", row.reason)
		}
		o.look(t.Context())
		if o.Writes(kinds.KyvernoGroup) != row.kyverno || o.Writes(kinds.CELGroup) != row.kyverno || o.Writes(kinds.SigstoreGroup) != row.sigstore || !o.Writes(kinds.OwnGroup) {
			t.Errorf("%s: written are Kyverno's: %t, policy-controller's: %t, ours: %t", row.reason, o.Writes(kinds.KyvernoGroup), o.Writes(kinds.SigstoreGroup), o.Writes(kinds.OwnGroup))
		}
	}
}

// TestStatusOwnersFollow: an engine that comes takes its status over, one that goes leaves it,
// and what cannot be found out changes nothing.
func TestStatusOwnersFollow(t *testing.T) {
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := fake.NewSimpleMetadataClient(scheme)
	o := &Owners{Client: client, Log: slog.New(slog.DiscardHandler)}
	var there []metav1.PartialObjectMetadata
	var failed error
	client.PrependReactor("list", "mutatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
		if failed != nil {
			return true, nil, failed
		}
		list := &metav1.List{}
		for i := range there {
			list.Items = append(list.Items, runtime.RawExtension{Object: &there[i]})
		}
		return true, list, nil
	})
	kyverno := []metav1.PartialObjectMetadata{*metadataOf("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "kyverno-x", nil)}
	for _, step := range []struct {
		reason           string
		there            []metav1.PartialObjectMetadata
		failed           error
		changed, written bool
	}{
		{"none", nil, nil, true, true},
		{"none still", nil, nil, false, true},
		{"it comes", kyverno, nil, true, false},
		{"nothing can be found out", nil, errors.New("away"), false, false},
		{"it went", nil, nil, true, true},
		{"nothing can be found out", kyverno, errors.New("away"), false, true},
	} {
		there, failed = step.there, step.failed
		if changed := o.look(t.Context()); changed != step.changed || o.Writes(kinds.KyvernoGroup) != step.written {
			t.Errorf("%s: changed %t, written %t", step.reason, changed, o.Writes(kinds.KyvernoGroup))
		}
	}
}
