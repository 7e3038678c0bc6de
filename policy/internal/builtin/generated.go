package builtin

import (
	"slices"
	"strings"
)

// The API server makes a name of as many characters of generateName, and as many more from an
// alphabet without vowels.
const (
	MaxGeneratedBase  = 58
	GeneratedLength   = 5
	GeneratedAlphabet = "bcdfghjklmnpqrstvwxz2456789"
)

// MayBeGenerated reports whether the API server may make a name of a generateName.
func MayBeGenerated(name, generateName string) bool {
	base := generateName[:min(len(generateName), MaxGeneratedBase)]
	suffix, follows := strings.CutPrefix(name, base)
	return base != "" && follows && len(suffix) == GeneratedLength && strings.Trim(suffix, GeneratedAlphabet) == ""
}

// NamesDomains reports whether the names of the objects are domain names for certain, in lower case.
// Those of roles, disruption budgets, addresses and some others have further characters.
func (r Resource) NamesDomains() bool {
	return slices.Contains([]string{"", "apps", "batch", "autoscaling", "storage.k8s.io", "scheduling.k8s.io"}, r.Group) ||
		slices.Contains([]string{"Ingress", "NetworkPolicy", "IngressClass"}, r.Kind)
}
