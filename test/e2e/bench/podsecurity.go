package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
)

// podSecurity are the 18 policies of the Pod Security Standards, which are read from
// the samples: they are another project's.
const podSecurity = "PodSecurity"

// samplesVariable names the folder of the samples.
const samplesVariable = "QUAYMASTER_SAMPLES"

// standards returns the policies of the Pod Security Standards, which deny.
func standards() (string, error) {
	root := os.Getenv(samplesVariable)
	if root == "" {
		return "", fmt.Errorf("-policy %s: %s names no folder of samples", podSecurity, samplesVariable)
	}
	var all []string
	for _, level := range []string{"baseline", "restricted"} {
		err := filepath.WalkDir(filepath.Join(root, "kyverno-tests", level), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" || strings.Contains(path, "/.") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), "kind: ClusterPolicy") {
				return err
			}
			all = append(all, strings.ReplaceAll(string(text), "validationFailureAction: Audit", "validationFailureAction: Enforce"))
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	if len(all) != 18 {
		return "", fmt.Errorf("-policy %s: %d policies in %s, want 18", podSecurity, len(all), root)
	}
	return strings.Join(all, "\n---\n"), nil
}

// restrict makes a pod that meets the standards.
func restrict(pod *core.Pod) {
	yes, no := true, false
	pod.Spec.SecurityContext = &core.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault}}
	pod.Spec.Containers[0].SecurityContext = &core.SecurityContext{
		AllowPrivilegeEscalation: &no, Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}},
	}
}

// awaitDenied returns when a pod that does not meet the standards is refused.
func (s *stand) awaitDenied(ctx context.Context, p phase, body []byte) error {
	err := s.post(ctx, p, body)
	if err == nil {
		return errors.New("a privileged pod was created")
	}
	if !strings.Contains(err.Error(), "denied") {
		return err
	}
	return nil
}

// install applies policies, which are many.
func install(ctx context.Context, plane *controlplane.ControlPlane, text string) error {
	for document := range strings.SplitSeq(text, "\n---\n") {
		if err := plane.ApplyYAML(ctx, document); err != nil {
			return err
		}
	}
	return nil
}
