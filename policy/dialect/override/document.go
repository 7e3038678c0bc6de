package override

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// The names of the document.
const (
	apiVersion = "quaymaster.dev/v1alpha1"
	kind       = "ImageOverride"
)

// The bounds of a document. It lists individual images and not a whole registry, and each
// entry may be compared with each image.
const (
	maxDocument = 1 << 20
	maxEntries  = 200     // of each list
	maxReason   = 1 << 10 // bytes
)

// longestAllow bounds how long after its creation an Allow may hold. A longer exception
// belongs into the policy.
const longestAllow = 90 * 24 * time.Hour

// FieldError reports an invalid field of a document with its path.
type FieldError = field.Error

// document is an ImageOverride as it is written.
type document struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       spec            `json:"spec"`
	Status     json.RawMessage `json:"status,omitempty"`
}

type spec struct {
	Effect     string   `json:"effect"`
	Reason     string   `json:"reason"`
	Expires    string   `json:"expires"`
	Namespaces []string `json:"namespaces"`
	Match      match    `json:"match"`
}

type match struct {
	Digests      []string `json:"digests"`
	Repositories []string `json:"repositories"`
	Signers      []signer `json:"signers"`
}

type signer struct {
	Key            string `json:"key"`
	KeyFingerprint string `json:"keyFingerprint"`
	Issuer         string `json:"issuer"`
	IssuerRegExp   string `json:"issuerRegExp"`
	Subject        string `json:"subject"`
	SubjectRegExp  string `json:"subjectRegExp"`
}

// metadata holds the fields that are read of the API server's own part, which may have
// more fields than are known here.
type metadata struct {
	Name              string    `json:"name"`
	CreationTimestamp time.Time `json:"creationTimestamp"`
}

// Overrides compiles documents for package catalog. The zero value is ready for use.
type Overrides struct{}

// Recognises reports whether a document of this apiVersion and kind is an override.
func (Overrides) Recognises(version, named string) bool {
	return strings.HasPrefix(version, "quaymaster.dev/") && named == kind
}

// Compile compiles one document, YAML or JSON. Source is its origin. The error joins all
// field errors (*FieldError). An expired document is no error: it has no effect any more.
func (Overrides) Compile(text []byte, source string) (*policy.Override, error) {
	read, err := compile(text)
	if err != nil {
		return nil, fmt.Errorf("override in %s: %w", source, err)
	}
	read.Source = source
	return read, nil
}

// Broken returns an override in place of a document that does not compile. A Deny holds as
// far as it can be read: each entry that is valid by itself, everywhere if the namespaces
// are invalid, and until the document is corrected if the end is invalid. It is nil where
// nothing is left to enforce, and for an Allow, which in part could allow unintended
// images.
func (Overrides) Broken(text []byte, source string, why error) *policy.Override {
	if len(text) > maxDocument {
		return nil
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil
	}
	d := parsePartial(data)
	if d.effect != policy.OverrideDeny {
		return nil
	}
	out := &policy.Override{
		Name: d.name, Source: source, Hash: hashOf(data), Effect: policy.OverrideDeny, Reason: d.reason,
		Expires: d.expires, Namespaces: d.namespaces, Broken: why,
		Digests: d.digests, Repositories: d.repositories, Signers: d.signers,
	}
	if len(out.Digests)+len(out.Repositories)+len(out.Signers) == 0 {
		return nil
	}
	if out.Name == "" {
		out.Name = "unnamed-" + out.Hash[:8]
	}
	return out
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func compile(text []byte) (*policy.Override, error) {
	var d document
	data, err := field.ReadUpTo(maxDocument, text, &d)
	if err != nil {
		return nil, err
	}
	var errs []error
	if d.APIVersion != apiVersion || d.Kind != kind {
		errs = append(errs, fmt.Errorf("%s %s: want %s of %s", d.APIVersion, d.Kind, kind, apiVersion))
	}
	meta, err := readMetadata(d.Metadata)
	errs = append(errs, err)
	out := &policy.Override{Name: meta.Name, Hash: hashOf(data), Effect: policy.OverrideEffect(d.Spec.Effect)}
	if out.Effect != policy.OverrideAllow && out.Effect != policy.OverrideDeny {
		errs = append(errs, field.Fail("spec.effect", "%q: want Allow or Deny", d.Spec.Effect))
	}
	keep := func(err error) { errs = append(errs, err) }
	out.Reason, err = readReason(d.Spec.Reason)
	keep(err)
	out.Expires, err = readExpires(d.Spec.Expires)
	keep(err)
	keep(checkSpan(out, meta))
	out.Namespaces, err = readNamespaces(d.Spec.Namespaces)
	keep(err)
	m := &d.Spec.Match
	if len(m.Digests)+len(m.Repositories)+len(m.Signers) == 0 {
		keep(field.Fail("spec.match", "names no image: want digests, repositories or signers"))
	}
	out.Digests, err = each("spec.match.digests", m.Digests, readDigest)
	keep(err)
	out.Repositories, err = each("spec.match.repositories", m.Repositories, readRepository)
	keep(err)
	out.Signers, err = each("spec.match.signers", m.Signers, func(s signer, path string) (policy.OverrideSigner, error) {
		return s.read(out.Effect, path)
	})
	keep(err)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

func readMetadata(raw json.RawMessage) (metadata, error) {
	var meta metadata
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &meta); err != nil {
			return meta, field.Fail("metadata", "%w", err)
		}
	}
	if meta.Name == "" {
		return meta, field.Fail("metadata.name", "is empty")
	}
	return meta, nil
}

// checkSpan compares the end with the creation, where the API server reports that time: so
// the result does not depend on when the document is read.
func checkSpan(o *policy.Override, meta metadata) error {
	switch span := o.Expires.Sub(meta.CreationTimestamp); {
	case o.Expires.IsZero() || meta.CreationTimestamp.IsZero():
		return nil
	case span <= 0:
		return field.Fail("spec.expires", "%s had passed when the override was created at %s, so that it would do nothing; mind the time zone",
			o.Expires.Format(time.RFC3339), meta.CreationTimestamp.Format(time.RFC3339))
	case o.Effect == policy.OverrideAllow && span > longestAllow:
		return field.Fail("spec.expires", "an Allow is valid for at most %d days from its creation; write a policy for a longer exemption",
			int(longestAllow.Hours()/24))
	}
	return nil
}
