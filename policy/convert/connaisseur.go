package convert

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// connaisseurValues are the chart's values. What is about Connaisseur itself stays
// raw.
type connaisseurValues struct {
	Kubernetes  json.RawMessage        `json:"kubernetes"`
	Application connaisseurApplication `json:"application"`
	Alerting    json.RawMessage        `json:"alerting"`
}

type connaisseurApplication struct {
	Validators []connaisseurValidator `json:"validators"`
	Policy     []connaisseurRule      `json:"policy"`
	Features   connaisseurFeatures    `json:"features"`
	Alerting   json.RawMessage        `json:"alerting"`
	LogLevel   string                 `json:"logLevel"`
}

type connaisseurFeatures struct {
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

type connaisseurValidator struct {
	Name       string                 `json:"name"`
	Type       string                 `json:"type"`
	Approve    *bool                  `json:"approve"`
	Host       json.RawMessage        `json:"host"`
	TrustRoots []connaisseurTrustRoot `json:"trustRoots"`
	Auth       *connaisseurAuth       `json:"auth"`
	Cert       string                 `json:"cert"`
}

type connaisseurHost struct {
	Rekor       string `json:"rekor"`
	RekorPubkey string `json:"rekorPubkey"`
	FulcioCert  string `json:"fulcioCert"`
	CTLogPubkey string `json:"ctLogPubkey"`
}

type connaisseurAuth struct {
	SecretName  string `json:"secretName"`
	UseKeychain bool   `json:"useKeychain"`
	Username    string `json:"username"`
	Password    string `json:"password"`
	Registry    string `json:"registry"`
}

type connaisseurTrustRoot struct {
	Name    string              `json:"name"`
	Key     string              `json:"key"`
	Cert    string              `json:"cert"`
	TSCert  string              `json:"tsCert"`
	Keyless *connaisseurKeyless `json:"keyless"`
}

type connaisseurKeyless struct {
	Issuer       string `json:"issuer"`
	IssuerRegex  string `json:"issuerRegex"`
	Subject      string `json:"subject"`
	SubjectRegex string `json:"subjectRegex"`
}

type connaisseurRule struct {
	Pattern   string          `json:"pattern"`
	Validator string          `json:"validator"`
	With      connaisseurWith `json:"with"`
}

type connaisseurWith struct {
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

func (c *conversion) connaisseur(documents []source) {
	d, ok := c.one(documents)
	if !ok {
		return
	}
	var values connaisseurValues
	prefix := "application"
	if d.has("application") {
		ok = c.decode(d.text, &values, "")
	} else {
		prefix = ""
		ok = c.decode(d.text, &values.Application, "")
	}
	if !ok {
		return
	}
	a := values.Application
	if len(values.Alerting) > 0 || len(a.Alerting) > 0 {
		c.refuse("alerting", "alerts are asked for", "remove it; a gateway tells of denials by events, metrics and its log")
	}
	if len(values.Kubernetes) > 0 {
		c.note("Left out, since it is no policy: kubernetes (how Connaisseur itself is deployed).")
	}
	if a.LogLevel != "" {
		c.note("Left out, since it is no policy: %s.", below(prefix, "logLevel"))
	}
	template := c.connaisseurFeatures(a.Features, below(prefix, "features"))
	if failOpen(values.Kubernetes) {
		template.failurePolicy = "Ignore"
	}
	c.connaisseurRules(a, prefix, template)
}

// failOpen reports whether Connaisseur's webhook admits what it cannot answer.
func failOpen(kubernetes json.RawMessage) bool {
	var k struct {
		Webhook struct {
			FailurePolicy string `json:"failurePolicy"`
		} `json:"webhook"`
	}
	_ = json.Unmarshal(kubernetes, &k) // what cannot be read does not weaken anything
	return k.Webhook.FailurePolicy == "Ignore"
}

// connaisseurFeatures returns what all policies have in common.
func (c *conversion) connaisseurFeatures(f connaisseurFeatures, path string) said {
	var template said
	if f.DetectionMode {
		template.actions = []string{"Warn"}
	}
	if len(f.Cache) > 0 {
		c.note("Left out, since it is no policy: %s.cache (what the gateway remembers is its own setting, and never a verdict).", path)
	}
	if f.AutomaticUnchangedApproval != nil && *f.AutomaticUnchangedApproval {
		c.refuse(path+".automaticUnchangedApproval", "is true", "remove it: the gateway never looks again at what an object ran before, and judges what is new")
	}
	if f.AutomaticChildApproval == nil || *f.AutomaticChildApproval {
		c.note("Connaisseur approves a pod whose parent it approved (automaticChildApproval). Here every pod is judged, from memory where it can be.")
	}
	if f.ResourceValidationMode != "" && f.ResourceValidationMode != "podsOnly" {
		c.note("Connaisseur denies workloads such as Deployments, too (%s.resourceValidationMode). These policies judge pods, so that a Deployment is admitted and its pods are not.", path)
	}
	const label = "securesystemsengineering.connaisseur/webhook"
	if n := f.NamespacedValidation; n != nil && (n.Enabled == nil || *n.Enabled) {
		at := path + ".namespacedValidation.mode"
		template.match = pods()
		switch n.Mode {
		case "", "ignore":
			template.match.NamespaceSelector = &selector{MatchExpressions: []labelRequirement{{Key: label, Operator: "NotIn", Values: []string{"ignore"}}}}
		case "validate":
			template.match.NamespaceSelector = &selector{MatchExpressions: []labelRequirement{{Key: label, Operator: "In", Values: []string{"validate"}}}}
		default:
			c.refuse(at, fmt.Sprintf("%q", n.Mode), "want ignore or validate")
		}
		c.note("Namespaces are chosen by the label %s, as before: whoever may set it chooses whether images are judged.", label)
	}
	return template
}

// connaisseurRules makes a policy of each rule. Of Connaisseur's rules exactly one
// judges an image, the most specific; so each policy leaves out the images that a
// more specific rule takes.
func (c *conversion) connaisseurRules(a connaisseurApplication, prefix string, template said) {
	if len(a.Policy) == 0 || len(a.Policy) > maxRules {
		c.refuse(below(prefix, "policy"), fmt.Sprintf("%d rules", len(a.Policy)), fmt.Sprintf("want 1 to %d", maxRules))
		return
	}
	patterns := c.connaisseurPatterns(a.Policy, below(prefix, "policy"))
	if patterns == nil {
		return
	}
	used := map[string]bool{}
	total := false
	for i, rule := range a.Policy {
		at := index(below(prefix, "policy"), i)
		name := rule.Validator
		if name == "" {
			name = "default"
		}
		used[name] = true
		total = total || patterns[i].total()
		v := slices.IndexFunc(a.Validators, func(v connaisseurValidator) bool { return v.Name == name })
		if v < 0 {
			c.refuse(at+".validator", fmt.Sprintf("names %q, which is no validator", name), "define it, or name another one")
			continue
		}
		p := template
		p.name = "connaisseur-" + rule.Pattern
		comment := fmt.Sprintf("The images of the pattern %q (%s), without those that a more specific pattern takes.", rule.Pattern, at)
		p.images = []imageReference{patterns.selection(i).reference(comment)}
		if c.connaisseurJudge(&p, a.Validators[v], rule, index(below(prefix, "validators"), v), at) {
			c.say(&p)
		}
	}
	for _, v := range a.Validators {
		if !used[v.Name] {
			c.note("Left out, since no rule names it: validator %q.", v.Name)
		}
	}
	if !total {
		p := deny("connaisseur-unmatched", patterns.unmatched().reference("The images that no pattern takes."),
			"no rule of the policy speaks of this image", "Connaisseur denies an image that none of its patterns takes.")
		p.match, p.actions, p.failurePolicy = template.match, template.actions, template.failurePolicy
		c.say(p)
	}
}

// connaisseurJudge fills in who judges; false if nobody needs to.
func (c *conversion) connaisseurJudge(p *said, v connaisseurValidator, rule connaisseurRule, at, ruleAt string) bool {
	w := rule.With
	switch w.Mode {
	case "", "mutate":
	case "insecureValidateOnly":
		p.pin = &pinning{Required: true}
		p.about = append(p.about, "The tag stays in the object (mode insecureValidateOnly): what was judged may not be what runs.")
	default:
		c.refuse(ruleAt+".with.mode", fmt.Sprintf("%q", w.Mode), "want mutate or insecureValidateOnly")
	}
	if len(w.Delegations) > 0 {
		c.refuse(ruleAt+".with.delegations", "delegations of Notary v1 are asked for", "an ImageValidatingPolicy has no Notary v1: sign with cosign or notation")
	}
	if v.Cert != "" {
		c.refuse(at+".cert", "the certificate of a registry's authority", "a policy cannot carry it: give it to the gateway's settings, or to --registry-ca")
	}
	c.connaisseurAuth(p, v.Auth, at+".auth")
	switch v.Type {
	case "static":
		return c.connaisseurStatic(p, v, rule, at, ruleAt)
	case "cosign":
		c.connaisseurCosign(p, v, w, at, ruleAt+".with")
	case "notation":
		c.connaisseurNotation(p, v, w, at, ruleAt+".with")
	default:
		c.refuse(at+".type", fmt.Sprintf("%q", v.Type), "an ImageValidatingPolicy verifies cosign and notation signatures: sign with one of them")
	}
	return true
}

func (c *conversion) connaisseurStatic(p *said, v connaisseurValidator, rule connaisseurRule, at, ruleAt string) bool {
	w := rule.With
	if w.TrustRoot != "" || w.Threshold != nil || len(w.Required) > 0 || w.VerifyTLog != nil || w.VerifySCT != nil || w.VerificationLevel != "" || w.VerifyTimestamp != "" {
		c.refuse(ruleAt+".with", "a static validator proves nothing, and cannot honour it", "remove it")
	}
	switch {
	case v.Approve == nil:
		c.refuse(at+".approve", "is missing", "say true or false")
	case *v.Approve:
		c.note("The images of the pattern %q are admitted unseen (validator %q): no policy speaks of them, and every other one leaves them out. "+
			"Connaisseur puts a * before each pattern, so that this one stands for the same text below any other registry, too.", rule.Pattern, v.Name)
		return false
	default:
		p.pin = &pinning{}
		p.validations = []validation{{Expression: denied(), Message: fmt.Sprintf("the policy denies images of %s", rule.Pattern)}}
	}
	return true
}

func (c *conversion) connaisseurAuth(p *said, auth *connaisseurAuth, at string) {
	switch {
	case auth == nil:
	case auth.Username != "" || auth.Password != "" || auth.Registry != "":
		c.refuse(at, "a credential stands in the policy", "put it into a Secret of type kubernetes.io/dockerconfigjson, and name that in secretName")
	case auth.SecretName != "":
		p.credentials = &credentials{Secrets: []string{auth.SecretName}}
		p.about = append(p.about, fmt.Sprintf("The Secret %s must lie in the gateway's namespace, and hold a .dockerconfigjson.", strings.TrimSpace(auth.SecretName)))
	case auth.UseKeychain:
		p.credentials = &credentials{Providers: []string{"default", "google", "azure", "amazon", "github"}}
	}
}
