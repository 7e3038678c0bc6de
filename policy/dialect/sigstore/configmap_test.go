package sigstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/policy/set"
)

// configMaps are the ConfigMaps of a cluster, by namespace/name.
type configMaps map[string]map[string]any

func (m configMaps) ConfigMap(_ context.Context, namespace, name string) (map[string]any, error) {
	if data, ok := m[namespace+"/"+name]; ok {
		return map[string]any{"data": data}, nil
	}
	return nil, errors.New("not found")
}

// TestConfigMap: a policy in a ConfigMap is the one that stands there now.
func TestConfigMap(t *testing.T) {
	cluster := configMaps{}
	text := head + "  authorities: [{key: {data: $KEY}, attestations: [{name: a, predicateType: vuln, policy: {type: cue, configMapRef: {name: rules, key: cue}}}]}]\n"
	p := compile(t, sigstore.Options{Lookup: cluster}, text)
	statement := proof{"authorities[0].key", "https://cosign.sigstore.dev/attestation/vuln/v1", `{"score":6}`}
	for _, c := range []struct {
		data   map[string]any // nil: it is not there
		want   policy.Result
		words  string
		reason string
	}{
		{map[string]any{"cue": "predicate: score: <7"}, policy.Pass, "", "it holds"},
		{map[string]any{"cue": "predicate: score: <5"}, policy.Fail, "", "changed, it does not hold"},
		{nil, "", "ConfigMap cosign-system/rules, key cue: not found", "it is not there"},
		{map[string]any{"rego": "x"}, "", "no such key", "another key"},
		{map[string]any{"cue": "predicate: {"}, "", "expected", "it does not compile"},
		{map[string]any{"cue": ""}, "", "is empty", "it is empty"},
	} {
		delete(cluster, "cosign-system/rules")
		if c.data != nil {
			cluster["cosign-system/rules"] = c.data
		}
		made := plan(t, pod("prod"), "ghcr.io/org/app:v1", p)
		if c.want == "" {
			if outcome(made) != "error" || !strings.Contains(made.Results[0].Err.Error(), c.words) {
				t.Errorf("%s: %+v", c.reason, made)
			}
			continue
		}
		if d := decision(t, &made.Checks[0], answers(statement)); d.Result != c.want {
			t.Errorf("%s: %s %+v", c.reason, d.Result, d.Reasons)
		}
	}
	if got := outcome(plan(t, pod("prod"), "ghcr.io/org/app:v1", compile(t, sigstore.Options{}, text))); got != "error" {
		t.Errorf("without a cluster: %s", got)
	}
	if got := outcome(plan(t, pod("prod"), "quay.io/org/app:v1", compile(t, sigstore.Options{}, text))); got != "skips" {
		t.Errorf("without a cluster, an image that is not named: %s", got)
	}
}

// BenchmarkPlan plans and decides a policy with a condition in CUE for one image,
// from memory.
func BenchmarkPlan(b *testing.B) {
	p := compile(b, sigstore.Options{}, head+"  authorities: [{key: {data: $KEY}, attestations: [{name: a, predicateType: vuln, policy: {type: cue, data: 'predicate: score: <7'}}]}]\n")
	proved := answers(proof{"authorities[0].key", "https://cosign.sigstore.dev/attestation/vuln/v1", `{"score":6}`})
	set, err := set.New(p)
	if err != nil {
		b.Fatal(err)
	}
	s, images := pod("prod"), []policy.Image{container("ghcr.io/org/app:v1"), container("ghcr.io/org/app:v2"), container("ghcr.io/org/app:v3")}
	for b.Loop() {
		made := set.Plan(b.Context(), s, func([]policy.Extractor) ([]policy.Image, error) { return images, nil })
		for i := range made.Checks {
			if d := decision(b, &made.Checks[i], proved); d.Result != policy.Pass {
				b.Fatal(d.Reasons)
			}
		}
	}
}

// TestConcurrent: one compiled policy serves many requests at once.
func TestConcurrent(t *testing.T) {
	cluster := configMaps{"cosign-system/rules": {"cue": "predicate: score: <7"}}
	p := compile(t, sigstore.Options{Lookup: cluster}, head+"  authorities: [{key: {data: $KEY}, attestations: [{name: a, predicateType: vuln, policy: {type: cue, configMapRef: {name: rules, key: cue}}}]}]\n")
	set, err := set.New(p)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			made := set.Plan(t.Context(), pod("prod"), func([]policy.Extractor) ([]policy.Image, error) {
				return []policy.Image{container("ghcr.io/org/app:v1")}, nil
			})
			want := policy.Pass
			if i%2 == 1 {
				want = policy.Fail
			}
			score := proof{"authorities[0].key", "https://cosign.sigstore.dev/attestation/vuln/v1", fmt.Sprintf(`{"score":%d}`, 6+i%2)}
			for n := range made.Checks {
				if d := decision(t, &made.Checks[n], answers(score)); d.Result != want {
					t.Errorf("%d: %s %+v", i, d.Result, d.Reasons)
				}
			}
		})
	}
	group.Wait()
}
