package mutants

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Result has the result of each mutant of a package.
type Result struct {
	// Tried are those that compile; Killed made a test fail, TimedOut made the tests take
	// far longer than without them, which fails too.
	Tried, Killed, TimedOut int
	// Unviable are those that do not compile.
	Unviable int
	// Survived are the names of those that no test failed for.
	Survived []string
}

// suite is a test binary with mutants in it, and what its tests reach.
type suite struct {
	binary, folder string
	tests          []test
}

// test is one test function: how long it takes, and the functions that it enters.
type test struct {
	name    string
	took    time.Duration
	entered map[int]bool
}

// Bounds of a run. A mutant may loop for ever, and ask for memory in the loop.
const (
	patience = 4               // times the tests' own time,
	grace    = 5 * time.Second // and that much more
	memory   = 8 << 20         // KiB of address space
	alone    = 10 * time.Minute
)

// Run tries the mutants of a package that match an expression: by the package's own tests,
// and those that survive by the tests of other packages.
func (p *Package) Run(ctx context.Context, others []string, match *regexp.Regexp, log io.Writer) (Result, error) {
	folder, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	var result Result
	var left []*Mutant
	for i, tests := range append([]string{p.Path}, others...) {
		if i > 0 && len(left) == 0 {
			break
		}
		s, err := p.muster(ctx, folder, tests)
		if err != nil {
			return Result{}, err
		}
		if i == 0 {
			left = matching(p.mutants(), match)
			result.Tried, result.Unviable = len(left), len(p.unviable)
		}
		left, err = s.kill(ctx, left, &result, log)
		if err != nil {
			return Result{}, err
		}
		if err := os.Remove(s.binary); err != nil {
			return Result{}, err
		}
	}
	for _, m := range left {
		result.Survived = append(result.Survived, m.Name)
	}
	return result, nil
}

func matching(all []*Mutant, match *regexp.Regexp) []*Mutant {
	var list []*Mutant
	for _, m := range all {
		if match == nil || match.MatchString(m.Name) {
			list = append(list, m)
		}
	}
	return list
}

// muster builds the tests of a package, and runs each of them without a mutant.
func (p *Package) muster(ctx context.Context, folder, tests string) (*suite, error) {
	binary, err := p.compile(ctx, folder, tests)
	if err != nil {
		return nil, err
	}
	s := &suite{binary: binary, folder: filepath.Join(p.checkout, tests)}
	list := exec.CommandContext(ctx, binary, "-test.list", "^(Test|Example|Fuzz)")
	list.Dir = s.folder
	answer, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", tests, err)
	}
	for _, name := range strings.Fields(string(answer)) {
		t, err := s.without(ctx, name, filepath.Join(folder, "entered"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", tests, err)
		}
		s.tests = append(s.tests, t)
	}
	return s, nil
}

// without runs a test without any mutant, and notes where it has been.
func (s *suite) without(ctx context.Context, name, notes string) (test, error) {
	var said bytes.Buffer
	start := time.Now()
	status, err := s.run(ctx, alone, &said, []string{name}, "MUTANT=-1", "MUTANT_ENTERED="+notes)
	if err != nil {
		return test{}, err
	}
	if status != passed {
		return test{}, fmt.Errorf("test %s fails without any mutant:\n%s", name, said.String())
	}
	t := test{name: name, took: time.Since(start), entered: map[int]bool{}}
	text, err := os.ReadFile(notes)
	if err != nil && !os.IsNotExist(err) {
		return test{}, err
	}
	for _, word := range strings.Fields(string(text)) {
		number, err := strconv.Atoi(word)
		if err != nil {
			return test{}, err
		}
		t.entered[number] = true
	}
	return t, os.RemoveAll(notes)
}

// kill runs for each mutant the tests that enter its function, and returns those that
// survive.
func (s *suite) kill(ctx context.Context, list []*Mutant, result *Result, log io.Writer) ([]*Mutant, error) {
	var left []*Mutant
	for _, m := range list {
		end := unreached
		for _, tests := range s.reaching(m.unit.number) {
			var err error
			end, err = s.run(ctx, patience*sum(tests)+grace, nil, names(tests), "MUTANT="+strconv.Itoa(m.number))
			if err != nil {
				return nil, err
			}
			if end != passed {
				break
			}
		}
		fmt.Fprintf(log, "%-9s %s\n", end, m.Name)
		switch end {
		case failed:
			result.Killed++
		case late:
			result.TimedOut++
		default:
			left = append(left, m)
		}
	}
	return left, nil
}

// cheap is the part of the time of all tests that is spent on the fastest of them first:
// most mutants are killed by those.
const cheap = 5

// reaching returns the tests that enter a function, in one or two groups, the fast ones
// first.
func (s *suite) reaching(function int) [][]test {
	var tests []test
	for _, t := range s.tests {
		if t.entered[function] {
			tests = append(tests, t)
		}
	}
	slices.SortStableFunc(tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	fast := len(tests)
	for fast > 1 && sum(tests[:fast]) > sum(tests)/cheap {
		fast--
	}
	switch {
	case len(tests) == 0:
		return nil
	case fast == len(tests):
		return [][]test{tests}
	default:
		return [][]test{tests[:fast], tests[fast:]}
	}
}

func sum(tests []test) time.Duration {
	var took time.Duration
	for _, t := range tests {
		took += t.took
	}
	return took
}

func names(tests []test) []string {
	var list []string
	for _, t := range tests {
		list = append(list, t.name)
	}
	return list
}

// status is how a run of tests ends.
type status string

const (
	unreached status = "unreached" // no test enters the function
	passed    status = "survived"
	failed    status = "killed"
	late      status = "timed out"
)

// run runs tests by their names.
func (s *suite) run(ctx context.Context, limit time.Duration, said io.Writer, names []string, env ...string) (status, error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	script := fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, memory)
	run := exec.CommandContext(bounded, "sh", "-c", script, s.binary,
		"-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$", "-test.timeout", alone.String())
	run.Dir, run.Stdout, run.Stderr = s.folder, said, said
	run.Env = append(os.Environ(), env...)
	run.WaitDelay = grace
	err := run.Run()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case bounded.Err() != nil:
		return late, nil
	case run.ProcessState == nil:
		return "", err
	case err != nil:
		return failed, nil
	default:
		return passed, nil
	}
}
