package sigstore

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy/convert/internal/images"
	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/clusterimagepolicy"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
)

// included is the label by which a namespace opts in.
const included = "policy.sigstore.dev/include"

// reader converts the fields that it supports.
type reader struct{ *source.Conversion }

// Read adds the policies of all ClusterImagePolicies together: an image that none of
// them matches is denied.
func Read(conversion *source.Conversion, documents []source.Document) {
	c := reader{conversion}
	var all []named
	for _, d := range documents {
		var doc clusterimagepolicy.Document
		if !c.Decode(d.Text, &doc, d.Prefix) {
			continue
		}
		m := c.Metadata(doc.Metadata, d.At("metadata"))
		switch {
		case doc.Kind != "ClusterImagePolicy" || !slices.Contains([]string{"policy.sigstore.dev/v1beta1", "policy.sigstore.dev/v1alpha1"}, doc.APIVersion):
			c.Refuse(d.At("kind"), fmt.Sprintf("%s %s", doc.APIVersion, doc.Kind),
				"want ClusterImagePolicy of policy.sigstore.dev/v1beta1; a TrustRoot is written into an attestor's trustedRoot by hand")
			continue
		case m.Name == "":
			c.Refuse(d.At("metadata.name"), "is missing", "name the policy")
		}
		all = append(all, c.policy(doc.Spec, m.Name, source.Below(d.Prefix, "spec"))...)
	}
	c.checkSome(all)
	c.Note("Namespaces are judged that have the label %s: \"true\", as policy-controller's webhook has it unless it was installed otherwise.", included)
	c.Note("policy-controller denies an image that no ClusterImagePolicy matches, unless its no-match-policy is warn or allow: convert all of them together, and remove the last policy if it is allow.")
	c.Note("policy-controller evaluates workloads such as Deployments, too. These policies evaluate the pods of every controller.")
	p := ivp.Deny("sigstore-unmatched", images.Others(images.ByIdentity, tests(all)).Reference("The images that no ClusterImagePolicy matches."),
		"no ClusterImagePolicy matches this image")
	p.Match = includedPods()
	c.Say(p)
}

// named is a glob of a policy.
type named struct {
	text, at string
	test     images.Test
	// some: the policy is about some pods alone.
	some bool
}

func tests(globs []named) []images.Test {
	list := make([]images.Test, len(globs))
	for i, g := range globs {
		list[i] = g.test
	}
	return list
}

// checkSome refuses a glob of a policy about some pods alone, unless a policy about all pods has
// it, too: in other pods policy-controller denies its images, which no policy matches.
func (c reader) checkSome(all []named) {
	always := map[string]bool{}
	for _, g := range all {
		always[g.text] = always[g.text] || !g.some
	}
	for _, g := range all {
		if g.some && !always[g.text] && !always["**"] {
			c.Refuse(g.at, fmt.Sprintf("%q is about pods of a selector alone", g.text),
				"name the glob in a policy without a selector, too, or keep this one as it is (this gateway takes it, too)")
		}
	}
}

func includedPods() *ivp.MatchConstraints {
	m := ivp.Pods()
	m.NamespaceSelector = &ivp.Selector{MatchLabels: map[string]string{included: "true"}}
	return m
}

// policy makes a policy for each entry of match, and returns the images that it matches.
func (c reader) policy(s clusterimagepolicy.Spec, name, at string) []named {
	globs := c.images(s, at)
	p := ivp.Policy{Name: name}
	comment := "The images of the policy's globs."
	p.Images = []ivp.ImageReference{images.Selection{Spelling: images.ByIdentity, Takes: images.Some(tests(globs))}.Reference(comment)}
	switch s.Mode {
	case "", "enforce":
	case "warn":
		p.Actions = []string{"Warn"}
	default:
		c.Refuse(at+".mode", fmt.Sprintf("%q", s.Mode), "want enforce or warn")
	}
	if s.Policy != nil {
		c.Refuse(at+".policy", "a policy in CUE or Rego", "write it in CEL into the new policy by hand, or keep this one as it is (this gateway takes it, too)")
	}
	passes := c.authorities(&p, s.Authorities, at+".authorities")
	selectors := c.match(s.Match, at+".match")
	if passes {
		c.Note("%s: an authority passes without proof (static), and any authority is enough: no policy is needed.", at)
		return globs
	}
	for _, selector := range selectors {
		own := p
		own.Match = includedPods()
		own.Match.ObjectSelector = selector
		c.Say(&own)
	}
	return globs
}

