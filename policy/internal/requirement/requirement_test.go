package requirement_test

import (
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/policy/internal/requirement"
)

func TestContradiction(t *testing.T) {
	in := func(values ...string) requirement.Requirement {
		return requirement.Requirement{Key: "a", Operator: "In", Values: values}
	}
	notIn := func(values ...string) requirement.Requirement {
		return requirement.Requirement{Key: "a", Operator: "NotIn", Values: values}
	}
	there, absent := requirement.Requirement{Key: "a", Operator: "Exists"}, requirement.Requirement{Key: "a", Operator: "DoesNotExist"}
	elsewhere := requirement.Requirement{Key: "b", Operator: "DoesNotExist"}
	for _, c := range []struct {
		reason string
		all    []requirement.Requirement
		want   string
	}{
		{"nothing", nil, ""},
		{"there and absent", []requirement.Requirement{there, absent}, "a is to be Exists and DoesNotExist"},
		{"another key is absent", []requirement.Requirement{there, elsewhere}, ""},
		{"the second key", []requirement.Requirement{elsewhere, there, absent}, "a is to be Exists and DoesNotExist"},
		{"a value and absent", []requirement.Requirement{in("x"), absent}, "a is to be In x and DoesNotExist"},
		{"not a value and absent", []requirement.Requirement{notIn("x"), absent}, ""},
		{"not a value, and there", []requirement.Requirement{notIn("x"), there}, ""},
		{"two values", []requirement.Requirement{in("x"), in("y")}, "a is to be In x and In y"},
		{"a common value", []requirement.Requirement{in("x", "y"), in("y", "z")}, ""},
		{"three lists, of which any two have a common value", []requirement.Requirement{in("x", "y"), in("y", "z"), in("z", "x")}, "a is to be In x, y and In y, z and In z, x"},
		{"a value and not that value", []requirement.Requirement{notIn("x"), in("x")}, "a is to be NotIn x and In x"},
		{"a value and not another", []requirement.Requirement{in("x"), notIn("y")}, ""},
		{"a pattern, and none of the values", []requirement.Requirement{in("x*"), in("y", "z")}, "a is to be In x* and In y, z"},
		{"a pattern, and one of the values", []requirement.Requirement{in("x*"), in("y", "x1")}, ""},
		{"a pattern, and its only value is taken away", []requirement.Requirement{in("x*"), in("x1"), notIn("x1")}, "a is to be In x* and In x1 and NotIn x1"},
		{"two patterns", []requirement.Requirement{in("x*"), in("y*")}, "a is to be In x* and In y*"},
		{"two patterns with common values", []requirement.Requirement{in("x*"), in("*y")}, ""},
		{"a pattern and a value that is taken away", []requirement.Requirement{in("x?"), notIn("x1")}, ""},
		{"a pattern and absent", []requirement.Requirement{in("*"), absent}, "a is to be In * and DoesNotExist"},
		{"two values, each taken away", []requirement.Requirement{in("x", "y"), notIn("x"), notIn("y")}, "a is to be In x, y and NotIn x and NotIn y"},
	} {
		if got := requirement.Contradiction(c.all); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestNamespaces: only values for the label that the API server sets limit the namespaces.
func TestNamespaces(t *testing.T) {
	const name = "kubernetes.io/metadata.name"
	in := func(key string, values ...string) requirement.Requirement {
		return requirement.Requirement{Key: key, Operator: "In", Values: values}
	}
	for _, c := range []struct {
		reason string
		all    []requirement.Requirement
		want   []string
	}{
		{"nothing", nil, nil},
		{"the names", []requirement.Requirement{in(name, "a", "b")}, []string{"a", "b"}},
		{"another label", []requirement.Requirement{in("team", "a")}, nil},
		{"names that are not selected", []requirement.Requirement{{Key: name, Operator: "NotIn", Values: []string{"a"}}}, nil},
		{"any name", []requirement.Requirement{{Key: name, Operator: "Exists"}}, nil},
		{"a wildcard", []requirement.Requirement{in(name, "a*")}, nil},
		{"names in two lists", []requirement.Requirement{in(name, "a", "b"), in(name, "b", "c"), in("team", "x")}, []string{"b"}},
	} {
		if got := requirement.Namespaces(c.all); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}
