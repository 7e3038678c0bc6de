package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
)

// awaitTimeout is how long a test waits for what has to come.
const awaitTimeout = time.Minute

func eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
	defer cancel()
	must(t, process.Eventually(ctx, check))
}

func clientset(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

// pod returns a pod with a container for each image: c0, c1 and so on.
func pod(name string, images ...string) *core.Pod {
	p := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: name}}
	for i, image := range images {
		p.Spec.Containers = append(p.Spec.Containers, core.Container{Name: fmt.Sprintf("c%d", i), Image: image})
	}
	return p
}

func TestControlPlane(t *testing.T) {
	c := plane(t)
	admin := clientset(t, c.Admin())

	t.Run("it is the version that is pinned", func(t *testing.T) {
		version, err := admin.Discovery().ServerVersion()
		must(t, err)
		if version.GitVersion != "v1.37.2" || version.Minor != "37" {
			t.Errorf("got %s (minor %s)", version.GitVersion, version.Minor)
		}
	})

	t.Run("pods are admitted and run nowhere", func(t *testing.T) {
		must(t, c.Namespace(t.Context(), "plane-pods", "team", "blue"))
		created, err := admin.CoreV1().Pods("plane-pods").Create(t.Context(), pod("web", "registry.example/web:1"), meta.CreateOptions{})
		must(t, err)
		if created.Status.Phase != core.PodPending || created.Spec.NodeName != "" {
			t.Errorf("the pod is %s on node %q", created.Status.Phase, created.Spec.NodeName)
		}
		namespace, err := admin.CoreV1().Namespaces().Get(t.Context(), "plane-pods", meta.GetOptions{})
		must(t, err)
		if namespace.Labels["team"] != "blue" {
			t.Errorf("labels of the namespace: %v", namespace.Labels)
		}
	})

	t.Run("identities may do what roles say", func(t *testing.T) { tryIdentities(t, c) })
	t.Run("new kinds are served", func(t *testing.T) { tryNewKind(t, c) })
	t.Run("jobs make pods, and take them along", func(t *testing.T) { tryJob(t, c) })

	t.Run("the release is installed", func(t *testing.T) { tryInstall(t, c) })

	t.Run("kubectl reaches it", func(t *testing.T) {
		file := t.TempDir() + "/kubeconfig"
		must(t, controlplane.WriteKubeconfig(file, c.Admin()))
		said := peers.Get(t, peers.Kubectl).Must(t, "--kubeconfig", file, "get", "namespaces", "-o", "name")
		if !slices.Contains(strings.Fields(said), "namespace/kube-system") {
			t.Errorf("kubectl lists %q", said)
		}
	})
}

const readerRole = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: plane-roles}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: plane-roles}
rules:
  - {apiGroups: [""], resources: [pods], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: plane-roles}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
  - {kind: ServiceAccount, name: reader, namespace: plane-roles}
  - {kind: User, name: ann, apiGroup: rbac.authorization.k8s.io}
  - {kind: Group, name: readers, apiGroup: rbac.authorization.k8s.io}
`

func tryIdentities(t *testing.T, c *controlplane.ControlPlane) {
	must(t, c.Namespace(t.Context(), "plane-roles"), c.ApplyYAML(t.Context(), readerRole))
	account, err := c.ServiceAccount(t.Context(), "plane-roles", "reader")
	must(t, err)
	user, err := c.User("ann")
	must(t, err)
	member, err := c.User("bob", "readers")
	must(t, err)
	stranger, err := c.User("bob")
	must(t, err)
	for _, row := range []struct {
		reason string
		config *rest.Config
		may    bool
	}{
		{"a service account by token", account, true},
		{"a user by certificate", user, true},
		{"a user of the group", member, true},
		{"the same user without the group", stranger, false},
	} {
		client := clientset(t, row.config)
		_, err := client.CoreV1().Pods("plane-roles").List(t.Context(), meta.ListOptions{})
		if may := err == nil; may != row.may || (err != nil && !apierrors.IsForbidden(err)) {
			t.Errorf("%s: listing pods gives %v, want that it may: %t", row.reason, err, row.may)
		}
		if _, err := client.CoreV1().Secrets("plane-roles").List(t.Context(), meta.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s: listing secrets gives %v, want forbidden", row.reason, err)
		}
	}
}

const boatDefinition = `
apiVersion: boats.example/v1
kind: Boat
metadata: {name: ahoy, namespace: plane-kinds}
spec: {sails: 3}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.boats.example}
spec:
  group: boats.example
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, listKind: BoatList}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func tryNewKind(t *testing.T, c *controlplane.ControlPlane) {
	must(t, c.Namespace(t.Context(), "plane-kinds"), c.ApplyYAML(t.Context(), boatDefinition))
	client, err := dynamic.NewForConfig(c.Admin())
	must(t, err)
	boats := client.Resource(schema.GroupVersionResource{Group: "boats.example", Version: "v1", Resource: "boats"}).Namespace("plane-kinds")
	if boat, err := boats.Get(t.Context(), "ahoy", meta.GetOptions{}); err != nil || boat.Object["spec"].(map[string]any)["sails"] != int64(3) {
		t.Errorf("got %v, %v", boat, err)
	}
}

