package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/webhook/internal/page"
)

// The kinds of the API's documents; their version is report.APIVersion. Within a version, fields
// are only added, never removed or redefined.
const (
	OverviewKind     = "Overview"
	ImageListKind    = "ImageList"
	ImageKind        = "Image"
	DecisionListKind = "DecisionList"
	DecisionKind     = "Decision"
	PolicyListKind   = "PolicyList"
	PolicyKind       = "Policy"
	FacetsKind       = "Facets"
)

type typed struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

func malformed(message string) error {
	return page.Problem{Status: http.StatusBadRequest, Reason: "malformed", Message: message}
}

func of(kind string) typed { return typed{report.APIVersion, kind} }

// ImageList is the response of /api/v1/images.
type ImageList struct {
	typed
	About inventory.About `json:"about"`
	inventory.ImagePage
}

// route is an API resource: the parameters that it accepts, and its handler.
type route struct {
	parameters []string
	answer     func(r *http.Request, p parameters) (any, error)
}

// ImageDetails is the response of /api/v1/images/ID.
type ImageDetails struct {
	typed
	About inventory.About `json:"about"`
	inventory.Details
}

// DecisionList is the response of /api/v1/decisions.
type DecisionList struct {
	typed
	About inventory.About `json:"about"`
	inventory.DecisionPage
}

// DecisionDetails is the response of /api/v1/decisions/ID.
type DecisionDetails struct {
	typed
	About inventory.About `json:"about"`
	inventory.DecisionDetails
	// Commands explain the verdict on each of the images, in their order.
	Commands []string `json:"commands,omitempty"`
}

// about describes the data of a response.
func (h *Handler) about(p parameters) inventory.About {
	made := h.config.Inventory.About()
	made.Alone = p.alone
	return made
}

// routes returns the API resources by path.
func (h *Handler) routes() map[string]route {
	known := h.config.Inventory
	return map[string]route{
		"overview": {[]string{"span"}, func(_ *http.Request, p parameters) (any, error) {
			overview, err := known.Overview(inventory.Span(p.text("span")))
			overview.About.Alone = p.alone
			return struct {
				typed
				inventory.Overview
			}{of(OverviewKind), overview}, err
		}},
		"images": {imageParameters(), h.listImages},
		"images/{id}": {nil, func(r *http.Request, p parameters) (any, error) {
			details, ok := known.Image(r.PathValue("id"))
			if !ok {
				return nil, page.Problem{
					Status: http.StatusNotFound, Reason: "not-found", Message: "image not found: it was not seen for a week, or another replica evaluated it",
				}
			}
			return ImageDetails{of(ImageKind), h.about(p), details}, nil
		}},
		"decisions": {[]string{"q", "verdict", "namespace", "offset", "limit"}, func(_ *http.Request, p parameters) (any, error) {
			page, err := known.Decisions(inventory.DecisionQuery{
				Text: p.text("q"), Verdict: inventory.Verdict(p.text("verdict")), Namespace: p.text("namespace"), Page: p.page(),
			})
			return DecisionList{of(DecisionListKind), h.about(p), page}, err
		}},
		"decisions/{id}": {nil, func(r *http.Request, p parameters) (any, error) { return h.decisionDetails(r.PathValue("id"), p) }},
		"policies":       {nil, func(_ *http.Request, p parameters) (any, error) { return h.listPolicies(p), nil }},
		"policy":         {[]string{"id"}, func(_ *http.Request, p parameters) (any, error) { return h.policyDetails(p.text("id"), p) }},
		"facets": {nil, func(*http.Request, parameters) (any, error) {
			return struct {
				typed
				inventory.Facets
			}{of(FacetsKind), known.Facets()}, nil
		}},
	}
}

func (h *Handler) listImages(_ *http.Request, p parameters) (any, error) {
	page, err := h.config.Inventory.Images(inventory.ImageQuery{
		Text: p.text("q"), Verdict: inventory.Verdict(p.text("verdict")), State: inventory.State(p.text("state")), Namespace: p.text("namespace"),
		Signer: p.text("signer"), Key: p.text("key"), Policy: p.text("policy"), Failed: p.flag("failed"), Digest: p.text("digest"),
		Sort: inventory.Sort(p.text("sort")), Reverse: p.flag("reverse"), Page: p.page(),
	})
	return ImageList{of(ImageListKind), h.about(p), page}, err
}

