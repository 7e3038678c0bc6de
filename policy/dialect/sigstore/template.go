package sigstore

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	prototrust "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/clusterimagepolicy"
	scripts "github.com/quaymaster/quaymaster/policy/dialect/sigstore/internal/script"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
)

// made is a check without an image, and the texts that it was made of.
type made struct {
	texts texts
	check policy.Check
	// members and overall are the judge's input; none where the check expresses everything.
	members []member
	overall *scripts.Condition
}

// member is an authority as a judge asks it: by a check of its own.
type member struct {
	signer *signer
	check  policy.Check
}

// texts are the current contents of TrustRoots, by their names, Secrets, and external
// policies, by their locations.
type texts struct {
	roots   map[string][]byte
	secrets map[clusterimagepolicy.SecretRef]string
	scripts map[string]string
}

func (t texts) equal(other texts) bool {
	return maps.EqualFunc(t.roots, other.roots, bytes.Equal) && maps.Equal(t.secrets, other.secrets) && maps.Equal(t.scripts, other.scripts)
}

// template returns the rule with the current TrustRoots, Secrets and ConfigMaps.
func (r *rule) template(ctx context.Context) (*made, error) {
	now, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	if have := r.made.Load(); have != nil && have.texts.equal(now) {
		return have, nil
	}
	fresh := &made{texts: now}
	if err := r.make(fresh); err != nil {
		return nil, err
	}
	r.made.Store(fresh)
	return fresh, nil
}

// look reads everything that the rule names.
func (r *rule) look(ctx context.Context) (texts, error) {
	var out texts
	for _, s := range r.live {
		if err := r.lookFor(ctx, s, &out); err != nil {
			return out, err
		}
	}
	if r.overall != nil {
		return out, r.lookAt(ctx, &r.overall.script, &out)
	}
	return out, nil
}

func (r *rule) lookFor(ctx context.Context, s *signer, out *texts) error {
	for _, name := range s.refs.names() {
		if r.compiler.options.TrustRoots == nil {
			return fmt.Errorf("%s names the TrustRoot %s, and none is known here", s.short(), name)
		}
		text, err := r.compiler.options.TrustRoots.TrustedRoot(name)
		if err != nil {
			return fmt.Errorf("%s: %w", s.short(), err)
		}
		put(&out.roots, name, text)
	}
	for _, secret := range []*clusterimagepolicy.SecretRef{s.keySecret, s.caSecret} {
		if secret == nil {
			continue
		}
		text, err := r.compiler.entry(ctx, *secret)
		if err != nil {
			return fmt.Errorf("%s: %w", s.short(), err)
		}
		put(&out.secrets, *secret, text)
	}
	for i := range s.attestations {
		if err := r.lookAt(ctx, &s.attestations[i].script, out); err != nil {
			return err
		}
	}
	return nil
}

// lookAt reads an external policy. One with a sum is read once.
func (r *rule) lookAt(ctx context.Context, s *script, out *texts) error {
	if !s.elsewhere() {
		return nil
	}
	if have := r.made.Load(); have != nil && s.remote != nil {
		if text, ok := have.texts.scripts[s.place()]; ok {
			put(&out.scripts, s.place(), text)
			return nil
		}
	}
	text, err := r.compiler.read(ctx, s)
	if err != nil {
		return err
	}
	put(&out.scripts, s.place(), text)
	return nil
}

func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// make makes the check. An image that passes without verification is neither resolved nor
// pinned; one that is refused without verification is not requested either.
func (r *rule) make(m *made) error {
	out := &m.check
	*out = policy.Check{Entry: ruleName, Action: r.action, Claims: policy.Claims{Required: !r.passes}}
	if r.judged {
		return r.makeJudged(m)
	}
	switch {
	case r.passes:
		return nil
	case len(r.live) == 0:
		out.Deny, out.DenyMessage = refuse{}, r.refusals[0].Message
		return nil
	}
	out.MutateDigest, out.VerifyDigest = true, true
	roots, err := m.texts.parse()
	if err != nil {
		return err
	}
	anyOf := policy.Requirement{Name: ruleName, Threshold: 1}
	if len(r.live) == 1 {
		anyOf.Name = r.live[0].short()
	}
	for _, s := range r.live {
		if err := s.join(&anyOf, m.texts, roots); err != nil {
			return err
		}
	}
	return r.ask(out, r.live[0], anyOf, m.texts)
}

// makeJudged makes a check for each authority, and one of all their questions.
func (r *rule) makeJudged(m *made) error {
	out := &m.check
	roots, err := m.texts.parse()
	if err != nil {
		return err
	}
	for _, s := range r.live {
		one := member{signer: s, check: policy.Check{Entry: s.short(), Claims: policy.Claims{Required: true}}}
		anyOf := policy.Requirement{Name: s.short(), Threshold: 1}
		if err := s.join(&anyOf, m.texts, roots); err != nil {
			return err
		}
		if err := r.ask(&one.check, s, anyOf, m.texts); err != nil {
			return err
		}
		if err := one.check.Validate(); err != nil {
			return err
		}
		m.members = append(m.members, one)
		out.Asks = append(out.Asks, one.check.Questions()...)
	}
	out.MutateDigest = len(r.live) > 0 || r.byDigest
	out.VerifyDigest = out.MutateDigest
	if r.overall == nil {
		return nil
	}
	if r.overall.config && (r.passes || len(r.live) > 0) {
		out.WantsData, out.MutateDigest, out.VerifyDigest = policy.DataEach, true, true
	}
	m.overall, err = r.overall.script.now(r.compiler, m.texts.scripts)
	return err
}

func (t texts) parse() (map[string]*prototrust.TrustedRoot, error) {
	roots := make(map[string]*prototrust.TrustedRoot, len(t.roots))
	for name, text := range t.roots {
		root, err := trustroot.Unmarshal(text)
		if err != nil {
			return nil, fmt.Errorf("the TrustRoot %s: %w", name, err)
		}
		roots[name] = root
	}
	return roots, nil
}

// join adds the authority to a set of which one suffices.
func (s *signer) join(anyOf *policy.Requirement, now texts, roots map[string]*prototrust.TrustedRoot) error {
	authorities, err := s.resolved(now.secrets, roots)
	if err != nil {
		return fmt.Errorf("%s: %w", s.short(), err)
	}
	for _, a := range authorities {
		anyOf.Members = append(anyOf.Members, policy.Member{Authority: &a, Sources: s.sources})
	}
	return nil
}

// ask adds the statements that an authority requires to the check, or a signature where it
// requires none.
func (r *rule) ask(check *policy.Check, s *signer, anyOf policy.Requirement, now texts) error {
	for i := range s.attestations {
		a, err := s.attestations[i].ask(r.compiler, now.scripts, anyOf)
		if err != nil {
			return err
		}
		check.Attestations = append(check.Attestations, a)
	}
	if len(check.Attestations) == 0 {
		check.Requirements = []policy.Requirement{anyOf}
	}
	return nil
}

// refuse is a condition of denial that always holds.
type refuse struct{}

// Holds returns true.
func (refuse) Holds(any) (bool, string, error) { return true, "", nil }
