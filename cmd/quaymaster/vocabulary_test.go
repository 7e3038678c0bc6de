package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// leaves returns the commands that do something, by their paths.
func leaves(cmd *cobra.Command) map[string]*cobra.Command {
	found := map[string]*cobra.Command{}
	for _, child := range cmd.Commands() {
		if !child.HasSubCommands() {
			_, path, _ := strings.Cut(child.CommandPath(), " ")
			found[path] = child
		}
		maps.Copy(found, leaves(child))
	}
	return found
}

// TestVocabulary: commands that print results have -o with text, JSON and YAML, and those that read a
// cluster name it alike. Each exception has its reason.
func TestVocabulary(t *testing.T) {
	withoutFormat := map[string]string{
		"bundle create":         "-o is the file that it writes; it prints one line",
		"convert":               "it prints a policy in YAML",
		"log show":              "it prints the lines of a log unchanged",
		"serve":                 "it runs until it is stopped",
		"demo":                  "it is for people",
		"playground":            "it runs until it is stopped",
		"help":                  "it is for people",
		"jp parse":              "the syntax tree is for people",
		"completion bash":       "it prints a script",
		"completion zsh":        "it prints a script",
		"completion fish":       "it prints a script",
		"completion powershell": "it prints a script",
	}
	kyvernoNames := map[string]string{"apply": "output-format", "test": "output-format"}
	root := rootCommand(command.Terminal{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Env: func(string) string { return "" }})
	commands := leaves(root)
	for path, cmd := range commands {
		name := "output"
		if kyvernos := kyvernoNames[path]; kyvernos != "" {
			name = kyvernos
		}
		flag := cmd.Flags().Lookup(name)
		reason, excepted := withoutFormat[path]
		switch {
		case excepted && (flag == nil || path == "bundle create" || path == "convert"): // their results are files
		case excepted:
			t.Errorf("%s has -o, although %s", path, reason)
		case flag == nil || flag.Shorthand != "o":
			t.Errorf("%s has no --%s with -o", path, name)
		default:
			for _, format := range []string{"text", "json", "yaml"} {
				if !slices.Contains(completed(t, append(strings.Fields(path), "-o", "")...), format) {
					t.Errorf("%s: -o has no %s: %s", path, format, flag.Usage)
				}
			}
		}
		kubeconfig, context := cmd.Flags().Lookup("kubeconfig"), cmd.Flags().Lookup("context")
		if (kubeconfig == nil) != (context == nil) {
			t.Errorf("%s: of --kubeconfig and --context it has one", path)
		}
		if kubeconfig != nil && (!strings.HasPrefix(kubeconfig.Usage, "kubeconfig `file`") || !strings.HasPrefix(context.Usage, "kubeconfig `context`")) {
			t.Errorf("%s: %s; %s", path, kubeconfig.Usage, context.Usage)
		}
	}
	for path := range withoutFormat {
		if commands[path] == nil {
			t.Errorf("%s is no command", path)
		}
	}
}

