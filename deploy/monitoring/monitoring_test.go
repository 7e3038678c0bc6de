// Package monitoring_test checks deploy/monitoring against the gateway's metrics and the runbooks.
// It has the model of a dashboard as Grafana 12 reads it (schema version 41).
package monitoring_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// runbooks is where an alert's runbook is found.
const runbooks = "https://github.com/quaymaster/quaymaster/blob/main/docs/runbooks.md#"

type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	if err := yaml.UnmarshalStrict(read(t, "alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) == 0 {
		t.Fatalf("%d groups", len(file.Groups))
	}
	return file.Groups[0].Rules
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestAlerts: each alert has a severity, a summary, the first step and a link to its runbook.
func TestAlerts(t *testing.T) {
	sections := sectionsOf(t)
	seen := map[string]bool{}
	for _, a := range alerts(t) {
		if !strings.HasPrefix(a.Alert, "Quaymaster") || seen[a.Alert] {
			t.Errorf("%q is twice, or not named after the product", a.Alert)
		}
		seen[a.Alert] = true
		if s := a.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s: severity %q", a.Alert, s)
		}
		if _, err := time.ParseDuration(a.For); err != nil {
			t.Errorf("%s: for %q", a.Alert, a.For)
		}
		if a.Annotations["summary"] == "" || !strings.Contains(strings.ToLower(a.Annotations["description"]), "first") && !strings.Contains(a.Annotations["description"], "look first") {
			t.Errorf("%s: the description has no first step: %q", a.Alert, a.Annotations["description"])
		}
		if want := runbooks + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want || !sections[a.Alert] {
			t.Errorf("%s: the runbook is %s, want %s and a section of that name", a.Alert, a.Annotations["runbook_url"], want)
		}
		if len(a.Annotations) != 3 {
			t.Errorf("%s: annotations %v", a.Alert, a.Annotations)
		}
	}
	for section := range sections {
		if !seen[section] {
			t.Errorf("docs/runbooks.md has a section on %s, which is no alert", section)
		}
	}
}

// sectionsOf returns the alerts of the runbooks; each has its meaning, diagnosis, action and end.
func sectionsOf(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, section := range strings.Split(string(read(t, "../../docs/runbooks.md")), "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		if !strings.HasPrefix(name, "Quaymaster") {
			continue
		}
		found[name] = true
		for _, part := range []string{"**Means.**", "**Noticed by.**", "**Look.**", "**Do.**", "**Ends.**", "```console"} {
			if !strings.Contains(text, part) {
				t.Errorf("docs/runbooks.md, %s: no %s", name, part)
			}
		}
	}
	return found
}

// TestAlertsAreTested: each alert has an input on which promtool expects it, and one on
// which it does not.
func TestAlertsAreTested(t *testing.T) {
	var file struct {
		Tests []struct {
			Name   string
			Promql []struct {
				Expr    string
				Samples []any `json:"exp_samples"`
			} `json:"promql_expr_test"`
		}
	}
	if err := yaml.Unmarshal(read(t, "alerts_test.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, each := range test.Promql {
			for _, a := range alerts(t) {
				if each.Expr != fmt.Sprintf("count(ALERTS{alertname=%q, alertstate=\"firing\"})", a.Alert) {
					continue
				}
				if len(each.Samples) > 0 {
					fires[a.Alert] = true
				} else {
					silent[a.Alert] = true
				}
			}
		}
	}
	for _, a := range alerts(t) {
		if !fires[a.Alert] || !silent[a.Alert] {
			t.Errorf("%s: fires in a test: %t, does not in a twin: %t", a.Alert, fires[a.Alert], silent[a.Alert])
		}
	}
}

// foreign are the metrics that others export: the API server, Go's runtime, the process.
var foreign = regexp.MustCompile(`^(apiserver_admission_webhook_fail_open_count|go_[a-z_]+|process_[a-z_]+)$`)

// named finds metrics in an expression, and the labels that it asks of each.
var named = regexp.MustCompile(`\b((?:quaymaster|apiserver|go|process)_[a-z_]+)(\{[^}]*\})?`)

