package result

import (
	"encoding/xml"
	"io"
	"strings"
)

// The elements of JUnit's XML, as CI systems read it.
type (
	junit struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		File     string      `xml:"file,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string      `xml:"classname,attr"`
		Name    string      `xml:"name,attr"`
		Failure *junitWords `xml:"failure"`
		Skipped *junitWords `xml:"skipped"`
	}
	junitWords struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes JUnit's XML.
func writeJUnit(w io.Writer, report Report) error {
	var all junit
	for _, s := range report.Suites {
		if len(s.Checks) == 0 {
			continue
		}
		one := junitSuite{Name: legal(s.Name), File: legal(s.Path)}
		for _, c := range s.Checks {
			test := junitCase{Class: legal(strings.Trim(c.Policy+"."+c.Rule, ".")), Name: legal(c.Resource)}
			said := &junitWords{Message: legal(c.Reason), Text: legal(c.Message)}
			one.Tests++
			switch c.Outcome {
			case Failed:
				if s.Error != "" {
					said.Text = legal(s.Error)
				}
				test.Failure = said
				one.Failures++
			case Skipped:
				test.Skipped = said
				one.Skipped++
			}
			one.Cases = append(one.Cases, test)
		}
		all.Tests, all.Failures, all.Skipped = all.Tests+one.Tests, all.Failures+one.Failures, all.Skipped+one.Skipped
		all.Suites = append(all.Suites, one)
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	return err
}

// legal removes the characters that XML 1.0 does not allow.
func legal(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, text)
}
