package main

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// reportServer is an API server that has reports of one API, in two pages, or refuses them.
func reportServer(t *testing.T, items []string, status int) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/apis/wgpolicyk8s.io/v1alpha2/policyreports" && status != http.StatusOK:
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":%d,"message":"no"}`, status)
		case r.URL.Path == "/apis/wgpolicyk8s.io/v1alpha2/policyreports" && items != nil:
			page, next := items[0], "next"
			if r.URL.Query().Get("continue") == next {
				page, next = items[1], ""
			}
			if r.URL.Query().Get("labelSelector") != "app.kubernetes.io/managed-by=quaymaster" {
				page = `{}`
			}
			_, _ = fmt.Fprintf(w, `{"kind":"PolicyReportList","apiVersion":"wgpolicyk8s.io/v1alpha2","metadata":{"continue":%q},"items":[%s]}`, next, page)
		case r.URL.Path == "/apis/wgpolicyk8s.io/v1alpha2/clusterpolicyreports" && items != nil:
			_, _ = w.Write([]byte(`{"kind":"ClusterPolicyReportList","apiVersion":"wgpolicyk8s.io/v1alpha2","metadata":{},"items":[]}`))
		default:
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte("404 page not found\n"))
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {}}]\n", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

const signedReport = `{"apiVersion":"wgpolicyk8s.io/v1alpha2","kind":"PolicyReport",
 "metadata":{"name":"quaymaster-%[1]s","namespace":"shop","labels":{"app.kubernetes.io/managed-by":"quaymaster"}},
 "scope":{"apiVersion":"apps/v1","kind":"Deployment","namespace":"shop","name":"%[1]s","uid":"%[1]s"},
 "results":[{"source":"quaymaster","policy":"signed","rule":"r","result":"pass","properties":{
  "container":"c","image":"registry.example/%[1]s:1","digest":"sha256:%[3]s","signer":"%[2]s","evidence":"registry.example/%[1]s@sha256:%[3]s"}}]}`

// TestScanSignerInReports: what stands on a signer, as the reports in a cluster say.
func TestScanSignerInReports(t *testing.T) {
	key := strings.Repeat("ab", 32)
	items := []string{
		fmt.Sprintf(signedReport, "web", "key "+key[:16], strings.Repeat("1", 64)),
		fmt.Sprintf(signedReport, "api", "release@example.com (https://issuer.example)", strings.Repeat("2", 64)),
	}
	config := reportServer(t, items, http.StatusOK)
	for _, row := range []struct {
		reason, kubeconfig, signer string
		code                       int
		want                       []string
	}{
		{"a key, by more than reports have of it", config, key, command.ExitAllowed, []string{"1 image, 1 workload", "shop Deployment/web", "from the reports in the cluster"}},
		{"another key", config, hex.EncodeToString(make([]byte, 32)), command.ExitAllowed, []string{"0 images"}},
		{"an identity, of the second page", config, "release@example.com", command.ExitAllowed, []string{"1 image, 1 workload", "shop Deployment/api"}},
		{"a digest", config, "sha256:" + strings.Repeat("1", 64), command.ExitAllowed, []string{"shop Deployment/web"}},
		{"a policy", config, "policy:ClusterPolicy/signed", command.ExitAllowed, []string{"2 images, 2 workloads"}},
		{"a cluster without reports", reportServer(t, nil, http.StatusOK), key, command.ExitError, []string{"serves neither PolicyReports nor OpenReports"}},
		{"a user without permission to list them", reportServer(t, items, http.StatusForbidden), key, command.ExitError, []string{"--reports: list is wanted on the reports of every namespace"}},
		{"no report can be read", reportServer(t, []string{`{"kind":"PolicyReport"}`, `{}`}, http.StatusOK), key, command.ExitError, []string{"not read: 2 reports", "0 images"}},
		{"one of them cannot be read, and the others are", reportServer(t, []string{items[0] + `,{"kind":"PolicyReport","metadata":{}}`, items[1]}, http.StatusOK), key, command.ExitError, []string{"not read: 1 report of the gateway", "shop Deployment/web"}},
		{"no cluster", filepath.Join(t.TempDir(), "none"), key, command.ExitUsage, []string{"none"}},
	} {
		code, out, errs := quaymaster(t, "scan", "--signer", row.signer, "--reports", "--kubeconfig", row.kubeconfig)
		for _, want := range row.want {
			if code != row.code || !strings.Contains(out+errs, want) {
				t.Errorf("%s: status %d, want %d and %q\n%s%s", row.reason, code, row.code, want, out, errs)
			}
		}
	}
}

// TestAReportCoversItsOwnNamespace: a user with write access to the reports of one namespace can
// neither hide the workloads of another nor add to them.
func TestAReportCoversItsOwnNamespace(t *testing.T) {
	key := strings.Repeat("ab", 32)
	honest := fmt.Sprintf(signedReport, "web", "key "+key[:16], strings.Repeat("1", 64))
	hides := strings.Replace(strings.Replace(honest, `"namespace":"shop","labels"`, `"namespace":"evil","labels"`, 1), "key "+key[:16], "key "+strings.Repeat("0", 16), 1)
	makesUp := strings.ReplaceAll(hides, "web", "none")
	for reason, test := range map[string]struct {
		first, signer, want string
	}{
		"hides":               {hides, key, "1 image, 1 workload"},
		"makes up":            {makesUp, strings.Repeat("0", 16), "0 images"},
		"in its own place":    {strings.ReplaceAll(makesUp, `"evil"`, `"shop"`), strings.Repeat("0", 16), "1 image, 1 workload"},
		"of all the cluster":  {strings.Replace(makesUp, `"namespace":"evil",`, "", 1), strings.Repeat("0", 16), "0 images"},
		"the honest one only": {honest, key, "1 image, 1 workload"},
	} {
		config := reportServer(t, []string{test.first, honest}, http.StatusOK)
		code, out, errs := quaymaster(t, "scan", "--signer", test.signer, "--reports", "--kubeconfig", config)
		if code != command.ExitAllowed || !strings.Contains(out, test.want) {
			t.Errorf("%s: status %d, want %q\n%s%s", reason, code, test.want, out, errs)
		}
	}
}
