package containers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/internal/images"
	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// policy is policy.json.
type policy struct {
	Default    []json.RawMessage                       `json:"default"`
	Transports map[string]map[string][]json.RawMessage `json:"transports"`
}

// requirement is one entry of a scope's list, of any type.
type requirement struct {
	Type               string          `json:"type"`
	KeyPath            string          `json:"keyPath"`
	KeyPaths           []string        `json:"keyPaths"`
	KeyData            string          `json:"keyData"`
	KeyDatas           []string        `json:"keyDatas"`
	Fulcio             *fulcio         `json:"fulcio"`
	PKI                json.RawMessage `json:"pki"`
	RekorPublicKeyPath string          `json:"rekorPublicKeyPath"`
	RekorPaths         []string        `json:"rekorPublicKeyPaths"`
	RekorPublicKeyData string          `json:"rekorPublicKeyData"`
	RekorDatas         []string        `json:"rekorPublicKeyDatas"`
	SignedIdentity     json.RawMessage `json:"signedIdentity"`
}

type fulcio struct {
	CAPath       string `json:"caPath"`
	CAData       string `json:"caData"`
	OIDCIssuer   string `json:"oidcIssuer"`
	SubjectEmail string `json:"subjectEmail"`
}

// local are the transports by which no cluster pulls.
func local() []string {
	return []string{"containers-storage", "dir", "docker-archive", "docker-daemon", "oci", "oci-archive", "ostree", "sif", "tarball"}
}

// reader converts the fields that it supports.
type reader struct{ *source.Conversion }

// Read adds the policies of the only document, a policy.json.
func Read(conversion *source.Conversion, documents []source.Document) {
	c := reader{conversion}
	d, ok := c.One(documents)
	if !ok {
		return
	}
	var doc policy
	if !c.Decode(d.Text, &doc, "") {
		return
	}
	if len(doc.Default) == 0 {
		c.Refuse("default", "is missing or empty", "say what holds where no scope does, as containers-policy.json(5) wants it")
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Transports)) {
		switch {
		case name == "docker":
		case slices.Contains(local(), name):
			c.Note("Left out, since a cluster pulls from registries alone: transports.%s.", name)
		default:
			c.Refuse("transports."+name, "is another transport than a registry's (docker)", "remove it, or keep the policy where it is")
		}
	}
	c.Note("On a node this policy evaluates each pull, and of an index the manifest of its platform. Here the image is evaluated when a pod requests it, by the digest that the reference resolves to; static pods and pulls past the cluster's API are not evaluated.")
	rules := doc.Transports["docker"]
	if len(rules) > source.MaxRules {
		c.Refuse("transports.docker", fmt.Sprintf("%d scopes", len(rules)), fmt.Sprintf("want at most %d", source.MaxRules))
		return
	}
	var scopes []images.Scope
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if s := images.Scope(name); name != "" && !s.Valid() {
			c.Refuse("transports.docker."+name, "is no scope", "want an image, a repository, a namespace or a registry, in lower case, or *.domain")
		} else {
			c.checkScope(name, "transports.docker."+name)
			scopes = append(scopes, s)
		}
	}
	for _, s := range scopes {
		c.scope(s, scopes, rules[string(s)], "transports.docker."+string(s))
	}
	if _, whole := rules[""]; !whole {
		c.scope("", scopes, doc.Default, "default")
	}
}

// checkScope refuses a scope that would match nothing here; empty is that of every image.
func (c reader) checkScope(name, at string) {
	if name == "" {
		return
	}
	if why := images.Unmatched(name); why != "" {
		c.Refuse(at, fmt.Sprintf("%q matches nothing here", name), why)
	}
}

