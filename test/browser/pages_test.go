package browser

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/webhook/ui"
)

// TestPages: each page shows the real records, in both schemes, wide and narrow, asks no
// other host, breaks no word and fails nowhere.
func TestPages(t *testing.T) {
	b := newTab(t)
	h := open(t)
	known := week(t, h)
	server := shown(t, known, ui.WithPolicies(h.policies(t)), ui.WithExplain(func(namespace, image string, _ bool) string {
		return "quaymaster explain --policy policies/ --namespace " + namespace + " " + image
	}))
	image := func(name string) string {
		b.see(server.URL+"/images?q="+name, "table.rows tbody tr")
		return eval[string](b, `document.querySelector("td a.image").href`)
	}
	good, bad, mirrored, down := image("shop/checkout"), image("shop/mail:"), image("shop/web:"), image("far")
	b.see(server.URL+"/decisions?verdict=denied&q=mail-", "a.decision")
	denied := eval[string](b, `document.querySelector("a.decision").href`)
	for _, page := range []struct{ name, address, ready, says string }{
		{"overview", server.URL + "/", "figure.chart svg", "Needs attention"},
		{"images", server.URL + "/images", "table.rows tbody tr", "shop/"},
		{"image-proved", good, "svg.chain", "released-with-provenance"},
		{"image-mirrored", mirrored, "svg.chain", "Mirror"},
		{"image-denied", bad, "svg.chain", "wrong-key"},
		{"image-unable", down, "svg.chain", "Could not be verified"},
		{"decisions", server.URL + "/decisions", "table.rows tbody tr", "replicaset-controller"},
		{"decision", denied, "svg.chain", "quaymaster explain --policy policies/"},
		{"policies", server.URL + "/policies", "table.rows tbody tr", "released-with-provenance"},
		{"policy", server.URL + "/policy?id=ClusterPolicy/signed-by-key", "pre", "imageReferences"},
	} {
		t.Run(page.name, func(t *testing.T) {
			for _, scheme := range []string{"light", "dark"} {
				for _, size := range []struct {
					name          string
					width, height int64
				}{{"wide", 1440, 900}, {"narrow", 390, 844}} {
					b.scheme(scheme)
					b.size(size.width, size.height)
					b.see(page.address, page.ready)
					if text := eval[string](b, "document.querySelector('main').textContent"); !strings.Contains(text, page.says) {
						t.Errorf("%s: no %q in %q", page.name, page.says, text)
					}
					if over := eval[float64](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
						t.Errorf("%s, %s: it is %v px wider than the window", page.name, size.name, over)
					}
					b.whole(page.name + ", " + size.name)
					b.shoot(page.name + "-" + scheme + "-" + size.name)
				}
			}
		})
	}
	b.clean(strings.TrimPrefix(server.URL, "http://"))
}
