package cel_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/mutating"
)

// randomMerge is a strategic merge of a pod, made of parts that may stand together.
func randomMerge(from *rand.Rand) string {
	some := func(most int, choices ...string) string {
		var chosen []string
		for range from.IntN(most + 1) {
			one := choices[from.IntN(len(choices))]
			key, _, _ := strings.Cut(one, ":")
			bare := strings.Trim(key, "+<()")
			taken := false
			for _, other := range chosen {
				key, _, _ := strings.Cut(other, ":")
				taken = taken || strings.Trim(key, "+<()") == bare
			}
			if !taken {
				chosen = append(chosen, one)
			}
		}
		return strings.Join(chosen, ", ")
	}
	container := func() string {
		return some(3, "imagePullPolicy: Always", "+(imagePullPolicy): Always", "securityContext: {+(privileged): false}", "securityContext: {runAsUser: 9, +(privileged): false}",
			"+(securityContext): {runAsUser: 9}", "securityContext: {(runAsUser): 1, privileged: false}", "resources: {limits: {+(cpu): '2', memory: 1Gi}}",
			"volumeMounts: [{name: c, mountPath: /certs}]", "env: [{name: A, value: a}, {name: N, value: w}]", "command: [q]", "+(args): [q]", "+(env): [{name: A, value: a}]")
	}
	element := func() string {
		key := []string{"(name): '*'", "(image): '*:latest'", "(name): b", "(imagePullPolicy): Never", "name: side", "name: b", "name: fresh"}[from.IntN(7)]
		return strings.TrimSuffix("{"+key+", "+container(), ", ") + "}"
	}
	spec := some(4, "terminationGracePeriodSeconds: 7", "+(terminationGracePeriodSeconds): 7", "hostNetwork: true", "+(hostNetwork): true", "(hostNetwork): true", "hostNetwork: null",
		"securityContext: {+(runAsNonRoot): true, fsGroup: 2}", "+(securityContext): {fsGroup: 2}", "nodeSelector: {+(os): windows, a: b}", "+(nodeSelector): {a: b}",
		"tolerations: [{key: q}]", "+(tolerations): [{key: q}]", "imagePullSecrets: [{name: pull}]", "volumes: [{name: c, emptyDir: {}}]", "volumes: [{<(emptyDir): {}}]",
		"volumes: [{name: v, configMap: {name: v}}, {name: a, emptyDir: {medium: Memory}}]",
		"containers: ["+element()+"]", "containers: ["+element()+"]", "initContainers: ["+element()+"]", "containers: [{<(image): '*:latest'}]")
	meta := some(2, "labels: {+(team): shop, tier: web}", "labels: {(app): web, a: b}", "annotations: {+(safe): 'true'}", "annotations: {a: c, +(d): e}")
	return "metadata: {" + meta + "}, spec: {" + spec + "}"
}

// TestRandomMerges: source and result make the same object of random merges, or the merge is refused.
// QUAYMASTER_CONVERT_MERGES is the number of merges.
func TestRandomMerges(t *testing.T) {
	objects := podObjects(t)
	merges := 25
	if more, err := strconv.Atoi(os.Getenv("QUAYMASTER_CONVERT_MERGES")); err == nil {
		merges = more
	}
	mutations, from := mutating.New(kyvernocel.Options{}), rand.New(rand.NewPCG(1, 2))
	converted := 0
	for range merges {
		patch := randomMerge(from)
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test, annotations: {pod-policies.kyverno.io/autogen-controllers: Deployment}},
  spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, mutate: {patchStrategicMerge: {%s}}}]}}`, patch)
		result := convertText(t, text, cel.Options{})
		if len(result.Problems) > 0 || len(result.Policies) == 0 {
			continue
		}
		converted++
		source, made, written := bothMutations(t, mutations, text)
		for _, object := range objects {
			compareMutations(t, patch, object, source, made, written)
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d of %d are converted", converted, merges)
	if converted*2 < merges {
		t.Errorf("%d of %d are converted", converted, merges)
	}
}
