package policy

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/quaymaster/quaymaster/image"
)

// Subject is the input of a policy: an object of an admission request, or one in a file.
type Subject struct {
	// Object is the object; OldObject is its former state, zero at creation.
	Object, OldObject Content
	// Group, Version, Kind and Subresource are the object's.
	Group, Version, Kind, Subresource string
	Namespace, Name                   string
	NamespaceMeta
	// Operation is CREATE, UPDATE, DELETE or CONNECT; CREATE for files.
	Operation string
	User      User
	// Request is the AdmissionRequest that came, or as much of it as is known.
	Request Request
	// Served lists the kinds that the API server serves; nil without an API server.
	Served Served
	Shape
	// Time is the time of the evaluation, for the expiry of exceptions.
	Time time.Time
}

// NamespaceMeta is the metadata of an object's namespace.
type NamespaceMeta struct {
	// NamespaceLabels are the labels of the object's namespace; NamespaceKnown is
	// false when they could not be read, and a rule that selects by them must
	// then fail, not pass.
	NamespaceLabels map[string]string
	NamespaceKnown  bool
}

// Shape is how much of a Kubernetes object a subject has.
type Shape struct {
	// Bare: only the images and the namespace of the object are known, so that a rule that needs
	// more (labels, names, users) cannot be evaluated.
	Bare bool
	// Document: it is no Kubernetes object, and has no kind, name and namespace. Only rules that
	// are OfDocuments are evaluated for it.
	Document bool
}

// Home is the namespace of the object, for the selection of namespaced policies; empty for none.
// A Namespace has none, although the API server sends its own name as the namespace: users with
// rights inside a namespace have no rights over the Namespace object.
func (s *Subject) Home() string {
	if s.Kind == "Namespace" && s.Group == "" {
		return ""
	}
	return s.Namespace
}

// IsPod reports whether the object is a Pod.
func (s *Subject) IsPod() bool { return s.Kind == "Pod" && s.Group == "" }

// User is the requester.
type User struct {
	Name   string
	UID    string
	Groups []string
	// Extra is additional data of the API server, a JSON object of lists of texts; nil for none.
	Extra json.RawMessage
	// Roles and ClusterRoles are those bound to the user: "namespace:name" and "name". RolesKnown
	// is false if they were not looked up. Whole: an empty UID and no Extra are known to be so.
	Roles, ClusterRoles []string
	RolesKnown, Whole   bool
}

// Image is one image that the subject runs.
type Image struct {
	// Container names it in the object: the container's, volume's or
	// extractor's name.
	Container string
	// Role is container, init, ephemeral, volume or custom.
	Role string
	// Pointer is where it is written, as a JSON pointer (RFC 6901).
	Pointer string
	// Ref is the name that policies judge.
	Ref image.Ref
	// Copy is the text in the object if Ref is a source's name and Copy lies inside a mirror that
	// serves it; zero if the object has Ref itself.
	Copy image.Ref
	// Ambiguous: the same text also occurs at other places of the object, and it is unknown which
	// is the image, so that it cannot be pinned.
	Ambiguous bool
	// Unchanged: the object had the very same text before this update, so that it is not
	// evaluated.
	Unchanged bool
}

// Is reports whether two images of an object are one, under whatever names policies have it: extractors of policies
// may make several images of one text. The tag next to a digest does not count.
func (i Image) Is(other Image) bool {
	a, b := cmp.Or(i.Copy, i.Ref), cmp.Or(other.Copy, other.Ref)
	return i.Pointer == other.Pointer && a.Repository() == b.Repository() && a.Digest() == b.Digest() && (!a.Digest().IsZero() || a.Tag() == b.Tag())
}