// match returns the selector of each entry; nil selects all pods.
func (c reader) match(list []clusterimagepolicy.MatchResource, at string) []*ivp.Selector {
	if len(list) == 0 {
		return []*ivp.Selector{nil}
	}
	var selectors []*ivp.Selector
	for i, m := range list {
		if m.Resource != "pods" || m.Group != "" || m.Version != "v1" && m.Version != "*" {
			c.Refuse(source.Index(at, i), fmt.Sprintf("%s/%s %s", m.Group, m.Version, m.Resource),
				"these policies evaluate pods of every controller: match pods of v1, or keep this one as it is")
			continue
		}
		selectors = append(selectors, selectorOf(m.Selector))
	}
	return selectors
}

func (c reader) images(s clusterimagepolicy.Spec, at string) []named {
	if len(s.Images) == 0 || len(s.Images) > source.MaxRules {
		c.Refuse(at+".images", fmt.Sprintf("%d globs", len(s.Images)), fmt.Sprintf("want 1 to %d", source.MaxRules))
	}
	all := func(m clusterimagepolicy.MatchResource) bool { return selectorOf(m.Selector) == nil }
	some := len(s.Match) > 0 && !slices.ContainsFunc(s.Match, all)
	var globs []named
	for i, one := range s.Images {
		text, place := one.Glob, source.Index(at+".images", i)+".glob"
		switch text {
		case "*":
			text = "docker.io/library/*"
		case "*/*":
			text = "docker.io/*/*"
		}
		if why := reference.Unmatchable(text); why != "" || text == "" || strings.Contains(text, "?") {
			c.Refuse(place, fmt.Sprintf("%q can match no image %s", one.Glob, why), "want letters, digits and - _ : / * . @ alone")
			continue
		}
		host, _, hasPath := strings.Cut(text, "/")
		if hasPath && strings.Contains(host, "*") && !matches(host, "docker.io") && matches(host, "index.docker.io") {
			c.Refuse(place, fmt.Sprintf("%q names Docker Hub by another name", text), "write docker.io")
			continue
		}
		if strings.Contains(text, "@") {
			c.Refuse(place, fmt.Sprintf("%q names a digest", text), "a tag that has this digest would be left out: leave the digest out, or keep this one as it is (this gateway takes it, too)")
			continue
		}
		globs = append(globs, named{text: reference.Normal(text), at: place, test: globPattern(text), some: some})
	}
	return globs
}

// globPattern is a glob, in which * matches no slash and ** does, as a test of a name by
// its identity. A name of Docker Hub has several spellings, of which any may match. A glob
// without a tag, or for every tag, matches digests, too.
func globPattern(text string) images.Pattern {
	text = reference.Normal(text)
	base := strings.TrimRight(text, "*")
	stars := text[len(base):]
	name, isEvery := strings.CutSuffix(base, ":")
	isEvery = isEvery && stars != "" && !strings.HasSuffix(name, "*")
	if isEvery {
		text = name
	}
	host, path, hasPath := strings.Cut(text, "/")
	version := "$"
	switch {
	case !isEvery && !reference.Untagged(text):
	case hasPath || len(stars) > 1:
		version = "[:@]"
	default:
		version = "[:@][^/]*$" // no port of a registry
	}
	if host == "docker.io" && hasPath && !strings.HasPrefix(path, "library/") {
		return images.Pattern(`^docker\.io/(library/)?` + globbed(path) + version)
	}
	names := globbed(text)
	if !strings.HasPrefix(host, "**") && (!hasPath || !strings.ContainsAny(host, ".:") && host != "localhost") {
		names = `(docker\.io/(library/)?)?` + names
	}
	whole := "^" + names + version
	for _, path := range images.PolicyController.HubPaths(text) {
		whole += `|^docker\.io/(library/)?` + globbed(path) + version
	}
	return images.Pattern(whole)
}

