// Package record stores the requester of an object, the origin of a generated object, and the grant
// of an object's lifetime, in authenticated annotations.
//
// A rule for other objects runs after admission, when the API server no longer has the requester
// of its trigger. So the mutating endpoint writes the requester into the trigger (Requester), and
// generated objects hold their origin (Origin). A label has an object deleted later, so the webhook
// for it writes a grant (Lifetime) where its user may delete the object. All are annotations, and any
// user with write access can set them. Each therefore carries a code (HMAC with SHA-256, RFC 2104) under the
// replicas' key over its content and the object that holds it, so that no other writer can create
// one or move it to another object. A new object has no UID yet: the requester is bound to the
// time of creation. A record thus does not outlive its object nor apply to another one with a
// name generated from the same prefix.
package record

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/document"
)

// The annotations.
const (
	// RequesterAnnotation is the requester of a trigger.
	RequesterAnnotation = document.RequesterAnnotation
	// OriginAnnotation is the rule and the trigger of a generated object.
	OriginAnnotation = document.OriginAnnotation
)

const (
	// maxRecord bounds an annotation, in bytes; all of an object come to 256 KiB.
	maxRecord = 64 << 10
	// minKey is the minimum length of a key, in bytes.
	minKey = 32
	// maxApart is the maximum difference between the time of a record and that of the object's
	// creation: the longest request that the API server allows, and the clock skew.
	maxApart = 2 * time.Minute
)

var (
	// ErrNone is of an object that has no such annotation.
	ErrNone = errors.New("it has no record")
	// ErrForged means that the gateway did not write the annotation into this object.
	ErrForged = errors.New("its record is not one that the gateway wrote")
)

// Keeper writes and reads records. It is immutable and safe for concurrent use.
type Keeper struct{ key []byte }

// New makes a Keeper; it refuses keys of less than 32 bytes. The key is not used as
// it is, so that it may be another's as well.
func New(key []byte) (*Keeper, error) {
	if len(key) < minKey {
		return nil, fmt.Errorf("records: want a key of at least %d bytes, got %d", minKey, len(key))
	}
	derived := hmac.New(sha256.New, key)
	derived.Write([]byte("quaymaster.dev records of requesters and origins, version 1"))
	return &Keeper{key: derived.Sum(nil)}, nil
}

// requester is RequesterAnnotation as it is written.
type requester struct {
	Username string   `json:"username"`
	Groups   []string `json:"groups,omitempty"`
	// Roles is absent if the user's roles were not looked up.
	Roles *roles `json:"bound,omitempty"`
	// Generated is the metadata.generateName of an object that had no name yet.
	Generated string `json:"generateName,omitempty"`
	// Asked is the time of the request, in seconds of Unix time.
	Asked int64  `json:"asked"`
	Code  string `json:"code,omitempty"`
}

type roles struct {
	Roles        []string `json:"roles"`
	ClusterRoles []string `json:"clusterRoles"`
}

// Requester returns the annotation with the requester of an object, in its form at creation, and
// the current time. A user with too much data (64 KiB) is an error.
func (k *Keeper) Requester(object map[string]any, user policy.User, now time.Time) (string, error) {
	r := requester{Username: user.Name, Groups: user.Groups, Asked: now.Unix()}
	if user.RolesKnown {
		r.Roles = &roles{user.Roles, user.ClusterRoles}
	}
	at := placeOf(object)
	if at.Name == "" {
		r.Generated = textIn(object, "metadata", "generateName")
		at.Name = r.Generated
	}
	if at.Name == "" {
		return "", errors.New("record the requester of an object: it has no name")
	}
	var err error
	r.Code, err = k.code("requester", at, r)
	if err != nil {
		return "", err
	}
	return encode(r)
}

// ReadRequester returns the requester of an object in its current form. It is ErrNone or
// ErrForged if there is no valid record.
func (k *Keeper) ReadRequester(object map[string]any) (policy.User, error) {
	var r requester
	if err := read(object, RequesterAnnotation, &r); err != nil {
		return policy.User{}, err
	}
	at := placeOf(object)
	if r.Generated != "" {
		if textIn(object, "metadata", "generateName") != r.Generated || !strings.HasPrefix(at.Name, r.Generated) {
			return policy.User{}, ErrForged
		}
		at.Name = r.Generated
	}
	code := r.Code
	r.Code = ""
	if !k.agrees("requester", at, r, code) || !madeAbout(object, time.Unix(r.Asked, 0)) {
		return policy.User{}, ErrForged
	}
	user := policy.User{Name: r.Username, Groups: r.Groups}
	if r.Roles != nil {
		user.Roles, user.ClusterRoles, user.RolesKnown = r.Roles.Roles, r.Roles.ClusterRoles, true
	}
	return user, nil
}

