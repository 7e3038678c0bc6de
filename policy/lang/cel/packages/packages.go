// Package packages has the functions of CEL about the packages of bills of materials: isPackage, isLicensed and
// requiresLicense. A package that a function cannot decide about is an error, in either polarity.
package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/quaymaster/quaymaster/attest/license"
	"github.com/quaymaster/quaymaster/attest/purl"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// Name is the function that returns the packages, which the dialect implements.
const Name = "packages"

const (
	isPackage       = "isPackage"
	isLicensed      = "isLicensed"
	requiresLicense = "requiresLicense"
)

// Functions declares the functions: packages(image, attestation, attestors[, age]), isPackage(package, purl[, range]),
// isLicensed(package, licences) and requiresLicense(package, licences).
func Functions() []cel.Function {
	list, text, one := celgo.ListType(celgo.DynType), celgo.StringType, celgo.MapType(celgo.StringType, celgo.DynType)
	of := []*celgo.Type{text, text, list}
	return []cel.Function{
		{Name: Name, Overloads: []cel.Overload{
			{ID: "packages_string_string_list", Arguments: of, Result: celgo.ListType(one)},
			{ID: "packages_string_string_list_duration", Arguments: append(slices.Clone(of), celgo.DurationType), Result: celgo.ListType(one)},
		}},
		{Name: isPackage, Overloads: []cel.Overload{
			{ID: "is_package_map_string", Arguments: []*celgo.Type{one, text}, Result: celgo.BoolType},
			{ID: "is_package_map_string_string", Arguments: []*celgo.Type{one, text, text}, Result: celgo.BoolType},
		}},
		{Name: isLicensed, Overloads: []cel.Overload{{ID: "is_licensed_map_list", Arguments: []*celgo.Type{one, list}, Result: celgo.BoolType}}},
		{Name: requiresLicense, Overloads: []cel.Overload{{ID: "requires_license_map_list", Arguments: []*celgo.Type{one, list}, Result: celgo.BoolType}}},
	}
}

// maxNotes bounds the notes of one validation, of which messages have the first ones.
const maxNotes = 1000

// Evaluation implements the functions for one evaluation. It is not safe for concurrent use.
type Evaluation struct {
	patterns map[string]purl.URL
	lists    map[string]license.List
	noted    map[string]bool
	notes    []string
}

// NewEvaluation makes an Evaluation.
func NewEvaluation() *Evaluation {
	return &Evaluation{patterns: map[string]purl.URL{}, lists: map[string]license.List{}, noted: map[string]bool{}}
}

// Notes returns what the functions found for a denial, each once: packages that a pattern means, or with a licence
// that does not suffice or that is required.
func (e *Evaluation) Notes() []string { return e.notes }

// Forget drops the notes.
func (e *Evaluation) Forget() {
	clear(e.noted)
	e.notes = nil
}

func (e *Evaluation) note(v *value, what string) {
	if len(e.notes) >= maxNotes {
		return
	}
	text := v.String() + what
	if !e.noted[text] {
		e.noted[text] = true
		e.notes = append(e.notes, text)
	}
}

// Calls are the implementations.
func (e *Evaluation) Calls() map[string]cel.Call {
	return map[string]cel.Call{isPackage: e.isPackage, isLicensed: e.isLicensed, requiresLicense: e.requiresLicense}
}

func (e *Evaluation) isPackage(_ context.Context, arguments []ref.Val) (any, error) {
	v, err := packageOf(isPackage, arguments[0])
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(arguments)-1)
	for i, argument := range arguments[1:] {
		texts[i], _ = argument.Value().(string)
	}
	pattern, err := e.pattern(texts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", isPackage, err)
	}
	holds, err := v.Matches(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", isPackage, err)
	}
	if holds {
		e.note(v, " is "+limit.Text(strings.Join(texts, " "), 200))
	}
	return types.Bool(holds), nil
}

// pattern parses a package URL, and a range that belongs to it.
func (e *Evaluation) pattern(texts []string) (purl.URL, error) {
	key := strings.Join(texts, "\x00")
	if have, ok := e.patterns[key]; ok {
		return have, nil
	}
	made, err := purl.Pattern(texts[0], texts[1:]...)
	if err == nil {
		e.patterns[key] = made
	}
	return made, err
}

func (e *Evaluation) isLicensed(_ context.Context, arguments []ref.Val) (any, error) {
	return e.licensed(isLicensed, arguments, func(v *value, list license.List) (bool, error) {
		holds, err := v.Licensed(list)
		if err == nil && !holds {
			e.note(v, ": "+limit.Text(v.License, 200)+" is not allowed")
		}
		return holds, err
	})
}

func (e *Evaluation) requiresLicense(_ context.Context, arguments []ref.Val) (any, error) {
	return e.licensed(requiresLicense, arguments, func(v *value, list license.List) (bool, error) {
		holds, err := v.Requires(list)
		if err == nil && holds {
			e.note(v, ": "+limit.Text(v.License, 200))
		}
		return holds, err
	})
}

func (e *Evaluation) licensed(name string, arguments []ref.Val, answer func(*value, license.List) (bool, error)) (any, error) {
	v, err := packageOf(name, arguments[0])
	if err != nil {
		return nil, err
	}
	list, err := e.list(arguments[1])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	holds, err := answer(v, list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return types.Bool(holds), nil
}

func (e *Evaluation) list(of ref.Val) (license.List, error) {
	list, ok := of.(traits.Lister)
	if !ok {
		return license.List{}, errors.New("want a list of licences")
	}
	var texts []string
	for it := list.Iterator(); it.HasNext() == types.True; {
		text, ok := it.Next().(types.String)
		if !ok || len(texts) > license.MaxEntries {
			return license.List{}, fmt.Errorf("want a list of at most %d licences, as texts", license.MaxEntries)
		}
		texts = append(texts, string(text))
	}
	key := strings.Join(texts, "\x00")
	if have, ok := e.lists[key]; ok {
		return have, nil
	}
	made, err := license.ParseList(texts)
	if err == nil {
		e.lists[key] = made
	}
	return made, err
}

// packageOf refuses other maps: an expression that makes its own has nothing verified in it.
func packageOf(function string, of ref.Val) (*value, error) {
	v, ok := of.(*value)
	if !ok {
		return nil, fmt.Errorf("%s: the first argument must be an element of %s()", function, Name)
	}
	return v, nil
}

// Check refuses calls with a package URL or a range that is written in the expression and is none.
func Check(p *cel.Program) error {
	var errs []error
	for _, call := range p.Calls(isPackage) {
		var texts []string
		for _, argument := range call.Arguments[1:] {
			if text, ok := argument.Constant(); ok {
				texts = append(texts, text)
			}
		}
		if len(texts) == len(call.Arguments)-1 {
			if _, err := purl.Pattern(texts[0], texts[1:]...); err != nil {
				errs = append(errs, fmt.Errorf("%s: %s: %w", p.Path(), isPackage, err))
			}
		}
	}
	return errors.Join(errs...)
}
