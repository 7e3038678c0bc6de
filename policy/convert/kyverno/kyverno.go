package kyverno

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/internal/images"
	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/verifyimages/imageverification"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
)

// reader converts the fields that it supports.
type reader struct{ *source.Conversion }

// Read adds the policies of each ClusterPolicy or Policy.
func Read(conversion *source.Conversion, documents []source.Document) {
	c := reader{conversion}
	for _, d := range documents {
		var doc document
		if !c.Decode(d.Text, &doc, d.Prefix) {
			continue
		}
		m := c.Metadata(doc.Metadata, d.At("metadata"))
		switch {
		case doc.APIVersion != "kyverno.io/v1" && doc.APIVersion != "kyverno.io/v2beta1":
			c.Refuse(d.At("apiVersion"), fmt.Sprintf("%q", doc.APIVersion), "want kyverno.io/v1 or v2beta1")
			continue
		case doc.Kind != "ClusterPolicy" && doc.Kind != "Policy":
			c.Refuse(d.At("kind"), fmt.Sprintf("%q", doc.Kind), "want ClusterPolicy or Policy: an exception names its policy, and is written anew for the new one")
			continue
		case m.Name == "":
			c.Refuse(d.At("metadata.name"), "is missing", "name the policy")
		}
		template := ivp.Policy{Name: m.Name}
		if doc.Kind == "Policy" {
			template.Namespace = m.Namespace
			if m.Namespace == "" {
				template.Namespace = "default"
			}
		}
		c.spec(doc.Spec, template, source.Below(d.Prefix, "spec"))
	}
}

// spec carries the settings, and each rule.
func (c reader) spec(s spec, template ivp.Policy, at string) {
	for _, field := range []struct {
		given      bool
		name, what string
	}{
		{s.ApplyRules == "One", "applyRules", "asks for the first rule that applies, and no other"},
		{len(s.ValidationFailureActionOverrides) > 0, "validationFailureActionOverrides", "gives namespaces actions of their own"},
		{s.EmitWarning, "emitWarning", "asks for warnings beside denials"},
		{s.Admission != nil && !*s.Admission, "admission", "switches admission off"},
	} {
		if field.given {
			c.Refuse(source.Below(at, field.name), field.what,
				"an ImageValidatingPolicy cannot say it: split the policy, or keep it as it is (this gateway takes it, too)")
		}
	}
	template.Actions = c.action(s.ValidationFailureAction, "Audit", at+".validationFailureAction")
	template.FailurePolicy, template.Timeout, template.Background = s.FailurePolicy, s.WebhookTimeoutSeconds, s.Background
	if w := s.WebhookConfiguration; w != nil {
		if w.FailurePolicy != "" {
			template.FailurePolicy = w.FailurePolicy
		}
		if w.TimeoutSeconds != 0 {
			template.Timeout = w.TimeoutSeconds
		}
		template.Conditions = w.MatchConditions
	}
	if !slices.Contains([]string{"", "Fail", "Ignore"}, template.FailurePolicy) {
		c.Refuse(at+".failurePolicy", fmt.Sprintf("%q", template.FailurePolicy), "want Fail or Ignore")
	}
	if len(s.Rules) == 0 || len(s.Rules) > source.MaxRules {
		c.Refuse(at+".rules", fmt.Sprintf("%d rules", len(s.Rules)), fmt.Sprintf("want 1 to %d", source.MaxRules))
		return
	}
	for i, rule := range s.Rules {
		c.rule(rule, template, source.Index(at+".rules", i))
	}
}

func (c reader) action(text, otherwise, at string) []string {
	if text == "" {
		text = otherwise
	}
	switch strings.ToLower(text) {
	case "enforce":
		return []string{"Deny"}
	case "audit":
		return []string{"Audit"}
	}
	c.Refuse(at, fmt.Sprintf("%q", text), "want Enforce or Audit")
	return nil
}

