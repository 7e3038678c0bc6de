package cel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/exception"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/autogen"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// excepting is a PolicyException among the documents.
type excepting struct {
	source source.Document
	exception.Document
}

// readExceptions reads the exceptions among documents: rules that they treat differently are no one policy.
func (c *converter) readExceptions(documents []source.Document) {
	for _, d := range documents {
		if !kyverno.RecognisesException(d.APIVersion, d.Kind) {
			continue
		}
		e := excepting{source: d}
		_, err := c.kyverno.CompileException(d.Text, "the exception")
		if err == nil {
			err = json.Unmarshal(d.Text, &e.Document)
		}
		if err != nil {
			c.Refuse(d.Prefix, err.Error(), "mend the exception")
			continue
		}
		c.exceptions = append(c.exceptions, e)
	}
}

// covered tells rules apart that exceptions treat differently.
func (c *converter) covered(compiled *policy.Policy, name string) string {
	var text []string
	for _, e := range c.exceptions {
		text = append(text, e.Covered(exceptedName(compiled), ruleOf(compiled, name)))
	}
	return strings.Join(text, " ")
}

// apart tells rules apart that exceptions, or suites, treat differently: they do not become one policy.
func (c *converter) apart(compiled *policy.Policy, name string) string {
	return c.covered(compiled, name) + " " + c.options.Tested[compiled.Name][name]
}

// exceptedName is the name of a policy in exceptions.
func exceptedName(p *policy.Policy) string {
	if p.Namespace != "" {
		return p.Namespace + "/" + p.Name
	}
	return p.Name
}

// ruleOf returns a rule with those that follow from it.
func ruleOf(compiled *policy.Policy, name string) exception.Rule {
	type named interface {
		Name() string
		Targets() []policy.Target
	}
	var all []named
	for _, r := range compiled.Rules {
		if r, is := r.(named); is {
			all = append(all, r)
		}
	}
	for _, r := range compiled.Validations {
		all = append(all, r)
	}
	for _, r := range compiled.Mutations {
		all = append(all, r)
	}
	for _, r := range compiled.Generations {
		if r, is := r.(named); is {
			all = append(all, r)
		}
	}
	rule := exception.Rule{Name: name}
	for _, f := range autogen.Followers(name, match.PodControllers()) {
		i := slices.IndexFunc(all, func(r named) bool { return r.Name() == f.Name })
		if i < 0 {
			continue
		}
		follower := exception.Follower{Name: f.Name}
		for _, t := range all[i].Targets() {
			if !slices.Contains(follower.Kinds, t.Kind) {
				follower.Kinds = append(follower.Kinds, t.Kind)
			}
		}
		rule.Followers = append(rule.Followers, follower)
	}
	return rule
}

// fileOf is the file of a document.
func fileOf(d source.Document) string {
	file, _, _ := strings.Cut(strings.TrimSuffix(d.Prefix, ": "), ", document ")
	return file
}

// became records the source of a policy, which has some of its rules.
func (c *converter) became(d source.Document, compiled *policy.Policy, made *Policy) error {
	made.File, made.From = fileOf(d), exceptedName(compiled)
	if strings.HasSuffix(made.Kind, "ImageValidatingPolicy") {
		text, err := made.YAML()
		if err == nil {
			_, err = imagevalidating.New(imagevalidating.Options{}).Compile(text, "the result")
		}
		if err != nil {
			return err
		}
	}
	t := exception.Target{Kind: made.Kind, Namespace: made.Namespace, Name: made.Name}
	m, err := made.matched()
	if err != nil {
		return err
	}
	ofPods := !slices.ContainsFunc(m.MatchConstraints.ResourceRules, func(r matchedRule) bool { return !slices.Equal(r.Resources, []string{"pods"}) })
	for _, name := range made.Rules {
		rule := ruleOf(compiled, name)
		if !ofPods { // the part of a rule about other kinds
			rule.Followers = nil
		}
		t.Rules = append(t.Rules, rule)
	}
	for _, r := range m.MatchConstraints.ResourceRules {
		t.Resources = append(t.Resources, r.Resources...)
		t.Deletes = t.Deletes || slices.Contains(r.Operations, "DELETE") || slices.Contains(r.Operations, "*")
	}
	name := exceptedName(compiled)
	c.targets[name] = append(c.targets[name], t)
	return nil
}

// stays records that a rule was not converted.
func (c *converter) stays(compiled *policy.Policy, raw json.RawMessage) {
	name := exceptedName(compiled)
	c.staying[name] = append(c.staying[name], ruleName(raw))
}

// exception converts an exception, after the policies.
func (c *converter) exception(e excepting) {
	const remedy = "keep the exception with the rule that it is for, or write it by hand"
	for i, entry := range e.Spec.Exceptions {
		at := source.Index("spec.exceptions", i)
		switch {
		case !c.has[entry.PolicyName]:
			c.Refuse(e.source.At(at+".policyName"), fmt.Sprintf("%q is not among the policies", entry.PolicyName), "convert it with its policies")
			return
		case c.targets[entry.PolicyName] == nil:
			c.Refuse(e.source.At(at+".policyName"), fmt.Sprintf("the policy %q is not converted", entry.PolicyName), remedy)
			return
		}
		for _, name := range c.staying[entry.PolicyName] {
			if wildcard.Any(entry.RuleNames, name) {
				c.Refuse(e.source.At(at+".ruleNames"), fmt.Sprintf("the rule %s is not converted", name), "keep the exception with that rule")
			}
		}
	}
	results, err := exception.Convert(&e.Document, func(policy string) []exception.Target { return c.targets[policy] })
	if err != nil {
		c.refuseAs(e.source, "", err, remedy)
		return
	}
	for _, r := range results {
		p := Policy{
			Kind: "PolicyException", Name: r.Name, Namespace: e.Metadata.Namespace, File: fileOf(e.source),
			labels: e.Metadata.Labels, annotations: r.Annotations, spec: r.Spec,
		}
		if err := c.sameReach(e, &p); err != nil {
			c.refuseAs(e.source, "", err, remedy)
			return
		}
		c.result.Policies = append(c.result.Policies, p)
	}
}

// sameReach refuses a result that does not compile, or that is for other images or another time than its source.
func (c *converter) sameReach(e excepting, p *Policy) error {
	text, err := p.YAML()
	if err != nil {
		return err
	}
	from, err := c.kyverno.CompileException(e.source.Text, "the exception")
	if err != nil {
		return err
	}
	made, err := imagevalidating.New(imagevalidating.Options{}).CompileException(text, "the result")
	switch {
	case err != nil:
		return err
	case !slices.Equal(from.Images, made.Images):
		return &source.Unsupported{Path: "metadata.annotations[quaymaster.dev/images]", Found: "images that the result would not name exactly"}
	case !from.Expires.Equal(made.Expires):
		return &source.Unsupported{Path: "metadata.annotations[quaymaster.dev/expires]", Found: "a time that the result would not have"}
	}
	return nil
}
