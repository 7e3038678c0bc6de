package kyverno

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/condition"
	"github.com/quaymaster/quaymaster/policy/reference"
	"github.com/quaymaster/quaymaster/policy/variable"
)

// entry is one entry of verifyImages.
type entry struct {
	path  string // in the document, for errors
	short string // in the rule, for verdicts
	// action is what the entry itself says; empty leaves it to the policy.
	action policy.Action
	// template is the entry without its late parts, which are evaluated on
	// statements. static is what it means, if it has no variables.
	template *variable.Template
	static   *prepared
	builder  builder

	conditions []*condition.Conditions // late, by attestation; nil for none
	deny       *condition.Conditions   // late; nil for none
	message    *variable.Template
}

// prepared is an entry with its variables filled in.
type prepared struct {
	references, exempt []string
	check              policy.Check // but for image and conditions
}

func (p *policyCompiler) compileEntry(raw any, rulePath, short string) (*entry, error) {
	e := &entry{path: join(rulePath, short), short: short}
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, below(e.path, err)
	}
	var v verification
	if err := decode(text, &v, e.path); err != nil {
		return nil, err
	}
	if err := v.fold(e.path); err != nil {
		return nil, err
	}
	errs := []error{emptyLists(raw, e.path)}
	if len(v.Attestors)+len(v.Attestations) == 0 && isTrue(v.Required) && !writtenEmpty(raw, "attestors") {
		errs = append(errs, fail(e.path, "requires a proof and names nobody who could give one: say required: false if only the digest matters, or name attestors"))
	}
	if v.FailureAction != "" {
		e.action, err = parseAction(v.FailureAction, e.path+".failureAction")
		errs = append(errs, err)
		if e.action == policy.Audit && (v.MutateDigest == nil || *v.MutateDigest) {
			errs = append(errs, fail(e.path+".mutateDigest", "must be false where failureAction is Audit, as Kyverno wants it"))
		}
	}
	errs = append(errs, p.compileLate(e, &v))
	document, err := plain(v)
	if err != nil {
		return nil, errors.Join(append(errs, below(e.path, err))...)
	}
	if e.template, err = p.template(document, e.path); err != nil {
		return nil, errors.Join(append(errs, err)...)
	}
	e.builder = builder{namespace: p.out.Namespace, secretNamespace: p.options.SecretNamespace, platforms: p.platforms}
	e.builder.lenient = !e.template.Plain()
	made, err := e.builder.prepare(v, e.path)
	errs = append(errs, err)
	e.builder.lenient = false
	if e.template.Plain() {
		e.static = made
	}
	return e, errors.Join(errs...)
}

// asks reports whether anything of the entry is evaluated on a context.
func (e *entry) asks() bool {
	return e.static == nil || e.deny != nil || slices.ContainsFunc(e.conditions, func(c *condition.Conditions) bool { return c != nil })
}

// compileLate takes the parts out of v that are evaluated on statements.
func (p *policyCompiler) compileLate(e *entry, v *verification) error {
	var errs []error
	for i := range v.Attestations {
		a := &v.Attestations[i]
		var compiled *condition.Conditions
		if a.Conditions != nil {
			var err error
			compiled, err = condition.Compile(p.options.Engine, a.Conditions)
			errs = append(errs, below(e.path+".attestations["+strconv.Itoa(i)+"].conditions", err))
		}
		e.conditions = append(e.conditions, compiled)
		a.Conditions = nil
	}
	if v.Validate == nil {
		return errors.Join(errs...)
	}
	path := e.path + ".validate"
	switch {
	case v.Validate.Deny == nil:
		errs = append(errs, fail(path+".deny", "is missing, and without it validate means nothing"))
	case v.Validate.Deny.Conditions == nil:
		errs = append(errs, fail(path+".deny.conditions", "is missing"))
	case len(v.Attestations) == 0:
		errs = append(errs, fail(path+".deny", "speaks of attestations by their names, and there is none"))
	default:
		var err error
		e.deny, err = condition.Compile(p.options.Engine, v.Validate.Deny.Conditions)
		errs = append(errs, below(path+".deny.conditions", err))
		e.message, err = p.template(v.Validate.Message, path+".message")
		errs = append(errs, err)
	}
	v.Validate = nil
	return errors.Join(errs...)
}

