package convert

import (
	"encoding/json"
	"fmt"
	"slices"
)

// openshiftPolicy is an ImagePolicy or ClusterImagePolicy of config.openshift.io.
type openshiftPolicy struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       openshiftSpec   `json:"spec"`
	Status     json.RawMessage `json:"status"`
}

type openshiftSpec struct {
	Scopes []string        `json:"scopes"`
	Policy openshiftDemand `json:"policy"`
}

type openshiftDemand struct {
	RootOfTrust    rootOfTrust     `json:"rootOfTrust"`
	SignedIdentity json.RawMessage `json:"signedIdentity"`
}

type rootOfTrust struct {
	PolicyType string             `json:"policyType"`
	PublicKey  *openshiftKey      `json:"publicKey"`
	Fulcio     *fulcioCAWithRekor `json:"fulcioCAWithRekor"`
	PKI        json.RawMessage    `json:"pki"`
	_          struct{}           // keyed literals alone
}

type openshiftKey struct {
	KeyData      string `json:"keyData"`
	RekorKeyData string `json:"rekorKeyData"`
}

type fulcioCAWithRekor struct {
	FulcioCAData  string `json:"fulcioCAData"`
	RekorKeyData  string `json:"rekorKeyData"`
	FulcioSubject struct {
		OIDCIssuer  string `json:"oidcIssuer"`
		SignedEmail string `json:"signedEmail"`
	} `json:"fulcioSubject"`
}

// objectMeta is what is read of metadata; the API server adds to it.
type objectMeta struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Annotations map[string]string `json:"annotations"`
}

func meta(raw json.RawMessage) objectMeta {
	var m objectMeta
	_ = json.Unmarshal(raw, &m) // what cannot be read stays empty, and is refused by its users
	return m
}

type openshiftDocument struct {
	openshiftPolicy
	meta objectMeta
	at   string
}

func (c *conversion) openshift(documents []source) {
	var list []openshiftDocument
	for _, d := range documents {
		one := openshiftDocument{at: d.prefix}
		if !c.decode(d.text, &one.openshiftPolicy, d.prefix) {
			continue
		}
		one.meta = meta(one.Metadata)
		cluster := one.Kind == "ClusterImagePolicy"
		switch {
		case one.APIVersion != "config.openshift.io/v1" && one.APIVersion != "config.openshift.io/v1alpha1":
			c.refuse(d.at("apiVersion"), fmt.Sprintf("%q", one.APIVersion), "want config.openshift.io/v1")
		case !cluster && one.Kind != "ImagePolicy":
			c.refuse(d.at("kind"), fmt.Sprintf("%q", one.Kind), "want ImagePolicy or ClusterImagePolicy")
		case one.meta.Name == "":
			c.refuse(d.at("metadata.name"), "is missing", "name the policy")
		case cluster != (one.meta.Namespace == ""):
			c.refuse(d.at("metadata.namespace"), fmt.Sprintf("%q", one.meta.Namespace), "an ImagePolicy has a namespace, and a ClusterImagePolicy has none")
		default:
			list = append(list, one)
		}
	}
	if len(c.problems) > 0 {
		return
	}
	c.note("OpenShift admits an image that no scope speaks of, and so do these policies. OpenShift's own policy for its release images stays on the nodes.")
	c.openshiftScopes(list)
}

