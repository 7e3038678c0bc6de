package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/flagsource"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// sourced runs a command line in an environment.
func sourced(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	terminal := command.Terminal{In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(name string) string { return env[name] }}
	code = run(t.Context(), args, terminal)
	return code, out.String(), errs.String()
}

// TestFlagsFromOtherSources: variables and files set flags that the command line leaves out, in their
// order, and the run lists them.
func TestFlagsFromOtherSources(t *testing.T) {
	home, folder := t.TempDir(), t.TempDir()
	own := filepath.Join(home, ".config", "quaymaster", "flags.yaml")
	ok(t, os.MkdirAll(filepath.Dir(own), 0o700))
	const head = "apiVersion: quaymaster.dev/v1alpha1\nkind: Flags\n"
	ok(t, os.WriteFile(own, []byte(head+"flags: {output: json}\n"), 0o600))
	file := filepath.Join(folder, "ci.yaml")
	ok(t, os.WriteFile(file, []byte(head+"commands: {version: {output: text}}\n"), 0o600))
	for _, c := range []struct {
		reason string
		env    map[string]string
		args   []string
		json   bool
		source string // in the list on standard error
	}{
		{"nothing is set", nil, nil, false, ""},
		{"by a variable", map[string]string{"QUAYMASTER_OUTPUT": "json"}, nil, true, "--output json (from QUAYMASTER_OUTPUT)"},
		{"by the user's own file", map[string]string{"HOME": home}, nil, true, "--output json (from " + own + ")"},
		{"by the user's own file elsewhere", map[string]string{"XDG_CONFIG_HOME": filepath.Join(home, ".config")}, nil, true, "from " + own},
		{"by a file that is named", map[string]string{"HOME": home}, []string{"--config", file}, false, "--output text (from " + file + ")"},
		{"a file that is named before a variable", map[string]string{"QUAYMASTER_OUTPUT": "json"}, []string{"--config", file}, false, "from " + file},
		{"a variable before the user's own file", map[string]string{"HOME": home, "QUAYMASTER_OUTPUT": "text"}, nil, false, "from QUAYMASTER_OUTPUT"},
		{"the command line before all", map[string]string{"QUAYMASTER_OUTPUT": "json"}, []string{"-o", "text"}, false, ""},
		{"a folder that is not absolute is none", map[string]string{"XDG_CONFIG_HOME": "."}, nil, false, ""},
		{"a home that is no folder", map[string]string{"HOME": os.DevNull}, nil, false, ""},
		{"a variable of no flag", map[string]string{"QUAYMASTER_UNHEARD": "x", "QUAYMASTER_HELP": "true"}, nil, false, ""},
	} {
		code, out, errs := sourced(t, c.env, append([]string{"version"}, c.args...)...)
		if code != 0 || strings.HasPrefix(out, "{") != c.json || !strings.Contains(errs, c.source) || c.source == "" && errs != "" {
			t.Errorf("%s: %d\n%s%s", c.reason, code, out, errs)
		}
	}
}

