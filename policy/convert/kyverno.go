package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/reference"
)

func (c *conversion) kyverno(documents []source) {
	for _, d := range documents {
		var doc kyvernoDocument
		if !c.decode(d.text, &doc, d.prefix) {
			continue
		}
		m := meta(doc.Metadata)
		switch {
		case doc.APIVersion != "kyverno.io/v1" && doc.APIVersion != "kyverno.io/v2beta1":
			c.refuse(d.at("apiVersion"), fmt.Sprintf("%q", doc.APIVersion), "want kyverno.io/v1 or v2beta1")
			continue
		case doc.Kind != "ClusterPolicy" && doc.Kind != "Policy":
			c.refuse(d.at("kind"), fmt.Sprintf("%q", doc.Kind), "want ClusterPolicy or Policy: an exception names its policy, and is written anew for the new one")
			continue
		case m.Name == "":
			c.refuse(d.at("metadata.name"), "is missing", "name the policy")
		}
		template := said{name: m.Name}
		if doc.Kind == "Policy" {
			if template.namespace = m.Namespace; m.Namespace == "" {
				template.namespace = "default"
			}
		}
		c.kyvernoSpec(doc.Spec, template, below(d.prefix, "spec"))
	}
}

// kyvernoSpec carries the settings, and each rule.
func (c *conversion) kyvernoSpec(s kyvernoSpec, template said, at string) {
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
			c.refuse(below(at, field.name), field.what, "an ImageValidatingPolicy cannot say it: split the policy, or keep it as it is (this gateway takes it, too)")
		}
	}
	template.actions = c.kyvernoAction(s.ValidationFailureAction, "Audit", at+".validationFailureAction")
	template.failurePolicy, template.timeout, template.background = s.FailurePolicy, s.WebhookTimeoutSeconds, s.Background
	if w := s.WebhookConfiguration; w != nil {
		if w.FailurePolicy != "" {
			template.failurePolicy = w.FailurePolicy
		}
		if w.TimeoutSeconds != 0 {
			template.timeout = w.TimeoutSeconds
		}
		template.conditions = w.MatchConditions
	}
	if !slices.Contains([]string{"", "Fail", "Ignore"}, template.failurePolicy) {
		c.refuse(at+".failurePolicy", fmt.Sprintf("%q", template.failurePolicy), "want Fail or Ignore")
	}
	if len(s.Rules) == 0 || len(s.Rules) > maxRules {
		c.refuse(at+".rules", fmt.Sprintf("%d rules", len(s.Rules)), fmt.Sprintf("want 1 to %d", maxRules))
		return
	}
	for i, rule := range s.Rules {
		c.kyvernoRule(rule, template, index(at+".rules", i))
	}
}

func (c *conversion) kyvernoAction(text, otherwise, at string) []string {
	if text == "" {
		text = otherwise
	}
	switch strings.ToLower(text) {
	case "enforce":
		return []string{"Deny"}
	case "audit":
		return []string{"Audit"}
	}
	c.refuse(at, fmt.Sprintf("%q", text), "want Enforce or Audit")
	return nil
}

// kyvernoRule makes a policy of each entry of verifyImages, for each filter of its
// match: all of them must agree, as the entries must.
func (c *conversion) kyvernoRule(rule kyvernoRule, template said, at string) {
	for _, field := range []struct {
		raw  json.RawMessage
		name string
	}{{rule.Mutate, "mutate"}, {rule.Validate, "validate"}, {rule.Generate, "generate"}} {
		if len(field.raw) > 0 {
			c.refuse(below(at, field.name), "is a rule of another kind", "keep it in a policy of its own: an ImageValidatingPolicy proves images")
		}
	}
	if len(rule.VerifyImages) == 0 {
		if len(rule.Mutate)+len(rule.Validate)+len(rule.Generate) == 0 {
			c.refuse(below(at, "verifyImages"), "is missing", "say what is asked of images")
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
			c.refuse(below(at, field.name), field.what+" are given", "an ImageValidatingPolicy has CEL in their place (variables, matchConditions, images): write it there by hand, or keep the rule as it is")
		}
	}
	template.conditions = append(slices.Clone(template.conditions), rule.CELPreconditions...)
	if len(rule.ReportProperties) > 0 || rule.SkipBackgroundRequests != nil {
		c.note("Left out, since they decorate Kyverno's reports: reportProperties and skipBackgroundRequests of %s.", at)
	}
	matches := c.kyvernoMatches(rule, template, at)
	for i, raw := range rule.VerifyImages {
		place := index(below(at, "verifyImages"), i)
		var entry kyvernoEntry
		if !c.decode(raw, &entry, place) || c.variables(raw, place) {
			continue
		}
		for _, match := range matches {
			p := match
			p.name = template.name + "-" + rule.Name
			if len(rule.VerifyImages) > 1 {
				p.name += "-" + itoa(i+1)
			}
			before := len(c.problems)
			c.kyvernoEntry(&p, entry, place)
			c.say(&p)
			if len(c.problems) > before {
				break // the same would be refused again
			}
		}
	}
}

