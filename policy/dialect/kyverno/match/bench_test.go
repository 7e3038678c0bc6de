package match_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
)

// BenchmarkMatches is the cost of one block for one object.
func BenchmarkMatches(b *testing.B) {
	for name, text := range map[string]string{
		"kind":       "any: [{resources: {kinds: [Pod]}}]",
		"another":    "any: [{resources: {kinds: [Service]}}]",
		"namespaces": "any: [{resources: {kinds: [Pod], namespaces: [kube-system, prod]}}]",
		"labels":     "any: [{resources: {kinds: [Pod], selector: {matchLabels: {app: web}}}}]",
		"user":       "any: [{resources: {kinds: [Pod]}, clusterRoles: [view]}]",
	} {
		block, s := compile(b, text), subject("Pod", nil)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				block.Matches(s, match.Selecting)
			}
		})
	}
}