// rule makes a policy of each entry of verifyImages, for each filter of its
// match: all of them must agree, as the entries must.
func (c reader) rule(rule rule, template ivp.Policy, at string) {
	for _, field := range []struct {
		raw  json.RawMessage
		name string
	}{{rule.Mutate, "mutate"}, {rule.Validate, "validate"}, {rule.Generate, "generate"}} {
		if len(field.raw) > 0 {
			c.Refuse(source.Below(at, field.name), "has no equivalent", "move this rule to a separate policy: an ImageValidatingPolicy only verifies images")
		}
	}
	if len(rule.VerifyImages) == 0 {
		if len(rule.Mutate)+len(rule.Validate)+len(rule.Generate) == 0 {
			c.Refuse(source.Below(at, "verifyImages"), "is missing", "state the requirements for images")
		}
		return
	}
	for _, field := range []struct {
		raw        json.RawMessage
		name, what string
	}{
		{rule.Context, "context", "variables of JMESPath"}, {rule.Preconditions, "preconditions", "conditions in JMESPath"},
		{rule.ImageExtractors, "imageExtractors", "image extractors"},
	} {
		if len(field.raw) > 0 {
			c.Refuse(source.Below(at, field.name), field.what+" are given",
				"an ImageValidatingPolicy has CEL in their place (variables, matchConditions, images): write it there by hand, or keep the rule as it is")
		}
	}
	template.Conditions = append(slices.Clone(template.Conditions), rule.CELPreconditions...)
	if len(rule.ReportProperties) > 0 || rule.SkipBackgroundRequests != nil {
		c.Note("Left out, since they decorate Kyverno's reports: reportProperties and skipBackgroundRequests of %s.", at)
	}
	matches := c.matches(rule, template, at)
	for i, raw := range rule.VerifyImages {
		place := source.Index(source.Below(at, "verifyImages"), i)
		var entry imageverification.Entry
		if !c.Decode(raw, &entry, place) || c.variables(raw, place) {
			continue
		}
		for _, match := range matches {
			p := match
			p.Name = template.Name + "-" + rule.Name
			if len(rule.VerifyImages) > 1 {
				p.Name += "-" + strconv.Itoa(i+1)
			}
			before := len(c.Problems)
			c.entry(&p, entry, place)
			c.Say(&p)
			if len(c.Problems) > before {
				break // the same would be refused again
			}
		}
	}
}

// Entry converts an entry of verifyImages: its images, signers, statements and their requirements. Deprecated
// fields are read as those that replace them. A part that has no form is a problem of the conversion, with its path
// below at.
func Entry(conversion *source.Conversion, raw json.RawMessage, at string) (*ivp.Policy, bool) {
	c := reader{conversion}
	before := len(c.Problems)
	p := &ivp.Policy{}
	var entry imageverification.Entry
	if c.Decode(raw, &entry, at) && !c.variables(raw, at) {
		if field, problem := entry.Fold(); problem != "" {
			c.Refuse(source.Below(at, field), problem, "mend the rule")
		}
		c.entry(p, entry, at)
	}
	return p, len(c.Problems) == before
}

// variables refuses texts with a variable of JMESPath; whole conditions are refused
// elsewhere.
func (c reader) variables(raw json.RawMessage, at string) bool {
	var value any
	_ = json.Unmarshal(raw, &value) // it was decoded
	found := false
	var walk func(value any, at string)
	walk = func(value any, at string) {
		switch v := value.(type) {
		case string:
			if strings.Contains(v, "{{") {
				found = true
				c.Refuse(at, fmt.Sprintf("%q has a variable of JMESPath", v), "write its value, or a CEL expression into the new policy by hand")
			}
		case []any:
			for i, one := range v {
				walk(one, source.Index(at, i))
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				_, text := v[name].(string) // of annotations, which have free names
				if text || name != "conditions" && name != "validate" {
					walk(v[name], source.Below(at, name))
				}
			}
		}
	}
	walk(value, at)
	return found
}

