package kyverno_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

func BenchmarkSet(b *testing.B) {
	const precondition = "    preconditions: {all: [{key: '{{ request.object.metadata.name }}', operator: Equals, value: web}]}\n    verifyImages:"
	for _, c := range []struct {
		name, pattern, rest string
		count               int
	}{
		{"one", "ghcr.io/org-%d/*", "    verifyImages:", 1},
		{"one-precondition", "ghcr.io/org-%d/*", precondition, 1},
		{"thousand-prefixes", "ghcr.io/org-%d/*", "    verifyImages:", 1000},
		{"thousand-stars", "*/org-%d/*", "    verifyImages:", 1000},
		{"thousand-preconditions", "ghcr.io/org-%d/*", precondition, 1000},
	} {
		b.Run(c.name, func(b *testing.B) {
			compiler := newCompiler(b, nil)
			var policies []*policy.Policy
			for n := range c.count {
				text := strings.NewReplacer("name: minimal", fmt.Sprintf("name: p%04d", n), `["*"]`, fmt.Sprintf(`["`+c.pattern+`"]`, n), "    verifyImages:", c.rest).Replace(minimal)
				p, err := compiler.Compile([]byte(text), "bench.yaml")
				if err != nil {
					b.Fatal(err)
				}
				policies = append(policies, p)
			}
			set, err := set.New(policies...)
			if err != nil {
				b.Fatal(err)
			}
			images := []policy.Image{container("ghcr.io/org-0/web:v1")}
			find := func([]policy.Extractor) ([]policy.Image, error) { return images, nil }
			subject := pod("prod")
			b.ReportAllocs()
			for b.Loop() {
				if plan := set.Plan(b.Context(), subject, find); len(plan.Checks) != 1 {
					b.Fatal(len(plan.Checks))
				}
			}
		})
	}
}
