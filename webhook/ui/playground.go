package ui

import (
	"net/http"
	"strings"

	"github.com/quaymaster/quaymaster/webhook/internal/page"
)

// playgroundPath is the path of the playground's page, which contains no data, as those of the dashboard.
const playgroundPath = "/playground/"

// linkPlayground adds the playground to the menu. The link has a target, so that the dashboard's script leaves it
// to the browser.
func (h *Handler) linkPlayground() {
	const end = "    </nav>"
	link := []byte(`      <a href="` + playgroundPath + `" target="_self">Playground</a>` + "\n" + end)
	h.files["index.html"] = h.files["index.html"].Replace([]byte(end), link)
	h.mux.Handle(strings.TrimSuffix(playgroundPath, "/"), http.RedirectHandler(playgroundPath, http.StatusPermanentRedirect))
}

// play serves the playground.
func (h *Handler) play(w http.ResponseWriter, r *http.Request) {
	leave, err := h.enter()
	if err != nil {
		page.Refuse(w, r, err)
		return
	}
	defer leave()
	caller := ""
	isPage := r.URL.Path == playgroundPath || strings.HasPrefix(r.URL.Path, playgroundPath+"assets/")
	if !isPage {
		user, err := h.admit(r)
		if err != nil {
			page.Refuse(w, r, err)
			return
		}
		caller = user.Name
	}
	http.StripPrefix(strings.TrimSuffix(playgroundPath, "/"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.playground.Serve(w, r, caller)
	})).ServeHTTP(w, r)
}
