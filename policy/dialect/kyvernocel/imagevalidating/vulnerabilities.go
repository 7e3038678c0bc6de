package imagevalidating

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/findings"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/verify"
)

// vulnerabilities returns the findings of the latest scan of each attestor of scans, each with the VEX
// statement about it, of an attestor of VEX documents: vulnerabilities(image, attestations.scan,
// [attestors.scanner], attestations.vex, [attestors.security], duration("72h")). Without the age, scans
// of any age count.
func (e *evaluation) vulnerabilities(_ context.Context, arguments []ref.Val) (any, error) {
	place, err := e.place(arguments[0])
	bounds, failed := e.maximumAge(vulnerabilities, arguments[5:])
	if err := cmp.Or(err, failed); err != nil {
		return nil, err
	}
	scans, missing, err := e.signed(place, arguments[1], arguments[2])
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 { // it may have other findings than an earlier one
		return nil, &cel.UnknownError{Gaps: wrapped(missing)}
	}
	statements, unread, err := e.signed(place, arguments[3], arguments[4])
	if err != nil {
		return nil, err
	}
	evidence := findings.Evidence{Scans: scans, VEX: slices.Concat(statements...), Repository: e.given[place].Check.Image.Ref.Repository(), Age: bounds}
	report, err := findings.Join(evidence)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", vulnerabilities, err)
	}
	e.unexcused = append(e.unexcused, report.Open()...)
	e.meet(place, slices.Concat(report.Scans, report.Excusing()))
	values := report.Values()
	if len(unread) > 0 {
		for i := range values {
			values[i] = cel.Partial(findings.Unstated{Finding: values[i].(map[string]any), Unread: errors.Join(wrapped(unread)...)})
		}
	}
	return cel.Doubles(values), nil
}

// place returns the position of the image in a text.
func (e *evaluation) place(argument ref.Val) (int, error) {
	text := textOfValue(argument)
	places, meant, err := e.named(text)
	if err == nil && !meant {
		err = errors.New("spec.matchImageReferences do not mean the image")
	}
	if err != nil {
		return 0, about(text, err)
	}
	return places[0], nil
}

// maximumAge reads the optional bound of the age.
func (e *evaluation) maximumAge(function string, arguments []ref.Val) (age.Bounds, error) {
	bounds := age.Bounds{By: function, At: e.subject.Time}
	if len(arguments) == 0 {
		return bounds, nil
	}
	most, ok := arguments[0].Value().(time.Duration)
	if !ok || most <= 0 || most > findings.MaxAge {
		return bounds, fmt.Errorf("%s: the age must be a positive duration of at most %s", function, age.Text(findings.MaxAge))
	}
	bounds.Maximum = most
	return bounds, nil
}

// signed returns the facts of an attestation by attestor, and the evidence that could not be verified and
// may be later.
func (e *evaluation) signed(i int, attestation, list ref.Val) (facts [][]verify.Fact, gaps []error, err error) {
	kind, err := e.kind(attestation)
	if err != nil {
		return nil, nil, err
	}
	attestors, err := attestorsOf(list)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range attestors {
		if err := e.rule.program.proves(ask{a, kind}); err != nil {
			return nil, nil, err
		}
		answer, err := e.answers(i, ask{a, kind})
		if err != nil {
			return nil, nil, err
		}
		facts = append(facts, answer.Facts)
		gaps = append(gaps, unsettled(answer)...)
	}
	return facts, gaps, nil
}

// proves refuses an attestation that the attestor cannot sign.
func (p *program) proves(one ask) error {
	if one.attestation == signature {
		return nil
	}
	return p.attestors[one.attestor].Proves(p.attestations[one.attestation])
}

// unsettled returns the gaps that may hide a document that counts. Those without a verified time count
// together, so that one of them settles no more than a timed one.
func unsettled(answer policy.Answer) []error {
	if len(answer.Facts) == 0 {
		return answer.Gaps
	}
	answer.Facts = slices.Clone(answer.Facts)
	for i := range answer.Facts {
		if answer.Facts[i].SignedAt.IsZero() {
			answer.Facts[i].SignedAt = time.Unix(0, 0)
		}
	}
	return answer.Unsettled()
}

// findScans collects the questions of vulnerabilities.
func (p *program) findScans(each *cel.Program) (errs []error) {
	for _, call := range each.Calls(vulnerabilities) {
		for _, at := range []int{1, 3} {
			errs = append(errs, p.findSigned(each.Path(), call, at))
		}
	}
	return errs
}
