package sigstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	ociv1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/decide"
	scripts "github.com/quaymaster/quaymaster/policy/dialect/sigstore/internal/script"
	"github.com/quaymaster/quaymaster/verify"
)

// judge combines the authorities' results for an object's images: one of them suffices,
// and a policy over all of them, where there is one, decides last.
type judge struct {
	rule   *rule
	made   *made
	object object
}

func (r *rule) judge(made *made, s *policy.Subject) (policy.Judge, error) {
	j := &judge{rule: r, made: made}
	if r.overall == nil {
		return j, nil
	}
	var err error
	j.object, err = r.overall.object(s)
	return j, err
}

// Judge judges each image by itself.
func (j *judge) Judge(ctx context.Context, given []policy.Given) policy.Judgement {
	out := policy.Judgement{Decisions: make([]policy.Decision, len(given))}
	for i := range given {
		switch err := ctx.Err(); {
		case err != nil:
			out.Decisions[i] = undecided(policy.LookReason(err, ruleName))
		case given[i].Err != nil:
			out.Decisions[i] = undecided(policy.LookReason(given[i].Err, ruleName))
		default:
			out.Decisions[i] = j.named(&given[i])
		}
		out.Decisions[i].Check = given[i].Check
	}
	return out
}

func undecided(reasons ...policy.Reason) policy.Decision {
	return policy.Decision{Result: policy.Indeterminate, Reasons: reasons}
}

// named judges one image, unless no glob matches it after all.
func (j *judge) named(given *policy.Given) policy.Decision {
	ref := given.Check.Image.Ref
	if j.rule.concerns(ref) {
		return j.image(given)
	}
	pinned, err := ref.Pin(given.Pinned.Descriptor())
	if err == nil {
		ref, err = image.Parse(pinned.String())
	}
	switch {
	case err != nil:
		return undecided(policy.LookReason(fmt.Errorf("whether a glob names its digest: %w", err), ruleName))
	case j.rule.concerns(ref):
		return j.image(given)
	}
	return policy.Decision{Result: policy.Pass, Reasons: []policy.Reason{{
		Code: policy.DigestPinned, Path: ruleName, Message: "no glob matches the digest of the tag, " + ref.Digest().String(),
	}}}
}

// image judges one image.
func (j *judge) image(given *policy.Given) policy.Decision {
	decisions := make([]policy.Decision, len(j.made.members))
	for i := range j.made.members {
		decisions[i] = decide.Check(&j.made.members[i].check, given.Answers)
		if decisions[i].Result == policy.Pass && j.rule.overall == nil {
			return decisions[i]
		}
	}
	passes := func(d policy.Decision) bool { return d.Result == policy.Pass }
	if j.rule.overall != nil && (j.rule.passes || slices.ContainsFunc(decisions, passes)) {
		return j.all(given, decisions)
	}
	return j.none(decisions)
}

// none returns why no authority passes: failures or errors first, as the result requires,
// and of these the nearest miss.
func (j *judge) none(decisions []policy.Decision) policy.Decision {
	out := policy.Decision{Result: policy.Fail}
	for _, d := range decisions {
		if d.Result == policy.Indeterminate {
			out.Result = policy.Indeterminate
		}
	}
	out.Reasons = append(decide.Shortcomings(out.Result, decisions), j.rule.refusals...)
	return out
}

// overallPath is the place of the policy over all authorities.
const overallPath = "policy"

