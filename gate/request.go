package gate

import (
	"encoding/json"
	"fmt"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// Pinning says who replaces a tag by the digest that was proved.
type Pinning string

// The choices.
const (
	// PinHere: the caller applies Outcome.Patch, or tells what it would be.
	PinHere Pinning = ""
	// PinLater: the object is a template, and the pods made from it are pinned.
	PinLater Pinning = "later"
	// PinDone: the object was pinned before, so that a tag without digest, where a
	// policy pins and verifies digests, has slipped past.
	PinDone Pinning = "done"
)

// Request is one object that asks to run.
type Request struct {
	Object workload.Object
	// Old is the object's former state at UPDATE; zero otherwise. Images that it
	// ran already are not looked at again.
	Old workload.Object
	// Pinning says who pins.
	Pinning Pinning
	// Subject is what is known beside the object itself: who asks, for which
	// operation, and the namespace's labels. The object's own fields are filled
	// in from Object.
	Subject policy.Subject
}

// ForImage returns the request of a Pod in the namespace that runs nothing but
// the image: how a bare reference is judged by policies that speak of objects.
func ForImage(written, namespace string) (Request, error) {
	pod, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "image", "namespace": namespace},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "image", "image": written}}},
	})
	if err != nil {
		return Request{}, fmt.Errorf("pod for image %q: %w", written, err)
	}
	object, err := workload.Parse(pod)
	if err != nil {
		return Request{}, fmt.Errorf("pod for image %q: %w", written, err)
	}
	return Request{Object: object}, nil
}

// subject joins what the request says with what the object says of itself.
func (r Request) subject() *policy.Subject {
	s := r.Subject
	s.Object = r.Object.Content()
	s.Group, s.Version, s.Kind = r.Object.Group(), r.Object.Version(), r.Object.Kind()
	s.Name = r.Object.Name()
	if s.OldObject == nil && !r.Old.IsZero() {
		s.OldObject = r.Old.Content()
	}
	if s.Namespace == "" {
		s.Namespace = r.Object.Namespace()
	}
	if s.Operation == "" {
		s.Operation = "CREATE"
	}
	return &s
}
