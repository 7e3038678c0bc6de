package imagevalidating

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	policieskyvernoio "github.com/kyverno/api/api/policies.kyverno.io"
	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/internal/glob"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// exceptionDocument is a PolicyException as it is written.
type exceptionDocument struct {
	kyvernocel.Head
	Spec   v1alpha1.PolicyExceptionSpec `json:"spec"`
	Status json.RawMessage              `json:"status,omitempty"`
}

// CompileException compiles one document, YAML or JSON. Source is where it was read. Errors are
// as Compile's. An exception covers a policy's generated rules for pod controllers, as in
// Kyverno. A namespaced policy is named by its name, if it is in the exception's namespace, or as
// NAMESPACE/NAME.
func (c *Compiler) CompileException(text []byte, source string) (*policy.Exception, error) {
	compiled, err := c.compileException(text, source)
	if err != nil {
		return nil, fmt.Errorf("exception in %s: %w", source, err)
	}
	return compiled, nil
}

func (c *Compiler) compileException(text []byte, source string) (*policy.Exception, error) {
	var d exceptionDocument
	data, err := field.Read(text, &d)
	if when, ok := errors.AsType[*time.ParseError](err); ok {
		return nil, field.Fail("spec.expiresAt", "%q is no time: write it as in 2027-01-31T00:00:00Z", when.Value)
	}
	if err != nil {
		return nil, err
	}
	if !RecognisesException(d.APIVersion, d.Kind) {
		return nil, fmt.Errorf("%s %s is no exception of policies.kyverno.io: want PolicyException of v1, v1beta1 or v1alpha1", d.APIVersion, d.Kind)
	}
	meta, err := d.ReadMetadata()
	if err != nil {
		return nil, err
	}
	out := &policy.Exception{Group: "policies.kyverno.io", Namespace: meta.Namespace, Name: meta.Name, Source: source, Hash: kyvernocel.HashOf(data)}
	out.Reason, err = kyvernocel.ReasonOf(meta)
	if out.Namespace == "" {
		out.Namespace = "default"
	}
	out.Properties = d.Spec.Properties
	out.AsPass = d.Spec.ReportResult == "pass"
	errs := []error{err}
	rules, err := excepted(d.Spec.PolicyRefs, out.Namespace)
	out.Rules = rules
	errs = append(errs, err)
	out.Images, err = exceptedImages(d.Spec.Images, names(rules, Kind))
	errs = append(errs, err)
	if len(d.Spec.Images)+len(d.Spec.AllowedValues) > 0 && (names(rules, "ValidatingPolicy") || names(rules, "MutatingPolicy")) {
		out.PodSecurity = []policy.PodSecurityExemption{{Images: d.Spec.Images, Values: d.Spec.AllowedValues}}
	}
	out.Scope, err = c.scopeOf(d.Spec)
	errs = append(errs, err, exceptionSettings(d.Spec, rules), emptyLists(data))
	if at := d.Spec.ExpiresAt; at != nil {
		out.Expires = at.Time
		if out.Expires.IsZero() {
			errs = append(errs, field.Fail("spec.expiresAt", "is empty: write a time as in 2027-01-31T00:00:00Z, or leave the field out"))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// names reports whether a policy of a kind, or of its kind for one namespace, is
// among those excepted.
func names(rules []policy.ExceptedRule, kind string) bool {
	return slices.ContainsFunc(rules, func(r policy.ExceptedRule) bool { return strings.TrimPrefix(r.Kind, "Namespaced") == kind })
}

// exceptionSettings refuses settings that the policies could not honour.
func exceptionSettings(spec v1alpha1.PolicyExceptionSpec, rules []policy.ExceptedRule) error {
	var errs []error
	const allowed = "what expressions may allow, which those of %s cannot read,"
	if len(spec.AllowedValues) > kyvernocel.MaxEntries {
		errs = append(errs, field.Fail("spec.allowedValues", "%d are more than %d", len(spec.AllowedValues), kyvernocel.MaxEntries))
	}
	if len(spec.AllowedValues) > 0 && names(rules, Kind) {
		errs = append(errs, kyvernocel.Unsupported("spec.allowedValues", fmt.Sprintf(allowed, "image policies")))
	}
	if names(rules, "GeneratingPolicy") && len(spec.AllowedValues) > 0 {
		errs = append(errs, kyvernocel.Unsupported("spec.allowedValues", fmt.Sprintf(allowed, "generating policies")))
	}
	if names(rules, "GeneratingPolicy") && len(spec.Images) > 0 {
		errs = append(errs, kyvernocel.Unsupported("spec.images", fmt.Sprintf(allowed, "generating policies")))
	}
	if !slices.Contains([]string{"", "skip", "pass"}, spec.ReportResult) {
		errs = append(errs, field.Fail("spec.reportResult", "unknown value %q: want skip or pass", spec.ReportResult))
	}
	if !slices.Contains([]string{"", policieskyvernoio.EvaluationModeKubernetes}, spec.EvaluationMode) {
		errs = append(errs, field.Fail("spec.evaluationMode", "%q: the exception is for another controller; here only those of mode Kubernetes hold",
			spec.EvaluationMode))
	}
	return errors.Join(errs...)
}

// emptyLists refuses lists that are written and name nothing: without entries the exception
// would be for everything, and not for none of what the list is about.
func emptyLists(document []byte) error {
	var d struct {
		Spec map[string]json.RawMessage
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return err
	}
	var errs []error
	for _, name := range []string{"images", "allowedValues", "matchConditions"} {
		var list []json.RawMessage
		if written, is := d.Spec[name]; is && json.Unmarshal(written, &list) == nil && len(list) == 0 {
			errs = append(errs, field.Fail("spec."+name, "is empty, and so the exception would be for everything: name entries, or leave the field out"))
		}
	}
	return errors.Join(errs...)
}

// policyKinds are the kinds of policies that exceptions name.
func policyKinds() []string {
	kinds := []string{Kind, "Namespaced" + Kind}
	for _, kind := range []string{"ValidatingPolicy", "MutatingPolicy", "GeneratingPolicy", "DeletingPolicy"} {
		kinds = append(kinds, kind, "Namespaced"+kind)
	}
	return kinds
}

// excepted reads policyRefs.
func excepted(refs []v1alpha1.PolicyRef, namespace string) (rules []policy.ExceptedRule, err error) {
	if len(refs) == 0 || len(refs) > maxEntries {
		return nil, field.Fail("spec.policyRefs", "want 1 to %d policies, found %d", maxEntries, len(refs))
	}
	var errs []error
	for i, ref := range refs {
		path := "spec.policyRefs[" + strconv.Itoa(i) + "]"
		if !slices.Contains(policyKinds(), ref.Kind) {
			errs = append(errs, field.Fail(path+".kind", "unknown kind %q: want %s", ref.Kind, strings.Join(policyKinds(), ", ")))
		}
		name := ref.Name
		namespaced := strings.HasPrefix(ref.Kind, "Namespaced")
		switch {
		case name == "":
			errs = append(errs, field.Fail(path+".name", "is empty"))
		case wildcard.Contains(name):
			errs = append(errs, field.Fail(path+".name", "%q: a policy is named in full", name))
		case namespaced && !strings.Contains(name, "/"):
			name = namespace + "/" + name
		case !namespaced && strings.Contains(name, "/"):
			errs = append(errs, field.Fail(path+".name", "%q: the kind %s is in no namespace", name, ref.Kind))
		}
		rules = append(rules, policy.ExceptedRule{Kind: ref.Kind, Policy: name, Rules: []string{"*"}})
	}
	return rules, errors.Join(errs...)
}

// exceptedImages reads images: an exception for some never covers another. Where they
// are no patterns, they are texts for the expressions of other policies.
func exceptedImages(list []string, arePatterns bool) ([]string, error) {
	switch {
	case len(list) > maxEntries:
		return nil, field.Fail("spec.images", "%d are more than %d", len(list), maxEntries)
	case !arePatterns:
		return list, nil
	}
	var patterns []string
	var errs []error
	for i, text := range list {
		pattern, err := glob.Exempting(text, "spec.images["+strconv.Itoa(i)+"]")
		errs = append(errs, err)
		patterns = append(patterns, pattern)
	}
	return patterns, errors.Join(errs...)
}

// scope is a policy.ExceptionScope.
type scope struct {
	compiler   *Compiler
	scope      *cel.Scope
	conditions kyvernocel.Conditions
}

func (c *Compiler) scopeOf(spec v1alpha1.PolicyExceptionSpec) (policy.ExceptionScope, error) {
	if len(spec.MatchConditions) == 0 {
		return nil, nil
	}
	made, err := kyvernocel.NewScope(c.environments.conditions)
	if err != nil {
		return nil, err
	}
	conditions, err := kyvernocel.CompileConditions(made, spec.MatchConditions, "spec.matchConditions")
	return &scope{compiler: c, scope: made, conditions: conditions}, err
}

// Covers evaluates the conditions. An indeterminate object is not covered.
func (e *scope) Covers(ctx context.Context, s *policy.Subject) (bool, error) {
	inputs := e.compiler.options.Inputs("")
	inputs.More = &kyvernocel.Seen{Subject: s}
	return e.conditions.Hold(ctx, e.scope.NewActivation(inputs))
}
