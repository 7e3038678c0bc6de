package ci

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/test/peers"
)

// port has a registry with a signed image and one that is not, and our program.
type port struct {
	root, folder   string
	signed, bare   string // images by digest
	key, stranger  string // files of public keys
	program        string
	host           string
	cosign3, crane *peers.Program
}

func open(t *testing.T) *port {
	t.Helper()
	if testing.Short() {
		t.Skip("builds cosign, which takes minutes")
	}
	root, err := peers.Checkout()
	check(t, err)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	p := &port{
		root: root, folder: t.TempDir(), host: strings.TrimPrefix(server.URL, "http://"),
		cosign3: peers.Get(t, peers.Cosign3), crane: peers.Get(t, peers.Crane), program: peers.Quaymaster(t).Path,
	}
	for _, name := range []string{"signer", "stranger"} {
		p.cosign3.Must(t, "generate-key-pair", "--output-key-prefix", filepath.Join(p.folder, name))
	}
	p.key, p.stranger = filepath.Join(p.folder, "signer.pub"), filepath.Join(p.folder, "stranger.pub")
	p.signed, p.bare = p.push(t, "signed"), p.push(t, "bare")
	p.cosign3.Must(t, "sign", "--key", filepath.Join(p.folder, "signer.key"), "--use-signing-config=false", "--tlog-upload=false", p.signed)
	return p
}

// push has crane push an image of one file, and returns it by digest.
func (p *port) push(t *testing.T, name string) string {
	t.Helper()
	layer := new(bytes.Buffer)
	w := tar.NewWriter(layer)
	check(t, w.WriteHeader(&tar.Header{Name: "cargo", Mode: 0o644, Size: int64(len(name))}))
	_, err := w.Write([]byte(name))
	check(t, errors.Join(err, w.Close()))
	file := filepath.Join(t.TempDir(), "layer.tar")
	check(t, os.WriteFile(file, layer.Bytes(), 0o600))
	p.crane.Must(t, "append", "-f", file, "-t", p.host+"/"+name+":v1")
	return p.host + "/" + name + "@" + strings.TrimSpace(p.crane.Must(t, "digest", p.host+"/"+name+":v1"))
}

// pod is a manifest of a Pod that runs an image.
func pod(image string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n    - name: web\n      image: " + image + "\n"
}

// job is a run of a CI system's step in a folder of its own.
type job struct {
	folder string
	env    map[string]string
}

func newJob(t *testing.T) *job {
	t.Helper()
	folder := t.TempDir()
	return &job{folder: folder, env: map[string]string{"PATH": os.Getenv("PATH"), "HOME": folder, "DOCKER_CONFIG": folder, "TMPDIR": t.TempDir(), "NO_COLOR": "1"}}
}

func (j *job) write(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(j.folder, name)
	check(t, os.MkdirAll(filepath.Dir(file), 0o755))
	check(t, os.WriteFile(file, []byte(content), 0o600))
	return name
}

func (j *job) read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(j.folder, name))
	check(t, err)
	return string(content)
}

// run runs a script as a file, which is how runners hand it to a shell.
func (j *job) run(t *testing.T, shell []string, script string) (status int, said string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "step")
	check(t, os.WriteFile(file, []byte(script), 0o600))
	command := exec.CommandContext(t.Context(), shell[0], append(shell[1:], file)...)
	command.Dir = j.folder
	for name, value := range j.env {
		command.Env = append(command.Env, name+"="+value)
	}
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(output)
}

// action is the part of action.yml that is used here.
type action struct {
	Inputs map[string]struct {
		Default string `json:"default"`
	} `json:"inputs"`
	Runs struct {
		Steps []struct {
			Shell string            `json:"shell"`
			Uses  string            `json:"uses"`
			Run   string            `json:"run"`
			Env   map[string]string `json:"env"`
		} `json:"steps"`
	} `json:"runs"`
}

var expression = regexp.MustCompile(`^\$\{\{ (?:inputs\.([a-z0-9-]+)|github\.action_ref) \}\}$`)

