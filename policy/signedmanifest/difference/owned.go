package difference

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/quaymaster/quaymaster/workload"
)

// kind is the kind of an object.
type kind struct {
	group, name string
	// builtIn: the kind is one of Kubernetes itself.
	builtIn bool
}

func kindOf(object map[string]any) kind {
	version, _ := object["apiVersion"].(string)
	name, _ := object["kind"].(string)
	id := schema.FromAPIVersionAndKind(version, name)
	builtIn := scheme.Scheme.Recognizes(id) || slices.Contains([]string{"apiextensions.k8s.io", "apiregistration.k8s.io"}, id.Group)
	return kind{group: id.Group, name: name, builtIn: builtIn}
}

func (k kind) is(group string, names ...string) bool {
	return k.group == group && slices.Contains(names, k.name)
}

// ownedMetadata are the fields that the API server sets, whatever the author of an object writes.
var ownedMetadata = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds",
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// owned reports whether the API server or a controller of Kubernetes has the field to itself. A value
// of nil is one that is not there.
func (s *search) owned(at place, found any) bool {
	if len(at.path) == 1 {
		return at.path[0] == "status" && s.kind.builtIn // of a custom kind, its author may have written it
	}
	if at.path[0] != "metadata" {
		return s.isNodeName(at) || found == nil && s.kind.builtIn && at.isTimestamp()
	}
	switch text, _ := found.(string); {
	case len(at.path) == 2:
		return slices.Contains(ownedMetadata, at.path[1])
	case len(at.path) != 3 || at.path[1] != "annotations":
		return false
	case at.path[2] == "deployment.kubernetes.io/revision":
		return s.kind.is("apps", "Deployment") && isDigits(text)
	case at.path[2] == "deprecated.daemonset.template.generation":
		return s.kind.is("apps", "DaemonSet") && isDigits(text)
	case at.path[2] == lastApplied:
		return s.isManifest(text)
	}
	return false
}

func isDigits(text string) bool {
	return text != "" && len(text) < 20 && strings.Trim(text, "0123456789") == ""
}

// isTimestamp: types of Kubernetes write the null creationTimestamp of a template.
func (p place) isTimestamp() bool {
	return strings.HasSuffix(p.general, general(".metadata.creationTimestamp"))
}

// isNodeName: a scheduler binds a stored pod. The node of a new one is its author's choice.
func (s *search) isNodeName(at place) bool {
	return s.terms.Stored && s.kind.is("", "Pod") && at.general == general("spec.nodeName")
}

// isManifest reports whether the text that kubectl adds is the manifest itself.
func (s *search) isManifest(text string) bool {
	applied, err := workload.Parse([]byte(text))
	if err != nil {
		return false
	}
	content := applied.Content()
	if _, nested := member(content, "metadata", "annotations")[lastApplied]; nested || !s.isNamed(content) {
		return false
	}
	differences, err := s.terms.find(s.written, s.written, content)
	return err == nil && len(differences) == 0
}

// isNamed reports whether an object has the names of the object that is compared.
func (s *search) isNamed(other map[string]any) bool {
	is, was := member(s.root, "metadata"), member(other, "metadata")
	return was["generateName"] != nil || was["name"] == is["name"] && (was["namespace"] == nil || was["namespace"] == is["namespace"])
}

// knownFinalizers are those that Kubernetes itself adds.
var knownFinalizers = []string{
	"foregroundDeletion", "orphan", "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection",
	"service.kubernetes.io/load-balancer-cleanup", "batch.kubernetes.io/job-tracking",
}

// finalizers compares the finalizers, in any order. Those of an object that is being deleted are
// removed one by one.
func (s *search) finalizers(at place, signed, found []any) {
	if s.skipped(at) {
		return
	}
	metadata := member(s.root, "metadata")
	was, is := names(signed), names(found)
	for i, name := range is {
		if !slices.Contains(was, name) && !slices.Contains(knownFinalizers, name) && !s.skipped(at.element(i)) {
			s.report(at.element(i), "was not signed")
		}
	}
	for i, name := range was {
		if !slices.Contains(is, name) && metadata["deletionTimestamp"] == nil && !s.skipped(at.element(i)) {
			s.report(at.element(i), "was signed and is not there")
		}
	}
}

// names returns the texts of a list; another value is an empty one, which is no name.
func names(list []any) []string {
	out := make([]string, len(list))
	for i, one := range list {
		out[i], _ = one.(string)
	}
	return out
}
