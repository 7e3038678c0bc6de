package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/internal/testkit"
)

// TestOrder pins the order in which components start, the requirements of decisions, and the
// number of closers, which run in the opposite order. Later steps use the results of earlier ones,
// and pending requests use all of them until they end.
func TestOrder(t *testing.T) {
	for _, row := range []struct {
		reason, settings         string
		components, requirements []string
		closers                  int
	}{
		{
			reason: "standalone", settings: "standalone: true\n" + allSettings,
			components: []string{
				"certificate", "trust", "trust refresh", "trusted roots of policies", "policies in folders", "mirrors in files",
				"decision log", "decision log's sink stdout", "decision log's sink webhook", "decision log's sink otlp",
				"snapshot", "inventory", "dashboard",
			},
			requirements: []string{"trust", "policies", "mirrors", "decisionlog"},
			closers:      5,
		},
		{
			reason: "in a cluster", settings: "kubernetes: {kubeconfig: FOLDER/kubeconfig}\nguard: enabled\n" + allSettings,
			components: []string{
				"namespaces", "roles", "events", "certificate", "certificate's Secret", "trust", "trust refresh", "global context", "kinds", "guard",
				"trusted roots of policies", "policies", "policies in folders", "mirrors in files",
				"decision log", "decision log's sink stdout", "decision log's sink webhook", "decision log's sink otlp",
				"snapshot", "reports", "reports of before", "inventory", "dashboard", "leader", "background*", "cleanup", "scan*", "guard*",
				"state of policies*", "replicas*", "owners of status*", "status of mirrors*", "status of global context*",
				"webhook configurations*", "break glass*", "reports of policies*",
			},
			requirements: []string{"namespaces", "trust", "kinds", "policies", "mirrors", "watch", "decisionlog"},
			closers:      8,
		},
		{
			reason: "in a cluster without admission", settings: "kubernetes: {kubeconfig: FOLDER/kubeconfig}\nroles: [scan, report, background]\n",
			components: []string{
				"namespaces", "roles", "events", "certificate", "certificate's Secret", "trust", "global context", "kinds", "trusted roots of policies",
				"policies", "reports", "reports of before", "inventory", "dashboard", "leader", "background*", "scan*", "reports of policies*",
			},
			requirements: []string{"namespaces", "trust", "kinds", "policies", "mirrors", "watch"},
			closers:      5,
		},
		{
			reason: "the cleanup alone leads by the Lease of the process", settings: "kubernetes: {kubeconfig: FOLDER/kubeconfig}\nroles: [cleanup]\n",
			components: []string{
				"namespaces", "roles", "events", "certificate", "certificate's Secret", "trust", "global context", "kinds", "trusted roots of policies",
				"policies", "leader", "cleanup*",
			},
			requirements: []string{"namespaces", "trust", "kinds", "policies", "mirrors", "watch"},
			closers:      4,
		},
	} {
		t.Run(row.reason, func(t *testing.T) {
			folder := t.TempDir()
			d := &env{folder: folder}
			d.write(t, "policies/mirrors.yaml", "")
			d.write(t, "mirrors/none.yaml", "")
			if err := os.WriteFile(filepath.Join(folder, "kubeconfig"), fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://%s"}}]
contexts: [{name: c, context: {cluster: c, user: ""}}]
current-context: c
`, freeAddress(t)), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := config.Parse([]byte(head + strings.ReplaceAll(row.settings, "FOLDER", folder)))
			if err != nil {
				t.Fatal(err)
			}
			g, err := newAssembly(t.Context(), c, Options{Log: &testkit.Log{}, Version: "test", Replica: "test"})
			if err != nil {
				t.Fatal(err)
			}
			defer g.close()
			var requirements []string
			for _, r := range g.group.Requirements() {
				requirements = append(requirements, r.Name)
			}
			if got := namesOf(&g.group); !slices.Equal(got, row.components) {
				t.Errorf("components:\n%q", got)
			}
			if !slices.Equal(requirements, row.requirements) {
				t.Errorf("requirements:\n%q", requirements)
			}
			if got := reflect.ValueOf(&g.group).Elem().FieldByName("closers").Len(); got != row.closers {
				t.Errorf("%d closers", got)
			}
		})
	}
}

// allSettings enables every optional component.
const allSettings = `policies: {folders: [FOLDER/policies]}
mirrors: {files: [FOLDER/mirrors]}
decisionLog: {folder: FOLDER/log, stdout: true, webhook: {url: "https://collector.example/log"}, otlp: {endpoint: "https://collector.example:4317"}}
traces: {endpoint: "https://collector.example:4318"}
trust: {refresh: true, cacheFolder: FOLDER/tuf}
webhooks: {breakGlass: true}
`

// namesOf returns the names of the components; those of the leader alone end with an asterisk.
func namesOf(group *gateway.Group) []string {
	var names []string
	for name, component := range group.Components() {
		if component.NeedLeaderElection() {
			name += "*"
		}
		names = append(names, name)
	}
	return names
}
