// Package deploy_test checks that Kubernetes accepts the manifests, and that their content is
// right.
package deploy_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	disruption "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

// definition is the used part of a CustomResourceDefinition: its types are in a module that has no
// other use. Other fields are refused.
type definition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Kind       string   `json:"kind"`
			ListKind   string   `json:"listKind"`
			Plural     string   `json:"plural"`
			Singular   string   `json:"singular"`
			ShortNames []string `json:"shortNames"`
			Categories []string `json:"categories"`
		} `json:"names"`
		Versions []struct {
			Name         string `json:"name"`
			Served       bool   `json:"served"`
			Storage      bool   `json:"storage"`
			Deprecated   bool   `json:"deprecated"`
			Subresources *struct {
				Status *struct{} `json:"status"`
			} `json:"subresources"`
			Columns []struct {
				Name     string `json:"name"`
				Type     string `json:"type"`
				JSONPath string `json:"jsonPath"`
				Priority int    `json:"priority"`
			} `json:"additionalPrinterColumns"`
			Schema struct {
				OpenAPI schema `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

type schema struct {
	Type        string            `json:"type"`
	Format      string            `json:"format"`
	Description string            `json:"description"`
	Enum        []string          `json:"enum"`
	Required    []string          `json:"required"`
	MinLength   int               `json:"minLength"`
	MaxLength   int               `json:"maxLength"`
	Pattern     string            `json:"pattern"`
	MinItems    int               `json:"minItems"`
	MaxItems    int               `json:"maxItems"`
	Properties  map[string]schema `json:"properties"`
	Items       *schema           `json:"items"`
	Additional  *schema           `json:"additionalProperties"`
	Minimum     int               `json:"minimum"`
	Maximum     int               `json:"maximum"`
	Nullable    bool              `json:"nullable"`
	OneOf       []schema          `json:"oneOf"`
	AnyOf       []schema          `json:"anyOf"`
	Not         *schema           `json:"not"`
	Preserve    bool              `json:"x-kubernetes-preserve-unknown-fields"`
	IntOrString bool              `json:"x-kubernetes-int-or-string"`
	ListType    string            `json:"x-kubernetes-list-type"`
	ListMapKeys []string          `json:"x-kubernetes-list-map-keys"`
	MapType     string            `json:"x-kubernetes-map-type"`
	Validations []struct {
		Rule    string `json:"rule"`
		Message string `json:"message"`
	} `json:"x-kubernetes-validations"`
}

// kinds are the types that the manifests may hold.
func kinds() map[string]func() any {
	return map[string]func() any{
		"v1 Namespace":                                     func() any { return &core.Namespace{} },
		"v1 ConfigMap":                                     func() any { return &core.ConfigMap{} },
		"v1 Service":                                       func() any { return &core.Service{} },
		"v1 ServiceAccount":                                func() any { return &core.ServiceAccount{} },
		"apps/v1 Deployment":                               func() any { return &apps.Deployment{} },
		"policy/v1 PodDisruptionBudget":                    func() any { return &disruption.PodDisruptionBudget{} },
		"networking.k8s.io/v1 NetworkPolicy":               func() any { return &networking.NetworkPolicy{} },
		"rbac.authorization.k8s.io/v1 ClusterRole":         func() any { return &rbac.ClusterRole{} },
		"rbac.authorization.k8s.io/v1 ClusterRoleBinding":  func() any { return &rbac.ClusterRoleBinding{} },
		"rbac.authorization.k8s.io/v1 Role":                func() any { return &rbac.Role{} },
		"rbac.authorization.k8s.io/v1 RoleBinding":         func() any { return &rbac.RoleBinding{} },
		"apiextensions.k8s.io/v1 CustomResourceDefinition": func() any { return &definition{} },

		"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy":        func() any { return &admission.ValidatingAdmissionPolicy{} },
		"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": func() any { return &admission.ValidatingAdmissionPolicyBinding{} },
	}
}

// read returns the objects of all manifests, strictly read.
func read(t *testing.T) []any {
	t.Helper()
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := filepath.Glob("crds/*.yaml")
	if err != nil || len(definitions) != 21 {
		t.Fatalf("definitions: %v, %v", definitions, err)
	}
	var objects []any
	for _, file := range append(files, definitions...) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range parse(t, file, content) {
			// install.yaml has the chart's copy of our own.
			if _, copied := object.(*definition); !copied || file != "install.yaml" {
				objects = append(objects, object)
			}
		}
	}
	return objects
}

func parse(t *testing.T, file string, content []byte) []any {
	t.Helper()
	var objects []any
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		var meta metav1.TypeMeta
		if err := strict.Unmarshal(document, &meta); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		empty, ok := kinds()[meta.APIVersion+" "+meta.Kind]
		if !ok {
			t.Fatalf("%s: %s %s is not expected here", file, meta.APIVersion, meta.Kind)
		}
		object := empty()
		if err := strict.UnmarshalStrict(document, object); err != nil {
			t.Errorf("%s: %s: %v", file, meta.Kind, err)
		}
		objects = append(objects, object)
	}
}

func all[T any](t *testing.T) []*T {
	t.Helper()
	var found []*T
	for _, object := range read(t) {
		if o, ok := object.(*T); ok {
			found = append(found, o)
		}
	}
	if len(found) == 0 {
		t.Fatalf("there is no %T", *new(T))
	}
	return found
}

func TestDefinitions(t *testing.T) {
	for _, d := range all[definition](t) {
		if d.Name != d.Spec.Names.Plural+"."+d.Spec.Group || d.Annotations["quaymaster.dev/shipped-by"] == "" {
			t.Errorf("%s: name or annotation is wrong", d.Name)
		}
		storage := 0
		for _, v := range d.Spec.Versions {
			if v.Storage {
				storage++
			}
			root := v.Schema.OpenAPI
			if !v.Served || !root.Properties["spec"].Preserve || !root.Properties["status"].Preserve {
				t.Errorf("%s %s: unknown fields under spec and status must be kept, or they cannot be refused", d.Name, v.Name)
			}
			if len(root.Properties["spec"].Properties) == 0 {
				t.Errorf("%s %s: kubectl explain knows no field of spec", d.Name, v.Name)
			}
		}
		if storage != 1 {
			t.Errorf("%s: %d versions are stored", d.Name, storage)
		}
	}
}

// TestDefinitionsAreLikeThoseOfOthers: an object that one engine's definition keeps
// is one of the other's, so that either can be put in the other's place. Of versions
// the first is stored.
func TestDefinitionsAreLikeThoseOfOthers(t *testing.T) {
	want := map[string]string{
		"ClusterPolicy":                       "Cluster clusterpolicies.kyverno.io v1 v2beta1",
		"Policy":                              "Namespaced policies.kyverno.io v1 v2beta1",
		"PolicyException kyverno.io":          "Namespaced policyexceptions.kyverno.io v2 v2beta1",
		"ImageValidatingPolicy":               "Cluster imagevalidatingpolicies.policies.kyverno.io v1beta1 v1 v1alpha1",
		"NamespacedImageValidatingPolicy":     "Namespaced namespacedimagevalidatingpolicies.policies.kyverno.io v1beta1 v1",
		"PolicyException policies.kyverno.io": "Namespaced policyexceptions.policies.kyverno.io v1beta1 v1 v1alpha1",
		"ValidatingPolicy":                    "Cluster validatingpolicies.policies.kyverno.io v1beta1 v1 v1alpha1",
		"NamespacedValidatingPolicy":          "Namespaced namespacedvalidatingpolicies.policies.kyverno.io v1beta1 v1",
		"MutatingPolicy":                      "Cluster mutatingpolicies.policies.kyverno.io v1beta1 v1 v1alpha1",
		"NamespacedMutatingPolicy":            "Namespaced namespacedmutatingpolicies.policies.kyverno.io v1beta1 v1",
		"CleanupPolicy":                       "Namespaced cleanuppolicies.kyverno.io v2 v2beta1",
		"ClusterCleanupPolicy":                "Cluster clustercleanuppolicies.kyverno.io v2 v2beta1",
		"DeletingPolicy":                      "Cluster deletingpolicies.policies.kyverno.io v1beta1 v1 v1alpha1",
		"NamespacedDeletingPolicy":            "Namespaced namespaceddeletingpolicies.policies.kyverno.io v1beta1 v1",
		"GeneratingPolicy":                    "Cluster generatingpolicies.policies.kyverno.io v1beta1 v1 v1alpha1",
		"NamespacedGeneratingPolicy":          "Namespaced namespacedgeneratingpolicies.policies.kyverno.io v1beta1 v1",
		"GlobalContextEntry":                  "Cluster globalcontextentries.kyverno.io v2beta1 v2 v2alpha1",
		"ClusterImagePolicy":                  "Cluster clusterimagepolicies.policy.sigstore.dev v1alpha1 v1beta1",
		"TrustRoot":                           "Cluster trustroots.policy.sigstore.dev v1alpha1",
	}
	for _, d := range all[definition](t) {
		kind := d.Spec.Names.Kind
		if kind == "PolicyException" {
			kind += " " + d.Spec.Group
		}
		if d.Spec.Group == "quaymaster.dev" {
			continue
		}
		got := d.Spec.Scope + " " + d.Name
		for _, stored := range []bool{true, false} {
			for _, v := range d.Spec.Versions {
				if v.Storage == stored {
					got += " " + v.Name
				}
			}
		}
		if got != want[kind] {
			t.Errorf("%s: %s, want %s", kind, got, want[kind])
		}
		delete(want, kind)
	}
	if len(want) > 0 {
		t.Errorf("nothing ships for %v", want)
	}
}

func TestPodIsHardened(t *testing.T) {
	pod := all[apps.Deployment](t)[0].Spec.Template.Spec
	container := pod.Containers[0]
	tests := []struct {
		reason string
		holds  bool
	}{
		{"not as root", *pod.SecurityContext.RunAsNonRoot && *pod.SecurityContext.RunAsUser > 0},
		{"the runtime's filter of system calls", pod.SecurityContext.SeccompProfile.Type == core.SeccompProfileTypeRuntimeDefault},
		{"a root that cannot be written", *container.SecurityContext.ReadOnlyRootFilesystem},
		{"no capabilities", slices.Equal(container.SecurityContext.Capabilities.Drop, []core.Capability{"ALL"}) && len(container.SecurityContext.Capabilities.Add) == 0},
		{"no escalation", !*container.SecurityContext.AllowPrivilegeEscalation},
		{"nothing of the node", !pod.HostNetwork && !pod.HostPID && !pod.HostIPC && !slices.ContainsFunc(pod.Volumes, func(v core.Volume) bool { return v.HostPath != nil })},
		{"bounded memory", !container.Resources.Limits.Memory().IsZero()},
		{"probes", container.ReadinessProbe != nil && container.LivenessProbe != nil && container.StartupProbe != nil},
		{"replicas apart", slices.ContainsFunc(pod.TopologySpreadConstraints, func(c core.TopologySpreadConstraint) bool { return c.TopologyKey == core.LabelHostname })},
		{"time to drain", *pod.TerminationGracePeriodSeconds >= 5+30},
	}
	for _, test := range tests {
		if !test.holds {
			t.Errorf("does not hold: %s", test.reason)
		}
	}
}

// TestPortsMeet follows the ports from the Services and the NetworkPolicy to the
// container, and the selectors to its labels.
func TestPortsMeet(t *testing.T) {
	deployment := all[apps.Deployment](t)[0]
	labels := deployment.Spec.Template.Labels
	ports := make(map[string]int32)
	for _, p := range deployment.Spec.Template.Spec.Containers[0].Ports {
		ports[p.Name] = p.ContainerPort
	}
	if ports["webhook"] != 9443 || ports["plain"] != 8000 {
		t.Errorf("ports %v are not those that the gateway listens on", ports)
	}
	selectors := []map[string]string{
		deployment.Spec.Selector.MatchLabels,
		all[disruption.PodDisruptionBudget](t)[0].Spec.Selector.MatchLabels,
	}
	for _, p := range all[networking.NetworkPolicy](t) {
		selectors = append(selectors, p.Spec.PodSelector.MatchLabels)
	}
	for _, s := range all[core.Service](t) {
		selectors = append(selectors, s.Spec.Selector)
		if _, ok := ports[s.Spec.Ports[0].TargetPort.StrVal]; !ok {
			t.Errorf("service %s leads nowhere", s.Name)
		}
	}
	for _, selector := range selectors {
		for key, value := range selector {
			if labels[key] != value {
				t.Errorf("%v does not select %v", selector, labels)
			}
		}
	}
	for _, p := range all[networking.NetworkPolicy](t) {
		for _, rule := range p.Spec.Ingress {
			port := rule.Ports[0].Port.StrVal
			if _, ok := ports[port]; !ok {
				t.Errorf("the network policy opens %q, which is no port", port)
			}
			if open := len(rule.From) == 0; open != (p.Name == "quaymaster-endpoints" && port == "webhook") {
				t.Errorf("%s: port %s is open to everybody: %v", p.Name, port, open)
			}
		}
	}
}

// TestConfigurationFits compares the names in the configuration with those of the
// manifests. The gateway's own tests read it strictly.
func TestConfigurationFits(t *testing.T) {
	var c struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Namespace  string `json:"namespace"`
		Webhooks   struct {
			Service            string   `json:"service"`
			Owner              string   `json:"owner"`
			ExcludedNamespaces []string `json:"excludedNamespaces"`
			BreakGlass         bool     `json:"breakGlass"`
		} `json:"webhooks"`
		Certificate struct {
			Secret string `json:"secret"`
		} `json:"certificate"`
		Trust struct {
			CacheFolder string `json:"cacheFolder"`
		} `json:"trust"`
	}
	object := all[core.ConfigMap](t)[0]
	if err := strict.UnmarshalStrict([]byte(object.Data["gateway.yaml"]), &c); err != nil {
		t.Fatal(err)
	}
	if c.Namespace != object.Namespace || c.Webhooks.Service != all[core.Service](t)[0].Name || c.Namespace != all[core.Namespace](t)[0].Name {
		t.Errorf("the configuration has %+v", c)
	}
	if !slices.ContainsFunc(all[rbac.ClusterRole](t), func(r *rbac.ClusterRole) bool { return r.Name == c.Webhooks.Owner }) {
		t.Errorf("the webhook configurations have no owner: there is no ClusterRole %s", c.Webhooks.Owner)
	}
	if !slices.ContainsFunc(all[rbac.Role](t)[0].Rules, func(r rbac.PolicyRule) bool { return slices.Equal(r.ResourceNames, []string{c.Certificate.Secret}) }) {
		t.Errorf("the gateway may not read the Secret %s", c.Certificate.Secret)
	}
	mounts := all[apps.Deployment](t)[0].Spec.Template.Spec.Containers[0].VolumeMounts
	if !slices.ContainsFunc(mounts, func(m core.VolumeMount) bool { return m.MountPath == c.Trust.CacheFolder && !m.ReadOnly }) {
		t.Errorf("nothing that can be written is mounted at %q", c.Trust.CacheFolder)
	}
	args := strings.Join(all[apps.Deployment](t)[0].Spec.Template.Spec.Containers[0].Args, " ")
	if args != "serve --config=/etc/quaymaster/gateway.yaml" {
		t.Errorf("the gateway is started with %s", args)
	}
}

// TestInstallLeavesOutOptionalParts: neither definitions that belong only where those of
// the engine that they come from are absent, nor rights for an endpoint that is closed unless
// it is turned on.
func TestInstallLeavesOutOptionalParts(t *testing.T) {
	content, err := os.ReadFile("install.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for _, object := range parse(t, "install.yaml", content) {
		switch o := object.(type) {
		case *definition:
			ours++
			if o.Spec.Group != "quaymaster.dev" {
				t.Errorf("%s: it belongs only where the own one is absent", o.Name)
			}
		case *rbac.ClusterRole:
			if strings.HasSuffix(o.Name, "-tokenreview") {
				t.Errorf("%s: it is for an endpoint that is closed unless it is turned on", o.Name)
			}
		}
	}
	if ours != 2 {
		t.Errorf("%d definitions, want our own two", ours)
	}
}
