package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// soon is when the exception ends that a test watches ending: late enough that a
// pod is admitted before.
const soon = 3 * time.Second

// TestExceptions: an exception exempts the objects that it names, in allowed namespaces, as
// long as it is valid.
func TestExceptions(t *testing.T) {
	c := gateway.Configuration{}
	c.Exceptions.Namespaces = []string{"exceptions-office"}
	s := guard(t, "exceptions", c)
	s.in(t, "exceptions-office")
	s.in(t, "exceptions-elsewhere")
	s.enforce(t, env.Policy{Name: "exceptions", Namespaces: []string{"exceptions"}})
	bare, other := s.env.Unsigned("shop/bare", "1.0"), s.env.Unsigned("shop/other", "1.0")

	at := func(offset time.Duration) string {
		return "quaymaster.dev/expires: \"" + time.Now().Add(offset).UTC().Format(time.RFC3339) + "\""
	}
	for i, row := range []struct {
		reason, namespace, policy, rule, annotations string
		images                                       []string
		admitted                                     bool
	}{
		{"by policy and rule", "exceptions-office", "exceptions", "signed", "", []string{bare.Name}, true},
		{"by a pattern of rules", "exceptions-office", "exceptions", "sign*", "", []string{bare.Name}, true},
		{"from a namespace that may not", "exceptions-elsewhere", "exceptions", "signed", "", []string{bare.Name}, false},
		{"from the namespace of the pod", "exceptions", "exceptions", "signed", "", []string{bare.Name}, false},
		{"for another policy", "exceptions-office", "others", "signed", "", []string{bare.Name}, false},
		{"for another rule", "exceptions-office", "exceptions", "sealed", "", []string{bare.Name}, false},
		{"for the image", "exceptions-office", "exceptions", "signed", "quaymaster.dev/images: " + s.env.Registry.Host() + "/shop/bare:*", []string{bare.Name}, true},
		{"for another image", "exceptions-office", "exceptions", "signed", "quaymaster.dev/images: " + s.env.Registry.Host() + "/shop/bare:*", []string{other.Name}, false},
		{"for one image of two", "exceptions-office", "exceptions", "signed", "quaymaster.dev/images: " + s.env.Registry.Host() + "/shop/bare:*", []string{bare.Name, other.Name}, false},
		{"that ends in an hour", "exceptions-office", "exceptions", "signed", at(time.Hour), []string{bare.Name}, true},
		{"that ended an hour ago", "exceptions-office", "exceptions", "signed", at(-time.Hour), []string{bare.Name}, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			name := fmt.Sprintf("row-%d", i)
			s.except(t, name, row.namespace, row.policy, row.rule, row.annotations)
			got, err := s.create(t, pod(name, row.images...))
			if !row.admitted {
				denied(t, "an exception "+row.reason, err, "unsigned")
				return
			}
			must(t, err)
			if !slices.Equal(images(got), row.images) {
				t.Errorf("the pod has %v, want it unchanged", images(got))
			}
			s.checkUse(t, name, row.namespace+"/"+name)
		})
	}
	t.Run("it ends while it is watched", func(t *testing.T) {
		s.except(t, "ends", "exceptions-office", "exceptions", "signed", at(soon))
		_, err := s.dryRun(t.Context(), pod("before", bare.Name))
		must(t, err)
		hash, err := s.taken()
		must(t, err)
		eventually(t, func(ctx context.Context) error {
			if _, err := s.dryRun(ctx, pod("after", bare.Name)); err == nil {
				return fmt.Errorf("after it ended a pod is still admitted")
			}
			return nil
		})
		if now, err := s.taken(); err != nil || now != hash {
			t.Errorf("it was not its end: the policies changed from %s to %s (%v)", hash, now, err)
		}
	})
	_, err := s.create(t, pod("none", bare.Name))
	denied(t, "after all exceptions are gone", err, "unsigned")
}

// except makes an exception for pods of the scene until the test ends.
func (s *scene) except(t *testing.T, name, namespace, policy, rule, annotations string) {
	t.Helper()
	s.effect(t, func(ctx context.Context) error {
		return s.plane.ApplyYAML(ctx, fmt.Sprintf(`
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: %s, namespace: %s, annotations: {%s}}
spec:
  exceptions: [{policyName: %s, ruleNames: ["%s"]}]
  match: {any: [{resources: {kinds: [Pod], namespaces: [%s]}}]}
`, name, namespace, annotations, policy, rule, s.namespace))
	})
	t.Cleanup(func() {
		client, err := dynamic.NewForConfig(s.plane.Admin())
		must(t, err)
		s.effect(t, func(ctx context.Context) error {
			return client.Resource(schema.GroupVersionResource{Group: "kyverno.io", Version: "v2", Resource: "policyexceptions"}).Namespace(namespace).Delete(ctx, name, meta.DeleteOptions{})
		})
	})
}

// checkUse checks that the log names the exception, at both endpoints.
func (s *scene) checkUse(t *testing.T, pod, exception string) {
	t.Helper()
	for _, endpoint := range []string{"mutate", "validate"} {
		lines := s.verdicts(t, endpoint, pod)
		if len(lines) != 1 || lines[0]["result"] != "allow" || lines[0]["reason"] != "excepted" || !slices.Equal(texts(lines[0]["exceptions"]), []string{exception}) {
			t.Errorf("%s: the log has %v, want that %s was used", endpoint, lines, exception)
		}
	}
}

// texts returns the texts of a list in JSON.
func texts(list any) []string {
	var found []string
	items, _ := list.([]any)
	for _, item := range items {
		found = append(found, fmt.Sprint(item))
	}
	return found
}
