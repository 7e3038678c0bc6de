// Package port makes images with known truths behind lines.
//
// A Port is a registry with a line to it. Some of its images are used again and again; others
// are made on demand.
package port

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/checker"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/line"
	"github.com/quaymaster/quaymaster/test/e2e/env"
)

// Known is how many images of each truth are asked about again and again, in each registry.
const Known = 5

// Image is an image with its truth.
type Image struct {
	// Name is by tag.
	Name, ByDigest, Digest string
	Truth                  checker.Truth
	// New: it was not requested before.
	New bool
}

// Port is a registry with a line to it, which names its images.
type Port struct {
	Line  *line.Line
	known map[checker.Truth][]Image
	ring  []Image // images that are new in turn; empty: new ones are made

	mu     sync.Mutex // guards the fields below
	env    *env.Env
	made   int
	turn   int             // in the ring
	signed map[string]bool // digests
}

// Open starts a registry and makes the known images, and a ring of so many.
func Open(ctx context.Context, ring int) (*Port, error) {
	h, err := env.Open(registrytest.Options{})
	if err != nil {
		return nil, err
	}
	p := &Port{env: h, known: map[checker.Truth][]Image{}, signed: map[string]bool{}}
	p.Line, err = line.Listen(ctx, h.Registry.Host())
	if err != nil {
		h.Close()
		return nil, err
	}
	for _, truth := range []checker.Truth{checker.Signed, checker.Unsigned, checker.Foreign} {
		for range Known {
			made, err := p.make(truth)
			if err != nil {
				p.Close()
				return nil, err
			}
			made.New = false
			p.known[truth] = append(p.known[truth], made)
		}
	}
	for n := range ring {
		made, err := p.make([]checker.Truth{checker.Signed, checker.Unsigned}[n%2])
		if err != nil {
			p.Close()
			return nil, err
		}
		p.ring = append(p.ring, made)
	}
	return p, nil
}

// Close ends the registry.
func (p *Port) Close() {
	p.Line.Close()
	p.env.Close()
}

// make makes an image like no other, in a repository of its own.
func (p *Port) make(truth checker.Truth) (Image, error) {
	p.made++
	repository := fmt.Sprint(strings.ReplaceAll(string(truth), " ", "-"), "/", p.made)
	var image gatetest.Image
	var err error
	switch truth {
	case checker.Signed:
		image, err = p.env.Signed(repository, "1.0")
		p.signed[image.Manifest.Digest] = true
	case checker.Foreign:
		image, err = p.env.SignedBy(p.env.Stranger, repository, "1.0")
	default:
		image = p.env.Unsigned(repository, "1.0")
	}
	here := func(name string) string {
		return strings.Replace(name, p.env.Registry.Host(), p.Line.Address(), 1)
	}
	return Image{Name: here(image.Name), ByDigest: here(image.ByDigest()), Digest: image.Manifest.Digest, Truth: truth, New: true}, err
}

// Image returns one of the known images of a truth.
func (p *Port) Image(truth checker.Truth, number int) Image {
	return p.known[truth][number%Known]
}

// Root is a trusted root, in which nothing is that policies here need.
func (p *Port) Root() []byte { return p.env.Sigstore.TrustedRoot() }

// Elsewhere is a policy for other namespaces than any of the load.
func (p *Port) Elsewhere(name string) (string, error) {
	return p.env.YAML(env.Policy{Name: name, Namespaces: []string{"elsewhere-*"}})
}

// New returns an image that was not requested before; with a ring, one that was not requested
// for long, in the end.
func (p *Port) New(truth checker.Truth) (Image, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ring) == 0 {
		return p.make(truth)
	}
	p.env.Registry.Reset() // its log of requests is of no use here
	for range p.ring {
		p.turn++
		if next := p.ring[p.turn%len(p.ring)]; next.Truth == truth {
			return next, nil
		}
	}
	return Image{}, fmt.Errorf("no image of the ring is %s", truth)
}

// Images are the known ones and those of the ring.
func (p *Port) Images() []Image {
	all := slices.Clone(p.ring)
	for _, images := range p.known {
		all = append(all, images...)
	}
	return all
}

// AddSigned adds the digests of signed images to a set.
func (p *Port) AddSigned(set map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for digest := range p.signed {
		set[digest] = true
	}
}

// Policy wants images of the registry to be signed, in the namespaces of a pattern, and the API
// server to wait for that for so long.
func (p *Port) Policy(name, namespaces string, seconds int) (string, error) {
	return p.env.YAML(env.Policy{
		Name: name, Namespaces: []string{namespaces}, Images: []string{p.Line.Address() + "/*"},
		Spec: map[string]any{"webhookTimeoutSeconds": seconds},
	})
}
