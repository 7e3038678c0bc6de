package field

import "strings"

// IsPublicRekor reports whether an address is that of Sigstore's public transparency log, which means any
// log of the trusted root: the public root has several. A slash at the end does not count.
func IsPublicRekor(url string) bool {
	return strings.TrimRight(url, "/") == "https://rekor.sigstore.dev"
}
