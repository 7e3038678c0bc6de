package set

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// With returns a set of the same policies with these exceptions. An exception without rules is an
// error. So are two of one group with the same ID: the exempted objects would be ambiguous.
func (s *Set) With(exceptions ...*policy.Exception) (*Set, error) {
	sorted := slices.Clone(exceptions)
	slices.SortStableFunc(sorted, narrower)
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", s.policiesHash)
	var errs []error
	seen := map[string]*policy.Exception{}
	for _, e := range sorted {
		errs = append(errs, e.Validate())
		key := e.Group + "/" + e.ID()
		if other := seen[key]; other != nil {
			errs = append(errs, fmt.Errorf("exception %s is defined twice: in %s and in %s", e.ID(), other.Source, e.Source))
		}
		seen[key] = e
		fmt.Fprintf(h, "except %s=%s\n", key, e.Hash)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	with := *s
	with.exceptions = sorted
	with.rulesHash = s.policiesHash
	if len(sorted) > 0 {
		with.rulesHash = hex.EncodeToString(h.Sum(nil))
	}
	with.hash = with.overrides.join(with.rulesHash)
	return &with, nil
}

// Exceptions returns the exceptions, the narrowest first. The slice is not to be
// changed.
func (s *Set) Exceptions() []*policy.Exception { return s.exceptions }

// narrower orders exceptions: images listed before all images, literal before
// wildcard, fewer rules before more, then by ID and group.
func narrower(a, b *policy.Exception) int {
	return cmp.Or(
		compareBool(len(a.Images) == 0, len(b.Images) == 0),
		compareBool(slices.ContainsFunc(a.Images, wildcard.Contains), slices.ContainsFunc(b.Images, wildcard.Contains)),
		compareBool(hasWildRules(a), hasWildRules(b)),
		cmp.Compare(countRules(a), countRules(b)),
		strings.Compare(a.ID(), b.ID()),
		strings.Compare(a.Group, b.Group),
	)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func hasWildRules(e *policy.Exception) bool {
	return slices.ContainsFunc(e.Rules, func(r policy.ExceptedRule) bool { return slices.ContainsFunc(r.Rules, wildcard.Contains) })
}

func countRules(e *policy.Exception) int {
	n := 0
	for _, r := range e.Rules {
		n += len(r.Rules)
	}
	return n
}

// Excepts reports whether an exception names a rule of a policy, and has not ended at a time.
func Excepts(e *policy.Exception, p *policy.Policy, rule string, at time.Time) bool {
	return names(e, p, rule) && (e.Expires.IsZero() || at.Before(e.Expires))
}

func names(e *policy.Exception, p *policy.Policy, rule string) bool {
	name := p.Name
	if p.Namespace != "" {
		name = p.Namespace + "/" + p.Name
	}
	return slices.ContainsFunc(e.Rules, func(r policy.ExceptedRule) bool {
		return r.Policy == name && isOfKind(r, p.Kind) && wildcard.Any(r.Rules, rule)
	})
}

func isOfKind(r policy.ExceptedRule, kind string) bool {
	if r.Kind == "" {
		return kind == "ClusterPolicy" || kind == "Policy"
	}
	return r.Kind == kind
}

// SkipReason names the exception for messages.
func SkipReason(e *policy.Exception) string {
	text := "the policy exception " + e.ID() + " leaves it alone"
	if !e.Expires.IsZero() {
		text += " until " + e.Expires.UTC().Format(time.RFC3339)
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// speaking returns the active exceptions that cover the subject and a rule, the narrowest first. One that could not be evaluated covers nothing.
func (s *Set) speaking(ctx context.Context, p *policy.Policy, rule string, subject *policy.Subject) []*policy.Exception {
	var list []*policy.Exception
	for _, e := range s.exceptions {
		if !Excepts(e, p, rule, subject.Time) {
			continue
		}
		if e.Scope != nil {
			if covers, err := e.Scope.Covers(ctx, subject); err != nil || !covers {
				continue
			}
		}
		list = append(list, e)
	}
	return list
}

// eases reports whether an exception is for controls of the Pod Security Standards, and for no image.
func eases(e *policy.Exception) bool { return len(e.PodSecurity) > 0 && e.PodSecurity[0].Control != "" }

// called is an image at its place by one of its names.
type called struct {
	pointer string
	name    image.Ref
}

func calledOf(i policy.Image) called { return called{i.Pointer, i.Ref} }

// covering returns the exception that exempts each of the images: the narrowest. If an exception
// that lists images exempts an image of the object, exceptions without a list do not exempt the
// other images. An exception that matches the name of a copy's source exempts the copy, so that a
// redirected image stays exempt. An exception that matches only the copy's name does not exempt
// the source, which must satisfy its own policies.
func covering(speaking []*policy.Exception, images []policy.Image) map[called]*policy.Exception {
	covered := map[called]*policy.Exception{}
	cover := func(name called, e *policy.Exception) {
		if covered[name] == nil {
			covered[name] = e
		}
	}
	for _, e := range speaking {
		if len(e.Images) == 0 && len(covered) > 0 && byName(covered) {
			break
		}
		for _, i := range images {
			if len(e.Images) > 0 && !reference.Exempts(e.Images, i.Ref) {
				continue
			}
			cover(calledOf(i), e)
			if !i.Copy.IsZero() {
				cover(called{i.Pointer, i.Copy}, e)
			}
		}
	}
	return covered
}

func byName(covered map[called]*policy.Exception) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(covered)), func(e *policy.Exception) bool { return len(e.Images) > 0 })
}

// except marks the checks that an exception covers.
func (s *Set) except(ctx context.Context, m ruleIn, checks []policy.Check, subject *policy.Subject) {
	if len(checks) == 0 || len(s.exceptions) == 0 {
		return
	}
	speaking := slices.DeleteFunc(s.speaking(ctx, m.policy, m.rule.Name(), subject), eases)
	var images []policy.Image
	for i := range checks {
		images = append(images, checks[i].Image)
	}
	covered := covering(speaking, images)
	for i := range checks {
		if e := covered[calledOf(checks[i].Image)]; e != nil && checks[i].Skip == "" {
			checks[i].Skip, checks[i].Exception = SkipReason(e), e
		}
		at := slices.IndexFunc(speaking, func(e *policy.Exception) bool { return reference.ExemptsTag(e.Images, checks[i].Image.Ref) })
		if at >= 0 && checks[i].Judge == nil && checks[i].Image.Copy.IsZero() { // the tag of a copy may be another image's
			checks[i].AtTag = &policy.Check{Skip: SkipReason(speaking[at]), Exception: speaking[at]}
		}
	}
}

// excepted returns the exception that makes the evaluation of a rule unnecessary, or nil: exceptions
// exempt the object or, unless the rule is about the object as well, each of its images.
func (s *Set) excepted(ctx context.Context, m ruleIn, subject *policy.Subject, images []policy.Image) *policy.Exception {
	speaking := slices.DeleteFunc(s.speaking(ctx, m.policy, m.rule.Name(), subject), eases)
	if len(speaking) == 0 || speaksOfObject(m.rule) && len(speaking[len(speaking)-1].Images) > 0 {
		return nil
	}
	covered := covering(speaking, images)
	for _, i := range images {
		if !i.Unchanged && covered[calledOf(i)] == nil {
			return nil
		}
	}
	for _, i := range images {
		if e := covered[calledOf(i)]; e != nil {
			return e
		}
	}
	if widest := speaking[len(speaking)-1]; len(widest.Images) == 0 {
		return widest
	}
	return nil
}
