package convert

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ratifyResource is a resource of Ratify's, of either version.
type ratifyResource struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
	Status     json.RawMessage `json:"status"`
}

// ratifyVerifier is the spec of a Verifier (v1beta1).
type ratifyVerifier struct {
	Name          string          `json:"name"`
	Type          string          `json:"type"`
	Version       string          `json:"version"`
	ArtifactTypes string          `json:"artifactTypes"`
	Address       string          `json:"address"`
	Source        json.RawMessage `json:"source"`
	Parameters    json.RawMessage `json:"parameters"`
}

// keyManagementProvider is the spec of a KeyManagementProvider (v1beta1).
type keyManagementProvider struct {
	Type            string `json:"type"`
	RefreshInterval string `json:"refreshInterval"`
	Parameters      struct {
		ContentType string `json:"contentType"`
		Value       string `json:"value"`
	} `json:"parameters"`
}

type ratifyNotation struct {
	VerificationCerts      []string                   `json:"verificationCerts"`
	VerificationCertStores map[string]json.RawMessage `json:"verificationCertStores"`
	TrustPolicyDoc         trustPolicyDocument        `json:"trustPolicyDoc"`
}

type ratifyCosign struct {
	Key           string              `json:"key"`
	RekorURL      string              `json:"rekorURL"`
	TrustPolicies []ratifyTrustPolicy `json:"trustPolicies"`
}

type ratifyTrustPolicy struct {
	Version    string      `json:"version"`
	Name       string      `json:"name"`
	Scopes     []string    `json:"scopes"`
	Keys       []ratifyKey `json:"keys"`
	Keyless    *ratifyOIDC `json:"keyless"`
	TLogVerify *bool       `json:"tLogVerify"`
	RekorURL   string      `json:"rekorURL"`
}

type ratifyKey struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	File     string `json:"file"`
}

type ratifyOIDC struct {
	CTLogVerify     *bool  `json:"ctLogVerify"`
	Identity        string `json:"certificateIdentity"`
	IdentityRegExp  string `json:"certificateIdentityRegExp"`
	OIDCIssuer      string `json:"certificateOIDCIssuer"`
	OIDCIssueRegExp string `json:"certificateOIDCIssuerRegExp"`
}

// ratify reads the Executors of version 2, or one Verifier of version 1 with the
// KeyManagementProviders that it names.
func (c *conversion) ratify(documents []source) {
	providers := map[string]keyManagementProvider{}
	var verifiers, executors []ratifyDocument
	for _, d := range documents {
		one := ratifyDocument{at: d.prefix}
		if !c.decode(d.text, &one.ratifyResource, d.prefix) {
			continue
		}
		one.meta = meta(one.Metadata)
		group, version, _ := strings.Cut(one.APIVersion, "/")
		switch {
		case group == "config.ratify.sh" && version == "v2alpha1" && one.Kind == "Executor":
			executors = append(executors, one)
		case group == "config.ratify.deislabs.io" && version == "v1beta1" && (one.Kind == "Verifier" || one.Kind == "NamespacedVerifier"):
			verifiers = append(verifiers, one)
		case group == "config.ratify.deislabs.io" && version == "v1beta1" && (one.Kind == "KeyManagementProvider" || one.Kind == "NamespacedKeyManagementProvider"):
			c.keyManagementProvider(one, providers)
		default:
			c.refuse(d.at("kind"), fmt.Sprintf("%s %s", one.APIVersion, one.Kind),
				"want one Verifier of config.ratify.deislabs.io/v1beta1 with its KeyManagementProviders, or Executors of config.ratify.sh/v2alpha1")
		}
	}
	switch {
	case len(c.problems) > 0:
	case len(executors) > 0 && len(verifiers)+len(providers) > 0:
		c.refuse("", "resources of both versions", "convert each version alone")
	case len(executors) > 0:
		c.executors(executors)
	case len(verifiers) != 1:
		c.refuse("", fmt.Sprintf("%d Verifiers", len(verifiers)), "how several of them count together is said by Ratify's Policy: convert each Verifier alone, with the providers that it names")
	default:
		c.verifier(verifiers[0], providers)
	}
}

type ratifyDocument struct {
	ratifyResource
	meta objectMeta
	at   string
}

// keyManagementProvider keeps an inline provider by its names.
func (c *conversion) keyManagementProvider(d ratifyDocument, providers map[string]keyManagementProvider) {
	var kind struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(d.Spec, &kind) // decoded strictly below
	if kind.Type != "inline" {
		c.refuse(below(d.at, "spec.type"), fmt.Sprintf("%q", kind.Type), "a policy holds keys and certificates themselves: use the type inline")
		return
	}
	var p keyManagementProvider
	if !c.decode(d.Spec, &p, below(d.at, "spec")) {
		return
	}
	providers[d.meta.Name] = p
	if d.meta.Namespace != "" {
		providers[d.meta.Namespace+"/"+d.meta.Name] = p
	}
}

