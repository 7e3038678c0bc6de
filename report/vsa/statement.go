package vsa

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/in-toto/in-toto-golang/in_toto"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
)

// Version is the version of SLSA that summaries follow.
const Version = "1.1"

// Results of a verification.
const (
	Passed = "PASSED"
	Failed = "FAILED"
)

// Levels of the build track: its number follows levelPrefix where a requirement of provenance verified it.
const (
	levelPrefix      = "SLSA_BUILD_LEVEL_"
	levelUnevaluated = levelPrefix + "UNEVALUATED"
)

// levelName is the name of a level of the build track; 0 is none.
func levelName(level int) string {
	if level == 0 {
		return levelUnevaluated
	}
	return levelPrefix + strconv.Itoa(level)
}

// statement is an in-toto statement v1 with a summary. The types of in-toto's protocol buffers do
// not support extension fields.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	Verifier     verifier   `json:"verifier"`
	TimeVerified time.Time  `json:"timeVerified"`
	ResourceURI  string     `json:"resourceUri"`
	Policy       descriptor `json:"policy"`
	// InputAttestations are all manifests of the verified evidence, or none where the list is
	// incomplete.
	InputAttestations  []descriptor `json:"inputAttestations,omitempty"`
	VerificationResult string       `json:"verificationResult"`
	VerifiedLevels     []string     `json:"verifiedLevels"`
	SLSAVersion        string       `json:"slsaVersion"`
	// Mirror is the exact name of the verified copy; empty for the image itself.
	Mirror string `json:"https://quaymaster.dev/vsa/mirror,omitempty"`
}

type verifier struct {
	ID      string            `json:"id"`
	Version map[string]string `json:"version,omitempty"`
}

// descriptor is in-toto's ResourceDescriptor.
type descriptor struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest,omitempty"`
}

// Summary is a verification summary of one image.
type Summary struct {
	// Image is the image, under its own name.
	Image image.Pinned
	// Passed is the result.
	Passed bool

	statement statement
}

// Statement returns the in-toto statement as JSON, on one line without a line end.
// Equal summaries have equal bytes.
func (s *Summary) Statement() ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s.statement); err != nil {
		return nil, fmt.Errorf("write the summary of %s: %w", s.Image, err)
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// ResourceURI is the name of a repository's images in summaries.
func ResourceURI(repository image.Repository) string { return "oci://" + repository.String() }

func digestSet(d image.Digest) map[string]string { return map[string]string{d.Algorithm(): d.Hex()} }

func newStatement(pinned image.Pinned, p predicate) statement {
	return statement{
		Type: in_toto.StatementInTotoV1, PredicateType: attest.PredicateVSA, Predicate: p,
		Subject: []subject{{Name: pinned.Repository().String(), Digest: digestSet(pinned.Digest())}},
	}
}
