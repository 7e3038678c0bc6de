package imagepolicy

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// The only version of the protocol.
const (
	apiVersion = "imagepolicy.k8s.io/v1alpha1"
	kind       = "ImageReview"
)

// imageReview is the part of an ImageReview that is read.
type imageReview struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Containers []struct {
			Image string `json:"image"`
		} `json:"containers"`
		Namespace string `json:"namespace"`
	} `json:"spec"`
}

// images is the content of a review.
type images struct {
	namespace string
	names     []string
}

// decode parses a review. A duplicate member or a wrong type is an error; unknown members are
// ignored.
func decode(body []byte) (images, error) {
	var r imageReview
	if err := json.Unmarshal(body, &r); err != nil {
		return images{}, fmt.Errorf("read the ImageReview: %w", strictjson.Readable(err))
	}
	if r.APIVersion != apiVersion || r.Kind != kind {
		return images{}, fmt.Errorf("the body must be %s of %s, got %s of %s", kind, apiVersion,
			strconv.Quote(review.Plain(r.Kind, review.MaxField)), strconv.Quote(review.Plain(r.APIVersion, review.MaxField)))
	}
	found := images{namespace: r.Spec.Namespace}
	if !isNamespace.MatchString(found.namespace) {
		return images{}, fmt.Errorf("spec.namespace: %s is not a valid name of a namespace", strconv.Quote(review.Plain(found.namespace, review.MaxField)))
	}
	// A review without containers has no purpose; more likely the list has another name.
	if len(r.Spec.Containers) == 0 {
		return found, errors.New("spec.containers is empty or missing")
	}
	if len(r.Spec.Containers) > maxImages {
		return found, fmt.Errorf("spec.containers: %d images are more than %d", len(r.Spec.Containers), maxImages)
	}
	for i, container := range r.Spec.Containers {
		if container.Image == "" || len(container.Image) > maxImage {
			return found, fmt.Errorf("spec.containers[%d].image: must have 1 to %d bytes, got %d", i, maxImage, len(container.Image))
		}
		found.names = append(found.names, container.Image)
	}
	return found, nil
}

// isNamespace is a DNS label (RFC 1123), as the API server requires.
var isNamespace = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
