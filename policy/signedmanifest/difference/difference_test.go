package difference_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/signedmanifest/difference"
	"github.com/quaymaster/quaymaster/workload"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, raw)
}

func manifest(t *testing.T, text string) workload.Object {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := workload.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestFind(t *testing.T) {
	const (
		config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a%s}, data: {k: v}}"
		task   = "{apiVersion: example.com/v1, kind: Task, metadata: {name: a}, spec: {count: 1}%s}"
		pod    = "{apiVersion: v1, kind: Pod, metadata: {name: a%s}, spec: {containers: [{name: c, image: 'i:1'}]%s}}"
		deploy = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a%s}, spec: {selector: {}%s}}"
		token  = "volumes: [{name: kube-api-access-abcde, projected: {defaultMode: 420, sources: [{serviceAccountToken: {expirationSeconds: 3607, path: token}}, " +
			"{configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}}, {downwardAPI: {items: [{path: namespace, fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}]}}]}}]"
	)
	with := func(text string, parts ...any) string {
		for strings.Count(text, "%s") > len(parts) {
			parts = append(parts, "")
		}
		return fmt.Sprintf(text, parts...)
	}
	annotated := func(name, value string) string { return fmt.Sprintf(", annotations: {%s: '%s'}", name, value) }
	const applied = "kubectl.kubernetes.io/last-applied-configuration"
	for _, c := range []struct {
		reason, signed, object string
		ignored                []string
		want                   string // the first difference; empty for none
	}{
		{"equal", with(config), with(config), nil, ""},
		{"fields of the API server", with(config), with(config, ", uid: u, resourceVersion: '1', generation: 2, creationTimestamp: '2026-01-01T00:00:00Z', managedFields: [{}]"), nil, ""},
		{"an owner", with(config), with(config, ", ownerReferences: [{name: a}]"), nil, "metadata.ownerReferences was not signed"},
		{"what kubectl applied", with(config), with(config, annotated(applied, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{},"name":"a"},"data":{"k":"v"}}`)), nil, ""},
		{"what kubectl applied of another name", with(config), with(config, annotated(applied, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":{"k":"v"}}`)), nil, "metadata.annotations." + applied},
		{"what kubectl applied before", with(config), with(config, annotated(applied, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"w"}}`)), nil, "metadata.annotations." + applied},
		{"what kubectl applied, in itself", with(config), with(config, annotated(applied, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{"`+applied+`":"x"}},"data":{"k":"v"}}`)), nil, "metadata.annotations." + applied},
		{"no JSON there", with(config), with(config, annotated(applied, "x")), nil, "metadata.annotations." + applied},
		{"a finalizer of Kubernetes", with(config), with(config, ", finalizers: [kubernetes.io/pvc-protection]"), nil, ""},
		{"another finalizer", with(config), with(config, ", finalizers: [example.com/stay]"), nil, "metadata.finalizers.0 was not signed"},
		{"a finalizer that was signed", with(config, ", finalizers: [example.com/stay]"), with(config), nil, "metadata.finalizers was signed"},
		{"the finalizers of a deletion", with(config, ", finalizers: [example.com/a, example.com/b]"), with(config, ", finalizers: [example.com/b], deletionTimestamp: '2026-01-01T00:00:00Z'"), nil, ""},
		{"without a deletion", with(config, ", finalizers: [example.com/a, example.com/b]"), with(config, ", finalizers: [example.com/b]"), nil, "metadata.finalizers.0 was signed"},
		{"a finalizer that is no text", with(config), with(config, ", finalizers: [{}]"), nil, "metadata.finalizers.0"},
		{"the status of a custom kind", with(task), with(task, ", status: {ready: true}"), nil, "status"},
		{"an ignored status", with(task), with(task, ", status: {ready: true}"), []string{"status"}, ""},
		{"the status of a kind of Kubernetes", with(pod), with(pod) + "\nstatus: {phase: Running}", nil, "-"},
		{"a null in a manifest", "{apiVersion: example.com/v1, kind: Task, metadata: {name: a}, spec: {count: 1, m: null}}", with(task), nil, ""},
		{"a null in an object", with(task), "{apiVersion: example.com/v1, kind: Task, metadata: {name: a}, spec: {count: 1, m: null}}", nil, "spec.m was not signed"},
		{"a number as text", with(task), "{apiVersion: example.com/v1, kind: Task, metadata: {name: a}, spec: {count: '1'}}", nil, "spec.count"},
		{"a rounded integer", "{apiVersion: example.com/v1, kind: Task, metadata: {name: a}, spec: {count: 9007199254740993}}", "{apiVersion: example.com/v1, kind: Task, metadata: {name: a}, spec: {count: 9007199254740992}}", nil, "spec.count"},
		{"defaults of a custom kind", with(task), "{apiVersion: example.com/v1, kind: Task, metadata: {name: a}, spec: {count: 1, replicas: 1}}", nil, "spec.replicas"},
		{"a kind of the same name", "{apiVersion: example.com/v1, kind: Deployment, metadata: {name: a}, spec: {}}", "{apiVersion: example.com/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 1}}", nil, "spec.replicas"},
		{"a default", with(deploy), with(deploy, "", ", replicas: 1"), nil, ""},
		{"no default", with(deploy), with(deploy, "", ", replicas: 2"), nil, "spec.replicas was not signed"},
		{"a default in place of what was signed", with(deploy, "", ", replicas: 3"), with(deploy, "", ", replicas: 1"), nil, "spec.replicas was signed as 3 and is 1"},
		{"the revision of a Deployment", with(deploy), with(deploy, annotated("deployment.kubernetes.io/revision", "7")), nil, ""},
		{"no revision", with(deploy), with(deploy, annotated("deployment.kubernetes.io/revision", "x")), nil, "metadata.annotations.deployment.kubernetes.io/revision"},
		{"the revision of another kind", with(config), with(config, annotated("deployment.kubernetes.io/revision", "7")), nil, "metadata.annotations"},
		{"a node, of a new pod", with(pod), with(pod, "", ", nodeName: n"), nil, "spec.nodeName"},
		{"a node, of a new pod with a version", with(pod), with(pod, ", resourceVersion: '0'", ", nodeName: n"), nil, "spec.nodeName was not signed"},
		{"another node of a new pod than signed", with(pod, "", ", nodeName: m"), with(pod, "", ", nodeName: n"), nil, "spec.nodeName was signed"},
		{"the token of a pod", with(pod), with(pod, "", ", "+token), nil, ""},
		{"the token of a pod that wants none", with(pod, "", ", automountServiceAccountToken: false"), with(pod, "", ", automountServiceAccountToken: false, "+token), nil, "spec.volumes.0 was not signed"},
		{"a token of another audience", with(pod), with(pod, "", ", "+strings.Replace(token, "path: token}", "path: token, audience: x}", 1)), nil, "spec.volumes.0 was not signed"},
		{"a toleration of Kubernetes", with(pod), with(pod, "", ", tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]"), nil, ""},
		{"another toleration", with(pod), with(pod, "", ", tolerations: [{operator: Exists}]"), nil, "spec.tolerations.0 was not signed"},
		{"a container more", with(pod), strings.Replace(with(pod), "image: 'i:1'}", "image: 'i:1'}, {name: d, image: 'i:1'}", 1), nil, "spec.containers.1 was not signed"},
		{"a container less", strings.Replace(with(pod), "image: 'i:1'}", "image: 'i:1'}, {name: d, image: 'i:1'}", 1), with(pod), nil, "spec.containers.1"},
		{"containers in another order", strings.Replace(with(pod), "[{", "[{name: d, image: 'i:1'}, {", 1), strings.Replace(with(pod), "image: 'i:1'}", "image: 'i:1'}, {name: d, image: 'i:1'}", 1), nil, "spec.containers.0.name"},
		{"an image pinned to a digest", with(pod), strings.Replace(with(pod), "'i:1'", "'i:1@sha256:00'", 1), nil, "spec.containers.0.image"},
		{"the default pull policy", with(pod), strings.Replace(with(pod), "image: 'i:1'", "image: 'i:1', imagePullPolicy: IfNotPresent", 1), nil, ""},
		{"another pull policy", with(pod), strings.Replace(with(pod), "image: 'i:1'", "image: 'i:1', imagePullPolicy: Never", 1), nil, "spec.containers.0.imagePullPolicy"},
		{"a service account", with(pod), with(pod, "", ", serviceAccountName: admin, serviceAccount: admin"), nil, "spec.serviceAccountName was not signed"},
		{"the old name of another service account", with(pod, "", ", serviceAccountName: a"), with(pod, "", ", serviceAccountName: a, serviceAccount: b"), nil, "spec.serviceAccount was"},
		{"a mount of a signed volume with the name of a token", with(pod, "", ", volumes: [{name: kube-api-access-abcde, hostPath: {path: /}}]"),
			strings.Replace(with(pod, "", ", volumes: [{name: kube-api-access-abcde, hostPath: {path: /}}]"), "'i:1'", "'i:1', volumeMounts: [{name: kube-api-access-abcde, readOnly: true, mountPath: /var/run/secrets/kubernetes.io/serviceaccount}]", 1), nil, "spec.containers.0.volumeMounts.0"},
		{"an address of a Service", "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {}}", "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {externalIPs: [10.0.0.1]}}", nil, "spec.externalIPs"},
		{"a Secret's value is not shown", "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: c2VjcmV0}}", "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: b3RoZXI=}}", nil, "data.k was signed as another value and is another value"},
		{"an ignored element", with(pod), with(pod, "", ", tolerations: [{operator: Exists}]"), []string{"spec.tolerations.*"}, ""},
		{"an ignored member of an element", with(pod), with(pod, "", ", tolerations: [{operator: Exists}]"), []string{"spec.tolerations.*.operator"}, "spec.tolerations.0"},
		{"an ignored field that was signed", with(deploy, "", ", replicas: 3"), with(deploy), []string{"spec.replicas"}, ""},
		{"a field of a longer name", with(deploy), with(deploy, "", ", replicasMax: 3"), []string{"spec.replicas"}, "spec.replicasMax"},
		{"many differences", with(config), "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: a, b: b, c: c, d: d, e: e, f: f, g: g}}", nil, "data.k"},
	} {
		changed := object(t, strings.Replace(c.object, "\nstatus:", "", 1))
		if c.want == "-" { // the status is not in the flow of the text
			changed, c.want = object(t, with(pod)), ""
			changed["status"] = map[string]any{"phase": "Running"}
		}
		got, err := (difference.Terms{Ignored: c.ignored}).Find(manifest(t, c.signed), changed)
		first := strings.Join(got, "; ")
		if err != nil || (c.want == "") != (len(got) == 0) || !strings.HasPrefix(first, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.reason, first, err, c.want)
		}
		if len(got) > difference.MaxDifferences+1 {
			t.Errorf("%s: %d differences", c.reason, len(got))
		}
	}
}

