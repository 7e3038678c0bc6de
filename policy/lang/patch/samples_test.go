package patch_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/lang/patch"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// rules are the mutations of a folder of policies, by rule; those of foreach have
// a number behind the rule's name.
func rules(t *testing.T, root string) map[string]applier {
	t.Helper()
	found := map[string]applier{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, document := range bytes.Split(content, []byte("\n---")) {
			var policy struct {
				Kind string `json:"kind"`
				Spec struct {
					Rules []struct {
						Name   string         `json:"name"`
						Mutate map[string]any `json:"mutate"`
					} `json:"rules"`
				} `json:"spec"`
			}
			if err := yaml.Unmarshal(document, &policy); err != nil || policy.Kind != "ClusterPolicy" {
				continue
			}
			for _, rule := range policy.Spec.Rules {
				compileRule(t, found, path+" "+rule.Name, rule.Mutate)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func compileRule(t *testing.T, found map[string]applier, name string, mutate map[string]any) {
	t.Helper()
	if merge, ok := mutate["patchStrategicMerge"]; ok {
		compiled, err := patch.CompileMerge(newEngine(t), merge)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		found[name] = compiled
	}
	if operations, ok := mutate["patchesJson6902"]; ok {
		compiled, err := patch.CompileJSON(newEngine(t), operations)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		found[name] = compiled
	}
	each, _ := mutate["foreach"].([]any)
	for i, item := range each {
		compileRule(t, found, name+" "+string(rune('0'+i)), item.(map[string]any))
	}
}

func TestSamples(t *testing.T) {
	root := os.Getenv("QUAYMASTER_SAMPLES")
	if _, err := os.Stat(root); root == "" || err != nil {
		t.Skip("the samples are not at hand (set QUAYMASTER_SAMPLES)")
	}
	found := rules(t, root)
	if len(found) < 15 {
		t.Errorf("only %d mutations were found", len(found))
	}
	const proxied = `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, image: "my-registry-proxy.example.com/x:1"}, {name: b, image: "b:1"}]}}`
	images := func(registry, path, tag, digest string) variable.Context {
		return variable.Context{
			"elementIndex": 0.0, "element": map[string]any{"name": "one"},
			"mappings": map[string]any{"data": map[string]any{"docker.io": "proxy.example.com"}},
			"images":   map[string]any{"containers": map[string]any{"one": map[string]any{"registry": registry, "path": path, "tag": tag, "digest": digest}}},
		}
	}
	for _, c := range []struct {
		rule   string // the end of a rule's name
		data   variable.Context
		object string
		want   string
	}{
		{"mutate-poststart-script-raptor-config-curl", variable.Context{"postStartSleepSeconds": "7"}, pod,
			`[add /spec/containers/0/lifecycle {"postStart":{"exec":{"command":["/bin/sh","-c","if ! curl -s http://raptor-config.default \u003e /dev/null; then sleep 7; exit 1; fi"]}}}]`},
		{"mutate-termination-grace-period-seconds-test", variable.Context{"preStopSleepSeconds": "30"}, pod, `[add /spec/terminationGracePeriodSeconds 40]`},
		{"scaled-object 0", variable.Context{"elementIndex": 1.0, "serveraddress": map[string]any{"data": map[string]any{"main": "http://prometheus:9090"}}},
			`{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, spec: {triggers: [{type: cron}, {type: prometheus}]}}`,
			`[add /spec/triggers/1/metadata {"serverAddress":"http://prometheus:9090"}]`},
		{"mutate-pod-hardware-arch", variable.Context{"namespace": map[string]any{"metadata": map[string]any{"labels": map[string]any{"policies.kyverno.io/default-arch": "amd64"}}}}, pod,
			`[add /spec/nodeSelector {"kubernetes.io/arch":"amd64"}]`},
		{"mutate-pod-hardware-arch", variable.Context{"namespace": map[string]any{"metadata": map[string]any{"labels": map[string]any{}}}}, pod,
			`[add /spec/nodeSelector {"kubernetes.io/arch":"arm64"}]`},
		{"replace-image-registry-pod-containers 0", images("docker.io", "nginx", "1", ""), pod, `[replace /spec/containers/0/image "proxy.example.com/library/nginx:1"]`},
		{"replace-image-registry-pod-containers 0", images("docker.io", "team/app", "1", ""), pod, `[replace /spec/containers/0/image "proxy.example.com/team/app:1"]`},
		{"add-imagepullsecret-containers", nil, proxied, `[add /spec/imagePullSecrets [{"name":"registry-proxy-private-key"}]]`},
		{"add-imagepullsecret-containers", nil, pod, `skipped /spec/containers/1/image`},
		{"add-imagepullsecret-init-containers", nil, proxied, `skipped /spec/initContainers`},
		{"add-imagepullsecret-init-containers", nil, strings.ReplaceAll(proxied, "containers", "initContainers"), `[add /spec/imagePullSecrets [{"name":"registry-proxy-private-key"}]]`},
		{"annotate-empty-dir", nil, pod, `[add /metadata/annotations {"cluster-autoscaler.kubernetes.io/safe-to-evict":"true"}]`},
		{"annotate-host-path", nil, pod, `[add /metadata/annotations {"cluster-autoscaler.kubernetes.io/safe-to-evict":"true"}]`},
		{"annotate-host-path", nil, proxied, `skipped /spec/volumes/-/hostPath/path`},
		{"inject-vault-agent.yaml inject", nil, `{apiVersion: apps/v1, kind: Deployment, spec: {template: {metadata: {annotations: {vault.hashicorp.com/agent-inject: "true"}}, spec: {containers: [{name: app}]}}}}`,
			`[add /spec/template/spec/containers/0 {"image":"vault:1.5.4","imagePullPolicy":"IfNotPresent","name":"vault-agent","volumeMounts":[{"mountPath":"/vault/secrets","name":"vault-secret"}]}] [add /spec/template/spec/volumes [{"emptyDir":{"medium":"Memory"},"name":"vault-secret"}]]`},
		{"inject-vault-agent.yaml inject", nil, `{apiVersion: apps/v1, kind: Deployment, spec: {template: {metadata: {annotations: {}}, spec: {containers: [{name: app}]}}}}`,
			`skipped /spec/template/metadata/annotations/vault.hashicorp.com~1agent-inject`},
		{"add-userinfo", variable.Context{"request": map[string]any{"userInfo": map[string]any{"username": "x"}}}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
			`[add /metadata/annotations {"kyverno.io/created-by":"{\"username\":\"x\"}"}]`},
	} {
		tried := false
		for name, rule := range found {
			if !strings.HasSuffix(name, " "+c.rule) && !strings.HasSuffix(name, "/"+c.rule) {
				continue
			}
			tried = true
			object := object(t, c.object)
			got, err := apply(t, rule, c.data, object)
			if was := summary(t, patch.Diff(object, got), err); was != c.want {
				t.Errorf("%s\n got %s\nwant %s", c.rule, was, c.want)
			}
		}
		if !tried {
			t.Errorf("no rule %s", c.rule)
		}
	}
}
