package status

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// The condition of a policy, an override or a TrustRoot, and its reasons, which
// docs/gateway.md lists.
const (
	readyCondition = "Ready"

	// reasonActive (True): the policy is in force.
	reasonActive = "Active"
	// reasonBroken (False): the document cannot be used.
	reasonBroken = "Broken"
	// reasonWithheld (False): a setting or the guard keeps it from denying.
	reasonWithheld = "Withheld"
	// reasonNotRead (False): the keys of a TrustRoot cannot be read.
	reasonNotRead = "NotRead"
	// reasonKindNotServed (False): the API server does not serve any kind that it names.
	reasonKindNotServed = "KindNotServed"
	// reasonExcluded (False): it enforces in excluded namespaces alone.
	reasonExcluded = "NamespacesExcluded"
	// reasonNotConfigured (Unknown): the webhook configurations do not contain it yet.
	reasonNotConfigured = "WebhookNotConfigured"
	// reasonNotObserved (Unknown): they do, and no API server has been observed to use them.
	reasonNotObserved = "WebhookNotObserved"
	// reasonProbeForbidden (Unknown): the gateway is not permitted to probe whether they are
	// used.
	reasonProbeForbidden = "ProbeForbidden"
	// reasonNoController (Unknown): no process runs its rules about other objects.
	reasonNoController = "ControllerNotRunning"
	// reasonPermissionMissing (False): RBAC does not permit to delete some objects that it names.
	reasonPermissionMissing = "PermissionMissing"
	// reasonNotManaged (Unknown): the gateway does not manage the configurations.
	reasonNotManaged = "WebhookNotManaged"
)

// condition returns the condition Ready of a document of the cluster. It is not settled while a
// new leader has not yet determined which configurations are in force.
func (t Reporter) condition(entry catalog.Entry, object Object) (condition metav1.Condition, settled bool) {
	condition = metav1.Condition{Type: readyCondition, ObservedGeneration: object.Generation}
	settled = true
	set := func(status metav1.ConditionStatus, reason, message string) {
		condition.Status, condition.Reason, condition.Message = status, reason, gateway.Shorten(message, gateway.MaxStatusMessage)
	}
	var round policyRound
	var now effect
	if t.Readiness != nil && entry.Policy != nil {
		round = t.Readiness.about(entry.Policy.ID())
	}
	if t.Readiness != nil && isAdmitted(entry) {
		now = t.Readiness.of(object.Since, round.renewed)
	}
	root := ""
	if entry.Root != nil && t.Roots != nil {
		root = t.Roots(entry.Root)
	}
	switch {
	case entry.State == catalog.Broken:
		set(metav1.ConditionFalse, reasonBroken, entry.Why)
	case t.why(entry) != "":
		set(metav1.ConditionFalse, reasonWithheld, t.why(entry))
	case root != "":
		set(metav1.ConditionFalse, reasonNotRead, root)
	case round.absent.All:
		set(metav1.ConditionFalse, reasonKindNotServed, "the API server serves none of the kinds that it names: "+strings.Join(round.absent.Kinds, ", ")+
			"; correct the policy if that is a mistake; if a definition is yet to be installed, the policy is in force from then on")
	case round.excluded && isAdmitted(entry) && !entry.Policy.AuditOnly && !entry.Policy.OnlyScanned:
		set(metav1.ConditionFalse, reasonExcluded, "it denies nothing: the namespaces that it names have no webhooks ("+strings.Join(round.warnings, "; ")+
			"); correct the namespaces, or change webhooks.excludedNamespaces")
	case t.Deletions.unread(entry.Policy):
		settled = false
		set(metav1.ConditionUnknown, reasonNoController, "its permissions to delete objects are being read")
	case t.Deletions.missing(entry.Policy) != "":
		set(metav1.ConditionFalse, reasonPermissionMissing, t.Deletions.missing(entry.Policy))
	case t.Deletions.idle(entry.Policy):
		set(metav1.ConditionUnknown, reasonNoController, "its objects are not deleted: no process with the role cleanup leads")
	case runsElsewhere(entry) && t.Controllers != nil && !t.Controllers.Runs():
		set(metav1.ConditionUnknown, reasonNoController, "its rules about other objects are not run: no process with the role background leads")
	case now.reason != "":
		settled = now.settled
		set(metav1.ConditionUnknown, now.reason, now.why)
	default:
		settled = now.settled || !isAdmitted(entry) || t.Readiness == nil
		message := "it is active"
		if limits := round.limits(entry); len(limits) > 0 {
			message += ", but " + strings.Join(limits, "; ")
		}
		if round.native != "" {
			message += "; " + round.native
		}
		set(metav1.ConditionTrue, reasonActive, message)
	}
	return condition, settled
}

// Condition returns the condition Ready of a document; the object is zero for one of a folder.
func (t Reporter) Condition(entry catalog.Entry, object Object) metav1.Condition {
	condition, _ := t.condition(entry, object)
	return condition
}

// limits are the reasons why an active policy does not apply to everything that it names.
func (r policyRound) limits(entry catalog.Entry) []string {
	var list []string
	if entry.Why != "" {
		list = append(list, entry.Why)
	}
	if entry.Policy != nil {
		list = append(list, configuration.Deviations(entry.Policy)...)
	}
	if len(r.warnings) == 0 && len(r.absent.Kinds) > 0 && entry.Why == "" {
		list = append(list, "the API server does not serve "+strings.Join(r.absent.Kinds, ", "))
	}
	return append(list, r.warnings...)
}

// runsElsewhere reports whether a policy has rules that the background controller runs.
func runsElsewhere(entry catalog.Entry) bool {
	p := entry.Policy
	return p != nil && !isAdmitted(entry) && (len(p.Generations)+len(p.Alterations) > 0 || len(p.Deletions) == 0)
}

// isAdmitted reports whether a document takes effect at admission, and so only once the API
// server calls the gateway for the named kinds. The background controller runs rules about other
// objects.
func isAdmitted(entry catalog.Entry) bool {
	switch p := entry.Policy; {
	case p != nil:
		return len(p.Rules)+len(p.Validations)+len(p.Mutations) > 0
	case entry.Override != nil:
		return entry.Override.Effect == policy.OverrideDeny
	}
	return false
}