// TestJob: defaults of a Job depend on what its author wrote.
func TestJob(t *testing.T) {
	for _, c := range []struct{ reason, signed, found, want string }{
		{"nothing", "", "parallelism: 1, completions: 1, backoffLimit: 6, podReplacementPolicy: TerminatingOrFailed", ""},
		{"completions in place of any number of them", "parallelism: 5", "parallelism: 5, completions: 1", "spec.completions was not signed"},
		{"parallelism alone", "parallelism: 5", "parallelism: 5, backoffLimit: 6", ""},
		{"parallelism of completions", "completions: 5", "completions: 5, parallelism: 1", ""},
		{"no limit next to that of an index", "backoffLimitPerIndex: 1", "backoffLimitPerIndex: 1, backoffLimit: 2147483647", ""},
		{"a limit next to that of an index", "backoffLimitPerIndex: 1", "backoffLimitPerIndex: 1, backoffLimit: 6", "spec.backoffLimit was not signed"},
		{"no limit", "", "backoffLimit: 2147483647", "spec.backoffLimit was not signed"},
		{"a policy for failed pods", "podFailurePolicy: {rules: []}", "podFailurePolicy: {rules: []}, podReplacementPolicy: Failed", ""},
		{"replacement as without it", "podFailurePolicy: {rules: []}", "podFailurePolicy: {rules: []}, podReplacementPolicy: TerminatingOrFailed", "spec.podReplacementPolicy was not signed"},
		{"replacement as with it", "", "podReplacementPolicy: Failed", "spec.podReplacementPolicy was not signed"},
	} {
		const job = "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {%s}}"
		found, err := (difference.Terms{}).Find(manifest(t, fmt.Sprintf(job, c.signed)), object(t, fmt.Sprintf(job, c.found)))
		if got := strings.Join(found, "; "); err != nil || (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, %v", c.reason, got, err)
		}
	}
}

