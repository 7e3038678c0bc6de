package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const checkedSource = "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: p}\nspec:\n  validationActions: [Deny]\n" +
	"  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}\n" +
	"  validations: [{expression: \"has(object.data) && 'open' in object.data\", message: no data}]\n"

// oldSource is a ClusterPolicy.
func oldSource(name, selects string) string {
	return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: " + name + "}\nspec:\n  rules:\n  - name: r\n" +
		"    match: {any: [{resources: {kinds: [ConfigMap]}" + selects + "}]}\n    validate: {failureAction: Enforce, message: m, pattern: {metadata: {labels: {team: '?*'}}}}\n"
}

// TestConvertCheck: the status and the output say whether a policy and its result differ.
func TestConvertCheck(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	source := file("source.yaml", checkedSource)
	same := file("same.yaml", strings.Replace(checkedSource, "has(object.data) && 'open' in object.data", "object.?data.?open.hasValue()", 1))
	other := file("other.yaml", strings.Replace(checkedSource, "'open' in object.data", "object.data.size() > 0", 1))
	broken := file("broken.yaml", strings.Replace(checkedSource, "'open' in", "'open' of", 1))
	old := file("old.yaml", oldSource("kept", "")+"---\n"+oldSource("roles", ", clusterRoles: [edit]"))
	page := filepath.Join(folder, "page.md")
	mixed, suites := filepath.Join(folder, "mixed"), filepath.Join(folder, "suites")
	for _, name := range []string{mixed, suites} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file("mixed/policy.yaml", oldSource("kept", ""))
	file("mixed/kustomization.yaml", "resources: [policy.yaml]\n")
	file("suites/object.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-the-suite}\ndata: {other: a}\n")
	file("suites/kyverno-test.yaml", "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: s}\npolicies: [p.yaml]\nresources: [object.yaml]\nresults: [{policy: p, kind: ConfigMap, resources: [of-the-suite], result: fail}]\n")
	for _, row := range []struct {
		reason string
		args   []string
		status int
		has    string
	}{
		{"equal", []string{"--check", source, "--with", same}, 0, "p: no difference for 500 objects"},
		{"different", []string{"--check", source, "--with", other}, 1, "a different verdict for this request"},
		{"as JSON", []string{"--check", source, "--with", other, "--report", "json"}, 1, `"by": "verdict"`},
		{"native", []string{"--check", source, "--to", "native"}, 0, "no difference"},
		{"as Markdown", []string{"--check", source, "--with", other, "--report", "markdown"}, 1, "**1 of 1 policies differ**"},
		{"to CEL", []string{"--check", old, "--to", "cel"}, 2, "not converted: spec.rules[0].match.any[0].clusterRoles"},
		{"to CEL with a page", []string{"--check", old, "--to", "cel", "--report", page}, 2, "1 compared, 0 differ, 0 failed, 1 stay"},
		{"a page without a comparison", []string{old, "--to", "cel", "--partial", "--report", page}, 0, "kind: ValidatingPolicy"},
		{"a page of another conversion", []string{old, "--report", page}, 2, "--report FILE is for"},
		{"a result that does not compile", []string{"--check", source, "--with", broken}, 2, "p: not compared: the result"},
		{"no results", []string{"--check", source}, 2, "--check needs the results"},
		{"results twice", []string{"--check", source, "--with", same, "--to", "native"}, 2, "--with has no effect"},
		{"a cluster without --check", []string{source, "--from-cluster"}, 2, "--from-cluster has no effect without --check"},
		{"a context without a cluster", []string{"--check", source, "--with", same, "--context", "c"}, 2, "are for --from-cluster"},
		{"a suite", []string{"--check", source, "--with", other, "--suite", suites}, 1, "name: of-the-suite"},
		{"no suite", []string{"--check", source, "--with", other, "--suite", source}, 2, "--suite"},
		{"a folder with other files", []string{"--check", mixed, "--to", "cel"}, 0, "1 compared, 0 differ"},
		{"without --check", []string{source, "--with", same}, 2, "--with has no effect without --check"},
		{"a flag of other formats", []string{"--check", source, "--with", same, "--root", "/"}, 2, "--root has no effect with --check"},
		{"no objects", []string{"--check", source, "--with", same, "--objects", "-1"}, 2, "want 1 to"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			args := append([]string{"convert"}, row.args...)
			if strings.HasPrefix(row.args[0], "--check") && row.reason != "no objects" {
				args = append(args, "--objects", "500")
			}
			code, out, errs := quaymaster(t, args...)
			if code != row.status || !strings.Contains(out+errs, row.has) {
				t.Errorf("status %d, want %d, %q: %s%s", code, row.status, row.has, out, errs)
			}
		})
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "1 of 2 policies are converted, 1 stay") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestConvertCheckCluster: the objects of a cluster are compared, page by page, and nothing is changed. Kinds that the
// policies do not match are not listed.
func TestConvertCheckCluster(t *testing.T) {
	var mutex sync.Mutex
	asked := map[string]int{}
	item := func(name, labels string) string {
		return `{"metadata":{"name":"` + name + `","namespace":"shop","uid":"1","resourceVersion":"1","labels":{` + labels + `}},"data":{"open":"` + name + `"}}`
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		asked[r.Method+" "+r.URL.Path]++
		mutex.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method != http.MethodGet:
			http.Error(w, "it is read alone", http.StatusForbidden)
		case r.URL.Path == "/api":
			_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case r.URL.Path == "/apis":
			_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		case r.URL.Path == "/api/v1":
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["list"]},{"name":"secrets","kind":"Secret","namespaced":true,"verbs":["list"]}]}`)
		case r.URL.Path == "/api/v1/namespaces/shop":
			_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"shop","labels":{"stage":"live"}}}`)
		case r.URL.Path == "/api/v1/configmaps" && r.URL.Query().Get("continue") == "":
			_, _ = io.WriteString(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"continue":"next"},"items":[`+item("a", "")+`]}`)
		case r.URL.Path == "/api/v1/configmaps":
			_, _ = io.WriteString(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[`+item("special", `"only":"here"`)+`]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := file("kubeconfig", "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '"+server.URL+"'}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n")
	source := file("source.yaml", checkedSource)
	// It differs for one object of the cluster, which one of a few generated ones is not.
	other := file("other.yaml", strings.Replace(checkedSource, "'open' in object.data", "'open' in object.data && object.data.open != 'spec' + 'ial'", 1))
	for _, row := range []struct {
		reason string
		args   []string
		status int
		has    string
	}{
		{"equal", []string{"--with", source}, 0, "no difference for 7 objects"},
		{"different", []string{"--with", other}, 1, "name: special"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			args := append([]string{"convert", "--check", source, "--objects", "5", "--from-cluster", "--kubeconfig", config}, row.args...)
			code, out, errs := quaymaster(t, args...)
			if code != row.status || !strings.Contains(out, row.has) {
				t.Errorf("status %d, want %d, %q: %s%s", code, row.status, row.has, out, errs)
			}
		})
	}
	if asked["GET /api/v1/configmaps"] != 4 || asked["GET /api/v1/secrets"] != 0 {
		t.Errorf("asked for %v", asked)
	}
	for request := range asked {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("asked for %s", request)
		}
	}
}
