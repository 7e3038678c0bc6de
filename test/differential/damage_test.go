package differential

import (
	"cmp"
	"encoding/base64"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// sheet is a manifest about an image, and its content.
type sheet struct {
	// suffix of cosign's tag; without one it refers to the image.
	suffix       string
	artifactType string
	configType   string
	annotations  map[string]string
	pages        []page
}

// page is a layer of it.
type page struct {
	mediaType   string
	body        []byte
	annotations map[string]string
}

// Where a damage is done: the body, an annotation of the layer, or its media type.
const (
	body      = "body"
	mediaType = "media type"
)

// places are what of a page can be damaged.
func (p *page) places() []string {
	return append([]string{body, body, body, mediaType}, slices.Sorted(maps.Keys(p.annotations))...)
}

func (p *page) get(place string) []byte {
	switch place {
	case body:
		return slices.Clone(p.body)
	case mediaType:
		return []byte(p.mediaType)
	default:
		return []byte(p.annotations[place])
	}
}

func (p *page) set(place string, content []byte) {
	switch place {
	case body:
		p.body = content
	case mediaType:
		p.mediaType = string(content)
	default:
		p.annotations = maps.Clone(p.annotations)
		p.annotations[place] = string(content)
	}
}

// otherTypes are media types that might be mistaken for the right one.
var otherTypes = []string{
	"application/json", "application/vnd.dev.cosign.simplesigning.v1+json", "application/vnd.dsse.envelope.v1+json", "application/vnd.in-toto+json",
	"application/vnd.dev.sigstore.bundle.v0.3+json", "application/vnd.dev.sigstore.bundle+json;version=0.2", "application/vnd.dev.sigstore.bundle+json;version=0.3",
	"application/jose+json", "application/cose", "application/octet-stream", "application/vnd.oci.image.layer.v1.tar",
}

// damage makes one change to the first page of a sheet, and returns its name.
func (s *scene) damage(of *sheet, c change) string {
	random := rand.New(rand.NewPCG(c.At, 1))
	mine := &of.pages[0]
	for range 50 {
		place, inside, _ := strings.Cut(c.Where, " > ")
		if place == "" {
			place = pick(random, mine.places())
		}
		which := random.IntN(2)
		if s.recipe.Ask.Moved {
			which = 1 // the evidence for the other image is requested
		}
		donor := s.donor(which)
		inner := change{What: c.What, Where: inside, At: random.Uint64()}
		if said := damagePlace(mine, donor, place, inner); said != "" {
			return place + " > " + said
		}
	}
	return ""
}

func damagePlace(mine, donor *page, place string, c change) string {
	random := rand.New(rand.NewPCG(c.At, 2))
	if place == mediaType {
		mine.mediaType = cmp.Or(c.What, pick(random, otherTypes))
		return mine.mediaType
	}
	before, theirs := mine.get(place), donor.get(place)
	whole, isWhole := textEdits()[c.What]
	tree, err := parse(before)
	switch {
	case c.What == "left out" && c.Where == "":
		mine.annotations = maps.Clone(mine.annotations)
		delete(mine.annotations, place)
		return c.What
	case isWhole:
		mine.set(place, whole(random, before))
		return c.What
	case c.What == "another's whole", c.What == "" && random.IntN(8) == 0:
		mine.set(place, theirs)
		return "another's whole"
	case err == nil && tree.opening != 0 && (c.What != "" || random.IntN(6) > 0):
		other, _ := parse(theirs)
		said := applyTree(c, tree, other)
		if said != "" {
			mine.set(place, tree.text())
		}
		return said
	case len(blocks(before)) > 0 && (c.What != "" || random.IntN(4) > 0):
		return damageCertificates(mine, place, c, theirs)
	case place != body && (c.Where == encoded || c.What == "" && random.IntN(2) == 0):
		return damageEncoded(mine, place, c.What, random)
	}
	name := pick(random, slices.Sorted(maps.Keys(textEdits())))
	mine.set(place, textEdits()[name](random, before))
	return name
}

func damageCertificates(mine *page, place string, c change, theirs []byte) string {
	random := rand.New(rand.NewPCG(c.At, 3))
	all := pemEdits()
	what := c.What
	if what == "" {
		what = pick(random, slices.Sorted(maps.Keys(all)))
	}
	if all[what] == nil {
		return ""
	}
	mine.set(place, encodeBlocks(all[what](random, blocks(mine.get(place)), blocks(theirs))))
	return what
}

// encoded is where damageEncoded makes its changes.
const encoded = "0"

// damageEncoded changes bytes in base64, such as cosign's signatures.
func damageEncoded(mine *page, place, what string, random *rand.Rand) string {
	content, err := base64.StdEncoding.DecodeString(string(mine.get(place)))
	if err != nil || len(content) == 0 {
		return ""
	}
	n := &node{}
	n.setString(base64.StdEncoding.EncodeToString(content))
	said := applyTree(change{What: what, At: random.Uint64()}, &node{opening: '[', children: []*node{n}}, nil)
	text, ok := n.str()
	if said == "" || !ok {
		return ""
	}
	mine.set(place, []byte(text))
	return said
}
