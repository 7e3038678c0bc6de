package connaisseur

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// values are the chart's values. Settings of Connaisseur itself stay raw.
type values struct {
	Kubernetes  json.RawMessage `json:"kubernetes"`
	Application application     `json:"application"`
	Alerting    json.RawMessage `json:"alerting"`
}

type application struct {
	Validators []validator     `json:"validators"`
	Policy     []rule          `json:"policy"`
	Features   features        `json:"features"`
	Alerting   json.RawMessage `json:"alerting"`
	LogLevel   string          `json:"logLevel"`
}

type features struct {
	AutomaticUnchangedApproval *bool                 `json:"automaticUnchangedApproval"`
	AutomaticChildApproval     *bool                 `json:"automaticChildApproval"`
	DetectionMode              bool                  `json:"detectionMode"`
	NamespacedValidation       *namespacedValidation `json:"namespacedValidation"`
	ResourceValidationMode     string                `json:"resourceValidationMode"`
	Cache                      json.RawMessage       `json:"cache"`
}

type namespacedValidation struct {
	Enabled *bool  `json:"enabled"`
	Mode    string `json:"mode"`
}

type validator struct {
	Name       string          `json:"name"`
	Type       string          `json:"type"`
	Approve    *bool           `json:"approve"`
	Host       json.RawMessage `json:"host"`
	TrustRoots []trustRoot     `json:"trustRoots"`
	Auth       *auth           `json:"auth"`
	Cert       string          `json:"cert"`
}

type host struct {
	Rekor       string `json:"rekor"`
	RekorPubkey string `json:"rekorPubkey"`
	FulcioCert  string `json:"fulcioCert"`
	CTLogPubkey string `json:"ctLogPubkey"`
}

type auth struct {
	SecretName  string `json:"secretName"`
	UseKeychain bool   `json:"useKeychain"`
	Username    string `json:"username"`
	Password    string `json:"password"`
	Registry    string `json:"registry"`
}

type trustRoot struct {
	Name    string   `json:"name"`
	Key     string   `json:"key"`
	Cert    string   `json:"cert"`
	TSCert  string   `json:"tsCert"`
	Keyless *keyless `json:"keyless"`
}

type keyless struct {
	Issuer       string `json:"issuer"`
	IssuerRegex  string `json:"issuerRegex"`
	Subject      string `json:"subject"`
	SubjectRegex string `json:"subjectRegex"`
}

type rule struct {
	Pattern   string `json:"pattern"`
	Validator string `json:"validator"`
	With      with   `json:"with"`
}

type with struct {
	TrustRoot         string   `json:"trustRoot"`
	Threshold         *int     `json:"threshold"`
	Required          []string `json:"required"`
	VerifyTLog        *bool    `json:"verifyInTransparencyLog"`
	VerifySCT         *bool    `json:"verifySCT"`
	Delegations       []string `json:"delegations"`
	Mode              string   `json:"mode"`
	VerificationLevel string   `json:"verificationLevel"`
	VerifyTimestamp   string   `json:"verifyTimestamp"`
}

// reader converts the fields that it supports.
type reader struct{ *source.Conversion }

// Read adds the policies of the only document: Connaisseur's values, or their application
// part.
func Read(conversion *source.Conversion, documents []source.Document) {
	c := reader{conversion}
	d, ok := c.One(documents)
	if !ok {
		return
	}
	var doc values
	prefix := "application"
	if d.Has("application") {
		ok = c.Decode(d.Text, &doc, "")
	} else {
		prefix = ""
		ok = c.Decode(d.Text, &doc.Application, "")
	}
	if !ok {
		return
	}
	a := doc.Application
	if len(doc.Alerting) > 0 || len(a.Alerting) > 0 {
		c.Refuse("alerting", "alerts are asked for", "remove it; a gateway reports denials by events, metrics and its log")
	}
	if len(doc.Kubernetes) > 0 {
		c.Note("Left out, since it is no policy: kubernetes (how Connaisseur itself is deployed).")
	}
	if a.LogLevel != "" {
		c.Note("Left out, since it is no policy: %s.", source.Below(prefix, "logLevel"))
	}
	template := c.features(a.Features, source.Below(prefix, "features"))
	if failOpen(doc.Kubernetes) {
		template.FailurePolicy = "Ignore"
	}
	c.rules(a, prefix, template)
}