// completed returns what a shell would complete a command line with.
func completed(t *testing.T, args ...string) []string {
	t.Helper()
	code, out, errs := quaymaster(t, append([]string{cobra.ShellCompRequestCmd}, args...)...)
	if code != 0 {
		t.Errorf("%q: exit status %d: %s", args, code, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, line := range lines {
		lines[i], _, _ = strings.Cut(line, "\t")
	}
	return lines
}

// TestCompletion: values of flags are completed, and names no file where none is wanted.
func TestCompletion(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	ok(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\ncontexts: [{name: staging, context: {cluster: a}}, {name: production, context: {cluster: a}}]\n"), 0o600))
	const noFiles, byExtension = ":4", ":8"
	for _, c := range []struct {
		line string
		want []string
	}{
		{"verify -o ", []string{"text", "json", "yaml", "sarif", "junit", "markdown", "github", "policyreport", "openreports", "vsa", noFiles}},
		{"version --output ", []string{"text", "json", "yaml", noFiles}},
		{"test -o ", []string{"text", "json", "yaml", "markdown", "junit", noFiles}},
		{"verify --platforms ", []string{"index", "each", "any", noFiles}},
		{"verify --attestation ", []string{"slsaprovenance", "slsaprovenance02", "slsaprovenance1", "spdxjson", "spdx", "cyclonedx", "link", "vuln", "openvex", "custom", noFiles}},
		{"verify --policy ", []string{"yaml", "yml", "json", byExtension}},
		{"verify --from-cluster --kubeconfig " + kubeconfig + " --context ", []string{"production", "staging", noFiles}},
		{"policy list --kubeconfig " + kubeconfig + " --context ", []string{"production", "staging", noFiles}},
		{"scan --kubeconfig " + kubeconfig + " --context ", []string{"production", "staging", noFiles}},
		{"apply --kubeconfig " + kubeconfig + " --context ", []string{"production", "staging", noFiles}},
		{"scan --kubeconfig /nothing --context ", []string{noFiles}},
		{"explain --code wrong-k", nil},
	} {
		fields := strings.Fields(c.line)
		if strings.HasSuffix(c.line, " ") {
			fields = append(fields, "")
		}
		got := completed(t, fields...)
		if c.want != nil && !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
		if c.want == nil && !slices.Contains(got, "wrong-key") {
			t.Errorf("%s: %q", c.line, got)
		}
	}
}

// TestDocumentFormats: JSON and YAML of a command are one document.
func TestDocumentFormats(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("app", "v1", "1")
	ok(t, h.SignLegacy(image, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	logs, _ := keptLog(t)
	policy := h.file(t, "policy.yaml", "apiVersion: policy.sigstore.dev/v1beta1\nkind: ClusterImagePolicy\nmetadata: {name: none}\nspec:\n  images: [{glob: '**'}]\n  authorities: [{static: {action: pass}}]\n")
	key := []string{"--key", h.path("key.pub"), "--insecure-ignore-tlog", image.Name}
	for _, args := range [][]string{
		append([]string{"verify"}, key...), append([]string{"explain"}, key...), {"tree", image.Name}, {"version"}, {"policy", "list", policy},
		{"log", "verify", logs}, {"explain", "--code", "wrong-key"},
	} {
		name := strings.Join(args[:min(2, len(args))], " ")
		code, asJSON, errs := quaymaster(t, append(slices.Clone(args), "-o", "json")...)
		var one, other map[string]any
		if err := json.Unmarshal([]byte(asJSON), &one); code != 0 || err != nil || len(one) == 0 {
			t.Errorf("%s: exit status %d: %v\n%s%s", name, code, err, asJSON, errs)
		}
		code, asYAML, errs := quaymaster(t, append(slices.Clone(args), "-o", "yaml")...)
		if err := yaml.Unmarshal([]byte(asYAML), &other); code != 0 || err != nil || strings.HasPrefix(asYAML, "{") || !slices.Equal(slices.Sorted(maps.Keys(one)), slices.Sorted(maps.Keys(other))) {
			t.Errorf("%s: exit status %d: %v\n%s%s", name, code, err, asYAML, errs)
		}
		if code, _, errs := quaymaster(t, append(slices.Clone(args), "-o", "jsno")...); code != command.ExitUsage || !strings.Contains(errs, "-o jsno: did you mean json? want text, json") {
			t.Errorf("%s: another format: exit status %d: %s", name, code, errs)
		}
	}
}

// TestExplainCode: a code has its next step; a misspelt one has a suggestion.
func TestExplainCode(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"--code wrong-key", 0, "wrong-key\n  next: sign the image with the policy's key"},
		{"--code verified", 0, "verified\n  next: no action needed\n  see: https://"},
		{"--code wrong-kye", command.ExitUsage, "--code wrong-kye: there is no such reason code: did you mean wrong-key?"},
		{"--code nothing", command.ExitUsage, "--code nothing: there is no such reason code\n"},
		{"--code wrong-key nginx", command.ExitUsage, "--code explains a reason code alone"},
		{"--code wrong-key --policy a", command.ExitUsage, "--code explains a reason code alone"},
	} {
		code, out, errs := quaymaster(t, append([]string{"explain"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("%s: exit status %d: %s%s", c.args, code, out, errs)
		}
	}
}

// TestNoLibraryTexts: wrong input is answered in the words of this program, with what was meant.
func TestNoLibraryTexts(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		ok(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	settings := "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\n"
	kubeconfig := file("kubeconfig", "apiVersion: v1\nkind: Config\ncontexts: [{name: production, context: {cluster: a}}]\n")
	policy := file("policy.yaml", "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: a}\nspec:\n  ruels: []\n")
	valid := file("valid.yaml", "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: a}\nspec:\n  validationActions: [Deny]\n"+
		"  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}\n  validations: [{expression: 'true'}]\n")
	for line, want := range map[string]string{
		"verfy nginx":               `unknown command "verfy": did you mean verify?`,
		"policies":                  `unknown command "policies": did you mean policy?`,
		"show log":                  `unknown command "show"`,
		"policy lst":                `unknown command "lst": did you mean list?`,
		"verify --polcy a nginx":    "unknown flag --polcy: did you mean --policy?",
		"verify -key a nginx":       "did you mean --key?",
		"verify --key":              "--key needs a value",
		"verify --timeout 10 nginx": "--timeout 10: want a duration such as 30s or 5m",
		"scan --qps many":           "--qps many: want a number",
		"log show x --last ten":     "--last ten: want a whole number",
		"log show " + folder + " --last 1 --from 2":                "--last and --from contradict each other",
		"verify --require-match=perhaps nginx":                     "--require-match perhaps: want true or false",
		"tree -o jsno nginx":                                       "-o jsno: did you mean json?",
		"convert a b":                                              "quaymaster convert takes 1 argument, found 2",
		"log verify":                                               "name a decision log",
		"verify --key k --attestation slsaprovenence nginx":        "did you mean slsaprovenance?",
		"verify --key k docker://nginx":                            "write the reference without docker://, as nginx",
		"scan --kubeconfig " + kubeconfig + " --context prodution": "--context: context \"prodution\" does not exist in kubeconfig " + kubeconfig + ": did you mean production?",
		"verify --from-cluster --kubeconfig " + kubeconfig + " --context prod nginx":                "--context: context \"prod\" does not exist",
		"scan --kubeconfig " + file("broken", "a: b: c\n"):                                          "broken: YAML: mapping values are not allowed",
		"policy list --kubeconfig " + file("list", "[]\n"):                                          "list: want a document of apiVersion v1 and kind Config",
		"verify --policy " + valid + " --trusted-root " + file("root.json", "nope {") + " nginx":    "syntax error (line 1:1): invalid value nope",
		"verify --policy " + valid + " --trusted-root " + file("other.json", `{"a": 1}`) + " nginx": `(line 1:2): unknown field "a"`,
		"verify --from-cluster --kubeconfig " + kubeconfig + " production nginx":                    "production is a context: write --from-cluster --context production",
		"verify --context production nginx":                                                         "--context and --kubeconfig are for --from-cluster",
		"bundle create -o b --key k --context production":                                           "--context and --kubeconfig are for --from-cluster",
		"apply --cluster --kubeconfig " + kubeconfig + " --context prod " + policy:                  "does not exist in kubeconfig",
		"serve --config " + file("a.yaml", settings+"limits:\n  requsts: 1\n"):                      "a.yaml: line 4: limits.requsts: unknown field: did you mean requests?",
		"serve --config " + file("b.yaml", settings+"limits: [\n"):                                  "b.yaml: YAML: line",
		"serve --config " + file("c.yaml", settings+"ages:\n  tag: 5x\n"):                           "c.yaml: line 4: ages.tag: want a duration such as 30s, found \"5x\"",
		"verify --config " + file("d.yaml", "a: [\n") + " nginx":                                    "d.yaml: YAML: line 1",
		"verify --policy " + policy + " nginx":                                                      "spec.ruels: unknown field: did you mean rules?",
		"verify --policy " + file("e.yaml", "a: b: c\n") + " nginx":                                 "e.yaml",
	} {
		code, out, errs := quaymaster(t, strings.Fields(line)...)
		if code != command.ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit status %d, want %q:\n%s%s", line, code, want, out, errs)
		}
		for _, raw := range []string{
			"arg(s)", "json: ", "yaml: ", "strconv", "shorthand flag", "invalid argument", "unable to", "unmarshal", "if any flags in the group", "converting YAML", "time: ",
		} {
			if strings.Contains(strings.NewReplacer(folder, "", ".yaml: ", ": ", ".json: ", ": ").Replace(errs), raw) {
				t.Errorf("%s: the text of a library (%s): %s", line, raw, errs)
			}
		}
	}
}
