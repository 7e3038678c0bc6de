package imagevalidating

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/findings"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/packages"
	"github.com/quaymaster/quaymaster/verify"
)

// choice selects one of the verified statements for each attestation of an image; the first by
// default.
type choice map[topic]int

// selection is by which statements attestors count: the chosen ones, and others that
// are known to meet the same validations; loose, by any.
type selection struct {
	chosen choice
	agreed map[topic][]int
	loose  bool
}

// topic is an attestation of a given image.
type topic struct{ image, attestation int }

// outcome is the result of the validations for one choice.
type outcome struct {
	result  policy.Result
	faulty  bool // an expression failed, which is worse to report than not to hold
	reasons []policy.Reason
	met     map[int][]verify.Fact // by image
	missed  map[int][]ask         // by image, in the expression that does not hold
	selection
	read       []topic // of which a statement was read or counted
	activation *cel.Activation
}

func (o *outcome) ruling() policy.Ruling {
	if o.result == policy.Pass {
		return policy.Ruling{}
	}
	return policy.Ruling{Result: o.result, Reasons: o.reasons}
}

// rank orders outcomes of different choices: the best one is the answer. Data that could not be
// read may hide a better one.
func (o *outcome) rank() int {
	switch {
	case o.result == policy.Pass:
		return 3
	case o.result == policy.Indeterminate && !o.faulty:
		return 2
	case o.result == policy.Fail:
		return 1
	}
	return 0
}

// evaluation is one walk through the validations.
type evaluation struct {
	*imageEvaluation
	*outcome
	of []int
	// asked are the attestors that were evaluated for a topic so far: a payload must come from
	// one of them.
	asked map[topic][]int
	// unexcused are the findings without an excuse that the expression read.
	unexcused []string
	inventory *packages.Evaluation
}

// evaluate evaluates the validations that mention images, or those that do not, until one does
// not hold. If images are mentioned and none is given, the checks of images are skipped, and the
// same expression's checks of the object are not.
func (h *imageEvaluation) evaluate(ctx context.Context, of []int, by selection, mention bool) *outcome {
	e := &evaluation{imageEvaluation: h, of: of, asked: map[topic][]int{}, inventory: packages.NewEvaluation(), outcome: &outcome{
		result: policy.Pass, selection: by, met: map[int][]verify.Fact{}, missed: map[int][]ask{},
	}}
	inputs := h.rule.compiler.options.Inputs(h.rule.namespace)
	inputs.More, inputs.Variables = &kyvernocel.Seen{Subject: h.subject, Template: h.rule.template, Pinned: h.pinned}, map[string]any{}
	inputs.Variables[imagesName] = h.lists(of)
	inputs.Variables[attestorsName], inputs.Variables[attestationName] = h.rule.program.attestorValues, h.rule.program.attestationValues
	inputs.Functions = e.functions()
	inputs.Outside.Images = e
	e.activation = h.rule.program.scope.NewActivation(inputs)
	absent := len(of) == 0 && mention
	for i := range h.rule.program.validations {
		v := &h.rule.program.validations[i]
		if v.mentions != mention || absent && !h.left && v.vacuous || absent && h.left && !v.mixed {
			continue
		}
		clear(e.missed)
		e.unexcused = nil
		e.inventory.Forget()
		held, err := v.holds.Bool(ctx, e.activation)
		if absent && hingesOnLeft(err) {
			if err = v.holds.Hidden(ctx, e.activation, hingesOnLeft); err == nil {
				continue
			}
		}
		switch {
		case err != nil:
			e.failed(v, err)
			return e.outcome
		case !held:
			e.denied(ctx, v)
			return e.outcome
		}
	}
	return e.outcome
}

// hingesOnLeft reports whether nothing but images that are left alone keeps an
// expression from a value.
func hingesOnLeft(err error) bool {
	unknown, ok := errors.AsType[*cel.UnknownError](err)
	return ok && !slices.ContainsFunc(unknown.Gaps, func(gap error) bool { return !errors.Is(gap, errLeftOut) })
}