// madeAbout reports whether the API server made an object about a time.
func madeAbout(object map[string]any, asked time.Time) bool {
	made, err := time.Parse(time.RFC3339, textIn(object, "metadata", "creationTimestamp"))
	return err == nil && made.Sub(asked).Abs() <= maxApart
}

// Origin is the rule and the trigger of a generated object.
type Origin struct {
	// Policy is the policy's ID, Rule the rule's name.
	Policy string `json:"policy"`
	Rule   string `json:"rule"`
	// Trigger is the object for which it was generated.
	Trigger Trigger `json:"trigger"`
	// Synchronize and Orphan are the rule's terms when it was last written.
	Synchronize bool `json:"synchronize,omitempty"`
	Orphan      bool `json:"orphan,omitempty"`
	// Depth is how many such objects led to it, itself included.
	Depth int `json:"depth"`
	// Source is the object of which it is a copy, as in source.Ref; empty for none.
	Source string `json:"source,omitempty"`
}

// Trigger is the identity of a trigger.
type Trigger struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// origin is OriginAnnotation as it is written.
type origin struct {
	Origin
	Code string `json:"code,omitempty"`
}

// Origin returns the annotation with the origin of an object.
func (k *Keeper) Origin(object map[string]any, o Origin) (string, error) {
	code, err := k.code("origin", placeOf(object), o)
	if err != nil {
		return "", err
	}
	return encode(origin{o, code})
}

// ReadOrigin returns the origin of an object. It is ErrNone or ErrForged for an object without a
// valid one.
func (k *Keeper) ReadOrigin(object map[string]any) (Origin, error) {
	var o origin
	if err := read(object, OriginAnnotation, &o); err != nil {
		return Origin{}, err
	}
	if !k.agrees("origin", placeOf(object), o.Origin, o.Code) {
		return Origin{}, ErrForged
	}
	return o.Origin, nil
}

// place is the object that a record is bound to. Of the apiVersion it holds the group: an object
// is the same in all versions.
type place struct{ Group, Kind, Namespace, Name string }

func placeOf(object map[string]any) place {
	apiVersion, _ := object["apiVersion"].(string)
	group, _, named := strings.Cut(apiVersion, "/")
	if !named {
		group = ""
	}
	kind, _ := object["kind"].(string)
	return place{group, kind, textIn(object, "metadata", "namespace"), textIn(object, "metadata", "name")}
}

func textIn(object map[string]any, path ...string) string {
	var at any = object
	for _, key := range path {
		members, _ := at.(map[string]any)
		at = members[key]
	}
	text, _ := at.(string)
	return text
}

func annotation(object map[string]any, name string) (any, bool) {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	value, is := annotations[name]
	return value, is
}

// code authenticates the content of a record of a kind in the object at a place.
func (k *Keeper) code(kind string, at place, says any) (string, error) {
	text, err := json.Marshal(struct {
		Kind string
		At   place
		Says any
	}{kind, at, says})
	if err != nil {
		return "", fmt.Errorf("record: %w", err)
	}
	mac := hmac.New(sha256.New, k.key)
	mac.Write(text)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

func (k *Keeper) agrees(kind string, at place, says any, code string) bool {
	want, err := k.code(kind, at, says)
	return err == nil && hmac.Equal([]byte(want), []byte(code))
}

func encode(r any) (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("record: %w", err)
	}
	if len(text) > maxRecord {
		return "", fmt.Errorf("record: %d bytes exceed the bound of %d", len(text), maxRecord)
	}
	return string(text), nil
}

func read(object map[string]any, name string, into any) error {
	value, is := annotation(object, name)
	if !is {
		return ErrNone
	}
	text, ok := value.(string)
	if !ok || len(text) > maxRecord || json.Unmarshal([]byte(text), into) != nil {
		return ErrForged
	}
	return nil
}
