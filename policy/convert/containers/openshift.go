package containers

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy/convert/internal/images"
	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// imagePolicy is an ImagePolicy or ClusterImagePolicy of config.openshift.io.
type imagePolicy struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       imagePolicySpec `json:"spec"`
	Status     json.RawMessage `json:"status"`
}

type imagePolicySpec struct {
	Scopes []string `json:"scopes"`
	Policy demand   `json:"policy"`
}

type demand struct {
	RootOfTrust    rootOfTrust     `json:"rootOfTrust"`
	SignedIdentity json.RawMessage `json:"signedIdentity"`
}

type rootOfTrust struct {
	PolicyType string             `json:"policyType"`
	PublicKey  *publicKey         `json:"publicKey"`
	Fulcio     *fulcioCAWithRekor `json:"fulcioCAWithRekor"`
	PKI        json.RawMessage    `json:"pki"`
	_          struct{}           // keyed literals alone
}

type publicKey struct {
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

type imagePolicyDocument struct {
	imagePolicy
	meta source.Metadata
	at   string
}

// ReadImagePolicies adds the policies of OpenShift's ImagePolicies and
// ClusterImagePolicies: of their scopes the most specific one decides.
func ReadImagePolicies(conversion *source.Conversion, documents []source.Document) {
	c := reader{conversion}
	var list []imagePolicyDocument
	for _, d := range documents {
		one := imagePolicyDocument{at: d.Prefix}
		if !c.Decode(d.Text, &one.imagePolicy, d.Prefix) {
			continue
		}
		one.meta = c.Metadata(one.Metadata, d.At("metadata"))
		cluster := one.Kind == "ClusterImagePolicy"
		switch {
		case one.APIVersion != "config.openshift.io/v1" && one.APIVersion != "config.openshift.io/v1alpha1":
			c.Refuse(d.At("apiVersion"), fmt.Sprintf("%q", one.APIVersion), "want config.openshift.io/v1")
		case !cluster && one.Kind != "ImagePolicy":
			c.Refuse(d.At("kind"), fmt.Sprintf("%q", one.Kind), "want ImagePolicy or ClusterImagePolicy")
		case one.meta.Name == "":
			c.Refuse(d.At("metadata.name"), "is missing", "name the policy")
		case cluster != (one.meta.Namespace == ""):
			c.Refuse(d.At("metadata.namespace"), fmt.Sprintf("%q", one.meta.Namespace), "an ImagePolicy has a namespace, and a ClusterImagePolicy has none")
		default:
			list = append(list, one)
		}
	}
	c.Note("OpenShift admits an image that no scope matches, and so do these policies. OpenShift's own policy for its release images stays on the nodes.")
	c.scopes(list)
}

// scopes makes a policy of each document. The most specific scope alone decides, and a
// cluster's policy takes precedence over a namespace's.
func (c reader) scopes(list []imagePolicyDocument) {
	clusters, all := map[string][]images.Scope{}, 0
	for _, d := range list {
		for _, s := range d.Spec.Scopes {
			clusters[d.meta.Namespace] = append(clusters[d.meta.Namespace], images.Scope(s))
			all++
		}
	}
	if all > source.MaxRules {
		c.Refuse("", fmt.Sprintf("%d scopes", all), fmt.Sprintf("convert at most %d together", source.MaxRules))
		return
	}
	for _, d := range list {
		at := source.Below(d.at, "spec.scopes")
		if len(d.Spec.Scopes) == 0 {
			c.Refuse(at, "is empty", "set the images")
		}
		p := &ivp.Policy{Name: d.meta.Name, Namespace: d.meta.Namespace}
		rivals := slices.Concat(clusters[""], clusters[d.meta.Namespace])
		if d.meta.Namespace == "" {
			rivals = clusters[""]
		} else {
			p.About = append(p.About, "OpenShift lets a ClusterImagePolicy of the same or a wider scope stand in for this one. Here both must allow, unless both were converted together.")
		}
		for i, text := range d.Spec.Scopes {
			s, place := images.Scope(text), source.Index(at, i)
			if !s.Valid() {
				c.Refuse(place, fmt.Sprintf("%q", text), "want an image, a repository, a namespace or a registry, in lower case, or *.domain")
				continue
			}
			c.checkScope(text, place)
			if d.meta.Namespace != "" && slices.ContainsFunc(clusters[""], func(other images.Scope) bool { return s == other || s.Within(other) }) {
				c.Refuse(place, fmt.Sprintf("%q lies within the scope of a ClusterImagePolicy, and so has no effect", text), "remove it")
			}
			comment := fmt.Sprintf("The images of the scope %q, without those of more specific scopes.", text)
			p.Images = append(p.Images, images.Selection{Spelling: images.ByIdentity, Takes: s.Test(), Before: images.ScopesWithin(rivals, s)}.Reference(comment))
		}
		c.rootOfTrust(p, d.Spec.Policy, source.Below(d.at, "spec.policy"))
		c.Say(p)
	}
}

func (c reader) rootOfTrust(p *ivp.Policy, demand demand, at string) {
	root, place := demand.RootOfTrust, at+".rootOfTrust"
	c.signedIdentity(p, demand.SignedIdentity, at+".signedIdentity")
	given := 0
	for _, is := range []bool{root.PublicKey != nil, root.Fulcio != nil, len(root.PKI) > 0} {
		if is {
			given++
		}
	}
	if given != 1 {
		c.Refuse(place, "is not exactly one of publicKey, fulcioCAWithRekor and pki", "name the required signers")
		return
	}
	var signer ivp.Attestor
	var rekor []string
	switch {
	case root.PolicyType == "PublicKey" && root.PublicKey != nil:
		keys := c.EncodedPEM(root.PublicKey.KeyData, source.PublicKey, place+".publicKey.keyData")
		if len(keys) > 1 {
			c.Refuse(place+".publicKey.keyData", fmt.Sprintf("%d keys", len(keys)), "give one")
		}
		if root.PublicKey.RekorKeyData != "" {
			rekor = c.EncodedPEM(root.PublicKey.RekorKeyData, source.PublicKey, place+".publicKey.rekorKeyData")
		}
		if len(keys) == 0 {
			return
		}
		signer = ivp.Attestor{Name: "key", Cosign: &ivp.Cosign{Key: &ivp.Key{Data: keys[0]}}}
	case root.PolicyType == "FulcioCAWithRekor" && root.Fulcio != nil:
		f := root.Fulcio
		at := place + ".fulcioCAWithRekor"
		rekor = c.EncodedPEM(f.RekorKeyData, source.PublicKey, at+".rekorKeyData")
		roots := c.EncodedPEM(f.FulcioCAData, source.Certificate, at+".fulcioCAData")
		signer = c.fulcioSigner(roots, ivp.Identity{Issuer: f.FulcioSubject.OIDCIssuer, Subject: f.FulcioSubject.SignedEmail}, at+".fulcioSubject")
	case root.PolicyType == "PKI":
		c.Refuse(place+".pki", "is given", "an ImageValidatingPolicy's certificate attestors do not compare the signer's name: keep this policy on the nodes")
		return
	default:
		c.Refuse(place+".policyType", fmt.Sprintf("%q", root.PolicyType), "want PublicKey or FulcioCAWithRekor, and the field of that name")
		return
	}
	c.logged(p, []ivp.Attestor{signer}, rekor, map[string]bool{})
}
