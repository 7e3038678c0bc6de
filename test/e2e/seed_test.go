package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/peers"
)

// seedChecker is where a policy expects the service that knows images of registries.
const seedChecker = "http://ecr-image-checker.kube-system:9898"

// seedKinds are kinds of others that policies match, as far as the API server needs
// to know them.
const seedKinds = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: scaledobjects.keda.sh}
spec:
  group: keda.sh
  scope: Namespaced
  names: {plural: scaledobjects, singular: scaledobject, kind: ScaledObject, listKind: ScaledObjectList}
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.cert-manager.io}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {plural: certificates, singular: certificate, kind: Certificate, listKind: CertificateList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// harvest is a scene for users' policies, each tried by users with the right to make the
// objects that it matches.
type harvest struct {
	*scene
	checker  *httptest.Server
	asked    atomic.Int64 // how often the checker was
	ann, bob dynamic.Interface
	annIs    *rest.Config
}

// TestSeeds: the policies that the project comes from do what their documents say, at a
// real API server, with the objects of real users and controllers. Theirs are where
// QUAYMASTER_SAMPLES points; ours say the same in other words, and are tried everywhere.
func TestSeeds(t *testing.T) {
	h := newHarvest(t)
	checkout, err := peers.Checkout()
	must(t, err)
	samples := os.Getenv("QUAYMASTER_SAMPLES")
	for _, seed := range []struct {
		reason, ours string
		files        []string
		try          func(t *testing.T, h *harvest)
	}{
		{"registries", "registry", []string{"miro/04-image-registry/policy.yaml", "miro/04-image-registry/configs.yaml"}, tryRegistry},
		{"the creation record", "record", []string{"miro/01-record-creation-details/policy.yaml"}, tryRecord},
		{"the default architecture", "arch", []string{"miro/03-pod-hardware-arch/policy.yaml"}, tryArch},
		{"affinities", "affinity", []string{"digitalocean/policies/one-pod-per-deployment-per-node.yaml", "digitalocean/policies/require-cpu-architecture.yaml"}, tryAffinity},
		{"lifecycle scripts", "lifecycle", []string{"operations/mutate-lifecycle.yaml"}, tryLifecycle},
		{"addresses of a ConfigMap", "keda", []string{"miro/02-keda-prometheus-address/policy.yaml"}, tryKEDA},
		{"a sidecar and its certificate", "sidecar", []string{"miro/05-sidecar-inject/policy.yaml", "miro/05-sidecar-inject/configs.yaml"}, trySidecar},
		{"a generated role binding", "rolebinding", []string{"kubecon/generate-admin-rolebinding.yaml"}, tryRoleBinding},
	} {
		t.Run(seed.reason+", ours", func(t *testing.T) {
			h.sow(t, filepath.Join(checkout, "cmd", "quaymaster", "gateway", "testdata", "seeds", seed.ours+".yaml"))
			seed.try(t, h)
		})
		t.Run(seed.reason, func(t *testing.T) {
			if samples == "" {
				t.Skip("QUAYMASTER_SAMPLES is not set")
			}
			var files []string
			for _, file := range seed.files {
				files = append(files, filepath.Join(samples, "seed-policies", file))
			}
			h.sow(t, files...)
			seed.try(t, h)
		})
	}
}

// newHarvest makes the scene: users, kinds, a gateway with the checker and the rights that
// the policies need.
func newHarvest(t *testing.T) *harvest {
	t.Helper()
	h := &harvest{scene: unguarded(t, "seeds")}
	h.checker = httptest.NewServer(http.HandlerFunc(h.check))
	t.Cleanup(h.checker.Close)
	must(t, h.plane.ApplyYAML(t.Context(), seedKinds+"---"+seedRights))
	t.Cleanup(func() { h.remove(t, seedKinds+"---"+seedRights) })
	h.in(t, "seeds-intel", "policies.kyverno.io/default-arch", "amd64")
	h.in(t, "seeds-free", "policies.kyverno.io/disable-default-arch-enforcement", "true")
	h.in(t, "seeds-scripts", "policies.kyverno.io/test-mutate-rules-injection", "enabled")
	h.in(t, "observability")
	var err error
	h.annIs, err = h.plane.User("ann", "seeds-developers")
	must(t, err)
	h.ann, err = dynamic.NewForConfig(h.annIs)
	must(t, err)
	bob, err := h.plane.User("bob", "seeds-developers")
	must(t, err)
	h.bob, err = dynamic.NewForConfig(bob)
	must(t, err)
	h.make(t, h.ann, `{apiVersion: v1, kind: ConfigMap, metadata: {name: older}, data: {a: "1"}}`)
	h.endLead(t)
	var c gateway.Configuration
	c.Policies.Expressions.HTTPHosts = []string{strings.TrimPrefix(h.checker.URL, "http://")}
	h.gateway = h.start(t, c)
	must(t, h.gateway.Ready(t.Context()))
	return h
}

// seedRights are the rights of the users, and those of the gateway for rules about other
// objects. They are bound here and not aggregated, for that controller does not run.
const seedRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: seeds-developer}
rules:
  - {apiGroups: [""], resources: [configmaps, pods, namespaces], verbs: ["*"]}
  - {apiGroups: [apps], resources: [deployments], verbs: ["*"]}
  - {apiGroups: [keda.sh], resources: [scaledobjects], verbs: ["*"]}
  - {apiGroups: [cert-manager.io], resources: [certificates], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: seeds-developer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: seeds-developer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: seeds-developers}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: seeds-gateway, labels: {quaymaster.dev/aggregate-to-background: "true"}}