// prepare fills in the variables.
func (e *entry) prepare(base lazy) (*prepared, error) {
	if e.static != nil {
		return e.static, nil
	}
	data, err := base()
	if err != nil {
		return nil, err
	}
	filled, err := e.template.Execute(data)
	if err != nil {
		return nil, below(e.path, err)
	}
	text, err := json.Marshal(filled)
	if err != nil {
		return nil, below(e.path, err)
	}
	var v verification
	if err := decode(text, &v, e.path); err != nil {
		return nil, err
	}
	return e.builder.prepare(v, e.path)
}

// checks returns what the entry asks of each image that it concerns.
func (e *entry) checks(r *compiledRule, s *policy.Subject, images []policy.Image, data lazy) ([]policy.Check, error) {
	made, err := e.prepare(data)
	if err != nil {
		return nil, err
	}
	action, err := r.actions.of(s, e.action)
	if err != nil {
		return nil, err
	}
	template := made.check
	template.Action = action
	e.judge(&template, data)
	var checks []policy.Check
	for _, i := range images {
		if i.Unchanged || !reference.Concerns(made.references, i.Ref) {
			continue
		}
		check := template
		check.Image = i
		if reference.Exempts(made.exempt, i.Ref) {
			check.Skip = "the policy's skipImageReferences names " + i.Ref.String()
		}
		checks = append(checks, check)
	}
	return checks, nil
}

// judge attaches the late conditions, which see the rule's context.
func (e *entry) judge(check *policy.Check, data lazy) {
	check.Attestations = slices.Clone(check.Attestations)
	for i, conditions := range e.conditions {
		if conditions != nil {
			check.Attestations[i].Condition = predicateCondition{conditions: conditions, base: data}
		}
	}
	if e.deny == nil {
		return
	}
	check.Deny = denyCondition{conditions: e.deny, base: data}
	if message, err := e.say(data); err == nil {
		check.DenyMessage, _ = message.(string)
	} else {
		check.DenyMessage = "the attestations are denied (the policy's own message cannot be written: " + err.Error() + ")"
	}
}

func (e *entry) say(base lazy) (any, error) {
	data, err := base()
	if err != nil {
		return nil, err
	}
	return e.message.Execute(data)
}

// fold moves the deprecated fields to where they are now: a signer to the
// attestations if there are any, and else to the attestors.
func (v *verification) fold(path string) error {
	if v.Image != "" {
		v.ImageReferences = append(v.ImageReferences, v.Image)
		v.Image = ""
	}
	signer := attestor{Annotations: v.Annotations}
	identity := v.Issuer != "" || v.Subject != "" || v.Roots != "" || len(v.AdditionalExtensions) > 0
	switch {
	case v.Key != "" && identity:
		return fail(path+".key", "stands beside issuer, subject, roots or additionalExtensions: want one kind of signer")
	case v.Key != "":
		signer.Keys = &staticKey{PublicKeys: v.Key}
	case identity:
		signer.Keyless = &keyless{Issuer: v.Issuer, Subject: v.Subject, Roots: v.Roots, AdditionalExtensions: v.AdditionalExtensions}
	case len(v.Annotations) > 0:
		return fail(path+".annotations", "belong to a signer, and the entry has neither key nor issuer: move them to an attestor")
	default:
		return nil
	}
	v.Key, v.Issuer, v.Subject, v.Roots, v.AdditionalExtensions, v.Annotations = "", "", "", "", nil, nil
	set := attestorSet{Entries: []attestor{signer}}
	for i := range v.Attestations {
		v.Attestations[i].Attestors = append(v.Attestations[i].Attestors, set)
	}
	if len(v.Attestations) == 0 {
		v.Attestors = append(v.Attestors, set)
	}
	return nil
}

// builder turns an entry into a check.
type builder struct {
	namespace       string // of a Policy
	secretNamespace string
	platforms       policy.Platforms
	// lenient accepts texts with variables in them, to find all other mistakes
	// when the policy is loaded.
	lenient bool
	// kind is Cosign, SigstoreBundle or Notary.
	kind string
}

// open reports whether a text is still to be filled in.
func (b builder) open(text string) bool { return b.lenient && strings.Contains(text, "{{") }

func isTrue(value *bool) bool { return value == nil || *value }

