// Package findings joins verified vulnerability scans of an image with verified VEX statements, for
// policies in every dialect and for requirements. Packages vulnerability and purl define the formats.
package findings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/attest/document"
	"github.com/quaymaster/quaymaster/attest/vulnerability"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/verify"
)

// Evidence is what was verified about one image.
type Evidence struct {
	// Scans are the facts of vulnerability scans, by trusted signer.
	Scans [][]verify.Fact
	// VEX are the facts of VEX documents of trusted signers.
	VEX []verify.Fact
	// Repository is that of the image.
	Repository image.Repository
	// Age bounds the age of a scan.
	Age age.Bounds
}

// ErrNoScan means that no scan was verified.
var ErrNoScan = errors.New("no vulnerability scan is verified")

// Report is the findings of the scans that count.
type Report struct {
	Results []vulnerability.Result
	// Scans are the facts with the scans; VEX are those of the statements, by Result.Source.
	Scans, VEX []verify.Fact
}

// Join reads the latest scan of each signer, by the verified time of signing, and finds the statement
// about each finding. Of one signer's scans without a verified time all count. An older scan than the
// bound does not count, and one of unknown age is age.ErrUnknown; ErrNoScan or a *verify.Rejection tell why none does.
func Join(e Evidence) (Report, error) {
	scans, err := e.current()
	if err != nil {
		return Report{}, err
	}
	report := Report{Scans: scans, VEX: e.VEX}
	var found []vulnerability.Finding
	for _, fact := range scans {
		value, err := document.Decode(fact.Statement.Predicate)
		if err != nil {
			return Report{}, fmt.Errorf("vulnerability scan of %s: %w", fact.Signer, err)
		}
		list, err := vulnerability.ParseScan(value)
		if err != nil {
			return Report{}, fmt.Errorf("signed by %s: %w", fact.Signer, err)
		}
		found = append(found, list...)
	}
	sources := make([]vulnerability.Source, len(e.VEX))
	times := age.Times(e.VEX)
	for i, fact := range e.VEX {
		value, err := document.Decode(fact.Statement.Predicate)
		if err != nil {
			return Report{}, fmt.Errorf("VEX document of %s: %w", fact.Signer, err)
		}
		statements, err := vulnerability.ParseVEX(value)
		if err != nil {
			return Report{}, fmt.Errorf("signed by %s: %w", fact.Signer, err)
		}
		sources[i] = vulnerability.Source{Statements: statements, Signer: fact.Signer.String(), At: times[i]}
	}
	report.Results, err = vulnerability.Join(found, sources, imageOf(scans, e.Repository))
	return report, err
}

// current returns the scans that count.
func (e Evidence) current() ([]verify.Fact, error) {
	scans, err := e.Age.Current(e.Scans)
	if rejection, ok := errors.AsType[*verify.Rejection](err); ok {
		return nil, rejection
	}
	if err != nil {
		return nil, fmt.Errorf("vulnerability scan: %w", err)
	}
	if len(scans) == 0 {
		return nil, ErrNoScan
	}
	return scans, nil
}

// imageOf names the image for the products of statements. The subjects of a scan are more than the
// image, such as the manifest of a platform: only the verified digest counts.
func imageOf(scans []verify.Fact, repository image.Repository) vulnerability.Image {
	is := vulnerability.Image{Repository: repository.String()}
	for _, fact := range scans {
		if digest := fact.Subject.Hex(); fact.Subject.Algorithm() == "sha256" && !slices.Contains(is.Digests, digest) {
			is.Digests = append(is.Digests, digest)
		}
	}
	return is
}

// Excusing are the facts of the statements that excuse findings, each once.
func (r Report) Excusing() (facts []verify.Fact) {
	seen := map[int]bool{}
	for i := range r.Results {
		one := &r.Results[i]
		if one.Status.Excuses() && one.Source >= 0 && !seen[one.Source] {
			seen[one.Source] = true
			facts = append(facts, r.VEX[one.Source])
		}
	}
	return facts
}

// Open are the findings without an excuse, the severest first.
func (r Report) Open() []string {
	var open []vulnerability.Result
	for _, one := range r.Results {
		if !one.Status.Excuses() {
			open = append(open, one)
		}
	}
	slices.SortStableFunc(open, func(a, b vulnerability.Result) int { return b.Severity.Rank() - a.Severity.Rank() })
	names := make([]string, len(open))
	for i := range open {
		names[i] = open[i].String()
	}
	return names
}

// Values are the findings as decoded JSON, for expressions.
func (r Report) Values() []any {
	list := make([]any, len(r.Results))
	for i := range r.Results {
		one := &r.Results[i]
		signer := ""
		if one.Source >= 0 && one.Source < len(r.VEX) {
			signer = r.VEX[one.Source].Signer.String()
		}
		value := one.Value()
		value["statedBy"] = signer
		list[i] = value
	}
	return list
}

// Shown bounds the findings of one message.
const Shown = 5

// List joins texts for a message: the first ones, and the number of the others.
func List(texts []string) string {
	if len(texts) <= Shown {
		return strings.Join(texts, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(texts[:Shown], "; "), len(texts)-Shown)
}

// MaxAge bounds the age of a scan that expressions may name.
const MaxAge = 10 * 365 * 24 * time.Hour
