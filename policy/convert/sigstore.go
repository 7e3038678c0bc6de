package convert

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy/reference"
)

// clusterImagePolicy is policy-controller's. What cannot be carried stays raw.
type clusterImagePolicy struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       cipSpec         `json:"spec"`
	Status     json.RawMessage `json:"status"`
}

type cipSpec struct {
	Images []struct {
		Glob string `json:"glob"`
	} `json:"images"`
	Authorities []cipAuthority  `json:"authorities"`
	Policy      json.RawMessage `json:"policy"`
	Mode        string          `json:"mode"`
	Match       []cipMatch      `json:"match"`
}

type cipMatch struct {
	Group    string    `json:"group"`
	Version  string    `json:"version"`
	Resource string    `json:"resource"`
	Selector *selector `json:"selector"`
}

type cipAuthority struct {
	Name         string           `json:"name"`
	Key          *cipKey          `json:"key"`
	Keyless      *cipKeyless      `json:"keyless"`
	Static       *cipStatic       `json:"static"`
	Source       []cipSource      `json:"source"`
	CTLog        *cipLog          `json:"ctlog"`
	Timestamp    json.RawMessage  `json:"rfc3161timestamp"`
	Format       string           `json:"signatureFormat"`
	Attestations []cipAttestation `json:"attestations"`
}

type cipKey struct {
	Data          string         `json:"data"`
	KMS           string         `json:"kms"`
	SecretRef     *kyvernoSecret `json:"secretRef"`
	HashAlgorithm string         `json:"hashAlgorithm"`
}

type cipKeyless struct {
	URL          string        `json:"url"`
	CACert       *cipKey       `json:"ca-cert"`
	Identities   []cipIdentity `json:"identities"`
	TrustRootRef string        `json:"trustRootRef"`
	IgnoreSCT    bool          `json:"insecureIgnoreSCT"`
}

type cipIdentity struct {
	Issuer        string `json:"issuer"`
	IssuerRegExp  string `json:"issuerRegExp"`
	Subject       string `json:"subject"`
	SubjectRegExp string `json:"subjectRegExp"`
}

type cipStatic struct {
	Action  string `json:"action"`
	Message string `json:"message"`
}

type cipSource struct {
	OCI         string      `json:"oci"`
	PullSecrets []secretRef `json:"signaturePullSecrets"`
	TagPrefix   string      `json:"tagPrefix"`
}

type cipLog struct {
	URL          string `json:"url"`
	TrustRootRef string `json:"trustRootRef"`
}

type cipAttestation struct {
	Name          string          `json:"name"`
	PredicateType string          `json:"predicateType"`
	Policy        json.RawMessage `json:"policy"`
}

// included is the label by which a namespace opts in.
const included = "policy.sigstore.dev/include"

func (c *conversion) sigstore(documents []source) {
	var taken []test
	for _, d := range documents {
		var doc clusterImagePolicy
		if !c.decode(d.text, &doc, d.prefix) {
			continue
		}
		m := meta(doc.Metadata)
		switch {
		case doc.Kind != "ClusterImagePolicy" || !slices.Contains([]string{"policy.sigstore.dev/v1beta1", "policy.sigstore.dev/v1alpha1"}, doc.APIVersion):
			c.refuse(d.at("kind"), fmt.Sprintf("%s %s", doc.APIVersion, doc.Kind),
				"want ClusterImagePolicy of policy.sigstore.dev/v1beta1; a TrustRoot is written into an attestor's trustedRoot by hand")
			continue
		case m.Name == "":
			c.refuse(d.at("metadata.name"), "is missing", "name the policy")
		}
		taken = append(taken, c.clusterImagePolicy(doc.Spec, m.Name, below(d.prefix, "spec"))...)
	}
	c.note("Namespaces are judged that have the label %s: \"true\", as policy-controller's webhook has it unless it was installed otherwise.", included)
	c.note("policy-controller denies an image that no ClusterImagePolicy matches, unless its no-match-policy says otherwise: convert all of them together, and remove the last policy if it says allow.")
	c.note("policy-controller judges workloads such as Deployments, too. These policies judge pods, whoever makes them.")
	p := deny("sigstore-unmatched", others(byIdentity, taken).reference("The images that no ClusterImagePolicy matches."),
		"no ClusterImagePolicy matches this image")
	p.match = includedPods()
	c.say(p)
}

func includedPods() *matchConstraints {
	m := pods()
	m.NamespaceSelector = &selector{MatchLabels: map[string]string{included: "true"}}
	return m
}

