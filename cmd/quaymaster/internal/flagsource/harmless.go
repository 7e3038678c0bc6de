package flagsource

import "slices"

// IsHarmless reports whether a flag can make no result less strict, whatever its value: it selects
// what is printed and how long or how fast the program works, or makes it stricter. All others are
// taken to weaken: a cluster (kubeconfig, context) has policies, too.
func IsHarmless(flag string) bool { return slices.Contains(Harmless(), flag) }

// Harmless returns the names of the flags that are harmless.
func Harmless() []string {
	return []string{
		"output", "output-format", "verbose", "detailed-results", "remove-color", "fail-only", "all", "json", "last", "from", // what is printed
		"timeout", "qps", "registry-requests", "refresh-trust", "keep", // how it works
		"offline", "require-tests", "warn-no-pass", "audit-warn", // stricter, or more text
	}
}