// scope makes policies of one scope. The most specific scope alone decides, so
// that images of scopes within it are left out.
func (c reader) scope(s images.Scope, scopes []images.Scope, requirements []json.RawMessage, at string) {
	p := &ivp.Policy{Name: "containers-" + string(s)}
	if s == "" {
		p.Name = "containers-default"
	}
	comment := fmt.Sprintf("The images of the scope %q, without those of more specific scopes.", string(s))
	if s == "" {
		comment = "The images that no scope matches."
	}
	images := images.Selection{Spelling: images.ByIdentity, Takes: s.Test(), Before: images.ScopesWithin(scopes, s)}.Reference(comment)
	p.Images = []ivp.ImageReference{images}
	if len(requirements) == 0 {
		c.Refuse(at, "is empty", "containers-policy.json(5) wants at least one requirement")
		return
	}
	taken := map[string]bool{}
	rejected := false
	for i, raw := range requirements {
		place := source.Index(at, i)
		var r requirement
		if !c.Decode(raw, &r, place) {
			continue
		}
		switch r.Type {
		case "insecureAcceptAnything", "reject":
			var fields map[string]json.RawMessage
			if _ = json.Unmarshal(raw, &fields); len(fields) > 1 { // it decoded above
				c.Refuse(place, fmt.Sprintf("%s has other fields than its type", r.Type), "remove them")
			}
			rejected = rejected || r.Type == "reject"
		case "sigstoreSigned":
			c.sigstoreSigned(p, r, place, taken)
		case "signedBy":
			c.Refuse(place+".type", "signedBy, which is a GPG key",
				"an ImageValidatingPolicy verifies cosign and notation signatures: sign with one of them, or keep this scope on the node")
		default:
			c.Refuse(place+".type", fmt.Sprintf("%q", r.Type), "want insecureAcceptAnything, reject or sigstoreSigned")
		}
	}
	switch {
	case rejected: // whatever else is asked
		c.Say(ivp.Deny(p.Name, images, fmt.Sprintf("the policy rejects images of the scope %q", string(s))))
	case len(p.Validations) > 0:
		c.Say(p)
	default:
		c.Note("%s accepts anything: no policy matches its images, and every other one excludes them.", at)
	}
}

// sigstoreSigned adds one requirement: a signature by any of its keys.
func (c reader) sigstoreSigned(p *ivp.Policy, r requirement, at string, taken map[string]bool) {
	keys := c.contents(at, source.PublicKey, contents{"keyPath", r.KeyPath}, contents{"keyData", r.KeyData},
		lists{"keyPaths", r.KeyPaths}, lists{"keyDatas", r.KeyDatas})
	rekor := c.contents(at, source.PublicKey, contents{"rekorPublicKeyPath", r.RekorPublicKeyPath}, contents{"rekorPublicKeyData", r.RekorPublicKeyData},
		lists{"rekorPublicKeyPaths", r.RekorPaths}, lists{"rekorPublicKeyDatas", r.RekorDatas})
	c.signedIdentity(p, r.SignedIdentity, at+".signedIdentity")
	if len(r.PKI) > 0 {
		c.Refuse(at+".pki", "is given", "an ImageValidatingPolicy's certificate attestors do not compare the signer's name: keep this scope on the node")
		return
	}
	var signers []ivp.Attestor
	switch {
	case len(keys) > 0 && r.Fulcio == nil:
		for i, one := range keys {
			signers = append(signers, ivp.Attestor{Name: fmt.Sprintf("key_%d", i+1), Cosign: &ivp.Cosign{Key: &ivp.Key{Data: one}}})
		}
	case len(keys) == 0 && r.Fulcio != nil:
		if len(rekor) == 0 {
			c.Refuse(at+".rekorPublicKeyPath", "is missing", "fulcio needs the key of a transparency log, as containers-policy.json(5) wants it")
		}
		roots := c.contents(at+".fulcio", source.Certificate, contents{"caPath", r.Fulcio.CAPath}, contents{"caData", r.Fulcio.CAData})
		if len(roots) == 0 {
			c.Refuse(at+".fulcio.caPath", "gives no certificate", "give those of the authority, as caPath or caData")
		}
		signers = append(signers, c.fulcioSigner(roots, ivp.Identity{Issuer: r.Fulcio.OIDCIssuer, Subject: r.Fulcio.SubjectEmail}, at+".fulcio"))
	default:
		c.Refuse(at, "is not exactly one of keys and fulcio", "name the required signers")
		return
	}
	c.logged(p, signers, rekor, taken)
}

