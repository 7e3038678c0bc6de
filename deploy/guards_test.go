package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
)

// TestGuards: the API server's own admission policies fail closed, are bound and deny, and name
// the installed image, account and namespace.
func TestGuards(t *testing.T) {
	bound := map[string][]admission.ValidationAction{}
	for _, b := range all[admission.ValidatingAdmissionPolicyBinding](t) {
		if b.Spec.MatchResources != nil || b.Spec.ParamRef != nil {
			t.Errorf("%s binds a part of its policy", b.Name)
		}
		bound[b.Spec.PolicyName] = b.Spec.ValidationActions
	}
	texts := map[string]string{}
	for _, p := range all[admission.ValidatingAdmissionPolicy](t) {
		if p.Spec.FailurePolicy == nil || *p.Spec.FailurePolicy != admission.Fail {
			t.Errorf("%s fails open", p.Name)
		}
		if !slices.Equal(bound[p.Name], []admission.ValidationAction{admission.Deny}) {
			t.Errorf("%s is bound to %v", p.Name, bound[p.Name])
		}
		texts[p.Name] = p.Spec.String()
		if strings.Contains(p.Name, "break-glass") {
			resources := p.Spec.MatchConstraints.ResourceRules[0].Resources
			if !slices.Equal(resources, []string{"namespaces", "namespaces/status", "namespaces/finalize"}) || p.Spec.MatchConstraints.NamespaceSelector != nil {
				t.Errorf("%s matches %v", p.Name, resources)
			}
		}
	}
	namespace := all[core.Namespace](t)[0].Name
	account := fmt.Sprintf("'system:serviceaccount:%s:%s'", namespace, all[core.ServiceAccount](t)[0].Name)
	if !strings.Contains(texts["quaymaster-break-glass-closing"], account) {
		t.Errorf("nothing confines %s", account)
	}
	own := texts["quaymaster-own-images"]
	for _, container := range all[apps.Deployment](t)[0].Spec.Template.Spec.Containers {
		if !strings.Contains(own, "'"+container.Image+"'") || !strings.Contains(own, "kubernetes.io/metadata.name: "+namespace) && !strings.Contains(own, "kubernetes.io/metadata.name:"+namespace) {
			t.Errorf("%s is not admitted in %s by %s", container.Image, namespace, own)
		}
	}
	if len(texts) != 3 {
		t.Errorf("there are %d policies", len(texts))
	}
}
