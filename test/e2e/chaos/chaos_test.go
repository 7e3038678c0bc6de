package main

import (
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/chaos/checker"
	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// TestChaos is the shortest form of make chaos: two gateways, two registries and a Redis,
// under load, while one of each fails. Then its twin: with no policy in force the same
// checker finds the errors in the answers, in the stored pods and in the logs.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs a Kubernetes API server")
	}
	if _, err := exec.LookPath(process.RedisServer); err != nil {
		t.Skipf("%s is not installed: faults under load are NOT tested here (apt-get install %[1]s)", process.RedisServer)
	}
	s, err := build(t.Context(), t.TempDir(), settings{
		faults: []string{"kill", "registry-gone", "redis-silent"},
		rate:   2 * len(mix), hold: 3 * time.Second, most: 5 * time.Minute,
	})
	if s != nil {
		t.Cleanup(s.close)
	}
	if err != nil {
		t.Fatal(err)
	}
	said := &strings.Builder{}
	err = s.chaos(t.Context(), said)
	t.Logf("\n%s", said)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("no policy is in force", s.tryWithoutPolicies)
}

func (s *stand) tryWithoutPolicies(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), openTimeout)
	defer cancel()
	for _, r := range s.replicas {
		if err := r.start(ctx); err != nil {
			t.Fatal(err)
		}
		if err := r.now().Ready(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for i := range s.ports {
		if err := s.dynamic.Resource(clusterPolicies).Delete(ctx, policyName(i), meta.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	bare := s.ports[0].Image(checker.Unsigned, 0)
	if err := process.Eventually(ctx, func(ctx context.Context) error {
		if a := s.want(ctx, prefix+"0", bare, false); a.Outcome != checker.Admitted {
			return io.ErrNoProgress
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.record.Forget()
	loading, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	if err := s.load(loading); err != nil {
		t.Fatal(err)
	}
	findings, err := s.findings(ctx, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[checker.Kind]int{}
	for _, f := range findings {
		kinds[f.Kind]++
	}
	if kinds[checker.WrongYes] < len(mix) || kinds[checker.LostRecord] == 0 {
		t.Errorf("unsigned images are let in, and the checker finds %v", kinds)
	}
}

func TestParse(t *testing.T) {
	if s, err := parse(nil); err != nil || s.soak != 0 || len(s.faults) != 0 {
		t.Errorf("no arguments: %+v, %v", s, err)
	}
	if s, err := parse([]string{"-faults=kill,disk"}); err != nil || len(s.faults) != 2 {
		t.Errorf("two faults: %+v, %v", s, err)
	}
	for _, row := range []struct {
		reason, word string
		arguments    []string
	}{
		{"a fault that is none", `"flood"`, []string{"-faults=kill,flood"}},
		{"too few pods", "pods a second", []string{"-rate=1"}},
		{"too short", "-hold", []string{"-hold=1ms"}},
		{"a soak that is too short", "-soak", []string{"-soak=1m"}},
		{"a program without a clock that can be set", "-program", []string{"-program=/bin/quaymaster"}},
		{"a soak with faults", "without -faults", []string{"-soak=1h", "-faults=kill"}},
	} {
		if _, err := parse(row.arguments); err == nil || !strings.Contains(err.Error(), row.word) {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}
