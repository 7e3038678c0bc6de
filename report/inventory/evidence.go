package inventory

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"io"
	"time"

	"github.com/quaymaster/quaymaster/report"
)

// evidence is the last record of an image, packed: most of it is names that the
// records of other images have, too, and few are ever looked at.
type evidence struct {
	packed []byte // JSON, compressed; none where it was too large
	// made is when it was decided, under which policies and trust.
	made            time.Time
	policies, trust string
	process         report.Process
	door            string
}

// stale reports whether a newer record says more than that nothing changed.
func (e *evidence) stale(at time.Time, r report.Record) bool {
	return e.policies != r.PolicySetHash || e.trust != r.TrustGeneration || at.Sub(e.made) >= evidenceAge
}

func newEvidence(o report.Occasion, r report.Record, packed []byte) evidence {
	return evidence{
		packed: packed, made: o.Time, policies: cut(r.PolicySetHash, maxName), trust: cut(r.TrustGeneration, maxName),
		process: o.Process, door: cut(o.Door, maxName),
	}
}

// packer compresses, one after the other: what it needs for that is a megabyte.
type packer struct {
	writer *flate.Writer
	packed bytes.Buffer
}

func newPacker() (*packer, error) {
	p := &packer{}
	var err error
	p.writer, err = flate.NewWriter(&p.packed, flate.BestSpeed)
	return p, err
}

// pack bounds and compresses what is known of an image. The names of pull secrets are
// left out: who may see images need not see them.
func (p *packer) pack(image *report.Image) []byte {
	shown := *image
	if shown.Mirror != nil {
		mirror := *shown.Mirror
		mirror.PullSecrets = nil
		shown.Mirror = &mirror
	}
	text, err := json.Marshal(&shown)
	if err != nil {
		return nil // it is made of texts and numbers
	}
	if len(text) > maxText {
		var tree any
		if json.Unmarshal(text, &tree) != nil {
			return nil
		}
		if text, err = json.Marshal(bounded(tree)); err != nil {
			return nil
		}
	}
	p.packed.Reset()
	p.writer.Reset(&p.packed)
	if _, err := p.writer.Write(text); err != nil || p.writer.Close() != nil || p.packed.Len() > maxEvidence {
		return nil
	}
	return bytes.Clone(p.packed.Bytes())
}

// unpack returns the JSON; nil where there is none.
func (e *evidence) unpack() json.RawMessage {
	if len(e.packed) == 0 {
		return nil
	}
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(e.packed)))
	if err != nil {
		return nil // it was written here
	}
	return text
}

// bounded cuts the texts and lists of a tree.
func bounded(tree any) any {
	switch tree := tree.(type) {
	case string:
		return cut(tree, maxText)
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
				kept[cut(name, maxText)] = bounded(value)
			}
		}
		return kept
	default:
		return tree
	}
}
