package externaldata

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Keys defines the keys that a Verify endpoint accepts, and thus the trusted source of the
// namespace. Kubernetes accepts any text as an image. If a template passes that text on unchanged,
// the writer of the object could prefix it with another namespace, and so learn the contents of its
// registries through its pull secrets. After a namespace that the template itself adds, a second
// one is only an invalid reference.
type Keys string

// The possible values.
const (
	// Either accepts keys with and without a namespace. The namespace selects the policies, but its
	// pull secrets are not used: requests to registries use the gateway's own credentials, and
	// those that a policy names. The default.
	Either Keys = ""
	// Qualified accepts only keys with a namespace, and uses the pull secrets of the namespace's
	// service account. It is for templates that always prefix the image with a namespace.
	Qualified Keys = "qualified"
	// Plain accepts only images. Mutate always uses it: Gatekeeper passes on the text in the object
	// unchanged, so its writer could choose the policies.
	Plain Keys = "plain"
)

// key is a parsed key.
type key struct{ namespace, account, image string }

// qualified is [namespace]image or [namespace/account]image. An IPv6 address (RFC 3986) does not
// match because it has a colon between its brackets.
var qualified = regexp.MustCompile(`^\[([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)(?:/([a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?))?\](.*)$`)

// parse parses a key.
func (k Keys) parse(text string) (key, error) {
	if len(text) > MaxKey {
		return key{}, fmt.Errorf("the key has %d bytes, more than %d", len(text), MaxKey)
	}
	parts := qualified.FindStringSubmatch(text)
	switch {
	case k == Plain && parts != nil:
		return key{}, errors.New("the key names a namespace, but only images are accepted: write it as image")
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
