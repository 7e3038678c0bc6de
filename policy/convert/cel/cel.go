package cel

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/exception"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/cleanup"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/validating"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
	"github.com/quaymaster/quaymaster/policy/lang/cel/mutation"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/workload"
)

// Problem is a part of a policy that has no form in CEL.
type Problem = source.Problem

// ExistingViolations decides about the excuse of updates: under Enforce an update is admitted
// if the object violated the rule before.
type ExistingViolations string

// The treatments of the excuse.
const (
	// Keep writes the excuse into the policy; the default.
	Keep ExistingViolations = "keep"
	// Drop leaves it out: an update of an object that violates a rule is denied.
	Drop ExistingViolations = "drop"
)

// Options configure a conversion.
type Options struct {
	// ExistingViolations is Keep or Drop; empty means Keep.
	ExistingViolations ExistingViolations
	// Partial converts the rules that have a form in CEL, of a policy that has others as well.
	Partial bool
	// Tested has the objects with which suites test rules, in any form, by the name of the policy and that of the
	// rule. Rules that are tested with different objects do not become one policy, which has one result.
	Tested map[string]map[string]string
}

// Result has the converted policies.
type Result struct {
	// Policies are the converted policies, in the order of reading.
	Policies []Policy
	// Rest is, with Options.Partial, what stays of documents with problems: the rules of a policy that were not
	// converted, or the whole document.
	Rest []Policy
	// Beside are the documents of other groups, as they are.
	Beside []Policy
	// Problems are the parts that have no form in CEL. Without Options.Partial the policies are
	// those of the documents without any.
	Problems []Problem
	// Dropped are the rules without their excuse of updates, as policy/rule.
	Dropped []string
	// Guessed are the resources of custom kinds, of which the kinds suggest the names, as policy: resource.
	Guessed []string
}

// converter reads documents.
type converter struct {
	*source.Conversion
	options Options
	engine  *jmespath.Engine
	kyverno *kyverno.Compiler
	types   *schema.Finder
	merging func() *mutation.Types
	// results compiles the written policies.
	results *validating.Compiler
	result  Result
	// exceptions are those among the documents.
	exceptions []excepting
	// targets are the policies that each policy has become, by its name in exceptions, where has is true for
	// each that was read.
	targets map[string][]exception.Target
	has     map[string]bool
	// staying are the names of the rules that were not converted, by their policy's.
	staying map[string][]string
}

// Convert converts policies in their order, and then exceptions. It passes over objects of other groups. An
// error is about the options or an object that is no document.
func Convert(objects []workload.Object, options Options) (Result, error) {
	if options.ExistingViolations != "" && options.ExistingViolations != Keep && options.ExistingViolations != Drop {
		return Result{}, fmt.Errorf("existing violations %q: want %s or %s", options.ExistingViolations, Keep, Drop)
	}
	documents, err := source.Documents(objects)
	if err != nil {
		return Result{}, err
	}
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		return Result{}, err
	}
	rules, err := kyverno.New(kyverno.Options{Engine: engine})
	if err != nil {
		return Result{}, err
	}
	c := &converter{
		Conversion: source.New(source.Options{}), options: options, engine: engine, kyverno: rules, types: schema.NewFinder(),
		targets: map[string][]exception.Target{}, has: map[string]bool{}, staying: map[string][]string{},
		results: validating.New(kyvernocel.Options{}),
	}
	c.readExceptions(documents)
	c.merging = sync.OnceValue(mutation.NewTypes)
	for _, d := range documents {
		if !kyverno.RecognisesException(d.APIVersion, d.Kind) {
			c.result.carry(d, func() {
				before := len(c.Problems)
				c.document(d)
				c.rest(d, before)
			})
		}
	}
	for _, e := range c.exceptions {
		c.result.carry(e.source, func() {
			before := len(c.Problems)
			c.exception(e)
			c.rest(e.source, before)
		})
	}
	c.result.Problems = c.Problems
	return c.result, nil
}