// logged adds the signers, each once for each key of a transparency log.
func (c reader) logged(p *ivp.Policy, signers []ivp.Attestor, rekor []string, taken map[string]bool) {
	var names []string
	for _, one := range signers {
		logs := []ivp.CTLog{{IgnoreTlog: true, IgnoreSCT: one.Cosign.Keyless != nil}}
		if len(rekor) > 0 {
			logs = nil
		}
		for _, k := range rekor {
			logs = append(logs, ivp.CTLog{RekorKey: k, IgnoreSCT: one.Cosign.Keyless != nil})
		}
		for _, log := range logs {
			signer := one
			signer.Name = ivp.AttestorName(one.Name, taken)
			signing := *one.Cosign
			signing.CTLog = &log
			signer.Cosign = &signing
			names = append(names, signer.Name)
			p.Attestors = append(p.Attestors, signer)
		}
	}
	p.Validations = append(p.Validations, ivp.Validation{Expression: ivp.Every(ivp.Signed(names, 1)), Message: "no signature that the policy accepts"})
}

// fulcioSigner is a signer by an authority of short-lived certificates.
func (c reader) fulcioSigner(roots []string, who ivp.Identity, at string) ivp.Attestor {
	c.CheckIdentity(who, at)
	return ivp.Attestor{
		Name: "fulcio", Cosign: &ivp.Cosign{Keyless: &ivp.Keyless{Identities: []ivp.Identity{who}, Roots: strings.Join(roots, "")}},
		Comment: "No certificate timestamp is asked for (insecureIgnoreSCT), as containers/image asks for none.",
	}
}

// contents is a field with one value, lists one with several. Fields with a name that ends
// in Path name files, in Data hold base64.
type (
	contents struct{ field, value string }
	lists    struct {
		field  string
		values []string
	}
)

func (f contents) each() (string, []string) {
	if f.value == "" {
		return f.field, nil
	}
	return f.field, []string{f.value}
}
func (f lists) each() (string, []string) { return f.field, f.values }

// contents returns the PEM blocks of the only field that is given.
func (c reader) contents(at, kind string, fields ...interface{ each() (string, []string) }) []string {
	var blocks []string
	given := 0
	for _, f := range fields {
		name, values := f.each()
		if len(values) == 0 {
			continue
		}
		given++
		if given > 1 {
			c.Refuse(source.Below(at, name), "is combined with another field of the same meaning", "give one of them")
		}
		for i, one := range values {
			place := source.Below(at, name)
			if len(values) > 1 {
				place = source.Index(place, i)
			}
			var found []string
			if strings.Contains(name, "Data") {
				found = c.EncodedPEM(one, kind, place)
			} else if data, ok := c.File(one, place); ok {
				found = c.PEM(string(data), kind, place)
			}
			if kind == source.PublicKey && len(found) > 1 { // only the first would count there
				c.Refuse(place, fmt.Sprintf("%d keys in one", len(found)), "give each alone")
			}
			blocks = append(blocks, found...)
		}
	}
	return blocks
}

// signedIdentity is which name a signature must have been made for. An
// ImageValidatingPolicy cannot say it.
func (c reader) signedIdentity(p *ivp.Policy, raw json.RawMessage, at string) {
	var what struct {
		Type        string `json:"type"`
		MatchPolicy string `json:"matchPolicy"`
	}
	found := "is left out, and so is matchRepoDigestOrExact"
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &what); err != nil {
			c.Refuse(at, "is no object", "mend the document")
			return
		}
		found = fmt.Sprintf("is %q", what.Type+what.MatchPolicy)
	}
	if !c.DropSignedIdentity {
		c.Refuse(at, found, "an ImageValidatingPolicy does not compare the name in a signature with the image's: accept that with --insecure-drop-signed-identity, or keep this scope where it is")
		return
	}
	p.About = append(p.About, fmt.Sprintf(
		"DROPPED as --insecure-drop-signed-identity asks: %s %s. A signature by the same signer for another repository counts here.", at, found))
}
