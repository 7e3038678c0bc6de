package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// place is a repository where evidence about an image is looked for. The first
// place of a work is asked first; a later one only while a check is not met.
type place struct {
	repository image.Repository
	open       func(context.Context) (Session, error) // nil: session is there
	// isLater marks a fallback: facts of an earlier repository may be cached for the same
	// query, and the fallback's facts are added to them.
	isLater bool
	// rest reports that a registry did not answer recently; nil: unknown.
	rest func(registry string) (why string, resting bool)

	once    sync.Once
	session Session
	err     error
}

// ask returns the session for the place.
func (p *place) ask(ctx context.Context) (Session, error) {
	if p.rest != nil {
		if why, resting := p.rest(p.repository.Registry()); resting {
			return nil, &image.Error{Kind: image.Unavailable, Op: "look for evidence in", On: p.repository.String(), Err: errors.New(why)}
		}
	}
	if p.open != nil {
		p.once.Do(func() { p.session, p.err = p.open(ctx) })
	}
	return p.session, p.err
}

// places returns where evidence about a reference is looked for.
func (j *journey) places(w *work, evidence []image.Repository, access Access) []*place {
	all := make([]*place, len(evidence))
	for i, repository := range evidence {
		all[i] = &place{repository: repository, isLater: i > 0}
		if repository == w.ref.Repository() {
			all[i].session = w.session
			continue
		}
		if chooser := j.gate.options.chooser; chooser != nil {
			all[i].rest = chooser.Rest
		}
		all[i].open = func(ctx context.Context) (Session, error) {
			session, err := j.gate.registries.Open(ctx, access, repository)
			if err == nil {
				w.opened(session)
			}
			return session, err
		}
	}
	return all
}

// opened notes a session for its costs.
func (w *work) opened(session Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others = append(w.others, session)
}

// cost is the cost of the work's sessions so far.
func (w *work) cost() Cost {
	total := w.session.Cost()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, session := range w.others {
		total = total.Add(session.Cost())
	}
	return total
}

// lookElsewhere searches the fallbacks while the earlier repositories do not meet a check.
// Their facts are added: a requirement may be met by parts from several repositories.
func (w *work) lookElsewhere(ctx context.Context) {
	for _, next := range w.later {
		if !w.unproved() || ctx.Err() != nil {
			return
		}
		w.place = next
		w.lookAt(ctx)
	}
	if w.unasked > 0 && w.unproved() {
		gap := &image.Error{Kind: image.Bound, Op: "look for evidence about", On: w.ref.String(),
			Err: fmt.Errorf("%d places, at most %d are looked at", w.unasked+maxPlaces, maxPlaces)}
		for _, q := range w.placeless() {
			w.add(&place{isLater: true}, questionKey(w.pinned.Digest(), q), policy.Answer{Gaps: []error{gap}})
		}
		w.judge(ctx)
	}
}

// lookAt searches the repository for missing claims, in a share of the remaining time.
func (w *work) lookAt(ctx context.Context) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/3)
		defer cancel()
	}
	w.prove(ctx, w.pinned, w.placeless())
	w.judge(context.WithoutCancel(ctx)) // a deadline here applies to this repository alone
	w.widen(ctx)
}

// placeless returns the queries whose policy does not name an evidence repository itself.
func (w *work) placeless() []policy.Question {
	var questions []policy.Question
	for _, check := range w.checks {
		for _, q := range check.Questions() {
			if len(q.Sources) == 0 {
				questions = append(questions, q)
			}
		}
	}
	return questions
}

// maxPlaces bounds where evidence about one reference is looked for, one place
// after another. A copy that hundreds of registries share would else keep a request
// at work for as long as it may take.
const maxPlaces = 8

// bounded returns the repositories to search, and the number of those left out. The
// image's own repository is always included.
func bounded(evidence []image.Repository, own image.Repository) ([]image.Repository, int) {
	if len(evidence) <= maxPlaces {
		return evidence, 0
	}
	first := slices.Clone(evidence[:maxPlaces])
	if slices.Contains(evidence, own) && !slices.Contains(first, own) {
		first[maxPlaces-1] = own
	}
	return first, len(evidence) - maxPlaces
}
