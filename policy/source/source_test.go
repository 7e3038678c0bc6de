package source_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/source"
)

// objects have one object for each name that is asked, and a number of them in each list.
type objects struct {
	count int
	text  string
}

func (o objects) Source(_ context.Context, of source.Ref) (map[string]any, error) {
	if of.Name == "absent" {
		return nil, source.ErrMissing
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": o.text, "metadata": map[string]any{"name": of.Name}}, nil
}

func (o objects) EachSource(ctx context.Context, _ source.Ref, do func(map[string]any) error) error {
	for i := range o.count {
		object, err := o.Source(ctx, source.Ref{Name: fmt.Sprintf("m%04d", o.count-i)})
		if err == nil {
			err = do(object)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TestReaderIsBounded: the sources of one evaluation, their objects and their content.
func TestReaderIsBounded(t *testing.T) {
	ofMap := func(name string) source.Ref {
		return source.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: name}
	}
	r := source.NewReader(objects{}, source.NewGuard(""))
	for i := range source.MaxSources {
		for range 2 { // the second time it is none that is new
			if _, err := r.Get(t.Context(), ofMap(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := r.Get(t.Context(), ofMap("more")); err == nil || len(r.Read().Sources) != source.MaxSources {
		t.Errorf("%v, %d sources", err, len(r.Read().Sources))
	}
	most := objects{count: source.MaxObjects}
	if list, err := source.NewReader(most, source.NewGuard("")).List(t.Context(), ofMap("")); err != nil || len(list) != source.MaxObjects {
		t.Errorf("%v, %d objects", err, len(list))
	}
	most.count++
	if _, err := source.NewReader(most, source.NewGuard("")).List(t.Context(), ofMap("")); err == nil || !strings.Contains(err.Error(), "more than 1000 objects") {
		t.Error(err)
	}
	if _, err := source.NewReader(objects{count: 20, text: strings.Repeat("x", 1<<20)}, source.NewGuard("")).List(t.Context(), ofMap("")); err == nil || !strings.Contains(err.Error(), "exceed") {
		t.Error(err)
	}
	if _, err := source.NewReader(nil, source.NewGuard("")).Get(t.Context(), ofMap("a")); err == nil || errors.Is(err, source.ErrMissing) {
		t.Error(err)
	}
	r = source.NewReader(objects{}, source.NewGuard(""))
	if _, err := r.Get(t.Context(), ofMap("absent")); !errors.Is(err, source.ErrMissing) || len(r.Read().Missing) != 1 {
		t.Error(err)
	}
}

// TestGuard: which sources a policy may read.
func TestGuard(t *testing.T) {
	text := map[string]any{"clone": []any{"regcred", "{{ join('-', ['db', 'main']) }}"}, "platform": "'team_a'"}
	of, own := source.NewGuard("", text), source.NewGuard("shop", text)
	secret := func(namespace, name, labels string) source.Ref {
		return source.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name, Labels: labels}
	}
	for _, c := range []struct {
		reason  string
		guard   source.Guard
		ref     source.Ref
		allowed bool
	}{
		{"a Secret that the policy names", of, secret("platform", "regcred", ""), true},
		{"a name that an expression makes", of, secret("platform", "db-main", ""), false},
		{"a part of a name", of, secret("platform", "reg", ""), false},
		{"another namespace", of, secret("kube-system", "regcred", ""), false},
		{"as expressions name it", of, source.Ref{APIVersion: "v1", Resource: "secrets", Namespace: "platform", Name: "other"}, false},
		{"a subresource of it", of, source.Ref{APIVersion: "v1", Resource: "secrets/status", Namespace: "platform", Name: "other"}, false},
		{"a kind of that name in another group", of, source.Ref{APIVersion: "example.com/v1", Kind: "Secret", Namespace: "x", Name: "y"}, true},
		{"all Secrets of a namespace that it names", of, secret("platform", "", ""), true},
		{"all Secrets", of, secret("", "", ""), false},
		{"Secrets with a label of the policy", of, secret("platform", "", "team=team_a"), true},
		{"Secrets with another label", of, secret("platform", "", "team=web"), false},
		{"Secrets with two labels, one of them another", of, secret("platform", "", "team=team_a,x=web"), false},
		{"Secrets that have a label", of, secret("platform", "", "team"), true},
		{"another kind", of, source.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "x", Name: "y"}, true},
		{"another kind, of a policy of a namespace", own, source.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "x", Name: "y"}, false},
		{"a kind of no namespace, of a policy of a namespace", own, source.Ref{APIVersion: "v1", Kind: "Namespace", Name: "y"}, false},
		{"its own namespace", own, secret("shop", "regcred", ""), true},
		{"its own namespace, and another name", own, secret("shop", "other", ""), false},
		{"of its own namespace no other", own, secret("platform", "regcred", ""), false},
		{"no policy", source.Guard{}, secret("platform", "regcred", ""), false},
	} {
		if err := c.guard.Allows(c.ref); (err == nil) != c.allowed {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// Example copies a ConfigMap.
func Example() {
	reader := source.NewReader(objects{text: "a: b"}, source.NewGuard(""))
	from := source.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "platform", Name: "settings"}
	object, err := reader.Get(context.Background(), from)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(from, source.Copy(object, "shop", "settings")["metadata"])
	// Output: ConfigMap platform/settings map[name:settings namespace:shop]
}
