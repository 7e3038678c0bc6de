package mapping

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/image"
)

// affix is one component of a name: text, or text around the part that * matched.
type affix struct {
	before, after string
	wild          bool
}

func (a affix) with(wildcard string) string {
	if !a.wild {
		return a.before
	}
	return a.before + wildcard + a.after
}

// match returns the part that * matched. Each occurrence in a name must be the same.
func (a affix) match(s, wildcard string) (string, bool) {
	if !a.wild {
		return wildcard, s == a.before
	}
	if len(s) <= len(a.before)+len(a.after) || !strings.HasPrefix(s, a.before) || !strings.HasSuffix(s, a.after) {
		return "", false
	}
	found := s[len(a.before) : len(s)-len(a.after)]
	return found, wildcard == "" || wildcard == found
}

// middle is the part of the source's path in a template.
type middle int

const (
	nothing middle = iota // a fixed repository, for evidence alone
	whole                 // {path}
	rest                  // {rest}
)

// Mapping maps names of a source to names of a target, and back. Every component is either one
// component of the name or, once, {path} or {rest}, so the inverse is unique.
type Mapping struct {
	source     Source
	host       affix
	lead, tail []affix
	middle     middle
}

// Parse parses "host/a/{path}/b". Variables are {path}, the whole path; {rest}, the path after
// the source's prefix; {host}; and {wildcard}, the part that * matched.
func Parse(text string, from Source) (*Mapping, error) { return parse(text, from, from.host) }

// Aliases returns the mapping with each other name of Docker Hub in {host}, because mirrors
// accept these too. They only serve to recognise copies.
func Aliases(text string, from Source) []*Mapping {
	if from.host != dockerHub || !strings.Contains(text, "{host}") {
		return nil
	}
	var all []*Mapping
	for _, alias := range image.HubNames()[1:] {
		if m, err := parse(text, from, alias); err == nil {
			all = append(all, m)
		}
	}
	return all
}

func parse(text string, from Source, spelled string) (*Mapping, error) {
	m := &Mapping{source: from}
	host, path, _ := strings.Cut(text, "/")
	if strings.Contains(text, "://") {
		return nil, errors.New("want a registry without a scheme")
	}
	var err error
	m.host, err = parseAffix(host, from, spelled)
	if err != nil {
		return nil, err
	}
	if err := m.normalise(); err != nil {
		return nil, err
	}
	for component := range strings.SplitSeq(path, "/") {
		if part := partOf(component); part != nothing {
			if m.middle != nothing {
				return nil, errors.New("the path occurs in it twice, and cannot be split again")
			}
			m.middle = part
			continue
		}
		a, err := parseAffix(component, from, spelled)
		switch {
		case err != nil:
			return nil, err
		case m.middle == nothing:
			m.lead = append(m.lead, a)
		default:
			m.tail = append(m.tail, a)
		}
	}
	return m, nil
}

func partOf(component string) middle {
	switch component {
	case "{path}":
		return whole
	case "{rest}":
		return rest
	}
	return nothing
}

// parseAffix parses a component with at most one variable.
func parseAffix(text string, from Source, spelled string) (affix, error) {
	before, variable, ok := strings.Cut(text, "{")
	if !ok {
		if strings.Contains(text, "}") {
			return affix{}, fmt.Errorf("%q: } without {", text)
		}
		return affix{before: text}, nil
	}
	variable, after, ok := strings.Cut(variable, "}")
	switch {
	case !ok:
		return affix{}, fmt.Errorf("%q: { without }", text)
	case strings.ContainsAny(after, "{}"):
		return affix{}, fmt.Errorf("%q has two variables between slashes, which cannot be split again", text)
	}
	switch {
	case variable == "host" && from.host != "":
		return affix{before: before + spelled + after}, nil
	case variable == "host":
		return affix{before: before, after: from.suffix + after, wild: true}, nil
	case variable == "wildcard" && from.host == "":
		return affix{before: before, after: after, wild: true}, nil
	case variable == "wildcard":
		return affix{}, fmt.Errorf("%q: the source %s has no * for {wildcard}", text, from)
	case variable == "path" || variable == "rest":
		return affix{}, fmt.Errorf("%q: {%s} wants to be alone between slashes, in the path", text, variable)
	}
	return affix{}, fmt.Errorf("%q: {%s} is not known: want {path}, {rest}, {host} or {wildcard}", text, variable)
}

