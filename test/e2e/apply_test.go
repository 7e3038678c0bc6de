package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestApply: applying the same manifest again, as a dry run or for good, changes nothing.
func TestApply(t *testing.T) {
	c := gateway.Configuration{}
	c.Ages.Tag = "1ms" // no memory of a tag makes anything here cheap
	s := guard(t, "apply", c)
	s.enforce(t, env.Policy{Name: "apply", Namespaces: []string{"apply"}})
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")

	t.Run("a dry run answers the same and leaves nothing", func(t *testing.T) { s.dryRuns(t, signed.Name, bare.Name) })
	t.Run("another manager finds no difference", func(t *testing.T) { s.tryManager(t, bare.Name) })
	t.Run("admitted again, it is the same object", func(t *testing.T) { s.tryAgain(t, signed.Name) })
	t.Run("kubectl finds no difference", func(t *testing.T) { s.tryKubectl(t, signed.Name, bare.Name) })
}

func (s *scene) dryRuns(t *testing.T, signed, bare string) {
	pods := s.client.CoreV1().Pods(s.namespace)
	trial, err := s.dryRun(t.Context(), pod("trial", signed))
	must(t, err)
	if _, err := pods.Get(t.Context(), "trial", meta.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after a dry run the pod gives %v, want that it is not there", err)
	}
	_, refused := s.dryRun(t.Context(), pod("trial-bare", bare))
	denied(t, "a dry run with an unsigned image", refused, "unsigned")
	made, err := s.create(t, pod("trial", signed))
	must(t, err)
	if !equality.Semantic.DeepEqual(trial.Spec, made.Spec) || trial.Annotations[written] != made.Annotations[written] {
		t.Errorf("a dry run gave %v and the real one %v", trial.Spec, made.Spec)
	}
	// Events are written in the order in which they are recorded.
	_, err = s.create(t, pod("real-bare", bare))
	denied(t, "the real one", err, "unsigned")
	eventually(t, func(ctx context.Context) error {
		events, err := s.eventsIn(ctx, s.namespace)
		told := false
		for _, e := range events {
			told = told || strings.Contains(e.Note, "apply/real-bare:")
			if strings.Contains(e.Note, "apply/trial") {
				t.Errorf("an event of a dry run: %s", e.Note)
			}
		}
		if err == nil && !told {
			err = fmt.Errorf("no event of the refusal among %d", len(events))
		}
		return err
	})
}

// manifest writes a pod as a user does.
func manifest(t *testing.T, p *core.Pod) []byte {
	t.Helper()
	p = p.DeepCopy()
	p.APIVersion, p.Kind = "v1", "Pod"
	text, err := yaml.Marshal(p)
	must(t, err)
	return text
}

// tryManager: the manifest as it was written means what runs already, also after
// its tag moved.
func (s *scene) tryManager(t *testing.T, bare string) {
	managed, err := s.env.Signed("shop/managed", "1.0")
	must(t, err)
	pods := s.client.CoreV1().Pods(s.namespace)
	text := manifest(t, pod("managed", managed.Name))
	apply := func(text []byte, manager string, trial bool) (*core.Pod, error) {
		force := true
		options := meta.PatchOptions{FieldManager: manager, Force: &force}
		if trial {
			options.DryRun = []string{meta.DryRunAll}
		}
		got, err := pods.Patch(t.Context(), "managed", "application/apply-patch+yaml", text, options)
		if err == nil {
			got.ManagedFields = nil
		}
		return got, err
	}
	before, err := apply(text, "first", false)
	must(t, err)
	s.env.Registry.Reset()
	for _, row := range []struct {
		reason, manager string
		trial           bool
	}{
		{"a dry run by another manager", "second", true},
		{"a dry run by the same manager", "first", true},
		{"the same manager again", "first", false},
		{"another manager", "second", false},
		{"a third, after the second", "third", false},
		{"after the tag moved to an unsigned image", "second", true},
	} {
		if strings.HasPrefix(row.reason, "after the tag") {
			s.env.Unsigned("shop/managed", "1.0")
		}
		after, err := apply(text, row.manager, row.trial)
		must(t, err)
		after.ResourceVersion = before.ResourceVersion // managed fields alone may change it
		if !equality.Semantic.DeepEqual(after, before) {
			t.Errorf("%s: got\n%v\nwant\n%v", row.reason, after, before)
		}
		if n := s.cost(); n != 0 {
			t.Errorf("%s: it cost %d registry requests", row.reason, n)
		}
	}
	if !slices.Equal(images(before), []string{env.Pinned(managed)}) {
		t.Errorf("the pod has %v, want %s", images(before), env.Pinned(managed))
	}
	_, err = s.dryRun(t.Context(), pod("unmanaged", managed.Name))
	denied(t, "another pod, after the tag moved", err, "unsigned")
	_, err = apply(manifest(t, pod("managed", bare)), "second", true)
	denied(t, "a dry run by another manager with an unsigned image", err, "unsigned")
}

// tryAgain: what admission made is admitted as it is.
func (s *scene) tryAgain(t *testing.T, signed string) {
	first, err := s.dryRun(t.Context(), withVolume(pod("again", signed, signed), signed))
	must(t, err)
	again := first.DeepCopy()
	again.UID, again.ResourceVersion, again.ManagedFields = "", "", nil
	second, err := s.dryRun(t.Context(), again)
	must(t, err)
	if !equality.Semantic.DeepEqual(first.Spec, second.Spec) || !equality.Semantic.DeepEqual(first.Annotations, second.Annotations) {
		t.Errorf("admitted again, %v became %v", first, second)
	}
}

func (s *scene) tryKubectl(t *testing.T, signed, bare string) {
	kubectl := s.kubectl(t)
	file := t.TempDir() + "/pod.yaml"
	write := func(image string) { must(t, os.WriteFile(file, manifest(t, pod("kubectl", image)), 0o600)) }
	write(signed)
	for _, arguments := range [][]string{
		{"apply", "-f", file},
		{"diff", "-f", file}, // its status is 1 where there is a difference
		{"diff", "-f", file, "--server-side", "--field-manager=second", "--force-conflicts"},
	} {
		if said, err := kubectl(arguments...); err != nil {
			t.Errorf("kubectl %v: %v\n%s", arguments, err, said)
		}
	}
	write(bare)
	if said, err := kubectl("diff", "-f", file); err == nil {
		t.Errorf("kubectl diff finds no difference in another image: %s", said)
	}
}
