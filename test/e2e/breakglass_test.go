package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
)

// The label and annotations of docs/break-glass.md.
const (
	glassLabel  = "quaymaster.dev/break-glass"
	glassReason = glassLabel + "-reason"
	glassUntil  = glassLabel + "-until"
	glassBy     = glassLabel + "-by"
)

// glassRights lets a tenant change namespaces in every way, and a user on call open them as
// in docs/break-glass.md.
const glassRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tenant}
rules:
  - {apiGroups: [""], resources: [namespaces, namespaces/status, namespaces/finalize], verbs: [create, get, update, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tenant}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: open-shop}
rules:
  - {apiGroups: [""], resources: [namespaces], resourceNames: [shop], verbs: [get, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: on-call-shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: open-shop}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: on-call}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: on-call}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: quaymaster-break-glass}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: on-call}]
`

// outage is a cluster with a gateway that is down and fails closed.
type outage struct {
	*release
	tenant, onCall *kubernetes.Clientset
	signed, bare   string
	log            string // folder of decision logs
}

// TestBreakGlass: with the gateway down and failing closed, only a user with the verb, a
// reason and an end opens a namespace. Once the gateway is back, it reports and closes it,
// and the scan finds the pods that were admitted.
func TestBreakGlass(t *testing.T) {
	n := newOutage(t)
	t.Run("users without the verb", n.tryOthers)
	t.Run("not without a reason and an end", n.tryIncomplete)
	if t.Failed() {
		return
	}
	n.refusedPods(t)
	n.open(t, 2*time.Hour)
	t.Run("pods of controllers come", n.tryPods)
	t.Run("other changes, and extensions", n.tryKeeping)
	first := n.pod(t, "quaymaster", 0)
	t.Run("it is reported", func(t *testing.T) { n.tryTold(t, first) })
	t.Run("the gateway may only close", n.tryToken)
	t.Run("it expires", func(t *testing.T) { n.tryExpiry(t, first) })
	first.may(t)
	t.Run("while the gateway is away", func(t *testing.T) { n.tryRestart(t, first) })
}

// newOutage installs the chart, has the gateway deny unsigned images, and ends it.
func newOutage(t *testing.T) *outage {
	n := &outage{release: released(t), log: t.TempDir()}
	n.run(t, "install", "definitions", n.chart("quaymaster-crds"), "--create-namespace")
	n.run(t, "install", "quaymaster", n.chart("quaymaster"), "--set=configuration.decisionLog.folder="+n.log)
	signed, err := n.env.Signed("shop/web", "1.0")
	must(t, err)
	n.signed, n.bare = signed.Name, n.env.Unsigned("shop/bare", "1.0").Name
	_, err = n.client.AppsV1().Deployments("shop").Create(t.Context(), deployment("web", n.bare, 2, nil), meta.CreateOptions{})
	must(t, err, n.plane.Namespace(t.Context(), "bank"))
	n.awaitPods(t) // before there is a policy
	text, err := n.env.YAML(env.Policy{Name: "glass-signed", Namespaces: []string{"shop", "bank"}})
	must(t, err, n.plane.ApplyYAML(t.Context(), text), n.plane.ApplyYAML(t.Context(), glassRights))
	for name, client := range map[string]**kubernetes.Clientset{"tenant": &n.tenant, "on-call": &n.onCall} {
		config, err := n.plane.User(name)
		must(t, err)
		*client = clientset(t, config)
	}
	gateway := n.pod(t, "quaymaster", 0)
	n.awaitDenial(t, n.bare)
	must(t, gateway.Stop(t.Context()))
	return n
}

// openPatch is a merge patch of the label and its annotations; an empty text removes one.
func openPatch(reason, until, by string) []byte {
	notes := ""
	for key, value := range map[string]string{glassReason: reason, glassUntil: until, glassBy: by} {
		if value != "" {
			notes += fmt.Sprintf(",%q:%q", key, value)
		}
	}
	return fmt.Appendf(nil, `{"metadata":{"labels":{%q:""},"annotations":{%s}}}`, glassLabel, strings.TrimPrefix(notes, ","))
}

func in(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }

func patched(ctx context.Context, by *kubernetes.Clientset, namespace string, patch []byte, subresources ...string) error {
	_, err := by.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType, patch, meta.PatchOptions{}, subresources...)
	return err
}

// refused wants a policy of the chart's to have refused something, for that reason.
func refused(t *testing.T, what string, err error, because string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'quaymaster-") || !strings.Contains(err.Error(), because) {
		t.Errorf("%s: got %v, want a refusal for %q", what, err, because)
	}
}

// tryOthers: the label cannot be set without the verb, in whatever way.
func (n *outage) tryOthers(t *testing.T) {
	const verb = "the verb break-glass"
	ctx, whole := t.Context(), openPatch("it burns", in(time.Hour), "")
	refused(t, "a patch", patched(ctx, n.tenant, "shop", whole), verb)
	refused(t, "a patch of the status", patched(ctx, n.tenant, "shop", whole, "status"), verb)
	shop, err := n.tenant.CoreV1().Namespaces().Get(ctx, "shop", meta.GetOptions{})
	must(t, err)
	shop.Labels[glassLabel] = ""
	shop.Annotations = map[string]string{glassReason: "it burns", glassUntil: in(time.Hour)}
	_, err = n.tenant.CoreV1().Namespaces().Finalize(ctx, shop, meta.UpdateOptions{})
	refused(t, "finalizing", err, verb)
	fresh := &core.Namespace{ObjectMeta: meta.ObjectMeta{GenerateName: "fresh-", Labels: shop.Labels, Annotations: shop.Annotations}}
	_, err = n.tenant.CoreV1().Namespaces().Create(ctx, fresh, meta.CreateOptions{})
	refused(t, "a new namespace", err, verb)
}

// tryIncomplete: not with the verb either, where something is missing or wrong.
func (n *outage) tryIncomplete(t *testing.T) {
	for _, row := range []struct{ what, reason, until, by, because string }{
		{"no reason", "", in(time.Hour), "", "-reason must give the reason"},
		{"a blank reason", "  ", in(time.Hour), "", "-reason must give the reason"},
		{"no end", "it burns", "", "", "-until must be the time of its end"},
		{"an end that is no time", "it burns", "tomorrow", "", "-until must be the time of its end"},
		{"an end in no month", "it burns", "2030-13-01T00:00:00Z", "", ""},
		{"a day and an hour", "it burns", in(25 * time.Hour), "", "24 hours at most"},
		{"in the name of another", "it burns", in(time.Hour), "tenant", "must be the name of the requester"},
	} {
		refused(t, row.what, patched(t.Context(), n.onCall, "shop", openPatch(row.reason, row.until, row.by)), row.because)
	}
}

// refusedPods takes the pods of the Deployment away and waits until new ones are refused.
func (n *outage) refusedPods(t *testing.T) {
	t.Helper()
	must(t, n.client.CoreV1().Pods("shop").DeleteCollection(t.Context(), meta.DeleteOptions{}, meta.ListOptions{}))
	eventually(t, func(ctx context.Context) error {
		sets, err := n.client.AppsV1().ReplicaSets("shop").List(ctx, meta.ListOptions{})
		if err != nil {
			return err
		}
		for _, set := range sets.Items {
			for _, c := range set.Status.Conditions {
				if c.Type == "ReplicaFailure" && strings.Contains(c.Message, "failed calling webhook") {
					return nil
				}
			}
		}
		return errors.New("the pods are not refused yet")
	})
}

// as runs a command of docs/break-glass.md or docs/runbooks.md as a user, changed by pairs.
func (n *outage) as(t *testing.T, user, page, command string, changes ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.deploy, "..", "docs", page))
	must(t, err)
	_, rest, found := strings.Cut(string(text), "\n$ "+command)
	if !found {
		t.Fatalf("docs/%s does not say %s", page, command)
	}
	rest, _, _ = strings.Cut(rest, "\n")
	config := n.plane.Admin()
	if user != "" {
		config, err = n.plane.User(user)
		must(t, err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, controlplane.WriteKubeconfig(file, config))
	shell := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(strings.NewReplacer(changes...).Replace(command+rest), "kubectl ", n.kubectl.Path+" ", 1))
	shell.Env = append(os.Environ(), "KUBECONFIG="+file)
	said, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%s%s: %v: %s", command, rest, err, said)
	}
	return string(said)
}

// open opens the shop by the command of docs/break-glass.md.
func (n *outage) open(t *testing.T, length time.Duration) {
	t.Helper()
	n.as(t, "on-call", "break-glass.md", "kubectl patch namespace shop", "+2 hours", fmt.Sprintf("+%d seconds", int(length.Seconds())))
}

func (n *outage) pods(ctx context.Context, of string) ([]core.Pod, error) {
	list, err := n.client.CoreV1().Pods("shop").List(ctx, meta.ListOptions{LabelSelector: "app=" + of})
	return list.Items, err
}

// awaitPods waits until the ReplicaSet has its pods.
func (n *outage) awaitPods(t *testing.T) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		got, err := n.pods(ctx, "web")
		if err == nil && len(got) != 2 {
			err = fmt.Errorf("%d pods", len(got))
		}
		return err
	})
}

// tryPods: those of the ReplicaSet come by themselves, and a neighbour's do not.
func (n *outage) tryPods(t *testing.T) {
	n.awaitPods(t)
	_, err := n.client.CoreV1().Pods("bank").Create(t.Context(), pod("neighbour", n.bare), meta.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("a pod in a namespace that is not open: %v", err)
	}
}

// tryKeeping: other changes of an open namespace need no verb; a change of how it is open
// needs it, also to shorten it.
func (n *outage) tryKeeping(t *testing.T) {
	ctx := t.Context()
	must(t, patched(ctx, n.tenant, "shop", []byte(`{"metadata":{"labels":{"team":"a"},"annotations":{"note":"b"}}}`)))
	for what, patch := range map[string]string{
		"a later end":     fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, glassUntil, in(20*time.Hour)),
		"no end":          fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, glassUntil),
		"another reason":  fmt.Sprintf(`{"metadata":{"annotations":{%q:"none"}}}`, glassReason),
		"another name":    fmt.Sprintf(`{"metadata":{"annotations":{%q:"tenant"}}}`, glassBy),
		"no name":         fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, glassBy),
		"another value":   fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, glassLabel),
		"all annotations": `{"metadata":{"annotations":null}}`,
	} {
		refused(t, what, patched(ctx, n.tenant, "shop", []byte(patch)), "the verb break-glass")
	}
	n.as(t, "tenant", "break-glass.md", "kubectl label namespace shop")
	refused(t, "to open it again after taking the label off", patched(ctx, n.tenant, "shop", openPatch("", "", "")), "the verb break-glass")
	n.open(t, 2*time.Hour)
}

// shows reports whether a replica's metrics have a line.
func (p *replica) shows(ctx context.Context, line string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.ready, "readyz")+"metrics", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && !strings.Contains("\n"+string(text), "\n"+line) {
		err = fmt.Errorf("metrics have no line %s", line)
	}
	return err
}

// recorded waits for a line of a replica's decision log.
func (n *outage) recorded(t *testing.T, replica string, want func(decisionlog.BreakGlass) bool) {
	t.Helper()
	eventually(t, func(context.Context) error {
		var seen []decisionlog.BreakGlass
		for line, err := range decisionlog.Read(filepath.Join(n.log, replica), 1) {
			if err != nil {
				return err
			}
			if line.Kind != decisionlog.KindBreakGlass {
				continue
			}
			seen = append(seen, *line.BreakGlass)
			if want(*line.BreakGlass) {
				return nil
			}
		}
		return fmt.Errorf("the log has %+v", seen)
	})
}

// event waits for one in the shop.
func (n *outage) event(t *testing.T, reason, note string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		all, err := n.eventsIn(ctx, "shop")
		for _, e := range all {
			if e.Reason == reason && strings.Contains(e.Note, note) && e.Regarding.Kind == "Namespace" {
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("there is no event %s with %q among %d", reason, note, len(all)))
	})
}

// tryTold: the gateway is back, and reports openings during the outage.
func (n *outage) tryTold(t *testing.T, gateway *replica) {
	eventually(t, func(ctx context.Context) error {
		return errors.Join(gateway.shows(ctx, "quaymaster_break_glass_open 1"), gateway.shows(ctx, `quaymaster_break_glass_total{event="opened"} 1`),
			gateway.shows(ctx, `quaymaster_break_glass_expiry_timestamp_seconds{open_namespace="shop"} 1.`))
	})
	if said := n.as(t, "", "runbooks.md", "kubectl get namespaces --selector="+glassLabel); !strings.Contains(said, "INC-42") {
		t.Errorf("the runbook finds %s", said)
	}
	n.event(t, "BreakGlassOpened", `by on-call: "registry is down, INC-42"`)
	n.recorded(t, "quaymaster-0", func(b decisionlog.BreakGlass) bool {
		return b.Event == "opened" && b.Namespace == "shop" && b.By == "on-call" && b.Reason == "registry is down, INC-42" && b.Manager == "kubectl-patch" && !b.Until.IsZero()
	})
	if said := n.as(t, "", "runbooks.md", "kubectl get events --all-namespaces --field-selector=reason=BreakGlassOpened"); !strings.Contains(said, "INC-42") {
		t.Errorf("the runbook finds %s", said)
	}
	if said := n.as(t, "", "runbooks.md", "kubectl auth can-i patch namespaces"); !strings.Contains(said, "yes") {
		t.Errorf("the runbook finds %s", said)
	}
	n.found(t, "web")
}

// found waits until a report of a scan has an object's image as unsigned; pods of a
// Deployment are reported as one.
func (n *outage) found(t *testing.T, name string) {
	t.Helper()
	reports, err := dynamic.NewForConfig(n.plane.Admin())
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		all, err := reportsIn(ctx, reports, policyReports, "shop")
		if err != nil {
			return err
		}
		for _, r := range all {
			for _, e := range r.Results {
				about := r.Scope
				if len(e.Resources) > 0 {
					about = &e.Resources[0]
				}
				if e.Policy == "glass-signed" && e.Result == "fail" && about != nil && about.Name == name {
					return nil
				}
			}
		}
		return fmt.Errorf("no report has a failure of %s: there are %d", name, len(all))
	})
}

// tryToken: the gateway's own account may take the label off, and nothing else.
func (n *outage) tryToken(t *testing.T) {
	ctx := t.Context()
	identity, err := n.plane.ServiceAccount(ctx, releaseNamespace, "quaymaster")
	must(t, err)
	own := clientset(t, identity)
	const whose = "'quaymaster-break-glass" // two policies forbid some of it, and either is named
	refused(t, "to open a namespace", patched(ctx, own, "bank", openPatch("it burns", in(time.Hour), "")), whose)
	for what, patch := range map[string]string{
		"to extend":               fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, glassUntil, in(20*time.Hour)),
		"to add a label":          `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`,
		"to change a label":       `{"metadata":{"labels":{"team":"x"}}}`,
		"to take another off":     `{"metadata":{"labels":{"team":null}}}`,
		"to add an annotation":    `{"metadata":{"annotations":{"x":"y"}}}`,
		"to change an annotation": `{"metadata":{"annotations":{"note":"x"}}}`,
		"to add a finalizer":      `{"metadata":{"finalizers":["x.example/y"]}}`,
	} {
		refused(t, what, patched(ctx, own, "shop", []byte(patch)), whose)
	}
	for _, subresource := range []string{"status", "finalize"} {
		if err := patched(ctx, own, "shop", openPatch("it burns", in(time.Hour), ""), subresource); err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("a patch of %s: %v", subresource, err)
		}
	}
}

// tryExpiry: when the time is over, the gateway takes the label off, pods are refused
// again, and what came in last is scanned, long before the next round is due.
func (n *outage) tryExpiry(t *testing.T, gateway *replica) {
	late, err := n.create(t, pod("late", n.bare))
	must(t, err)
	must(t, patched(t.Context(), n.onCall, "shop", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, glassUntil, in(3*time.Second))))
	n.recorded(t, "quaymaster-0", func(b decisionlog.BreakGlass) bool { return b.Event == "changed" })
	n.closed(t)
	n.recorded(t, "quaymaster-0", func(b decisionlog.BreakGlass) bool { return b.Event == "expired" && b.Namespace == "shop" })
	n.event(t, "BreakGlassClosed", "The time is over")
	eventually(t, func(ctx context.Context) error {
		return errors.Join(gateway.shows(ctx, "quaymaster_break_glass_open 0"), gateway.shows(ctx, `quaymaster_break_glass_total{event="expired"} 1`))
	})
	n.awaitDenial(t, n.bare)
	_, err = n.create(t, pod("after", n.bare))
	denied(t, "an unsigned image", err, "unsigned")
	n.found(t, late.Name)
}

// closed waits until the shop has neither the label nor its annotations, and kept others.
func (n *outage) closed(t *testing.T) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		shop, err := n.client.CoreV1().Namespaces().Get(ctx, "shop", meta.GetOptions{})
		if err != nil {
			return err
		}
		if _, open := shop.Labels[glassLabel]; open || len(shop.Annotations) != 1 || shop.Annotations["note"] != "b" || shop.Labels["team"] != "a" {
			return fmt.Errorf("it has %v and %v", shop.Labels, shop.Annotations)
		}
		return nil
	})
}

// tryRestart: namespaces that expired while no gateway ran are closed when one starts, and
// manual closings meanwhile are reported.
func (n *outage) tryRestart(t *testing.T, before *replica) {
	must(t, before.Stop(t.Context()))
	n.open(t, 2*time.Second)
	eventually(t, func(ctx context.Context) error {
		shop, err := n.client.CoreV1().Namespaces().Get(ctx, "shop", meta.GetOptions{})
		if err == nil && shop.Annotations[glassUntil] > in(0) {
			err = errors.New("its time is not over yet")
		}
		return err
	})
	next := n.pod(t, "quaymaster", 1)
	n.closed(t)
	n.recorded(t, "quaymaster-1", func(b decisionlog.BreakGlass) bool { return b.Event == "expired" })
	n.open(t, time.Hour)
	n.recorded(t, "quaymaster-1", func(b decisionlog.BreakGlass) bool { return b.Event == "opened" && b.Until.After(time.Now()) })
	must(t, next.Stop(t.Context()))
	off := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null},"annotations":{%q:null,%q:null,%q:null}}}`, glassLabel, glassReason, glassUntil, glassBy)
	must(t, patched(t.Context(), n.tenant, "shop", off))
	n.pod(t, "quaymaster", 2)
	n.recorded(t, "quaymaster-2", func(b decisionlog.BreakGlass) bool { return b.Event == "removed" && b.By == "on-call" })
}
