package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
)

// monitor is a Prometheus that scrapes a gateway and the API server, with the alerts
// that are delivered.
type monitor struct {
	*process.Process
	address string
	client  *http.Client
	alerts  []alertRule
}

// alertRule is an alert of deploy/monitoring.
type alertRule struct{ Alert, Expr string }

// delivered returns the path of a file of deploy/monitoring.
func delivered(t *testing.T, name string) string {
	t.Helper()
	root, err := peers.Checkout()
	must(t, err)
	path, err := filepath.Abs(filepath.Join(root, "deploy", "monitoring", name))
	must(t, err)
	return path
}

// alertRules reads the alerts.
func alertRules(t *testing.T) []alertRule {
	t.Helper()
	text, err := os.ReadFile(delivered(t, "alerts.yaml"))
	must(t, err)
	var file struct{ Groups []struct{ Rules []alertRule } }
	must(t, yaml.Unmarshal(text, &file))
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) == 0 {
		t.Fatal("there are no alerts")
	}
	return file.Groups[0].Rules
}

// watch starts a Prometheus, and returns once it has scraped the gateway.
func (s *scene) watch(t *testing.T, g *gateway.Gateway) *monitor {
	t.Helper()
	program := peers.Get(t, peers.Prometheus)
	address, err := process.FreeAddress(t.Context())
	must(t, err)
	config := filepath.Join(program.Folder, "prometheus.yaml")
	must(t, os.WriteFile(config, scrapes(t, g, s.plane.Address(), s.plane.Admin()), 0o600))
	running, err := process.Start(process.Options{Path: program.Path, Folder: program.Folder, Env: program.Env, Args: []string{
		"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(program.Folder, "data"), "--web.listen-address=" + address,
	}})
	must(t, err)
	t.Cleanup(running.Kill)
	m := &monitor{Process: running, address: address, client: &http.Client{Timeout: awaitTimeout}, alerts: alertRules(t)}
	ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
	defer cancel()
	must(t, running.Await(ctx, func(ctx context.Context) error {
		return process.Answers(ctx, m.client, "http://"+address+"/-/ready")
	}))
	m.await(t, `count(up == 1) == 2`, true)
	return m
}

// scrapes is Prometheus' configuration. Twice a second is enough to see each change, and no
// load; of the API server's many metrics one is kept.
func scrapes(t *testing.T, g *gateway.Gateway, server string, admin *rest.Config) []byte {
	t.Helper()
	folder := t.TempDir()
	tls := map[string]any{}
	for name, data := range map[string][]byte{"ca_file": admin.CAData, "cert_file": admin.CertData, "key_file": admin.KeyData} {
		if len(data) > 0 {
			file := filepath.Join(folder, name)
			must(t, os.WriteFile(file, data, 0o600))
			tls[name] = file
		}
	}
	of := func(target, namespace string) []any {
		return []any{map[string]any{"targets": []string{target}, "labels": map[string]string{"namespace": namespace}}}
	}
	cluster := map[string]any{
		"job_name": "kubernetes", "scheme": "https", "scrape_interval": "2s", "scrape_timeout": "2s", "tls_config": tls,
		"static_configs": of(server, "default"),
		"metric_relabel_configs": []any{map[string]any{
			"source_labels": []string{"__name__"}, "regex": "apiserver_admission_webhook_.*", "action": "keep",
		}},
	}
	if admin.BearerToken != "" {
		cluster["authorization"] = map[string]any{"credentials": admin.BearerToken}
	}
	text, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "1s"},
		"rule_files": []string{delivered(t, "alerts.yaml")},
		"scrape_configs": []any{
			map[string]any{"job_name": "quaymaster", "static_configs": of(g.Configuration.Listen.Plain, "quaymaster")}, cluster,
		},
	})
	must(t, err)
	return text
}

