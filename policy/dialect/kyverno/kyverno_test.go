package kyverno_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// configMaps are the ConfigMaps of a cluster, by namespace/name.
type configMaps map[string]map[string]any

func (m configMaps) ConfigMap(_ context.Context, namespace, name string) (map[string]any, error) {
	if data, ok := m[namespace+"/"+name]; ok {
		return map[string]any{"data": data}, nil
	}
	return nil, errors.New("not found")
}

func newCompiler(tb testing.TB, lookup kyverno.Lookup) *kyverno.Compiler {
	tb.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		tb.Fatal(err)
	}
	compiler, err := kyverno.New(kyverno.Options{Engine: engine, Lookup: lookup})
	if err != nil {
		tb.Fatal(err)
	}
	return compiler
}
