// Package deploy_test answers: are the manifests what Kubernetes reads, and do
// they say what they should?
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

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	disruption "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

// definition is what is used of a CustomResourceDefinition, whose types are in a
// module that nothing else needs. Anything else is refused.
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
	Preserve    bool              `json:"x-kubernetes-preserve-unknown-fields"`
	Validations []struct {
		Rule    string `json:"rule"`
		Message string `json:"message"`
	} `json:"x-kubernetes-validations"`
}

// kustomization is what is used of one.
type kustomization struct {
	metav1.TypeMeta `json:",inline"`

	Resources []string `json:"resources"`
}

// kinds are the types of what the manifests may hold.
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
		"kustomize.config.k8s.io/v1beta1 Kustomization":    func() any { return &kustomization{} },
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
	if err != nil || len(definitions) != 15 {
		t.Fatalf("definitions: %v, %v", definitions, err)
	}
	var objects []any
	for _, file := range append(files, definitions...) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, parse(t, file, content)...)
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
				t.Errorf("%s %s: unknown fields under spec and status must be kept, or nobody can refuse them", d.Name, v.Name)
			}
			// An override is to be refused even while no gateway answers.
			if len(root.Properties["spec"].Properties) > 0 && d.Spec.Names.Kind != "ImageOverride" {
				t.Errorf("%s %s: what spec may hold is the gateway's to say", d.Name, v.Name)
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

// TestRights refuses what would be more than the gateway needs.
func TestRights(t *testing.T) {
	for _, role := range all[rbac.ClusterRole](t) {
		for _, rule := range role.Rules {
			words := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs)
			if slices.Contains(words, "*") {
				t.Errorf("%s: * in %v", role.Name, rule)
			}
			secret := slices.Contains(rule.Resources, "secrets")
			if secret && (role.Name != "quaymaster-pull-secrets" || !slices.Equal(rule.Verbs, []string{"get"})) {
				t.Errorf("%s: secrets of all namespaces: %v", role.Name, rule.Verbs)
			}
			if tokens := slices.Contains(rule.Resources, "tokenreviews"); tokens && (role.Name != "quaymaster-tokenreview" || !slices.Equal(rule.Verbs, []string{"create"})) {
				t.Errorf("%s: tokens: %v", role.Name, rule.Verbs)
			}
			if writes := slices.ContainsFunc(rule.Verbs, func(v string) bool { return v == "patch" || v == "update" || v == "create" }); writes && slices.Contains(rule.APIGroups, "config.openshift.io") {
				t.Errorf("%s: may write OpenShift's: %v", role.Name, rule)
			}
			// Reports are made and taken away, and of these kinds there is nothing else.
			reports := role.Name == "quaymaster-reports" && (slices.Equal(rule.APIGroups, []string{"wgpolicyk8s.io"}) || slices.Equal(rule.APIGroups, []string{"openreports.io"}))
			for _, verb := range []string{"delete", "deletecollection", "escalate", "bind", "impersonate"} {
				if slices.Contains(rule.Verbs, verb) && (!reports || verb != "delete") {
					t.Errorf("%s: %s in %v", role.Name, verb, rule)
				}
			}
			if slices.Contains(rule.Verbs, "update") && len(rule.ResourceNames) == 0 && !reports {
				t.Errorf("%s: may update any of %v", role.Name, rule.Resources)
			}
		}
	}
}

// TestBindings makes sure that roles, accounts and bindings mean one another.
func TestBindings(t *testing.T) {
	account := all[core.ServiceAccount](t)[0]
	roles := make(map[string]bool)
	for _, r := range all[rbac.ClusterRole](t) {
		roles["ClusterRole "+r.Name] = true
	}
	for _, r := range all[rbac.Role](t) {
		roles["Role "+r.Name] = true
	}
	check := func(ref rbac.RoleRef, subjects []rbac.Subject) {
		delete(roles, ref.Kind+" "+ref.Name)
		if len(subjects) != 1 || subjects[0].Name != account.Name || subjects[0].Namespace != account.Namespace || subjects[0].Kind != rbac.ServiceAccountKind {
			t.Errorf("%s is bound to %v", ref.Name, subjects)
		}
	}
	for _, b := range all[rbac.ClusterRoleBinding](t) {
		check(b.RoleRef, b.Subjects)
	}
	for _, b := range all[rbac.RoleBinding](t) {
		check(b.RoleRef, b.Subjects)
	}
	if len(roles) > 0 {
		t.Errorf("nobody is bound to %v", roles)
	}
	if got := all[apps.Deployment](t)[0].Spec.Template.Spec.ServiceAccountName; got != account.Name {
		t.Errorf("the pods run as %q", got)
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
		{"replicas apart", pod.Affinity.PodAntiAffinity != nil},
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
			if open := len(rule.From) == 0; open != (p.Name == "quaymaster-doors" && port == "webhook") {
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
			ExcludedNamespaces []string `json:"excludedNamespaces"`
		} `json:"webhooks"`
		Trust struct {
			CacheFolder string `json:"cacheFolder"`
		} `json:"trust"`
	}
	object := all[core.ConfigMap](t)[0]
	if err := strict.UnmarshalStrict([]byte(object.Data["gateway.yaml"]), &c); err != nil {
		t.Fatal(err)
	}
	if c.Namespace != object.Namespace || c.Webhooks.Service != all[core.Service](t)[0].Name || c.Namespace != all[core.Namespace](t)[0].Name {
		t.Errorf("the configuration speaks of %+v", c)
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

// TestGatewayMayReadWhatItWatches: every kind of document that ships, and its status
// where it is ours.
func TestGatewayMayReadWhatItWatches(t *testing.T) {
	may := map[string]bool{}
	for _, role := range all[rbac.ClusterRole](t) {
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					may[role.Name+" "+verb+" "+resource+"."+rule.APIGroups[0]] = true
				}
			}
		}
	}
	var wanted []string
	for _, d := range all[definition](t) {
		for _, verb := range []string{"get", "list", "watch"} {
			wanted = append(wanted, verb+" "+d.Name)
		}
		if d.Spec.Group == "quaymaster.dev" {
			wanted = append(wanted, "patch "+d.Spec.Names.Plural+"/status."+d.Spec.Group)
		}
	}
	for _, right := range wanted {
		if !may["quaymaster "+right] {
			t.Errorf("the gateway may not %s", right)
		}
	}
}

func TestKustomizationLeavesOutWhatIsNotForAll(t *testing.T) {
	for _, resource := range all[kustomization](t)[0].Resources {
		if strings.HasPrefix(resource, "crds/") && !strings.HasPrefix(resource, "crds/quaymaster.dev_") {
			t.Errorf("%s: these definitions belong only where those of the engine that they come from are absent", resource)
		}
		if resource == "tokenreview.yaml" {
			t.Errorf("%s: it is for a door that is closed unless it is turned on", resource)
		}
		if _, err := os.Stat(resource); err != nil {
			t.Error(err)
		}
	}
}