// normalise normalises the host.
func (m *Mapping) normalise() error {
	host, err := normalHost(m.host.with(sampleWildcard))
	if err != nil {
		return err
	}
	if !m.host.wild {
		m.host.before = host
		return nil
	}
	before, after, ok := strings.Cut(host, sampleWildcard)
	if !ok {
		return fmt.Errorf("registry %q: the variable is lost in it", host)
	}
	m.host.before, m.host.after = before, after
	return nil
}

// CheckInverse refuses a mapping without an inverse, by its form and by a trial.
func (m *Mapping) CheckInverse() error {
	wild := m.host.wild
	for _, a := range append(m.lead[:len(m.lead):len(m.lead)], m.tail...) {
		wild = wild || a.wild
	}
	switch {
	case m.middle == nothing:
		return errors.New("the path is lost in it, so that no copy could be traced to its source: want {path} or {rest}")
	case m.source.host == "" && !wild:
		return fmt.Errorf("the text that * matches in %s is lost in it, so that no copy could be traced to its source: want {wildcard} or {host}", m.source)
	}
	from := m.source.Sample()
	to, err := m.Forward(from)
	if err != nil {
		return err
	}
	if back, ok := m.Inverse(to); !ok || back != from {
		return fmt.Errorf("%s would become %s, which cannot be traced back", from, to)
	}
	return nil
}

// IsIdentity reports whether the target is the source.
func (m *Mapping) IsIdentity() bool {
	to, err := m.Forward(m.source.Sample())
	return err == nil && to == m.source.Sample()
}

// Forward returns the name at the target. It returns an error if that is not a valid name: too
// long, or parsed as another one.
func (m *Mapping) Forward(from image.Repository) (image.Repository, error) {
	var wildcard string
	if m.source.host == "" {
		wildcard = strings.TrimSuffix(from.Registry(), m.source.suffix)
	}
	var b strings.Builder
	b.Grow(len(m.host.before) + len(from.Path()) + 64)
	b.WriteString(m.host.with(wildcard))
	for _, a := range m.lead {
		b.WriteByte('/')
		b.WriteString(a.with(wildcard))
	}
	if path := m.source.part(from.Path(), m.middle); path != "" {
		b.WriteByte('/')
		b.WriteString(path)
	}
	for _, a := range m.tail {
		b.WriteByte('/')
		b.WriteString(a.with(wildcard))
	}
	text := b.String()
	to, err := image.ParseRepository(text)
	switch {
	case err != nil:
		return image.Repository{}, fmt.Errorf("map %s: %w", from, err)
	case to.String() != text:
		// Two source names would have the same target name.
		return image.Repository{}, fmt.Errorf("map %s: %s would be read as %s", from, text, to)
	}
	return to, nil
}

// Inverse returns the source's name of a copy, of which Index.Visit supplies the other names.
func (m *Mapping) Inverse(copied image.Repository) (image.Repository, bool) {
	wildcard, ok := m.host.match(copied.Registry(), "")
	if !ok {
		return image.Repository{}, false
	}
	components := strings.Split(copied.Path(), "/")
	end := len(components) - len(m.tail)
	if len(m.lead) > end {
		return image.Repository{}, false
	}
	for i, a := range m.lead {
		wildcard, ok = a.match(components[i], wildcard)
		if !ok {
			return image.Repository{}, false
		}
	}
	for i, a := range m.tail {
		wildcard, ok = a.match(components[end+i], wildcard)
		if !ok {
			return image.Repository{}, false
		}
	}
	return m.source.name(wildcard, strings.Join(components[len(m.lead):end], "/"), m.middle)
}

// String returns the mapping as a template, for comparison.
func (m *Mapping) String() string {
	text := m.host.with("{wildcard}")
	for _, a := range m.lead {
		text += "/" + a.with("{wildcard}")
	}
	text += [...]string{"", "/{path}", "/{rest}"}[m.middle]
	for _, a := range m.tail {
		text += "/" + a.with("{wildcard}")
	}
	return text
}

// leading returns the components before the first variable one.
func (m *Mapping) leading() string {
	var fixed []string
	for _, a := range m.lead {
		if a.wild {
			break
		}
		fixed = append(fixed, a.before)
	}
	return strings.Join(fixed, "/")
}

// Host returns the target's registry; false where it depends on the image.
func (m *Mapping) Host() (string, bool) { return m.host.before, !m.host.wild }