// openshiftScopes makes a policy of each document. The most specific scope alone
// decides, and a cluster's policy stands over a namespace's.
func (c *conversion) openshiftScopes(list []openshiftDocument) {
	clusters, all := map[string][]scope{}, 0
	for _, d := range list {
		for _, s := range d.Spec.Scopes {
			clusters[d.meta.Namespace] = append(clusters[d.meta.Namespace], scope(s))
			all++
		}
	}
	if all > maxRules {
		c.refuse("", fmt.Sprintf("%d scopes", all), fmt.Sprintf("convert at most %d together", maxRules))
		return
	}
	for _, d := range list {
		at := below(d.at, "spec.scopes")
		if len(d.Spec.Scopes) == 0 {
			c.refuse(at, "is empty", "say which images are meant")
		}
		p := &said{name: d.meta.Name, namespace: d.meta.Namespace}
		rivals := slices.Concat(clusters[""], clusters[d.meta.Namespace])
		if d.meta.Namespace == "" {
			rivals = clusters[""]
		} else {
			p.about = append(p.about, "OpenShift lets a ClusterImagePolicy of the same or a wider scope stand in for this one. Here both must allow, unless both were converted together.")
		}
		for i, text := range d.Spec.Scopes {
			s, place := scope(text), index(at, i)
			if text == "" || !s.valid() {
				c.refuse(place, fmt.Sprintf("%q", text), "want an image, a repository, a namespace or a registry, in lower case, or *.domain")
				continue
			}
			if d.meta.Namespace != "" && slices.ContainsFunc(clusters[""], func(other scope) bool { return s == other || s.within(other) }) {
				c.refuse(place, fmt.Sprintf("%q lies within the scope of a ClusterImagePolicy, and so has no effect", text), "remove it")
			}
			comment := fmt.Sprintf("The images of the scope %q, without those of more specific scopes.", text)
			p.images = append(p.images, selection{spelling: byIdentity, takes: s.test(), before: scopesWithin(rivals, s)}.reference(comment))
		}
		c.rootOfTrust(p, d.Spec.Policy, below(d.at, "spec.policy"))
		c.say(p)
	}
}

func (c *conversion) rootOfTrust(p *said, demand openshiftDemand, at string) {
	root, place := demand.RootOfTrust, at+".rootOfTrust"
	c.signedIdentity(p, demand.SignedIdentity, at+".signedIdentity")
	given := 0
	for _, is := range []bool{root.PublicKey != nil, root.Fulcio != nil, len(root.PKI) > 0} {
		if is {
			given++
		}
	}
	if given != 1 {
		c.refuse(place, "is not exactly one of publicKey, fulcioCAWithRekor and pki", "say who must have signed")
		return
	}
	var signer attestor
	var rekor []string
	switch {
	case root.PolicyType == "PublicKey" && root.PublicKey != nil:
		keys := c.encoded(root.PublicKey.KeyData, publicKey, place+".publicKey.keyData")
		if len(keys) > 1 {
			c.refuse(place+".publicKey.keyData", fmt.Sprintf("%d keys", len(keys)), "give one")
		}
		if root.PublicKey.RekorKeyData != "" {
			rekor = c.encoded(root.PublicKey.RekorKeyData, publicKey, place+".publicKey.rekorKeyData")
		}
		if len(keys) == 0 {
			return
		}
		signer = attestor{Name: "key", Cosign: &cosign{Key: &key{Data: keys[0]}}}
	case root.PolicyType == "FulcioCAWithRekor" && root.Fulcio != nil:
		f := root.Fulcio
		at := place + ".fulcioCAWithRekor"
		rekor = c.encoded(f.RekorKeyData, publicKey, at+".rekorKeyData")
		roots := c.encoded(f.FulcioCAData, certificate, at+".fulcioCAData")
		signer = c.fulcioSigner(roots, identity{Issuer: f.FulcioSubject.OIDCIssuer, Subject: f.FulcioSubject.SignedEmail}, at+".fulcioSubject")
	case root.PolicyType == "PKI":
		c.refuse(place+".pki", "is given", "an ImageValidatingPolicy's certificate attestors do not compare the signer's name: keep this policy on the nodes")
		return
	default:
		c.refuse(place+".policyType", fmt.Sprintf("%q", root.PolicyType), "want PublicKey or FulcioCAWithRekor, and the field of that name")
		return
	}
	c.logged(p, []attestor{signer}, rekor, map[string]bool{})
}
