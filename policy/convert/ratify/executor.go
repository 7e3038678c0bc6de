package ratify

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
	"github.com/quaymaster/quaymaster/policy/convert/notation"
)

// executorSpec is the spec of an Executor (config.ratify.sh/v2alpha1).
type executorSpec struct {
	Scopes         []string        `json:"scopes"`
	Concurrency    *int            `json:"concurrency"`
	Stores         []executorStore `json:"stores"`
	Verifiers      []executorPart  `json:"verifiers"`
	PolicyEnforcer *executorPart   `json:"policyEnforcer"`
}

type executorPart struct {
	Name       string          `json:"name"`
	Type       string          `json:"type"`
	Parameters json.RawMessage `json:"parameters"`
}

type executorStore struct {
	Type       string          `json:"type"`
	Parameters storeParameters `json:"parameters"`
}

type storeParameters struct {
	PlainHTTP      bool   `json:"plainHttp"`
	UserAgent      string `json:"userAgent"`
	MaxBlob        int64  `json:"maxBlobBytes"`
	MaxManifest    int64  `json:"maxManifestBytes"`
	AllowCosignTag bool   `json:"allowCosignTag"`
	CAPEM          string `json:"caPem"`
	CABase64       string `json:"caBase64"`
	Credential     *struct {
		Provider string `json:"provider"`
		Username string `json:"username"`
		Password string `json:"password"`
		ClientID string `json:"clientID"`
		TenantID string `json:"tenantID"`
	} `json:"credential"`
}

type executorNotation struct {
	Scopes            []string                     `json:"scopes"`
	TrustedIdentities []string                     `json:"trustedIdentities"`
	Certificates      []map[string]json.RawMessage `json:"certificates"`
}

type executorCosign struct {
	TrustPolicies []executorTrustPolicy `json:"trustPolicies"`
}

type executorTrustPolicy struct {
	Scopes        []string                   `json:"scopes"`
	Identity      string                     `json:"certificateIdentity"`
	IdentityRegex string                     `json:"certificateIdentityRegex"`
	Issuer        string                     `json:"certificateOIDCIssuer"`
	IssuerRegex   string                     `json:"certificateOIDCIssuerRegex"`
	IgnoreTLog    bool                       `json:"ignoreTLog"`
	IgnoreCTLog   bool                       `json:"ignoreCTLog"`
	IgnoreTimes   bool                       `json:"ignoreObserverTimestamps"`
	Keys          map[string]json.RawMessage `json:"keys"`
}

type thresholdRule struct {
	VerifierName string          `json:"verifierName"`
	Threshold    int             `json:"threshold"`
	Rules        []thresholdRule `json:"rules"`
}

// executorScope is a repository, a registry, or *. and a registry's domain, where *
// matches one label. The more specific of them decides.
func executorScope(text string) (images.Pattern, int, bool) {
	domain, wild := strings.CutPrefix(text, "*.")
	switch {
	case wild && images.IsHost(domain):
		return images.Pattern(`^[^./]+\.` + regexp.QuoteMeta(domain) + "/"), 0, true
	case images.IsHost(text):
		return images.Pattern("^" + regexp.QuoteMeta(images.Hub(text)) + "/"), 1, true
	case images.IsRepository(text):
		return images.RepositoryScope(text), 2, true
	}
	return "", 0, false
}