rules:
  - {apiGroups: [""], resources: [namespaces, pods, configmaps], verbs: [get, list, watch]}
  - {apiGroups: [keda.sh], resources: [scaledobjects], verbs: [get, list, patch]}
  - {apiGroups: [cert-manager.io], resources: [certificates], verbs: [get, list, watch, create, update, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: seeds-gateway}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: seeds-gateway}
subjects: [{kind: ServiceAccount, name: quaymaster, namespace: quaymaster}]
`

// check answers whether a registry has an image: nginx does exist, in one account and one
// region. No credentials are sent along.
func (h *harvest) check(w http.ResponseWriter, r *http.Request) {
	h.asked.Add(1)
	var image struct{ RepositoryName, ImageTag, RegistryID, Region string }
	if json.NewDecoder(r.Body).Decode(&image) != nil || r.Method != http.MethodPost || r.URL.Path != "/api/v1/image-exists" || r.Header.Get("Authorization") != "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	exists := image.RepositoryName == "nginx" && image.ImageTag == "latest" && image.RegistryID == "000000000000" && image.Region == "eu-west-1"
	_, _ = fmt.Fprintf(w, `{"exists": %t}`, exists)
}

// sow applies the policies of files, and the objects that they read, until the test ends.
func (h *harvest) sow(t *testing.T, files ...string) {
	t.Helper()
	var policies, rest []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		must(t, err)
		objects, err := controlplane.ParseManifests([]byte(strings.ReplaceAll(string(content), seedChecker, h.checker.URL)))
		must(t, err)
		for _, object := range objects {
			text, err := yaml.Marshal(object.Object)
			must(t, err)
			if object.GetKind() == "ClusterPolicy" {
				policies = append(policies, string(text))
			} else {
				rest = append(rest, string(text))
			}
		}
	}
	if len(rest) > 0 {
		text := strings.Join(rest, "---\n")
		must(t, h.plane.ApplyYAML(t.Context(), text))
		t.Cleanup(func() { h.remove(t, text) })
	}
	for _, text := range policies {
		h.put(t, text)
	}
}

// remove deletes objects, as the administrator.
func (h *harvest) remove(t *testing.T, text string) {
	t.Helper()
	objects, err := controlplane.ParseManifests([]byte(text))
	must(t, err)
	for _, object := range slices.Backward(objects) {
		_ = h.of(t, h.admin(t), object).Delete(context.WithoutCancel(t.Context()), object.GetName(), meta.DeleteOptions{})
	}
}

func (h *harvest) admin(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(h.plane.Admin())
	must(t, err)
	return client
}

// of returns where objects of the kind are, in the object's namespace.
func (h *harvest) of(t *testing.T, client dynamic.Interface, object *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	kind := object.GroupVersionKind()
	resource := client.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: plural(kind.Kind)})
	if object.GetNamespace() == "" {
		return resource
	}
	return resource.Namespace(object.GetNamespace())
}

// object reads an object; one that has a namespace and names none is in the scene's.
func (h *harvest) object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(text), &o.Object))
	if o.GetNamespace() == "" && o.GetKind() != "Namespace" {
		o.SetNamespace(h.namespace)
	}
	return o
}

// make creates an object; when the test ends it is gone.
func (h *harvest) make(t *testing.T, by dynamic.Interface, text string) *unstructured.Unstructured {
	t.Helper()
	object := h.object(t, text)
	made, err := h.of(t, by, object).Create(t.Context(), object, meta.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		_ = h.of(t, h.admin(t), object).Delete(context.WithoutCancel(t.Context()), object.GetName(), meta.DeleteOptions{GracePeriodSeconds: new(int64)})
	})
	return made
}

// get reads an object again.
func (h *harvest) get(ctx context.Context, t *testing.T, text string) (*unstructured.Unstructured, error) {
	t.Helper()
	object := h.object(t, text)
	return h.of(t, h.admin(t), object).Get(ctx, object.GetName(), meta.GetOptions{})
}

// seedCase is an object that ann tries to make, and what comes of it.
type seedCase struct {
	reason, object string
	want           string // the fields that it has then
	without        string // a path that it has not
	refused        string // the policy and the reason
}

// tryCases tries each; the first is waited for, until the API server asks.
func (h *harvest) tryCases(t *testing.T, cases ...seedCase) {
	t.Helper()
	for i, c := range cases {
		once := func(ctx context.Context) error { return h.tryCase(ctx, t, c) }
		if i == 0 {
			eventually(t, once)
		} else if err := once(t.Context()); err != nil {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

func (h *harvest) tryCase(ctx context.Context, t *testing.T, c seedCase) error {
	object := h.object(t, c.object)
	got, err := h.of(t, h.ann, object).Create(ctx, object, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
	switch {
	case c.refused != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.refused)):
		return fmt.Errorf("got %w, want it refused by %q", err, c.refused)
	case c.refused != "":
		return nil
	case err != nil:
		return err
	}
	if c.without != "" {
		if found, is, _ := unstructured.NestedFieldNoCopy(got.Object, strings.Split(c.without, " ")...); is {
			return fmt.Errorf("it has %s: %v", c.without, found)
		}
	}
	return has(got, c.want)
}

// has reports the fields that an object lacks of the wanted ones, in YAML. Elements of lists
// are as many as are wanted, and those that have names are in any order.
func has(got *unstructured.Unstructured, want string) error {
	text, err := json.Marshal(got.Object)
	if err != nil {
		return err
	}
	var all, part any
	if err := errors.Join(json.Unmarshal(text, &all), yaml.Unmarshal([]byte(want), &part)); err != nil || part == nil {
		return err
	}
	return includes(all, part, got.GetKind())
}

func includes(got, want any, path string) error {
	var errs []error
	switch want := want.(type) {
	case map[string]any:
		members, _ := got.(map[string]any)
		for name, value := range want {
			errs = append(errs, includes(members[name], value, path+"."+name))
		}
	case []any:
		elements, _ := got.([]any)
		if len(elements) != len(want) {
			return fmt.Errorf("%s is %v, want %d elements", path, got, len(want))
		}
		for i, value := range want {
			element := elements[i]
			if named, ok := value.(map[string]any); ok && named["name"] != nil {
				at := slices.IndexFunc(elements, func(e any) bool { o, ok := e.(map[string]any); return ok && o["name"] == named["name"] })
				if at < 0 {
					return fmt.Errorf("%s has no %v", path, named["name"])
				}
				element = elements[at]
			}
			errs = append(errs, includes(element, value, fmt.Sprintf("%s[%d]", path, i)))
		}
	default:
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	return errors.Join(errs...)
}
