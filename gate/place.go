package gate

import (
	"context"
	"sync"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// place is a repository where evidence about an image is looked for. The first
// place of a work is asked first; a later one only while a check is not met.
type place struct {
	repository image.Repository
	open       func(context.Context) (Session, error) // nil: session is there
	// isLater: facts of an earlier place may be remembered for the same question,
	// and are added to.
	isLater bool

	once    sync.Once
	session Session
	err     error
}

// ask returns the session for the place.
func (p *place) ask(ctx context.Context) (Session, error) {
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
		var questions []policy.Question
		for _, check := range w.checks {
			for _, q := range check.Questions() {
				if len(q.Sources) == 0 { // the policy does not say where itself
					questions = append(questions, q)
				}
			}
		}
		w.prove(ctx, w.pinned, questions)
		w.judge(ctx)
		w.widen(ctx)
	}
}

// merge adds what a later place says to an answer.
func merge(first, more policy.Answer) policy.Answer {
	return policy.Answer{
		Facts:      append(first.Facts[:len(first.Facts):len(first.Facts)], more.Facts...),
		Rejections: append(first.Rejections[:len(first.Rejections):len(first.Rejections)], more.Rejections...),
		Gaps:       append(first.Gaps[:len(first.Gaps):len(first.Gaps)], more.Gaps...),
		Instead:    union(first.Instead, more.Instead),
	}
}