func globbed(glob string) string {
	return strings.NewReplacer(`\*\*`, `.*`, `\*`, `[^/]*`).Replace(regexp.QuoteMeta(glob))
}

// matches reports whether a glob for a registry matches one.
func matches(glob, registry string) bool {
	matched, err := regexp.MatchString("^"+globbed(strings.ToLower(glob))+"$", registry)
	return err == nil && matched
}

// authorities converts the authorities, of which one suffices; true if one passes without
// verification.
func (c reader) authorities(p *ivp.Policy, list []clusterimagepolicy.Authority, at string) bool {
	if len(list) == 0 || len(list) > source.MaxRules {
		c.Refuse(at, fmt.Sprintf("%d authorities", len(list)), fmt.Sprintf("want 1 to %d", source.MaxRules))
		return false
	}
	taken, statements := map[string]bool{}, map[string]bool{}
	var signers, demands []string
	passes := false
	for i, a := range list {
		place := source.Index(at, i)
		if a.Static != nil {
			switch {
			case a.Static.Action == "pass":
				passes = true
			case a.Static.Action != "fail":
				c.Refuse(place+".static.action", fmt.Sprintf("%q", a.Static.Action), "want pass or fail")
			}
			continue
		}
		name := a.Name
		if name == "" {
			name = "authority-" + strconv.Itoa(i)
		}
		one := c.authority(a, place)
		one.Name = ivp.AttestorName(name, taken)
		p.Attestors = append(p.Attestors, one)
		if len(a.Attestations) == 0 {
			signers = append(signers, one.Name)
			continue
		}
		var all []string
		for j, s := range a.Attestations {
			all = append(all, c.attestation(p, s, one.Name, statements, source.Index(place+".attestations", j)))
		}
		demand := strings.Join(all, " && ")
		if len(all) > 1 {
			demand = "(" + demand + ")"
		}
		demands = append(demands, demand)
	}
	if len(signers) > 0 {
		demands = append([]string{ivp.Signed(signers, 1)}, demands...)
	}
	expression := ivp.Denied()
	if len(demands) > 0 {
		expression = ivp.Every(strings.Join(demands, "\n    || "))
	} else {
		p.Pin = &ivp.Pinning{}
	}
	p.Validations = []ivp.Validation{{Expression: expression, Message: "no authority of the policy is satisfied"}}
	return passes
}

func (c reader) attestation(p *ivp.Policy, a clusterimagepolicy.Attestation, signer string, taken map[string]bool, at string) string {
	if a.Policy != nil {
		c.Refuse(at+".policy", "a policy in CUE or Rego",
			"write it in CEL into the new policy by hand, over extractPayload(image, attestations.NAME), or keep this one as it is (this gateway takes it, too)")
	}
	kind := attest.PredicateURI(a.PredicateType)
	if !strings.Contains(kind, ":") {
		c.Refuse(at+".predicateType", fmt.Sprintf("%q", a.PredicateType), "want a URI, or one of cosign's short names")
	}
	one := ivp.Attestation{Name: ivp.AttestorName(a.Name, taken), InToto: &ivp.OfType{Type: kind}}
	p.Attestations = append(p.Attestations, one)
	return ivp.Attested(one.Name, []string{signer}, 1)
}

