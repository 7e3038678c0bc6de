package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/webhook/ui"
)

// hostile would like to be a script, in each of the ways that pages have been made to
// run one.
const hostile = `"><img src=x onerror="window.hit=1"><script>window.hit=1</script><svg onload=window.hit=1>javascript:window.hit=1//{{7*7}}`

// some is an inventory of images with a name each; extra goes into every text.
func some(t testing.TB, n int, extra string) *inventory.Inventory {
	t.Helper()
	known, err := inventory.New(inventory.Options{Replica: "a" + extra})
	check(t, err)
	for k := range n {
		name := fmt.Sprintf("registry.example/team/service-%03d%s:1", k, extra)
		known.Add(report.Occasion{Time: time.Now(), Process: report.ProcessAdmission, Operation: "CREATE", Allowed: true, Endpoint: "validate" + extra, User: "u" + extra, UID: extra}, report.Record{Result: "allow", Images: []report.Image{{
			Container: "c" + extra, Written: name, Reference: name, Result: "allow", Matched: true, Mirror: &report.Mirror{Name: "m" + extra, Why: extra},
			Decisions: []report.Decision{{
				Policy: report.Policy{Kind: "ClusterPolicy", Name: "p" + extra}, Rule: "r" + extra, Result: "pass",
				Proofs: []report.Proof{{Role: "attestation", PredicateType: "t" + extra, Signer: verify.Signer{Subject: "s" + extra, Issuer: "i" + extra, Extensions: map[string]string{"e" + extra: extra}}, Found: report.Found{Via: extra}}},
			}},
		}}}, report.Resource{APIVersion: "v1", Kind: "Pod" + extra, Namespace: "n" + extra, Name: fmt.Sprintf("pod-%d%s", k, extra)})
	}
	return known
}

// TestHostileNames: any name is shown and does nothing.
func TestHostileNames(t *testing.T) {
	b := newTab(t)
	server := shown(t, some(t, 2, hostile), ui.WithExplain(func(namespace, image string, _ bool) string { return namespace + image }), ui.WithPolicies(loaded{
		documents:   []ui.PolicyDocument{{ID: "K/" + hostile, Kind: hostile, Name: hostile, Source: hostile, Mode: hostile, AuditedBy: hostile, Ready: hostile, Reason: hostile, Message: hostile, Title: hostile}},
		definitions: map[string]string{"K/" + hostile: hostile},
	}))
	b.see(server.URL+"/images", "table.rows tbody tr")
	image := eval[string](b, `document.querySelector("td a.image").href`)
	b.see(server.URL+"/decisions", "a.decision")
	decision := eval[string](b, `document.querySelector("a.decision").href`)
	b.see(server.URL+"/policies", "table.rows tbody tr")
	policies := eval[[]string](b, `[...document.querySelectorAll("table.rows tbody a.name")].map((a) => a.href)`)
	if len(policies) != 2 {
		t.Fatalf("the policies are %q", policies)
	}
	for _, page := range []struct{ address, ready string }{
		{decision, "svg.chain"}, {policies[0], "dl.pairs"}, {policies[1], "dl.pairs"},
		{server.URL + "/", "figure.chart svg"}, {image, "svg.chain"}, {server.URL + "/decisions", "table.rows tbody tr"}, {server.URL + "/policies", "table.rows tbody tr"},
		{server.URL + "/images?q=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E", ".state"}, {server.URL + "/images/%22%3E%3Cscript%3E", ".state"},
	} {
		b.see(page.address, page.ready)
		if eval[bool](b, `window.hit === 1 || !!document.querySelector("main img, main script, [onerror], [onload], a[href^='javascript']")`) {
			t.Errorf("%s: a name became a part of the page", page.address)
		}
	}
	b.see(server.URL+"/images", "table.rows tbody tr")
	if !strings.Contains(eval[string](b, `document.querySelector("td a.image").title`), hostile[:20]) {
		t.Error("the name is not shown as it is, so that nothing was tested")
	}
	b.clean(strings.TrimPrefix(server.URL, "http://"))
}

// TestFilterLivesInTheAddress: a search is in the address, survives a reload, and goes
// back with the browser's own button.
func TestFilterLivesInTheAddress(t *testing.T) {
	b := newTab(t)
	server := shown(t, some(t, 120, ""))
	b.see(server.URL+"/images", "table.rows tbody tr")
	b.await(`document.querySelectorAll("table.rows tbody tr").length === 50`)
	b.do(chromedp.SendKeys(`input[name=q]`, "service-042", chromedp.ByQuery))
	b.await(`location.search === "?q=service-042" && document.querySelectorAll("table.rows tbody tr").length === 1`)
	if !eval[bool](b, `document.activeElement.name === "q"`) {
		t.Error("the field lost the focus during input")
	}
	b.do(chromedp.Reload(), chromedp.WaitVisible("table.rows tbody tr", chromedp.ByQuery))
	b.await(`document.querySelector("input[name=q]").value === "service-042" && document.querySelectorAll("table.rows tbody tr").length === 1`)
	b.do(chromedp.Click(`td a.image`, chromedp.ByQuery), chromedp.WaitVisible("svg.chain", chromedp.ByQuery), chromedp.NavigateBack())
	b.await(`location.search === "?q=service-042" && document.querySelectorAll("table.rows tbody tr").length === 1`)
	b.see(server.URL+"/images?offset=100", "table.rows tbody tr")
	b.await(`document.querySelectorAll("table.rows tbody tr").length === 20`)
	b.clean(strings.TrimPrefix(server.URL, "http://"))
}

