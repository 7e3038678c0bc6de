package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Package is a package with all of its mutants.
type Package struct {
	// Path is where it is in the checkout.
	Path string

	checkout string
	sources  []*source
	unviable map[*Mutant]bool
	name     string
}

// Open finds the mutants of the package at a path of a checkout.
func Open(ctx context.Context, checkout, path string) (*Package, error) {
	p := &Package{Path: path, checkout: checkout, unviable: map[*Mutant]bool{}}
	count := &counter{names: map[string]int{}}
	list := exec.CommandContext(ctx, "go", "list", "-f", `{{.Name}}{{range .GoFiles}} {{.}}{{end}}`, "./"+path)
	list.Dir = checkout
	answer, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", path, err)
	}
	words := strings.Fields(string(answer))
	p.name = words[0]
	for _, file := range words[1:] {
		full := filepath.Join(checkout, path, file)
		text, err := os.ReadFile(full)
		if err != nil {
			return nil, err
		}
		s, err := parse(full, text, count)
		if err != nil {
			return nil, err
		}
		if len(s.units) > 0 {
			p.sources = append(p.sources, s)
		}
	}
	return p, nil
}

// mutants returns those that compile.
func (p *Package) mutants() []*Mutant {
	var list []*Mutant
	for _, s := range p.sources {
		for _, u := range s.units {
			for _, m := range u.mutants {
				if !p.unviable[m] {
					list = append(list, m)
				}
			}
		}
	}
	return list
}

// rounds is how often a package is compiled until all that is left of it compiles. The
// compiler reports all type errors at once, and the others in the next round.
const rounds = 5

// compile builds the test binary of a package, this one or one that imports it, with all
// mutants in it. A mutant that does not compile is left out.
func (p *Package) compile(ctx context.Context, folder, tests string) (string, error) {
	binary := filepath.Join(folder, strings.ReplaceAll(tests, "/", "-")+".test")
	for range rounds {
		overlay, places, err := p.overlay(folder)
		if err != nil {
			return "", err
		}
		// As few flags as can be: what else is compiled is shared with other builds.
		build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-w", "-gcflags=-e", "-overlay", overlay, "-o", binary, "./"+tests)
		build.Dir = p.checkout
		said, err := build.CombinedOutput()
		if err == nil {
			return binary, nil
		}
		if !p.blame(string(said), places) {
			return "", fmt.Errorf("build the tests of %s: %w\n%s", tests, err, said)
		}
	}
	return "", errors.New("mutants of " + p.Path + " that do not compile, after having left out some again and again")
}

// overlay writes the mutated files, and the go command's list of them.
func (p *Package) overlay(folder string) (string, map[string][]lines, error) {
	replaced := map[string]string{}
	places := map[string][]lines{}
	write := func(original string, text []byte) error {
		written := filepath.Join(folder, filepath.Base(original))
		replaced[original] = written
		return os.WriteFile(written, text, 0o600)
	}
	for _, s := range p.sources {
		text, where := s.compose(p.unviable)
		places[filepath.Base(s.path)] = where
		if err := write(s.path, text); err != nil {
			return "", nil, err
		}
	}
	chosen := filepath.Join(p.checkout, p.Path, "mutant_selector.go")
	if err := write(chosen, fmt.Appendf(nil, selector, p.name)); err != nil {
		return "", nil, err
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", nil, err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, places, os.WriteFile(overlay, text, 0o600)
}

// blame finds the mutants in the compiler's errors. It reports whether there were any.
func (p *Package) blame(said string, places map[string][]lines) bool {
	complaint := regexp.MustCompile(`(?m)^(?:.*/)?([^/\s]+\.go):(\d+):\d+: `)
	found := false
	for _, match := range complaint.FindAllStringSubmatch(said, -1) {
		line, err := strconv.Atoi(match[2])
		if err != nil {
			continue
		}
		for _, place := range places[match[1]] {
			if place.first <= line && line <= place.last && !p.unviable[place.mutant] {
				p.unviable[place.mutant] = true
				found = true
			}
		}
	}
	return found
}
