package ratify

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/internal/images"
	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/convert/notation"
)

// resource is a resource of Ratify's, of either version.
type resource struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
	Status     json.RawMessage `json:"status"`
}

// verifier is the spec of a Verifier (v1beta1).
type verifier struct {
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

	namespace string // of a NamespacedKeyManagementProvider
}

type notationParameters struct {
	VerificationCerts      []string                   `json:"verificationCerts"`
	VerificationCertStores map[string]json.RawMessage `json:"verificationCertStores"`
	TrustPolicyDoc         notation.Document          `json:"trustPolicyDoc"`
}

type cosignParameters struct {
	Key           string        `json:"key"`
	RekorURL      string        `json:"rekorURL"`
	TrustPolicies []trustPolicy `json:"trustPolicies"`
}

type trustPolicy struct {
	Version    string         `json:"version"`
	Name       string         `json:"name"`
	Scopes     []string       `json:"scopes"`
	Keys       []keyReference `json:"keys"`
	Keyless    *signer        `json:"keyless"`
	TLogVerify *bool          `json:"tLogVerify"`
	RekorURL   string         `json:"rekorURL"`
}

type keyReference struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	File     string `json:"file"`
}

type signer struct {
	CTLogVerify     *bool  `json:"ctLogVerify"`
	Identity        string `json:"certificateIdentity"`
	IdentityRegExp  string `json:"certificateIdentityRegExp"`
	OIDCIssuer      string `json:"certificateOIDCIssuer"`
	OIDCIssueRegExp string `json:"certificateOIDCIssuerRegExp"`
}

// reader converts the fields that it supports.
type reader struct{ *source.Conversion }

// Read adds the policies of Executors of version 2, or of one Verifier of version 1
// with the KeyManagementProviders that it names.
func Read(conversion *source.Conversion, documents []source.Document) {
	c := reader{conversion}
	providers := map[string]keyManagementProvider{}
	var verifiers, executors []document
	for _, d := range documents {
		one := document{at: d.Prefix}
		if !c.Decode(d.Text, &one.resource, d.Prefix) {
			continue
		}
		one.meta = c.Metadata(one.Metadata, d.At("metadata"))
		group, version, _ := strings.Cut(one.APIVersion, "/")
		switch {
		case group == "config.ratify.sh" && version == "v2alpha1" && one.Kind == "Executor":
			executors = append(executors, one)
		case group == "config.ratify.deislabs.io" && version == "v1beta1" && (one.Kind == "Verifier" || one.Kind == "NamespacedVerifier"):
			verifiers = append(verifiers, one)
		case group == "config.ratify.deislabs.io" && version == "v1beta1" && (one.Kind == "KeyManagementProvider" || one.Kind == "NamespacedKeyManagementProvider"):
			c.keyManagementProvider(one, providers)
		default:
			c.Refuse(d.At("kind"), fmt.Sprintf("%s %s", one.APIVersion, one.Kind),
				"want one Verifier of config.ratify.deislabs.io/v1beta1 with its KeyManagementProviders, or Executors of config.ratify.sh/v2alpha1")
		}
	}
	switch {
	case len(c.Problems) > 0:
	case len(executors) > 0 && len(verifiers)+len(providers) > 0:
		c.Refuse("", "resources of both versions", "convert each version alone")
	case len(executors) > 0:
		c.executors(executors)
	case len(verifiers) != 1:
		c.Refuse("", fmt.Sprintf("%d Verifiers", len(verifiers)),
			"Ratify's Policy determines how several of them are combined: convert each Verifier alone, with the providers that it names")
	default:
		c.verifier(verifiers[0], providers)
	}
}

type document struct {
	resource
	meta source.Metadata
	at   string
}

// keyManagementProvider keeps an inline provider by the names that Ratify has for it: of one of a
// namespace namespace/name alone. Before 1.2 KeyManagementProviders had a namespace, too.
func (c reader) keyManagementProvider(d document, providers map[string]keyManagementProvider) {
	var kind struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(d.Spec, &kind) // decoded strictly below
	if kind.Type != "inline" {
		c.Refuse(source.Below(d.at, "spec.type"), fmt.Sprintf("%q", kind.Type), "a policy holds keys and certificates themselves: use the type inline")
		return
	}
	var p keyManagementProvider
	c.Decode(d.Spec, &p, source.Below(d.at, "spec"))
	qualified := d.meta.Namespace + "/" + d.meta.Name
	names := []string{d.meta.Name}
	switch {
	case d.Kind == "NamespacedKeyManagementProvider" && d.meta.Namespace == "":
		c.Refuse(source.Below(d.at, "metadata.namespace"), "is missing", "write the namespace of the NamespacedKeyManagementProvider")
	case d.Kind == "NamespacedKeyManagementProvider":
		p.namespace, names = d.meta.Namespace, []string{qualified}
	case d.meta.Namespace != "":
		names = append(names, qualified)
	}
	if slices.ContainsFunc(names, func(name string) bool { _, twice := providers[name]; return twice }) {
		c.Refuse(source.Below(d.at, "metadata.name"), fmt.Sprintf("%q is there twice", d.meta.Name),
			"a Verifier's name for it would mean either: convert it with the one that it means")
	}
	for _, name := range names {
		providers[name] = p
	}
}

