// Package probe answers the probe webhooks of the gateway's configurations: it reports
// which mark the API server called it for.
//
// The endpoint keeps nothing and decides nothing, so any replica may be called, and a
// call by another client has no effect.
package probe

import (
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/cluster/probe"
	"github.com/quaymaster/quaymaster/internal/limit"
)

const (
	// maxBody bounds a review. A ConfigMap that is no probe may carry the label, too.
	maxBody = 4 << 20
	// maxMark bounds a mark, in bytes.
	maxMark = 64
	// maxUID bounds the UID of a request, in bytes.
	maxUID = 128
)

// Handler answers below a path.
type Handler struct{ path string }

// New makes a Handler for the marks below a path such as /probe.
func New(path string) Handler { return Handler{path: strings.TrimSuffix(path, "/") + "/"} }

// review is an AdmissionReview of admission.k8s.io/v1, as far as it is read or written.
type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID string `json:"uid"`
}

type response struct {
	UID      string   `json:"uid"`
	Allowed  bool     `json:"allowed"`
	Warnings []string `json:"warnings"`
}

// ServeHTTP implements http.Handler.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mark, below := strings.CutPrefix(r.URL.Path, h.path)
	if !below || mark == "" || len(mark) > maxMark || strings.Trim(mark, "0123456789abcdef-") != "" {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method must be POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := limit.ReadAll(r.Body, maxBody, "AdmissionReview")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var asked review
	if err := json.Unmarshal(body, &asked); err != nil || asked.Request == nil || asked.Request.UID == "" || len(asked.Request.UID) > maxUID {
		http.Error(w, "the body must be an AdmissionReview with a request and its uid", http.StatusBadRequest)
		return
	}
	answer, err := json.Marshal(review{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview", Response: &response{
		UID: asked.Request.UID, Allowed: true, Warnings: []string{probe.Warning(mark)},
	}})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // the API server sees that the response ends early
}
