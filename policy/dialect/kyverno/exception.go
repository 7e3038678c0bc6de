package kyverno

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/verifyimages"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/podsecurity"
)

// Annotations of a PolicyException, for settings without a field in Kyverno.
const (
	// imagesAnnotation are patterns as in imageReferences, between commas or lines: the exception is for these images alone.
	imagesAnnotation = "quaymaster.dev/images"
	// expiresAnnotation is when it ends (RFC 3339).
	expiresAnnotation = "quaymaster.dev/expires"
	reasonAnnotation  = "quaymaster.dev/reason"
)

// exceptionDocument is a PolicyException as it is written.
type exceptionDocument struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       struct {
		Exceptions  []exceptedRules         `json:"exceptions"`
		Match       match.Document          `json:"match"`
		Conditions  any                     `json:"conditions"`
		Background  *bool                   `json:"background"`
		PodSecurity []podsecurity.Exclusion `json:"podSecurity"`
	} `json:"spec"`
	Status json.RawMessage `json:"status,omitempty"`
}

type exceptedRules struct {
	PolicyName string   `json:"policyName"`
	RuleNames  []string `json:"ruleNames"`
}

// RecognisesException reports whether a document of this apiVersion and kind is
// an exception of this dialect.
func RecognisesException(apiVersion, kind string) bool {
	return kind == "PolicyException" && (apiVersion == "kyverno.io/v2" || apiVersion == "kyverno.io/v2beta1")
}

// CompileException compiles one document, YAML or JSON. Source is where it was read. As in
// Kyverno, a rule's name does not cover the rules that are generated from it for pod controllers:
// name autogen-RULE and autogen-cronjob-RULE too, or use a wildcard. Errors are as Compile's.
func (c *Compiler) CompileException(text []byte, source string) (*policy.Exception, error) {
	compiled, err := c.compileException(text, source)
	if err != nil {
		return nil, fmt.Errorf("exception in %s: %w", source, err)
	}
	return compiled, nil
}

func (c *Compiler) compileException(text []byte, source string) (*policy.Exception, error) {
	var d exceptionDocument
	data, err := read(text, &d)
	if err != nil {
		return nil, err
	}
	if !RecognisesException(d.APIVersion, d.Kind) {
		return nil, fmt.Errorf("%s %s is no Kyverno exception: want PolicyException of kyverno.io/v2 or v2beta1", d.APIVersion, d.Kind)
	}
	meta, err := readMetadata(d.Metadata)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	out := &policy.Exception{Group: "kyverno.io", Namespace: meta.Namespace, Name: meta.Name, Source: source, Hash: hex.EncodeToString(sum[:])}
	out.Unscanned = d.Spec.Background != nil && !*d.Spec.Background
	if out.Namespace == "" {
		out.Namespace = "default"
	}
	var errs []error
	if meta.Name == "" {
		errs = append(errs, field.Fail("metadata.name", "is empty"))
	}
	out.PodSecurity, err = exemptions(d.Spec.PodSecurity)
	errs = append(errs, err, field.RefuseNull(data, "conditions", "podSecurity"))
	out.Rules, err = compileExcepted(d.Spec.Exceptions)
	errs = append(errs, err, exceptionAnnotations(out, meta.Annotations))
	out.Scope, err = c.compileScope(&d)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// exemptions reads podSecurity: the excluded controls of the Pod Security Standards.
func exemptions(list []podsecurity.Exclusion) ([]policy.PodSecurityExemption, error) {
	if _, err := podsecurity.CompileExclusions(list, "spec.podSecurity"); err != nil {
		return nil, err
	}
	var out []policy.PodSecurityExemption
	for _, e := range list {
		out = append(out, policy.PodSecurityExemption{Control: e.ControlName, Images: e.Images, Field: e.RestrictedField, Values: e.Values})
	}
	return out, nil
}

func compileExcepted(list []exceptedRules) ([]policy.ExceptedRule, error) {
	const path = "spec.exceptions"
	if len(list) == 0 {
		return nil, field.Fail(path, "is empty: name the policies and their rules")
	}
	if len(list) > maxRules {
		return nil, field.Fail(path, "the number of policies %w of %d", jmespath.ErrTooLarge, maxRules)
	}
	var errs []error
	var rules []policy.ExceptedRule
	for i, e := range list {
		place := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case e.PolicyName == "":
			errs = append(errs, field.Fail(place+".policyName", "is empty"))
		case wildcard.Contains(e.PolicyName):
			errs = append(errs, field.Fail(place+".policyName", "%q: a policy is named in full, as NAME or NAMESPACE/NAME", e.PolicyName))
		}
		if len(e.RuleNames) == 0 || slices.Contains(e.RuleNames, "") {
			errs = append(errs, field.Fail(place+".ruleNames", "is empty, or names an empty rule: name rules, * for all of them"))
		}
		if len(e.RuleNames) > maxRules {
			errs = append(errs, field.Fail(place+".ruleNames", "the number of rules %w of %d", jmespath.ErrTooLarge, maxRules))
		}
		rules = append(rules, policy.ExceptedRule{Policy: e.PolicyName, Rules: e.RuleNames})
	}
	return rules, errors.Join(errs...)
}

