package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestAnswers: clients and watchers receive the answers that users need.
func TestAnswers(t *testing.T) {
	s := guard(t, "answers", gateway.Configuration{})
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")
	policy := env.Policy{
		Name: "answers", Namespaces: []string{"answers", "answers-eased"},
		Spec: map[string]any{"validationFailureActionOverrides": []any{map[string]any{"action": "Audit", "namespaces": []any{"answers-eased"}}}},
		Rule: map[string]any{"failureAction": nil},
	}
	policy.Spec["validationFailureAction"] = "Enforce"
	s.enforce(t, policy)

	t.Run("a denial names image, policy, rule, reason and what next", func(t *testing.T) {
		_, err := s.create(t, pod("bare", signed.Name, bare.Name))
		denied(t, "an unsigned image", err, "unsigned")
		for _, word := range []string{"c1", bare.Name, "ClusterPolicy/answers, rule signed", "no signature found", "1 of 2 images denied"} {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("the denial does not say %q: %v", word, err)
			}
		}
		if strings.Contains(err.Error(), signed.Name) {
			t.Errorf("the denial names the signed image: %v", err)
		}
	})
	t.Run("an override eases one namespace", func(t *testing.T) {
		eased := s.in(t, "answers-eased")
		if _, err := eased.create(t, pod("bare", bare.Name)); err != nil {
			t.Errorf("the namespace of the override: %v", err)
		}
		_, err := s.create(t, pod("bare", bare.Name))
		denied(t, "the namespace without one", err, "unsigned")
	})
	t.Run("a namespaced policy applies to its namespace", s.tryNamespaced)
	t.Run("a tag that stays", s.tryUnpinned)
	t.Run("audit", func(t *testing.T) { s.tryAudit(t, bare.Name, signed.Name) })
}

// tryNamespaced: a Policy holds in its own namespace and in no other.
func (s *scene) tryNamespaced(t *testing.T) {
	inside, outside := s.in(t, "answers-inside"), s.in(t, "answers-outside")
	bare := s.env.Unsigned("shop/namespaced", "1.0")
	text, err := s.env.YAML(env.Policy{Name: "inside"})
	must(t, err)
	text = strings.Replace(text, "kind: ClusterPolicy", "kind: Policy", 1)
	s.put(t, strings.Replace(text, "name: inside", "name: inside\n  namespace: answers-inside", 1))
	s.awaitGuard(t, inside, bare.Name, true) // the API server watches its webhook configurations
	_, err = inside.dryRun(t.Context(), pod("bare", bare.Name))
	denied(t, "where the policy is", err, "unsigned")
	if err == nil || !strings.Contains(err.Error(), "Policy/answers-inside/inside") {
		t.Errorf("the denial does not name the policy: %v", err)
	}
	_, err = outside.dryRun(t.Context(), pod("bare", bare.Name))
	must(t, err)
}

// tryUnpinned: where a policy does not pin, an image is proved and stays as it
// was written.
func (s *scene) tryUnpinned(t *testing.T) {
	unpinned := s.in(t, "answers-unpinned")
	signed, err := s.env.Signed("shop/unpinned", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/unpinned-bare", "1.0")
	text, err := s.env.YAML(env.Policy{Name: "unpinned", Namespaces: []string{unpinned.namespace}, Rule: audited()})
	must(t, err)
	s.put(t, text)
	eventually(t, func(ctx context.Context) error {
		if _, err := unpinned.dryRun(ctx, pod("probe", bare.Name)); err == nil {
			return errors.New("an unsigned image is admitted")
		}
		return nil
	})
	_, err = unpinned.dryRun(t.Context(), pod("bare", bare.Name))
	denied(t, "an unsigned image", err, "unsigned")
	got, err := unpinned.create(t, pod("signed", signed.Name))
	must(t, err)
	if !slices.Equal(images(got), []string{signed.Name}) || got.Annotations[written] != "" {
		t.Errorf("it became %v, with %q", images(got), got.Annotations[written])
	}
}

// tryAudit: an audited violation is reported to the object's owners; the client is warned
// only where the policy sets it.
func (s *scene) tryAudit(t *testing.T, bare, signed string) {
	client, heard := s.listening(t)
	pods := client.CoreV1().Pods(s.namespace)
	for _, row := range []struct {
		reason, name, action, image string
		spec                        map[string]any
		warned, noted               bool
	}{
		{"audit of an unsigned image", "audited", "Audit", bare, nil, false, true},
		{"warn of an unsigned image", "warned", "Audit", bare, map[string]any{"emitWarning": true}, true, true},
		{"warn of a signed image", "fine", "Audit", signed, map[string]any{"emitWarning": true, "background": false}, false, false},
	} {
		text, err := s.env.YAML(env.Policy{Name: "answers", Namespaces: []string{s.namespace}, Action: row.action, Spec: row.spec, Rule: map[string]any{"mutateDigest": false, "verifyDigest": false}})
		must(t, err)
		s.effect(t, func(ctx context.Context) error { return s.plane.ApplyYAML(ctx, text) })
		_, err = pods.Create(t.Context(), pod(row.name, row.image), meta.CreateOptions{})
		must(t, err)
		warnings := heard()
		if warned := len(warnings) > 0; warned != row.warned {
			t.Errorf("%s: the client heard %q, want a warning: %t", row.reason, warnings, row.warned)
		}
		for _, text := range warnings {
			if !strings.Contains(text, "[unsigned]") || !strings.Contains(text, bare) || !strings.Contains(text, "ClusterPolicy, policy answers.signed") {
				t.Errorf("%s: the warning %q does not say what and why", row.reason, text)
			}
		}
		lines := s.verdicts(t, "validate", row.name)
		if len(lines) != 1 || lines[0]["result"] != "allow" || (lines[0]["warning"] == "unsigned") != row.noted {
			t.Errorf("%s: the log has %v, want one line, that warns: %t", row.reason, lines, row.noted)
		}
	}
	// Events are written in the order in which they are recorded, so that the
	// fine pod's would have come before this one.
	_, err := pods.Create(t.Context(), pod("last", bare), meta.CreateOptions{})
	must(t, err)
	about := map[string]string{}
	eventually(t, func(ctx context.Context) error {
		events, err := s.eventsIn(ctx, s.namespace)
		for _, e := range events {
			if e.Regarding.Name != "bare" { // refused before, with an event in the same namespace
				about[e.Regarding.Name] = e.Reason + " " + e.Note
			}
		}
		if err == nil && about["last"] == "" {
			err = fmt.Errorf("no event about the last pod: %v", about)
		}
		return err
	})
	for _, name := range []string{"audited", "warned"} {
		for _, word := range []string{"PolicyViolation", bare, "policy ClusterPolicy/answers/signed", "unsigned"} {
			if !strings.Contains(about[name], word) {
				t.Errorf("the event about %s does not say %q: %q", name, word, about[name])
			}
		}
	}
	if about["fine"] != "" {
		t.Errorf("an event about a signed image: %s", about["fine"])
	}
	if names := slices.Sorted(maps.Keys(about)); !slices.Equal(names, []string{"audited", "last", "warned"}) {
		t.Errorf("events about %v", names)
	}
}

// audited is what an entry of verifyImages has to say where nothing is pinned.
func audited() map[string]any { return map[string]any{"mutateDigest": false, "verifyDigest": false} }
