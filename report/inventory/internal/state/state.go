package state

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/evidence"
	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
)

const (
	// maxStates bounds the results of one image that differ, with one more for each other verdict.
	// Further ones replace the results of a use with the same verdict.
	maxStates = 8
	// maxName bounds a name, and maxMessage a message, in bytes.
	maxName    = 512
	maxMessage = 600
)

// State is the result of one evaluation. The uses of an image with equal results share one.
type State struct {
	Reference     string
	Verdict       verdict.Verdict // empty: there was no evaluation
	Code, Message string
	Signers       []evidence.Signer
	Results       []Result
	Proof         evidence.Evidence
	at            time.Time
	key           [sha256.Size]byte // of the results
	uses          int
}

// Result is the current result of one rule for the image.
type Result struct {
	Policy string // its ID
	Rule   string
	Kind   verdict.Kind
}

// Evaluation is one evaluation of an image.
type Evaluation struct {
	Occasion report.Occasion
	Record   report.Record
	Image    *report.Image
}

// States are those of one image: of the objects that run it, each use with its own last one, and of all
// other requests. A refused request evaluates the image for an object that does not exist, by rules
// that may be others than those that admitted it elsewhere, so it does not replace the state of a
// running image. The zero value has none. It is not safe for concurrent use.
type States struct {
	running []*State // by admission and scans; the last one remains when no use is left
	lost    *State   // the gravest of running uses that are no longer distinguished
	other   State    // by refused requests, and by requests for the image alone
}

// Ask sets the state of requests for objects that do not run.
func (s *States) Ask(p *evidence.Packer, e Evaluation) { s.other.set(p, e, keyOf(e.Image)) }

// Run sets the state of one use, and returns it. The use had another one before; nil for none.
func (s *States) Run(p *evidence.Packer, before *State, e Evaluation) *State {
	key := keyOf(e.Image)
	to := s.of(key, verdict.OfImage(e.Image), before)
	if to == nil {
		to = &State{}
		s.running = append(s.running, to)
	}
	if to != before {
		to.uses++
		if before != nil {
			before.uses--
		}
	}
	to.set(p, e, key)
	s.sweep(to)
	return to
}

// of returns the state with equal results, and where there are too many one with the same verdict; nil
// for none.
func (s *States) of(key [sha256.Size]byte, v verdict.Verdict, before *State) *State {
	var same *State
	used := 0
	for _, each := range s.running {
		if each.key == key {
			return each
		}
		if each.Verdict == v {
			same = each
		}
		if each.uses > 1 || each.uses == 1 && each != before {
			used++
		}
	}
	if used < maxStates {
		return nil
	}
	return same
}

// sweep drops the states without uses, except one.
func (s *States) sweep(except *State) {
	s.running = slices.DeleteFunc(s.running, func(each *State) bool { return each.uses == 0 && each != except })
}

// Leave ends a use with this state; nil is ignored.
func (s *States) Leave(last *State) {
	if last != nil {
		last.uses--
		s.sweep(s.left(last))
	}
}

// left returns the state that remains: no longer used, it is known only until another use has one.
func (s *States) left(last *State) *State {
	if slices.ContainsFunc(s.running, func(each *State) bool { return each.uses > 0 }) {
		return nil
	}
	return last
}

// Lose is Leave for a use that may go on, but is no longer distinguished: its state counts until Found.
func (s *States) Lose(last *State) {
	if last != nil && (s.lost == nil || graver(last, s.lost) < 0) {
		last.uses++
		before := s.lost
		s.lost = last
		s.Leave(before)
	}
	s.Leave(last)
}

// Found ends all lost uses.
func (s *States) Found() {
	before := s.lost
	s.lost = nil
	s.Leave(before)
}

// Shown returns the state of the image: of a running one the gravest of its uses, of a refused one that
// of the refusal, else the latest.
func (s *States) Shown(runs, refused bool) *State {
	running := &State{}
	if len(s.running) > 0 {
		running = slices.MinFunc(s.running, graver)
	}
	switch {
	case s.other.Verdict == "", runs && running.Verdict != "":
		return running
	case refused, running.at.Before(s.other.at):
		return &s.other
	}
	return running
}

// Results returns the current result of each rule: of a running image the gravest of its uses.
func (s *States) Results(runs, refused bool) []Result {
	shown := s.Shown(runs, refused)
	if shown == &s.other || len(s.running) < 2 {
		return shown.Results
	}
	type rule struct {
		policy, name string
		nth          int // of its entries
	}
	at, merged := map[rule]int{}, []Result(nil)
	for _, each := range s.running {
		entries := map[rule]int{}
		for _, r := range each.Results {
			k := rule{policy: r.Policy, name: r.Rule}
			entries[k]++
			k.nth = entries[k]
			switch n, known := at[k]; {
			case !known:
				at[k] = len(merged)
				merged = append(merged, r)
			case r.Kind.Gravity() > merged[n].Kind.Gravity():
				merged[n] = r
			}
		}
	}
	return merged
}

// Size is that of the evidence, in bytes.
func (s *States) Size() int {
	size := s.other.Proof.Size()
	for _, each := range s.running {
		size += each.Proof.Size()
	}
	return size
}

// graver orders the graver state first, and of equal ones the latest.
func graver(a, b *State) int {
	return cmp.Or(b.Verdict.Gravity()-a.Verdict.Gravity(), b.at.Compare(a.at))
}

// set replaces the state. The evidence of equal results is replaced after a while.
func (s *State) set(p *evidence.Packer, e Evaluation, key [sha256.Size]byte) {
	now := verdict.OfImage(e.Image)
	changed := now != s.Verdict || key != s.key
	s.Reference, s.Verdict, s.at, s.key = evidence.Cut(e.Image.Reference, maxName), now, e.Occasion.Time, key
	s.Code, s.Message = "", ""
	if reasons := verdict.Telling(e.Image, now); len(reasons) > 0 {
		s.Code, s.Message = string(reasons[0].Code), evidence.Cut(reasons[0].Message, maxMessage)
	}
	if changed || s.Proof.Stale(e.Occasion.Time, e.Record) {
		s.Signers, s.Results = evidence.SignersOf(e.Image), resultsOf(e.Image)
		s.Proof = p.Pack(e.Occasion, e.Record, e.Image)
	}
}

func resultsOf(image *report.Image) []Result {
	decisions, _ := evidence.Decisions(image)
	results := make([]Result, 0, len(decisions))
	for n := range decisions {
		d := &decisions[n]
		results = append(results, Result{evidence.Cut(d.Policy.String(), maxName), evidence.Cut(d.Rule, maxName), verdict.OfRule(d)})
	}
	return results
}

// keyOf distinguishes results.
func keyOf(image *report.Image) (key [sha256.Size]byte) {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s\n", verdict.OfImage(image)) // it never fails
	for n := range image.Decisions {
		d := &image.Decisions[n]
		_, _ = fmt.Fprintf(h, "%q %q %d\n", d.Policy.String(), d.Rule, verdict.OfRule(d))
	}
	h.Sum(key[:0])
	return key
}
