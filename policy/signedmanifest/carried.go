package signedmanifest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// Domain is the domain of the annotations; empty means DefaultDomain.
type Domain string

// DefaultDomain is the domain that the signing tools use.
const DefaultDomain Domain = "cosign.sigstore.dev"

const (
	message     = "message"
	signature   = "signature"
	certificate = "certificate"
	entry       = "bundle"
	reference   = "resourceBundleRef"
)

// Carried is the evidence that an object carries. Of a part that is not there, the field is empty.
type Carried struct {
	// Content is the signed content, and ContentErr the reason why it cannot be read.
	Content    []byte
	ContentErr error
	Signatures []Signature
	// Reference is the image with the manifests; the tools take several, separated by commas.
	Reference string
}

// Signature is one signature over the content.
type Signature struct {
	// Annotation is the name of the annotation with the signature.
	Annotation string
	// Signature is in base64, Certificate in PEM, and Entry a log entry in JSON.
	Signature, Certificate, Entry string
	// Err is the reason why the certificate or the entry cannot be read.
	Err error
}

func (d Domain) key(name string, n int) string {
	if d == "" {
		d = DefaultDomain
	}
	if n > 0 {
		name += "_" + strconv.Itoa(n)
	}
	return string(d) + "/" + name
}

// Has reports whether an annotation is part of the evidence, which no signature can cover.
func (d Domain) Has(annotation string) bool {
	name, is := strings.CutPrefix(annotation, d.key("", 0))
	if !is || name == message || name == reference {
		return is
	}
	base, number, numbered := strings.Cut(name, "_")
	if numbered {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n >= MaxSignatures || strconv.Itoa(n) != number {
			return false
		}
	}
	return slices.Contains([]string{signature, certificate, entry}, base)
}

// Read reads the evidence among the annotations of an object. A signature without its predecessor is
// not read, as in the signing tools.
func (d Domain) Read(annotations map[string]string) Carried {
	out := Carried{Reference: strings.TrimSpace(annotations[d.key(reference, 0)])}
	if text, ok := annotations[d.key(message, 0)]; ok {
		out.Content, out.ContentErr = expand(text, MaxContent, "the signed content")
		if out.ContentErr == nil && len(out.Content) == 0 {
			out.ContentErr = errors.New("the signed content is empty")
		}
	}
	for n := range MaxSignatures {
		text, ok := annotations[d.key(signature, n)]
		if !ok {
			break
		}
		one := Signature{Annotation: d.key(signature, n), Signature: text}
		certified, err := expandOptional(annotations[d.key(certificate, n)], MaxCertificate, "the certificate")
		logged, logErr := expandOptional(annotations[d.key(entry, n)], MaxEntry, "the log entry")
		one.Certificate, one.Entry, one.Err = string(certified), string(logged), errors.Join(err, logErr)
		out.Signatures = append(out.Signatures, one)
	}
	return out
}

func expandOptional(text string, most int64, what string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	return expand(text, most, what)
}

// expand reads base64 of gzip.
func expand(text string, most int64, what string) ([]byte, error) {
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return gunzip(packed, most, what)
}

func gunzip(packed []byte, most int64, what string) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	content, err := limit.ReadAll(reader, most, what)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return content, nil
}