// document converts one document.
func (c *converter) document(d source.Document) {
	if cleanup.Recognises(d.APIVersion, d.Kind) {
		c.cleanup(d)
		return
	}
	if group, _, _ := strings.Cut(d.APIVersion, "/"); group != "kyverno.io" {
		c.beside(d)
		return
	}
	if !kyverno.Recognises(d.APIVersion, d.Kind) {
		c.Refuse(d.At("kind"), fmt.Sprintf("%s %s", d.APIVersion, d.Kind), "want a ClusterPolicy, Policy, ClusterCleanupPolicy or CleanupPolicy of kyverno.io")
		return
	}
	var doc document
	if err := json.Unmarshal(d.Text, &doc); err != nil {
		c.Refuse(d.Prefix, err.Error(), "mend the policy")
		return
	}
	compiled, err := c.kyverno.Compile(d.Text, "the policy")
	if err != nil {
		c.Refuse(d.Prefix, err.Error(), "mend the policy")
		return
	}
	c.has[exceptedName(compiled)] = true
	before := len(c.Problems)
	c.settings(d, &doc)
	if len(c.Problems) > before {
		return // no rule can be converted without the settings of its policy
	}
	delete(doc.Metadata.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
	delete(doc.Metadata.Annotations, autogenAnnotation)
	made, dropped := c.rules(d, &doc, compiled)
	made = sound(c, d, made)
	if len(c.Problems) > before && !c.options.Partial {
		delete(c.targets, exceptedName(compiled))
		return
	}
	c.result.Policies, c.result.Dropped = append(c.result.Policies, made...), append(c.result.Dropped, dropped...)
}

// part is what becomes a policy of its own: rules that validate and match the same, or a rule of another type.
type part interface {
	// label is the name of the rule, which is behind that of the policy.
	label() string
	// names are those of the rules in it.
	names() []string
	policy(doc *document, name string) Policy
}

// rules converts the rules of a policy. Rules with the same match become one policy.
func (c *converter) rules(d source.Document, doc *document, compiled *policy.Policy) (made []Policy, dropped []string) {
	var groups []*group
	var parts []part
	for _, text := range c.textsOf(doc, compiled) {
		before := len(c.Problems)
		if !hasField(text.raw, "validate") {
			parts = c.other(d, doc, compiled, text, parts)
			if len(c.Problems) > before {
				c.stays(compiled, text.raw)
			}
			continue
		}
		r := c.rule(d, doc, compiled, text)
		if len(c.Problems) > before {
			c.stays(compiled, text.raw)
			continue
		}
		if r.excused && c.options.ExistingViolations == Drop {
			r.excused, dropped = false, append(dropped, doc.Metadata.Name+"/"+r.name)
		}
		c.guessed(doc, r.selection.Guessed)
		r.apart = c.apart(compiled, r.name)
		at := slices.IndexFunc(groups, func(g *group) bool { return g.takes(r) })
		if at < 0 {
			groups, at = append(groups, &group{first: r}), len(groups)
			parts = append(parts, groups[at])
		}
		groups[at].rules = append(groups[at].rules, r)
	}
	for _, p := range parts {
		one := p.policy(doc, nameOf(doc.Metadata.Name, parts, p, made))
		one.Rules = p.names()
		if err := c.became(d, compiled, &one); err != nil {
			c.refuse(d, "", err)
		}
		made = append(made, one)
	}
	return made, dropped
}

// other adds the parts of a rule that does not validate.
func (c *converter) other(d source.Document, doc *document, compiled *policy.Policy, text ruleText, parts []part) []part {
	isOther := hasField(text.raw, "mutate") || hasField(text.raw, "generate")
	if isOther && doc.Spec.ApplyRules == "One" && len(doc.Spec.Rules) > 1 {
		c.refuse(d, text.at, &source.Unsupported{Found: "applyRules: One, with other rules"})
		return parts
	}
	switch {
	case hasField(text.raw, "mutate"):
		for _, m := range c.mutate(d, compiled, text, parts) {
			c.guessed(doc, m.(mutates).Selection.Guessed)
			parts = append(parts, m)
		}
	case hasField(text.raw, "generate"):
		if g := c.generate(d, text); g != nil {
			c.guessed(doc, g.guessed)
			g.apart = c.apart(compiled, g.name)
			return g.with(parts)
		}
	default:
		return append(parts, c.verifyImages(d, doc, compiled, text)...)
	}
	return parts
}

// unused returns a name that no policy has.
func unused(name string, made []Policy) string {
	stem := name
	for n := 2; slices.ContainsFunc(made, func(p Policy) bool { return p.Name == name }); n++ {
		name = stem + "-" + strconv.Itoa(n)
	}
	return name
}

// guessed records resources of custom kinds in a policy.
func (c *converter) guessed(doc *document, resources []string) {
	for _, resource := range resources {
		if note := doc.Metadata.Name + ": " + resource; !slices.Contains(c.result.Guessed, note) {
			c.result.Guessed = append(c.result.Guessed, note)
		}
	}
}

// refuse records each of the joined errors of a part.
func (c *converter) refuse(d source.Document, at string, err error) {
	c.refuseAs(d, at, err, "keep the rule as it is")
}

func (c *converter) refuseAs(d source.Document, at string, err error, remedy string) {
	var found *source.Unsupported
	if errors.As(err, &found) {
		c.Refuse(d.At(source.Below(at, found.Path)), found.Found, remedy)
		return
	}
	c.Refuse(d.At(at), err.Error(), remedy)
}
