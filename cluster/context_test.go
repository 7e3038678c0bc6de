package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/kubeconfig"
)

// TestContext: a context that the kubeconfig does not have is an error with those that it has; one
// that it has is used.
func TestContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	const head = "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'https://api.example'}}]\n"
	write := func(text string) {
		if err := os.WriteFile(path, []byte(head+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("contexts: [{name: staging, context: {cluster: a}}, {name: production, context: {cluster: a}}]\n")
	for context, want := range map[string]string{
		"production":  "",
		"prodution":   `context "prodution" does not exist in kubeconfig ` + path + ": did you mean production?; its contexts are production, staging",
		"development": `context "development" does not exist in kubeconfig ` + path + "; its contexts are production, staging",
	} {
		_, err := cluster.NewClient(cluster.ClientOptions{Kubeconfig: path, Context: context, Version: "1"})
		if got := errorText(err); got != want {
			t.Errorf("%s: %s, want %s", context, got, want)
		}
	}
	write("")
	_, err := cluster.NewClient(cluster.ClientOptions{Kubeconfig: path, Context: "production", Version: "1"})
	if !strings.HasSuffix(errorText(err), "it has no contexts") {
		t.Error(err)
	}
	if names, err := kubeconfig.Contexts(filepath.Join(t.TempDir(), "none")); err == nil || names != nil {
		t.Errorf("no file: %v, %v", names, err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
