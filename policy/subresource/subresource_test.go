package subresource_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/subresource"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestCheck: every subresource of Kubernetes is derived or refused with its reason, and Of agrees.
func TestCheck(t *testing.T) {
	const (
		traceless = "leaves nothing in the object"
		deleting  = "being deleted"
		replicas  = "chooses the field of its replicas"
		custom    = "only the status"
	)
	reasons := map[string]string{
		"attach": traceless, "eviction": traceless, "exec": traceless, "log": traceless, "portforward": traceless, "proxy": traceless, "token": traceless,
		"finalize": deleting,
	}
	for _, r := range builtin.Resources() {
		for _, name := range r.Subresources() {
			for _, group := range []string{r.Group, "*"} {
				err, want := subresource.Check(group, r.Kind, name), reasons[name]
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s %s/%s: %v", group, r.Kind, name, err)
				}
			}
			if is := slices.Contains(subresource.Of(r.Group, r.Kind), name); is != (reasons[name] == "") {
				t.Errorf("%s/%s: derived %t", r.Kind, name, is)
			}
		}
	}
	for _, c := range []struct{ group, kind, name, want string }{
		{"example.com", "Fleet", "status", ""},
		{"example.com", "Fleet", "scale", replicas},
		{"example.com", "Fleet", "console", custom},
		{"serving.example.com", "Service", "status", ""},
		{"serving.example.com", "Service", "proxy", custom},
		{"", "Pod", "*", "name the subresources"},
	} {
		if err := subresource.Check(c.group, c.kind, c.name); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s/%s of %s: %v", c.kind, c.name, c.group, err)
		}
	}
	if got := subresource.Of("example.com", "Fleet"); !slices.Equal(got, []string{"status"}) {
		t.Error(got)
	}
}

// TestSubject: requests have the operation and the body that an API server sends.
func TestSubject(t *testing.T) {
	const meta = "metadata: {name: web, namespace: shop, uid: u, resourceVersion: '7', labels: {a: b}}\n"
	const scaled = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"shop","resourceVersion":"7","uid":"u"},`
	for _, c := range []struct{ text, name, operation, want string }{
		{"apiVersion: v1\nkind: Pod\n" + meta + "spec: {nodeName: one}", "binding", "CREATE",
			`{"apiVersion":"v1","kind":"Binding","metadata":{"name":"web","namespace":"shop","uid":"u"},"target":{"kind":"Node","name":"one"}}`},
		{"apiVersion: apps/v1\nkind: Deployment\n" + meta + "spec: {replicas: 3, selector: {matchLabels: {b: c, a: b}}}\nstatus: {replicas: 2}", "scale", "UPDATE",
			scaled + `"spec":{"replicas":3},"status":{"replicas":2,"selector":"a=b,b=c"}}`},
		{"apiVersion: apps/v1\nkind: StatefulSet\n" + meta + "spec: {replicas: 0, selector: {matchExpressions: [{key: a, operator: In, values: [c, b]}]}}", "scale", "UPDATE",
			scaled + `"spec":{},"status":{"replicas":0,"selector":"a in (b,c)"}}`},
		{"apiVersion: v1\nkind: ReplicationController\n" + meta + "spec: {replicas: 1, selector: {b: c, a: b}}\nstatus: {replicas: 1}", "scale", "UPDATE",
			scaled + `"spec":{"replicas":1},"status":{"replicas":1,"selector":"a=b,b=c"}}`},
		{"apiVersion: v1\nkind: Node\nmetadata: {name: one}\nstatus: {phase: a}", "status", "UPDATE", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"one"},"status":{"phase":"a"}}`},
	} {
		o := object(t, c.text)
		s := subresource.Subject(&policy.Subject{Kind: o["kind"].(string), Name: "web", Operation: "DELETE", Object: policy.ContentOf(o), OldObject: policy.ContentOf(o)}, c.name)
		text, err := json.Marshal(s.Object.Map())
		if err != nil || string(text) != c.want || s.Operation != c.operation || s.Subresource != c.name || s.Kind != o["kind"] || !s.OldObject.IsZero() {
			t.Errorf("%s: %s %s, want %s", c.name, s.Operation, text, c.want)
		}
	}
}

