package podsecurity_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/pod-security-admission/api"
	upstream "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/podsecurity"
)

// fixture is one of the pods that Kubernetes tests its own checks with.
type fixture struct {
	name, level, version, check string // check: in lower case, empty if the pod is good
	pod                         *podsecurity.Pod
}

// fixtures reads Kubernetes' pods for every level and the newest versions, and for
// those in which a check changed.
func fixtures(t *testing.T) []fixture {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/pod-security-admission").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "test", "testdata")
	var list []fixture
	for _, version := range []string{"v1.0", "v1.8", "v1.18", "v1.19", "v1.22", "v1.23", "v1.25", "v1.27", "v1.29", "v1.31", "v1.32", "v1.34", "v1.35"} {
		for _, level := range []string{"baseline", "restricted"} {
			files, err := filepath.Glob(filepath.Join(root, level, version, "*", "*.yaml"))
			if err != nil || len(files) == 0 {
				t.Fatalf("%s %s: %d pods, %v", level, version, len(files), err)
			}
			for _, file := range files {
				f := fixture{name: level + "/" + version + "/" + filepath.Base(file), level: level, version: version, pod: read(t, file)}
				if strings.HasSuffix(f.name, "/restrictedvolumes0.yaml") && filepath.Base(filepath.Dir(file)) == "pass" {
					continue // it has a volume of no kind, which is an emptyDir once an API server has seen it
				}
				if f.version == "v1.35" && strings.HasSuffix(f.name, "/procmount1.yaml") && filepath.Base(filepath.Dir(file)) == "pass" {
					continue // it is in a user namespace, which relaxes nothing here
				}
				if filepath.Base(filepath.Dir(file)) == "fail" {
					f.check = strings.TrimRight(strings.TrimSuffix(filepath.Base(file), ".yaml"), "0123456789")
				}
				list = append(list, f)
			}
		}
	}
	return list
}

func read(t *testing.T, file string) *podsecurity.Pod {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return pod(t, string(text))
}

// pod reads a pod, or a controller, from YAML.
func pod(t testing.TB, text string) *podsecurity.Pod {
	t.Helper()
	content := object(t, text)
	kind, _ := content["kind"].(string)
	p, err := podsecurity.PodOf(kind, content)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// object decodes YAML as JSON.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

// everywhere excludes a control in the pod and in every container.
func everywhere(control string) []podsecurity.Exclusion {
	var list []podsecurity.Exclusion
	for _, e := range []podsecurity.Exclusion{{ControlName: control}, {ControlName: control, Images: []string{"*"}}} {
		if _, err := podsecurity.CompileExclusions([]podsecurity.Exclusion{e}, "exclude"); err == nil {
			list = append(list, e)
		}
	}
	return list
}

// TestKubernetesPods: Kubernetes' good pods meet their standard, and its bad ones
// do not, for their reason, with the path of the field; without that control
// nothing else is wrong with them.
func TestKubernetesPods(t *testing.T) {
	standards := map[string]*podsecurity.Standard{}
	for _, f := range fixtures(t) {
		key := f.level + f.version
		if standards[key] == nil {
			standards[key] = compile(t, f.level, f.version)
		}
		got, err := standards[key].Check(f.pod)
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
			continue
		}
		if f.check == "" {
			for _, v := range got.Violations {
				if !isYounger(t, v.ID, f.version) {
					t.Errorf("%s is good: %s", f.name, v)
				}
			}
			continue
		}
		found := false
		rest := got
		for _, v := range got.Violations {
			found = found || strings.EqualFold(v.ID, f.check)
			if len(v.Fields()) == 0 || v.Control == "" {
				t.Errorf("%s: %s of control %q has no field", f.name, v.ID, v.Control)
			}
			without, err := podsecurity.CompileExclusions(everywhere(v.Control), "exclude")
			if err != nil {
				t.Fatal(err)
			}
			rest = rest.Except(without)
		}
		if !found {
			t.Errorf("%s should violate %s: %s", f.name, f.check, got.Message("r"))
		}
		if !rest.Met() {
			t.Errorf("%s, everything excluded: %s", f.name, rest.Message("r"))
		}
	}
}

// isYounger reports whether Kubernetes has a check only after a version.
func isYounger(t *testing.T, id, version string) bool {
	t.Helper()
	of, err := api.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(upstream.DefaultChecks(), func(c upstream.Check) bool {
		return string(c.ID) == id && of.Older(c.Versions[0].MinimumVersion)
	})
}

// TestEveryCheckHasAControl: a check that comes with a newer Kubernetes needs a
// control, or it could not be excluded.
func TestEveryCheckHasAControl(t *testing.T) {
	for _, c := range upstream.DefaultChecks() {
		if podsecurity.ControlOf(string(c.ID)) == "" {
			t.Errorf("the check %s has no control: add it to controls and to find", c.ID)
		}
	}
}

func compile(t testing.TB, level, version string, exclusions ...podsecurity.Exclusion) *podsecurity.Standard {
	t.Helper()
	s, err := podsecurity.Compile(level, version, exclusions)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
