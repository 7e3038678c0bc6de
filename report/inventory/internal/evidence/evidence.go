package evidence

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// The bounds of one image's record.
const (
	// maxPacked bounds the compressed record, in bytes. An ordinary one has about 1 kB.
	maxPacked = 32 << 10
	// age is the interval at which the record of an unchanged verdict is replaced.
	age = time.Minute
	// maxName bounds a name outside the record, in bytes.
	maxName = 512
	// maxText bounds a text, in bytes, and maxList a list or a map.
	maxText = 1 << 10
	maxList = 64
)

// Evidence is the last record of an image, compressed: most of its names occur in the records of
// other images, too, and few records are read. The zero value is an image without a decision.
type Evidence struct {
	packed []byte // compressed JSON; nil where it was too large
	// Made is the time of the decision, with its policies and trust.
	Made            time.Time
	Policies, Trust string
	Process         report.Process
	Endpoint        string
	LeftOut         int // results over the bound; the gravest are stored
}

// Size is the compressed size, in bytes.
func (e *Evidence) Size() int { return len(e.packed) }

// Stale reports whether a newer record should replace this one.
func (e *Evidence) Stale(at time.Time, r report.Record) bool {
	return e.Policies != r.PolicySetHash || e.Trust != r.TrustGeneration || at.Sub(e.Made) >= age
}

// Packer compresses records sequentially. It needs a megabyte of memory.
type Packer struct {
	writer *flate.Writer
	packed bytes.Buffer
}

// NewPacker creates a Packer.
func NewPacker() (*Packer, error) {
	p := &Packer{}
	var err error
	p.writer, err = flate.NewWriter(&p.packed, flate.BestSpeed)
	return p, err
}

// Pack compresses the record of an image from an occasion.
func (p *Packer) Pack(o report.Occasion, r report.Record, image *report.Image) Evidence {
	packed, left := p.pack(image)
	return Evidence{
		packed: packed, LeftOut: left, Made: o.Time, Policies: Cut(r.PolicySetHash, maxName), Trust: Cut(r.TrustGeneration, maxName),
		Process: o.Process, Endpoint: Cut(o.Endpoint, maxName),
	}
}

// pack truncates and compresses an image.
func (p *Packer) pack(image *report.Image) ([]byte, int) {
	shown, left := shownOf(image)
	return p.compress(&shown), left
}

// object is the part of a record that is stored for a decision.
type object struct {
	Images          []report.Image  `json:"images"`
	Rules           []report.Rule   `json:"rules,omitempty"`
	Reasons         []policy.Reason `json:"reasons,omitempty"`
	Warnings        []policy.Reason `json:"warnings,omitempty"`
	PolicySetHash   string          `json:"policySetHash,omitempty"`
	TrustGeneration string          `json:"trustGeneration,omitempty"`
	// ResultsLeftOut counts the results of rules over the bound, of which the gravest remain.
	ResultsLeftOut int `json:"resultsLeftOut,omitempty"`
}

// PackObject truncates and compresses the record of an object, with so many of its images; nil if
// it is too large. Unpack returns its JSON.
func (p *Packer) PackObject(r report.Record, images int) []byte {
	rules, left := rulesOf(r)
	shown := object{
		Images: make([]report.Image, 0, min(len(r.Images), images)), Rules: rules, Reasons: r.Reasons, Warnings: r.Warnings,
		PolicySetHash: r.PolicySetHash, TrustGeneration: r.TrustGeneration,
	}
	for n := range r.Images[:min(len(r.Images), images)] {
		image, more := shownOf(&r.Images[n])
		shown.Images = append(shown.Images, image)
		left += more
	}
	shown.ResultsLeftOut = left
	return p.compress(&shown)
}

// shownOf leaves the names of pull secrets out, because read access to images does not imply access to
// them, and results over the bound, which it counts.
func shownOf(image *report.Image) (report.Image, int) {
	shown := *image
	decisions, left := Decisions(image)
	shown.Decisions = decisions
	if shown.Mirror != nil {
		mirror := *shown.Mirror
		mirror.PullSecrets = nil
		shown.Mirror = &mirror
	}
	return shown, left
}

func (p *Packer) compress(of any) []byte {
	text, err := json.Marshal(of)
	if err != nil {
		return nil // it consists of texts and numbers
	}
	if len(text) > maxText {
		var tree any
		if json.Unmarshal(text, &tree) != nil {
			return nil
		}
		text, err = json.Marshal(bounded(tree))
		if err != nil {
			return nil
		}
	}
	p.packed.Reset()
	p.writer.Reset(&p.packed)
	if _, err := p.writer.Write(text); err != nil || p.writer.Close() != nil || p.packed.Len() > maxPacked {
		return nil
	}
	return bytes.Clone(p.packed.Bytes())
}

// Record returns the JSON of the image; nil where it was too large.
func (e *Evidence) Record() json.RawMessage { return Unpack(e.packed) }

// Unpack returns the JSON of a compressed record; nil for none.
func Unpack(packed []byte) json.RawMessage {
	if len(packed) == 0 {
		return nil
	}
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return nil // it was encoded by compress
	}
	return text
}

// bounded truncates the texts and lists of a tree.
func bounded(tree any) any {
	switch tree := tree.(type) {
	case string:
		return Cut(tree, maxText)
	case []any:
		tree = tree[:min(len(tree), maxList)]
		for n := range tree {
			tree[n] = bounded(tree[n])
		}
		return tree
	case map[string]any:
		kept := make(map[string]any, min(len(tree), maxList))
		for name, value := range tree {
			if len(kept) < maxList {
				kept[Cut(name, maxText)] = bounded(value)
			}
		}
		return kept
	default:
		return tree
	}
}

// Cut truncates untrusted text. It copies, so that the result does not retain a larger text.
func Cut(text string, most int) string {
	if len(text) <= most {
		return strings.ToValidUTF8(strings.Clone(text), "\uFFFD")
	}
	return strings.ToValidUTF8(text[:most], "\uFFFD") + "…"
}