func (c reader) executors(list []document) {
	specs := make([]executorSpec, len(list))
	type one struct {
		text string
		test images.Pattern
		rank int
	}
	var scopes []one
	for i, d := range list {
		if !c.Decode(d.Spec, &specs[i], source.Below(d.at, "spec")) {
			continue
		}
		path := source.Below(d.at, "spec.scopes")
		if len(specs[i].Scopes) == 0 {
			c.Refuse(path, "is empty", "set the images")
		}
		for j, text := range specs[i].Scopes {
			test, rank, ok := executorScope(text)
			if !ok {
				c.Refuse(source.Index(path, j), fmt.Sprintf("%q", text), "want a repository, a registry or *.domain, in lower case")
			} else if why := images.Unmatched(text); why != "" {
				c.Refuse(source.Index(path, j), fmt.Sprintf("%q matches nothing here", text), why)
			}
			if slices.ContainsFunc(scopes, func(other one) bool { return other.text == text }) {
				c.Refuse(source.Index(path, j), fmt.Sprintf("%q is there twice", text), "a scope has one Executor: remove one")
			}
			scopes = append(scopes, one{text, test, rank})
		}
	}
	if len(scopes) > source.MaxRules {
		c.Refuse("", fmt.Sprintf("%d scopes", len(scopes)), fmt.Sprintf("convert at most %d together", source.MaxRules))
	}
	if len(c.Problems) > 0 {
		return
	}
	var taken []images.Test
	for _, s := range scopes {
		taken = append(taken, s.test)
	}
	for i, d := range list {
		p := &ivp.Policy{Name: d.meta.Name}
		for _, text := range specs[i].Scopes {
			own, rank, _ := executorScope(text)
			s := images.Selection{Spelling: images.ByIdentity, Takes: own}
			for _, other := range scopes {
				if other.rank > rank {
					s.Before = append(s.Before, other.test)
				}
			}
			p.Images = append(p.Images, s.Reference(fmt.Sprintf("The scope %q, without more specific ones.", text)))
		}
		c.executor(p, specs[i], source.Below(d.at, "spec"))
		c.Say(p)
	}
	c.Say(ivp.Deny("ratify-unmatched", images.Others(images.ByIdentity, taken).Reference("The images of no Executor's scope."),
		"no Executor's scope holds this image", "Ratify answers with an error for an image of no Executor's scope, and Gatekeeper denies it."))
}

func (c reader) executor(p *ivp.Policy, spec executorSpec, at string) {
	c.stores(p, spec.Stores, at+".stores")
	if spec.Concurrency != nil {
		c.Note("Left out, since it is no policy: %s.concurrency.", at)
	}
	// who is a verifier's condition on an image, by the verifier's name.
	who := map[string]string{}
	taken := map[string]bool{}
	for i, v := range spec.Verifiers {
		place := source.Index(at+".verifiers", i)
		var signer ivp.Attestor
		switch v.Type {
		case "notation":
			signer = c.executorNotation(v, spec.Scopes, place+".parameters")
		case "cosign":
			signer = c.executorCosign(v, spec.Scopes, place+".parameters")
		default:
			c.Refuse(place+".type", fmt.Sprintf("%q", v.Type), "want notation or cosign")
		}
		if who[v.Name] != "" || v.Name == "" {
			c.Refuse(place+".name", fmt.Sprintf("%q is missing or there twice", v.Name), "give each verifier a name of its own")
		}
		signer.Name = ivp.AttestorName(v.Name, taken)
		p.Attestors = append(p.Attestors, signer)
		who[v.Name] = ivp.Signed([]string{signer.Name}, 1)
	}
	c.threshold(p, spec.PolicyEnforcer, who, at+".policyEnforcer")
}