// all evaluates the policy over all authorities. If a part of an authority's claims could
// not be verified, the policy might depend on it, so the result is undecided.
func (j *judge) all(given *policy.Given, decisions []policy.Decision) policy.Decision {
	data := input{Matches: map[string]match{}, object: j.object}
	if j.made.overall.IsDated() {
		data.Verified = &verified{Matches: map[string]times{}}
	}
	for _, s := range j.rule.signers {
		if s.static != nil && s.static.Action == "pass" {
			data.Matches[s.name] = match{Static: true}
		}
	}
	var facts []verify.Fact
	for i, d := range decisions {
		m := &j.made.members[i]
		if d.Result == policy.Indeterminate {
			return undecided(d.Reasons...)
		}
		var reads *scripts.Condition
		if d.Result == policy.Pass {
			reads = j.made.overall
		}
		shown, at, proved, err := m.matched(given.Answers, reads)
		if err != nil {
			return undecided(lookReason(err, m.check.Entry))
		}
		if d.Result == policy.Pass {
			data.Matches[m.signer.name] = shown
			if data.Verified != nil {
				data.Verified.Matches[m.signer.name] = at
			}
			facts = append(facts, proved...)
		}
	}
	if j.rule.overall.config {
		if given.DataErr != nil {
			return undecided(policy.LookReason(given.DataErr, overallPath))
		}
		var fault string
		data.Config, fault = configs(given.Data)
		if fault != "" {
			return policy.Decision{Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Contradiction, Path: overallPath, Message: fault}}}
		}
	}
	return j.ask(&data, facts)
}

// lookReason describes why the claims of an authority are unknown.
func lookReason(err error, path string) policy.Reason {
	if errors.Is(err, errGaps) || errors.Is(err, age.ErrUnknown) {
		return policy.LookReason(err, path)
	}
	return policy.Reason{Code: policy.PolicyError, Path: path, Message: "a policy cannot be evaluated: " + err.Error()}
}

// ask asks the policy over all authorities about the data.
func (j *judge) ask(data *input, facts []verify.Fact) policy.Decision {
	text, err := json.Marshal(data)
	var holds bool
	var why string
	if err == nil {
		holds, why, err = j.made.overall.HoldsText(text)
	}
	switch {
	case err != nil:
		return undecided(policy.Reason{Code: policy.PolicyError, Path: overallPath, Message: "spec.policy cannot be evaluated: " + err.Error()})
	case !holds:
		return policy.Decision{Result: policy.Fail, Reasons: append([]policy.Reason{{
			Code: policy.Denied, Path: overallPath, Message: "spec.policy does not hold: " + why,
			Found: "authorities that pass: " + strings.Join(names(data.Matches), ", "),
		}}, j.rule.refusals...)}
	}
	reason := policy.Reason{Code: policy.Verified, Path: ruleName, Message: "spec.policy holds for " + strings.Join(names(data.Matches), ", ")}
	if len(facts) == 0 {
		reason.Code = policy.DigestPinned
	}
	return policy.Decision{Result: policy.Pass, Reasons: []policy.Reason{reason}, Facts: facts}
}

func names(matches map[string]match) []string {
	list := make([]string, 0, len(matches))
	for name := range matches {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// configs returns an image's configurations by their platforms, read and written as
// container runtimes do: they ignore case and unknown fields. Two for one platform are a
// fault, and so is one that the index lists for another: the runtime may choose a
// configuration that the policy did not see.
func configs(data policy.ImageData) (list map[string]json.RawMessage, fault string) {
	list = make(map[string]json.RawMessage, len(data.Children))
	for _, child := range data.Children {
		config, err := ociv1.ParseConfigFile(bytes.NewReader(child.Config))
		if err != nil {
			return nil, fmt.Sprintf("the configuration of %s cannot be read: %v", child.Descriptor.Digest.String(), err)
		}
		if listed := child.Descriptor.Platform; listed != nil && (listed.OS != config.OS || listed.Architecture != config.Architecture) {
			return nil, fmt.Sprintf("the index lists %s for %s, and its configuration is for %s/%s",
				child.Descriptor.Digest.String(), listed, config.OS, config.Architecture)
		}
		platform := ociv1.Platform{OS: config.OS, Architecture: config.Architecture, Variant: config.Variant, OSVersion: config.OSVersion}.String()
		text, err := json.Marshal(config)
		if err != nil {
			return nil, fmt.Sprintf("the configuration of %s cannot be written: %v", child.Descriptor.Digest.String(), err)
		}
		if other, twice := list[platform]; twice && !bytes.Equal(other, text) {
			return nil, "two images are of the platform " + platform + ", and the runtime may choose either"
		}
		list[platform] = text
	}
	return list, ""
}
