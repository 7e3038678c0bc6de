package imagepolicy

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/go-json-experiment/json"
)

// The only version of the protocol.
const (
	apiVersion = "imagepolicy.k8s.io/v1alpha1"
	kind       = "ImageReview"
)

// review is the part of an ImageReview that is read.
type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Containers []struct {
			Image string `json:"image"`
		} `json:"containers"`
		Namespace string `json:"namespace"`
	} `json:"spec"`
}

// question is the content of a review.
type question struct {
	namespace string
	images    []string
}

// decode parses a review. A duplicate member or a wrong type is an error; unknown members are
// ignored.
func decode(body []byte) (question, error) {
	var r review
	if err := json.Unmarshal(body, &r); err != nil {
		return question{}, fmt.Errorf("read the ImageReview: %w", err)
	}
	if r.APIVersion != apiVersion || r.Kind != kind {
		return question{}, fmt.Errorf("the body must be %s of %s, got %s of %s", kind, apiVersion,
			strconv.Quote(plain(r.Kind, maxField)), strconv.Quote(plain(r.APIVersion, maxField)))
	}
	q := question{namespace: r.Spec.Namespace}
	if !isNamespace.MatchString(q.namespace) {
		return question{}, fmt.Errorf("spec.namespace: %s is not a valid name of a namespace", strconv.Quote(plain(q.namespace, maxField)))
	}
	// A review without containers has no purpose; more likely the list has another name.
	if len(r.Spec.Containers) == 0 {
		return q, errors.New("spec.containers is empty or missing")
	}
	if len(r.Spec.Containers) > maxImages {
		return q, fmt.Errorf("spec.containers: %d images are more than %d", len(r.Spec.Containers), maxImages)
	}
	for i, container := range r.Spec.Containers {
		if container.Image == "" || len(container.Image) > maxImage {
			return q, fmt.Errorf("spec.containers[%d].image: must have 1 to %d bytes, got %d", i, maxImage, len(container.Image))
		}
		q.images = append(q.images, container.Image)
	}
	return q, nil
}

// isNamespace is a DNS label (RFC 1123), as the API server requires.
var isNamespace = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
