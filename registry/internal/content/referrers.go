package content

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// Referrers gathers referrers of the wanted types, each once, and of each type
// up to a bound of its own, so that no type crowds out another.
type Referrers struct {
	types []string
	seen  map[image.Digest]bool
	count map[string]int // by wanted type; "" where all are wanted
	full  string         // a type of which there are more, for the message
	isCut bool
	entry int64 // the most bytes of one
	list  []image.Descriptor
}

// NewReferrers gathers referrers of the types; none means all.
func NewReferrers(types []string) *Referrers {
	return &Referrers{types: types, entry: maxReferrerEntry, seen: map[image.Digest]bool{}, count: map[string]int{}}
}

// List returns the referrers so far.
func (c *Referrers) List() []image.Descriptor { return c.list }

// BoundEntry bounds the bytes of one entry of the following lists, which is held whole. The
// default is the size of a manifest, 4 MiB: an entry has the annotations of one.
func (c *Referrers) BoundEntry(most int64) { c.entry = min(most, maxReferrerEntry) }

// Err is an ErrTooManyReferrers if referrers were left out, else nil.
func (c *Referrers) Err() error {
	if !c.isCut {
		return nil
	}
	return fmt.Errorf("%w: more than %d of type %q", ErrTooManyReferrers, MaxListedReferrers, Shorten(c.full))
}

// Referrer is a descriptor with an unchecked digest.
type Referrer struct {
	MediaType    string            `json:"mediaType"`
	Digest       string            `json:"digest"`
	Size         int64             `json:"size"`
	ArtifactType string            `json:"artifactType"`
	Annotations  map[string]string `json:"annotations"`
}

// Add reads one index, of which it holds one entry at a time. An entry without a usable
// digest names nothing and is left out: it must not hide the valid ones. Entries read
// before a failure stay.
func (c *Referrers) Add(body io.Reader) error {
	from := &paced{from: body, most: c.entry}
	decoder := json.NewDecoder(from)
	from.taken = decoder.InputOffset
	if err := expect(decoder, '{'); err != nil {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return noIndex(err)
		}
		if name != "manifests" {
			var skipped json.RawMessage
			if err := decoder.Decode(&skipped); err != nil {
				return noIndex(err)
			}
			continue
		}
		if err := c.entries(decoder); err != nil {
			return err
		}
	}
	if err := expect(decoder, '}'); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return noIndex(cmp.Or(err, errors.New("more bytes follow")))
	}
	return nil
}

// paced reads a list for json.Decoder, which buffers incomplete values. It bounds the
// buffer, with a lower bound for white space alone. After each read it yields to other
// goroutines: a megabyte is milliseconds of work.
type paced struct {
	from  io.Reader
	most  int64
	read  int64
	blank int64        // of white space at the end of the input so far
	taken func() int64 // up to where the decoder has come
}

// Read implements io.Reader.
func (r *paced) Read(p []byte) (int, error) {
	kept := r.read - r.taken()
	switch {
	case kept > r.most:
		return 0, &limit.ExceededError{What: "an entry of the list", Most: r.most}
	case kept > maxBlank && r.blank+1 >= kept: // after a separator at most, and not within a string
		return 0, &limit.ExceededError{What: "the white space in the list", Most: maxBlank}
	}
	runtime.Gosched()
	n, err := r.from.Read(p[:min(len(p), maxBlank)])
	r.read += int64(n)
	r.blank += int64(n)
	if text := bytes.TrimRight(p[:n], " \t\r\n"); len(text) > 0 {
		r.blank = int64(n - len(text))
	}
	return n, err
}

// entries reads the list of an index, which may be null.
func (c *Referrers) entries(decoder *json.Decoder) error {
	open, err := decoder.Token()
	switch {
	case err != nil:
		return noIndex(err)
	case open == nil:
		return nil
	case open != json.Delim('['):
		return noIndex(errors.New("its manifests are no list"))
	}
	for decoder.More() {
		var entry Referrer
		err := decoder.Decode(&entry)
		if _, odd := errors.AsType[*json.UnmarshalTypeError](err); odd {
			continue // it was read to its end all the same
		}
		if err != nil {
			return noIndex(err)
		}
		c.Take(entry)
	}
	return expect(decoder, ']')
}

func expect(decoder *json.Decoder, want json.Delim) error {
	got, err := decoder.Token()
	if err == nil && got != want {
		err = fmt.Errorf("it has %v in place of %v", got, want)
	}
	if err != nil {
		return noIndex(err)
	}
	return nil
}

func noIndex(err error) error { return fmt.Errorf("the list of referrers is no index: %w", err) }

// Take keeps one entry if it is wanted, new and usable.
func (c *Referrers) Take(entry Referrer) {
	digest, err := image.ParseDigest(entry.Digest)
	if err != nil || entry.Size < 0 || c.seen[digest] || len(c.types) > 0 && !slices.Contains(c.types, entry.ArtifactType) {
		return // an entry without digest names nothing; see Add
	}
	kind := ""
	if len(c.types) > 0 {
		kind = entry.ArtifactType
	}
	if c.count[kind] == MaxListedReferrers {
		c.isCut, c.full = true, kind
		return
	}
	c.count[kind]++
	c.seen[digest] = true
	c.list = append(c.list, image.Descriptor{
		MediaType: strings.Clone(cut(entry.MediaType)), Digest: digest, Size: entry.Size,
		ArtifactType: strings.Clone(cut(entry.ArtifactType)), Annotations: keep(entry.Annotations),
	})
}

// cut shortens a type that is none: types have at most 255 characters.
func cut(mediaType string) string { return mediaType[:min(len(mediaType), 256)] }

// keep returns the annotations that identify a referrer before it is opened; others may be
// large, and are in its manifest.
func keep(annotations map[string]string) map[string]string {
	var kept map[string]string
	for _, key := range []string{"dev.sigstore.bundle.content", "dev.sigstore.bundle.predicateType"} {
		if value, ok := annotations[key]; ok && len(value) <= maxAnnotation {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

// ErrTooManyReferrers is an image.Bound.
var ErrTooManyReferrers = errors.New("too many referrers")

// ReferrersTag is <algorithm>-<hex>, cut as the distribution specification has
// it: 32 and 64 characters.
func ReferrersTag(digest image.Digest) string {
	encoded := digest.Hex()
	return digest.Algorithm() + "-" + encoded[:min(len(encoded), 64)]
}