func (c *conversion) verifier(d ratifyDocument, providers map[string]keyManagementProvider) {
	at := below(d.at, "spec")
	var v ratifyVerifier
	if !c.decode(d.Spec, &v, at) {
		return
	}
	if v.Address != "" || len(v.Source) > 0 {
		c.refuse(at, "has an address or a source, which name a plug-in", "convert verifiers that are built in: notation and cosign")
	}
	kind := v.Type
	if kind == "" {
		kind = v.Name
	}
	c.note("In Ratify a Policy, and Gatekeeper's constraint, say how many of an image's signatures must be good, and whether one must be there. Here one good signature must be there, and others are passed over.")
	before := len(c.policies)
	parameters := below(at, "parameters")
	switch kind {
	case "notation", "notaryv2":
		c.ratifyNotation(v.Parameters, parameters, providers)
	case "cosign":
		c.ratifyCosign(v.Parameters, parameters, providers)
	default:
		c.refuse(below(at, "name"), fmt.Sprintf("%q", kind), "an ImageValidatingPolicy verifies cosign and notation signatures: want the verifier notation or cosign")
	}
	if d.Kind == "NamespacedVerifier" {
		for _, p := range c.policies[before:] {
			p.namespace = d.meta.Namespace
		}
	}
}

func (c *conversion) ratifyNotation(raw json.RawMessage, at string, providers map[string]keyManagementProvider) {
	var n ratifyNotation
	if !c.decode(raw, &n, at) {
		return
	}
	if len(n.VerificationCerts) > 0 {
		c.refuse(at+".verificationCerts", "names files", "use verificationCertStores with an inline KeyManagementProvider")
	}
	// Stores are grouped by type, or in older resources they are not.
	grouped := map[string]map[string][]string{}
	for _, name := range slices.Sorted(mapKeys(n.VerificationCertStores)) {
		place := at + ".verificationCertStores." + name
		var list []string
		if json.Unmarshal(n.VerificationCertStores[name], &list) == nil {
			c.refuse(place, "is a store of no type", "write it below ca, as Ratify 1.2 and later have it")
			continue
		}
		var byName map[string][]string
		if c.decode(n.VerificationCertStores[name], &byName, place) {
			grouped[name] = byName
		}
	}
	c.trustPolicies(n.TrustPolicyDoc, at+".trustPolicyDoc", "ratify-", func(kind, name, place string) ([]string, bool) {
		var certs []string
		list := grouped[kind][name]
		if len(list) == 0 {
			c.refuse(place, fmt.Sprintf("names the store %s:%s, which verificationCertStores does not have", kind, name), "add it, or name another one")
		}
		for i, provider := range list {
			where := index(at+".verificationCertStores."+kind+"."+name, i)
			if value, ok := c.provided(provider, "certificate", where, providers); ok {
				certs = append(certs, c.pem(value, certificate, where)...)
			}
		}
		return certs, true
	})
}

// provided returns what an inline provider of this file holds.
func (c *conversion) provided(name, content, at string, providers map[string]keyManagementProvider) (string, bool) {
	p, ok := providers[name]
	if !ok {
		c.refuse(at, fmt.Sprintf("names the provider %q, which the file does not hold", name), "add that KeyManagementProvider to the file, with the type inline")
		return "", false
	}
	kind := p.Parameters.ContentType
	if kind == "" {
		kind = "certificate"
	}
	if kind != content {
		c.refuse(at, fmt.Sprintf("names the provider %q, whose contentType is %q", name, kind), "want one of the contentType "+content)
		return "", false
	}
	return p.Parameters.Value, true
}

func (c *conversion) ratifyCosign(raw json.RawMessage, at string, providers map[string]keyManagementProvider) {
	var r ratifyCosign
	if !c.decode(raw, &r, at) {
		return
	}
	if r.Key != "" || r.RekorURL != "" {
		c.refuse(at+".key", "key and rekorURL are the older form", "write a trust policy with the key")
	}
	if len(r.TrustPolicies) == 0 || len(r.TrustPolicies) > maxRules {
		c.refuse(at+".trustPolicies", fmt.Sprintf("%d trust policies", len(r.TrustPolicies)), fmt.Sprintf("want 1 to %d", maxRules))
		return
	}
	named, global := c.ratifyScopes(r.TrustPolicies, at+".trustPolicies")
	var taken []test
	for _, tests := range named {
		taken = append(taken, tests...)
	}
	for i, policy := range r.TrustPolicies {
		s := selection{spelling: byIdentity, takes: some(named[i])}
		if i == global {
			s = others(byIdentity, taken)
		}
		p := &said{name: "ratify-" + policy.Name}
		p.images = []imageReference{s.reference(fmt.Sprintf("The scopes of trust policy %q.", policy.Name))}
		c.ratifyTrustPolicy(p, policy, index(at+".trustPolicies", i), providers)
		c.say(p)
	}
	if global < 0 {
		c.say(deny("ratify-unmatched", others(byIdentity, taken).reference("The images that no trust policy speaks of."),
			"no trust policy speaks of this image", "Ratify's cosign verifier fails for an image that no trust policy speaks of."))
	}
}