// failOpen reports whether Connaisseur's webhook admits requests that it cannot answer.
func failOpen(kubernetes json.RawMessage) bool {
	var k struct {
		Webhook struct {
			FailurePolicy string `json:"failurePolicy"`
		} `json:"webhook"`
	}
	_ = json.Unmarshal(kubernetes, &k) // unreadable fields do not weaken anything
	return k.Webhook.FailurePolicy == "Ignore"
}

// features returns the common part of all policies.
func (c reader) features(f features, path string) ivp.Policy {
	var template ivp.Policy
	if f.DetectionMode {
		template.Actions = []string{"Warn"}
	}
	if len(f.Cache) > 0 {
		c.Note("Left out, since it is no policy: %s.cache (the gateway has cache settings of its own, and never caches a verdict).", path)
	}
	if f.AutomaticUnchangedApproval != nil && *f.AutomaticUnchangedApproval {
		c.Refuse(path+".automaticUnchangedApproval", "is true", "remove it: the gateway never verifies the unchanged images of an object again, and verifies new ones")
	}
	if f.AutomaticChildApproval == nil || *f.AutomaticChildApproval {
		c.Note("Connaisseur approves the pods of an approved parent (automaticChildApproval). Here every pod is evaluated, from the cache where possible.")
	}
	if f.ResourceValidationMode != "" && f.ResourceValidationMode != "podsOnly" {
		c.Note("Connaisseur denies workloads such as Deployments, too (%s.resourceValidationMode). These policies judge pods, so that a Deployment is admitted and its pods are not.", path)
	}
	const label = "securesystemsengineering.connaisseur/webhook"
	if n := f.NamespacedValidation; n != nil && (n.Enabled == nil || *n.Enabled) {
		at := path + ".namespacedValidation.mode"
		template.Match = ivp.Pods()
		switch n.Mode {
		case "", "ignore":
			template.Match.NamespaceSelector = &ivp.Selector{MatchExpressions: []ivp.LabelRequirement{{Key: label, Operator: "NotIn", Values: []string{"ignore"}}}}
		case "validate":
			template.Match.NamespaceSelector = &ivp.Selector{MatchExpressions: []ivp.LabelRequirement{{Key: label, Operator: "In", Values: []string{"validate"}}}}
		default:
			c.Refuse(at, fmt.Sprintf("%q", n.Mode), "want ignore or validate")
		}
		c.Note("Namespaces are selected by the label %s, as before: a user with permission to set it decides whether images are evaluated.", label)
	}
	return template
}

// rules makes a policy of each rule. Of Connaisseur's rules exactly one
// judges an image, the most specific; so each policy leaves out the images that a
// more specific rule takes.
func (c reader) rules(a application, prefix string, template ivp.Policy) {
	if len(a.Policy) == 0 || len(a.Policy) > source.MaxRules {
		c.Refuse(source.Below(prefix, "policy"), fmt.Sprintf("%d rules", len(a.Policy)), fmt.Sprintf("want 1 to %d", source.MaxRules))
		return
	}
	patterns := c.patterns(a.Policy, source.Below(prefix, "policy"))
	used := map[string]bool{}
	total := false
	for i, rule := range a.Policy {
		at := source.Index(source.Below(prefix, "policy"), i)
		name := rule.Validator
		if name == "" {
			name = "default"
		}
		used[name] = true
		total = total || patterns[i].total()
		v := slices.IndexFunc(a.Validators, func(v validator) bool { return v.Name == name })
		if v < 0 {
			c.Refuse(at+".validator", fmt.Sprintf("names %q, which is no validator", name), "define it, or name another one")
			continue
		}
		p := template
		p.Name = "connaisseur-" + rule.Pattern
		comment := fmt.Sprintf("The images of the pattern %q (%s), without those that a more specific pattern takes.", rule.Pattern, at)
		p.Images = []ivp.ImageReference{patterns.selection(i).Reference(comment)}
		if c.judge(&p, a.Validators[v], rule, source.Index(source.Below(prefix, "validators"), v), at) {
			c.Say(&p)
		}
	}
	for _, v := range a.Validators {
		if !used[v.Name] {
			c.Note("Left out, since no rule names it: validator %q.", v.Name)
		}
	}
	if !total {
		p := ivp.Deny("connaisseur-unmatched", patterns.unmatched().Reference("The images that no pattern takes."),
			"no rule of the policy matches this image", "Connaisseur denies an image that none of its patterns takes.")
		p.Match, p.Actions, p.FailurePolicy = template.Match, template.Actions, template.FailurePolicy
		c.Say(p)
	}
}