// TestFlagsThatWeaken: flags that can make a result less strict are taken from the command line and the
// file of --config alone, whatever files and variables a pull request brings.
func TestFlagsThatWeaken(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed := h.Build("shop/web", "v1", "signed")
	ok(t, h.SignLegacy(signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	unsigned := h.Build("shop/web", "v2", "unsigned")
	verify := func(env map[string]string, args ...string) (int, string) {
		code, out, errs := sourced(t, env, append([]string{"verify", "--insecure-ignore-tlog"}, args...)...)
		return code, out + errs
	}
	const head = "apiVersion: quaymaster.dev/v1alpha1\nkind: Flags\n"
	file := h.file(t, "ci.yaml", head+"commands: {verify: {key: ["+h.path("key.pub")+"]}}\n")
	for image, want := range map[string]int{signed.Name: 0, unsigned.Name: 1} {
		if code, text := verify(nil, "--config", file, image); code != want || !strings.Contains(text, "--key "+h.path("key.pub")+" (from "+file+")") {
			t.Errorf("%s by the key of --config: %d %s", image, code, text)
		}
	}
	code, text, _ := sourced(t, nil, "verify", "--insecure-ignore-tlog", "--config", file, "-o", "json", signed.Name)
	if code != 0 || !strings.Contains(text, `"flags": [`) || !strings.Contains(text, `"source": "`+file+`"`) {
		t.Errorf("JSON has no sources: %d %s", code, text)
	}
	home := t.TempDir()
	ok(t, os.MkdirAll(filepath.Join(home, ".config", "quaymaster"), 0o700))
	ok(t, os.WriteFile(filepath.Join(home, ".config", "quaymaster", "flags.yaml"), []byte(head+"commands: {verify: {policy: [allow.yaml]}}\n"), 0o600))
	for name, env := range map[string]map[string]string{
		"a variable": {"QUAYMASTER_KEY": h.path("key.pub")}, "plain HTTP": {"QUAYMASTER_PLAIN_HTTP": "registry.example"},
		"the user's own file": {"HOME": home}, "a trusted root": {"QUAYMASTER_TRUSTED_ROOT": "x"}, "no log": {"QUAYMASTER_INSECURE_IGNORE_SCT": "true"},
		"another file of flags": {"QUAYMASTER_POLICY": "allow.yaml"}, "no match": {"QUAYMASTER_REQUIRE_MATCH": "false"},
		"a time in which nothing can be verified": {"QUAYMASTER_TIMEOUT": "1ms"}, "no network": {"QUAYMASTER_OFFLINE": "true"},
		"another trusted root":          {"QUAYMASTER_REFRESH_TRUST": "true"},
		"a cluster with other policies": {"QUAYMASTER_KUBECONFIG": "kubeconfig"},
	} {
		if code, text := verify(env, unsigned.Name); code != command.ExitUsage || !strings.Contains(text, "can weaken a result") {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
	// A file that is written could be one of those that are read, and false would relax --config.
	policies := t.TempDir()
	deny := filepath.Join(policies, "deny.yaml")
	ok(t, os.WriteFile(deny, []byte("apiVersion: policy.sigstore.dev/v1beta1\nkind: ClusterImagePolicy\nmetadata: {name: none}\nspec:\n  images: [{glob: '**'}]\n  authorities: [{static: {action: fail}}]\n"), 0o600))
	ok(t, os.WriteFile(filepath.Join(policies, "pass.yaml"), []byte("apiVersion: policy.sigstore.dev/v1beta1\nkind: ClusterImagePolicy\nmetadata: {name: all}\nspec:\n  images: [{glob: '**'}]\n  authorities: [{static: {action: pass}}]\n"), 0o600))
	for _, row := range []struct {
		env  map[string]string
		args []string
		code int
		says string
	}{
		{map[string]string{"QUAYMASTER_OUTPUT": "json=" + deny}, []string{"verify", "--policy", policies, unsigned.Name}, command.ExitUsage, "names a file"},
		{map[string]string{"QUAYMASTER_OUTPUT": "json"}, []string{"verify", "--policy", policies, unsigned.Name}, 1, "none"},
		{map[string]string{"QUAYMASTER_OUTPUT": "trust"}, []string{"bundle", "create"}, command.ExitUsage, "names a file"},
		{map[string]string{"QUAYMASTER_REQUIRE_TESTS": "false"}, []string{"test", policies}, command.ExitUsage, "can only be true"},
		{map[string]string{"QUAYMASTER_REQUIRE_TESTS": "true"}, []string{"test", policies}, command.ExitUsage, "no check to run"},
	} {
		if code, out, errs := sourced(t, row.env, row.args...); code != row.code || !strings.Contains(out+errs, row.says) {
			t.Errorf("%v: %v: %d, want %d with %q: %s%s", row.env, row.args, code, row.code, row.says, out, errs)
		}
	}
	// A pull request's files in the working directory have no effect.
	work := t.TempDir()
	t.Chdir(work)
	for _, name := range []string{"flags.yaml", "quaymaster.yaml", ".quaymaster.yaml", ".config/quaymaster/flags.yaml", "quaymaster/flags.yaml"} {
		ok(t, os.MkdirAll(filepath.Dir(name), 0o700))
		ok(t, os.WriteFile(name, []byte(head+"commands: {verify: {insecure-ignore-sct: true, output: json}}\n"), 0o600))
	}
	if code, text := verify(map[string]string{"XDG_CONFIG_HOME": "."}, "--key", h.path("key.pub"), unsigned.Name); code != 1 || strings.Contains(text, "(from") {
		t.Errorf("files of the working directory: %d %s", code, text)
	}
}

// TestFilesOfFlagsRefused: a file with a name that no command has is an error, as is any but the form of the
// documentation.
func TestFilesOfFlagsRefused(t *testing.T) {
	const head = "apiVersion: quaymaster.dev/v1alpha1\nkind: Flags\n"
	for reason, c := range map[string][2]string{
		"a misspelt flag":           {head + "flags: {outptu: json}\n", "line 3: flags.outptu: there is no such name: did you mean output?"},
		"a misspelt command":        {head + "commands: {verfy: {}}\n", "commands.verfy: there is no such name: did you mean verify?"},
		"a flag of another command": {head + "commands: {version: {policy: [x]}}\n", "commands.version.policy: there is no such name"},
		"another kind":              {"apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\n", "want apiVersion quaymaster.dev/v1alpha1 and kind Flags"},
		"an unknown field":          {head + "flag: {}\n", "line 3: flag: unknown field: did you mean flags?"},
		"a value of another type":   {head + "flags:\n  output: {a: b}\n", "line 4: flags.output: want a string"},
		"no YAML":                   {"a: [", "YAML: line 1: did not find expected"},
		"a list for one value":      {head + "flags: {output: [json, text]}\n", "line 3: flags.output: --output takes one value"},
		"a flag of one command":     {head + "commands:\n  version:\n    output: [json, text]\n", "line 5: commands.version.output: --output takes one value"},
		"two documents":             {head + "flags: {output: json}\n---\n" + head, "more than one document"},
		"--config in a file":        {head + "flags: {config: x}\n", "flags.config: there is no such name"},
	} {
		path := filepath.Join(t.TempDir(), "flags.yaml")
		ok(t, os.WriteFile(path, []byte(c[0]), 0o600))
		code, _, errs := sourced(t, nil, "version", "--config", path)
		if code != command.ExitUsage || !strings.Contains(errs, c[1]) {
			t.Errorf("%s: %d %s", reason, code, errs)
		}
	}
	if code, _, errs := sourced(t, nil, "version", "--config", "/nothing/flags.yaml"); code != command.ExitUsage || !strings.Contains(errs, "--config: ") {
		t.Errorf("no file: %d %s", code, errs)
	}
}

// TestHarmlessFlags: each name of the list is a flag, and none of the list is one of those that the
// documentation names as weakening.
func TestHarmlessFlags(t *testing.T) {
	root := rootCommand(command.Terminal{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Env: func(string) string { return "" }})
	flags := map[string]bool{}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(root)
	for _, name := range flagsource.Harmless() {
		if !flags[name] {
			t.Errorf("--%s is no flag", name)
		}
	}
	for name := range flags {
		for _, part := range []string{"insecure", "key", "certificate", "root", "policy", "match", "http", "exit", "ca", "annotation", "platforms", "mirrors", "attestation", "vsa", "layout", "bundle", "filename", "namespace", "resource", "userinfo", "effective", "kube", "context", "cluster", "gateway", "token", "timeout", "offline", "qps", "requests", "trust", "time"} {
			if strings.Contains(name, part) && slices.Contains(flagsource.Harmless(), name) {
				t.Errorf("--%s is taken to be harmless", name)
			}
		}
	}
}
