package gate

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// Pinning says who replaces a tag by the digest that was proved.
type Pinning string

// The choices.
const (
	// PinHere: the caller applies Outcome.Patch, or tells what it would be.
	PinHere Pinning = ""
	// PinNamed: the object is a template, and the pods made from it are pinned. What a
	// rule that names the object's kind itself pins (policy.Check.Named) is pinned here.
	PinNamed Pinning = "named"
	// PinLater: the object is a template, and the pods made from it are pinned. Of what a
	// rule that names the object's kind itself pins, it is as PinDone.
	PinLater Pinning = "later"
	// PinKept: the object is a template that nobody may change, and the pods made from it
	// are pinned. Of what a rule that names the object's kind itself pins, it is as
	// PinNever.
	PinKept Pinning = "kept"
	// PinDone: the object was pinned before, so that a tag without digest, where a
	// policy pins and verifies digests, has slipped past.
	PinDone Pinning = "done"
	// PinNever: nobody can change the object, so that a tag without digest, where a
	// policy pins and verifies digests, is refused by the name that it should have.
	PinNever Pinning = "never"
)

// Request is one object that asks to run.
type Request struct {
	// Object may be a document that is no Kubernetes object; see ForDocument. It is zero
	// at DELETE, and then Subject says of what kind it was.
	Object workload.Object
	// Old is the object's former state at UPDATE; zero otherwise. Images that it
	// ran already are not looked at again.
	Old workload.Object
	// Pinning says who pins.
	Pinning Pinning
	// Stage is the part of the journey that is wanted.
	Stage Stage
	// OnlyImages: the object was made up around the images, so that rules about objects
	// are not asked.
	OnlyImages bool
	// Subject is what is known beside the object itself: who asks, for which
	// operation, and the namespace's labels. What it does not say
	// of the object itself is filled in from Object.
	Subject policy.Subject
	// Anonymous: who asks may name any namespace, so the credentials that the
	// object names for its pulls are not used.
	Anonymous bool
}

// ForImage returns the request of a Pod in the namespace that runs nothing but
// the image: how a bare reference is judged by policies that speak of objects.
func ForImage(written, namespace string) (Request, error) {
	return forPod("image", map[string]any{"name": "image", "namespace": namespace}, map[string]any{
		"containers": []any{map[string]any{"name": "image", "image": written}},
	})
}

// ForImages returns the request of a door that knows images, the namespace that
// they are to run in, and nothing else, not even in which role: a Pod with a
// container for each image, named after its position from 0 on. The namespace and
// the account whose pull secrets are used may be empty: nobody knows the former,
// and the latter is the namespace's own.
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

// ForDocument returns the request of a document that is no Kubernetes object. Images
// are where the extractors of rules that speak of such find them, and nobody pins
// what is written there.
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

// subject joins what the request says with what the object says of itself.
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
	if s.Operation == "" {
		s.Operation = "CREATE"
	}
	return &s
}
