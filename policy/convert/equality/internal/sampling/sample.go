package sampling

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
	kubejson "sigs.k8s.io/json"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/facts"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/tree"
	"github.com/quaymaster/quaymaster/workload"
	"github.com/quaymaster/quaymaster/workload/stored"
)

// Sample is a request about an object, as an API server sends it.
type Sample struct {
	Operation   string `json:"operation"`
	Subresource string `json:"subresource,omitempty"`
	// Object is the new state, Old the former one; nil for none.
	Object map[string]any `json:"object,omitempty"`
	Old    map[string]any `json:"oldObject,omitempty"`
	User   User           `json:"user"`
	// NamespaceLabels are those of the object's namespace, besides the one that the API server sets.
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
	// Existing are the other objects that the policies look up, change or copy.
	Existing []map[string]any `json:"existing,omitempty"`

	resource string
	cluster  bool
	exists   bool // it is the object of a cluster, which took it
}

// Creation is the creation of an object by a user.
func Creation(object map[string]any) *Sample {
	s := &Sample{Operation: "CREATE", Object: object, User: user()}
	version, _ := object["apiVersion"].(string)
	group, _, ok := strings.Cut(version, "/")
	if !ok {
		group = ""
	}
	name, _ := object["kind"].(string)
	s.resource, s.cluster = resourceOf(group, name)
	return s
}

// Existing is the creation of an object that a cluster has, in a namespace with labels.
func Existing(object map[string]any, resource string, isCluster bool, labels map[string]string) *Sample {
	return &Sample{Operation: "CREATE", Object: object, User: user(), NamespaceLabels: labels, resource: resource, cluster: isCluster, exists: true}
}

// Unchecked has the objects as they are: those of a test suite may be none that an API server has.
func (s *Sample) Unchecked() *Sample {
	s.exists = true
	return s
}

// user requests where no policy selects users.
func user() User { return User{"ann", []string{"system:authenticated"}} }

// User is the requester.
type User struct {
	Name   string   `json:"username"`
	Groups []string `json:"groups,omitempty"`
}

// unfitError means that no API server can have the object.
type unfitError struct{ of string }

// Error implements error.
func (e unfitError) Error() string { return e.of + " is refused by the type of its kind" }

// Object returns content as an API server has it.
func Object(content map[string]any) (workload.Object, error) {
	if content == nil {
		return workload.Object{}, nil
	}
	if !isValid(content) {
		return workload.Object{}, unfitError{"the object"}
	}
	version, _ := content["apiVersion"].(string)
	name, _ := content["kind"].(string)
	typed, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(version, name))
	if err != nil { // a custom kind
		if !isMetadata(content["metadata"]) {
			return workload.Object{}, unfitError{name}
		}
		return AsIs(content)
	}
	return written(content, name, typed)
}

// written returns an object of a built-in kind as the type of its kind writes it, with the members that it always writes.
// Members that the type does not have, which an API server drops, are an error.
func written(content map[string]any, name string, typed runtime.Object) (workload.Object, error) {
	if hasLargeQuantity(content) {
		return workload.Object{}, unfitError{name}
	}
	text, err := json.Marshal(content)
	if err != nil {
		return workload.Object{}, err
	}
	unknown, err := kubejson.UnmarshalStrict(text, typed)
	if err != nil || len(unknown) > 0 {
		return workload.Object{}, unfitError{name}
	}
	text, err = json.Marshal(typed)
	if err != nil {
		return workload.Object{}, err
	}
	out, err := workload.Parse(text)
	if err == nil && name == "Secret" {
		out = stored.Object(out) // with its stringData in its data
	}
	return out, err
}

// isMetadata reports whether a value fits the type of metadata, which objects of custom kinds have, too.
func isMetadata(meta any) bool {
	text, err := json.Marshal(meta)
	return err == nil && json.Unmarshal(text, &metav1.ObjectMeta{}) == nil
}

// hasLargeQuantity reports whether a text, apart from the metadata, may take minutes to be parsed as a quantity.
func hasLargeQuantity(value any) bool {
	switch value := value.(type) {
	case string:
		return limit.Quantity(value) != nil
	case []any:
		return slices.ContainsFunc(value, hasLargeQuantity)
	case map[string]any:
		for name, member := range value {
			if name != "metadata" && hasLargeQuantity(member) {
				return true
			}
		}
	}
	return false
}

// AsIs returns content as an object, unchecked.
func AsIs(content map[string]any) (workload.Object, error) {
	if content == nil {
		return workload.Object{}, nil
	}
	text, err := json.Marshal(content)
	if err != nil {
		return workload.Object{}, err
	}
	return workload.Parse(text)
}