// TestQueriesNameMetrics: what alerts and panels ask for is in docs/metrics.md, which is
// compared with the code, with those labels.
func TestQueriesNameMetrics(t *testing.T) {
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(quaymaster_[a-z_]+)` \\| [a-z]+ \\| ([^|]*) \\|").FindAllStringSubmatch(string(read(t, "../../docs/metrics.md")), -1) {
		documented[row[1]] = row[2]
	}
	check := func(who, query string) {
		metrics := named.FindAllStringSubmatch(query, -1)
		if len(metrics) == 0 {
			t.Errorf("%s names no metric: %s", who, query)
		}
		for _, m := range metrics {
			name := m[1]
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				short := strings.TrimSuffix(name, suffix)
				if _, known := documented[short]; known {
					name = short
				}
			}
			labels, known := documented[name]
			if !known && !foreign.MatchString(name) {
				t.Errorf("%s: there is no metric %s", who, m[1])
			}
			for _, label := range regexp.MustCompile(`([a-z_]+)(?:=|!)`).FindAllStringSubmatch(m[2], -1) {
				if label[1] != "namespace" && known && !strings.Contains(labels, "`"+label[1]+"`") {
					t.Errorf("%s: %s has no label %s", who, name, label[1])
				}
			}
		}
	}
	for _, a := range alerts(t) {
		check(a.Alert, a.Expr)
	}
	for _, p := range dashboard(t).Panels {
		for _, target := range p.Targets {
			check("panel "+p.Title, target.Expr)
		}
	}
	broken := `sum(quaymaster_nothing_total{host="x"})`
	if m := named.FindStringSubmatch(broken); m == nil || documented[m[1]] != "" {
		t.Error("a metric that is not there would not be found")
	}
}

type board struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type string }
	}
	Panels []panel
}

type panel struct {
	ID          int
	Type, Title string
	Datasource  struct{ Type, UID string }
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct {
		RefID, Expr, LegendFormat string
		Datasource                struct{ Type, UID string }
	}
}

func dashboard(t *testing.T) board {
	t.Helper()
	var b board
	if err := json.Unmarshal(read(t, "dashboard.json"), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// gridWidth is how many columns Grafana has.
const gridWidth = 24

// TestDashboard: Grafana can draw it, from whichever Prometheus the reader chooses.
func TestDashboard(t *testing.T) {
	b := dashboard(t)
	if b.UID == "" || b.Title == "" || b.SchemaVersion < 36 {
		t.Errorf("uid %q, title %q, schema %d", b.UID, b.Title, b.SchemaVersion)
	}
	var variables []string
	for _, v := range b.Templating.List {
		variables = append(variables, v.Type+" "+v.Name)
	}
	if !slices.Equal(variables, []string{"datasource datasource", "query namespace"}) {
		t.Errorf("variables %q", variables)
	}
	ids, taken, rows := map[int]bool{}, map[[2]int]string{}, 0
	for _, p := range b.Panels {
		if p.ID == 0 || ids[p.ID] || p.Title == "" {
			t.Errorf("panel %q has the number %d, which is none or another's", p.Title, p.ID)
		}
		ids[p.ID] = true
		if g := p.GridPos; g.W < 1 || g.H < 1 || g.X < 0 || g.X+g.W > gridWidth {
			t.Errorf("panel %q is at %+v", p.Title, g)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q overlap", other, p.Title)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			rows++
			continue
		}
		p.check(t)
	}
	if rows < 8 || len(b.Panels) < 4*rows {
		t.Errorf("%d rows, %d panels", rows, len(b.Panels))
	}
}

func (p panel) check(t *testing.T) {
	t.Helper()
	const chosen = "${datasource}"
	if p.Datasource.UID != chosen || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
		t.Errorf("panel %q: data source %q, unit %q, %d targets", p.Title, p.Datasource.UID, p.FieldConfig.Defaults.Unit, len(p.Targets))
	}
	refs := map[string]bool{}
	for _, target := range p.Targets {
		if target.RefID == "" || refs[target.RefID] || target.Datasource.UID != chosen || target.Datasource.Type != "prometheus" {
			t.Errorf("panel %q: target %q of %q", p.Title, target.RefID, target.Datasource.UID)
		}
		refs[target.RefID] = true
		if !strings.Contains(target.Expr, `namespace=~"$namespace"`) {
			t.Errorf("panel %q asks about every namespace: %s", p.Title, target.Expr)
		}
	}
}
