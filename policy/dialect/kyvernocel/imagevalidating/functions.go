package imagevalidating

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/internal/imagedata"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/packages"
	"github.com/quaymaster/quaymaster/verify"
)

// named is the CEL value of an attestor.
type named struct {
	at   int
	name string
}

var attestorType = types.NewOpaqueType("imageverify.attestor")

// ConvertToNative implements ref.Val; an attestor has no other form.
func (s named) ConvertToNative(is reflect.Type) (any, error) {
	return nil, fmt.Errorf("an attestor cannot become %v", is)
}

// ConvertToType implements ref.Val.
func (s named) ConvertToType(is ref.Type) ref.Val {
	return types.NewErr("an attestor cannot become %s", is.TypeName())
}

// Equal implements ref.Val.
func (s named) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(s)) }

// Type implements ref.Val.
func (s named) Type() ref.Type { return attestorType }

// Value implements ref.Val.
func (s named) Value() any { return s.name }

// values makes the variables attestors and attestations, which never change.
func (p *program) values() {
	attestors, attestations := map[string]any{}, map[string]any{}
	p.fixed = true
	for i, a := range p.attestors {
		attestors[a.Name] = named{at: i, name: a.Name}
		p.fixed = p.fixed && a.Static()
	}
	for _, a := range p.attestations {
		attestations[a.Name] = a.Name
	}
	p.attestorValues = types.NewStringInterfaceMap(types.DefaultTypeAdapter, attestors)
	p.attestationValues = types.NewStringInterfaceMap(types.DefaultTypeAdapter, attestations)
}

// functions implement the functions of expressions on the gate's answers.
func (e *evaluation) functions() map[string]cel.Call {
	calls := e.inventory.Calls()
	maps.Copy(calls, map[string]cel.Call{
		verifySignatures:   e.verifySignatures,
		verifyAttestations: e.verifyAttestations,
		extractPayload:     e.extractPayload,
		getImageData:       e.getImageData,
		vulnerabilities:    e.vulnerabilities,
		firstSignedAt:      e.firstSignedAt,
		lastSignedAt:       e.lastSignedAt,
		packages.Name:      e.packages,
	})
	return calls
}

// attestorsOf reads a list of attestors, each once: one that is named twice counts
// once.
func attestorsOf(value ref.Val) ([]int, error) {
	list, ok := value.(traits.Lister)
	if !ok {
		return nil, errors.New("want a list of attestors")
	}
	var all []int
	for it := list.Iterator(); it.HasNext() == types.True; {
		one, ok := it.Next().(named)
		if !ok {
			return nil, errors.New("want a list of attestors, as in [attestors.a, attestors.b]")
		}
		if !slices.Contains(all, one.at) {
			all = append(all, one.at)
		}
	}
	return all, nil
}

func textOfValue(value ref.Val) string {
	text, _ := value.Value().(string)
	return text
}

func (e *evaluation) verifySignatures(_ context.Context, arguments []ref.Val) (any, error) {
	attestors, err := attestorsOf(arguments[1])
	if err != nil {
		return nil, err
	}
	return e.verify(textOfValue(arguments[0]), attestors, signature)
}

func (e *evaluation) verifyAttestations(_ context.Context, arguments []ref.Val) (any, error) {
	attestors, err := attestorsOf(arguments[2])
	if err != nil {
		return nil, err
	}
	kind, err := e.kind(arguments[1])
	if err != nil {
		return nil, err
	}
	for _, a := range attestors {
		if err := e.rule.program.proves(ask{a, kind}); err != nil {
			return nil, err
		}
	}
	return e.verify(textOfValue(arguments[0]), attestors, kind)
}

func (e *evaluation) kind(value ref.Val) (int, error) {
	name := textOfValue(value)
	if at := e.rule.program.attestation(name); at >= 0 {
		return at, nil
	}
	return 0, fmt.Errorf("attestations.%s is not defined", name)
}

// verify counts the attestors that verify the images in a text: the minimum, if it names several.
func (e *evaluation) verify(text string, attestors []int, kind int) (any, error) {
	places, meant, err := e.named(text)
	most := int64(len(attestors))
	switch {
	case errors.Is(err, errLeftOut):
		return cel.Count{Upper: most, Gaps: []error{fmt.Errorf("%q: %w", kyvernocel.Shorten(text), err)}}, nil
	case len(places) > 0 && !slices.ContainsFunc(places, func(i int) bool { return slices.Contains(e.of, i) }):
		return cel.Count{Lower: most, Upper: most}, nil // an image's failure counts against that image alone
	case err != nil:
		return nil, fmt.Errorf("%q: %w", kyvernocel.Shorten(text), err)
	case !meant:
		return cel.Count{}, nil // matchImageReferences leave it out
	}
	var least cel.Count
	for n, i := range places {
		one, err := e.count(i, attestors, kind)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			least = one
			continue
		}
		least.Lower, least.Upper = min(least.Lower, one.Lower), min(least.Upper, one.Upper)
		least.Gaps = append(least.Gaps, one.Gaps...)
	}
	return least, nil
}