// clusterImagePolicy makes a policy for each entry of match, and returns the images
// that it speaks of.
func (c *conversion) clusterImagePolicy(s cipSpec, name, at string) []test {
	globs := c.cipImages(s, at)
	p := said{name: name}
	comment := "The images of the policy's globs."
	p.images = []imageReference{selection{spelling: byIdentity, takes: some(globs)}.reference(comment)}
	switch s.Mode {
	case "", "enforce":
	case "warn":
		p.actions = []string{"Warn"}
	default:
		c.refuse(at+".mode", fmt.Sprintf("%q", s.Mode), "want enforce or warn")
	}
	if len(s.Policy) > 0 {
		c.refuse(at+".policy", "a policy in CUE or Rego", "write it in CEL into the new policy by hand, or keep this one as it is (this gateway takes it, too)")
	}
	passes := c.authorities(&p, s.Authorities, at+".authorities")
	if passes {
		c.note("%s: an authority passes without proof (static), and any authority is enough: no policy is needed.", at)
		return globs
	}
	matches := s.Match
	if len(matches) == 0 {
		matches = []cipMatch{{Version: "v1", Resource: "pods"}}
	}
	for i, m := range matches {
		place := index(at+".match", i)
		if m.Resource != "pods" || m.Group != "" || m.Version != "v1" && m.Version != "*" {
			c.refuse(place, fmt.Sprintf("%s/%s %s", m.Group, m.Version, m.Resource), "these policies judge pods, whoever makes them: say pods of v1, or keep this one as it is")
			continue
		}
		own := p
		own.match = includedPods()
		own.match.ObjectSelector = m.Selector
		c.say(&own)
	}
	return globs
}

func (c *conversion) cipImages(s cipSpec, at string) []test {
	if len(s.Images) == 0 || len(s.Images) > maxRules {
		c.refuse(at+".images", fmt.Sprintf("%d globs", len(s.Images)), fmt.Sprintf("want 1 to %d", maxRules))
	}
	var tests []test
	for i, one := range s.Images {
		text := one.Glob
		switch text {
		case "*":
			text = "docker.io/library/*"
		case "*/*":
			text = "docker.io/*/*"
		}
		if why := reference.Unmatchable(text); why != "" || text == "" || strings.Contains(text, "?") {
			c.refuse(index(at+".images", i)+".glob", fmt.Sprintf("%q can match no image %s", one.Glob, why), "want letters, digits and - _ : / * . @ alone")
			continue
		}
		tests = append(tests, globPattern(text))
	}
	return tests
}

// globPattern is a glob, whose * crosses no slash and whose ** does, as a question
// about a name by its identity.
func globPattern(text string) pattern {
	text = reference.Normal(text)
	prefix, rest := "^", text
	host, path, hasPath := strings.Cut(text, "/")
	switch {
	case host == "docker.io" && hasPath && !strings.HasPrefix(path, "library/"):
		prefix, rest = `^docker\.io/(library/)?`, path
	case !strings.ContainsAny(host, ".:*") && host != "localhost":
		prefix = `^(docker\.io/(library/)?)?`
	case strings.Contains(host, "*") && hasPath && !strings.Contains(path, "/"):
		prefix, rest = "^"+globbed(host)+"/(library/)?", path
	}
	if reference.Untagged(text) {
		return pattern(prefix + globbed(rest) + "[:@]")
	}
	if base, ok := strings.CutSuffix(rest, ":*"); ok && !strings.HasSuffix(base, "*") {
		return pattern(prefix + globbed(base) + "[:@]")
	}
	return pattern(prefix + globbed(rest) + "$")
}

func globbed(glob string) string {
	return strings.NewReplacer(`\*\*`, `.*`, `\*`, `[^/]*`).Replace(regexp.QuoteMeta(glob))
}

// authorities carries the authorities, of which any is enough; true if one passes
// without proof.
func (c *conversion) authorities(p *said, list []cipAuthority, at string) bool {
	if len(list) == 0 || len(list) > maxRules {
		c.refuse(at, fmt.Sprintf("%d authorities", len(list)), fmt.Sprintf("want 1 to %d", maxRules))
		return false
	}
	taken, statements := map[string]bool{}, map[string]bool{}
	var signers, demands []string
	passes := false
	for i, a := range list {
		place := index(at, i)
		if a.Static != nil {
			switch {
			case a.Static.Action == "pass":
				passes = true
			case a.Static.Action != "fail":
				c.refuse(place+".static.action", fmt.Sprintf("%q", a.Static.Action), "want pass or fail")
			}
			continue
		}
		name := a.Name
		if name == "" {
			name = "authority-" + itoa(i)
		}
		one := c.authority(a, place)
		one.Name = attestorName(name, taken)
		p.attestors = append(p.attestors, one)
		if len(a.Attestations) == 0 {
			signers = append(signers, one.Name)
			continue
		}
		var all []string
		for j, s := range a.Attestations {
			all = append(all, c.cipAttestation(p, s, one.Name, statements, index(place+".attestations", j)))
		}
		demand := strings.Join(all, " && ")
		if len(all) > 1 {
			demand = "(" + demand + ")"
		}
		demands = append(demands, demand)
	}
	if len(signers) > 0 {
		demands = append([]string{signed(signers, 1)}, demands...)
	}
	expression := denied()
	if len(demands) > 0 {
		expression = every(strings.Join(demands, "\n    || "))
	} else {
		p.pin = &pinning{}
	}
	p.validations = []validation{{Expression: expression, Message: "no authority of the policy is satisfied"}}
	return passes
}

