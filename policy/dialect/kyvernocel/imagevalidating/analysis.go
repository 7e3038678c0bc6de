package imagevalidating

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/packages"
)

// look finds in the expressions, before any is evaluated, the required verifications and the
// calls that can never succeed.
func (p *program) look() error {
	p.values()
	var errs []error
	for _, each := range p.all() {
		errs = append(errs, kyvernocel.ReadsKnown(each), p.readsDefined(each), p.find(each))
	}
	for _, each := range p.extractors {
		errs = append(errs, kyvernocel.ReadsKnown(each.program))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i := range p.validations {
		v := &p.validations[i]
		v.mentions, v.extracts = mentionsImages(v.holds), len(v.holds.Calls(extractPayload)) > 0
		v.mixed = v.mentions && slices.ContainsFunc(v.holds.Reads(), kyvernocel.IsOfObject)
		p.mixed = p.mixed || v.mixed
		v.vacuous = v.mentions && p.isVacuous(v)
		p.ofObject = p.ofObject || !v.vacuous
		p.aboutObject = p.aboutObject || !v.mentions
		p.needs.of(v.holds)
		for _, role := range rolesOf(v.holds) {
			if !slices.Contains(p.roles, role) {
				p.roles = append(p.roles, role)
			}
		}
	}
	return nil
}

// readsDefined refuses attestors, attestations and images that the policy does not
// define.
func (p *program) readsDefined(each *cel.Program) error {
	var errs []error
	for _, read := range each.Reads() {
		if read.Field == "" {
			continue
		}
		switch read.Variable {
		case attestorsName:
			if p.attestor(read.Field) < 0 {
				errs = append(errs, unknownName(each.Path(), attestorsName, read.Field))
			}
		case attestationName:
			if p.attestation(read.Field) < 0 {
				errs = append(errs, unknownName(each.Path(), attestationName, read.Field))
			}
		case imagesName:
			if !slices.Contains(p.categories, read.Field) {
				errs = append(errs, field.Fail(each.Path(), "images.%s is not defined: there are %s, and what else spec.images defines",
					read.Field, strings.Join(p.categories, ", ")))
			}
		}
	}
	return errors.Join(errs...)
}

// find collects the questions of an expression. If the attestors of a call are known only during
// the evaluation, it includes all attestors.
func (p *program) find(each *cel.Program) error {
	var errs []error
	for _, call := range each.Calls(verifySignatures) {
		for _, a := range p.named(call, 1) {
			p.ask(a, signature)
		}
	}
	for _, call := range each.Calls(verifyAttestations) {
		errs = append(errs, p.findSigned(each.Path(), call, 1))
	}
	errs = append(errs, p.findScans(each)...)
	errs = append(errs, p.findTimes(each)...)
	errs = append(errs, p.findPackages(each)...)
	for _, call := range each.Calls(extractPayload) {
		kinds, _ := p.kinds(call, 1)
		if slices.Contains(kinds, -1) {
			errs = append(errs, field.Fail(each.Path(), "names an attestation that is not defined in spec.attestations"))
		}
		for _, kind := range kinds {
			if !slices.Contains(p.extracted, kind) {
				p.extracted = append(p.extracted, kind)
			}
		}
	}
	for _, name := range []string{getImageData, "GetMetadata", "getMetadata"} {
		if len(each.Calls(name)) > 0 {
			p.data = policy.DataOne
		}
	}
	return errors.Join(errs...)
}

// findSigned collects the questions of a call: the attestation of an argument, by the attestors of the next.
func (p *program) findSigned(path string, call cel.FunctionCall, at int) error {
	var errs []error
	kinds, literal := p.kinds(call, at)
	for _, kind := range kinds {
		if kind < 0 {
			errs = append(errs, field.Fail(path, "names an attestation that is not defined in spec.attestations"))
			continue
		}
		_, isKnown := argument(call, at+1).Fields(attestorsName)
		for _, a := range p.named(call, at+1) {
			err := p.attestors[a].Proves(p.attestations[kind])
			switch {
			case err == nil:
				p.ask(a, kind)
			case literal && isKnown:
				errs = append(errs, field.Fail(path, "%w", err))
			}
		}
	}
	return errors.Join(errs...)
}

func argument(call cel.FunctionCall, i int) cel.Argument {
	if i < len(call.Arguments) {
		return call.Arguments[i]
	}
	return cel.Argument{}
}

// named returns the attestors that an argument names, or all of them.
func (p *program) named(call cel.FunctionCall, i int) []int {
	var list []int
	fields, isKnown := argument(call, i).Fields(attestorsName)
	for a := range p.attestors {
		if !isKnown || slices.Contains(fields, p.attestors[a].Name) {
			list = append(list, a)
		}
	}
	return list
}

// kinds returns the attestations that an argument names, -1 for one that is not
// defined, or all of them.
func (p *program) kinds(call cel.FunctionCall, i int) (list []int, literal bool) {
	if text, ok := argument(call, i).Constant(); ok {
		return []int{p.attestation(text)}, true
	}
	fields, isKnown := argument(call, i).Fields(attestationName)
	for n := range p.attestations {
		if !isKnown || slices.Contains(fields, p.attestations[n].Name) {
			list = append(list, n)
		}
	}
	return list, isKnown && len(fields) == 1
}

func (p *program) ask(a, kind int) {
	if one := (ask{attestor: a, attestation: kind}); !slices.Contains(p.asks, one) {
		p.asks = append(p.asks, one)
	}
}

// mentionsImages reports whether an expression is about images.
func mentionsImages(p *cel.Program) bool {
	for _, read := range p.Reads() {
		if read.Variable == imagesName {
			return true
		}
	}
	for _, name := range []string{
		verifySignatures, verifyAttestations, extractPayload, getImageData, vulnerabilities, firstSignedAt, lastSignedAt, packages.Name,
	} {
		if len(p.Calls(name)) > 0 {
			return true
		}
	}
	return false
}

// isVacuous reports whether a validation holds of every object that has no image:
// it does so where nothing else is known.
func (p *program) isVacuous(v *validation) bool {
	empty := map[string]any{}
	for _, name := range p.categories {
		empty[name] = []any{}
	}
	held, err := v.holds.Bool(context.Background(), p.scope.NewActivation(cel.Inputs{Variables: map[string]any{imagesName: empty}}))
	return err == nil && held
}

// needs are the object fields that expressions read.
type needs struct {
	// object: the object itself is read, where images may be written.
	object bool
	// beyond is the first thing that is not known where only images are.
	beyond string
	// namespace: the object's namespace is read; namespaceObject: and its fields.
	namespace, namespaceObject bool
}

func (n *needs) of(p *cel.Program) {
	for _, read := range p.Reads() {
		switch read.Variable {
		case kyvernocel.ObjectName, kyvernocel.OldObjectName:
			n.object = true
			n.note(read)
		case kyvernocel.NamespaceName:
			n.namespaceObject = true
		case kyvernocel.RequestName:
			switch read.Field {
			case "kind", "resource", "requestKind", "requestResource", "dryRun":
			case "namespace":
				n.namespace = true
			default:
				n.note(read)
			}
		}
	}
}

func (n *needs) note(read cel.Read) {
	if n.beyond != "" {
		return
	}
	n.beyond = read.Variable
	if read.Field != "" {
		n.beyond += "." + read.Field
	}
}

// lacking returns why a subject of which only images are known does not do.
func (n needs) lacking(s *policy.Subject) error {
	switch {
	case !s.Bare:
		return nil
	case n.beyond != "":
		return kyvernocel.UnknownHere(n.beyond)
	case (n.namespace || n.namespaceObject) && s.Namespace == "":
		return kyvernocel.UnknownHere("the object's namespace")
	case n.namespaceObject && !s.NamespaceKnown:
		return kyvernocel.UnknownHere("the labels of the object's namespace")
	}
	return nil
}
