package browser

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/input"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/quaymaster/quaymaster/policy/suite/trial"
	"github.com/quaymaster/quaymaster/webhook/playground"
	"github.com/quaymaster/quaymaster/webhook/ui"
)

// bench is a playground, and the number of evaluations that its pages asked for.
type bench struct {
	*httptest.Server
	evaluations atomic.Int64
}

func openBench(t testing.TB) *bench {
	t.Helper()
	offline, err := trial.NewOffline(playground.DefaultTimeout)
	check(t, err)
	pages, err := playground.New(playground.Config{Evaluator: offline})
	check(t, err)
	made := &bench{}
	made.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			made.evaluations.Add(1)
		}
		pages.ServeHTTP(w, r)
	}))
	t.Cleanup(made.Close)
	return made
}

func (s *bench) host() string { return strings.TrimPrefix(s.URL, "http://") }

// choose shows an example.
func (b *tab) choose(id string) {
	b.t.Helper()
	b.await(`document.querySelectorAll("#example option").length > 2`)
	b.do(chromedp.Evaluate(`{ const s = document.getElementById("example"); s.value = "`+id+`"; s.dispatchEvent(new Event("change")); }`, nil))
	b.await(`location.hash.startsWith("#v1.")`)
}

// evaluate presses the button, and waits for results.
func (b *tab) evaluate() {
	b.t.Helper()
	b.do(chromedp.Click("#evaluate", chromedp.ByQuery))
	b.await(`!!document.querySelector("#results .summary") && !document.querySelector("#results[aria-busy]")`)
}

// TestPlayground: an example shows a denial with its path and message, and a mutation as a diff; its link
// opens the same in a new tab, where nothing is evaluated before the user does.
func TestPlayground(t *testing.T) {
	b := newTab(t)
	s := openBench(t)
	b.see(s.URL+"/", "#evaluate")
	b.choose("labels")
	if n := s.evaluations.Load(); n != 0 {
		t.Errorf("%d evaluations before the button was pressed", n)
	}
	b.evaluate()
	results := eval[string](b, `document.getElementById("results").innerText`)
	for _, row := range []struct{ reason, want string }{
		{"the summary", "2 objects: 1 denied, 1 allowed"},
		{"the message", "cart names no team: set the label team."},
		{"the path", "/metadata/labels/"},
		{"the policy", "ClusterPolicy/team-label"},
		{"the mutation", "Mutated Deployment/shop/cart"},
	} {
		if !strings.Contains(results, row.want) {
			t.Errorf("%s: no %q in %q", row.reason, row.want, results)
		}
	}
	added := eval[[]string](b, `[...document.querySelectorAll(".object[data-result=deny] .diff .add")].map((l) => l.textContent.replace("added: ", "").trim())`)
	if strings.Join(added, "\n") != "+   labels:\n+     app.kubernetes.io/managed-by: shop-platform\n+         imagePullPolicy: IfNotPresent" {
		t.Errorf("the diff adds %q", added)
	}
	if removed := eval[int](b, `document.querySelectorAll(".diff .remove").length`); removed != 0 {
		t.Errorf("the diff removes %d lines", removed)
	}
	b.do(browser.GrantPermissions([]browser.PermissionType{browser.PermissionTypeClipboardReadWrite, browser.PermissionTypeClipboardSanitizedWrite}).WithOrigin(s.URL))
	b.do(chromedp.Click("#copy", chromedp.ByQuery))
	b.await(`document.getElementById("copy").textContent === "Copied"`)
	link := awaited[string](b, `navigator.clipboard.readText()`)
	if !strings.HasPrefix(link, s.URL+"/#v1.") {
		t.Fatalf("the link is %q", link)
	}
	other := newTab(t)
	before := s.evaluations.Load()
	other.see(link, "#evaluate")
	other.await(`document.getElementById("policies").value !== ""`)
	other.await(`document.querySelectorAll("#example option").length > 2`)
	if s.evaluations.Load() != before {
		t.Error("opening a link evaluates it")
	}
	state := `JSON.stringify(["policies", "objects", "parameters", "exceptions"].map((id) => document.getElementById(id).value))`
	if got, want := eval[string](other, state), eval[string](b, state); got != want {
		t.Errorf("the link shows %s, want %s", got, want)
	}
	other.evaluate()
	if got := eval[string](other, `document.getElementById("results").innerText`); got != results {
		t.Errorf("the link comes to %q, want %q", got, results)
	}
	b.clean(s.host())
	other.clean(s.host())
}