// ask calls Prometheus' HTTP API, version 1.
func (m *monitor) ask(ctx context.Context, path string, parameters url.Values, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.address+"/api/v1/"+path+"?"+parameters.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := m.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("%s: %w: %s", path, err, body)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s %v: %s", path, parameters, answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}

// holds evaluates an expression now, and reports whether it has a result.
func (m *monitor) holds(ctx context.Context, expression string) (bool, error) {
	var found struct{ Result []json.RawMessage }
	err := m.ask(ctx, "query", url.Values{"query": {expression}}, &found)
	return len(found.Result) > 0, err
}

// await waits until an expression has a result, or none.
func (m *monitor) await(t *testing.T, expression string, want bool) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		got, err := m.holds(ctx, expression)
		if err == nil && got != want {
			err = fmt.Errorf("%s has a result: %t", expression, got)
		}
		return err
	})
}

// alert returns the expression of an alert.
func (m *monitor) alert(t *testing.T, name string) string {
	t.Helper()
	for _, a := range m.alerts {
		if a.Alert == name {
			return a.Expr
		}
	}
	t.Fatalf("there is no alert %s", name)
	return ""
}

// raised returns the alerts with expressions that are true now, however long.
func (m *monitor) raised(ctx context.Context) ([]string, error) {
	var names []string
	var errs []error
	for _, a := range m.alerts {
		is, err := m.holds(ctx, a.Expr)
		errs = append(errs, err)
		if is {
			names = append(names, a.Alert)
		}
	}
	return names, errors.Join(errs...)
}

// awaitRaised waits until the expressions of alerts are true, doing something meanwhile.
func (m *monitor) awaitRaised(t *testing.T, meanwhile func(context.Context), names ...string) {
	t.Helper()
	for _, name := range names {
		expression := m.alert(t, name)
		eventually(t, func(ctx context.Context) error {
			meanwhile(ctx)
			is, err := m.holds(ctx, expression)
			if err == nil && !is {
				err = errors.New(name + " is not raised")
			}
			return err
		})
	}
}

// metricNames returns the metrics that were scraped.
func (m *monitor) metricNames(t *testing.T) map[string]bool {
	t.Helper()
	var names []string
	must(t, m.ask(t.Context(), "label/__name__/values", nil, &names))
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	return known
}

// queries returns every query that is delivered: of alerts and of panels, with Grafana's
// variables filled in, and the name of its alert or panel.
func (m *monitor) queries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, a := range m.alerts {
		all[a.Expr] = a.Alert
	}
	text, err := os.ReadFile(delivered(t, "dashboard.json"))
	must(t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	must(t, json.Unmarshal(text, &board))
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			filled := strings.NewReplacer("$__rate_interval", "1m", "$namespace", ".*").Replace(target.Expr)
			if strings.Contains(filled, "$") {
				t.Errorf("panel %s has a variable that is not filled in: %s", panel.Title, filled)
			}
			all[filled] = "panel " + panel.Title
		}
	}
	return all
}

// asked finds metrics in a query.
var asked = regexp.MustCompile(`\b(?:quaymaster|apiserver|go|process)_[a-z_]+`)

// awaitFiring waits until Prometheus itself, with its own timing, reports that an alert
// fires.
func (m *monitor) awaitFiring(t *testing.T, name string) {
	t.Helper()
	began := time.Now()
	eventually(t, func(ctx context.Context) error {
		var found struct {
			Alerts []struct {
				State       string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
		if err := m.ask(ctx, "alerts", nil, &found); err != nil {
			return err
		}
		for _, a := range found.Alerts {
			if a.Labels["alertname"] == name && a.State == "firing" {
				if strings.Contains(a.Annotations["summary"], "no value") || a.Annotations["runbook_url"] == "" {
					t.Errorf("%s has %q", name, a.Annotations)
				}
				return nil
			}
		}
		return fmt.Errorf("%s does not fire after %s: %+v", name, time.Since(began).Round(time.Second), found.Alerts)
	})
}
