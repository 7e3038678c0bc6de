package status

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// execute runs a command without a cluster, and returns its exit status.
func execute(t *testing.T, of func(command.Terminal) *cobra.Command, args ...string) (status int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	terminal := command.Terminal{Out: &stdout, Err: &stderr, Env: func(string) string { return "" }, Release: "test"}
	cmd := of(terminal)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetContext(t.Context())
	err := cmd.Execute()
	code, isStatus := errors.AsType[command.Status](err)
	switch {
	case isStatus:
		status = int(code)
	case err != nil:
		status = command.ExitUsage
		stderr.WriteString(err.Error())
	}
	return status, stdout.String(), stderr.String()
}

// TestNoCluster: without an API server nothing is good, and the exit status is 3.
func TestNoCluster(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], users: [{name: u, user: {token: t}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for reason, args := range map[string][]string{
		"no kubeconfig": {"--kubeconfig", filepath.Join(t.TempDir(), "nothing")}, "no API server": {"--kubeconfig", kubeconfig}, "no context": {"--kubeconfig", kubeconfig, "--context", "other"},
	} {
		if code, out, errs := execute(t, New, args...); code != command.ExitError || out != "" || errs == "" {
			t.Errorf("%s: status %d: %s%s", reason, code, out, errs)
		}
		code, out, errs := execute(t, NewDoctor, append(args, "-o", "json")...)
		var read struct {
			Kind  string
			Items []struct{ Check, Result, Message, Fix string }
		}
		if err := json.Unmarshal([]byte(out), &read); err != nil || code != command.ExitError || len(read.Items) != 1 {
			t.Errorf("%s: status %d, %v: %s%s", reason, code, err, out, errs)
		} else if one := read.Items[0]; one.Check != "api-server" || one.Result != "unknown" || one.Fix == "" {
			t.Errorf("%s: %+v", reason, one)
		}
		if code, out, _ := execute(t, NewDoctor, args...); code != command.ExitError || !strings.HasPrefix(out, "? unknown  api-server") {
			t.Errorf("%s: status %d: %s", reason, code, out)
		}
	}
}

// TestUse: wrong use has the exit status 2.
func TestUse(t *testing.T) {
	for reason, args := range map[string][]string{
		"a format": {"-o", "yml"}, "an argument": {"quaymaster"}, "a timeout": {"--timeout", "0s"}, "no namespace": {"-n", ""},
	} {
		for _, of := range []func(command.Terminal) *cobra.Command{New, NewDoctor} {
			if code, out, errs := execute(t, of, args...); code != command.ExitUsage || errs == "" {
				t.Errorf("%s: status %d: %s%s", reason, code, out, errs)
			}
		}
	}
}