// TestKeyboard: every page is reached by keys, the skip link comes first, and the title
// has the focus when a page came.
func TestKeyboard(t *testing.T) {
	b := newTab(t)
	server := shown(t, some(t, 3, ""))
	b.see(server.URL+"/", "figure.chart svg")
	focused := func() string { return eval[string](b, `document.activeElement.textContent.trim()`) }
	b.do(chromedp.KeyEvent(kb.Tab))
	if focused() != "Skip to content" {
		t.Errorf("first: %q", focused())
	}
	for _, want := range []string{"Quaymaster", "Overview", "Images"} {
		b.do(chromedp.KeyEvent(kb.Tab))
		if focused() != want {
			t.Errorf("%q, want %q", focused(), want)
		}
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await(`location.pathname === "/images" && document.activeElement.tagName === "H1" && document.querySelector("#live").textContent !== ""`)
	b.await(`document.querySelector("nav [aria-current=page]").textContent === "Images"`)
	b.await(`document.querySelectorAll("h1").length === 1 && !!document.querySelector("main, header, footer, nav[aria-label]")`)
	b.clean(strings.TrimPrefix(server.URL, "http://"))
}

// TestNoAnswer: when the gateway is gone the page shows an error, and offers a retry.
func TestNoAnswer(t *testing.T) {
	b := newTab(t)
	server := shown(t, some(t, 3, ""))
	b.see(server.URL+"/", "figure.chart svg")
	server.CloseClientConnections()
	server.Close()
	b.do(chromedp.Click(`nav a[data-page=images]`, chromedp.ByQuery))
	b.await(`document.querySelector("[role=alert]")?.textContent.includes("No response") && !!document.querySelector("[role=alert] button")`)
	b.shoot("error")
}

// TestEmpty: without decisions the page describes its future content.
func TestEmpty(t *testing.T) {
	b := newTab(t)
	server := shown(t, some(t, 0, ""))
	for _, path := range []string{"/", "/images", "/decisions", "/policies"} {
		b.see(server.URL+path, ".state h2")
	}
	b.shoot("empty")
	b.clean(strings.TrimPrefix(server.URL, "http://"))
}

// keeper knows one token.
type keeper struct{}

func (keeper) Authenticate(_ context.Context, given string) (policy.User, error) {
	if given == token {
		return policy.User{Name: "reader"}, nil
	}
	return policy.User{}, nil
}

// TestSignIn: without a token nothing is shown, a wrong one is refused, and the right one
// opens the page that was asked for.
func TestSignIn(t *testing.T) {
	b := newTab(t)
	pages, err := ui.New(ui.Config{Inventory: some(t, 3, ""), Authenticator: keeper{}})
	check(t, err)
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	b.see(server.URL+"/images", "#token")
	b.do(chromedp.SendKeys("#token", "wrong\n", chromedp.ByQuery))
	b.await(`!!document.querySelector(".wrong")`)
	if strings.Contains(eval[string](b, "document.body.textContent"), "service-") {
		t.Error("an image is shown without a token")
	}
	b.do(chromedp.SendKeys("#token", token+"\n", chromedp.ByQuery), chromedp.WaitVisible("table.rows tbody tr", chromedp.ByQuery))
	if strings.Contains(eval[string](b, "location.href"), token) {
		t.Error("the token is in the address")
	}
}

// dead is a leader that does not answer, by a name that would like to be a script.
type dead struct{}

func (dead) View(context.Context, string) (int, []byte, error) {
	return 0, nil, errors.New("the replica that leads, " + hostile + ", does not answer")
}

// TestAlone: a replica without an answer of its leader shows on each page that the data
// is its own.
func TestAlone(t *testing.T) {
	b := newTab(t)
	pages, err := ui.New(ui.Config{Inventory: some(t, 3, "")}, ui.WithoutTokens(), ui.WithLeader(dead{}))
	check(t, err)
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	for _, page := range []struct{ path, ready string }{{"/", "figure.chart svg"}, {"/images", "table.rows tbody tr"}, {"/decisions", "table.rows tbody tr"}, {"/policies", "table.rows tbody tr"}} {
		b.see(server.URL+page.path, page.ready)
		b.await(`document.querySelector("#about")?.textContent.includes("Only this replica's data: the replica that leads, ")`)
		if eval[bool](b, `window.hit === 1 || !!document.querySelector("#about img, #about script, #about svg")`) {
			t.Errorf("%s: the leader's name became a part of the page", page.path)
		}
	}
	b.shoot("alone")
	b.see(shown(t, some(t, 3, "")).URL+"/", "figure.chart svg")
	if strings.Contains(eval[string](b, `document.querySelector("#about").textContent`), "knows itself") {
		t.Error("a replica without a leader shows that the leader does not answer")
	}
}
