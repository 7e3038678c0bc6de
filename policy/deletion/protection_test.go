package deletion_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/deletion"
)

// naming is a rule about kinds.
type naming []policy.Target

func (naming) Name() string                    { return "old" }
func (n naming) Targets() []policy.Target      { return n }
func (naming) Labels() string                  { return "" }
func (naming) Propagation() policy.Propagation { return "" }
func (naming) Next(time.Time) time.Time        { return time.Time{} }
func (naming) Decide(context.Context, policy.Case) policy.DeletionDecision {
	return policy.DeletionDecision{}
}

// TestProtection: each protected object has a twin that may be deleted.
func TestProtection(t *testing.T) {
	const crds = "apiextensions.k8s.io"
	gateway := map[string]any{"app.kubernetes.io/name": "quaymaster"}
	own := deletion.Protection{Namespace: "gateway"}
	allows := func(kinds ...deletion.Kind) deletion.Protection {
		p := own
		p.AllowedKinds = kinds
		return p
	}
	opened := own
	opened.AllowedNamespaces = []string{"kube-system"}
	subject := func(group, kind, namespace, name string) *policy.Subject {
		return &policy.Subject{Group: group, Kind: kind, Namespace: namespace, Name: name}
	}
	for _, c := range []struct {
		reason  string
		protect deletion.Protection
		rule    naming
		subject *policy.Subject
		labels  map[string]any
		want    string
	}{
		{"any namespace", own, nil, subject("", "Pod", "shop", "a"), nil, ""},
		{"no namespace", own, nil, subject("", "Node", "", "a"), nil, ""},
		{"kube-system", own, nil, subject("", "Pod", "kube-system", "a"), nil, "the namespace kube-system is protected"},
		{"kube-public", own, nil, subject("", "ConfigMap", "kube-public", "a"), nil, "the namespace kube-public is protected"},
		{"kube-node-lease", own, nil, subject("coordination.k8s.io", "Lease", "kube-node-lease", "a"), nil, "the namespace kube-node-lease is protected"},
		{"the gateway's namespace", own, nil, subject("", "Pod", "gateway", "a"), nil, "the namespace gateway is protected"},
		{"without a namespace of its own", deletion.Protection{}, nil, subject("", "Pod", "gateway", "a"), nil, ""},
		{"an allowed namespace", opened, nil, subject("", "Pod", "kube-system", "a"), nil, ""},
		{"a Namespace", own, nil, subject("", "Namespace", "", "shop"), nil, "Namespaces are protected"},
		{"a Namespace that is named and not allowed", own, naming{{Kind: "Namespace"}}, subject("", "Namespace", "", "shop"), nil, "Namespaces are protected"},
		{"a Namespace that is allowed and not named", allows(deletion.Kind{Kind: "Namespace"}), naming{{Group: "*", Kind: "Namespace"}},
			subject("", "Namespace", "", "shop"), nil, "Namespaces are protected, and the policy does not name the kind with its group"},
		{"a Namespace that is named and allowed", allows(deletion.Kind{Kind: "Namespace"}), naming{{Kind: "Namespace"}}, subject("", "Namespace", "", "shop"), nil, ""},
		{"a protected Namespace in spite of that", allows(deletion.Kind{Kind: "Namespace"}), naming{{Kind: "Namespace"}}, subject("", "Namespace", "kube-system", "kube-system"), nil,
			"the namespace kube-system is protected"},
		{"a kind of the same name", own, nil, subject("example.com", "Namespace", "", "kube-system"), nil, ""},
		{"a definition", own, nil, subject(crds, "CustomResourceDefinition", "", "a"), nil, "CustomResourceDefinitions are protected"},
		{"a definition that is named and allowed", allows(deletion.Kind{Group: crds, Kind: "CustomResourceDefinition"}),
			naming{{Group: crds, Kind: "CustomResourceDefinition"}}, subject(crds, "CustomResourceDefinition", "", "a"), nil, ""},
		{"a policy", own, nil, subject("kyverno.io", "Policy", "shop", "a"), nil, "the documents of kyverno.io are protected"},
		{"a mirror", own, nil, subject("quaymaster.dev", "RegistryMirror", "", "a"), nil, "the documents of quaymaster.dev are protected"},
		{"a webhook configuration", own, nil, subject("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "", "a"), nil, "objects that configure admission are protected"},
		{"the gateway's role", own, nil, subject("rbac.authorization.k8s.io", "ClusterRole", "", "a"), gateway, "objects of the gateway are protected"},
		{"another role", own, nil, subject("rbac.authorization.k8s.io", "ClusterRole", "", "a"), nil, ""},
		{"its label on an object of a user", own, nil, subject("", "Pod", "shop", "a"), gateway, ""},
	} {
		if got := c.protect.Of(c.rule, c.subject, c.labels); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
	if got := own.Namespaces(); !slices.Equal(got, []string{"gateway", "kube-node-lease", "kube-public", "kube-system"}) {
		t.Error(got)
	}
}

// TestParseKind reads the texts of String, and refuses others.
func TestParseKind(t *testing.T) {
	for _, text := range []string{"Namespace", "apiextensions.k8s.io/CustomResourceDefinition"} {
		if kind, err := deletion.ParseKind(text); err != nil || kind.String() != text {
			t.Errorf("%s: %v, %v", text, kind, err)
		}
	}
	for _, text := range []string{"", "*", "apps/", "/Pod", "apps/v1/Deployment", "Pod*", "a b"} {
		if kind, err := deletion.ParseKind(text); err == nil {
			t.Errorf("%q: %v", text, kind)
		}
	}
}

func ExampleProtection_Of() {
	protection := deletion.Protection{Namespace: "quaymaster"}
	pod := &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "kube-system", Name: "etcd"}
	fmt.Println(protection.Of(naming{{Version: "v1", Kind: "Pod"}}, pod, nil))
	// Output: the namespace kube-system is protected
}
