package cel_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

const verifyAll = "images.containers.map(i, verify(i, [attestors.a])).all(e, e > 0)"

// BenchmarkEval is the idiom of image policies over three images, with answers at
// hand.
func BenchmarkEval(b *testing.B) {
	benchmarks := []struct{ name, expression string }{
		{"verify", verifyAll},
		{"variable", "variables.signed.all(e, e > 0)"},
		{"match", "object.metadata.name == 'web' && request.operation in ['CREATE', 'UPDATE']"},
	}
	for _, each := range benchmarks {
		b.Run(each.name, func(b *testing.B) {
			s := newScope(b)
			if err := s.Declare("spec.variables[0].expression", "signed", strings.TrimSuffix(verifyAll, ".all(e, e > 0)")); err != nil {
				b.Fatal(err)
			}
			p, in := compile(b, s, each.expression), inputs()
			in.Functions = map[string]cel.Call{"verify": func(context.Context, []ref.Val) (any, error) { return cel.Count{Lower: 1, Upper: 1}, nil }}
			b.ReportAllocs()
			for b.Loop() {
				if held, err := p.Bool(b.Context(), s.NewActivation(in)); !held || err != nil {
					b.Fatal(held, err)
				}
			}
		})
	}
}

// BenchmarkLargeObject reads one field of an object of 10,000 values: it is not
// copied.
func BenchmarkLargeObject(b *testing.B) {
	s, in := newScope(b), inputs()
	var items []any
	for range 10_000 {
		items = append(items, map[string]any{"name": "x"})
	}
	in.Variables["object"] = map[string]any{"items": items, "metadata": map[string]any{"name": "web"}}
	p := compile(b, s, "object.metadata.name == 'web' && object.items[9999].name == 'x'")
	b.ReportAllocs()
	for b.Loop() {
		if held, err := p.Bool(b.Context(), s.NewActivation(in)); !held || err != nil {
			b.Fatal(held, err)
		}
	}
}

// BenchmarkOpenCounts is the idiom while a registry does not answer.
func BenchmarkOpenCounts(b *testing.B) {
	s, in := newScope(b), inputs()
	in.Variables["images"] = map[string]any{"containers": []any{"0", "0-2", "1-2"}}
	in.Functions = map[string]cel.Call{"verify": counts}
	p := compile(b, s, verifyAll)
	b.ReportAllocs()
	for b.Loop() {
		if held, err := p.Bool(b.Context(), s.NewActivation(in)); held || err != nil {
			b.Fatal(held, err)
		}
	}
}

func BenchmarkNewEnv(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := cel.NewEnv(options()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewScope(b *testing.B) {
	env, err := cel.NewEnv(options())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := env.NewScope(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	s := newScope(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Compile("spec.expression", verifyAll); err != nil {
			b.Fatal(err)
		}
	}
}