func (c *conversion) cipAttestation(p *said, a cipAttestation, signer string, taken map[string]bool, at string) string {
	if len(a.Policy) > 0 {
		c.refuse(at+".policy", "a policy in CUE or Rego", "write it in CEL into the new policy by hand, over extractPayload(image, attestations.NAME), or keep this one as it is (this gateway takes it, too)")
	}
	kind := attest.PredicateURI(a.PredicateType)
	if !strings.Contains(kind, ":") {
		c.refuse(at+".predicateType", fmt.Sprintf("%q", a.PredicateType), "want a URI, or one of cosign's short names")
	}
	one := attestation{Name: attestorName(a.Name, taken), InToto: &ofType{Type: kind}}
	p.attestations = append(p.attestations, one)
	return attested(one.Name, []string{signer}, 1)
}

// authority is one signer.
func (c *conversion) authority(a cipAuthority, at string) attestor {
	if (a.Key != nil) == (a.Keyless != nil) {
		c.refuse(at, "is not exactly one of key, keyless and static", "say who must have signed")
		return attestor{}
	}
	if len(a.Timestamp) > 0 {
		c.refuse(at+".rfc3161timestamp", "names a TrustRoot", "write the authority's certificates into ctlog.tsaCertChain of the new policy by hand")
	}
	if a.Format != "" {
		c.note("Left out, since a signature counts in either form: signatureFormat.")
	}
	one := &cosign{CTLog: &ctlog{}}
	if a.CTLog != nil {
		if a.CTLog.TrustRootRef != "" {
			c.refuse(at+".ctlog.trustRootRef", "names a TrustRoot", "write the log's key into ctlog.rekorPubKey of the new policy by hand")
		}
		one.CTLog.URL = a.CTLog.URL
	} else {
		one.CTLog.IgnoreTlog = a.Key != nil
	}
	c.cipSource(one, a.Source, at+".source")
	if a.Key != nil {
		one.Key = c.cipKey(*a.Key, at+".key")
		remark := ""
		if a.CTLog == nil {
			remark = "policy-controller asks for no log entry of a key without ctlog, and so does this."
		}
		return attestor{Cosign: one, comment: remark}
	}
	k, at := a.Keyless, at+".keyless"
	if k.TrustRootRef != "" {
		c.refuse(at+".trustRootRef", "names a TrustRoot", "write it as a trusted_root.json into the attestor's trustedRoot by hand")
	}
	if k.CACert != nil {
		c.refuse(at+".ca-cert", "is given", "write the authority's certificates into keyless.roots of the new policy by hand")
	}
	if k.URL != "" {
		c.note("Left out, since nothing is asked of it: %s.url.", at)
	}
	one.CTLog.IgnoreSCT = k.IgnoreSCT
	one.Keyless = &keyless{}
	for i, each := range k.Identities {
		c.checkIdentity(identity(each), index(at+".identities", i))
		one.Keyless.Identities = append(one.Keyless.Identities, identity(each))
	}
	if len(k.Identities) == 0 {
		c.refuse(at+".identities", "is empty, so that anybody could sign", "say who must have")
	}
	if *one.CTLog == (ctlog{}) {
		one.CTLog = nil
	}
	return attestor{Cosign: one, comment: anchored(one.Keyless.Identities...)}
}

func (c *conversion) cipSource(one *cosign, list []cipSource, at string) {
	switch {
	case len(list) > 1:
		c.refuse(at, fmt.Sprintf("%d places", len(list)), "give one, as policy-controller takes no more")
	case len(list) == 1:
		one.Source = &location{Repository: list[0].OCI, PullSecrets: list[0].PullSecrets, TagPrefix: list[0].TagPrefix}
	}
}

func (c *conversion) cipKey(k cipKey, at string) *key {
	if !slices.Contains([]string{"", "sha224", "sha256", "sha384", "sha512"}, k.HashAlgorithm) {
		c.refuse(at+".hashAlgorithm", fmt.Sprintf("%q", k.HashAlgorithm), "want sha224, sha256, sha384 or sha512")
	}
	given := 0
	for _, is := range []bool{k.Data != "", k.KMS != "", k.SecretRef != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		c.refuse(at, fmt.Sprintf("has %d of data, kms and secretRef", given), "give exactly one")
	case k.SecretRef != nil:
		c.refuse(at+".secretRef", "names a Secret in policy-controller's own namespace", "write the public key itself into data")
	case k.KMS != "" && !isKMS(k.KMS):
		c.refuse(at+".kms", fmt.Sprintf("%q", k.KMS), "want awskms://, azurekms://, gcpkms:// or hashivault://")
	case k.KMS != "":
		return &key{KMS: k.KMS, Hash: k.HashAlgorithm}
	default:
		blocks := c.pem(k.Data, publicKey, at+".data")
		if len(blocks) > 1 {
			c.refuse(at+".data", fmt.Sprintf("%d keys", len(blocks)), "give each an authority of its own")
		}
		return &key{Data: strings.Join(blocks, ""), Hash: k.HashAlgorithm}
	}
	return nil
}
