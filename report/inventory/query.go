package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/report/inventory/internal/state"
	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
	"github.com/quaymaster/quaymaster/report/inventory/internal/view"
)

// Sort is the order of a list of images.
type Sort string

// The orders. Equal images are sorted by reference.
const (
	ByAttention Sort = "attention" // denied first; the default
	ByReference Sort = "reference"
	BySigner    Sort = "signer"
	ByPods      Sort = "pods"  // the most first
	ByLastSeen  Sort = "seen"  // the latest first
	ByState     Sort = "state" // running ones first, then refused ones; each by attention
)

// Sorts returns all orders.
func Sorts() []Sort { return []Sort{ByAttention, ByReference, BySigner, ByPods, ByLastSeen, ByState} }

// ImageQuery selects images. Empty fields select everything.
type ImageQuery struct {
	// Text is searched in references, digests, signers and workloads, case-insensitively.
	Text string
	// Verdict is the image's verdict.
	Verdict Verdict
	// Namespace is a namespace of a workload that runs the image, or was denied.
	Namespace string
	// Signer is searched in the names, identities, issuers and key fingerprints of signers,
	// case-insensitively.
	Signer string
	// Key is a prefix of a key's fingerprint.
	Key string
	// State is running, refused or other; see Image.State.
	State State
	// Policy is the ID of a policy that matches the image. Failed restricts it to images that do
	// not pass.
	Policy string
	Failed bool
	// Digest is a prefix of the image's digest.
	Digest string
	// Sort is the order, and Reverse inverts it.
	Sort    Sort
	Reverse bool
	Page    Page
}

// Page is a page of a list.
type Page struct {
	// Offset is the number of skipped elements. Limit is the size of the page: 50 if it is 0, and
	// MaxPage at most.
	Offset, Limit int
}

// check rejects invalid pages.
func (p *Page) check() error {
	if p.Limit == 0 {
		p.Limit = 50
	}
	if p.Offset < 0 || p.Limit < 0 || p.Limit > MaxPage {
		return fmt.Errorf("page: want an offset of 0 or more and a limit of 1 to %d", MaxPage)
	}
	return nil
}

// of returns the bounds of the page in a list of n.
func (p Page) of(n int) (from, to int) {
	from = min(p.Offset, n)
	return from, min(from+p.Limit, n)
}

// ImagePage is a page of the matching images.
type ImagePage struct {
	// Total counts all matching images. Verdicts counts them by verdict, ignoring the query's
	// verdict, and States by state, ignoring the query's state.
	Total    int          `json:"total"`
	Verdicts Tally        `json:"verdicts"`
	States   view.ByState `json:"states"`
	Offset   int          `json:"offset"`
	Items    []Image      `json:"items"`
}

// Images returns the matching images, or an error for an invalid query.
func (i *Inventory) Images(q ImageQuery) (ImagePage, error) {
	q.Sort = cmp.Or(q.Sort, ByAttention)
	if err := errors.Join(q.Page.check(), oneOf("verdict", q.Verdict, append(Verdicts(), "")), oneOf("sort", q.Sort, Sorts()),
		oneOf("state", q.State, append(States(), ""))); err != nil {
		return ImagePage{}, err
	}
	q.Text, q.Signer, q.Key, q.Digest = strings.ToLower(q.Text), strings.ToLower(q.Signer), strings.ToLower(q.Key), strings.ToLower(q.Digest)
	page := ImagePage{Offset: q.Page.Offset, Items: []Image{}}
	i.mu.RLock()
	defer i.mu.RUnlock()
	var found []*entry
	for _, e := range i.images {
		if !q.asksFor(e) {
			continue
		}
		inVerdict, inState := q.Verdict == "" || e.image.Verdict == q.Verdict, q.State == "" || e.image.State() == q.State
		if inState {
			page.Verdicts.Add(e.image.Verdict)
		}
		if inVerdict {
			page.States.Add(e.image.State())
		}
		if inVerdict && inState {
			found = append(found, e)
		}
	}
	page.Total = len(found)
	slices.SortFunc(found, q.compare)
	from, to := q.Page.of(len(found))
	for _, e := range found[from:to] {
		page.Items = append(page.Items, e.image)
	}
	return page, nil
}