// awaited evaluates an expression that is a promise.
func awaited[T any](b *tab, expression string) T {
	b.t.Helper()
	var text string
	b.do(chromedp.Evaluate(`Promise.resolve(`+expression+`).then((v) => JSON.stringify(v))`, &text, func(p *cdpruntime.EvaluateParams) *cdpruntime.EvaluateParams { return p.WithAwaitPromise(true) }))
	var value T
	check(b.t, json.Unmarshal([]byte(text), &value))
	return value
}

// TestPlaygroundExamples: each example in both schemes, wide and narrow, fits its window.
func TestPlaygroundExamples(t *testing.T) {
	b := newTab(t)
	s := openBench(t)
	for _, row := range []struct{ id, summary, says string }{
		{"labels", "2 objects: 1 denied, 1 allowed", "managed-by"},
		{"expressions", "2 objects: 1 denied, 1 allowed", "exception shop/mail-is-single"},
		{"generate", "1 object: 1 unchecked", "NetworkPolicy/shop/default-deny"},
		{"lookup", "1 object: 1 allowed", "quota-is-left"},
	} {
		t.Run(row.id, func(t *testing.T) {
			for _, scheme := range []string{"light", "dark"} {
				for _, size := range []struct {
					name          string
					width, height int64
				}{{"wide", 1440, 900}, {"narrow", 390, 844}} {
					b.scheme(scheme)
					b.size(size.width, size.height)
					b.see(s.URL+"/?"+scheme+size.name, "#evaluate")
					b.choose(row.id)
					b.evaluate()
					text := eval[string](b, `document.getElementById("results").innerText`)
					if !strings.Contains(text, row.summary) || !strings.Contains(text, row.says) {
						t.Errorf("no %q with %q in %q", row.summary, row.says, text)
					}
					if over := eval[float64](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
						t.Errorf("%s: it is %v px wider than the window", size.name, over)
					}
					b.shoot("playground-" + row.id + "-" + scheme + "-" + size.name)
				}
			}
		})
	}
	b.clean(s.host())
}

// TestPlaygroundKeyboard: the page works without a mouse, texts are no markup, and a missing value could not
// be verified.
func TestPlaygroundKeyboard(t *testing.T) {
	b := newTab(t)
	s := openBench(t)
	b.see(s.URL+"/", "#evaluate")
	b.choose("lookup")
	fill := func(id, text string) {
		quoted, err := json.Marshal(text)
		check(t, err)
		b.do(chromedp.Evaluate(`{ const e = document.getElementById("`+id+`"); e.focus(); e.value = `+string(quoted)+`; e.dispatchEvent(new Event("input")); }`, nil))
	}
	fill("parameters", "# none")
	b.do(chromedp.KeyEvent("\r", chromedp.KeyModifiers(input.ModifierCtrl)))
	b.await(`document.querySelector("#results .summary")?.textContent === "1 object: 1 could not be verified"`)
	if text := eval[string](b, `document.getElementById("results").innerText`); !strings.Contains(text, "no document has it") {
		t.Errorf("got %q", text)
	}
	fill("objects", "apiVersion: v1\nkind: Pod\nmetadata: {name: \"<img src=x onerror=alert(1)>\", namespace: shop, labels: {team: \"<b>bold</b>\"}}\nspec: {containers: [{name: c, image: a}]}\n")
	if !eval[bool](b, `document.getElementById("results").classList.contains("old")`) {
		t.Error("the results of other documents look like current ones")
	}
	b.do(chromedp.KeyEvent("\r", chromedp.KeyModifiers(input.ModifierCtrl)))
	b.await(`document.querySelector("#results .object h2")?.textContent.includes("<img src=x")`)
	if made := eval[int](b, `document.querySelectorAll("#results img, #results b").length`); made != 0 {
		t.Errorf("%d elements of foreign texts", made)
	}
	fill("policies", "a: [")
	b.do(chromedp.KeyEvent("\r", chromedp.KeyModifiers(input.ModifierCtrl)))
	b.await(`document.querySelector("#results [role=alert] strong")?.textContent === "Policies cannot be read"`)
	fill("policies", strings.Repeat("# much\n", 80_000))
	b.do(chromedp.KeyEvent("\r", chromedp.KeyModifiers(input.ModifierCtrl)))
	b.await(`document.querySelector("#results .summary")?.textContent === "Could not be verified"`)
	b.clean(s.host())
}

