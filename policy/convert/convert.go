package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// Bounds on what is read. A policy that people write stays far below them.
const (
	// MaxInput is the largest policy, in bytes: the API server's own bound on an
	// object is 1.5 MiB.
	MaxInput = 1 << 20
	// maxFile is the largest file that a policy may name, in bytes: a chain of
	// certificates has a few KiB.
	maxFile = 1 << 20
	// maxDocuments bounds the documents of one file.
	maxDocuments = 100
	// maxRules bounds the rules of one source: each is compared with each.
	maxRules = 200
	// maxExpression bounds one expression that is written, in bytes: the gateway's
	// own bound on what it compiles is 64 KiB.
	maxExpression = 60 << 10
	// maxFiles bounds the files of one notation trust store.
	maxFiles = 100
)

// Format is a policy language that can be read.
type Format string

// The formats, as --from names them.
const (
	Connaisseur Format = "connaisseur"
	Notation    Format = "notation"
	Containers  Format = "containers"
	OpenShift   Format = "openshift"
	Ratify      Format = "ratify"
	Kyverno     Format = "kyverno"
	Sigstore    Format = "sigstore"
)

// Formats returns all formats, in the order of the documentation.
func Formats() []Format {
	return []Format{Connaisseur, Notation, Containers, OpenShift, Ratify, Kyverno, Sigstore}
}

// Options say how to read.
type Options struct {
	// From is the format; empty means that it is recognised by the content.
	From Format
	// Files is the folder in which files are looked up that the policy names:
	// "/etc/pki/key.pub" is "etc/pki/key.pub" in it. For notation it is also the
	// folder that truststore/ lies in. Nil means that none can be read, and a
	// policy that names one is refused.
	Files fs.FS
	// DropSignedIdentity accepts that the claimed identity of a signature
	// (containers' signedIdentity, OpenShift's too) is not compared with the
	// image's name, which an ImageValidatingPolicy cannot say: a signature that was
	// made for one repository then counts in another one that trusts the same
	// signer. Each place is marked in the output.
	DropSignedIdentity bool
}

// Convert returns the policy as ImageValidatingPolicies, in YAML, with comments
// where the meaning is subtle; the same input gives the same bytes. If a part of it
// cannot be carried the error is a *Refusal, with every such part.
func Convert(data []byte, options Options) ([]byte, error) {
	data, err := limit.ReadAll(bytes.NewReader(data), MaxInput, "the policy")
	if err != nil {
		return nil, err
	}
	documents, err := split(data)
	if err != nil {
		return nil, err
	}
	format := options.From
	if format == "" {
		if format, err = detect(documents); err != nil {
			return nil, err
		}
	}
	c := &conversion{options: options, names: map[string]bool{}}
	if err := c.read(format, documents); err != nil {
		return nil, err
	}
	if len(c.problems) > 0 {
		return nil, &Refusal{Problems: c.problems}
	}
	return write(format, c.notes, c.policies)
}

// conversion is what was understood so far.
type conversion struct {
	options  Options
	problems []Problem
	// notes are comments about the whole: what is not part of a policy.
	notes    []string
	policies []*said
	names    map[string]bool
}

func (c *conversion) read(format Format, documents []source) error {
	readers := map[Format]func(*conversion, []source){
		Connaisseur: (*conversion).connaisseur, Notation: (*conversion).notation, Containers: (*conversion).containers,
		OpenShift: (*conversion).openshift, Ratify: (*conversion).ratify, Kyverno: (*conversion).kyverno, Sigstore: (*conversion).sigstore,
	}
	reader, ok := readers[format]
	if !ok {
		return fmt.Errorf("no format is called %q: want one of %s", format, join(Formats(), ", "))
	}
	reader(c, documents)
	return nil
}

// refuse notes what cannot be carried, and what to do about it.
func (c *conversion) refuse(path, found, do string) {
	c.problems = append(c.problems, Problem{Path: path, Found: found, Do: do})
}

// note keeps a comment about the whole.
func (c *conversion) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(c.notes, text) {
		c.notes = append(c.notes, text)
	}
}

// one returns the only document of a format that has one a file.
func (c *conversion) one(documents []source) (source, bool) {
	if len(documents) != 1 {
		c.refuse("", fmt.Sprintf("%d documents", len(documents)), "this format has one a file: convert each alone")
		return source{}, false
	}
	return documents[0], true
}

// detect recognises a format by its documents.
func detect(documents []source) (Format, error) {
	found := map[Format]bool{}
	var last Format
	for _, d := range documents {
		format := d.format()
		if format == "" {
			return "", fmt.Errorf("%swhat policy is this? its apiVersion %q and kind %q are no known format's, and so is its shape: say --from with one of %s",
				d.prefix, d.APIVersion, d.Kind, join(Formats(), ", "))
		}
		found[format], last = true, format
	}
	if len(found) > 1 {
		return "", errors.New("the file holds policies of several formats: convert each alone")
	}
	return last, nil
}

// format recognises one document.
func (s source) format() Format {
	group, _, _ := strings.Cut(s.APIVersion, "/")
	switch group {
	case "config.openshift.io":
		return OpenShift
	case "config.ratify.deislabs.io", "config.ratify.sh":
		return Ratify
	case "kyverno.io":
		return Kyverno
	case "policy.sigstore.dev":
		return Sigstore
	case "":
	default:
		return ""
	}
	switch {
	case s.has("application") || s.has("validators") && s.has("policy"):
		return Connaisseur
	case s.has("trustPolicies"):
		return Notation
	case s.has("default") || s.has("transports"):
		return Containers
	}
	return ""
}

func join[T ~string](list []T, between string) string {
	texts := make([]string, len(list))
	for i, one := range list {
		texts[i] = string(one)
	}
	return strings.Join(texts, between)
}
