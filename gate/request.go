package gate

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/workload"
)

// Pinning selects the component that replaces a tag by the verified digest.
type Pinning string

// The choices.
const (
	// PinHere: the caller applies Outcome.Patch, or reports it.
	PinHere Pinning = ""
	// PinNamed: the object is a template, and the pods made from it are pinned. Images that a
	// rule pins which names the object's kind itself (policy.Check.Named) are pinned here.
	PinNamed Pinning = "named"
	// PinLater: the object is a template, and the pods made from it are pinned. For images
	// that a rule pins which names the object's kind itself, it is as PinDone.
	PinLater Pinning = "later"
	// PinKept: the object is a template that cannot be changed, and the pods made from it are
	// pinned. For images that a rule pins which names the object's kind itself, it is as
	// PinNever.
	PinKept Pinning = "kept"
	// PinDone: the object was pinned before, so that a tag without digest, where a
	// policy pins and verifies digests, has slipped past.
	PinDone Pinning = "done"
	// PinNever: the object cannot be changed. A tag without digest, where a policy pins and
	// verifies digests, is denied, and the reason names the pinned reference.
	PinNever Pinning = "never"
)

// Request is one object that asks to run.
type Request struct {
	// Object may be a document that is no Kubernetes object; see ForDocument. It is zero at
	// DELETE; Subject then holds its kind.
	Object workload.Object
	// Old is the object's former state at UPDATE; zero otherwise. Images that it ran already
	// are not verified again.
	Old workload.Object
	// Pinning selects the component that pins.
	Pinning Pinning
	// Stage is the part of the evaluation that is requested.
	Stage Stage
	// Mutations: the outcome has the results of mutation rules where the stage leaves them out, too.
	// They change nothing and decide nothing.
	Mutations bool
	// OnlyImages: the object was made up around the images, so that rules about objects
	// are not asked.
	OnlyImages bool
	// Subject is the context of the object: the user, the operation, and the namespace's
	// labels. Its empty fields about the object itself are filled in from Object.
	Subject policy.Subject
	// Anonymous: the caller may name any namespace, so the pull credentials that the object
	// names are not used.
	Anonymous bool
	// ClusterScoped: the object is in no namespace, whatever it or Subject names. Kinds of
	// Kubernetes itself are recognised without it.
	ClusterScoped bool
}

// isPlaced reports whether the object's namespace is that of a request of the API server.
func (r Request) isPlaced() bool {
	return r.Object.IsZero() || r.Object.IsDocument() || r.Subject.Request.IsWhole()
}

// setNamespace sets the namespace of a cluster-scoped object as the API server does: none, and the own name
// and labels for a Namespace. A namespace that the object or the caller names has no effect, so
// that no exclusion of that namespace covers the object.
func (r Request) setNamespace(s *policy.Subject) {
	if r.isPlaced() || !r.ClusterScoped && !constraint.IsClusterScoped(r.Object.Group(), r.Object.Kind()) {
		return
	}
	s.Namespace, s.NamespaceKnown, s.NamespaceLabels = "", false, nil
	if r.Object.Group() == "" && r.Object.Kind() == "Namespace" && r.Object.Name() != "" {
		s.Namespace, s.NamespaceKnown = r.Object.Name(), true
		s.NamespaceLabels = r.Object.Root().Member("metadata").Member("labels").Texts()
	}
}

// ForImage returns the request of a Pod in the namespace with the image as its only
// container: policies that match objects evaluate a bare reference by it.
func ForImage(written, namespace string) (Request, error) {
	return forPod("image", map[string]any{"name": "image", "namespace": namespace}, map[string]any{
		"containers": []any{map[string]any{"name": "image", "image": written}},
	})
}

// ForImages returns the request of an endpoint that receives only images and their
// namespace, without the role of each: a Pod with a container for each image, named after
// its position from 0 on. The namespace may be empty (unknown), and so may the account
// whose pull secrets are used (the namespace's default account).
func ForImages(namespace, serviceAccount string, images []string) (Request, error) {
	containers := make([]any, len(images))
	for i, written := range images {
		containers[i] = map[string]any{"name": strconv.Itoa(i), "image": written}
	}
	spec := map[string]any{"containers": containers}
	if serviceAccount != "" {
		spec["serviceAccountName"] = serviceAccount
	}
	meta := map[string]any{}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	request, err := forPod("images", meta, spec)
	request.Subject.Bare = true
	return request, err
}

// ForDocument returns the request of a document that is no Kubernetes object. Its images
// are at the extractors of rules for such documents, and are not pinned.
func ForDocument(document workload.Object) Request {
	return Request{Object: document, Pinning: PinNever}
}

func forPod(of string, metadata, spec map[string]any) (Request, error) {
	pod, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
	if err != nil {
		return Request{}, fmt.Errorf("pod for %s: %w", of, err)
	}
	object, err := workload.Parse(pod)
	if err != nil {
		return Request{}, fmt.Errorf("pod for %s: %w", of, err)
	}
	return Request{Object: object, OnlyImages: true}, nil
}

// subject joins the request's subject with the fields of the object.
func (r Request) subject() *policy.Subject {
	s := r.Subject
	if !r.Object.IsZero() {
		s.Object = policy.ContentFrom(r.Object)
		if s.Kind == "" {
			s.Group, s.Version, s.Kind = r.Object.Group(), r.Object.Version(), r.Object.Kind()
		}
		if s.Name == "" {
			s.Name = r.Object.Name()
		}
		s.Document = r.Object.IsDocument()
	}
	if s.OldObject.IsZero() && !r.Old.IsZero() {
		s.OldObject = policy.ContentFrom(r.Old)
	}
	if s.Namespace == "" {
		s.Namespace = r.Object.Namespace()
	}
	r.setNamespace(&s)
	if s.Operation == "" {
		s.Operation = "CREATE"
	}
	return &s
}

// Stage selects a part of the evaluation, for callers that evaluate an object twice.
type Stage string

// The stages.
const (
	// StageAll is everything: mutation rules, images, validation rules.
	StageAll Stage = ""
	// StageMutate leaves the validation rules to a later call, when everybody has
	// changed the object.
	StageMutate Stage = "mutate"
	// StageMutateObject leaves the images to it, too.
	StageMutateObject Stage = "mutate-object"
	// StageValidate is about an object that was changed before, and changes nothing.
	StageValidate Stage = "validate"
)

func (s Stage) mutates() bool { return s != StageValidate }

func (s Stage) images() bool { return s != StageMutateObject }

func (s Stage) validates() bool { return s == StageAll || s == StageValidate }