// threshold is the number of verifiers that must be satisfied.
func (c reader) threshold(p *ivp.Policy, enforcer *executorPart, who map[string]string, at string) {
	var parameters struct {
		Policy thresholdRule `json:"policy"`
	}
	switch {
	case enforcer == nil:
		c.Refuse(at, "is missing", "set how many verifiers must be satisfied: a threshold-policy with a rule for each")
		return
	case enforcer.Type != "threshold-policy":
		c.Refuse(at+".type", fmt.Sprintf("%q", enforcer.Type), "want threshold-policy")
		return
	case !c.Decode(enforcer.Parameters, &parameters, at+".parameters"):
		return
	}
	rule, at := parameters.Policy, at+".parameters.policy"
	if rule.VerifierName != "" || len(rule.Rules) == 0 {
		c.Refuse(at, "is no list of rules", "write rules with a verifierName each")
		return
	}
	var demands []string
	seen := map[string]bool{}
	for i, one := range rule.Rules {
		place := source.Index(at+".rules", i)
		switch {
		case len(one.Rules) > 0 || one.Threshold != 0:
			c.Refuse(place+".rules", "requires signatures of signatures, or rules within rules",
				"an ImageValidatingPolicy asks for signatures of images: write one level of rules")
		case who[one.VerifierName] == "" || seen[one.VerifierName]:
			c.Refuse(place+".verifierName", fmt.Sprintf("%q is no verifier, or there twice", one.VerifierName), "name each verifier once")
		}
		seen[one.VerifierName] = true
		demands = append(demands, who[one.VerifierName])
	}
	n := rule.Threshold
	if n < 0 || n > len(demands) {
		c.Refuse(at+".threshold", strconv.Itoa(n), fmt.Sprintf("want 1 to %d, the number of rules", len(demands)))
	}
	for _, name := range slices.Sorted(maps.Keys(who)) {
		if !seen[name] {
			c.Note("Left out, since no rule of the threshold policy names it: verifier %q.", name)
		}
	}
	p.Attestors = slices.DeleteFunc(p.Attestors, func(a ivp.Attestor) bool {
		return !slices.ContainsFunc(demands, func(d string) bool { return strings.Contains(d, ivp.ListOf([]string{a.Name})) })
	})
	expression := strings.Join(demands, " && ")
	switch {
	case n == 1:
		expression = strings.Join(demands, " || ")
	case n > 1 && n < len(demands):
		expression = "[" + strings.Join(demands, ", ") + "].filter(met, met).size() >= " + strconv.Itoa(n)
	}
	p.Validations = []ivp.Validation{{Expression: ivp.Every(expression), Message: "fewer verifiers are satisfied than the policy requires"}}
}

// covers reports whether scopes of a verifier are those of its Executor.
func covers(scopes, executor []string) bool {
	return len(scopes) == 0 || slices.Equal(slices.Sorted(slices.Values(scopes)), slices.Sorted(slices.Values(executor)))
}

func (c reader) executorNotation(v executorPart, scopes []string, at string) ivp.Attestor {
	var n executorNotation
	if !c.Decode(v.Parameters, &n, at) {
		return ivp.Attestor{}
	}
	if !covers(n.Scopes, scopes) && !slices.Equal(n.Scopes, []string{"*"}) {
		c.Refuse(at+".scopes", "are not the Executor's", "write an Executor for each scope")
	}
	byType := map[string][]string{}
	for i, one := range n.Certificates {
		place := source.Index(at+".certificates", i)
		kind := "ca"
		if raw, ok := one["type"]; ok {
			c.Decode(raw, &kind, place+".type")
		}
		if kind != "ca" && kind != "tsa" {
			c.Refuse(place+".type", fmt.Sprintf("%q", kind), "a notary attestor has certificates of the types ca and tsa")
			continue
		}
		byType[kind] = append(byType[kind], c.inline(one, source.Certificate, place)...)
	}
	identities := n.TrustedIdentities
	if len(identities) == 0 {
		identities = []string{"*"}
	}
	certs, remark := notation.Pinned(c.Conversion, byType["ca"], identities, at+".trustedIdentities")
	if len(byType["ca"]) == 0 {
		c.Refuse(at+".certificates", "has none of the type ca", "give those of the signers' authority")
	}
	return ivp.Attestor{Notary: ivp.TrustStore(certs, byType["tsa"]), Comment: remark}
}

// inline returns the PEM blocks of an inline provider, and refuses others.
func (c reader) inline(providers map[string]json.RawMessage, kind, at string) []string {
	var blocks []string
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		var text string
		switch {
		case name == "type":
		case name != "inline":
			c.Refuse(source.Below(at, name), "is a provider outside the policy", "a policy holds keys and certificates themselves: use inline")
		case json.Unmarshal(providers[name], &text) == nil:
			blocks = append(blocks, c.PEM(text, kind, source.Below(at, name))...)
		default:
			var object struct {
				Certs string `json:"certs"`
			}
			if c.Decode(providers[name], &object, source.Below(at, name)) {
				blocks = append(blocks, c.PEM(object.Certs, kind, source.Below(at, name)+".certs")...)
			}
		}
	}
	return blocks
}

