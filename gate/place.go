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
	"github.com/quaymaster/quaymaster/verify"
)

// place is a repository where evidence about an image is looked for. The first
// place of a work is asked first; a later one only while a check is not met.
type place struct {
	repository image.Repository
	open       func(context.Context) (Session, error) // nil: session is there
	// isLater: facts of an earlier place may be remembered for the same question,
	// and are added to.
	isLater bool
	// rest says that a registry did not answer a moment ago; nil: nobody knows.
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

// cost is what the work's sessions cost so far.
func (w *work) cost() Cost {
	total := w.session.Cost()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, session := range w.others {
		total = total.Add(session.Cost())
	}
	return total
}

// lookElsewhere asks the later places while a check is not met by the earlier
// ones. What they say is added: a requirement may be met by parts from both.
func (w *work) lookElsewhere(ctx context.Context) {
	for _, next := range w.later {
		if !w.unproved() || ctx.Err() != nil {
			return
		}
		w.place = next
		w.lookAt(ctx)
	}
	if w.unasked > 0 && w.unproved() {
		gap := &image.Error{Kind: image.Bound, Op: "look for evidence about", On: w.ref.String(), Err: fmt.Errorf("%d places, at most %d are looked at", w.unasked+maxPlaces, maxPlaces)}
		for _, q := range w.placeless() {
			w.add(&place{isLater: true}, questionKey(w.pinned.Digest(), q), policy.Answer{Gaps: []error{gap}})
		}
		w.judge(ctx)
	}
}

// lookAt asks the place for what is missing, in a share of the time that is left.
func (w *work) lookAt(ctx context.Context) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/3)
		defer cancel()
	}
	w.prove(ctx, w.pinned, w.placeless())
	w.judge(context.WithoutCancel(ctx)) // what is late here is so for this place alone
	w.widen(ctx)
}

// placeless returns the questions whose policy does not say itself where to look.
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

// bounded returns the places that are asked, and how many are not. The one beside
// the image is always among them.
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

// merge adds what a later place says to an answer, in place of what the same place
// said before: it is asked again for as long as a check is not met.
func merge(first, more policy.Answer, at image.Repository) policy.Answer {
	facts := slices.Clone(first.Facts)
	if len(more.Facts) > 0 && len(more.Gaps) == 0 {
		facts = slices.DeleteFunc(facts, func(f verify.Fact) bool { return f.Origin.Repository == at })
	}
	return policy.Answer{
		Facts:      append(facts, more.Facts...),
		Rejections: append(first.Rejections[:len(first.Rejections):len(first.Rejections)], more.Rejections...),
		Gaps:       append(first.Gaps[:len(first.Gaps):len(first.Gaps)], more.Gaps...),
		Instead:    union(first.Instead, more.Instead),
	}
}