// isValid reports whether an API server takes the members of every object: names, labels, and the containers of pods.
func isValid(content map[string]any) bool {
	meta, _ := content["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	namespace, hasNamespace := meta["namespace"].(string)
	if len(validation.IsDNS1123Subdomain(name)) > 0 || hasNamespace && len(validation.IsDNS1123Label(namespace)) > 0 {
		return false
	}
	for member := range meta {
		if !slices.Contains(metadataFields(), member) { // an API server drops it
			return false
		}
	}
	labels, _ := meta["labels"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	for key, value := range labels {
		text, isText := value.(string)
		if !isText || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(text)) > 0 {
			return false
		}
	}
	for key, value := range annotations {
		if _, isText := value.(string); !isText || len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
			return false
		}
	}
	apiVersion, _ := content["apiVersion"].(string)
	group, version, _ := strings.Cut(apiVersion, "/")
	if version == "" {
		group, version = "", apiVersion
	}
	of := kind{group: group, version: version}
	of.name, _ = content["kind"].(string)
	if _, has := content["spec"].(map[string]any); !has && of.hasSpec() {
		return false
	}
	at, isPod := of.template()
	if !isPod {
		return true
	}
	if required, has := tree.Get(content, at.With("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")).(map[string]any); has {
		if terms, _ := required["nodeSelectorTerms"].([]any); len(terms) == 0 {
			return false
		}
	}
	containers, _ := tree.Get(content, at.With("spec", "containers")).([]any)
	return len(containers) > 0 && areNamed(content, at)
}

// areNamed reports whether all containers have a name of their own and an image, and no two volumes one name.
func areNamed(content map[string]any, at facts.Path) bool {
	names := map[string]bool{}
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		containers, _ := tree.Get(content, at.With("spec", list)).([]any)
		for _, one := range containers {
			container, _ := one.(map[string]any)
			name, _ := container["name"].(string)
			image, _ := container["image"].(string)
			if name == "" || image == "" || names[name] {
				return false
			}
			names[name] = true
		}
	}
	volumes, _ := tree.Get(content, at.With("spec", "volumes")).([]any)
	taken := map[string]bool{}
	for _, one := range volumes {
		volume, _ := one.(map[string]any)
		if name, _ := volume["name"].(string); !taken[name] {
			taken[name] = true
			continue
		}
		return false
	}
	return true
}

// metadataFields are those of every object, which samples have.
func metadataFields() []string {
	return []string{
		"name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "uid", "resourceVersion", "generation", "managedFields", "selfLink",
	}
}

// Request is the request for the gate. An error means that no API server sends it.
func (s *Sample) Request() (gate.Request, error) {
	var request gate.Request
	var err error
	read := Object
	if s.exists {
		read = AsIs
	}
	request.Object, err = read(s.Object)
	if err != nil {
		return request, err
	}
	request.Old, err = read(s.Old)
	if err != nil {
		return request, err
	}
	of := request.Object
	if of.IsZero() {
		of = request.Old
	}
	if of.IsZero() {
		return request, errors.New("a sample has no object")
	}
	kind := map[string]any{"group": of.Group(), "version": of.Version(), "kind": of.Kind()}
	resource := map[string]any{"group": of.Group(), "version": of.Version(), "resource": s.resource}
	text, err := json.Marshal(map[string]any{
		"uid": "00000000-0000-0000-0000-000000000000", "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
		"subResource": s.Subresource, "requestSubResource": s.Subresource, "name": of.Name(), "namespace": of.Namespace(), "operation": s.Operation,
		"userInfo": map[string]any{"username": s.User.Name, "groups": s.User.Groups}, "dryRun": false,
	})
	if err != nil {
		return request, err
	}
	request.ClusterScoped = s.cluster
	subject := &request.Subject
	subject.Time = Now()
	subject.Group, subject.Version, subject.Kind, subject.Subresource = of.Group(), of.Version(), of.Kind(), s.Subresource
	subject.Name, subject.Namespace, subject.Operation = of.Name(), of.Namespace(), s.Operation
	subject.User = policy.User{Name: s.User.Name, Groups: s.User.Groups, RolesKnown: true, Whole: true}
	subject.Request = policy.RequestFrom(text)
	if s.Old != nil {
		subject.OldObject = policy.ContentFrom(request.Old)
	}
	if namespace := of.Namespace(); namespace != "" && !s.cluster {
		subject.NamespaceKnown, subject.NamespaceLabels = true, maps.Clone(s.NamespaceLabels)
		if subject.NamespaceLabels == nil {
			subject.NamespaceLabels = map[string]string{}
		}
		subject.NamespaceLabels["kubernetes.io/metadata.name"] = namespace
	}
	if of.Kind() == "Namespace" && of.Group() == "" {
		subject.Namespace, subject.NamespaceKnown, subject.NamespaceLabels = of.Name(), true, of.Root().Member("metadata").Member("labels").Texts()
	}
	return request, nil
}

// Stored returns the sample as an API server has its objects.
func (s Sample) Stored() Sample {
	for _, of := range []*map[string]any{&s.Object, &s.Old} {
		if stored, err := Object(*of); *of != nil && err == nil {
			*of = stored.Content()
		}
	}
	return s
}

// clone returns a sample that shares no object with the original.
func (s *Sample) clone() Sample {
	out := *s
	out.Object, out.Old, out.NamespaceLabels = tree.CopyObject(s.Object), tree.CopyObject(s.Old), maps.Clone(s.NamespaceLabels)
	out.Existing = make([]map[string]any, len(s.Existing))
	for i := range s.Existing {
		out.Existing[i] = tree.CopyObject(s.Existing[i])
	}
	return out
}

// named gives containers the members that their type requires.
func named(prefix string, list any) {
	containers, _ := list.([]any)
	for i, one := range containers {
		container, ok := one.(map[string]any)
		if !ok {
			container = map[string]any{}
			containers[i] = container
		}
		if _, has := container["name"]; !has {
			container["name"] = prefix + strings.Repeat("c", i+1)
		}
		if _, has := container["image"]; !has {
			container["image"] = "registry.example/web:v1"
		}
	}
}
