package flagsource

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Harmless returns the names of the flags that can make no result less strict: they select what is
// printed, or make it stricter. All others are taken to weaken: a cluster (kubeconfig, context) has
// policies, too, and whatever keeps an image from being verified (a timeout, no network, fewer
// requests) makes a policy with failurePolicy Ignore admit it.
func Harmless() []string {
	return slices.Concat([]string{
		"output", "output-format", "verbose", "detailed-results", "remove-color", "fail-only", "all", "json", "keep",
	}, stricter())
}

// stricter are flags of which true makes a result stricter, or adds text.
func stricter() []string { return []string{"require-tests", "warn-no-pass", "audit-warn"} }

// refusal returns the reason why a flag is not taken from a variable or the user's own file with these
// values; empty if it is.
func refusal(f *pflag.Flag, values []string) string {
	placeholder, _ := pflag.UnquoteUsage(f)
	elsewhere := "and is taken from the command line or the file of --config alone"
	switch {
	case !slices.Contains(Harmless(), f.Name):
		return fmt.Sprintf("--%s can weaken a result, %s", f.Name, elsewhere)
	// A file that is written may be one of those that are then read.
	case placeholder == "file" || f.Name == "output" && slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "=") }):
		return fmt.Sprintf("--%s names a file, %s", f.Name, elsewhere)
	case slices.Contains(stricter(), f.Name) && slices.ContainsFunc(values, func(v string) bool { return v != "true" }):
		return fmt.Sprintf("--%s can only be true, unless it is on the command line or in the file of --config", f.Name)
	}
	return ""
}
