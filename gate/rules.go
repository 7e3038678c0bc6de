package gate

import (
	"cmp"
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/extract"
	"github.com/quaymaster/quaymaster/policy/lang/patch"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/workload"
)

// hasObject reports whether there is an object that rules can match.
func (p *objectEvaluation) hasObject() bool {
	return !p.request.OnlyImages && !p.subject.Bare && (!p.request.Object.IsZero() || !p.request.Old.IsZero())
}

// mutate has the mutation rules change the object. From here on the changed one is
// the object, and its former names do not count.
func (p *objectEvaluation) mutate(ctx context.Context, set *set.Set) error {
	if !p.request.Stage.mutates() && !p.request.Mutations || !p.hasObject() || p.subject.Document {
		return nil
	}
	changed, results := set.Mutate(ctx, p.subject, p.finder)
	p.mutated = results
	for i := range p.mutated {
		p.mutated[i].Ruling.Reasons = deadline.RulingReasons(ctx, p.mutated[i].Ruling)
	}
	if changed == nil || !p.request.Stage.mutates() {
		return nil
	}
	for _, op := range patch.Diff(p.request.Object.Content(), changed) {
		p.patch = append(p.patch, workload.Operation(op))
	}
	if len(p.patch) == 0 {
		return nil
	}
	object, err := p.request.Object.With(changed)
	if err != nil {
		return fmt.Errorf("the object that the mutation rules made: %w", err)
	}
	if err := sameIdentity(p.request.Object, object, p.subject); err != nil {
		return err
	}
	p.request.Object, p.changed = object, object
	p.subject.Object = policy.ContentFrom(object)
	return nil
}

// sameIdentity refuses a mutation that changes the object's identity: rules are matched by
// the request's identity, and the API server accepts no other. A mutation may set a name
// that is yet to be generated, and a namespace that is absent.
func sameIdentity(was, object workload.Object, subject *policy.Subject) error {
	for _, field := range []struct {
		what, is  string
		was       string
		mayBeNone bool
	}{
		{"apiVersion", object.APIVersion(), was.APIVersion(), false},
		{"kind", object.Kind(), was.Kind(), false},
		{"name", object.Name(), cmp.Or(was.Name(), subject.Name), true},
		{"namespace", object.Namespace(), cmp.Or(was.Namespace(), subject.Namespace), true},
	} {
		if field.is == field.was || field.mayBeNone && field.was == "" {
			continue
		}
		if field.what == "namespace" && field.is == "" && was.Namespace() == "" {
			continue
		}
		return fmt.Errorf("the mutation rules change its %s from %q to %q, which makes another object of it", field.what, field.was, field.is)
	}
	return nil
}

// finder finds the images of a subject's object in its current state. It records nothing.
func (p *objectEvaluation) finder(s *policy.Subject) policy.Finder {
	return extract.Finder(func() (workload.Object, error) {
		if s == p.subject {
			return p.request.Object, nil
		}
		return p.request.Object.With(s.Object.Map())
	}, p.images.memory.parse)
}

// validate evaluates the validation rules on the object after mutation, and records their
// objections.
func (p *objectEvaluation) validate(ctx context.Context, set *set.Set, out *Outcome) {
	if !p.request.Stage.validates() || !p.hasObject() {
		return
	}
	subject := p.subject
	defer func() {
		if out.Result != Allow {
			out.Patch, out.Mutations = nil, 0
		}
	}()
	if pins := out.Patch[out.Mutations:]; len(pins) > 0 {
		pinned, err := workload.Apply(p.request.Object, pins)
		if err != nil {
			out.Reasons = append(out.Reasons, policy.Reason{Code: policy.Internal, Message: "the object with its images pinned: " + err.Error()})
			out.Result = First(out.Result, Error)
			return
		}
		final := *p.subject
		final.Object = policy.ContentFrom(pinned)
		subject = &final
	}
	results := set.Validate(ctx, subject, p.finder(subject))
	for i := range results {
		results[i].Ruling.Reasons = deadline.RulingReasons(ctx, results[i].Ruling)
	}
	out.hold(results)
}

// hold records the failures of object rules against the object. Its images have their own
// verdicts, which do not change.
func (o *Outcome) hold(results []policy.RuleResult) {
	for i := range results {
		reasons, is := o.againstObject(&results[i])
		if is != Allow {
			o.Reasons, o.Result = append(o.Reasons, reasons...), First(o.Result, is)
			o.against = First(o.against, is)
		}
	}
	o.annotate(results)
	o.Rules = append(o.Rules, results...)
}

// annotate collects the audit annotations of rules, by the policy's ID and the key. Of several rules of a
// policy with one key, the first counts.
func (o *Outcome) annotate(rules []policy.RuleResult) {
	for i := range rules {
		for key, value := range rules[i].AuditAnnotations {
			if o.AuditAnnotations == nil {
				o.AuditAnnotations = map[string]string{}
			}
			if path := rules[i].Policy.ID() + "/" + key; o.AuditAnnotations[path] == "" {
				o.AuditAnnotations[path] = value
			}
		}
	}
}
