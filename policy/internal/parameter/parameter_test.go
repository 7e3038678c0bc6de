package parameter_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/quaymaster/quaymaster/policy/internal/parameter"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// objects are ConfigMaps of namespace shop, by their names, and Nodes of the cluster.
type objects struct {
	cel.Resources
	err error
}

func (o objects) Get(_ context.Context, of cel.ResourceRef) (map[string]any, error) {
	if o.err != nil {
		return nil, o.err
	}
	if of.Name != "limits" || of.Resource == "ConfigMap" && of.Namespace != "shop" {
		return nil, fmt.Errorf("%s: %w", of.Name, cel.ErrNotFound)
	}
	return map[string]any{"name": of.Name}, nil
}

func (o objects) List(context.Context, cel.ResourceRef, map[string]string) (map[string]any, error) {
	of := func(team any) any {
		return map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": team}}}
	}
	return map[string]any{"items": []any{of("a"), of("b"), of(1)}}, o.err
}

func (objects) Kind(_ context.Context, apiVersion, kind string) (group, version, resource string, err error) {
	if apiVersion != "v1" {
		return "", "", "", errors.New("no such kind")
	}
	return "", apiVersion, kind, nil
}

func (objects) Namespaced(_ context.Context, _, kind string) (bool, error) {
	return kind != "Node", nil
}

func TestFind(t *testing.T) {
	team := func(text string) labels.Selector {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return selector
	}
	unknown := &cel.UnknownError{Gaps: []error{errors.New("no answer")}}
	for _, c := range []struct {
		reason    string
		of        parameter.Reference
		resources cel.Resources
		namespace string
		found     int
		is        error // nil for none
	}{
		{"by its name", parameter.Reference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "limits"}, objects{}, "blog", 1, nil},
		{"in the namespace of the object", parameter.Reference{APIVersion: "v1", Kind: "ConfigMap", Name: "limits"}, objects{}, "shop", 1, nil},
		{"in another namespace", parameter.Reference{APIVersion: "v1", Kind: "ConfigMap", Name: "limits"}, objects{}, "blog", 0, cel.ErrNotFound},
		{"another name", parameter.Reference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "other"}, objects{}, "", 0, cel.ErrNotFound},
		{"in no namespace", parameter.Reference{APIVersion: "v1", Kind: "ConfigMap", Name: "limits"}, objects{}, "", 0, parameter.ErrNoNamespace},
		{"of the cluster", parameter.Reference{APIVersion: "v1", Kind: "Node", Name: "limits"}, objects{}, "", 1, nil},
		{"of the cluster in a namespace", parameter.Reference{APIVersion: "v1", Kind: "Node", Namespace: "shop", Name: "limits"}, objects{}, "", 0, parameter.ErrNamespace},
		{"all of them", parameter.Reference{APIVersion: "v1", Kind: "ConfigMap"}, objects{}, "shop", 3, nil},
		{"by a selector", parameter.Reference{APIVersion: "v1", Kind: "ConfigMap", Selector: team("team in (a, b)")}, objects{}, "shop", 2, nil},
		{"by a selector of none", parameter.Reference{APIVersion: "v1", Kind: "ConfigMap", Selector: team("team=c")}, objects{}, "shop", 0, nil},
		{"no answer", parameter.Reference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "limits"}, objects{err: unknown}, "", 0, unknown},
		{"no answer to a list", parameter.Reference{APIVersion: "v1", Kind: "ConfigMap"}, objects{err: unknown}, "shop", 0, unknown},
	} {
		found, err := c.of.Find(t.Context(), c.resources, c.namespace)
		if len(found) != c.found || (err == nil) != (c.is == nil) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %d, %v", c.reason, len(found), err)
		}
	}
	confined := parameter.Reference{APIVersion: "v1", Kind: "Node", Name: "limits", Confined: true}
	if _, err := confined.Find(t.Context(), objects{}, "shop"); err == nil {
		t.Error("a policy of a namespace reads objects of the cluster")
	}
	_, err := confined.Find(t.Context(), nil, "shop")
	if _, is := errors.AsType[*cel.UnknownError](err); !is {
		t.Errorf("without a cluster: %v", err)
	}
	wrong := parameter.Reference{APIVersion: "v2", Kind: "ConfigMap", Name: "limits"}
	if _, err := wrong.Find(t.Context(), objects{}, "shop"); err == nil || errors.Is(err, cel.ErrNotFound) {
		t.Errorf("no such kind: %v", err)
	}
}

func Example() {
	limits := parameter.Reference{APIVersion: "v1", Kind: "ConfigMap", Name: "limits"}
	found, err := limits.Find(context.Background(), objects{}, "shop")
	fmt.Println(found, err)
	_, err = limits.Find(context.Background(), objects{}, "blog")
	fmt.Println(errors.Is(err, cel.ErrNotFound))
	// Output:
	// [map[name:limits]] <nil>
	// true
}