func (c reader) verifier(d document, providers map[string]keyManagementProvider) {
	at := source.Below(d.at, "spec")
	var v verifier
	if !c.Decode(d.Spec, &v, at) {
		return
	}
	if v.Address != "" || len(v.Source) > 0 {
		c.Refuse(at, "has an address or a source, which name a plug-in", "convert verifiers that are built in: notation and cosign")
	}
	kind := v.Type
	if kind == "" {
		kind = v.Name
	}
	c.Note("In Ratify a Policy, and Gatekeeper's constraint, say how many of an image's signatures must be good, and whether one must be there. Here one good signature must be there, and others are passed over.")
	before := len(c.Policies)
	parameters := source.Below(at, "parameters")
	namespace := ""
	if d.Kind == "NamespacedVerifier" {
		namespace = d.meta.Namespace
	}
	// Ratify lets a verifier use the providers of its own namespace, and those of the cluster.
	maps.DeleteFunc(providers, func(name string, p keyManagementProvider) bool {
		return strings.Contains(name, "/") && p.namespace != namespace
	})
	switch kind {
	case "notation", "notaryv2":
		c.notation(v.Parameters, parameters, providers)
	case "cosign":
		c.cosign(v.Parameters, parameters, providers)
	default:
		c.Refuse(source.Below(at, "name"), fmt.Sprintf("%q", kind),
			"an ImageValidatingPolicy verifies cosign and notation signatures: want the verifier notation or cosign")
	}
	if d.Kind == "NamespacedVerifier" {
		if d.meta.Namespace == "" {
			c.Refuse(source.Below(d.at, "metadata.namespace"), "is missing", "write the namespace of the NamespacedVerifier")
		}
		for _, p := range c.Policies[before:] {
			p.Namespace = d.meta.Namespace
		}
	}
}

func (c reader) notation(raw json.RawMessage, at string, providers map[string]keyManagementProvider) {
	var n notationParameters
	if !c.Decode(raw, &n, at) {
		return
	}
	if len(n.VerificationCerts) > 0 {
		c.Refuse(at+".verificationCerts", "names files", "use verificationCertStores with an inline KeyManagementProvider")
	}
	// Stores are grouped by type, or in older resources they are not.
	grouped := map[string]map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(n.VerificationCertStores)) {
		place := at + ".verificationCertStores." + name
		var list []string
		if json.Unmarshal(n.VerificationCertStores[name], &list) == nil {
			c.Refuse(place, "is a store of no type", "write it below ca, as Ratify 1.2 and later have it")
			continue
		}
		var byName map[string][]string
		if c.Decode(n.VerificationCertStores[name], &byName, place) {
			grouped[name] = byName
		}
	}
	notation.TrustPolicies(c.Conversion, n.TrustPolicyDoc, at+".trustPolicyDoc", "ratify-", func(kind, name, place string) []string {
		var certs []string
		list := grouped[kind][name]
		if len(list) == 0 {
			c.Refuse(place, fmt.Sprintf("names the store %s:%s, which verificationCertStores does not have", kind, name), "add it, or name another one")
		}
		for i, provider := range list {
			where := source.Index(at+".verificationCertStores."+kind+"."+name, i)
			if value, ok := c.provided(provider, "certificate", where, providers); ok {
				certs = append(certs, c.PEM(value, source.Certificate, where)...)
			}
		}
		return certs
	})
}

// provided returns the content of an inline provider of this file.
func (c reader) provided(name, content, at string, providers map[string]keyManagementProvider) (string, bool) {
	p, ok := providers[name]
	if !ok {
		c.Refuse(at, fmt.Sprintf("names the provider %q, which the file does not hold for this verifier", name),
			"add that KeyManagementProvider to the file, with the type inline; a NamespacedVerifier names one of its own namespace by namespace/name")
		return "", false
	}
	kind := p.Parameters.ContentType
	if kind == "" {
		kind = "certificate"
	}
	if kind != content {
		c.Refuse(at, fmt.Sprintf("names the provider %q with the contentType %q", name, kind), "want one of the contentType "+content)
		return "", false
	}
	return p.Parameters.Value, true
}

