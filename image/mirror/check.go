package mirror

import (
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/image"
)

// Check finds mappings with unexpected results: loops, entries that others shadow, and targets
// that are their source. (A source that no reference can have does not load.)
func (s *Set) Check() []Finding {
	var findings []Finding
	for e := range s.entries() {
		for _, w := range e.ways {
			findings = append(findings, s.checkShadow(w)...)
			findings = append(findings, s.checkLoops(w)...)
			for _, path := range w.identity {
				findings = append(findings, e.finding(path,
					fmt.Sprintf("the target is the source %s itself, and is left out", w.source),
					"remove it: otherwise: Source leaves an image there"))
			}
		}
	}
	return findings
}

func (e *entry) finding(path, message, hint string) Finding {
	return Finding{Where: e.document.Kind + "/" + e.document.Name + ": " + path, Message: message, Hint: hint}
}

// checkShadow searches an earlier entry for the same source and subjects.
func (s *Set) checkShadow(w *way) []Finding {
	var by *way
	name := w.source.Sample()
	s.sources.Visit(name, func(other *way, _ image.Repository) bool {
		if other == w {
			return false
		}
		if other.source == w.source && other.entry.covers(w.entry) && len(other.targets) > 0 {
			by = other
		}
		return by == nil
	})
	if by == nil {
		return nil
	}
	return []Finding{w.entry.finding(w.path,
		fmt.Sprintf("%s maps %s for the same subjects and comes first, by kind, name and position", by.entry.name, w.source),
		"join both entries, or distinguish them by selectors")}
}

// covers reports whether an entry applies to all subjects of another one.
func (e *entry) covers(other *entry) bool {
	return (e.pulls == AnyPull || e.pulls == other.pulls) && (e.selects.isEmpty() || e.selects.equals(other.selects))
}

// checkLoops finds targets inside sources and sources inside targets.
func (s *Set) checkLoops(w *way) []Finding {
	var findings []Finding
	name := w.source.Sample()
	for _, t := range w.targets {
		to, err := t.Forward(name)
		if err != nil {
			continue
		}
		var within []string
		s.sources.Visit(to, func(other *way, _ image.Repository) bool {
			within = append(within, other.entry.name+" ("+other.source.String()+")")
			return len(within) < maxTargets
		})
		slices.Sort(within)
		for _, other := range slices.Compact(within) {
			findings = append(findings, w.entry.finding(t.path,
				fmt.Sprintf("the target lies inside a source of %s: copies there are recognised and left alone, not copied again", other),
				"make sure that this is meant"))
		}
	}
	if by, ok := s.insideOf(name); ok {
		findings = append(findings, w.entry.finding(w.path,
			fmt.Sprintf("%s lies inside a target of %s: images there are copies, and are left alone", w.source, by),
			"name the source of those copies instead"))
	}
	return findings
}

// insideOf returns the entry for which a name is a copy.
func (s *Set) insideOf(name image.Repository) (string, bool) {
	by := ""
	s.targets.Visit(name, func(r reverse, named image.Repository) bool {
		if from, ok := r.Inverse(named); ok && from != name {
			by = r.way.entry.name
		}
		return by == ""
	})
	return by, by != ""
}
