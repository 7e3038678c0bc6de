package junit

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/quaymaster/quaymaster/report/finding"
)

// The elements, with their attributes in the schema's order.
type (
	suites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Suites   []suite  `xml:"testsuite"`
	}
	suite struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
		Skipped  int    `xml:"skipped,attr"`
		// ID distinguishes suites with the same name.
		ID         int         `xml:"id,attr"`
		File       string      `xml:"file,attr,omitempty"`
		Properties *properties `xml:"properties"`
		Cases      []testcase  `xml:"testcase"`
	}
	properties struct {
		List []property `xml:"property"`
	}
	property struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	testcase struct {
		Name      string  `xml:"name,attr"`
		ClassName string  `xml:"classname,attr"`
		Skipped   *detail `xml:"skipped"`
		Error     *detail `xml:"error"`
		Failure   *detail `xml:"failure"`
		// Out is the output of a passing case.
		Out string `xml:"system-out,omitempty"`
	}
	detail struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// Write writes a run.
func Write(w io.Writer, of finding.Run) error {
	all := suites{Name: "quaymaster"}
	if why := of.Unverified(); why != "" {
		all.add(nothing(of, why))
	}
	for i := range of.Objects {
		all.add(ofObject(&of.Objects[i]))
	}
	var buffer bytes.Buffer
	buffer.WriteString(xml.Header)
	encoder := xml.NewEncoder(&buffer)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return fmt.Errorf("write findings as JUnit: %w", err)
	}
	buffer.WriteByte('\n')
	if _, err := w.Write(buffer.Bytes()); err != nil {
		return fmt.Errorf("write findings as JUnit: %w", err)
	}
	return nil
}

func (s *suites) add(one suite) {
	one.ID = len(s.Suites)
	s.Suites = append(s.Suites, one)
	s.Tests, s.Failures, s.Errors = s.Tests+one.Tests, s.Failures+one.Failures, s.Errors+one.Errors
}

// nothing is the suite of a run that decided or verified nothing.
func nothing(of finding.Run, why string) suite {
	made := suite{Name: "quaymaster"}
	one := testcase{Name: "something was verified", ClassName: "quaymaster"}
	if of.Error != "" {
		one.Error = &detail{Type: "not-decided", Message: why, Text: why}
	} else {
		one.Skipped = &detail{Type: "nothing-verified", Message: why, Text: why}
	}
	made.add(one)
	return made
}

func (s *suite) add(one testcase) {
	s.Cases = append(s.Cases, one)
	s.Tests++
	switch {
	case one.Failure != nil:
		s.Failures++
	case one.Error != nil:
		s.Errors++
	case one.Skipped != nil:
		s.Skipped++
	}
}

func ofObject(o *finding.Object) suite {
	made := suite{Name: o.Title, File: fileOf(o), Properties: &properties{}}
	for _, p := range []property{{"result", string(o.Result)}, {"source", o.Source}, {"template", o.Template}} {
		if p.Value != "" {
			made.Properties.List = append(made.Properties.List, p)
		}
	}
	for i := range o.Findings {
		made.add(ofFinding(o, &o.Findings[i]))
	}
	return made
}

func fileOf(o *finding.Object) string {
	file, _, _ := strings.Cut(o.Source, ", document")
	return file
}

// ofFinding makes the case of one rule and image.
func ofFinding(o *finding.Object, f *finding.Finding) testcase {
	one := testcase{Name: f.Subject(*o), ClassName: strings.ReplaceAll(o.Title, " ", "/")}
	switch {
	case f.Policy != "":
		one.Name = f.Who() + ": " + one.Name
	case f.Status == finding.Note || f.Status == finding.Warn:
		one.Name += ": " + string(f.Code())
	}
	told := &detail{Type: string(f.Code()), Message: f.Sentence(*o), Text: strings.Join(f.Details(*o), "\n")}
	switch f.Status {
	case finding.Deny:
		one.Failure = told
	case finding.Pass, finding.Note:
		one.Out = f.Reasons[0].Message
	case finding.Warn:
		one.Out = "warning: " + told.Message + "\n" + told.Text
	case finding.Skip:
		one.Skipped = told
	default:
		one.Error = told
	}
	return one
}
