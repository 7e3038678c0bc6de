package imagevalidating

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// imageEvaluation is the state of one call of a judge.
type imageEvaluation struct {
	*judge
	given   []policy.Given
	parties []imageInput
	// byText are the images, by place in given, that a text names.
	byText map[string][]int
	// pinned are the texts that the stored object will have, by pointer.
	pinned map[string]string
	// data are the images' own manifests, by position in given.
	data map[int]map[string]any
	// others are the manifests of other images, by their text.
	others map[string]otherData
	// alone are the outcomes of images alone.
	alone map[int]*outcome
	// unresolved is why an image that is to be pinned has no digest; nil for none.
	unresolved error
	guessed    *imageEvaluation
	// left means that the policy matches images that are not given.
	left bool
}

// imageInput is a given image.
type imageInput struct {
	*member
	text string
	// statements are the verified statements of each attestation that an expression reads.
	statements map[int][]*statement
}

// statement is a verified statement with its content.
type statement struct {
	fact    verify.Fact
	payload any
	err     error
	decoded bool
}

// newImageEvaluation makes a imageEvaluation. With a guess, images that have no digest yet have that
// one, in the texts that expressions read.
func newImageEvaluation(j *judge, given []policy.Given, guess string) *imageEvaluation {
	h := &imageEvaluation{
		judge: j, given: given, parties: make([]imageInput, len(given)), byText: map[string][]int{},
		others: map[string]otherData{}, data: map[int]map[string]any{},
	}
	meant := 0
	for i := range j.members {
		if j.members[i].meant {
			meant++
		}
	}
	h.left = meant > len(given)
	for i := range given {
		check := given[i].Check
		p := imageInput{text: check.Image.Ref.Written(), member: j.memberOf(check.Image)}
		if check.MutateDigest && check.Image.Ref.Digest().IsZero() && given[i].Pinned.IsZero() && given[i].Err != nil {
			h.unresolved = given[i].Err
			p.text += guess
		}
		if check.MutateDigest && check.Image.Ref.Digest().IsZero() && !given[i].Pinned.IsZero() {
			p.text = given[i].Pinned.Written()
		}
		if p.text != check.Image.Ref.Written() {
			if h.pinned == nil {
				h.pinned = map[string]string{}
			}
			h.pinned[check.Image.Pointer] = p.text
		}
		h.byText[p.text] = append(h.byText[p.text], i)
		h.parties[i] = p
	}
	return h
}

// guess returns the same imageEvaluation as it would be if every image had a digest; nil if
// every one has.
func (h *imageEvaluation) guess() *imageEvaluation {
	if h.unresolved == nil {
		return nil
	}
	if h.guessed == nil {
		h.guessed = newImageEvaluation(h.judge, h.given, "@sha256:"+strings.Repeat("0", 64))
		h.guessed.unresolved = nil
	}
	return h.guessed
}

// memberOf finds the member that an image is.
func (j *judge) memberOf(found policy.Image) *member {
	for i := range j.members {
		if m := &j.members[i]; m.image.Pointer == found.Pointer && m.image.Ref == found.Ref {
			return m
		}
	}
	return &member{image: found, people: make([]person, len(j.rule.program.attestors))}
}

// lists returns the variable images: the given images of some places, by category;
// where none is given, those that are left alone.
func (h *imageEvaluation) lists(of []int) map[string]any {
	names := h.rule.program.categories
	values := make(map[string]any, len(names))
	for _, name := range names {
		var texts []string
		for _, i := range of {
			if slices.Contains(h.parties[i].categories, name) {
				texts = append(texts, h.parties[i].text)
			}
		}
		for i := range h.members {
			if m := &h.members[i]; len(h.given) == 0 && m.meant && slices.Contains(m.categories, name) {
				texts = append(texts, m.image.Ref.Written())
			}
		}
		values[name] = types.NewStringList(types.DefaultTypeAdapter, texts)
	}
	return values
}

// These errors say why a text names none of the given images.
var (
	errLeftOut = errors.New(
		"the image is not evaluated: it ran before this update, or an exception excludes it; let the expression read images.containers, which omits it")
	errElsewhere = errors.New("the text names no image of the object, and no other one is verified")
)

