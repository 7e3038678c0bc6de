package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestRefusedApart: on requests to a real gateway, running images keep their state after refused
// requests, refused ones are counted apart, and an allowed image whose pod was refused names the
// container that was the reason.
func TestRefusedApart(t *testing.T) {
	b := newTab(t)
	h := open(t)
	at := func(name string) string { return h.pinned(t, name) }
	web := pod("shop", "web-6f7c9d4b58", "web-6f7c9d4b58-4xk2p", at("shop/web"), at("shop/worker"))
	allowed := h.admit(t,
		request{operation: "CREATE", object: web},
		request{operation: "CREATE", object: pod("ops", "debug-79c6f7d8bd", "debug-79c6f7d8bd-x5hwl", at("tools/debug"))},
		request{operation: "CREATE", object: pod("data", "cache-66f54dd8c9", "cache-66f54dd8c9-p7tnx", at("library/redis"))},
		request{operation: "CREATE", object: pod("shop", "mail-84cf6d9c5", "mail-84cf6d9c5-2jvgt", at("shop/mail"), at("shop/web"))},
		request{operation: "UPDATE", subresource: "ephemeralcontainers", object: debugged(web, at("shop/cart")), old: web},
		request{operation: "CREATE", object: pod("staging", "front-5c9d7f6b8", "front-5c9d7f6b8-k2m4s", at("shop/blog"), at("shop/cart"))},
	)
	if want := []bool{true, true, true, false, false, false}; !slices.Equal(allowed, want) {
		t.Fatalf("allowed %v, want %v: %s", allowed, want, h.log)
	}
	text := func(selector string) string {
		return eval[string](b, fmt.Sprintf(`(document.querySelector(%q)?.innerText || "missing").replace(/\s+/g, " ").trim() + " "`, selector))
	}
	b.see(h.dashboard, "#running-count")
	for _, row := range []struct{ reason, selector, want string }{
		{"running images", "#running-count", "4 images in 3 workloads, under "},
		{"refused images", "#refused-count", "Kept out: 3 images in 2 refused workloads; no workload runs them"},
		{"none that runs is denied", "a[data-verdict=denied] .num", "0 "},
		{"one under audit", "a[data-verdict=warned] .num", "1 "},
		{"no policy matches one that runs: not the images of the pod that was debugged", "a[data-verdict=unchecked] .num", "1 "},
		{"those of the pod that was debugged", "a[data-verdict=allowed] .num", "2 "},
		{"history starts with the process", "#history", "History starts now"},
	} {
		if got := text(row.selector); !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: %q, want %q", row.reason, got, row.want)
		}
	}
	b.see(h.dashboard+"images", "section.group")
	groups := eval[[]string](b, `[...document.querySelectorAll("section.group")].map((g) => g.dataset.state + ": " + [...g.querySelectorAll("tbody tr")].map((r) => r.querySelector(".badge").textContent + " " + r.querySelector(".image .name").textContent).sort().join(", "))`)
	want := []string{"running: Allowed web, Allowed worker, Unchecked redis, Warned debug", "refused: Allowed blog, Denied cart, Denied mail"}
	if !slices.Equal(groups, want) {
		t.Errorf("the images are %q, want %q", groups, want)
	}
	because := eval[[]string](b, `[...document.querySelectorAll(".cause")].map((c) => c.closest("tr").querySelector(".image .name").textContent + " " + c.innerText.replace(/\s+/g, " ").trim())`)
	if !slices.Equal(because, []string{"blog because of container cart (unsigned)"}) {
		t.Errorf("the causes are %q", because)
	}
	b.do(chromedp.Click(`a[data-state=refused]`, chromedp.ByQuery))
	b.await(`location.search === "?state=refused" && document.querySelectorAll("table.rows tbody tr").length === 3`)
	opensDecision(b, h)
}

// opensDecision opens the decision on the pod that was debugged.
func opensDecision(b *tab, h *env) {
	b.t.Helper()
	b.see(h.dashboard+"decisions?verdict=denied&q=web-6f7c9d4b58", "table.rows tbody tr a.decision")
	b.do(chromedp.Click(`a.decision`, chromedp.ByQuery), chromedp.WaitVisible("#reason", chromedp.ByQuery))
	b.await(`document.querySelectorAll("svg.chain").length >= 1`)
	main := eval[string](b, `document.querySelector("main").innerText`)
	for _, row := range []struct{ reason, want string }{
		{"the object", "shop/web-6f7c9d4b58-4xk2p"},
		{"the container", "debugger"},
		{"the code", "unsigned"},
		{"the policy", "ClusterPolicy/signed-by-key"},
		{"the fix", "sign the image with a key or identity that the policy names"},
		{"the command", "quaymaster explain --policy "},
		{"the failed link", "the link that failed"},
	} {
		if !strings.Contains(main, row.want) {
			b.t.Errorf("%s: no %q in %q", row.reason, row.want, main)
		}
	}
	if !eval[bool](b, `!!document.querySelector("svg.chain .break .stamp") && !!document.querySelector(".command button.copy")`) {
		b.t.Error("the failed link has no mark, or the command no button")
	}
	b.clean(strings.TrimSuffix(strings.TrimPrefix(h.dashboard, "http://"), "/"))
}
