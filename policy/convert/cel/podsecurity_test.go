package cel_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/policytest"
)

// secure is a pod that meets every level; changes are made of it.
const secure = `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop, annotations: {team: x}}, spec: {
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}},
  initContainers: [{name: init, image: busybox, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}],
  ephemeralContainers: [{name: debug, image: debug, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}],
  containers: [{name: web, image: ghcr.io/acme/web:1.0, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}},
    {name: side, image: proxy, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}`

func linesOf(t testing.TB, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// change is a value at a path.
type change struct {
	path  []string
	value any
}

// readChanges reads values of fields: at the boundaries of the checks, and absent (~). Those of CONTAINER
// are made in one container of each sort.
func readChanges(t testing.TB) (all []change) {
	t.Helper()
	for _, line := range linesOf(t, "podsecurity-changes.txt") {
		path, values, _ := strings.Cut(line, ": ")
		at := []string{path}
		if below, ok := strings.CutPrefix(path, "CONTAINER."); ok {
			at = nil
			for _, place := range []string{"containers.0.", "containers.1.", "initContainers.0.", "ephemeralContainers.0."} {
				at = append(at, "spec."+place+below)
			}
		}
		for _, one := range at {
			for value := range strings.SplitSeq(values, " | ") {
				all = append(all, change{strings.Split(one, "."), policytest.Object(t, "{v: "+value+"}")["v"]})
			}
		}
	}
	return all
}

// setValue makes a change in an object; false if the place is not there.
func setValue(at any, path []string, value any) bool {
	last := len(path) == 1
	switch at := at.(type) {
	case []any:
		i := int(path[0][0] - '0')
		return i < len(at) && setValue(at[i], path[1:], value)
	case map[string]any:
		if last {
			if value == nil {
				delete(at, path[0])
			} else {
				at[path[0]] = value
			}
			return true
		}
		return at[path[0]] != nil && setValue(at[path[0]], path[1:], value)
	}
	return false
}

// pods are the secure pod, those with one change, and some with two and three.
func pods(t testing.TB, many int) (all []map[string]any) {
	t.Helper()
	single := readChanges(t)
	add := func(changes ...change) {
		pod := policytest.Object(t, secure)
		for _, c := range changes {
			setValue(pod, c.path, c.value)
		}
		all = append(all, pod)
	}
	add()
	for _, c := range single {
		add(c)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range many {
		list := make([]change, 2+random.IntN(3))
		for i := range list {
			list[i] = single[random.IntN(len(single))]
		}
		add(list...)
	}
	return all
}

// podSecurityPolicy is a rule of a level, with the settings of a policy.
func podSecurityPolicy(level, version, exclude, settings string) string {
	return fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {%s, rules: [
  {name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {podSecurity: {level: %s, version: %s, exclude: %s}}}]}}`, settings, level, version, exclude)
}

// comparePodSecurity compares a level, in a version and with exclusions, with its result on subjects.
func comparePodSecurity(t *testing.T, subjects []*policy.Subject, level, version, exclude string) {
	t.Helper()
	text := podSecurityPolicy(level, version, exclude, "validationFailureAction: Enforce, failurePolicy: Fail")
	text = strings.Replace(text, "podSecurity:", "allowExistingViolations: false, podSecurity:", 1)
	result := convertText(t, text, cel.Options{})
	if len(result.Problems) > 0 {
		t.Errorf("%s %s %s: %v", level, version, exclude, result.Problems)
		return
	}
	source, made := sourcePolicy(t, []byte(text)), compiledResults(t, result.Policies)
	denied := 0
	for _, s := range subjects {
		want, why := admits(t, s, source)
		if got, instead := admits(t, s, made...); got != want {
			written, _ := cel.YAML(result.Policies)
			t.Errorf("%s %s %s: %v is admitted %t (%s), was %t (%s)\n%s", level, version, exclude, s.Object.Map(), got, instead, want, why, written)
			return
		}
		if !want {
			denied++
		}
	}
	if denied == 0 || denied == len(subjects) {
		t.Errorf("%s %s %s: %d of %d are denied", level, version, exclude, denied, len(subjects))
	}
}

// TestPodSecurity: each check in each revision, and each sort of exclusion, forbids the same pods.
func TestPodSecurity(t *testing.T) {
	subjects := make([]*policy.Subject, 0, 2000)
	for _, pod := range pods(t, 150) {
		subjects = append(subjects, creation(pod))
	}
	compare := func(level, version, exclude string) {
		t.Run(level+" "+version+" "+exclude, func(t *testing.T) {
			t.Parallel()
			comparePodSecurity(t, subjects, level, version, exclude)
		})
	}
	for _, level := range []string{"baseline", "restricted"} {
		for _, version := range []string{"latest", "v1.0", "v1.18", "v1.19", "v1.24", "v1.25", "v1.26", "v1.27", "v1.29", "v1.31", "v1.32", "v1.34", "v1.36"} {
			compare(level, version, "[]")
		}
	}
	for _, exclude := range linesOf(t, "podsecurity-exclusions.txt") {
		compare("restricted", "latest", exclude)
		if !strings.Contains(exclude, "Escal") && !strings.Contains(exclude, "Non-root") && !strings.Contains(exclude, "Volume Types") {
			compare("baseline", "v1.18", exclude)
		}
	}
}

// TestPodSecurityOfControllers: templates are judged as pods are, where rules for controllers follow and where a rule
// names a controller; an update of what violated before is admitted.
func TestPodSecurityOfControllers(t *testing.T) {
	objects := pods(t, 100)
	template := func(pod map[string]any, kind string) map[string]any {
		of := map[string]any{"metadata": pod["metadata"], "spec": pod["spec"]}
		object := map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": "a", "namespace": "shop"}, "spec": map[string]any{"template": of}}
		if kind == "CronJob" {
			object["apiVersion"], object["spec"] = "batch/v1", map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": of}}}
		}
		return object
	}
	for _, kinds := range []string{"Pod", "Deployment, StatefulSet", "CronJob"} {
		text := podSecurityPolicy("restricted", "latest", "[{controlName: Seccomp, images: [proxy]}]", "validationFailureAction: Enforce")
		text = strings.Replace(text, "[Pod]", "["+kinds+"]", 1)
		result := convertText(t, text, cel.Options{})
		if len(result.Problems) > 0 {
			t.Fatal(result.Problems)
		}
		source, made := sourcePolicy(t, []byte(text)), compiledResults(t, result.Policies)
		excused := 0
		for i, pod := range objects {
			for _, kind := range []string{"Pod", "Deployment", "CronJob"} {
				of := func(pod map[string]any) map[string]any {
					if kind == "Pod" {
						return pod
					}
					return template(pod, kind)
				}
				now := creation(of(pod))
				same(t, kinds+": creation", now, source, made)
				update := creation(of(pod))
				update.Operation, update.OldObject = "UPDATE", policy.ContentOf(of(objects[(i*7+3)%len(objects)]))
				same(t, kinds+": update", update, source, made)
				if denied, _ := admits(t, now, source); !denied {
					if got, _ := admits(t, update, made...); got {
						excused++
					}
				}
			}
		}
		if excused == 0 {
			t.Errorf("%s: no update is excused", kinds)
		}
	}
	for kinds, found := range map[string]string{"Pod, Deployment": "match", "ConfigMap": "match"} {
		refused := convertText(t, strings.Replace(podSecurityPolicy("restricted", "latest", "[]", "background: true"), "[Pod]", "["+kinds+"]", 1), cel.Options{})
		if len(refused.Problems) != 1 || !strings.HasSuffix(refused.Problems[0].Path, found) {
			t.Errorf("%s: %v", kinds, refused.Problems)
		}
	}
	for text, path := range map[string]string{
		podSecurityPolicy("privileged", "latest", "[]", "background: true"):                                                                                     "podSecurity.level",
		podSecurityPolicy("restricted", "latest", "[{controlName: Volume Types, restrictedField: 'spec.volumes[*].unknown', values: [a]}]", "background: true"): "exclude[0].restrictedField",
	} {
		if refused := convertText(t, text, cel.Options{}); len(refused.Problems) != 1 || !strings.HasSuffix(refused.Problems[0].Path, path) {
			t.Errorf("%s: %v", text, refused.Problems)
		}
	}
}