// TestNodeName: a scheduler binds stored pods, and nothing else has a node that was not signed.
func TestNodeName(t *testing.T) {
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: a, resourceVersion: '1'}, spec: {containers: []%s}}"
	const template = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, resourceVersion: '1'}, spec: {template: {spec: {containers: []%s}}}}"
	for _, c := range []struct {
		reason, text, signed string
		stored               bool
		want                 int
	}{
		{"a stored pod", pod, "", true, 0},
		{"a stored pod on another node than signed", pod, ", nodeName: m", true, 0},
		{"a new pod", pod, "", false, 1},
		{"a stored template", template, "", true, 1},
	} {
		terms := difference.Terms{Stored: c.stored}
		found, err := terms.Find(manifest(t, fmt.Sprintf(c.text, c.signed)), object(t, fmt.Sprintf(c.text, ", nodeName: n")))
		if err != nil || len(found) != c.want {
			t.Errorf("%s: %v, %v", c.reason, found, err)
		}
	}
}

// TestFindDryRun: the name of the volume with the token differs in each pod.
func TestFindDryRun(t *testing.T) {
	var pod recorded
	for _, r := range records(t) {
		if r.name == "pod-plain" {
			pod = r
		}
	}
	text := string(encode(t, pod.object))
	at := strings.Index(text, "kube-api-access-") + len("kube-api-access-")
	other := decode(t, []byte(strings.ReplaceAll(text, text[at:at+5], "zzzzz")))
	other = with(other, []string{"spec", "hostname"}, "injected")
	object := with(pod.object, []string{"spec", "hostname"}, "injected")
	if found, err := (difference.Terms{}).FindDryRun(pod.manifest, other, object); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	object = with(object, []string{"spec", "hostname"}, "other")
	if found, err := (difference.Terms{}).FindDryRun(pod.manifest, other, object); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestBound(t *testing.T) {
	data := map[string]any{}
	for i := range 20_000 {
		data[fmt.Sprintf("key-%d", i)] = "x"
	}
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": data}
	terms := difference.Terms{Ignored: make(difference.Fields, difference.MaxPatterns)}
	for i := range terms.Ignored {
		terms.Ignored[i] = fmt.Sprintf("data.key-%d*", i%10)
	}
	if _, err := terms.Find(manifest(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {}}"), object); !errors.Is(err, difference.ErrBound) {
		t.Errorf("%v, want ErrBound", err)
	}
	terms.Ignored = terms.Ignored[:10]
	if found, err := terms.Find(manifest(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {}}"), object); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestCheckField(t *testing.T) {
	for pattern, want := range map[string]string{
		"spec.replicas": "", "metadata.annotations.example.com/owner": "", "metadata.labels": "", "metadata.annotations.*": "", "metadata.namespace": "",
		"spec.template.spec.containers.*.image": "", "spec.tolerations.*": "", "status": "", "status.*": "", "secrets.*.name": "", "secrets": "", "imagePullSecrets": "", "data.key": "", "spec.ports.*.nodePort": "",
		"": "want the path", "*": "covers apiVersion", "spec": "covers spec whole", "spec.*": "covers spec whole", "sp*": "covers sp* whole", "*.*": "covers metadata", "data": "covers data whole", "data.*": "covers data whole",
		"metadata": "covers metadata", "metadata.*": "covers metadata.name", "metadata.name": "covers metadata.name", "metadata.na*": "covers metadata.name", "kind": "covers kind", "apiVersion": "covers apiVersion",
		"spec.template": "covers spec.template", "spec.template.spec": "covers spec.template.spec", "spec.template.spec.*": "covers spec.template.spec", "spec.t*": "covers spec.template", "spec.*.spec": "covers spec.template.spec",
		"spec.containers": "covers spec.containers", "spec.containers.*": "covers spec.containers", "spec.template.spec.containers.*": "covers spec.template.spec.containers", "spec.template.spec.containers.*.*": "covers spec.template.spec.containers.0",
		"spec.jobTemplate": "covers spec.jobTemplate", "rules": "covers rules whole", "webhooks.*": "covers webhooks whole", strings.Repeat("a", difference.MaxPattern+1): "has more than",
		"spec.*.*.*.*": "covers spec", "*.replicas": "", "spec.containers.0": "covers spec.containers.0", "spec.containers.*.env": "",
	} {
		err := difference.CheckField(pattern)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", pattern, err, want)
		}
	}
}

func Example() {
	signed, _ := workload.Parse([]byte(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"paused": true}}`))
	found := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "a", "uid": "1"}, "spec": map[string]any{"replicas": 1.0, "paused": false}}
	fmt.Println((difference.Terms{}).Find(signed, found))
	// Output: [spec.paused was signed as true and is false] <nil>
}
