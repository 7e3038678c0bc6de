package mirror

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/image/mirror/internal/mapping"
)

const ownVersion = "quaymaster.dev/v1alpha1"

// entrySpec is an entry in the form of RegistryMirror. The other kinds are converted to it.
type entrySpec struct {
	Sources           []string              `json:"sources"`
	Targets           []targetSpec          `json:"targets"`
	When              When                  `json:"when"`
	Otherwise         Otherwise             `json:"otherwise"`
	Resolve           Side                  `json:"resolve"`
	Evidence          []json.RawMessage     `json:"evidence"`
	PullSecrets       []string              `json:"pullSecrets"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	ObjectSelector    *metav1.LabelSelector `json:"objectSelector"`
	ExcludeOwners     []ownerSpec           `json:"excludeOwners"`

	pulls Pulls
	// The names of the entry and of its parts, where they differ from RegistryMirror's.
	name, path string
	sourcePath string
	targetPath func(i int) string
}

type targetSpec struct {
	Location string `json:"location"`
	Path     string `json:"path"`
	Template string `json:"template"`
	Fill     string `json:"fill"`
}

type ownerSpec struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
}

// The values of a target's path and fill.
const (
	keep          = "Keep"
	replacePrefix = "ReplacePrefix"
	fromTemplate  = "Template"
	fillByTag     = "ByTag"
)

func readOwn(d *Document, body []byte) ([]entrySpec, error) {
	var spec struct {
		Mirrors []entrySpec `json:"mirrors"`
	}
	if err := decode(body, &spec, "spec"); err != nil {
		return nil, err
	}
	if len(spec.Mirrors) == 0 {
		return nil, errors.New("spec.mirrors: want at least one entry")
	}
	for i := range spec.Mirrors {
		e := &spec.Mirrors[i]
		e.name, e.path = fmt.Sprintf("%s/%s[%d]", d.Kind, d.Name, i), fmt.Sprintf("spec.mirrors[%d]", i)
		e.targetPath = func(i int) string { return fmt.Sprintf("%s.targets[%d]", e.path, i) }
	}
	return spec.Mirrors, nil
}

// faults collects errors, so that they are reported together.
type faults struct{ errs []error }

func (f *faults) add(path, format string, args ...any) {
	f.errs = append(f.errs, at(path, fmt.Errorf(format, args...)))
}

// count reports whether the number is within the bounds.
func (f *faults) count(path string, n, least, most int) {
	if n < least || n > most {
		f.add(path, "want %d to %d of them, found %d", least, most, n)
	}
}

func (d *Document) compile(specs []entrySpec) error {
	if len(specs) > MaxEntries {
		return fmt.Errorf("it has more than %d entries", MaxEntries)
	}
	var f faults
	for i := range specs {
		d.entries = append(d.entries, specs[i].compile(d, &f))
	}
	return errors.Join(f.errs...)
}

func (s *entrySpec) compile(d *Document, f *faults) *entry {
	e := &entry{
		document: d, name: s.name, path: s.path, pulls: s.pulls, pullSecrets: s.PullSecrets,
		when:      choose(f, s.path+".when", s.When, Verified, Present, Always),
		otherwise: choose(f, s.path+".otherwise", s.Otherwise, UseSource, Deny),
		resolve:   choose(f, s.path+".resolve", s.Resolve, Source, Target),
		selects: selector{
			namespace: compileSelector(f, s.path+".namespaceSelector", s.NamespaceSelector),
			object:    compileSelector(f, s.path+".objectSelector", s.ObjectSelector),
			excluded:  s.owners(f),
		},
	}
	s.checkSecrets(f)
	before := len(f.errs)
	f.count(s.path+".sources", len(s.Sources), 1, maxSources)
	f.count(s.path+".targets", len(s.Targets), 1, maxTargets)
	f.count(s.path+".evidence", len(s.Evidence), 0, maxEvidence)
	if len(f.errs) > before {
		return e
	}
	for i, text := range s.Sources {
		path := s.sourcePath
		if path == "" {
			path = fmt.Sprintf("%s.sources[%d]", s.path, i)
		}
		from, err := mapping.ParseSource(text)
		switch {
		case err != nil:
			f.add(path, "%q: %w", text, err)
		case slices.ContainsFunc(e.ways, func(w *way) bool { return w.source == from }):
			f.add(path, "%s is there twice", from)
		default:
			e.ways = append(e.ways, &way{entry: e, source: from, path: path})
		}
	}
	for _, w := range e.ways {
		s.compileTargets(w, f)
		if len(f.errs) > before {
			break // the other sources have the same error
		}
		w.evidence = s.compileEvidence(w.source, f)
	}
	return e
}

// choose returns the value if it is one of the choices; the first is the default.
func choose[T ~string](f *faults, path string, value T, choices ...T) T {
	if value == "" {
		return choices[0]
	}
	if !slices.Contains(choices, value) {
		f.add(path, "%q is not known: want one of %v", value, choices)
	}
	return value
}

func compileSelector(f *faults, path string, spec *metav1.LabelSelector) labels.Selector {
	if spec == nil {
		return nil
	}
	compiled, err := metav1.LabelSelectorAsSelector(spec)
	if err != nil {
		f.add(path, "%w", err)
		return nil
	}
	if compiled.Empty() {
		return nil
	}
	return compiled
}

func (s *entrySpec) owners(f *faults) []Owner {
	var owners []Owner
	for i, o := range s.ExcludeOwners {
		path := fmt.Sprintf("%s.excludeOwners[%d]", s.path, i)
		switch owner := Owner(o); {
		case o.Kind == "":
			f.add(path+".kind", "want the kind of an owner, such as Cluster")
		case strings.Contains(o.Group, "/"):
			f.add(path+".group", "%q: want a group without a version", o.Group)
		case slices.Contains(owners, owner):
			f.add(path, "it is there twice")
		default:
			owners = append(owners, owner)
		}
	}
	return owners
}

func (s *entrySpec) checkSecrets(f *faults) {
	f.count(s.path+".pullSecrets", len(s.PullSecrets), 0, maxSecrets)
	for i, name := range s.PullSecrets {
		path := fmt.Sprintf("%s.pullSecrets[%d]", s.path, i)
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			f.add(path, "%q: %s", name, problems[0])
		} else if slices.Contains(s.PullSecrets[:i], name) {
			f.add(path, "%s is there twice", name)
		}
	}
}

// text returns the target as one template.
func (t targetSpec) text(f *faults, path string) (string, bool) {
	before := len(f.errs)
	switch {
	case t.Location == "":
		f.add(path+".location", "want a registry, as in reg.corp:5000/prefix")
	case strings.HasSuffix(t.Location, "/"):
		f.add(path+".location", "%q ends in /", t.Location)
	case strings.Contains(t.Location, "{path}") || strings.Contains(t.Location, "{rest}"):
		f.add(path+".location", "%q: {path} and {rest} stand in template", t.Location)
	}
	choose(f, path+".fill", t.Fill, "", fillByTag)
	how := choose(f, path+".path", t.Path, keep, replacePrefix, fromTemplate)
	if t.Path == "" && t.Template != "" {
		how = fromTemplate // a template is explicit
	}
	switch {
	case how == fromTemplate && t.Template == "":
		f.add(path+".template", "want a template, as in docker-hub/{path}")
	case how != fromTemplate && t.Template != "":
		f.add(path+".template", "it is not used with path: %s", how)
	}
	rest := map[string]string{keep: "{path}", replacePrefix: "{rest}", fromTemplate: t.Template}[how]
	return t.Location + "/" + rest, len(f.errs) == before
}

func (s *entrySpec) compileTargets(w *way, f *faults) {
	seen := map[string]bool{}
	for i, t := range s.Targets {
		path := s.targetPath(i)
		text, ok := t.text(f, path)
		if !ok {
			continue
		}
		m, err := mapping.Parse(text, w.source)
		if err == nil {
			err = m.CheckInverse()
		}
		switch {
		case err != nil:
			f.add(path, "from %s to %s: %w", w.source, text, err)
			continue
		case seen[m.String()]:
			f.add(path, "it is there twice")
			continue
		}
		seen[m.String()] = true
		if m.IsIdentity() {
			w.identity = append(w.identity, path)
			continue
		}
		w.targets = append(w.targets, target{Mapping: m, fill: t.Fill == fillByTag, path: path})
		w.aliases = append(w.aliases, mapping.Aliases(text, w.source)...)
	}
}

func (s *entrySpec) compileEvidence(from mapping.Source, f *faults) []evidence {
	if len(s.Evidence) == 0 {
		return []evidence{{side: Source}, {side: Target}}
	}
	var all []evidence
	for i, raw := range s.Evidence {
		path := fmt.Sprintf("%s.evidence[%d]", s.path, i)
		if slices.ContainsFunc(s.Evidence[:i], func(o json.RawMessage) bool { return string(o) == string(raw) }) {
			f.add(path, "%s is there twice", raw)
			continue
		}
		e, err := parseEvidence(raw, from, path)
		if err != nil {
			f.errs = append(f.errs, err)
			continue
		}
		all = append(all, e)
	}
	return all
}

func parseEvidence(raw json.RawMessage, from mapping.Source, path string) (evidence, error) {
	var side Side
	if json.Unmarshal(raw, &side) == nil {
		if side != Source && side != Target {
			return evidence{}, fmt.Errorf("%s: %q is not known: want Source, Target or {repository: ...}", path, side)
		}
		return evidence{side: side}, nil
	}
	var third struct {
		Repository string `json:"repository"`
	}
	if err := decode(raw, &third, path); err != nil {
		return evidence{}, err
	}
	m, err := mapping.Parse(third.Repository, from)
	if err == nil {
		_, err = m.Forward(from.Sample())
	}
	if err != nil {
		return evidence{}, fmt.Errorf("%s.repository: %q: %w", path, third.Repository, err)
	}
	return evidence{at: m}, nil
}