func (c reader) executorCosign(v executorPart, scopes []string, at string) ivp.Attestor {
	var r executorCosign
	if !c.Decode(v.Parameters, &r, at) {
		return ivp.Attestor{}
	}
	if len(r.TrustPolicies) != 1 || !covers(r.TrustPolicies[0].Scopes, scopes) {
		c.Refuse(at+".trustPolicies", "are several, or of other scopes than the Executor's", "write an Executor for each scope, with one trust policy")
		return ivp.Attestor{}
	}
	policy, place := r.TrustPolicies[0], source.Index(at+".trustPolicies", 0)
	if policy.IgnoreTimes {
		c.Refuse(place+".ignoreObserverTimestamps", "is true", "a certificate counts only with a trusted timestamp: remove it")
	}
	signer := ivp.Cosign{CTLog: &ivp.CTLog{IgnoreTlog: policy.IgnoreTLog, IgnoreSCT: policy.IgnoreCTLog}}
	if len(policy.Keys) > 0 {
		if policy.Identity+policy.IdentityRegex+policy.Issuer+policy.IssuerRegex != "" {
			c.Refuse(place, "has keys and an identity", "give one of them")
		}
		keys := c.inline(policy.Keys, source.PublicKey, place+".keys")
		if len(keys) != 1 {
			c.Refuse(place+".keys", fmt.Sprintf("%d keys", len(keys)), "give one, inline")
			return ivp.Attestor{}
		}
		signer.Key = &ivp.Key{Data: keys[0]}
		return ivp.Attestor{Cosign: &signer}
	}
	who := ivp.Identity{Issuer: policy.Issuer, IssuerRegExp: policy.IssuerRegex, Subject: policy.Identity, SubjectRegExp: policy.IdentityRegex}
	c.CheckIdentity(who, place)
	signer.Keyless = &ivp.Keyless{Identities: []ivp.Identity{who}}
	return ivp.Attestor{Cosign: &signer, Comment: source.Anchored(who)}
}

// stores converts the registry settings that an ImageValidatingPolicy supports.
func (c reader) stores(p *ivp.Policy, list []executorStore, at string) {
	for i, s := range list {
		place := source.Index(at, i)
		if s.Type != "registry-store" {
			c.Refuse(place+".type", fmt.Sprintf("%q", s.Type), "want registry-store")
			continue
		}
		o, place := s.Parameters, place+".parameters"
		if o.CAPEM != "" || o.CABase64 != "" {
			c.Refuse(place+".caPem", "the certificate of a registry's authority", "a policy cannot carry it: give it to the gateway's settings, or to --registry-ca")
		}
		if o.UserAgent != "" || o.MaxBlob != 0 || o.MaxManifest != 0 || o.AllowCosignTag {
			c.Note("Left out, since the gateway has bounds of its own and looks for signatures in every place: userAgent, maxBlobBytes, maxManifestBytes and allowCosignTag of %s.", place)
		}
		if p.Credentials == nil && (o.PlainHTTP || o.Credential != nil) {
			p.Credentials = &ivp.Credentials{}
		}
		if o.PlainHTTP {
			p.Credentials.AllowInsecureRegistry = true
		}
		if o.Credential == nil {
			continue
		}
		if o.Credential.Provider != "azure" || o.Credential.ClientID != "" || o.Credential.TenantID != "" {
			c.Refuse(place+".credential", fmt.Sprintf("%q, or an account of its own", o.Credential.Provider),
				"put a credential into a Secret and name it in the policy's credentials.secrets; the provider azure is carried alone")
			continue
		}
		p.Credentials.Providers = []string{"azure"}
	}
}
