package mutating

import (
	"context"
	"fmt"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	celtypes "github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// choice is the expression of targetMatchConstraints: an object, or a list of objects in items, as
// resource.Get and resource.List return them. The objects are read again before they are changed.
type choice struct {
	program *cel.Program
	// among are the kinds and names of resourceRules; with isAny all are. Their selectors apply.
	among     []policy.Selection
	isAny     bool
	namespace string // of the policy; empty: any
}

// compileChoice compiles the expression, which reads the trigger.
func compileChoice(scope *cel.Scope, expression, path string) (*cel.Program, error) {
	program, err := scope.Compile(path, expression, celgo.MapType(celgo.StringType, celgo.DynType), celgo.DynType)
	if err != nil {
		return nil, err
	}
	return program, kyvernocel.ReadsKnown(program)
}

// choose returns a selection for each object of the expression.
func (c *choice) choose(ctx context.Context, activation *cel.Activation) ([]policy.Selection, error) {
	value, err := c.program.Eval(ctx, activation)
	if err != nil {
		return nil, err
	}
	objects := []ref.Val{value}
	if items, is := member(value, "items").(traits.Lister); is {
		objects = nil
		for i := items.Iterator(); i.HasNext() == celtypes.True; {
			if len(objects) == maxChosen {
				return nil, fmt.Errorf("%s: more than %d objects: let it choose fewer", c.program.Path(), maxChosen)
			}
			objects = append(objects, i.Next())
		}
	}
	var list []policy.Selection
	for i, object := range objects {
		metadata := member(object, "metadata")
		one := policy.Selection{
			APIVersion: text(object, "apiVersion"), Kind: text(object, "kind"), Namespace: text(metadata, "namespace"), Name: text(metadata, "name"),
		}
		if one.APIVersion == "" || one.Kind == "" || one.Name == "" {
			return nil, fmt.Errorf("%s: item %d is no object with apiVersion, kind and metadata.name", c.program.Path(), i)
		}
		if strings.ContainsAny(one.Namespace+one.Name, "*?") || c.namespace != "" && one.Namespace != c.namespace {
			continue // there is no object of this name, or the policy may not change it
		}
		if c.confine(&one) {
			one.Position = len(list)
			list = append(list, one)
		}
	}
	return list, nil
}

// confine adds the selectors of the rule that an object is of, and reports whether there is one.
func (c *choice) confine(one *policy.Selection) bool {
	group, _, _ := strings.Cut(one.APIVersion, "/")
	i := slices.IndexFunc(c.among, func(s policy.Selection) bool {
		of, _, _ := strings.Cut(s.APIVersion, "/")
		isOf := s.Kind == one.Kind && (of == group || !strings.Contains(s.APIVersion, "/") && !strings.Contains(one.APIVersion, "/"))
		return c.isAny || isOf && (s.Name == "" || s.Name == one.Name)
	})
	if i < 0 {
		return false
	}
	one.Labels, one.Namespaces = c.among[i].Labels, c.among[i].Namespaces
	return true
}

// member returns a member of a map; nil if there is none.
func member(value ref.Val, name string) ref.Val {
	if dict, is := value.(traits.Mapper); is {
		if found, is := dict.Find(celtypes.String(name)); is {
			return found
		}
	}
	return nil
}

// text returns a member that is a text; empty if there is none.
func text(value ref.Val, name string) string {
	found, _ := member(value, name).(celtypes.String)
	return string(found)
}