// named returns the given images in a text. Other images that the policy matches are skipped,
// without a verification. Meant is false for an image that the policy does not match.
func (h *imageEvaluation) named(text string) (places []int, meant bool, err error) {
	if places := h.byText[text]; len(places) > 0 {
		return places, true, nil
	}
	ref, err := image.Parse(text)
	if err != nil {
		return nil, false, err
	}
	for i := range h.parties {
		if same(ref, h.given[i].Check.Image.Ref) || !h.given[i].Pinned.IsZero() && sameDigest(ref, h.given[i].Pinned) {
			places = append(places, i)
		}
	}
	if len(places) > 0 {
		return places, true, nil
	}
	for i := range h.members {
		if same(ref, h.members[i].image.Ref) {
			if h.members[i].meant {
				return nil, true, errLeftOut
			}
			return nil, false, nil
		}
	}
	return nil, true, errElsewhere
}

func same(a, b image.Ref) bool {
	return a.Repository() == b.Repository() && a.Digest() == b.Digest() && (a.Tag() == b.Tag() || !a.Digest().IsZero())
}

func sameDigest(a image.Ref, b image.Pinned) bool {
	return a.Repository() == b.Repository() && a.Digest() == b.Digest()
}

// answer joins the answers for an attestor: any of its authorities suffices. Of several
// statements those count that no later one of the attestor follows, by the trusted time of
// signing: an outdated report does not stand in for the current one.
func (h *imageEvaluation) answer(i int, one ask) (policy.Answer, error) {
	all, err := h.answers(i, one)
	if one.attestation != signature {
		all.Facts = verify.Latest(all.Facts)
	}
	return all, err
}

// answers joins the answers for an attestor, with earlier statements.
func (h *imageEvaluation) answers(i int, one ask) (policy.Answer, error) {
	p := h.parties[i].people[one.attestor]
	if p.err != nil {
		return policy.Answer{}, p.err
	}
	var all policy.Answer
	for _, authority := range p.authorities {
		answer := h.given[i].Answers(h.rule.program.question(one, authority))
		if len(p.authorities) == 1 {
			all = answer
			break
		}
		all.Facts = append(all.Facts, answer.Facts...)
		all.Rejections = append(all.Rejections, answer.Rejections...)
		all.Gaps = append(all.Gaps, answer.Gaps...)
	}
	return all, nil
}

// statements returns the statements of an attestation that any of the policy's attestors for it
// verified, each content once, the latest first.
func (h *imageEvaluation) statements(i, attestation int) []*statement {
	p := &h.parties[i]
	if list, ok := p.statements[attestation]; ok {
		return list
	}
	var list []*statement
	for _, one := range h.rule.program.asks {
		if one.attestation != attestation {
			continue
		}
		answer, err := h.answer(i, one)
		if err != nil {
			continue // the attestor's own evaluation reports the error
		}
		for _, fact := range answer.Facts {
			if fact.Statement != nil && !slices.ContainsFunc(list, func(s *statement) bool { return s.is(fact) }) {
				list = append(list, &statement{fact: fact})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *statement) int {
		return cmp.Or(b.fact.SignedAt.Compare(a.fact.SignedAt), bytes.Compare(a.fact.Statement.Predicate, b.fact.Statement.Predicate))
	})
	if p.statements == nil {
		p.statements = map[int][]*statement{}
	}
	p.statements[attestation] = list
	return list
}

// is reports whether a fact is of the very same statement, of which expressions see the subjects too.
func (s *statement) is(f verify.Fact) bool { return reflect.DeepEqual(f.Statement, s.fact.Statement) }

// decode returns the data for expressions: a whole in-toto statement, or the document of a signed
// referrer, as Kyverno does.
func (s *statement) decode(artifact bool) (any, error) {
	if s.decoded {
		return s.payload, s.err
	}
	s.decoded = true
	var predicate any
	s.err = json.Unmarshal(s.fact.Statement.Predicate, &predicate)
	if s.err != nil {
		return nil, s.err
	}
	s.payload = predicate
	if artifact {
		return s.payload, nil
	}
	subjects := make([]any, len(s.fact.Statement.Subjects))
	for i, subject := range s.fact.Statement.Subjects {
		digest := map[string]any{}
		for algorithm, value := range subject.Digest {
			digest[algorithm] = value
		}
		subjects[i] = map[string]any{"name": subject.Name, "digest": digest}
	}
	s.payload = map[string]any{
		"_type": s.fact.Statement.Type, "predicateType": s.fact.Statement.PredicateType, "subject": subjects, "predicate": predicate,
	}
	return s.payload, nil
}
