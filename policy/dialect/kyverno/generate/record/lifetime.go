package record

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy/ttl"
)

// LifetimeAnnotation is the grant of the lifetime of an object.
const LifetimeAnnotation = "quaymaster.dev/ttl-granted"

// maxUser bounds the name of a user in a grant, in bytes. A longer one is cut: it is for people.
const maxUser = 256

// lifetime is LifetimeAnnotation as it is written.
type lifetime struct {
	// Value is that of the label, and By the user that set it.
	Value string `json:"ttl"`
	By    string `json:"by"`
	// UID is that of the object; empty at its creation. Generated and Asked then are as in requester.
	UID       string `json:"uid,omitempty"`
	Generated string `json:"generateName,omitempty"`
	Asked     int64  `json:"asked,omitempty"`
	Code      string `json:"code,omitempty"`
}

// Lifetime returns the annotation with the grant of an object's lifetime, as of now: a user that may
// delete the object set its label. The label and the identity are those of the object, which has
// no UID yet when it is being created.
func (k *Keeper) Lifetime(object map[string]any, by string, now time.Time) (string, error) {
	if len(by) > maxUser {
		by = strings.ToValidUTF8(by[:maxUser], "")
	}
	r, at := lifetime{Value: textIn(object, "metadata", "labels", ttl.Label), By: by, UID: textIn(object, "metadata", "uid")}, placeOf(object)
	if r.UID == "" {
		r.Asked = now.Unix()
	}
	if at.Name == "" {
		r.Generated = textIn(object, "metadata", "generateName")
		at.Name = r.Generated
	}
	if at.Name == "" || r.Value == "" {
		return "", errors.New("grant a lifetime: the object has no name or no label for it")
	}
	var err error
	r.Code, err = k.code("lifetime", at, r)
	if err != nil {
		return "", err
	}
	return encode(r)
}

// ReadLifetime returns the user that set the label with the lifetime of an object. It is ErrNone or
// ErrForged where no grant of the gateway holds for the label's current value.
func (k *Keeper) ReadLifetime(object map[string]any) (by string, err error) {
	var r lifetime
	if err := read(object, LifetimeAnnotation, &r); err != nil {
		return "", err
	}
	at := placeOf(object)
	if r.Generated != "" {
		if textIn(object, "metadata", "generateName") != r.Generated || !strings.HasPrefix(at.Name, r.Generated) {
			return "", ErrForged
		}
		at.Name = r.Generated
	}
	code := r.Code
	r.Code = ""
	if !k.agrees("lifetime", at, r, code) {
		return "", ErrForged
	}
	switch {
	case r.UID != "" && r.UID != textIn(object, "metadata", "uid"), r.UID == "" && !madeAbout(object, time.Unix(r.Asked, 0)):
		return "", ErrForged
	case r.Value != textIn(object, "metadata", "labels", ttl.Label):
		return "", fmt.Errorf("%w: the label has another value than the one that was granted", ErrForged)
	}
	return r.By, nil
}
