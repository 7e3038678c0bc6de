package cel_test

import (
	"context"
	"errors"
	"math"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// answers has the same numbers from everywhere outside.
type answers map[string]any

func (a answers) Get(context.Context, cel.ResourceRef) (map[string]any, error) { return a, nil }

func (a answers) List(context.Context, cel.ResourceRef, map[string]string) (map[string]any, error) {
	return map[string]any{"items": []any{map[string]any(a)}}, nil
}

func (a answers) Post(context.Context, cel.ResourceRef, map[string]any) (map[string]any, error) {
	return a, nil
}

func (a answers) Kind(context.Context, string, string) (group, version, resource string, err error) {
	return "", "v1", "pods", nil
}

func (a answers) Do(context.Context, cel.HTTPRequest) (any, error) { return map[string]any(a), nil }

func (a answers) Metadata(context.Context, string) (map[string]any, error) { return a, nil }

// TestNumbers reads whole numbers as integers, as Kubernetes decodes them, and those that
// no Kubernetes decoder reads as doubles.
func TestNumbers(t *testing.T) {
	env, err := cel.NewEnv(cel.Options{Variables: []cel.Variable{{Name: "o", Type: celgo.DynType}}, Resource: true, HTTP: true, ImageData: true})
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]any{
		"n": 3.0, "uid": 1000650000.0, "half": 2.5, "minus": -7.0, "zero": 0.0, "list": []any{4.0, 1.0, 2.0}, "in": map[string]any{"deep": 9.0},
		"most": float64(1<<53 - 1), "unsure": float64(1 << 53), "lost": 9007199254740994.0, "huge": 1e300, "exact": int64(9007199254740993),
		"max": float64(1 << 63), "min": -float64(1 << 63), "above": math.Nextafter(1<<63, math.Inf(1)), "below": math.Nextafter(-1<<63, math.Inf(-1)),
		"ends":  []any{float64(1 << 63), 1.0},
		"large": []any{float64(1 << 53), 1.0}, "wide": map[string]any{"deep": []any{float64(1 << 53), 1.0}},
	}
	const (
		held = iota
		not
		fails
		unknown
	)
	for expression, want := range map[string]int{
		"type(o.n) == int && type(o.half) == double && type(o.zero) == int": held,
		"type(o.n) == double": not,
		"o.n + 1 == 4 && o.n % 2 == 1 && -o.n == -3 && o.n / 2 == 1": held,
		"o.n + 1 == 5":     not,
		"o.n + 1.0 == 4.0": fails, // as in Kubernetes
		"o.half + 1 == 3":  fails,
		"o.half + 1.0 == 3.5 && double(o.n) + 0.5 == 3.5 && int(o.half) == 2":   held,
		"string(o.uid) == '1000650000' && '%d'.format([o.uid]) == '1000650000'": held,
		"o.n < 5.5 && o.n > 2 && o.n == 3.0 && 3.0 in [o.n] && o.minus <= -7.0": held,
		"o.n > 5.5": not,
		"o.list.map(x, x * 2) == [8, 2, 4] && o.list[o.list[1]] == 1":                        held,
		"o.list.all(x, type(x) == int) && o.list.all(i, x, x + i > 0)":                       held,
		"o.list.sum() == 7 && o.list.min() == 1 && o.list.max() == 4":                        held,
		"o['in']['deep'] % 2 == 1 && o.?n.orValue(0) + 1 == 4 && {3: 'a'}[o.n] == 'a'":       held,
		"timestamp(o.n) == timestamp('1970-01-01T00:00:03Z')":                                held,
		"quantity('2').add(o.n).compareTo(quantity('5')) == 0":                               held,
		"json.marshal(o.list) == '[4,1,2]' && json.marshal(o.uid) == '1000650000'":           held,
		"o.most == 9007199254740991 && type(o.most) == int":                                  held,
		"o.exact == 9007199254740993":                                                        held,
		"o.exact == 9007199254740992":                                                        not,
		"o.unsure == 9007199254740992":                                                       unknown, // ...993 is the same float64
		"o.lost > 0":                                                                         unknown,
		"o.lost != 1":                                                                        unknown,
		"has(o.lost) && type(o.huge) == double":                                              held,
		"o.max == o.max":                                                                     unknown, // 9223372036854775307 is the same float64
		"o.max <= 9223372036854775806":                                                       unknown,
		"type(o.max) == int || type(o.max) == double":                                        unknown,
		"o.min == -9223372036854775807":                                                      unknown,
		"-o.min > 5":                                                                         unknown,
		"9223372036854775806.0 in o.ends":                                                    unknown,
		"o.ends == o.ends":                                                                   unknown,
		"sets.contains(o.ends, [9223372036854775806])":                                       unknown,
		"type(o.above) == double && type(o.below) == double && o.above == -o.below":          held,
		"o.ends[1] == 1 && has(o.max) && o.ends.size() == 2":                                 held,
		"type(http.Get('https://a.test').max) == double":                                     held,
		"sets.contains(o.large, [9007199254740993])":                                         unknown,
		"sets.intersects(o.large, [1])":                                                      unknown,
		"sets.equivalent([o.?lost], [o.?lost])":                                              unknown,
		"o.large.distinct().size() == 2":                                                     unknown,
		"o.large.indexOf(9007199254740993) == -1":                                            unknown,
		"o.large.lastIndexOf(9007199254740993) == -1":                                        unknown,
		"[o.wide].indexOf(o.wide) == -1":                                                     unknown,
		"o.large.includes(9007199254740993)":                                                 unknown,
		"!o.large.includes(7)":                                                               unknown,
		"o.list.includes(2) && !o.list.includes(9) && o.n.includes(3) && !o.n.includes('3')": held,
		"o.list.includes(9)":                                                                 not,
		"o.large.isSorted()":                                                                 unknown,
		"json.marshal(o.wide) == ''":                                                         unknown,
		"sets.contains(o.list, [4, 1]) && o.list.distinct().size() == 3 && o.list.indexOf(2) == 2": held,
		"o.large.reverse()[0] == 1 && o.large.slice(1, 2) == [1] && o.large.last().value() == 1":   held,
		"optional.of(o.wide).value().deep.size() == 2 && o.?wide.hasValue()":                       held,
		"o.large.first().value() == 1":                                                                unknown,
		"sets.contains(http.Get('https://a.test').large, [1.0])":                                      held, // doubles in Kyverno, too
		"type(resource.Get('v1', 'pods', 'a', 'b').n) == int":                                         held,
		"resource.List('v1', 'pods', 'a').items.all(x, x.n + 1 == 4)":                                 held,
		"resource.Post('v1', 'pods', 'a', {'x': o.n}).n + 1 == 4":                                     held,
		"type(http.Get('https://a.test').n) == double && http.Get('https://a.test').n == 3":           held,
		"http.Get('https://a.test').list.all(x, type(x) == double)":                                   held,
		"type(http.Get('https://a.test').n) == int":                                                   not,
		"type(image.GetMetadata('a').n) == double && image.GetMetadata('a')['in'].deep + 1.0 == 10.0": held,
	} {
		scope, err := env.NewScope()
		if err != nil {
			t.Fatal(err)
		}
		p, err := scope.Compile("e", expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		value, err := p.Eval(t.Context(), scope.NewActivation(cel.Inputs{
			Variables: map[string]any{"o": data}, Outside: cel.Outside{Resources: answers(data), HTTP: answers(data), Images: answers(data)},
		}))
		var gap *cel.UnknownError
		got := fails
		switch {
		case errors.As(err, &gap):
			got = unknown
		case err == nil && value == types.True:
			got = held
		case err == nil && value == types.False:
			got = not
		}
		if got != want {
			t.Errorf("%s: %d, want %d: %v %v", expression, got, want, value, err)
		}
	}
}
