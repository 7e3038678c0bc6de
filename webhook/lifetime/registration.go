package lifetime

import (
	"fmt"

	registration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/policy/ttl"
)

const (
	// Path is the path of the endpoint.
	Path = "/ttl"
	// Name is the name of the webhook.
	Name = "ttl.quaymaster.dev"
	// seconds bounds a call.
	seconds = 5
)

// Webhook returns the webhook for objects with the label, of all kinds and subresources: a label may be
// written through these, too. It is called where the label or the annotation with the grant changes.
// It fails open: without a grant the label has no effect, and no write waits for the gateway.
func Webhook(client registration.WebhookClientConfig, annotation string) registration.MutatingWebhook {
	scope, failure, match := registration.AllScopes, registration.Ignore, registration.Equivalent
	effects, again, wait := registration.SideEffectClassNone, registration.IfNeededReinvocationPolicy, int32(seconds)
	changes := func(member, key string) string {
		of := func(object string) string {
			return fmt.Sprintf(`(has(%[1]s.metadata.%[2]s) && %[3]q in %[1]s.metadata.%[2]s ? %[1]s.metadata.%[2]s[%[3]q] : "")`, object, member, key)
		}
		return of("object") + " != " + of("oldObject")
	}
	return registration.MutatingWebhook{
		Name: Name, ClientConfig: client, FailurePolicy: &failure, MatchPolicy: &match, SideEffects: &effects, TimeoutSeconds: &wait,
		Rules: []registration.RuleWithOperations{{
			Operations: []registration.OperationType{registration.Create, registration.Update},
			Rule:       registration.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}, Scope: &scope},
		}},
		NamespaceSelector: &metav1.LabelSelector{},
		ObjectSelector:    &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: ttl.Label, Operator: metav1.LabelSelectorOpExists}}},
		MatchConditions: []registration.MatchCondition{{
			Name: "lifetime-changes", Expression: `request.operation != "UPDATE" || ` + changes("labels", ttl.Label) + " || " + changes("annotations", annotation),
		}},
		AdmissionReviewVersions: []string{"v1"}, ReinvocationPolicy: &again,
	}
}