func oneOf[T ~string](name string, value T, choices []T) error {
	if slices.Contains(choices, value) {
		return nil
	}
	words := make([]string, 0, len(choices))
	for _, c := range choices {
		if c != "" {
			words = append(words, string(c))
		}
	}
	return fmt.Errorf("%s: want one of %s", name, strings.Join(words, ", "))
}

// asksFor matches all criteria but the verdict and the state.
func (q *ImageQuery) asksFor(e *entry) bool {
	if q.Text != "" && !strings.Contains(e.text, q.Text) || !strings.HasPrefix(e.image.Digest, q.Digest) &&
		!strings.HasPrefix(e.image.Digest, "sha256:"+q.Digest) {
		return false
	}
	if q.Namespace != "" && !e.isIn(q.Namespace) {
		return false
	}
	if q.Signer != "" && !slices.ContainsFunc(e.image.Signers, func(s Signer) bool {
		return strings.Contains(strings.ToLower(s.Name+"\n"+s.Subject+"\n"+s.Issuer+"\n"+s.KeyFingerprint), q.Signer)
	}) {
		return false
	}
	if q.Key != "" && !slices.ContainsFunc(e.image.Signers, func(s Signer) bool {
		return s.KeyFingerprint != "" && strings.HasPrefix(s.KeyFingerprint, q.Key)
	}) {
		return false
	}
	return q.Policy == "" || slices.ContainsFunc(e.results(), func(r state.Result) bool {
		return r.Policy == q.Policy && (!q.Failed || r.Kind != verdict.Pass && r.Kind != verdict.Skip)
	})
}

func (e *entry) isIn(namespace string) bool {
	for at := range e.uses {
		if at.namespace == namespace {
			return true
		}
	}
	return false
}

func (q *ImageQuery) compare(a, b *entry) int {
	order := 0
	attention := func() int {
		return cmp.Compare(slices.Index(Verdicts(), a.image.Verdict), slices.Index(Verdicts(), b.image.Verdict))
	}
	switch q.Sort {
	case ByAttention:
		order = attention()
	case ByState:
		order = cmp.Or(cmp.Compare(slices.Index(States(), a.image.State()), slices.Index(States(), b.image.State())), attention())
	case BySigner:
		order = strings.Compare(firstSigner(a), firstSigner(b))
	case ByPods:
		order = cmp.Compare(b.image.Pods, a.image.Pods)
	case ByLastSeen:
		order = b.image.LastSeen.Compare(a.image.LastSeen)
	case ByReference:
	}
	order = cmp.Or(order, strings.Compare(a.image.Reference, b.image.Reference), strings.Compare(a.image.ID, b.image.ID))
	if q.Reverse {
		return -order
	}
	return order
}

// firstSigner sorts unsigned images last.
func firstSigner(e *entry) string {
	if len(e.image.Signers) == 0 {
		return "\U0010FFFF"
	}
	return e.image.Signers[0].Name
}

// Image returns the details of one image, by its ID or its digest, and false for an unknown one.
// Of several images with one digest, it returns the most recently seen.
func (i *Inventory) Image(id string) (Details, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	e := i.images[id]
	if e == nil && strings.Contains(id, ":") {
		for _, other := range i.images {
			if other.image.Digest == id && (e == nil || other.image.LastSeen.After(e.image.LastSeen)) {
				e = other
			}
		}
	}
	if e == nil {
		return Details{}, false
	}
	proof := &e.shown().Proof
	d := Details{
		Image: e.image, References: slices.Clone(e.references), Uses: []Use{}, UsesLeftOut: e.leftOut + e.lost, Record: proof.Record(), ResultsLeftOut: proof.LeftOut,
		DecidedAt: proof.Made.UTC(), Process: proof.Process, Endpoint: proof.Endpoint, PolicySetHash: proof.Policies, TrustGeneration: proof.Trust,
	}
	for at, u := range e.uses {
		d.Uses = append(d.Uses, Use{
			APIVersion: at.apiVersion, Kind: at.kind, Namespace: at.namespace, Name: at.name, Containers: slices.Clone(u.containers),
			Pods: len(u.pods), Verdict: u.verdict, Running: u.running, Process: u.process, LastSeen: u.seen, Cause: u.cause,
		})
	}
	slices.SortFunc(d.Uses, func(a, b Use) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name), strings.Compare(a.APIVersion, b.APIVersion))
	})
	return d, true
}