// failed records that an expression could not be evaluated: because of data that could not be
// read, or by its own fault, which no failure setting admits.
func (e *evaluation) failed(v *validation, err error) {
	if _, isMissing := errors.AsType[missingError](err); isMissing {
		e.result = policy.Fail // misses returns why
		return
	}
	e.result = policy.Indeterminate
	if unknown, ok := errors.AsType[*cel.UnknownError](err); ok {
		for _, gap := range unknown.Gaps {
			e.reasons = append(e.reasons, gapReason(gap, v.path))
		}
		return
	}
	reasons, faulty := kyvernocel.Reasons(err, v.path)
	e.reasons, e.faulty = append(e.reasons, reasons...), faulty
}

// unproved is a gap in the gate's verifications, as opposed to a gap in other data of
// expressions.
type unproved struct{ err error }

// Error implements error.
func (u unproved) Error() string { return u.err.Error() }

// Unwrap returns the gap.
func (u unproved) Unwrap() error { return u.err }

func wrapped(gaps []error) []error {
	list := make([]error, len(gaps))
	for i, gap := range gaps {
		list[i] = unproved{gap}
	}
	return list
}

// gapReason returns the reason for a failed read.
func gapReason(gap error, path string) policy.Reason {
	if own, ok := errors.AsType[unproved](gap); ok {
		return policy.LookReason(own.err, path)
	}
	return kyvernocel.GapReason(gap, path)
}

// denied records that a validation does not hold. If it reads statements, and some could not be
// read, one of these may satisfy it.
func (e *evaluation) denied(ctx context.Context, v *validation) {
	e.result = policy.Fail
	if err := e.hinges(ctx, v); err != nil {
		e.result = policy.Indeterminate
		e.reasons = append(e.reasons, policy.LookReason(err, v.path))
		return
	}
	reason := policy.Reason{Code: policy.Denied, Path: v.path, Message: e.words(ctx, v), Found: findings.List(append(e.unexcused, e.inventory.Notes()...))}
	if !v.extracts {
		e.reasons = append(e.reasons, reason)
		return
	}
	var gaps []error
	for _, t := range e.read {
		if list := e.statements(t.image, t.attestation); len(list) > 0 {
			fact := list[e.chosen[t]].fact
			reason.Code, reason.Where = policy.ConditionFailed, fact.Origin.String()
		}
		for _, a := range e.asked[t] {
			if answer, err := e.answer(t.image, ask{a, t.attestation}); err == nil {
				gaps = append(gaps, answer.Gaps...)
			}
		}
	}
	e.reasons = append(e.reasons, reason)
	if len(gaps) > 0 {
		e.result = policy.Indeterminate
		for _, gap := range gaps {
			e.reasons = append(e.reasons, policy.LookReason(gap, v.path))
		}
	}
}

// hinges returns why an image has no digest yet that will be pinned, if the validation
// would not fail the same with one.
func (e *evaluation) hinges(ctx context.Context, v *validation) error {
	guessed := e.guess()
	if guessed == nil {
		return nil
	}
	with := guessed.evaluate(ctx, e.of, e.selection, v.mentions)
	if with.result == policy.Fail {
		return nil
	}
	return e.unresolved
}

// words is the author's message.
func (e *evaluation) words(ctx context.Context, v *validation) string {
	return cmp.Or(kyvernocel.MessageOf(ctx, v.words, e.activation), v.message)
}

// hear searches for a choice of statements on which every validation holds. An attestor that must
// not have signed any statement counts by all of them: the validations must hold then, too.
func (h *imageEvaluation) hear(ctx context.Context, of []int) *outcome {
	best := h.choose(ctx, of)
	if best.result != policy.Pass || !h.hasChoice(best) {
		return best
	}
	if all := h.evaluate(ctx, of, selection{chosen: best.chosen, agreed: best.agreed, loose: true}, true); all.result != policy.Pass {
		return all
	}
	return best
}