// TestPlaygroundLinks: a link that is damaged, of another version, or of endless content is refused with a
// message, and evaluates nothing; its right twin is shown.
func TestPlaygroundLinks(t *testing.T) {
	b := newTab(t)
	s := openBench(t)
	b.see(s.URL+"/", "#evaluate")
	state := func(expression string) string {
		return awaited[string](b, `import("/assets/state.js").then((m) => `+expression+`)`)
	}
	good := state(`m.encode({policies: "p ü", objects: "o", parameters: "", exceptions: "e"})`)
	packed := func(text string) string {
		return awaited[string](b, `new Response(new Blob([`+text+`]).stream().pipeThrough(new CompressionStream("deflate-raw"))).arrayBuffer().then((a) => { let s = ""; for (const c of new Uint8Array(a)) s += String.fromCharCode(c); return "v1." + btoa(s).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", ""); })`)
	}
	for n, row := range []struct{ reason, fragment, says string }{
		{"a right one", good, ""},
		{"of another version", "v2." + good[3:], "another version"},
		{"cut", good[:len(good)-8], "damaged"},
		{"no base64", "v1.%%%", "damaged"},
		{"an endless text", packed(`'{"policies": "' + "a".repeat(20000000) + '"}'`), "more than"},
		{"another document", packed(`'{"policies": 1}'`), "something else"},
		{"another member", packed(`'{"policy": "a"}'`), "something else"},
		{"a list", packed(`'["a"]'`), "something else"},
		{"too long", "v1." + strings.Repeat("A", 200_001), "too long"},
	} {
		if row.reason == "an endless text" && len(row.fragment) > 200_000 {
			t.Fatalf("%d characters: this is not what the row tests", len(row.fragment))
		}
		b.see(s.URL+"/?"+string(rune('a'+n))+"#"+row.fragment, "#evaluate")
		if row.says == "" {
			b.await(`document.getElementById("policies").value === "p ü" && document.getElementById("exceptions").value === "e" && document.getElementById("banner").textContent === ""`)
			continue
		}
		b.await(`document.getElementById("banner").textContent.includes("` + row.says + `")`)
	}
	if n := s.evaluations.Load(); n != 0 {
		t.Errorf("%d evaluations", n)
	}
	b.clean(s.host())
}

// TestPlaygroundOfTheDashboard: its link leads to the playground, which asks for the dashboard's token, and shares
// it with the dashboard.
func TestPlaygroundOfTheDashboard(t *testing.T) {
	b := newTab(t)
	offline, err := trial.NewOffline(playground.DefaultTimeout)
	check(t, err)
	made, err := playground.New(playground.Config{Evaluator: offline})
	check(t, err)
	pages, err := ui.New(ui.Config{Inventory: some(t, 3, ""), Authenticator: keeper{}}, ui.WithPlayground(made))
	check(t, err)
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	b.see(server.URL+"/images", "#token")
	b.do(chromedp.Click(`nav a[href="/playground/"]`, chromedp.ByQuery), chromedp.WaitVisible("#results #token", chromedp.ByQuery))
	b.do(chromedp.SendKeys("#token", "wrong\n", chromedp.ByQuery))
	b.await(`!!document.querySelector("#results p.wrong")`)
	b.do(chromedp.SendKeys("#token", token+"\n", chromedp.ByQuery))
	b.choose("labels")
	b.evaluate()
	if got := eval[string](b, `document.querySelector("#results .summary").textContent`); got != "2 objects: 1 denied, 1 allowed" {
		t.Errorf("got %q", got)
	}
	b.do(chromedp.Click("a.brand", chromedp.ByQuery), chromedp.WaitVisible("figure.chart svg", chromedp.ByQuery))
	b.clean(strings.TrimPrefix(server.URL, "http://"))
}