// tryJob asks the controllers for what admission tests need of them.
func tryJob(t *testing.T, c *controlplane.ControlPlane) {
	must(t, c.Namespace(t.Context(), "plane-jobs"))
	client := clientset(t, c.Admin())
	job := &batch.Job{ObjectMeta: meta.ObjectMeta{Name: "hook"}}
	job.Spec.Template.Spec = pod("", "registry.example/hook:1").Spec
	job.Spec.Template.Spec.RestartPolicy = core.RestartPolicyNever
	_, err := client.BatchV1().Jobs("plane-jobs").Create(t.Context(), job, meta.CreateOptions{})
	must(t, err)
	count := func(want int) func(context.Context) error {
		return func(ctx context.Context) error {
			pods, err := client.CoreV1().Pods("plane-jobs").List(ctx, meta.ListOptions{LabelSelector: "job-name=hook"})
			if err == nil && len(pods.Items) != want {
				err = fmt.Errorf("%d pods, want %d", len(pods.Items), want)
			}
			return err
		}
	}
	eventually(t, count(1))
	background := meta.DeletePropagationBackground
	must(t, client.BatchV1().Jobs("plane-jobs").Delete(t.Context(), "hook", meta.DeleteOptions{PropagationPolicy: &background}))
	eventually(t, count(0))
}

// tryInstall: the gateway's identity may do what its manifests say, and they do
// not say everything.
func tryInstall(t *testing.T, c *controlplane.ControlPlane) {
	identity, err := c.Install(t.Context())
	must(t, err)
	client, err := dynamic.NewForConfig(identity)
	must(t, err)
	policies := schema.GroupVersionResource{Group: "kyverno.io", Version: "v1", Resource: "clusterpolicies"}
	if _, err := client.Resource(policies).List(t.Context(), meta.ListOptions{}); err != nil {
		t.Errorf("it cannot list policies: %v", err)
	}
	if _, err := clientset(t, identity).CoreV1().Secrets("").List(t.Context(), meta.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing every secret gives %v, want forbidden", err)
	}
}

// TestRestart has a control plane of its own, for others would notice.
func TestRestart(t *testing.T) {
	plane(t) // skips in short runs, and builds the programs
	c, err := controlplane.Start(t.Context(), controlplane.Options{Folder: t.TempDir(), ServiceAccounts: true})
	must(t, err)
	t.Cleanup(c.Close)
	client := clientset(t, c.Admin())

	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod("early", "registry.example/web:1"), meta.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a pod without a service account gives %v, want that the admission plugin is on", err)
	}
	must(t, c.Namespace(t.Context(), "kept"))
	_, err = client.CoreV1().Pods("kept").Create(t.Context(), pod("web", "registry.example/web:1"), meta.CreateOptions{})
	must(t, err)
	before := c.APIServer().Pid()
	must(t, c.StopAPIServer(t.Context()))
	if _, err := client.CoreV1().Pods("kept").List(t.Context(), meta.ListOptions{}); err == nil {
		t.Error("the API server answers after it was stopped")
	}
	must(t, c.StartAPIServer(t.Context()))
	if c.APIServer().Pid() == before {
		t.Error("it is the same process")
	}
	if _, err := client.CoreV1().Pods("kept").Get(t.Context(), "web", meta.GetOptions{}); err != nil {
		t.Errorf("the stored object is gone: %v", err)
	}
}