// choose returns the best outcome of any choice. One statement must satisfy type, signer and
// condition together, and a stale or foreign one neither helps nor harms. If several signers are
// required, each may have a separate statement that satisfies them.
func (h *imageEvaluation) choose(ctx context.Context, of []int) *outcome {
	best := h.evaluate(ctx, of, selection{}, true)
	if best.result == policy.Pass || !h.hasChoice(best) {
		return best
	}
	if len(of) > 1 {
		start := selection{chosen: choice{}, agreed: map[topic][]int{}}
		for _, i := range of {
			alone := h.hearAlone(ctx, i)
			maps.Copy(start.chosen, alone.chosen)
			maps.Copy(start.agreed, alone.agreed)
		}
		if joint := h.evaluate(ctx, of, start, true); joint.rank() > best.rank() {
			best = joint
		}
	}
	return h.search(ctx, of, best)
}

// search tries the choices one by one, from the best that is known.
func (h *imageEvaluation) search(ctx context.Context, of []int, best *outcome) *outcome {
	open := h.open(best, nil)
	var agreeing []choice
	for tried := 0; best.result != policy.Pass; tried++ {
		if len(of) == 1 { // the result if every signature on any of the statements counts
			chosen := open.choice()
			said := h.evaluate(ctx, of, selection{chosen: chosen, loose: true}, true)
			if said.result == policy.Pass {
				agreeing = append(agreeing, chosen)
			}
			open = h.open(said, open)
		}
		next := h.next(open)
		if next == nil {
			break
		}
		if tried == maxChoices {
			best.reasons = append(best.reasons, policy.Reason{
				Code: policy.TooMuch, Path: "spec.validations", Message: fmt.Sprintf("more than %d combinations of statements", maxChoices),
				Hint: hint.FewerStale,
			})
			return best
		}
		found := h.evaluate(ctx, of, selection{chosen: next}, true)
		if found.rank() > best.rank() {
			best = found
		}
		open = h.open(found, open)
	}
	if by, ok := together(agreeing, open.topics); ok && best.result != policy.Pass {
		if joint := h.evaluate(ctx, of, by, true); joint.rank() > best.rank() {
			best = joint
		}
	}
	return best
}

// together accepts signatures on all statements of some choices, if every combination of the
// statements is one of the choices: otherwise one signer's statement could supply content that
// another's lacks.
func together(choices []choice, topics []topic) (selection, bool) {
	if len(choices) == 0 {
		return selection{}, false
	}
	by := selection{chosen: choices[0], agreed: map[topic][]int{}}
	combinations := 1
	for _, t := range topics {
		for _, c := range choices {
			if !slices.Contains(by.agreed[t], c[t]) {
				by.agreed[t] = append(by.agreed[t], c[t])
			}
		}
		combinations *= len(by.agreed[t])
	}
	return by, combinations == len(choices)
}

// hearAlone is hear for one image, once.
func (h *imageEvaluation) hearAlone(ctx context.Context, i int) *outcome {
	found, ok := h.alone[i]
	if !ok {
		found = h.hear(ctx, []int{i})
		if h.alone == nil {
			h.alone = map[int]*outcome{}
		}
		h.alone[i] = found
	}
	return found
}

func (h *imageEvaluation) hasChoice(o *outcome) bool {
	return slices.ContainsFunc(o.read, func(t topic) bool { return len(h.statements(t.image, t.attestation)) > 1 })
}

// counter counts through the choices of some topics.
type counter struct {
	topics []topic
	digits []int
}

// open adds the topics that an evaluation read to those that are counted through.
func (h *imageEvaluation) open(o *outcome, c *counter) *counter {
	if c == nil {
		c = &counter{}
	}
	for _, t := range o.read {
		if len(h.statements(t.image, t.attestation)) > 1 && !slices.Contains(c.topics, t) {
			c.topics, c.digits = append(c.topics, t), append(c.digits, 0)
		}
	}
	return c
}

// next returns the next choice; nil after the last.
func (h *imageEvaluation) next(c *counter) choice {
	for i, t := range c.topics {
		c.digits[i]++
		if c.digits[i] < len(h.statements(t.image, t.attestation)) {
			return c.choice()
		}
		c.digits[i] = 0
	}
	return nil
}

// choice is the one that the counter shows.
func (c *counter) choice() choice {
	made := choice{}
	for i, t := range c.topics {
		made[t] = c.digits[i]
	}
	return made
}
