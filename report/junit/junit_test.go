package junit_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/finding"
	"github.com/quaymaster/quaymaster/report/junit"
)

// element describes an element as Jenkins' junit-10.xsd does: its children, its
// attributes, and the required ones. Elements without an entry hold text alone.
type element struct{ holds, may, must []string }

var detail = element{may: []string{"type", "message"}}

var xsd = map[string]element{
	"testsuites": {holds: []string{"testsuite"}, may: []string{"name", "time", "tests", "failures", "errors"}},
	"testsuite": {
		holds: []string{"testsuite", "properties", "testcase", "system-out", "system-err"},
		may:   []string{"name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
		must:  []string{"name", "tests", "failures", "errors"},
	},
	"testcase": {
		holds: []string{"skipped", "error", "failure", "system-out", "system-err"},
		may:   []string{"name", "time", "classname", "group"}, must: []string{"name"},
	},
	"properties": {holds: []string{"property"}},
	"property":   {may: []string{"name", "value"}, must: []string{"name", "value"}},
	"failure":    detail, "error": detail, "skipped": detail, "system-out": {},
}

// counts are those of the cases in a suite, or in all.
type counts struct{ tests, failures, errors, skipped int }

// read holds a document against the schema, and each suite's counts against its cases.
func read(document string) (all counts, err error) {
	decoder := xml.NewDecoder(strings.NewReader(document))
	var (
		open  []string
		told  []counts // by the suite's attributes
		found counts
	)
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return all, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			name := token.Name.Local
			if err := allowed(open, token); err != nil {
				return all, err
			}
			open = append(open, name)
			switch name {
			case "testsuite":
				told, found = append(told, attributes(token)), counts{}
			case "testcase":
				found.tests++
			case "failure":
				found.failures++
			case "error":
				found.errors++
			case "skipped":
				found.skipped++
			}
		case xml.EndElement:
			open = open[:len(open)-1]
			if token.Name.Local != "testsuite" {
				continue
			}
			if last := told[len(told)-1]; last != found {
				return all, fmt.Errorf("suite %d declares %+v and has %+v", len(told), last, found)
			}
			all = counts{all.tests + found.tests, all.failures + found.failures, all.errors + found.errors, all.skipped + found.skipped}
		}
	}
	return all, nil
}

func allowed(open []string, token xml.StartElement) error {
	name := token.Name.Local
	def, known := xsd[name]
	if !known || len(open) == 0 && name != "testsuites" || len(open) > 0 && !slices.Contains(xsd[open[len(open)-1]].holds, name) {
		return fmt.Errorf("%s in %v", name, open)
	}
	must := slices.Clone(def.must)
	for _, a := range token.Attr {
		if !slices.Contains(def.may, a.Name.Local) {
			return fmt.Errorf("%s has %s", name, a.Name.Local)
		}
		must = slices.DeleteFunc(must, func(m string) bool { return m == a.Name.Local })
	}
	if len(must) > 0 {
		return fmt.Errorf("%s lacks %v", name, must)
	}
	return nil
}

func attributes(token xml.StartElement) counts {
	value := map[string]int{}
	for _, a := range token.Attr {
		value[a.Name.Local], _ = strconv.Atoi(a.Value)
	}
	return counts{value["tests"], value["failures"], value["errors"], value["skipped"]}
}

// TestSchema validates the output for every scenario of package report against Jenkins'
// schema.
func TestSchema(t *testing.T) {
	files, err := filepath.Glob("../testdata/formats/*.xml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d documents: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := read(string(text)); err != nil || all.tests == 0 {
			t.Errorf("%s: %+v: %v", file, all, err)
		}
	}
	for reason, broken := range map[string]string{
		"wrong counts":      `<testsuites><testsuite name="a" tests="2" failures="0" errors="0"><testcase name="b"/></testsuite></testsuites>`,
		"unknown attribute": `<testsuites><testsuite name="a" tests="1" failures="0" errors="0"><testcase name="b" line="1"/></testsuite></testsuites>`,
		"case outside":      `<testsuites><testcase name="b"/></testsuites>`,
		"no name":           `<testsuites><testsuite tests="0" failures="0" errors="0"/></testsuites>`,
	} {
		if _, err := read(broken); err == nil {
			t.Errorf("the reader lets %s pass", reason)
		}
	}
}

func run(status finding.Status, s string) finding.Run {
	return finding.Run{Objects: []finding.Object{{
		Title: s, Source: s, Template: s, Result: gate.Deny,
		Findings: []finding.Finding{{
			Status: status, Image: s, Place: s, Policy: s, Rule: s, Exception: s,
			Reasons: []policy.Reason{{Code: policy.Code(s), Message: s, Path: s, Hint: s}},
		}},
	}}}
}

func write(t testing.TB, of finding.Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := junit.Write(&b, of); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestKinds: a denial is a failure, an image that could not be verified an error, and an exempt
// one is skipped.
func TestKinds(t *testing.T) {
	for status, want := range map[finding.Status]counts{
		finding.Deny: {1, 1, 0, 0}, finding.Error: {1, 0, 1, 0}, finding.Skip: {1, 0, 0, 1},
		finding.Pass: {1, 0, 0, 0}, finding.Warn: {1, 0, 0, 0}, "": {1, 0, 1, 0},
	} {
		of := run(status, "x")
		of.Objects = append(of.Objects, run(finding.Pass, "y").Objects...) // something was verified
		want.tests++
		if got, err := read(write(t, of)); err != nil || got != want {
			t.Errorf("%q: %+v, want %+v: %v", status, got, want, err)
		}
	}
}

// FuzzWrite puts foreign text into every field.
func FuzzWrite(f *testing.F) {
	f.Add("x\n]]>&<script>\"'`\x1b[31m\u202e\xff\x00\ufffe")
	f.Fuzz(func(t *testing.T, s string) {
		for _, status := range []finding.Status{finding.Deny, finding.Error, finding.Skip, finding.Warn, finding.Note} {
			text := write(t, run(status, s))
			if all, err := read(text); err != nil || all.tests == 0 {
				t.Errorf("%q: %+v: %v\n%s", s, all, err, text)
			}
		}
	})
}

func ExampleWrite() {
	if err := junit.Write(os.Stdout, finding.Of(report.Failed("the trusted root could not be fetched"))); err != nil {
		fmt.Println(err)
	}
	// Output:
	// <?xml version="1.0" encoding="UTF-8"?>
	// <testsuites name="quaymaster" tests="1" failures="0" errors="1">
	//   <testsuite name="quaymaster" tests="1" failures="0" errors="1" skipped="0" id="0">
	//     <testcase name="something was verified" classname="quaymaster">
	//       <error type="not-decided" message="nothing was decided: the trusted root could not be fetched">nothing was decided: the trusted root could not be fetched</error>
	//     </testcase>
	//   </testsuite>
	// </testsuites>
}