// authority is one signer.
func (c reader) authority(a clusterimagepolicy.Authority, at string) ivp.Attestor {
	if (a.Key != nil) == (a.Keyless != nil) {
		c.Refuse(at, "is not exactly one of key, keyless and static", "name the required signers")
		return ivp.Attestor{}
	}
	if a.RFC3161Timestamp != nil {
		c.Refuse(at+".rfc3161timestamp", "names a TrustRoot", "write the authority's certificates into ctlog.tsaCertChain of the new policy by hand")
	}
	if a.SignatureFormat != "" {
		c.Note("Left out, since a signature counts in either form: signatureFormat.")
	}
	one := &ivp.Cosign{CTLog: &ivp.CTLog{}}
	if a.CTLog != nil {
		if a.CTLog.TrustRootRef != "" {
			c.Refuse(at+".ctlog.trustRootRef", "names a TrustRoot", "write the log's key into ctlog.rekorPubKey of the new policy by hand")
		}
		one.CTLog.URL = a.CTLog.URL
	}
	one.CTLog.IgnoreTlog = a.Key != nil && one.CTLog.URL == ""
	c.location(one, a.Source, at+".source")
	if a.Key != nil {
		one.Key = c.key(*a.Key, at+".key")
		remark := ""
		if one.CTLog.IgnoreTlog {
			remark = "policy-controller requires no log entry of a key without ctlog.url, and neither does this."
		}
		return ivp.Attestor{Cosign: one, Comment: remark}
	}
	k, at := a.Keyless, at+".keyless"
	if k.TrustRootRef != "" {
		c.Refuse(at+".trustRootRef", "names a TrustRoot", "write it as a trusted_root.json into the attestor's trustedRoot by hand")
	}
	if k.CACert != nil {
		c.Refuse(at+".ca-cert", "is given", "write the authority's certificates into keyless.roots of the new policy by hand")
	}
	if k.URL != "" {
		c.Note("Left out, since nothing is asked of it: %s.url.", at)
	}
	one.CTLog.IgnoreSCT = k.InsecureIgnoreSCT
	one.Keyless = &ivp.Keyless{}
	for i, each := range k.Identities {
		c.CheckIdentity(ivp.Identity(each), source.Index(at+".identities", i))
		one.Keyless.Identities = append(one.Keyless.Identities, ivp.Identity(each))
	}
	if len(k.Identities) == 0 {
		c.Refuse(at+".identities", "is empty, so that any signer would be accepted", "name the required signers")
	}
	if *one.CTLog == (ivp.CTLog{}) {
		one.CTLog = nil
	}
	return ivp.Attestor{Cosign: one, Comment: source.Anchored(one.Keyless.Identities...)}
}

func (c reader) location(one *ivp.Cosign, list []clusterimagepolicy.Source, at string) {
	switch {
	case len(list) > 1:
		c.Refuse(at, fmt.Sprintf("%d places", len(list)), "give one, as policy-controller takes no more")
	case len(list) == 1:
		one.Source = &ivp.Location{Repository: list[0].OCI, PullSecrets: pullSecretsOf(list[0].SignaturePullSecrets), TagPrefix: list[0].TagPrefix}
	}
}

func (c reader) key(k clusterimagepolicy.Key, at string) *ivp.Key {
	if !slices.Contains([]string{"", "sha224", "sha256", "sha384", "sha512"}, k.HashAlgorithm) {
		c.Refuse(at+".hashAlgorithm", fmt.Sprintf("%q", k.HashAlgorithm), "want sha224, sha256, sha384 or sha512")
	}
	given := 0
	for _, is := range []bool{k.Data != "", k.KMS != "", k.SecretRef != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		c.Refuse(at, fmt.Sprintf("has %d of data, kms and secretRef", given), "give exactly one")
	case k.SecretRef != nil:
		c.Refuse(at+".secretRef", "names a Secret in policy-controller's own namespace", "write the public key itself into data")
	case k.KMS != "" && !source.IsKMS(k.KMS):
		c.Refuse(at+".kms", fmt.Sprintf("%q", k.KMS), "want awskms://, azurekms://, gcpkms:// or hashivault://")
	case k.KMS != "":
		return &ivp.Key{KMS: k.KMS, Hash: k.HashAlgorithm}
	default:
		blocks := c.PEM(k.Data, source.PublicKey, at+".data")
		if len(blocks) > 1 {
			c.Refuse(at+".data", fmt.Sprintf("%d keys", len(blocks)), "give each an authority of its own")
		}
		return &ivp.Key{Data: strings.Join(blocks, ""), Hash: k.HashAlgorithm}
	}
	return nil
}

func selectorOf(s *clusterimagepolicy.LabelSelector) *ivp.Selector {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return nil
	}
	out := &ivp.Selector{MatchLabels: s.MatchLabels}
	for _, r := range s.MatchExpressions {
		out.MatchExpressions = append(out.MatchExpressions, ivp.LabelRequirement(r))
	}
	return out
}

func pullSecretsOf(list []clusterimagepolicy.PullSecret) []ivp.SecretRef {
	var out []ivp.SecretRef
	for _, one := range list {
		out = append(out, ivp.SecretRef(one))
	}
	return out
}
