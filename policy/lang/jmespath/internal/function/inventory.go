package function

import (
	"fmt"

	"github.com/quaymaster/quaymaster/attest/document"
	"github.com/quaymaster/quaymaster/attest/license"
	"github.com/quaymaster/quaymaster/attest/purl"
	"github.com/quaymaster/quaymaster/attest/sbom"
	"github.com/quaymaster/quaymaster/attest/vulnerability"
)

// inventoryFunctions read the predicates of verified attestations: bills of materials, scans and VEX documents. A
// package or a version that they cannot decide about is an error.
func inventoryFunctions() map[string]Function {
	const predicate = Object | String
	return map[string]Function{
		"packages":                   {Arguments: []Kind{predicate}, Call: packages, Cost: inventoryCost, Shallow: true},
		"packages_of":                {Arguments: []Kind{predicate, String}, Call: packagesOf, Cost: inventoryCost, Shallow: true},
		"packages_not_licensed":      {Arguments: []Kind{predicate, Array}, Call: packagesNotLicensed, Cost: inventoryCost, Shallow: true},
		"packages_requiring_license": {Arguments: []Kind{predicate, Array}, Call: packagesRequiringLicense, Cost: inventoryCost, Shallow: true},
		"vulnerabilities":            {Arguments: []Kind{predicate, predicate | Array}, Call: vulnerabilities, Cost: inventoryCost, Shallow: true},
	}
}

// entryCost is the cost of reading an entry of a document, as of a small object.
const entryCost = 384

// inventoryCost is that of reading the documents of a call.
func inventoryCost(a Arguments) (int, error) {
	cost := 0
	for _, argument := range a {
		if text, ok := argument.(string); ok {
			cost += 6 * len(text) // as parse_json
			continue
		}
		for _, n := range append(document.Of(argument).List(), document.Of(argument)) {
			for _, name := range []string{"packages", "components", "@graph", "matches", "Results", "results", "statements", "vulnerabilities"} {
				cost += entryCost * len(n.Get(name).List())
			}
		}
	}
	return cost, nil
}

func packages(a Arguments) (any, error) {
	return chosen(a, func(*sbom.Package) (bool, error) { return true, nil })
}

func packagesOf(a Arguments) (any, error) {
	pattern, err := purl.Parse(a.Text(1))
	if err != nil {
		return nil, err
	}
	return chosen(a, func(p *sbom.Package) (bool, error) { return p.Matches(pattern) })
}

func packagesNotLicensed(a Arguments) (any, error) {
	list, err := licenses(a)
	if err != nil {
		return nil, err
	}
	return chosen(a, func(p *sbom.Package) (bool, error) {
		holds, err := p.Licensed(list)
		return !holds, err
	})
}

func packagesRequiringLicense(a Arguments) (any, error) {
	list, err := licenses(a)
	if err != nil {
		return nil, err
	}
	return chosen(a, func(p *sbom.Package) (bool, error) { return p.Requires(list) })
}

func licenses(a Arguments) (license.List, error) {
	var texts []string
	for i, each := range a.List(1) {
		text, ok := each.(string)
		if !ok {
			return license.List{}, fmt.Errorf("licence %d is not a string", i+1)
		}
		texts = append(texts, text)
	}
	return license.ParseList(texts)
}

// chosen returns the packages of a document that meet a condition.
func chosen(a Arguments, meets func(*sbom.Package) (bool, error)) (any, error) {
	bill, err := sbom.Parse(a[0])
	if err != nil {
		return nil, err
	}
	list := []any{}
	for i := range bill.Packages {
		p := &bill.Packages[i]
		holds, err := meets(p)
		if err != nil {
			return nil, err
		}
		if holds {
			list = append(list, map[string]any{"name": p.Name, "version": p.Version, "purl": p.URL, "license": p.License})
		}
	}
	return list, nil
}

// vulnerabilities joins a scan with VEX documents, of which the severest statement counts: predicates have no
// verified time. The image is not known here, so that a statement about it by a digest excuses nothing.
func vulnerabilities(a Arguments) (any, error) {
	found, err := vulnerability.ParseScan(a[0])
	if err != nil {
		return nil, err
	}
	documents, ok := a[1].([]any)
	if !ok {
		documents = []any{a[1]}
	}
	sources := make([]vulnerability.Source, len(documents))
	for i, each := range documents {
		sources[i].Statements, err = vulnerability.ParseVEX(each)
		if err != nil {
			return nil, err
		}
	}
	results, err := vulnerability.Join(found, sources, vulnerability.Image{})
	if err != nil {
		return nil, err
	}
	list := make([]any, len(results))
	for i := range results {
		list[i] = results[i].Value()
	}
	return list, nil
}
