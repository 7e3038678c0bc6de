package imagevalidating_test

import (
	"strings"
	"testing"
)

// FuzzException: no exception makes the compiler panic, and one that compiles has a name, a
// namespace and rules.
func FuzzException(f *testing.F) {
	f.Add([]byte(exception))
	f.Add([]byte(exception + "  images: ['HOST/org/*']\n  matchConditions: [{name: a, expression: object.metadata.name == 'test'}]\n  expiresAt: '2020-01-01T00:00:00Z'\n"))
	f.Add([]byte(strings.Replace(exception, "namespace: default", "namespace: ''", 1)))
	f.Add([]byte("{"))
	compiler := newCompiler()
	f.Fuzz(func(t *testing.T, text []byte) {
		compiled, err := compiler.CompileException(text, "fuzz")
		if err == nil && (compiled.Name == "" || compiled.Namespace == "" || len(compiled.Rules) == 0) {
			t.Errorf("an exception of nothing, or of nowhere: %+v", compiled)
		}
	})
}