func (c reader) cosign(raw json.RawMessage, at string, providers map[string]keyManagementProvider) {
	var r cosignParameters
	if !c.Decode(raw, &r, at) {
		return
	}
	if r.Key != "" || r.RekorURL != "" {
		c.Refuse(at+".key", "key and rekorURL are the older form", "write a trust policy with the key")
	}
	if len(r.TrustPolicies) == 0 || len(r.TrustPolicies) > source.MaxRules {
		c.Refuse(at+".trustPolicies", fmt.Sprintf("%d trust policies", len(r.TrustPolicies)), fmt.Sprintf("want 1 to %d", source.MaxRules))
		return
	}
	named, global := c.scopes(r.TrustPolicies, at+".trustPolicies")
	var taken []images.Test
	for _, tests := range named {
		taken = append(taken, tests...)
	}
	for i, policy := range r.TrustPolicies {
		s := images.Selection{Spelling: images.ByIdentity, Takes: images.Some(named[i])}
		if i == global {
			s = images.Others(images.ByIdentity, taken)
		}
		p := &ivp.Policy{Name: "ratify-" + policy.Name}
		p.Images = []ivp.ImageReference{s.Reference(fmt.Sprintf("The scopes of trust policy %q.", policy.Name))}
		c.trustPolicy(p, policy, source.Index(at+".trustPolicies", i), providers)
		c.Say(p)
	}
	if global < 0 {
		c.Say(ivp.Deny("ratify-unmatched", images.Others(images.ByIdentity, taken).Reference("The images that no trust policy matches."),
			"no trust policy matches this image", "Ratify's cosign verifier fails for an image that no trust policy matches."))
	}
}

func (c reader) trustPolicy(p *ivp.Policy, policy trustPolicy, at string, providers map[string]keyManagementProvider) {
	if policy.Version != "" && policy.Version != "1.0.0" {
		c.Refuse(at+".version", fmt.Sprintf("%q", policy.Version), "want 1.0.0")
	}
	if policy.Name == "" {
		c.Refuse(at+".name", "is missing", "name the trust policy")
	}
	if (len(policy.Keys) > 0) == (policy.Keyless != nil) {
		c.Refuse(at, "is not exactly one of keys and keyless", "name the required signers")
		return
	}
	log := ivp.CTLog{URL: policy.RekorURL, IgnoreTlog: policy.TLogVerify != nil && !*policy.TLogVerify}
	var names []string
	taken := map[string]bool{}
	add := func(name, comment string, signer ivp.Cosign) {
		signer.CTLog = &log
		p.Attestors = append(p.Attestors, ivp.Attestor{Name: ivp.AttestorName(name, taken), Cosign: &signer, Comment: comment})
		names = append(names, p.Attestors[len(p.Attestors)-1].Name)
	}
	if k := policy.Keyless; k != nil {
		log.IgnoreSCT = k.CTLogVerify != nil && !*k.CTLogVerify
		who := ivp.Identity{Issuer: k.OIDCIssuer, IssuerRegExp: k.OIDCIssueRegExp, Subject: k.Identity, SubjectRegExp: k.IdentityRegExp}
		c.CheckIdentity(who, at+".keyless")
		add("keyless", source.Anchored(who), ivp.Cosign{Keyless: &ivp.Keyless{Identities: []ivp.Identity{who}}})
	}
	for i, k := range policy.Keys {
		place := source.Index(at+".keys", i)
		var text string
		switch {
		case (k.File == "") == (k.Provider == ""):
			c.Refuse(place, "is not exactly one of provider and file", "set one of them")
			continue
		case k.Name != "" || k.Version != "":
			c.Refuse(place+".name", "names one key of a provider", "an inline provider holds one key: leave name and version out")
			continue
		case k.File != "":
			data, ok := c.File(k.File, place+".file")
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
		for _, block := range c.PEM(text, source.PublicKey, place) {
			add("key-"+strconv.Itoa(i+1), "", ivp.Cosign{Key: &ivp.Key{Data: block}})
		}
	}
	p.Validations = []ivp.Validation{{Expression: ivp.Every(ivp.Signed(names, 1)), Message: "no cosign signature that the trust policy accepts"}}
}
