package verifyimages

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
)

// pattern is a pattern for image references, with its host in the form of image.Ref.
func (b builder) pattern(text, path string, exempts bool) (string, error) {
	text = strings.TrimSpace(text)
	if text != "" && b.open(text) {
		return text, nil
	}
	return Pattern(text, path, exempts)
}

// Pattern reads a pattern for image references, of which one that exempts images
// must be able to. It refuses what could match no reference.
func Pattern(text, path string, exempts bool) (string, error) {
	if text == "" {
		return "", field.Fail(path, "is empty")
	}
	if why := reference.Unmatchable(text); why != "" {
		return "", field.Fail(path, "%q can match no image reference: %s", text, why)
	}
	normal := reference.Normal(text)
	if exempts && reference.Untagged(normal) {
		return "", field.Fail(path, "%q can match no image reference, which have a tag or a digest: write %s:* to leave out its tags, or %s@* its digests",
			text, text, text)
	}
	return normal, nil
}
