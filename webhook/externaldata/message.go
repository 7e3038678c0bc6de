package externaldata

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// The only version of the protocol.
const (
	apiVersion   = "externaldata.gatekeeper.sh/v1beta1"
	requestKind  = "ProviderRequest"
	responseKind = "ProviderResponse"
)

// providerRequest is Gatekeeper's request.
type providerRequest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    struct {
		Keys []string `json:"keys"`
	} `json:"request"`
}

// providerResponse is the response to it.
type providerResponse struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Response   struct {
		// Idempotent: a key always has the same value. Gatekeeper requires it for mutation.
		Idempotent  bool   `json:"idempotent"`
		Items       []item `json:"items"`
		SystemError string `json:"systemError,omitempty"`
	} `json:"response"`
}

// item is the result for a key: a value or an error.
type item struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
	Error string `json:"error,omitempty"`
}

// decode parses a request. A duplicate member or a wrong type is an error; unknown members are
// ignored.
func decode(body []byte) ([]string, error) {
	var r providerRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("read the ProviderRequest: %w", strictjson.Readable(err))
	}
	if r.APIVersion != apiVersion || r.Kind != requestKind {
		return nil, fmt.Errorf("the body must be %s of %s, got %s of %s", requestKind, apiVersion,
			strconv.Quote(review.Plain(r.Kind, maxField)), strconv.Quote(review.Plain(r.APIVersion, maxField)))
	}
	switch keys := r.Request.Keys; {
	case len(keys) == 0:
		return nil, errors.New("request.keys is empty or missing")
	case len(keys) > MaxKeys:
		return nil, fmt.Errorf("request.keys: %d keys are more than %d", len(keys), MaxKeys)
	}
	return r.Request.Keys, nil
}

// write sends items, or a system error. The status also reports an error, since a template may
// check either.
func write(w http.ResponseWriter, items []item, systemError string) {
	r := providerResponse{APIVersion: apiVersion, Kind: responseKind}
	r.Response.Idempotent, r.Response.Items, r.Response.SystemError = true, items, systemError
	status := http.StatusOK
	if systemError != "" {
		status = http.StatusBadRequest
	}
	body, err := json.Marshal(r)
	if err != nil { // cannot happen: keys are valid JSON, and other texts are sanitised
		status = http.StatusInternalServerError
		body = []byte(`{"apiVersion":"` + apiVersion + `","kind":"` + responseKind + `","response":{"systemError":"the answer cannot be written"}}`)
	}
	review.WriteJSON(w, status, body)
}
