package sarif

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/finding"
)

const (
	schema      = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	information = "https://github.com/quaymaster/quaymaster"
	// fingerprintName has a version, for changes of the algorithm.
	fingerprintName = "quaymasterFinding/v1"
)

// The notifications' kinds.
const (
	notDecided  = "not-decided"
	notLooked   = "error"
	notVerified = "nothing-verified"
)

// Write writes a run. version is the version of the program, and may be empty.
func Write(w io.Writer, of finding.Run, version string) error {
	m := maker{rules: map[policy.Code]int{}, seen: map[string]int{}}
	m.run = run{
		Tool:       tool{Driver: driver{Name: "quaymaster", Version: report.Clean(version), InformationURI: information, Rules: []rule{}}},
		ColumnKind: "unicodeCodePoints", Results: []result{},
		Properties: map[string]any{"summary": of.Summary},
	}
	m.invocation.ExecutionSuccessful = of.Error == "" && of.Summary.Errors == 0
	if why := of.Unverified(); why != "" {
		id, level := notVerified, "warning"
		if of.Error != "" {
			id, level = notDecided, "error"
		}
		m.notify(id, level, why, nil)
	}
	for i := range of.Objects {
		for j := range of.Objects[i].Findings {
			m.add(of.Objects[i], of.Objects[i].Findings[j])
		}
	}
	m.run.Invocations = []invocation{m.invocation}
	return m.write(w)
}

// maker makes the one run.
type maker struct {
	run           run
	invocation    invocation
	rules         map[policy.Code]int // the index in the driver's rules, by code
	seen          map[string]int      // the number of results with a fingerprint
	notifications map[string]bool     // descriptors of notifications
}

func (m *maker) write(w io.Writer) error {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document{Schema: schema, Version: "2.1.0", Runs: []run{m.run}}); err != nil {
		return fmt.Errorf("write findings as SARIF: %w", err)
	}
	if _, err := w.Write(buffer.Bytes()); err != nil {
		return fmt.Errorf("write findings as SARIF: %w", err)
	}
	return nil
}

// add makes a result of a finding, unless Finding.Telling is false.
func (m *maker) add(o finding.Object, f finding.Finding) {
	if !f.Telling() {
		return
	}
	at := locate(o, f)
	made := result{
		RuleID: string(f.Code()), RuleIndex: m.rule(f), Level: levelOf(f.Status), Message: message{text(o, f)}, Locations: []location{at},
		Fingerprints: map[string]string{fingerprintName: m.fingerprint(o, f)},
		Properties: properties{
			Result: string(o.Result), Policy: f.Policy, Rule: f.Rule, Image: f.Image, Pointer: f.Pointer, Exception: f.Exception,
		},
	}
	if f.Exception != "" {
		made.Suppressions = []suppression{{Kind: "external", Status: "accepted", Justification: f.Exception}}
	}
	m.run.Results = append(m.run.Results, made)
	if f.Status == finding.Error {
		m.notify(notLooked, "error", f.Sentence(o), []location{at})
	}
}

func levelOf(status finding.Status) string {
	switch status {
	case finding.Skip, finding.Note:
		return "note"
	case finding.Warn:
		return "warning"
	default:
		return "error"
	}
}

func text(o finding.Object, f finding.Finding) string {
	return f.Sentence(o) + "\n" + strings.Join(f.Details(o), "\n")
}

// notify adds a notification, and the descriptor of its kind.
func (m *maker) notify(id, level, text string, at []location) {
	if !m.notifications[id] {
		if m.notifications == nil {
			m.notifications = map[string]bool{}
		}
		m.notifications[id] = true
		m.run.Tool.Driver.Notifications = append(m.run.Tool.Driver.Notifications,
			descriptor{ID: id, ShortDescription: message{strings.ReplaceAll(id, "-", " ")}})
	}
	m.invocation.Notifications = append(m.invocation.Notifications,
		notification{Descriptor: reference{id}, Level: level, Message: message{text}, Locations: at})
}

// rule returns the index of the rule of a finding's code. Rules have the level of failures; a
// result has its own.
func (m *maker) rule(f finding.Finding) int {
	code := f.Code()
	at, known := m.rules[code]
	if known {
		return at
	}
	at = len(m.run.Tool.Driver.Rules)
	m.rules[code] = at
	made := rule{
		ID: string(code), ShortDescription: message{strings.ReplaceAll(string(code), "-", " ")}, HelpURI: report.CodePage(code),
		Configuration: configuration{"error"}, Properties: tags{[]string{"security", "supply-chain"}},
	}
	if code == policy.Excepted || f.Status == finding.Note {
		made.Configuration.Level = "note"
	}
	if next := hint.Of(code); next != "" {
		made.Help = &message{next}
	}
	m.run.Tool.Driver.Rules = append(m.run.Tool.Driver.Rules, made)
	return at
}

// fingerprint identifies a finding by its content and not its line, so that it is stable when
// lines move and when the tag changes. Equal fingerprints of a run are numbered.
func (m *maker) fingerprint(o finding.Object, f finding.Finding) string {
	h := sha256.New()
	for _, part := range []string{string(f.Code()), o.Title, f.Place, f.Repository, f.Policy, f.Rule} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	name := hex.EncodeToString(h.Sum(nil))[:fingerprintDigits]
	m.seen[name]++
	if n := m.seen[name]; n > 1 {
		return fmt.Sprintf("%s:%d", name, n)
	}
	return name
}

// fingerprintDigits makes collisions within a run improbable.
const fingerprintDigits = 32
