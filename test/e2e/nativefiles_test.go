package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/peers"
)

// ofFiles are policies of the gateway that an API server has in files: about pods and their controllers, and
// a mutation in a namespace.
const ofFiles = `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: no-latest}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]
  matchConditions: [{name: unless-labelled, expression: "!has(object.metadata.labels) || !('exempt' in object.metadata.labels)"}]
  variables: [{name: images, expression: "object.spec.containers.map(c, c.image)"}]
  validations:
  - expression: |
      variables.images.all(i,
        !i.endsWith(':latest'))
    messageExpression: "object.metadata.name + ' runs latest'"
---
apiVersion: policies.kyverno.io/v1
kind: NamespacedMutatingPolicy
metadata: {name: owner, namespace: shop}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'owner': 'shop'}}}"}
`

// ofRules is a policy with rules in CEL that an API server has in its API.
const ofRules = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: non-root}
spec:
  validationFailureAction: Enforce
  rules:
  - name: non-root
    match: {any: [{resources: {kinds: [Pod]}}]}
    exclude: {any: [{resources: {namespaces: [build]}}]}
    celPreconditions: [{name: not-deleted, expression: "request.operation != 'DELETE'"}]
    validate:
      message: must not run as root
      cel: {expressions: [{expression: "object.spec.?securityContext.?runAsNonRoot.orValue(false) == true"}]}
`

// TestNativeFiles: an API server with the files that convert --static writes refuses the same objects as the gateway's
// policies, with the same message, from the first request on; and one with the converted rules in its API likewise.
// Exempt objects are admitted, and nobody can remove a policy of a file.
func TestNativeFiles(t *testing.T) {
	plane(t) // skips in short runs, and builds the programs
	ours, folder := peers.Quaymaster(t), t.TempDir()
	files, rules, static := filepath.Join(folder, "files.yaml"), filepath.Join(folder, "rules.yaml"), filepath.Join(folder, "static")
	must(t, os.WriteFile(files, []byte(ofFiles), 0o600), os.WriteFile(rules, []byte(ofRules), 0o600))
	ours.Must(t, "convert", "--to", "native", files, "--static", static, "--exempt-namespaces", "kube-system")
	admission, err := os.ReadFile(filepath.Join(static, "admission.yaml"))
	must(t, err)
	c, err := controlplane.Start(t.Context(), controlplane.Options{Folder: t.TempDir(), Admission: admission, Controllers: true})
	must(t, err)
	t.Cleanup(c.Close)
	must(t, c.Namespace(t.Context(), "shop"), c.Namespace(t.Context(), "build"))
	n := nativeScene{client: clientset(t, c.Admin()), ours: ours, folder: folder}

	good, bad := withImage("registry.example/web:1"), withImage("registry.example/web:latest")
	labelled := withImage("registry.example/web:latest")
	labelled.Labels = map[string]string{"exempt": ""}
	n.agrees(t, files, "shop", good, "")
	n.agrees(t, files, "shop", bad, "web runs latest")
	n.agrees(t, files, "shop", labelled, "")
	if _, err := n.create(t.Context(), "kube-system", bad); err != nil {
		t.Errorf("an exempt namespace: %v", err)
	}
	for _, namespace := range []string{"shop", "build"} {
		made, err := n.client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "one"}}, meta.CreateOptions{})
		must(t, err)
		if (made.Labels["owner"] == "shop") != (namespace == "shop") {
			t.Errorf("the labels in %s are %v", namespace, made.Labels)
		}
	}
	err = n.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(t.Context(), "no-latest.static.k8s.io", meta.DeleteOptions{})
	if err == nil {
		t.Error("a policy of a file was deleted")
	}

	n.install(t, c, ours.Must(t, "convert", "--to", "native", rules, "--exempt-namespaces", "kube-system"))
	nonRoot := withImage("registry.example/web:1")
	nonRoot.Spec.SecurityContext = &core.PodSecurityContext{RunAsNonRoot: new(true)}
	eventually(t, func(ctx context.Context) error {
		if _, err := n.create(ctx, "shop", good); err == nil {
			return errors.New("the policy is not in force")
		}
		return nil
	})
	n.agrees(t, rules, "shop", good, "must not run as root")
	n.agrees(t, rules, "shop", nonRoot, "")
	n.agrees(t, rules, "build", good, "")
	n.typeChecked(t)
}

// nativeScene compares an API server with the gateway's own verdict.
type nativeScene struct {
	client *kubernetes.Clientset
	ours   *peers.Program
	folder string
}

func withImage(name string) *core.Pod {
	p := pod("web", name)
	p.APIVersion, p.Kind = "v1", "Pod"
	return p
}

func (n nativeScene) create(ctx context.Context, namespace string, p *core.Pod) (*core.Pod, error) {
	return n.client.CoreV1().Pods(namespace).Create(ctx, p, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
}

// agrees: the API server and the command decide alike about a pod; an empty message means that it is admitted.
func (n nativeScene) agrees(t *testing.T, policies, namespace string, p *core.Pod, message string) {
	t.Helper()
	_, err := n.create(t.Context(), namespace, p)
	if (err == nil) != (message == "") || err != nil && !strings.Contains(err.Error(), message) {
		t.Errorf("the API server in %s: %v, want %q", namespace, err, message)
	}
	written := p.DeepCopy()
	written.Namespace = namespace
	text, err := yaml.Marshal(written)
	must(t, err)
	file := filepath.Join(n.folder, "object.yaml")
	must(t, os.WriteFile(file, text, 0o600))
	said, err := n.ours.Run(t.Context(), "apply", policies, "-r", file)
	if (err == nil) != (message == "") || !strings.Contains(said, message) {
		t.Errorf("quaymaster apply in %s: %v, want %q:\n%s", namespace, err, message, said)
	}
}

// install creates the documents of a text.
func (n nativeScene) install(t *testing.T, c *controlplane.ControlPlane, text string) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Admin())
	must(t, err)
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for {
		var o unstructured.Unstructured
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		resource := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: strings.ToLower(o.GetKind()) + "s"}
		resource.Resource = strings.Replace(resource.Resource, "policys", "policies", 1)
		_, err = client.Resource(resource).Create(t.Context(), &o, meta.CreateOptions{})
		must(t, err)
	}
}

// typeChecked: the controller that checks the types of expressions has no warnings about them.
func (n nativeScene) typeChecked(t *testing.T) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		list, err := n.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, meta.ListOptions{})
		if err != nil || len(list.Items) != 3 {
			return fmt.Errorf("%d policies, want one for pods and two for controllers: %w", len(list.Items), err)
		}
		for _, p := range list.Items {
			switch checked := p.Status.TypeChecking; {
			case checked == nil:
				return fmt.Errorf("%s is not checked yet", p.Name)
			case len(checked.ExpressionWarnings) > 0:
				t.Errorf("%s: %v", p.Name, checked.ExpressionWarnings)
			}
		}
		return nil
	})
}