func (c reader) entry(p *ivp.Policy, e imageverification.Entry, at string) {
	if e.Image != "" || e.Key != "" || e.Roots != "" || e.Subject != "" || e.Issuer != "" || len(e.AdditionalExtensions)+len(e.Annotations) > 0 {
		c.Refuse(at, "has image, key, roots, subject, issuer, additionalExtensions or annotations, which Kyverno deprecated", "write imageReferences and attestors")
	}
	if e.Validate != nil {
		c.Refuse(at+".validate", "conditions in JMESPath are given",
			"write them in CEL into the new policy by hand, over extractPayload(image, attestations.NAME), or keep the rule as it is")
	}
	switch e.Type {
	case "", "Cosign", "Notary", "SigstoreBundle":
	default:
		c.Refuse(at+".type", fmt.Sprintf("%q", e.Type), "want Cosign, SigstoreBundle or Notary")
	}
	if e.Type != "Notary" {
		c.Note("Kyverno's types Cosign and SigstoreBundle each look at one place. These policies take a signature in either form.")
	}
	if e.CosignOCI11 != nil || e.UseCache != nil {
		c.Note("Left out, since they decide nothing here: cosignOCI11 and useCache.")
	}
	if e.FailureAction != "" {
		p.Actions = c.action(e.FailureAction, "", at+".failureAction")
	}
	is := func(b *bool) bool { return b == nil || *b }
	p.Pin = &ivp.Pinning{Mutate: is(e.MutateDigest), Verify: is(e.VerifyDigest), Required: is(e.Required)}
	if e.ImageRegistryCredentials != nil {
		own := ivp.Credentials(*e.ImageRegistryCredentials)
		p.Credentials = &own
	}
	c.images(p, e, at)
	b := &builder{reader: c, ivp: p, entry: e, taken: map[string]bool{}}
	for i, set := range e.Attestors {
		if demand := b.set(set, "", source.Index(at+".attestors", i), 0); demand != "" {
			p.Validations = append(p.Validations, ivp.Validation{Expression: ivp.Every(demand), Message: "no signature that the policy accepts"})
		}
	}
	b.attestations(at + ".attestations")
	if len(e.Attestors)+len(e.Attestations) > 0 {
		return
	}
	if p.Pin.Required {
		c.Refuse(at, "requires a verification and has no attestors", "name attestors, or say required: false if only the digest matters")
	}
	p.Validations = []ivp.Validation{{Expression: "true", Comment: "Nothing is asked but a digest (validationConfigurations)."}}
}

// images selects the images of imageReferences without those of
// skipImageReferences.
func (c reader) images(p *ivp.Policy, e imageverification.Entry, at string) {
	if len(e.ImageReferences) == 0 {
		c.Refuse(at+".imageReferences", "is missing", "set the images")
	}
	var takes images.Some
	for i, text := range e.ImageReferences {
		if why := reference.Unmatchable(text); why != "" {
			c.Refuse(source.Index(at+".imageReferences", i), fmt.Sprintf("%q can match no image", text), why)
		}
		if strings.ContainsAny(text, "[]") {
			c.Refuse(source.Index(at+".imageReferences", i), fmt.Sprintf("%q has an address in brackets, which are a class of characters in a glob", text),
				"write the name of the registry")
		}
		takes = append(takes, wildcardPattern(text, false))
	}
	var skips []images.Test
	for i, text := range e.SkipImageReferences {
		if why := reference.Unmatchable(text); why != "" {
			c.Refuse(source.Index(at+".skipImageReferences", i), fmt.Sprintf("%q can match no image", text), why)
		}
		skips = append(skips, wildcardPattern(text, true))
	}
	if len(skips) == 0 {
		for _, text := range e.ImageReferences {
			p.Images = append(p.Images, ivp.ImageReference{Glob: text})
		}
		return
	}
	comment := "The images of " + strings.Join(e.ImageReferences, ", ")
	comment += ", without those of " + strings.Join(e.SkipImageReferences, ", ")
	p.Images = []ivp.ImageReference{images.Selection{Spelling: images.ByIdentity, Takes: takes, Before: skips}.Reference(comment + ".")}
}

// wildcardPattern is a pattern of imageReferences as a question about a name by its
// identity. One that names a repository alone, or every tag of it, means digests,
// too; and one for Docker Hub may leave out library/, and the registry. One that
// exempts is taken by the letter.
func wildcardPattern(text string, exempts bool) images.Pattern {
	text = reference.Normal(text)
	expression := func(glob string) string {
		return strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(glob))
	}
	prefix, rest := "^", text
	if path, ok := strings.CutPrefix(text, "docker.io/"); ok && !strings.HasPrefix(path, "library/") {
		prefix, rest = `^docker\.io/(library/)?`, path
	} else if !exempts && !reference.HasRegistry(text) {
		prefix = `^(docker\.io/(library/)?)?`
	}
	if exempts {
		return images.Pattern(prefix + expression(rest) + "$")
	}
	versioned := func(rest string) string {
		if reference.Untagged(text) {
			return expression(rest) + "[:@]"
		}
		if base, ok := strings.CutSuffix(rest, ":*"); ok && !strings.HasSuffix(base, "*") {
			return expression(base) + "[:@]"
		}
		if strings.HasSuffix(rest, ":") || strings.HasSuffix(rest, "?") { // Kyverno compares a digest as an empty tag, too
			return "(" + expression(rest) + "$|" + expression(rest[:len(rest)-1]) + "@)"
		}
		return expression(rest) + "$"
	}
	whole := prefix + versioned(rest)
	for _, path := range images.Kyverno.HubPaths(text) {
		whole += `|^docker\.io/(library/)?` + versioned(path)
	}
	return images.Pattern(whole)
}
