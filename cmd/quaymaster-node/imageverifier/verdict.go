package imageverifier

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/image"
)

// The supported version and kind of the record: docs/record.md.
const (
	recordVersion = "quaymaster.dev/v1alpha2"
	recordKind    = "VerdictList"
	allowed       = "allow"
	unchecked     = "unchecked" // no policy matches; admitted
)

// Verdict is the result for the one requested image.
type Verdict struct {
	Allowed bool
	// Reason is human-readable.
	Reason string
}

// record is the part of the versioned record that the verifier reads. Unknown members are
// ignored, as the record's contract requires; a duplicate name is refused.
type record struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []struct {
		Result  string   `json:"result"`
		Reasons []reason `json:"reasons"`
		Images  []struct {
			Written   string   `json:"written"`
			Reference string   `json:"reference"`
			Digest    string   `json:"digest"`
			Result    string   `json:"result"`
			Matched   bool     `json:"matched"`
			Reasons   []reason `json:"reasons"`
		} `json:"images"`
	} `json:"items"`
}

type reason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Judge reads a record as the response to a request. It returns an error for another version,
// another image, another digest, or a missing member. With requireMatch an image that no policy
// matches is denied.
func Judge(raw []byte, q Question, requireMatch bool) (Verdict, error) {
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return Verdict{}, fmt.Errorf("the answer is no record: %w", err)
	}
	if r.APIVersion != recordVersion || r.Kind != recordKind {
		return Verdict{}, fmt.Errorf("the answer is %q of %q: want %s of %s", r.Kind, r.APIVersion, recordKind, recordVersion)
	}
	if len(r.Items) != 1 || len(r.Items[0].Images) > 1 {
		return Verdict{}, errors.New("the answer is not about one image")
	}
	item := r.Items[0]
	if len(item.Images) == 0 && admits(item.Result) {
		return Verdict{}, errors.New("the answer is about no image")
	}
	if len(item.Images) == 0 {
		// Reasons that are not about the image itself can only deny.
		return Verdict{Reason: tell(item.Result, item.Reasons)}, nil
	}
	about := item.Images[0]
	ref, err := image.Parse(about.Reference)
	switch {
	case about.Written != q.Image:
		return Verdict{}, fmt.Errorf("the answer is about %q, and %s was asked about", about.Written, q.Image)
	case err != nil || ref.Repository() != q.Ref.Repository() || ref.Digest() != q.Digest:
		return Verdict{}, fmt.Errorf("the answer is about %q, and %s was asked about", about.Reference, q.Image)
	case about.Digest != "" && about.Digest != q.Digest.String():
		return Verdict{}, fmt.Errorf("the answer is about digest %q, and %s was asked about", about.Digest, q.Digest)
	}
	switch {
	case !admits(item.Result) || !admits(about.Result):
		if admits(about.Result) {
			return Verdict{Reason: tell(item.Result, item.Reasons)}, nil
		}
		return Verdict{Reason: tell(about.Result, append(about.Reasons, item.Reasons...))}, nil
	case requireMatch && (!about.Matched || about.Result == unchecked):
		return Verdict{Reason: "no policy matches " + q.Image + ", and requireMatch is set"}, nil
	}
	return Verdict{Allowed: true, Reason: tell(about.Result, about.Reasons)}, nil
}

// admits reports whether a result admits. An unknown result does not.
func admits(result string) bool { return result == allowed || result == unchecked }

// tell formats a result with its most relevant reasons.
func tell(result string, reasons []reason) string {
	words := map[string]string{allowed: "allowed", unchecked: "unchecked", "deny": "denied", "error": "could not be verified"}
	text, ok := words[result]
	if !ok {
		text = fmt.Sprintf("not allowed (%q)", result)
	}
	const most = 3
	var told []string
	for _, r := range reasons[:min(len(reasons), most)] {
		told = append(told, strings.TrimSpace(r.Code+": "+r.Message))
	}
	if len(reasons) > most {
		told = append(told, fmt.Sprintf("and %d more", len(reasons)-most))
	}
	if len(told) == 0 {
		return text
	}
	return text + ": " + strings.Join(told, "; ")
}
