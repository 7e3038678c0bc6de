package imagevalidating

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/packages"
)

// packages returns the packages of the latest bill of materials of each attestor: packages(image,
// attestations.sbom, [attestors.builder], duration("720h")). Without the age, bills of any age count.
func (e *evaluation) packages(_ context.Context, arguments []ref.Val) (any, error) {
	place, err := e.place(arguments[0])
	bounds, failed := e.maximumAge(packages.Name, arguments[3:])
	if err := cmp.Or(err, failed); err != nil {
		return nil, err
	}
	bills, missing, err := e.signed(place, arguments[1], arguments[2])
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 { // it may have other packages than an earlier one
		return nil, &cel.UnknownError{Gaps: wrapped(missing)}
	}
	inventory, err := e.rule.compiler.options.Bills.Read(bills, bounds)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", packages.Name, err)
	}
	e.meet(place, inventory.Bills)
	return packages.List(inventory.Packages), nil
}

// findPackages collects the questions of packages, and refuses package URLs that are none.
func (p *program) findPackages(each *cel.Program) []error {
	errs := []error{packages.Check(each)}
	for _, call := range each.Calls(packages.Name) {
		errs = append(errs, p.findSigned(each.Path(), call, 1))
	}
	return errs
}
