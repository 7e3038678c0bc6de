package function

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/quaymaster/quaymaster/image"
)

// imageNormalize writes a reference with its registry and its tag or digest,
// as Kyverno does: without library/, and without the tag where there is a digest.
func (l Library) imageNormalize(a Arguments) (any, error) {
	written := a.Text(0)
	ref, err := image.Parse(written)
	if err != nil {
		return nil, err
	}
	path := written
	if i := strings.IndexAny(written, "@"); i >= 0 {
		path = path[:i]
	}
	if i := strings.LastIndexByte(path, ':'); i > strings.LastIndexByte(path, '/') {
		path = path[:i]
	}
	registry := l.DefaultRegistry
	if host, rest, ok := strings.Cut(path, "/"); ok && isHost(host) {
		registry, path = ref.Registry(), rest
	}
	if !ref.Digest().IsZero() {
		return registry + "/" + path + "@" + ref.Digest().String(), nil
	}
	return registry + "/" + path + ":" + ref.Tag(), nil
}

// isHost distinguishes a registry's host from the first part of a path by Docker's rules.
// Capitals are the exception: image.Parse refuses a host that only capitals would mark as one.
func isHost(s string) bool {
	return strings.ContainsAny(s, ".:") || s == "localhost"
}

// isExternalURL reports whether every address of the URL's host is public. A
// name that cannot be resolved is an error: its answer is not known.
func (l Library) isExternalURL(a Arguments) (any, error) {
	parsed, err := url.Parse(a.Text(0))
	if err != nil {
		return nil, fmt.Errorf("the URL %q is malformed", Shorten(a.Text(0)))
	}
	host := parsed.Hostname()
	if host == "" {
		return nil, fmt.Errorf("the URL %q has no host", Shorten(a.Text(0)))
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return isPublic(address), nil
	}
	if l.Hosts == nil {
		return nil, errors.New("names are not resolved here; only addresses can be judged")
	}
	addresses, err := l.Hosts.LookupHost(host)
	if err != nil {
		return nil, fmt.Errorf("the host %q: %w", Shorten(host), err)
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("the host %q has no address", Shorten(host))
	}
	for _, address := range addresses {
		if !isPublic(address) {
			return false, nil
		}
	}
	return true, nil
}

// isPublic is stricter than Kyverno, which calls link-local addresses (cloud
// metadata among them) and 0.0.0.0 external.
func isPublic(address netip.Addr) bool {
	address = address.Unmap()
	return !address.IsLoopback() && !address.IsPrivate() && !address.IsLinkLocalUnicast() &&
		!address.IsLinkLocalMulticast() && !address.IsUnspecified()
}