// ratifyScopes returns the images of each trust policy. Scopes that overlap are
// refused, as Ratify refuses them.
func (c *conversion) ratifyScopes(list []ratifyTrustPolicy, at string) (named [][]test, global int) {
	named, global = make([][]test, len(list)), -1
	var before []string
	for i, policy := range list {
		path := index(at, i) + ".scopes"
		if len(policy.Scopes) == 0 {
			c.refuse(path, "is empty", `say which images are meant, "*" for all others`)
		}
		for j, text := range policy.Scopes {
			place := index(path, j)
			prefix, wild := strings.CutSuffix(text, "*")
			switch {
			case text == "*" && (global >= 0 || len(policy.Scopes) > 1):
				c.refuse(place, `"*" stands beside other scopes, or is there twice`, "give it one trust policy of its own")
			case text == "*":
				global = i
			case !regexp.MustCompile(`^[a-z0-9.:@/_-]+$`).MatchString(prefix):
				c.refuse(place, fmt.Sprintf("%q", text), "want an image, or its beginning and a * at the end, in lower case")
			case slices.ContainsFunc(before, func(other string) bool { return overlap(text, other) }):
				c.refuse(place, fmt.Sprintf("%q overlaps another scope", text), "write scopes that do not overlap, as Ratify wants it")
			case wild:
				named[i] = append(named[i], pattern("^"+regexp.QuoteMeta(hub(prefix))))
			case !scope(text).exact():
				c.refuse(place, fmt.Sprintf("%q names a repository without tag or digest, which Ratify compares with whole references", text), "write "+text+":* and "+text+"@*")
			default:
				named[i] = append(named[i], scope(text).test())
			}
			if text != "*" {
				before = append(before, text)
			}
		}
	}
	return named, global
}

func overlap(a, b string) bool {
	shortA, wildA := strings.CutSuffix(a, "*")
	shortB, wildB := strings.CutSuffix(b, "*")
	return a == b || wildA && strings.HasPrefix(shortB, shortA) || wildB && strings.HasPrefix(shortA, shortB)
}

func (c *conversion) ratifyTrustPolicy(p *said, policy ratifyTrustPolicy, at string, providers map[string]keyManagementProvider) {
	if policy.Version != "" && policy.Version != "1.0.0" {
		c.refuse(at+".version", fmt.Sprintf("%q", policy.Version), "want 1.0.0")
	}
	if policy.Name == "" {
		c.refuse(at+".name", "is missing", "name the trust policy")
	}
	if (len(policy.Keys) > 0) == (policy.Keyless != nil) {
		c.refuse(at, "is not exactly one of keys and keyless", "say who must have signed")
		return
	}
	log := ctlog{URL: policy.RekorURL, IgnoreTlog: policy.TLogVerify != nil && !*policy.TLogVerify}
	var names []string
	taken := map[string]bool{}
	add := func(name, comment string, signer cosign) {
		signer.CTLog = &log
		p.attestors = append(p.attestors, attestor{Name: attestorName(name, taken), Cosign: &signer, comment: comment})
		names = append(names, p.attestors[len(p.attestors)-1].Name)
	}
	if k := policy.Keyless; k != nil {
		log.IgnoreSCT = k.CTLogVerify != nil && !*k.CTLogVerify
		who := identity{Issuer: k.OIDCIssuer, IssuerRegExp: k.OIDCIssueRegExp, Subject: k.Identity, SubjectRegExp: k.IdentityRegExp}
		c.checkIdentity(who, at+".keyless")
		add("keyless", anchored(who), cosign{Keyless: &keyless{Identities: []identity{who}}})
	}
	for i, k := range policy.Keys {
		place := index(at+".keys", i)
		var text string
		switch {
		case (k.File == "") == (k.Provider == ""):
			c.refuse(place, "is not exactly one of provider and file", "say where the key is")
			continue
		case k.Name != "" || k.Version != "":
			c.refuse(place+".name", "names one key of a provider", "an inline provider holds one key: leave name and version out")
			continue
		case k.File != "":
			data, ok := c.file(k.File, place+".file")
			if !ok {
				continue
			}
			text = string(data)
		default:
			value, ok := c.provided(k.Provider, "key", place+".provider", providers)
			if !ok {
				continue
			}
			text = value
		}
		for _, block := range c.pem(text, publicKey, place) {
			add("key-"+itoa(i+1), "", cosign{Key: &key{Data: block}})
		}
	}
	p.validations = []validation{{Expression: every(signed(names, 1)), Message: "no cosign signature that the trust policy accepts"}}
}
