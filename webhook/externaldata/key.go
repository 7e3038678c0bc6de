package externaldata

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Keys says which keys a Verify door takes, and so whom it believes about the
// namespace. Kubernetes lets any text stand where an image is named. Where a
// template sends what stands there as it is, whoever writes the object could begin
// it with a namespace of others, and be told by their pull secrets what is in
// their registries. Behind a namespace that the template itself put before it,
// another one is only a broken reference.
type Keys string

// The choices.
const (
	// Either takes keys with and without a namespace. The namespace decides which
	// policies are asked, and its pull secrets are not used: registries are asked
	// with the gateway's own credentials, and those that a policy names. The default.
	Either Keys = ""
	// Qualified takes keys with a namespace alone, and looks at images with the pull
	// secrets of the namespace's service account. For templates that always put a
	// namespace before the image.
	Qualified Keys = "qualified"
	// Plain takes images alone. Mutate always does: Gatekeeper sends what stands in
	// the object as it is, so that its writer would choose whose policies are asked.
	Plain Keys = "plain"
)

// key is what a key names.
type key struct{ namespace, account, image string }

// qualified is [namespace]image or [namespace/account]image; an address of IPv6
// (RFC 3986) has a colon between its brackets.
var qualified = regexp.MustCompile(`^\[([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)(?:/([a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?))?\](.*)$`)

// parse reads a key.
func (k Keys) parse(text string) (key, error) {
	if len(text) > MaxKey {
		return key{}, fmt.Errorf("the key has %d bytes, more than %d", len(text), MaxKey)
	}
	parts := qualified.FindStringSubmatch(text)
	switch {
	case k == Plain && parts != nil:
		return key{}, errors.New("the key names a namespace, and only images are asked about here: write it as image")
	case k == Qualified && parts == nil:
		return key{}, errors.New("the key names no namespace: let the template write it as [namespace]image or [namespace/serviceaccount]image")
	case parts == nil:
		parts = []string{text, "", "", text}
	}
	found := key{namespace: parts[1], account: parts[2], image: parts[3]}
	if strings.TrimSpace(found.image) == "" {
		return key{}, errors.New("the key names no image")
	}
	return found, nil
}
