package inventory

import (
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/evidence"
	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
)

// states are those of one image. A refused request evaluates the image for an object that does not
// exist, by rules that may be others than those that admitted it elsewhere, so it does not replace
// the state of a running image.
type states struct {
	running state // by admission and scans of objects that run it
	other   state // by refused requests, and by requests for the image alone
}

// state is the result of one evaluation.
type state struct {
	reference     string
	verdict       Verdict // empty: there was no evaluation
	code, message string
	signers       []Signer
	judgements    []judgement
	proof         evidence.Evidence
	at            time.Time
}

// judgement is the current result of one rule for the image.
type judgement struct {
	policy string // its ID
	rule   string
	result verdict.Kind
}

// update sets the state of an entry. A request for the image alone does not replace that of an
// image of a workload.
func (i *Inventory) update(e *entry, o report.Occasion, r report.Record, image *report.Image, running bool) {
	s := &e.states.other
	switch {
	case running:
		s = &e.states.running
	case o.OnlyAsked() && (e.runs() || e.image.Refused > 0):
		return
	}
	now := verdict.OfImage(image)
	changed := now != s.verdict
	s.reference, s.verdict, s.at = cut(image.Reference, maxName), now, o.Time
	if !slices.Contains(e.references, s.reference) {
		e.references = append(e.references, s.reference)
		e.references = e.references[max(0, len(e.references)-maxReferences):]
	}
	s.code, s.message = "", ""
	if reasons := verdict.Telling(image, now); len(reasons) > 0 {
		s.code, s.message = string(reasons[0].Code), cut(reasons[0].Message, maxMessage)
	}
	if !changed && !s.proof.Stale(o.Time, r) {
		return
	}
	s.signers, s.judgements = signersOf(image), judgementsOf(image)
	i.evidence -= s.proof.Size()
	s.proof = i.packer.Pack(o, r, image)
	i.evidence += s.proof.Size()
}

// shown returns the state of an image: of a running one that of its workloads, of a refused one that of
// the refusal, else the latest.
func (s *states) shown(runs, refused bool) *state {
	switch {
	case s.other.verdict == "", runs && s.running.verdict != "":
		return &s.running
	case refused, s.running.at.Before(s.other.at):
		return &s.other
	}
	return &s.running
}

// describe sets the state of an image.
func (s *states) describe(image *Image, runs bool) {
	now := s.shown(runs, image.Refused > 0)
	image.Reference, image.Verdict, image.Code, image.Message, image.Signers = now.reference, now.verdict, now.code, now.message, now.signers
	if runs {
		image.Cause = nil
	}
}

// size is that of the evidence, in bytes.
func (s *states) size() int { return s.running.proof.Size() + s.other.proof.Size() }

// shown returns the state of the image.
func (e *entry) shown() *state { return e.states.shown(e.runs(), e.image.Refused > 0) }

func signersOf(image *report.Image) []Signer {
	var signers []Signer
	for n := range image.Decisions {
		for k := range image.Decisions[n].Proofs {
			s := image.Decisions[n].Proofs[k].Signer
			made := Signer{Name: cut(s.String(), maxName), Subject: cut(s.Subject, maxName),
				Issuer: cut(s.Issuer, maxName), KeyFingerprint: cut(s.KeyFingerprint, maxName)}
			if len(signers) < maxSigners && !slices.Contains(signers, made) {
				signers = append(signers, made)
			}
		}
	}
	return signers
}

func judgementsOf(image *report.Image) []judgement {
	var judgements []judgement
	for n := range image.Decisions {
		if d := &image.Decisions[n]; len(judgements) < maxJudgements {
			judgements = append(judgements, judgement{cut(d.Policy.String(), maxName), cut(d.Rule, maxName), verdict.OfRule(d)})
		}
	}
	return judgements
}

// causeOf returns the cause of a refusal, with texts of bounded length; nil if the record has none.
func causeOf(r report.Record) *Cause {
	found, ok := verdict.CauseOf(r)
	if !ok {
		return nil
	}
	for _, name := range []*string{&found.Container, &found.Image, &found.Policy, &found.Rule, &found.Code} {
		*name = cut(*name, maxName)
	}
	for _, text := range []*string{&found.Message, &found.Expected, &found.Found, &found.Fix} {
		*text = cut(*text, maxMessage)
	}
	return &found
}
