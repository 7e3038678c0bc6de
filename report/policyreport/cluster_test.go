package policyreport_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
	"github.com/quaymaster/quaymaster/workload"
)

var morning = time.Date(2026, 3, 14, 9, 26, 53, 589793238, time.UTC)

// yard is a gate of real parts and what objects look like to it.
type yard struct {
	*gatetest.Env
	gate *gate.Gate
}

func newYard(t testing.TB, policies ...string) *yard {
	t.Helper()
	env, err := gatetest.NewEnv()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(env.Close)
	y := &yard{Env: env}
	y.set(t, policies...)
	return y
}

func (y *yard) set(t testing.TB, policies ...string) {
	t.Helper()
	var compiled []*policy.Policy
	for _, text := range policies {
		p, err := y.Policy(text)
		if err != nil {
			t.Fatal(err)
		}
		compiled = append(compiled, p)
	}
	var err error
	y.gate, err = y.Gate(compiled...)
	if err != nil {
		t.Fatal(err)
	}
}

// object is what a cluster has.
type object map[string]any

func (o object) metadata() map[string]any {
	m, _ := o["metadata"].(map[string]any)
	return m
}

// decide returns the policies' results for an object at a time.
func (y *yard) decide(t testing.TB, of object, at time.Time) report.Decided {
	t.Helper()
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := workload.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return report.Decided{
		Occasion: report.Occasion{Time: at, Process: report.ProcessAdmission, Allowed: true},
		Outcome:  y.gate.Decide(t.Context(), gate.Request{Object: parsed, Pinning: gate.PinNever}),
	}
}

func (y *yard) results(t testing.TB, of object, at time.Time) []result.Result {
	t.Helper()
	return result.Of(y.decide(t, of, at))
}

// uid makes a UID as API servers do.
func uid(name string) string {
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func named(apiVersion, kind, namespace, name string) object {
	return object{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{
		"namespace": namespace, "name": name, "uid": uid(kind + "/" + namespace + "/" + name),
	}}
}

func (o object) ownedBy(owner object) object {
	o.metadata()["ownerReferences"] = []any{map[string]any{
		"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner.metadata()["name"], "uid": owner.metadata()["uid"], "controller": true,
	}}
	return o
}

func (o object) resource() report.Resource {
	text := func(v any) string { s, _ := v.(string); return s }
	return report.Resource{
		APIVersion: text(o["apiVersion"]), Kind: text(o["kind"]), Namespace: text(o.metadata()["namespace"]),
		Name: text(o.metadata()["name"]), UID: text(o.metadata()["uid"]),
	}
}

// deployment returns a Deployment with its ReplicaSet and pods, as they are made.
func deployment(namespace, name string, pods int, spec map[string]any) (owner, set object, made []object) {
	template := func(o object) object {
		o["spec"] = map[string]any{"replicas": pods, "template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": name}}, "spec": spec}}
		return o
	}
	owner = template(named("apps/v1", "Deployment", namespace, name))
	set = template(named("apps/v1", "ReplicaSet", namespace, name+"-7d9c6b8f5d")).ownedBy(owner)
	for i := range pods {
		made = append(made, pod(namespace, fmt.Sprintf("%s-7d9c6b8f5d-%05x", name, i), spec).ownedBy(set))
	}
	return owner, set, made
}

func pod(namespace, name string, spec map[string]any) object {
	o := named("v1", "Pod", namespace, name)
	o["spec"] = spec
	return o
}

// bare is a pod spec without security settings.
func bare() map[string]any {
	return map[string]any{"containers": []any{map[string]any{"name": "web", "image": "nginx:1.27", "ports": []any{map[string]any{"containerPort": 80}}}}}
}

// decent meets the Pod Security Standard restricted.
func decent() map[string]any {
	return map[string]any{
		"securityContext": map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}},
		"containers": []any{map[string]any{
			"name": "web", "image": "nginx:1.27", "securityContext": map[string]any{
				"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}},
			},
		}},
	}
}

// podSecurity returns the Pod Security policies: those of the samples, if
// QUAYMASTER_SAMPLES is set, or ours that are written like them.
func podSecurity(t testing.TB, own bool) []string {
	t.Helper()
	var files []string
	if own {
		files = []string{"testdata/podsecurity.yaml"}
	} else {
		root := os.Getenv("QUAYMASTER_SAMPLES")
		if root == "" {
			t.Skip("set QUAYMASTER_SAMPLES")
		}
		for _, standard := range []string{"baseline", "restricted"} {
			found, err := filepath.Glob(filepath.Join(root, "kyverno-tests", standard, "*", "*.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, found...)
		}
	}
	var texts []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			texts = append(texts, strings.TrimSpace(document))
		}
	}
	return texts
}

// store is what etcd would hold.
type store map[string][]byte

// put writes the parts as an API server keeps them, and returns how many it wrote.
func (s store) put(t testing.TB, parts []policyreport.Part) int {
	t.Helper()
	writes := 0
	for _, part := range parts {
		key := part.Namespace + "/" + part.Name
		switch part.Action {
		case policyreport.Delete:
			delete(s, key)
		case policyreport.Create, policyreport.Update:
			s[key] = stored(t, part.JSON)
		case policyreport.Keep:
			continue
		}
		writes++
	}
	return writes
}

// stored adds the fields of the API server: the object's UID and time, and the managed
// fields of one writer, as a server of 1.35 wrote them.
func stored(t testing.TB, text []byte) []byte {
	t.Helper()
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	metadata := o.metadata()
	metadata["uid"], metadata["creationTimestamp"], metadata["generation"] = uid("report"), "2026-03-14T09:26:53Z", 1
	metadata["resourceVersion"] = "4711"
	fields := map[string]any{"f:metadata": map[string]any{"f:labels": map[string]any{".": map[string]any{}, "f:app.kubernetes.io/managed-by": map[string]any{}}}, "f:results": map[string]any{}, "f:scope": map[string]any{}, "f:summary": map[string]any{
		".": map[string]any{}, "f:pass": map[string]any{}, "f:fail": map[string]any{}, "f:warn": map[string]any{}, "f:error": map[string]any{}, "f:skip": map[string]any{},
	}}
	inner, _ := fields["f:metadata"].(map[string]any)
	if owners, ok := metadata["ownerReferences"].([]any); ok {
		owner, _ := owners[0].(map[string]any)
		inner["f:ownerReferences"] = map[string]any{".": map[string]any{}, fmt.Sprintf(`k:{"uid":"%s"}`, owner["uid"]): map[string]any{}}
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		notes := map[string]any{".": map[string]any{}}
		for name := range maps.Keys(annotations) {
			notes["f:"+name] = map[string]any{}
		}
		inner["f:annotations"] = notes
	}
	metadata["managedFields"] = []any{map[string]any{
		"manager": "quaymaster", "operation": "Update", "apiVersion": o["apiVersion"], "time": "2026-03-14T09:26:53Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
	}}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (s store) size() int {
	size := 0
	for _, text := range s {
		size += len(text)
	}
	return size
}