func (b builder) prepare(v verification, path string) (*prepared, error) {
	var errs []error
	switch b.kind = v.Type; v.Type {
	case "":
		b.kind = "Cosign"
	case "Cosign", "SigstoreBundle", "Notary":
	default:
		errs = append(errs, fail(path+".type", "unknown type %q: want Cosign, SigstoreBundle or Notary", v.Type))
	}
	out := &prepared{check: policy.Check{
		Entry:        path[strings.LastIndex(path, "verifyImages"):],
		MutateDigest: isTrue(v.MutateDigest), VerifyDigest: isTrue(v.VerifyDigest), Required: isTrue(v.Required),
		Platforms: b.platforms,
	}}
	if len(v.ImageReferences) == 0 {
		errs = append(errs, fail(path+".imageReferences", "is empty, and so would name no image"))
	}
	for i, list := range [][]string{v.ImageReferences, v.SkipImageReferences} {
		for n, pattern := range list {
			field := [2]string{"imageReferences", "skipImageReferences"}[i]
			pattern, err := b.pattern(pattern, fmt.Sprintf("%s.%s[%d]", path, field, n), i == 1)
			if errs = append(errs, err); i == 0 {
				out.references = append(out.references, pattern)
			} else {
				out.exempt = append(out.exempt, pattern)
			}
		}
	}
	var err error
	out.check.Sources, err = b.source(v.Repository, path+".repository")
	errs = append(errs, err)
	out.check.Credentials, err = b.credentials(v.ImageRegistryCredentials, path+".imageRegistryCredentials")
	errs = append(errs, err)
	out.check.Requirements, err = b.sets(v.Attestors, path, "attestors")
	errs = append(errs, err)
	out.check.Attestations, err = b.attestations(v.Attestations, path)
	errs = append(errs, err)
	if !isTrue(v.UseCache) {
		forgetful(out.check.Requirements)
		for i := range out.check.Attestations {
			forgetful(out.check.Attestations[i].Signers)
		}
	}
	return out, errors.Join(errs...)
}

// noMemory is useCache: false.
const noMemory = -1

// forgetful says of every authority that its facts are not to be remembered.
func forgetful(requirements []policy.Requirement) {
	for _, r := range requirements {
		for _, m := range r.Members {
			if m.Authority != nil {
				m.Authority.MaxAge = noMemory
			}
			if m.Set != nil {
				forgetful([]policy.Requirement{*m.Set})
			}
		}
	}
}

// source is where evidence is kept; empty means beside the image.
func (b builder) source(repository, path string) ([]attest.Source, error) {
	if repository == "" || b.open(repository) {
		return nil, nil
	}
	parsed, err := image.ParseRepository(repository)
	if err != nil {
		return nil, below(path, err)
	}
	return []attest.Source{{Repository: parsed}}, nil
}

func (b builder) credentials(doc *registryCredentials, path string) (policy.Credentials, error) {
	if doc == nil {
		return policy.Credentials{}, nil
	}
	out := policy.Credentials{AllowInsecure: doc.AllowInsecureRegistry, Providers: doc.Providers}
	var errs []error
	for i, provider := range doc.Providers {
		if !b.open(provider) && !slices.Contains([]string{"default", "amazon", "azure", "google", "github"}, provider) {
			errs = append(errs, fail(fmt.Sprintf("%s.providers[%d]", path, i), "unknown provider %q: want default, amazon, azure, google or github", provider))
		}
	}
	for i, secret := range doc.Secrets {
		namespace, name, qualified := strings.Cut(secret, "/")
		if !qualified {
			if namespace, name = b.secretNamespace, secret; b.namespace != "" {
				namespace = b.namespace
			}
		}
		place := fmt.Sprintf("%s.secrets[%d]", path, i)
		if name == "" || namespace == "" || strings.Contains(name, "/") {
			errs = append(errs, fail(place, "%q: want name or namespace/name", secret))
		}
		errs = append(errs, b.allowed(namespace, place))
		out.Secrets = append(out.Secrets, namespace+"/"+name)
	}
	return out, errors.Join(errs...)
}

// allowed keeps a namespaced Policy in its namespace.
func (b builder) allowed(namespace, path string) error {
	if b.namespace != "" && namespace != b.namespace && !b.open(namespace) {
		return fail(path, "a Policy in namespace %s cannot use a Secret of namespace %s: use a ClusterPolicy", b.namespace, namespace)
	}
	return nil
}