// TestRequested: of the parts that differ between two states, those that requests for a subresource wrote.
func TestRequested(t *testing.T) {
	const replicas = ", fieldsV1: {f:spec: {f:replicas: {}}}"
	deployment := func(entries string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {managedFields: [" + entries + "]}}"
	}
	fleet := func(entries string) string {
		return "{apiVersion: example.com/v1, kind: Fleet, metadata: {managedFields: [" + entries + "]}}"
	}
	for _, c := range []struct {
		reason, text string
		differing    []string
		next         bool
		want         string
	}{
		{"a pod is bound", "{apiVersion: v1, kind: Pod}", []string{"binding", "status"}, true, "[binding]"},
		{"and more happened since", "{apiVersion: v1, kind: Pod}", []string{"binding", "status"}, false, "[binding status]"},
		{"nothing", "{apiVersion: v1, kind: Pod}", nil, true, "[]"},
		{"replicas by scale", deployment("{manager: a}, {manager: b, subresource: scale" + replicas + "}"), []string{"scale"}, true, "[scale]"},
		{"replicas by an update", deployment("{manager: a" + replicas + "}, {manager: b, subresource: status}"), []string{"scale"}, true, "[]"},
		{"replicas by an unknown writer", deployment(""), []string{"scale"}, true, "[scale]"},
		{"status of a custom kind", fleet("{manager: a}, {manager: b, subresource: status}"), []string{"status"}, true, "[status]"},
		{"status of a custom kind without the subresource", fleet("{manager: a}"), []string{"status"}, true, "[]"},
		{"status of a built-in kind", deployment("{manager: a}"), []string{"status"}, true, "[status]"},
	} {
		if got := fmt.Sprint(subresource.Requested(object(t, c.text), c.differing, c.next)); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}

// TestPart: a change of a part is one of its subresource alone.
func TestPart(t *testing.T) {
	csr := func(status string) string {
		return "{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, status: {" + status + "}}"
	}
	pod := func(spec string) string { return "{apiVersion: v1, kind: Pod, spec: {" + spec + "}}" }
	const one = "containers: [{name: a, image: b, resources: {limits: {cpu: 1}}}]"
	for _, c := range []struct{ before, after, want string }{
		{csr("certificate: a"), csr("certificate: b"), "[status]"},
		{"{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest}", csr("conditions: [{type: Approved}]"), "[approval]"},
		{csr("certificate: a"), csr("certificate: a, conditions: [{type: Approved}]"), "[approval]"},
		{csr("conditions: [{type: Approved}]"), csr("conditions: [{type: Approved}, {type: Failed}]"), "[status]"},
		{csr("conditions: [{type: Denied, message: a}]"), csr("conditions: [{type: Denied, message: b}]"), "[approval]"},
		{pod(one), pod(strings.Replace(one, "cpu: 1", "cpu: 2", 1)), "[resize]"},
		{pod(strings.Replace(one, "containers", "initContainers", 1)), pod(strings.NewReplacer("containers", "initContainers", "cpu: 1", "cpu: 2").Replace(one)), "[resize]"},
		{pod(one), pod(strings.Replace(one, "image: b", "image: c", 1)), "[]"},
		{pod(one), pod(one + ", ephemeralContainers: [{name: c}]"), "[ephemeralcontainers]"},
		{pod(one), pod(one + ", nodeName: a"), "[binding]"},
		{pod("a: b"), pod("a: c"), "[]"},
	} {
		before, after := object(t, c.before), object(t, c.after)
		kind, group := before["kind"].(string), ""
		if kind != "Pod" {
			group = "certificates.k8s.io"
		}
		differing := []string{}
		for _, name := range subresource.Of(group, kind) {
			a, _ := json.Marshal(subresource.Part(before, name))
			b, _ := json.Marshal(subresource.Part(after, name))
			if string(a) != string(b) {
				differing = append(differing, name)
			}
		}
		if got := fmt.Sprint(differing); got != c.want {
			t.Errorf("%s -> %s: %s, want %s", c.before, c.after, got, c.want)
		}
	}
}

// TestWrittenAt: the time of a request, of those of its subresource alone.
func TestWrittenAt(t *testing.T) {
	at := func(minute int) string { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC).Format(time.RFC3339) }
	text := fmt.Sprintf(`{metadata: {managedFields: [{time: %q}, {time: %q, subresource: status}, {time: %q, subresource: status}, {time: %q, subresource: resize}]},
		status: {conditions: [{type: Ready, status: "True", lastTransitionTime: %q}, {type: PodScheduled, status: "True", lastTransitionTime: %q}]}}`,
		at(9), at(2), at(1), at(3), at(8), at(4))
	for name, want := range map[string]int{"status": 2, "resize": 3, "binding": 4, "scale": -1} {
		got, known := subresource.WrittenAt(object(t, text), name)
		if !known || want < 0 && !got.IsZero() || want >= 0 && got.Format(time.RFC3339) != at(want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	waiting := strings.Replace(text, `PodScheduled, status: "True"`, `PodScheduled, status: "False"`, 1)
	if got, known := subresource.WrittenAt(object(t, waiting), "binding"); !got.IsZero() || !known {
		t.Error("a pod that is not bound:", got)
	}
	scaled := strings.Replace(text, "{time: ", "{subresource: scale}, {time: ", 1)
	if got, known := subresource.WrittenAt(object(t, scaled), "scale"); !got.IsZero() || known {
		t.Error("a scale, of which API servers record no time:", got)
	}
}
