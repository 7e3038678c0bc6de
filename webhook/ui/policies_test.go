package ui_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/webhook/ui"
)

// loaded has a policy with results, one without, and one that is broken.
type loaded struct{}

func (loaded) Documents() []ui.PolicyDocument {
	return []ui.PolicyDocument{
		{ID: "ClusterPolicy/p", Kind: "ClusterPolicy", Name: "p", State: ui.PolicyActive, Mode: ui.ModeEnforce, Ready: "True"},
		{ID: "ClusterPolicy/idle", Kind: "ClusterPolicy", Name: "idle", State: ui.PolicyActive, Mode: ui.ModeAudit, Ready: "True"},
		{ID: "ClusterPolicy/broken", Kind: "ClusterPolicy", Name: "broken", State: ui.PolicyBroken, Ready: "False", Message: "no rule"},
	}
}

func (loaded) Definition(id string) (string, bool) {
	return strings.Repeat("# "+id+"\n", 10_000), id != "ClusterPolicy/broken"
}

func TestPolicies(t *testing.T) {
	known := filled(t)
	for _, row := range []struct {
		reason    string
		with      []ui.Option
		documents bool
		want      string
	}{
		{"with documents", []ui.Option{ui.WithPolicies(loaded{})}, true, "ClusterPolicy/broken broken False 0, ClusterPolicy/idle active True 0, ClusterPolicy/p active True 1"},
		{"results alone", nil, false, "ClusterPolicy/p none 1"},
	} {
		h, err := ui.New(ui.Config{Inventory: known}, append(row.with, ui.WithoutTokens())...)
		if err != nil {
			t.Fatal(err)
		}
		var list ui.PolicyList
		if err := json.Unmarshal([]byte(text(t, get(h, "/api/v1/policies"))), &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range list.Items {
			state := "none"
			if p.Document != nil {
				state = p.Document.State + " " + p.Document.Ready
			}
			got = append(got, p.ID+" "+state+" "+string('0'+rune(p.Images.Pass)))
		}
		if all := strings.Join(got, ", "); all != row.want || list.Documents != row.documents {
			t.Errorf("%s: %s, want %s", row.reason, all, row.want)
		}
	}
}

// TestPolicyDefinition: a policy opens with its document, up to a bound.
func TestPolicyDefinition(t *testing.T) {
	h, err := ui.New(ui.Config{Inventory: filled(t)}, ui.WithoutTokens(), ui.WithPolicies(loaded{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		id      string
		status  int
		defined bool
	}{
		{"ClusterPolicy/idle", 200, true},
		{"ClusterPolicy/broken", 200, false},
		{"ClusterPolicy/other", 404, false},
	} {
		got := get(h, "/api/v1/policy?id="+row.id)
		var details ui.PolicyDetails
		body := text(t, got)
		if err := json.Unmarshal([]byte(body), &details); err != nil || got.Code != row.status || (details.Definition != "") != row.defined || len(details.Definition) > 65<<10 {
			t.Errorf("%s: %d, %v: %.300s", row.id, got.Code, err, body)
		}
		if row.defined && (details.Policy.Kind != "ClusterPolicy" || details.Kind != "Policy" || !strings.HasSuffix(details.Definition, "# ...\n")) {
			t.Errorf("%s: %.300s", row.id, body)
		}
	}
	if _, err := ui.New(ui.Config{Inventory: filled(t)}, ui.WithoutTokens(), ui.WithPolicies(nil)); err == nil {
		t.Error("no policies are accepted")
	}
}

// TestDecisionOpens: a decision has its evidence, and a command for each image.
func TestDecisionOpens(t *testing.T) {
	known := filled(t)
	h, err := ui.New(ui.Config{Inventory: known}, ui.WithoutTokens(), ui.WithExplain(func(namespace, image string, _ bool) string {
		return "explain -n " + namespace + " " + image
	}))
	if err != nil {
		t.Fatal(err)
	}
	page, err := known.Decisions(inventory.DecisionQuery{})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	path := "/api/v1/decisions/" + page.Items[0].ID
	for _, want := range []string{`"kind":"Decision"`, `"commands":["explain -n shop ` + reference + `"]`, `"record":{"images":[{`} {
		if body := text(t, get(h, path)); !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	plain, err := ui.New(ui.Config{Inventory: known}, ui.WithoutTokens())
	if err != nil {
		t.Fatal(err)
	}
	if body := text(t, get(plain, path)); strings.Contains(body, "commands") {
		t.Errorf("a command without its source: %s", body)
	}
	if _, err := ui.New(ui.Config{Inventory: known}, ui.WithoutTokens(), ui.WithExplain(nil)); err == nil {
		t.Error("no command is accepted")
	}
}
