package signing

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/image"
)

// Image is an image of a suite, or a layout of some.
type Image struct {
	// Name is the reference with a tag that objects use. The image is built for the run.
	Name string `json:"name"`
	// Content determines the digest; Name if empty. Images of equal content have one digest.
	Content string `json:"content"`
	// Signers are the signers of the image, Attestations its attestations.
	Signers      []Signer      `json:"signers"`
	Attestations []Attestation `json:"attestations"`
	// Unsigned is required for an image without signatures, so that a missing signer is an
	// error.
	Unsigned bool `json:"unsigned"`
	// Layout is the folder or archive of an OCI layout, and excludes the other fields.
	Layout string `json:"layout"`
}

// Signer is one signer; one of the fields is set.
type Signer struct {
	// Key is the name of a key of the suite.
	Key string `json:"key"`
	// Keyless is an identity of the run's own Sigstore.
	Keyless *Identity `json:"keyless"`
	// Notary is the name of a key of the suite, which signs as notation does.
	Notary string `json:"notary"`
	// NoLog leaves out the entry in the transparency log.
	NoLog bool `json:"noLog"`
	// Annotations are put into the signed payload.
	Annotations map[string]string `json:"annotations"`
}

// Identity is the identity in a keyless certificate.
type Identity struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// Attestation is a statement about an image.
type Attestation struct {
	// Type is the predicate type, or one of cosign's short names.
	Type string `json:"type"`
	// Predicate is the predicate; PredicateFile is a JSON file with it instead.
	Predicate     json.RawMessage `json:"predicate"`
	PredicateFile string          `json:"predicateFile"`
	// Signers sign it; the signers of the image if empty.
	Signers []Signer `json:"signers"`
}

// Key is a throw-away key.
type Key struct {
	Name string `json:"name"`
	// Replaces is the real key that this key replaces in policies and their look-ups: a PEM
	// block, a file with one, or a text such as a KMS URI. A key without it is one that no
	// policy trusts.
	Replaces string `json:"replaces"`
}

// Bounds of one suite.
const (
	maxImages       = 200
	maxKeys         = 50
	maxSigners      = 20 // of an image or an attestation
	maxAttestations = 20
)

// check refuses contradictions.
func (i Image) check() error {
	if i.Layout != "" {
		if i.Name+i.Content != "" || i.Unsigned || len(i.Signers)+len(i.Attestations) > 0 {
			return errors.New("a layout has its images and signatures in it: leave the other fields out")
		}
		return nil
	}
	ref, err := image.Parse(i.Name)
	switch {
	case err != nil:
		return fmt.Errorf("name: %w", err)
	case !ref.Digest().IsZero():
		return errors.New("name: want a tag; the digest follows from the content")
	case i.Unsigned == (len(i.Signers)+len(i.Attestations) > 0):
		return errors.New("want signers or attestations, or unsigned: true")
	case len(i.Signers) > maxSigners || len(i.Attestations) > maxAttestations:
		return fmt.Errorf("more than %d signers or %d attestations", maxSigners, maxAttestations)
	}
	for n, s := range i.Signers {
		if err := s.check(); err != nil {
			return fmt.Errorf("signers[%d]: %w", n, err)
		}
	}
	for n, a := range i.Attestations {
		if err := a.check(len(i.Signers)); err != nil {
			return fmt.Errorf("attestations[%d]: %w", n, err)
		}
	}
	return nil
}

func (s Signer) check() error {
	kinds := 0
	for _, is := range []bool{s.Key != "", s.Keyless != nil, s.Notary != ""} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return errors.New("want one of key, keyless and notary")
	case s.Keyless != nil && (s.Keyless.Issuer == "" || s.Keyless.Subject == ""):
		return errors.New("keyless: want an issuer and a subject")
	case s.Keyless != nil && s.NoLog:
		return errors.New("keyless: the time of signing is the log's to say, so noLog is not for it")
	case s.Notary != "" && (s.NoLog || len(s.Annotations) > 0):
		return errors.New("notary: notation has neither a log nor annotations of this kind")
	}
	return nil
}

func (a Attestation) check(signers int) error {
	switch {
	case a.Type == "":
		return errors.New("type: is empty")
	case (a.Predicate == nil) == (a.PredicateFile == ""):
		return errors.New("want one of predicate and predicateFile")
	case len(a.Signers) == 0 && signers == 0:
		return errors.New("signers: neither it nor its image has some")
	case len(a.Signers) > maxSigners:
		return fmt.Errorf("more than %d signers", maxSigners)
	}
	for n, s := range a.Signers {
		if err := s.check(); err != nil {
			return fmt.Errorf("signers[%d]: %w", n, err)
		}
		if s.Notary != "" {
			return fmt.Errorf("signers[%d]: notary: notation signs no statements", n)
		}
	}
	return nil
}