// variables refuses texts with a variable of JMESPath; whole conditions are refused
// elsewhere.
func (c *conversion) variables(raw json.RawMessage, at string) bool {
	if !bytes.Contains(raw, []byte("{{")) {
		return false
	}
	var value any
	_ = json.Unmarshal(raw, &value) // it was decoded
	found := false
	var walk func(value any, at string)
	walk = func(value any, at string) {
		switch v := value.(type) {
		case string:
			if strings.Contains(v, "{{") {
				found = true
				c.refuse(at, fmt.Sprintf("%q has a variable of JMESPath", v), "write its value, or a CEL expression into the new policy by hand")
			}
		case []any:
			for i, one := range v {
				walk(one, index(at, i))
			}
		case map[string]any:
			for _, name := range slices.Sorted(mapKeys(v)) {
				_, text := v[name].(string) // of annotations, whose names are free
				if text || name != "conditions" && name != "validate" {
					walk(v[name], below(at, name))
				}
			}
		}
	}
	walk(value, at)
	return found
}

func (c *conversion) kyvernoEntry(p *said, e kyvernoEntry, at string) {
	if e.Image != "" || e.Key != "" || e.Roots != "" || e.Subject != "" || e.Issuer != "" || len(e.AdditionalExtensions)+len(e.Annotations) > 0 {
		c.refuse(at, "has image, key, roots, subject, issuer, additionalExtensions or annotations, which Kyverno deprecated", "write imageReferences and attestors")
	}
	if len(e.Validate) > 0 {
		c.refuse(at+".validate", "conditions in JMESPath are given", "write them in CEL into the new policy by hand, over extractPayload(image, attestations.NAME), or keep the rule as it is")
	}
	switch e.Type {
	case "", "Cosign", "Notary", "SigstoreBundle":
	default:
		c.refuse(at+".type", fmt.Sprintf("%q", e.Type), "want Cosign, SigstoreBundle or Notary")
	}
	if e.Type != "Notary" {
		c.note("Kyverno's types Cosign and SigstoreBundle each look at one place. These policies take a signature in either form.")
	}
	if e.CosignOCI11 != nil || e.UseCache != nil {
		c.note("Left out, since they decide nothing here: cosignOCI11 and useCache.")
	}
	if e.FailureAction != "" {
		p.actions = c.kyvernoAction(e.FailureAction, "", at+".failureAction")
	}
	is := func(b *bool) bool { return b == nil || *b }
	p.pin = &pinning{Mutate: is(e.MutateDigest), Verify: is(e.VerifyDigest), Required: is(e.Required)}
	if e.Credentials != nil {
		own := credentials(*e.Credentials)
		p.credentials = &own
	}
	c.kyvernoImages(p, e, at)
	b := &kyvernoBuilder{conversion: c, said: p, entry: e, taken: map[string]bool{}}
	for i, set := range e.Attestors {
		if demand := b.set(set, "", index(at+".attestors", i), 0); demand != "" {
			p.validations = append(p.validations, validation{Expression: every(demand), Message: "no signature that the policy accepts"})
		}
	}
	b.attestations(at + ".attestations")
	if len(e.Attestors)+len(e.Attestations) > 0 {
		return
	}
	if p.pin.Required {
		c.refuse(at, "requires a proof and names nobody who could give one", "name attestors, or say required: false if only the digest matters")
	}
	p.validations = []validation{{Expression: "true", comment: "Nothing is asked but a digest (validationConfigurations)."}}
}

// kyvernoImages selects the images of imageReferences without those of
// skipImageReferences.
func (c *conversion) kyvernoImages(p *said, e kyvernoEntry, at string) {
	if len(e.ImageReferences) == 0 {
		c.refuse(at+".imageReferences", "is missing", "say which images are meant")
	}
	var takes some
	for i, text := range e.ImageReferences {
		if why := reference.Unmatchable(text); why != "" {
			c.refuse(index(at+".imageReferences", i), fmt.Sprintf("%q can match no image", text), why)
		}
		takes = append(takes, wildcardPattern(text, false))
	}
	var skips []test
	for i, text := range e.SkipImageReferences {
		if why := reference.Unmatchable(text); why != "" {
			c.refuse(index(at+".skipImageReferences", i), fmt.Sprintf("%q can match no image", text), why)
		}
		skips = append(skips, wildcardPattern(text, true))
	}
	if len(skips) == 0 {
		for _, text := range e.ImageReferences {
			p.images = append(p.images, imageReference{Glob: text})
		}
		return
	}
	comment := "The images of " + strings.Join(e.ImageReferences, ", ")
	comment += ", without those of " + strings.Join(e.SkipImageReferences, ", ")
	p.images = []imageReference{selection{spelling: byIdentity, takes: takes, before: skips}.reference(comment + ".")}
}

// wildcardPattern is a pattern of imageReferences as a question about a name by its
// identity. One that names a repository alone, or every tag of it, means digests,
// too; and one for Docker Hub may leave out library/, and the registry. One that
// exempts is taken by the letter.
func wildcardPattern(text string, exempts bool) pattern {
	text = reference.Normal(text)
	expression := func(glob string) string {
		return strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(glob))
	}
	prefix, rest := "^", text
	if path, ok := strings.CutPrefix(text, "docker.io/"); ok && !strings.HasPrefix(path, "library/") {
		prefix, rest = `^docker\.io/(library/)?`, path
	} else if host, _, _ := strings.Cut(text, "/"); !exempts && !strings.ContainsAny(host, ".:") && host != "localhost" {
		prefix = `^(docker\.io/(library/)?)?`
	}
	if exempts {
		return pattern(prefix + expression(rest) + "$")
	}
	if reference.Untagged(text) {
		return pattern(prefix + expression(rest) + "[:@]")
	}
	if base, ok := strings.CutSuffix(rest, ":*"); ok && !strings.HasSuffix(base, "*") {
		return pattern(prefix + expression(base) + "[:@]")
	}
	return pattern(prefix + expression(rest) + "$")
}