// exceptionAnnotations reads the project's annotations and refuses misspelt ones: the exception
// would be wider than its author intended.
func exceptionAnnotations(out *policy.Exception, annotations map[string]string) error {
	errs := []error{document.UnknownAnnotations(annotations, imagesAnnotation, expiresAnnotation, reasonAnnotation)}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		value, path := annotations[key], "metadata.annotations["+key+"]"
		switch key {
		case imagesAnnotation:
			for text := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == '\n' }) {
				text = strings.TrimSpace(text)
				if text == "" {
					continue
				}
				pattern, err := verifyimages.Pattern(text, path, true)
				errs = append(errs, err)
				out.Images = append(out.Images, pattern)
			}
			switch {
			case len(out.Images) == 0:
				errs = append(errs, field.Fail(path, "is empty: name images, or leave the annotation out"))
			case len(out.Images) > maxEntries:
				errs = append(errs, field.Fail(path, "the number of images %w of %d", jmespath.ErrTooLarge, maxEntries))
			case len(out.PodSecurity) > 0:
				errs = append(errs, field.Fail(path, "does not confine podSecurity: write the images of each control in spec.podSecurity"))
			}
		case expiresAnnotation:
			var err error
			out.Expires, err = time.Parse(time.RFC3339, strings.TrimSpace(value))
			if err != nil || out.Expires.IsZero() {
				errs = append(errs, field.Fail(path, "%q is no time: write it as in 2027-01-31T00:00:00Z", value))
			}
		case reasonAnnotation:
			out.Reason = strings.TrimSpace(value)
		}
	}
	return errors.Join(errs...)
}

// exceptionScope is a policy.ExceptionScope.
type exceptionScope struct {
	match      match.Block
	conditions *condition.Conditions // nil for none
	reads      rulecontext.Reading   // of conditions
}

func (c *Compiler) compileScope(d *exceptionDocument) (policy.ExceptionScope, error) {
	block, err := match.CompileExcepting(d.Spec.Match, "spec.match")
	scope := exceptionScope{match: block}
	if d.Spec.Conditions == nil {
		return scope, err
	}
	conditions, problem := condition.CompileExempting(c.options.Engine, d.Spec.Conditions)
	scope.conditions = conditions
	scope.reads.Value(d.Spec.Conditions)
	return scope, errors.Join(err, field.Below("spec.conditions", problem), document.EmptyConditions(d.Spec.Conditions, "spec.conditions"),
		document.ExemptingConditions(d.Spec.Conditions, "spec.conditions"), rulecontext.CheckConditions(d.Spec.Conditions, "spec.conditions", nil))
}

// MayRematch reports whether the exception selects objects by names, labels, annotations or
// conditions.
func (e exceptionScope) MayRematch() bool {
	_, plain := e.match.AboutPods()
	return !plain || e.conditions != nil
}

// Covers evaluates match and conditions. An indeterminate object is not covered.
func (e exceptionScope) Covers(ctx context.Context, s *policy.Subject) (bool, error) {
	matched, err := e.match.Matches(s, match.Excepting).Result()
	if err != nil || !matched || e.conditions == nil {
		return matched && err == nil, err
	}
	if s.Bare {
		if err := e.reads.Of(s); err != nil {
			return false, err
		}
	}
	for _, s := range operations(s, e.reads) {
		result, err := e.conditions.Evaluate(rulecontext.Entries{}.Context(ctx, rulecontext.Source{Subject: s}))
		if err != nil || !result.Held {
			return false, field.Below("spec.conditions", err)
		}
	}
	return true, nil
}