func (h *Handler) decisionDetails(id string, p parameters) (any, error) {
	details, ok := h.config.Inventory.Decision(id)
	if !ok {
		return nil, page.Problem{
			Status: http.StatusNotFound, Reason: "not-found", Message: "decision not found: only the latest are kept, by the replica that made them; the decision log keeps all",
		}
	}
	made := DecisionDetails{typed: of(DecisionKind), About: h.about(p), DecisionDetails: details}
	if h.explain != nil {
		for _, image := range details.Images {
			made.Commands = append(made.Commands, h.explain(details.Resource.Namespace, image.Written, image.Copy))
		}
	}
	return made, nil
}

func imageParameters() []string {
	return []string{"q", "verdict", "state", "namespace", "signer", "key", "policy", "failed", "digest", "sort", "reverse", "offset", "limit"}
}

// serve serves a resource to an authorised client: the leader's response if there is one, else this
// replica's own.
func (h *Handler) serve(q route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave, err := h.enter()
		if err != nil {
			page.Refuse(w, r, err)
			return
		}
		defer leave()
		if _, err := h.admit(r); err != nil {
			page.Refuse(w, r, err)
			return
		}
		p, err := parametersOf(r.URL, q.parameters)
		if err != nil {
			page.Refuse(w, r, err)
			return
		}
		leaderResponse, alone := h.leaderResponse(r)
		if leaderResponse != nil {
			respond(w, r, leaderResponse)
			return
		}
		p.alone = alone
		q.respond(w, r, p)
	})
}

// enter takes one of the maxAtOnce slots for concurrent requests.
func (h *Handler) enter() (leave func(), err error) {
	select {
	case h.places <- struct{}{}:
		return func() { <-h.places }, nil
	default:
		return nil, page.Problem{Status: http.StatusServiceUnavailable, Reason: "busy", Message: "too many concurrent requests; retry"}
	}
}

// respond responds from this replica's inventory.
func (q route) respond(w http.ResponseWriter, r *http.Request, p parameters) {
	answer, err := q.answer(r, p)
	if err == nil {
		err = p.wrong()
	}
	if err != nil {
		page.Refuse(w, r, err)
		return
	}
	body, err := json.Marshal(answer)
	if err != nil {
		page.Refuse(w, r, page.Problem{Status: http.StatusInternalServerError, Reason: "internal", Message: "internal error: the response cannot be encoded"})
		return
	}
	respond(w, r, append(body, '\n'))
}

func respond(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Cache-Control", "private, no-cache")
	w.Header().Add("Vary", "Authorization")
	page.NewFile("application/json", body).Serve(w, r, http.StatusOK)
}

// parameters are those of a query. Each may occur once.
type parameters struct {
	values url.Values
	faults *[]string
	alone  string // why the leader's response is missing; empty if this replica leads
}

func parametersOf(u *url.URL, known []string) (parameters, error) {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return parameters{}, malformed("the URL's query is not valid")
	}
	for name, given := range values {
		switch {
		case !slices.Contains(known, name):
			return parameters{}, malformed("unknown parameter; valid ones: " + strings.Join(known, ", "))
		case len(given) > 1 || len(given[0]) > maxParameter:
			return parameters{}, malformed(fmt.Sprintf("%s: must be one value of at most %d bytes", name, maxParameter))
		}
	}
	return parameters{values: values, faults: &[]string{}}, nil
}

func (p parameters) text(name string) string { return strings.TrimSpace(p.values.Get(name)) }

func (p parameters) flag(name string) bool {
	switch p.text(name) {
	case "", "false":
		return false
	case "true":
		return true
	}
	*p.faults = append(*p.faults, name+": must be true or false")
	return false
}

func (p parameters) page() inventory.Page {
	return inventory.Page{Offset: p.number("offset"), Limit: p.number("limit")}
}

func (p parameters) number(name string) int {
	text := p.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		*p.faults = append(*p.faults, name+": must be a number")
	}
	return n
}

// wrong returns the parse errors of the parameters.
func (p parameters) wrong() error {
	if len(*p.faults) == 0 {
		return nil
	}
	return malformed(strings.Join(*p.faults, "; "))
}
