package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/workload"
)

// Label is on the objects that the component writes, with the value ofPolicy or ofProbe. It changes no others.
const Label = "quaymaster.dev/native"

const ofPolicy, ofProbe = "policy", "probe"

// The annotations of an object: the policy that it is made from, and the hash of that version.
const (
	policyAnnotation = "quaymaster.dev/policy"
	hashAnnotation   = "quaymaster.dev/policy-hash"
)

// resource is one of the kinds that the component writes, by its plural.
type resource string

const (
	validatingPolicies resource = "validatingadmissionpolicies"
	validatingBindings resource = "validatingadmissionpolicybindings"
	mutatingPolicies   resource = "mutatingadmissionpolicies"
	mutatingBindings   resource = "mutatingadmissionpolicybindings"
)

func (r resource) kind() string {
	switch r {
	case validatingPolicies:
		return "ValidatingAdmissionPolicy"
	case validatingBindings:
		return "ValidatingAdmissionPolicyBinding"
	case mutatingPolicies:
		return "MutatingAdmissionPolicy"
	}
	return "MutatingAdmissionPolicyBinding"
}

// isBinding reports whether objects of the resource bind policies.
func (r resource) isBinding() bool { return r == validatingBindings || r == mutatingBindings }

// versions are those in which the API server serves the kinds, empty for none, and its own version as the converter
// takes it.
type versions struct{ validating, mutating, kubernetes string }

// object is a wanted object.
type object struct {
	resource
	version string
	content *unstructured.Unstructured
}

// key identifies an object among those of all resources.
type key struct {
	resource
	name string
}

func (o object) key() key { return key{o.resource, o.content.GetName()} }

// group is that of all resources.
const group = "admissionregistration.k8s.io"

func (r resource) in(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: string(r)}
}

// origin is the policy that objects are made from.
type origin struct {
	policy *policy.Policy
	parsed workload.Object
}

// name is that of an object: the API server has it in each denial. The end distinguishes kinds and namespaces.
func (o origin) name(converted string) string {
	name := converted + "."
	if o.policy.Namespace != "" {
		name += o.policy.Namespace + "."
	}
	return name + strings.ToLower(o.policy.Kind) + ".quaymaster.dev"
}

// object makes an object of the policy. It has none of the policy's own labels: tools such as Argo CD would take it for
// a part of their own deployment, and delete it.
func (o origin) object(r resource, version, name string, spec any) (object, error) {
	made, err := newObject(r, version, name, spec)
	if err != nil {
		return object{}, err
	}
	made.content.SetLabels(map[string]string{Label: ofPolicy, configuration.ManagedBy: configuration.Name})
	made.content.SetAnnotations(map[string]string{policyAnnotation: o.policy.ID(), hashAnnotation: o.policy.Hash})
	if o.policy.Namespace != "" {
		return made, nil // an object without a namespace cannot have an owner in one
	}
	var head struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(o.parsed.JSON(), &head); err != nil || head.Metadata.UID == "" {
		return object{}, errors.New("the policy has no UID, so that it cannot own the native policy")
	}
	made.content.SetOwnerReferences([]meta.OwnerReference{{
		APIVersion: o.parsed.APIVersion(), Kind: o.parsed.Kind(), Name: o.policy.Name, UID: types.UID(head.Metadata.UID),
	}})
	return made, nil
}

func newObject(r resource, version, name string, spec any) (object, error) {
	text, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return object{}, fmt.Errorf("%s %s: %w", r.kind(), name, err)
	}
	content := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &content.Object); err != nil {
		return object{}, err
	}
	content.SetAPIVersion(group + "/" + version)
	content.SetKind(r.kind())
	content.SetName(name)
	return object{resource: r, version: version, content: content}, nil
}