// count counts the attestors that verify one image. If an expression also reads the statement,
// only the chosen one counts.
func (e *evaluation) count(i int, attestors []int, kind int) (cel.Count, error) {
	var met [][]verify.Fact
	var gaps []error
	missed, open := []ask{}, 0
	for _, a := range attestors {
		one := ask{attestor: a, attestation: kind}
		answer, err := e.answer(i, one)
		if err != nil {
			return cel.Count{}, err
		}
		facts := answer.Facts
		if kind != signature {
			facts = e.ofChosen(topic{i, kind}, a, facts)
		}
		switch {
		case len(facts) > 0:
			met = append(met, facts)
		case len(answer.Gaps) > 0:
			open++
			gaps = append(gaps, wrapped(answer.Gaps)...)
		default:
			missed = append(missed, one)
		}
	}
	for _, facts := range met {
		e.meet(i, facts)
	}
	for _, one := range missed {
		if !slices.Contains(e.missed[i], one) {
			e.missed[i] = append(e.missed[i], one)
		}
	}
	_, counted := verify.Counted(met) // a signature counts once, however many attestors accept it
	lower := int64(counted)
	return cel.Count{Lower: lower, Upper: lower + int64(open), Gaps: gaps}, nil
}

// meet notes facts, each once.
func (e *evaluation) meet(i int, facts []verify.Fact) {
	for _, fact := range facts {
		if !slices.ContainsFunc(e.met[i], func(have verify.Fact) bool {
			return have.Origin == fact.Origin && have.Signer.String() == fact.Signer.String() && have.Role == fact.Role
		}) {
			e.met[i] = append(e.met[i], fact)
		}
	}
}

// ofChosen records that an attestor was evaluated for statements, and keeps those of the chosen
// one if any expression reads it.
func (e *evaluation) ofChosen(t topic, attestor int, facts []verify.Fact) []verify.Fact {
	if !slices.Contains(e.asked[t], attestor) {
		e.asked[t] = append(e.asked[t], attestor)
	}
	if !slices.Contains(e.rule.program.extracted, t.attestation) {
		return facts
	}
	e.note(t)
	if e.loose {
		return facts
	}
	list := e.statements(t.image, t.attestation)
	return slices.DeleteFunc(slices.Clone(facts), func(f verify.Fact) bool {
		at := slices.IndexFunc(list, func(s *statement) bool { return s.is(f) })
		return at < 0 || at != e.chosen[t] && !slices.Contains(e.agreed[t], at)
	})
}

// about adds the text to an error for it. A skipped image was not verified.
func about(text string, err error) error {
	err = fmt.Errorf("%q: %w", kyvernocel.Shorten(text), err)
	if errors.Is(err, errLeftOut) {
		return &cel.UnknownError{Gaps: []error{err}}
	}
	return err
}

func (e *evaluation) note(t topic) {
	if !slices.Contains(e.read, t) {
		e.read = append(e.read, t)
	}
}

// extractPayload returns the content of the chosen statement, if an attestor that this evaluation
// has already checked for it verified the statement.
func (e *evaluation) extractPayload(_ context.Context, arguments []ref.Val) (any, error) {
	kind, err := e.kind(arguments[1])
	if err != nil {
		return nil, err
	}
	place, err := e.place(arguments[0])
	if err != nil {
		return nil, err
	}
	t := topic{place, kind} // the same image, wherever it stands
	name := e.rule.program.attestations[kind].Name
	asked := e.asked[t]
	if len(asked) == 0 {
		return nil, fmt.Errorf("the payload of attestations.%s is not verified: call %s for it before, in an earlier validation or in this one",
			name, verifyAttestations)
	}
	e.note(t)
	var gaps []error
	if list := e.statements(t.image, kind); len(list) > 0 {
		chosen := list[e.chosen[t]]
		for _, a := range asked {
			answer, err := e.answer(t.image, ask{a, kind})
			if err == nil && slices.ContainsFunc(answer.Facts, chosen.is) {
				if later := answer.Unsettled(); len(later) > 0 {
					return nil, &cel.UnknownError{Gaps: wrapped(later)}
				}
				payload, err := chosen.decode(e.rule.program.attestations[kind].Artifact)
				if err != nil {
					return nil, err
				}
				return cel.Doubles(payload), nil
			}
		}
	}
	for _, a := range asked {
		if answer, err := e.answer(t.image, ask{a, kind}); err == nil {
			gaps = append(gaps, answer.Gaps...)
		}
	}
	if len(gaps) > 0 {
		return nil, &cel.UnknownError{Gaps: wrapped(gaps)}
	}
	return nil, fmt.Errorf("the payload of attestations.%s is not verified: none of the given attestors signed one", name)
}

// getImageData returns an image's own manifests and configuration.
func (e *evaluation) getImageData(ctx context.Context, arguments []ref.Val) (any, error) {
	data, err := e.Metadata(ctx, textOfValue(arguments[0]))
	if err != nil {
		return nil, err
	}
	return cel.Doubles(data), nil
}

// Metadata implements cel.ImageData.
func (e *evaluation) Metadata(ctx context.Context, text string) (map[string]any, error) {
	places, _, err := e.named(text)
	if err == nil && len(places) == 0 || errors.Is(err, errElsewhere) {
		return e.otherData(ctx, text)
	}
	if err != nil {
		return nil, about(text, err)
	}
	i := places[0]
	if data, ok := e.data[i]; ok {
		return data, nil
	}
	given := &e.given[i]
	if err := errors.Join(given.Err, given.DataErr); err != nil {
		if given.Err != nil {
			err = given.Err
		}
		return nil, &cel.UnknownError{Gaps: []error{unproved{err}}}
	}
	data, err := imagedata.Of(text, given)
	if err != nil {
		return nil, err
	}
	e.data[i] = data
	return data, nil
}
