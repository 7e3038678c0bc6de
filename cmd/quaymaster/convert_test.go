package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

func TestConvert(t *testing.T) {
	samples := filepath.Join("..", "..", "policy", "convert", "notation", "testdata")
	golden, err := os.ReadFile(filepath.Join(samples, "notation-global.golden.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file, root := filepath.Join(samples, "notation-global.json"), filepath.Join("..", "..", "policy", "convert", "internal", "converttest", "root")
	policy, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args     []string
		in       string
		code     int
		out, err string
	}{
		"a file":                   {args: []string{file, "--root", root}, out: string(golden)},
		"standard input":           {args: []string{"-", "--root", root, "--from", "notation"}, in: string(policy), out: string(golden)},
		"what cannot be carried":   {args: []string{"-"}, in: string(policy), code: command.ExitUsage, err: "trustPolicies[1].trustStores[0]: names the trust store ca:wabbit: give --root"},
		"two files":                {args: []string{file, file}, code: command.ExitUsage, err: "quaymaster convert takes 1 argument, found 2"},
		"a flag of native":         {args: []string{file, "--static", "x"}, code: command.ExitUsage, err: "--static has no effect with --to imagevalidating"},
		"another result":           {args: []string{file, "--to", "rego"}, code: command.ExitUsage, err: "--to rego: want imagevalidating, native or cel"},
		"another format":           {args: []string{file, "--from", "cosign"}, code: command.ExitUsage, err: `--from cosign: want connaisseur, notation`},
		"nothing known":            {args: []string{"-"}, in: "hello: world", code: command.ExitUsage, err: "unknown policy format"},
		"no file":                  {args: []string{"nothing.json"}, code: command.ExitUsage, err: "no such file"},
		"no root":                  {args: []string{file, "--root", "nothing"}, code: command.ExitUsage, err: "--root"},
		"a root that does not fit": {args: []string{file, "--root", samples}, code: command.ExitUsage, err: "the trust store truststore/x509/ca/wabbit cannot be read"},
		"too much":                 {args: []string{"-"}, in: strings.Repeat("#", 1<<20+1), code: command.ExitUsage, err: "standard input is larger than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(context.Background(), append([]string{"convert"}, c.args...),
				command.Terminal{In: strings.NewReader(c.in), Out: &out, Err: &errs, Env: func(string) string { return "" }})
			if code != c.code {
				t.Errorf("status %d, want %d: %s", code, c.code, errs.String())
			}
			if out.String() != c.out {
				t.Errorf("out is %q, want %q", out.String(), c.out)
			}
			if !strings.Contains(errs.String(), c.err) || c.err == "" && errs.Len() > 0 {
				t.Errorf("error output %q lacks %q", errs.String(), c.err)
			}
		})
	}
}
