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
	"github.com/quaymaster/quaymaster/policy/condition"
	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/variable"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// Annotations of a PolicyException, for what Kyverno has no field for.
const (
	ownAnnotations = "quaymaster.dev/"
	// imagesAnnotation are patterns as in imageReferences, between commas or
	// lines: the exception is for these images alone.
	imagesAnnotation = "quaymaster.dev/images"
	// expiresAnnotation is when it ends (RFC 3339).
	expiresAnnotation = "quaymaster.dev/expires"
)

// exceptionDocument is a PolicyException as it is written.
type exceptionDocument struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       struct {
		Exceptions  []exceptedRules `json:"exceptions"`
		Match       matchBlock      `json:"match"`
		Conditions  any             `json:"conditions"`
		Background  *bool           `json:"background"`
		PodSecurity []any           `json:"podSecurity"`
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

// CompileException compiles one document, YAML or JSON. Source says where it was
// read. As in Kyverno, a rule's name does not cover the rules that follow from it
// for pod controllers: name autogen-RULE and autogen-cronjob-RULE too, or use a
// wildcard. Errors are as Compile's.
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
	if out.Namespace == "" {
		out.Namespace = "default"
	}
	var errs []error
	if meta.Name == "" {
		errs = append(errs, fail("metadata.name", "is empty"))
	}
	out.Rules, err = compileExcepted(d.Spec.Exceptions)
	errs = append(errs, err, exceptionAnnotations(out, meta.Annotations))
	out.Scope, err = c.compileScope(&d)
	if errs = append(errs, err); len(d.Spec.PodSecurity) > 0 {
		errs = append(errs, unsupported("spec.podSecurity", "an exception for controls of pod security"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

func compileExcepted(list []exceptedRules) ([]policy.ExceptedRule, error) {
	const path = "spec.exceptions"
	if len(list) == 0 {
		return nil, fail(path, "is empty: name the policies and their rules")
	}
	if len(list) > maxRules {
		return nil, fail(path, "the number of policies %w of %d", jmespath.ErrTooLarge, maxRules)
	}
	var errs []error
	var rules []policy.ExceptedRule
	for i, e := range list {
		place := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case e.PolicyName == "":
			errs = append(errs, fail(place+".policyName", "is empty"))
		case wildcard.Contains(e.PolicyName):
			errs = append(errs, fail(place+".policyName", "%q: a policy is named in full, as NAME or NAMESPACE/NAME", e.PolicyName))
		}
		if len(e.RuleNames) == 0 || slices.Contains(e.RuleNames, "") {
			errs = append(errs, fail(place+".ruleNames", "is empty, or names an empty rule: name rules, * for all of them"))
		}
		if len(e.RuleNames) > maxRules {
			errs = append(errs, fail(place+".ruleNames", "the number of rules %w of %d", jmespath.ErrTooLarge, maxRules))
		}
		rules = append(rules, policy.ExceptedRule{Policy: e.PolicyName, Rules: e.RuleNames})
	}
	return rules, errors.Join(errs...)
}

// exceptionAnnotations reads ours and refuses what is misspelt: the exception
// would be wider than its author believes.
func exceptionAnnotations(out *policy.Exception, annotations map[string]string) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		value, path := annotations[key], "metadata.annotations["+key+"]"
		switch {
		case key == imagesAnnotation:
			for text := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == '\n' }) {
				if text = strings.TrimSpace(text); text == "" {
					continue
				}
				pattern, err := imagePattern(text, path, true)
				errs = append(errs, err)
				out.Images = append(out.Images, pattern)
			}
			if len(out.Images) == 0 {
				errs = append(errs, fail(path, "is empty: name images, or leave the annotation out"))
			}
			if len(out.Images) > maxEntries {
				errs = append(errs, fail(path, "the number of images %w of %d", jmespath.ErrTooLarge, maxEntries))
			}
		case key == expiresAnnotation:
			var err error
			if out.Expires, err = time.Parse(time.RFC3339, strings.TrimSpace(value)); err != nil || out.Expires.IsZero() {
				errs = append(errs, fail(path, "%q is no time: write it as in 2027-01-31T00:00:00Z", value))
			}
		case strings.HasPrefix(key, ownAnnotations):
			hint := ""
			if known := nearest(key, []string{imagesAnnotation, expiresAnnotation}); known != "" {
				hint = ": did you mean " + known + "?"
			}
			errs = append(errs, fail(path, "unknown annotation%s", hint))
		}
	}
	return errors.Join(errs...)
}

// exceptionScope is a policy.ExceptionScope.
type exceptionScope struct {
	match      block
	conditions *condition.Conditions // nil for none
	reads      reading               // of conditions
}

func (c *Compiler) compileScope(d *exceptionDocument) (policy.ExceptionScope, error) {
	match, err := compileBlock(d.Spec.Match, "spec.match")
	if err == nil && len(match.filters) == 0 {
		err = fail("spec.match", "is empty: say which objects are meant")
	}
	scope := exceptionScope{match: match}
	if d.Spec.Conditions == nil {
		return scope, err
	}
	conditions, problem := condition.Compile(c.options.Engine, d.Spec.Conditions)
	scope.conditions = conditions
	scope.reads.value(d.Spec.Conditions)
	return scope, errors.Join(err, below("spec.conditions", problem), emptyConditions(d.Spec.Conditions, "spec.conditions"))
}

// Covers asks match and conditions. What is in doubt is not covered.
func (e exceptionScope) Covers(_ context.Context, s *policy.Subject) (bool, error) {
	matched, err := e.match.matches(s, true)
	if err != nil || !matched || e.conditions == nil {
		return matched && err == nil, err
	}
	if s.Bare {
		if err := e.reads.of(s); err != nil {
			return false, err
		}
	}
	request, err := requestOf(s, nil)
	if err != nil {
		return false, fmt.Errorf("the request: %w", err)
	}
	result, err := e.conditions.Evaluate(variable.Context{"request": request})
	if err != nil {
		return false, below("spec.conditions", err)
	}
	return result.Held && !result.InDoubt() && result.Unsure() == nil, nil
}
