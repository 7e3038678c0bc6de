package chart

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// admitted are the images that the policy about the gateway's own namespace names.
func admitted(all []*unstructured.Unstructured, name string) any {
	return at(one(all, "ValidatingAdmissionPolicy", name), "spec", "variables", 0, "expression")
}

// TestOwnImages renders the policy for images of the gateway's own namespace. How the API
// server enforces it, and what upgrades keep, is tested in test/e2e (ownimages_test.go).
func TestOwnImages(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for _, row := range []struct{ reason, values, want string }{
		{"by tag", "image: {tag: v7}", "['ghcr.io/quaymaster/quaymaster:v7']"},
		{"the digest wins", "image: {tag: v7, digest: '" + digest + "'}", "['ghcr.io/quaymaster/quaymaster@" + digest + "']"},
		{"and those of values", "image: {tag: v7}\nownNamespace: {images: [a.example/x:1, 'ghcr.io/quaymaster/quaymaster:v7']}", "['ghcr.io/quaymaster/quaymaster:v7', 'a.example/x:1']"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			all := objects(t, render(t, gatewayChart, file(t, row.values)))
			equal(t, row.want, admitted(all, "quaymaster-own-images"))
			image := fmt.Sprint(at(container(one(all, "Deployment", "quaymaster")), "image"))
			if !strings.Contains(fmt.Sprint(admitted(all, "quaymaster-own-images")), "'"+image+"'") {
				t.Errorf("%s may not run", image)
			}
		})
	}
	for reason, row := range map[string]struct{ values, says string }{
		"an image that is no text for an expression": {"ownNamespace: {images: [\"x'] + ['y\"]}", "ownNamespace"},
		"a repository that is none":                  {"image: {repository: \"x'+'y\"}", "repository"},
		"more releases than are kept":                {"ownNamespace: {previous: 11}", "previous"},
	} {
		if said := refuse(t, gatewayChart, file(t, row.values)); !strings.Contains(said, row.says) {
			t.Errorf("%s: %s", reason, said)
		}
	}
	// In a namespace that is others', too, their Pods would be refused.
	for _, namespace := range []string{"kube-system", "default"} {
		if said := refuse(t, gatewayChart, "--namespace="+namespace); !strings.Contains(said, "ownNamespace.guard=false") {
			t.Errorf("%s: %s", namespace, said)
		}
		if one(objects(t, renderAs(t, "quaymaster", gatewayChart, namespace, "--set=ownNamespace.guard=false")), "ValidatingAdmissionPolicy", "quaymaster-own-images") != nil {
			t.Errorf("%s is guarded all the same", namespace)
		}
	}
}

// TestGuardsOfAnotherRelease: they name its namespace and its accounts.
func TestGuardsOfAnotherRelease(t *testing.T) {
	all := objects(t, renderAs(t, "east", gatewayChart, "security", "--set=serviceAccount.name=given,roles.separate=true"))
	equal(t, "security", at(one(all, "ValidatingAdmissionPolicy", "east-quaymaster-own-images"), "spec", "matchConstraints", "namespaceSelector", "matchLabels", "kubernetes.io/metadata.name"))
	who := fmt.Sprint(at(one(all, "ValidatingAdmissionPolicy", "east-quaymaster-break-glass-closing"), "spec", "matchConditions", 0, "expression"))
	for _, account := range []string{"'system:serviceaccount:security:given'", "'system:serviceaccount:security:given-controller'"} {
		if !strings.Contains(who, account) {
			t.Errorf("%s is not confined: %s", account, who)
		}
	}
	if one(all, "ClusterRole", "east-quaymaster-break-glass") == nil {
		t.Error("there is no role to open namespaces by")
	}
}