// judge sets the attestors; false if no signature is required.
func (c reader) judge(p *ivp.Policy, v validator, rule rule, at, ruleAt string) bool {
	w := rule.With
	switch w.Mode {
	case "", "mutate":
	case "insecureValidateOnly":
		p.Pin = &ivp.Pinning{Required: true}
		p.About = append(p.About, "The tag stays in the object (mode insecureValidateOnly): the verified image may differ from the running one.")
	default:
		c.Refuse(ruleAt+".with.mode", fmt.Sprintf("%q", w.Mode), "want mutate or insecureValidateOnly")
	}
	if len(w.Delegations) > 0 {
		c.Refuse(ruleAt+".with.delegations", "delegations of Notary v1 are asked for", "an ImageValidatingPolicy has no Notary v1: sign with cosign or notation")
	}
	if v.Cert != "" {
		c.Refuse(at+".cert", "the certificate of a registry's authority", "a policy cannot carry it: give it to the gateway's settings, or to --registry-ca")
	}
	c.auth(p, v.Auth, at+".auth")
	switch v.Type {
	case "static":
		return c.static(p, v, rule, at, ruleAt)
	case "cosign":
		c.cosign(p, v, w, at, ruleAt+".with")
	case "notation":
		c.notation(p, v, w, at, ruleAt+".with")
	default:
		c.Refuse(at+".type", fmt.Sprintf("%q", v.Type), "an ImageValidatingPolicy verifies cosign and notation signatures: sign with one of them")
	}
	return true
}

func (c reader) static(p *ivp.Policy, v validator, rule rule, at, ruleAt string) bool {
	w := rule.With
	if w.TrustRoot != "" || w.Threshold != nil || len(w.Required) > 0 || w.VerifyTLog != nil ||
		w.VerifySCT != nil || w.VerificationLevel != "" || w.VerifyTimestamp != "" {
		c.Refuse(ruleAt+".with", "a static validator proves nothing, and cannot honour it", "remove it")
	}
	switch {
	case v.Approve == nil:
		c.Refuse(at+".approve", "is missing", "say true or false")
	case *v.Approve:
		c.Note("The images of the pattern %q are admitted without verification (validator %q): no policy matches them, and every other one excludes them. "+
			"Connaisseur puts a * before each pattern, so that this one matches the same text below any other registry, too.", rule.Pattern, v.Name)
		return false
	default:
		p.Pin = &ivp.Pinning{}
		p.Validations = []ivp.Validation{{Expression: ivp.Denied(), Message: fmt.Sprintf("the policy denies images of %s", rule.Pattern)}}
	}
	return true
}

func (c reader) auth(p *ivp.Policy, auth *auth, at string) {
	switch {
	case auth == nil:
	case auth.Username != "" || auth.Password != "" || auth.Registry != "":
		c.Refuse(at, "a credential stands in the policy", "put it into a Secret of type kubernetes.io/dockerconfigjson, and name that in secretName")
	case auth.SecretName != "":
		p.Credentials = &ivp.Credentials{Secrets: []string{auth.SecretName}}
		p.About = append(p.About, fmt.Sprintf("The Secret %s must lie in the gateway's namespace, and hold a .dockerconfigjson.", strings.TrimSpace(auth.SecretName)))
	case auth.UseKeychain:
		p.Credentials = &ivp.Credentials{Providers: []string{"default", "google", "azure", "amazon", "github"}}
	}
}