// action runs the steps of action.yml with inputs, as GitHub does.
func (p *port) action(t *testing.T, j *job, with map[string]string) (status int, said string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(p.root, "action.yml"))
	check(t, err)
	var a action
	check(t, yaml.Unmarshal(content, &a))
	for name := range with {
		if _, ok := a.Inputs[name]; !ok {
			t.Fatalf("the action has no input %s", name)
		}
	}
	if len(a.Runs.Steps) != 1 || a.Runs.Steps[0].Uses != "" {
		t.Fatalf("steps %+v", a.Runs.Steps)
	}
	step := a.Runs.Steps[0]
	if strings.Contains(step.Run, "${{") {
		t.Fatalf("an expression stands in the script, where a value would be run:\n%s", step.Run)
	}
	given := map[string]bool{}
	for variable, value := range step.Env {
		parts := expression.FindStringSubmatch(value)
		if parts == nil {
			t.Fatalf("%s: %s is more than one input", variable, value)
		}
		if name := parts[1]; name != "" {
			given[name] = true
			chosen, ok := with[name]
			if !ok {
				chosen = a.Inputs[name].Default
			}
			j.env[variable] = chosen
		}
	}
	if len(given) != len(a.Inputs) {
		t.Fatalf("%d inputs, and the step is given %d", len(a.Inputs), len(given))
	}
	j.env["GITHUB_ACTION_PATH"] = p.root
	j.env["GITHUB_STEP_SUMMARY"] = filepath.Join(j.folder, "summary.md")
	j.env["GITHUB_OUTPUT"] = filepath.Join(j.folder, "output")
	return j.run(t, []string{"bash", "--noprofile", "--norc", "-e", "-o", "pipefail"}, step.Run)
}

// template is the part of the GitLab template that is used here.
type template struct {
	Spec struct {
		Inputs map[string]struct {
			Default *string `json:"default"`
		} `json:"inputs"`
	} `json:"spec"`
}

type pipeline struct {
	Variables map[string]any `json:"variables"`
	Script    []string       `json:"script"`
}

func (p *port) template(t *testing.T) (template, pipeline) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(p.root, "deploy", "ci", "gitlab", "verify.yml"))
	check(t, err)
	head, body, ok := strings.Cut(string(content), "\n---\n")
	if !ok {
		t.Fatal("no header")
	}
	var spec template
	check(t, yaml.Unmarshal([]byte(head), &spec))
	var jobs map[string]pipeline
	check(t, yaml.Unmarshal([]byte(body), &jobs))
	found, ok := jobs["$[[ inputs.job ]]"]
	if !ok || len(jobs) != 1 {
		t.Fatalf("jobs %v", jobs)
	}
	return spec, found
}

// gitlab runs the template's script with inputs, as GitLab does: inputs are filled
// into the values of the parsed file, and variables are taken as they are where expand
// is off.
func (p *port) gitlab(t *testing.T, j *job, with map[string]string) (status int, said string) {
	t.Helper()
	spec, job := p.template(t)
	for name := range with {
		if _, ok := spec.Spec.Inputs[name]; !ok {
			t.Fatalf("the template has no input %s", name)
		}
	}
	for variable, given := range job.Variables {
		value, ok := given.(string)
		if !ok {
			fields := given.(map[string]any)
			if fields["expand"] != false {
				t.Fatalf("%s: $ in a value would be looked up", variable)
			}
			name := strings.TrimSuffix(strings.TrimPrefix(fields["value"].(string), "$[[ inputs."), " ]]")
			input, ok := spec.Spec.Inputs[name]
			if !ok {
				t.Fatalf("%s: no input %q", variable, name)
			}
			value, ok = with[name]
			if !ok && input.Default != nil {
				value = *input.Default
			}
		}
		j.env[variable] = value
	}
	script := strings.Join(job.Script, "\n")
	if strings.Contains(script, "$[[") {
		t.Fatal("an input stands in the script, where it would be run")
	}
	return j.run(t, []string{"sh", "-e"}, script)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want compares the exit status.
func want(t *testing.T, reason string, got, status int, said string) {
	t.Helper()
	if got != status {
		t.Errorf("%s: exit status %d, want %d:\n%s", reason, got, status, said)
	}
}
