package imagevalidating

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/verify"
)

// missingError means that an attestor has certainly signed nothing.
type missingError struct{ function, attestor string }

// Error implements error.
func (m missingError) Error() string {
	return m.function + ": nothing is signed by attestors." + m.attestor
}

// firstSignedAt returns the verified time of the first signature of an attestor, or of its first statement:
// firstSignedAt(image, [attestors.a]), firstSignedAt(image, attestations.sbom, [attestors.a]). Of several
// attestors the last one counts, so that an old signature of one makes another's no older.
func (e *evaluation) firstSignedAt(_ context.Context, arguments []ref.Val) (any, error) {
	return e.signedAt(firstSignedAt, arguments, func(a, b time.Time) bool { return a.After(b) })
}

// lastSignedAt returns the verified time of the last signature of an attestor, or of its latest statement.
// Of several attestors the first one counts, so that a fresh signature of one makes another's no fresher.
func (e *evaluation) lastSignedAt(_ context.Context, arguments []ref.Val) (any, error) {
	return e.signedAt(lastSignedAt, arguments, time.Time.Before)
}

// signedAt returns the time of the attestor whose time counts, by whether it replaces another's.
func (e *evaluation) signedAt(function string, arguments []ref.Val, replaces func(a, b time.Time) bool) (any, error) {
	place, err := e.place(arguments[0])
	if err != nil {
		return nil, err
	}
	kind := signature
	if len(arguments) == 3 {
		kind, err = e.kind(arguments[1])
		if err != nil {
			return nil, err
		}
	}
	attestors, err := attestorsOf(arguments[len(arguments)-1])
	if err != nil {
		return nil, err
	}
	if len(attestors) == 0 {
		return nil, fmt.Errorf("%s: the list of attestors is empty", function)
	}
	var counts time.Time
	for _, a := range attestors {
		at, err := e.timeOf(function, place, ask{a, kind})
		if err != nil {
			return nil, err
		}
		if counts.IsZero() || replaces(at, counts) {
			counts = at
		}
	}
	return types.Timestamp{Time: counts}, nil
}

// timeOf returns the time of one attestor's evidence.
func (e *evaluation) timeOf(function string, i int, one ask) (time.Time, error) {
	of := e.rule.program.attestors[one.attestor]
	if err := e.rule.program.proves(one); err != nil {
		return time.Time{}, err
	}
	answer, err := e.answers(i, one)
	switch {
	case err != nil:
		return time.Time{}, err
	case len(answer.Gaps) > 0: // what could not be read may be earlier, or later
		return time.Time{}, &cel.UnknownError{Gaps: wrapped(answer.Gaps)}
	case len(answer.Facts) == 0:
		if !slices.Contains(e.missed[i], one) {
			e.missed[i] = append(e.missed[i], one)
		}
		return time.Time{}, missingError{function, of.Name}
	}
	at, facts := age.Earliest(answer.Facts)
	if function == lastSignedAt {
		if one.attestation != signature {
			answer.Facts = verify.Latest(answer.Facts)
		}
		at, facts = age.Latest(answer.Facts)
	}
	if at.At.IsZero() {
		return at.At, &cel.UnknownError{Gaps: wrapped([]error{fmt.Errorf("%s: attestors.%s: %w", function, of.Name, age.ErrUnknown)})}
	}
	e.meet(i, facts)
	return at.At, nil
}

// findTimes collects the questions of firstSignedAt and lastSignedAt.
func (p *program) findTimes(each *cel.Program) (errs []error) {
	for _, name := range []string{firstSignedAt, lastSignedAt} {
		for _, call := range each.Calls(name) {
			if len(call.Arguments) == 3 {
				errs = append(errs, p.findSigned(each.Path(), call, 1))
				continue
			}
			for _, a := range p.named(call, 1) {
				p.ask(a, signature)
			}
		}
	}
	return errs
}
