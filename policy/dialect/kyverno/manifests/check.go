package manifests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
	"github.com/quaymaster/quaymaster/policy/signedmanifest"
	"github.com/quaymaster/quaymaster/policy/signedmanifest/difference"
	"github.com/quaymaster/quaymaster/verify"
)

const (
	// longestRead bounds the time for an image that the author of the object names. It takes at most
	// half of the time of the request, so that the author cannot make the whole request end.
	longestRead = 5 * time.Second
	// differs is the code of a signature over another manifest than the object's.
	differs = verify.Code(policy.Violated)
)

// Check verifies the object of a subject. A request that is a dry run changes nothing, and is not
// verified: the gateway's own are among them. The reasons have no path.
func (r *Rule) Check(ctx context.Context, subject *policy.Subject) (policy.Result, []policy.Reason) {
	if members, err := subject.Request.Members(); err == nil && members["dryRun"] == true {
		return policy.Skipped, []policy.Reason{{Code: policy.SkippedByPolicy, Message: "the request is a dry run, which changes nothing"}}
	}
	e, err := r.begin(ctx, subject)
	if err != nil {
		return policy.Fail, []policy.Reason{reword(policy.Reason{Code: policy.Violated, Message: err.Error()})}
	}
	decision := decide.Check(&r.check, e.answer)
	for i, reason := range decision.Reasons {
		decision.Reasons[i] = reword(reason)
	}
	slices.SortStableFunc(decision.Reasons, func(a, b policy.Reason) int { // a verified signature is the nearest miss
		return cmp.Compare(isViolation(b), isViolation(a))
	})
	return decision.Result, decision.Reasons
}

func isViolation(r policy.Reason) int {
	if r.Code == policy.Violated {
		return 1
	}
	return 0
}

// evaluation is the verification of one object.
type evaluation struct {
	ctx     context.Context
	rule    *Rule
	subject *policy.Subject
	object  map[string]any
	// annotations are the object's.
	annotations map[string]string
	carried     signedmanifest.Carried
	terms       difference.Terms
	// blob has the answers about the content that the object carries; nil before the first.
	blob map[*verify.Authority]policy.Answer
	// bundles and manifests are read once, and the object is compared with each manifest once.
	bundles   map[named]*readBundle
	compared  map[string]compared
	manifests map[string]parsed
	made      map[string]made
}

func (r *Rule) begin(ctx context.Context, subject *policy.Subject) (*evaluation, error) {
	object := subject.Object.Map()
	metadata, _ := object["metadata"].(map[string]any)
	annotations := map[string]string{}
	written, _ := metadata["annotations"].(map[string]any)
	for name, value := range written {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("annotation %s is no text", name)
		}
		annotations[name] = text
	}
	text := func(of map[string]any, name string) string { value, _ := of[name].(string); return value }
	group, version, found := strings.Cut(text(object, "apiVersion"), "/")
	if !found {
		group, version = "", group
	}
	fields := ignoredFor(r.ignored, objectReference{
		Group: group, Version: version, Kind: text(object, "kind"), Name: text(metadata, "name"), Namespace: text(metadata, "namespace"),
	})
	return &evaluation{
		ctx: ctx, rule: r, subject: subject, object: object, annotations: annotations, carried: r.domain.Read(annotations),
		terms:   difference.Terms{Ignored: fields, Domain: r.domain, Stored: isStored(subject, text(metadata, "resourceVersion"))},
		bundles: map[named]*readBundle{}, manifests: map[string]parsed{}, compared: map[string]compared{}, made: map[string]made{},
	}, nil
}

// isStored reports whether the API server has stored the object before. Of a request of the API server
// its operation decides: the author of a new object may write resourceVersion 0. A file or an object of a
// scan is stored if it has another version, which no new object may have.
func isStored(subject *policy.Subject, version string) bool {
	return subject.Operation == "UPDATE" || !subject.Request.IsWhole() && version != "" && version != "0"
}

// answer answers the question of one authority: it has signed the manifest of the object.
func (e *evaluation) answer(q policy.Question) policy.Answer {
	if e.rule.options.Signatures == nil {
		return policy.Answer{Gaps: []error{errors.New("no signatures of manifests can be verified here")}}
	}
	reject := func(code verify.Code, err error) policy.Answer {
		return policy.Answer{Rejections: []*verify.Rejection{{Code: code, Authority: q.Authority.Name, Err: err}}}
	}
	terms := e.rule.entryOf(q.Authority.Name)
	bundle, err := e.bundleOf(terms)
	if err != nil {
		return reject(differs, err)
	}
	answer, contents := e.signed(q, bundle)
	if len(answer.Facts) == 0 {
		return answer
	}
	differences, err := e.compare(contents, terms.annotations)
	switch {
	case err != nil:
		return policy.Answer{Gaps: []error{err}}
	case len(differences) > 0:
		return reject(differs, errors.New(strings.Join(differences, "; ")))
	}
	return answer
}

// signed verifies the signatures alone, and returns the signed contents.
func (e *evaluation) signed(q policy.Question, bundle named) (policy.Answer, [][]byte) {
	if !bundle.ref.IsZero() {
		read := e.read(bundle)
		if read.err != nil {
			return policy.Answer{Gaps: []error{read.err}}, nil
		}
		return read.answers[q.Authority], read.contents
	}
	switch {
	case e.carried.ContentErr != nil:
		return policy.Answer{Rejections: []*verify.Rejection{{Code: verify.Malformed, Authority: q.Authority.Name, Err: e.carried.ContentErr}}}, nil
	case len(e.carried.Content) == 0 || len(e.carried.Signatures) == 0:
		return policy.Answer{}, nil // unsigned
	}
	if e.blob == nil {
		e.blob = map[*verify.Authority]policy.Answer{}
		authorities, of := e.authoritiesOf(bundle)
		for i, answer := range e.rule.options.Signatures.Blob(e.ctx, e.carried.Content, e.carried.Signatures, authorities) {
			e.blob[of[i]] = answer
		}
	}
	return e.blob[q.Authority], [][]byte{e.carried.Content}
}

// authoritiesOf returns the authorities that may have signed an image with manifests, or the object itself.
func (e *evaluation) authoritiesOf(bundle named) (authorities []verify.Authority, of []*verify.Authority) {
	for _, q := range e.rule.check.Questions() {
		if other, err := e.bundleOf(e.rule.entryOf(q.Authority.Name)); err == nil && other == bundle {
			authorities, of = append(authorities, *q.Authority), append(of, q.Authority)
		}
	}
	return authorities, of
}

// named is an image with manifests. ByAuthor: an annotation of the object names it.
type named struct {
	ref      image.Ref
	byAuthor bool
}

// bundleOf returns the image with the manifests; none if the object itself carries them. An annotation
// selects a tag or a digest within the repository that the policy names.
func (e *evaluation) bundleOf(terms entry) (named, error) {
	policys := terms.bundle
	if policys.IsZero() {
		policys = e.rule.bundle
	}
	if e.carried.Reference == "" || !policys.Digest().IsZero() {
		return named{ref: policys}, nil
	}
	ref, err := image.Parse(e.carried.Reference)
	if err != nil {
		return named{}, fmt.Errorf("the annotation with the image of the manifests, of which one is supported: %w", err)
	}
	if !policys.IsZero() && ref.Repository() != policys.Repository() {
		return named{}, fmt.Errorf("the annotation names the image %s with the manifests, and the policy the repository %s", ref, policys.Repository())
	}
	return named{ref: ref, byAuthor: true}, nil
}

// readBundle is an image with manifests that was read.
type readBundle struct {
	contents [][]byte
	answers  map[*verify.Authority]policy.Answer
	err      error
}

// read verifies an image for all authorities that it may be signed by.
func (e *evaluation) read(bundle named) *readBundle {
	if read, ok := e.bundles[bundle]; ok {
		return read
	}
	authorities, of := e.authoritiesOf(bundle)
	read := &readBundle{answers: map[*verify.Authority]policy.Answer{}}
	e.bundles[bundle] = read
	ctx := e.ctx
	if bundle.byAuthor {
		limited, cancel := context.WithTimeout(ctx, within(ctx))
		defer cancel()
		ctx = limited
	}
	found, err := e.rule.options.Signatures.Bundle(ctx, bundle.ref, authorities)
	if err != nil {
		read.err = bundle.gap(err)
		return read
	}
	read.contents = found.Contents
	for i, answer := range found.Answers {
		for n, gap := range answer.Gaps {
			answer.Gaps[n] = bundle.gap(gap)
		}
		read.answers[of[i]] = answer
	}
	return read
}

func within(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(longestRead, time.Until(end)/2)
	}
	return longestRead
}

// gap returns the error of a read. Where the author of the object chose the registry, no failure
// setting may admit it: the error is not one of a registry that does not answer.
func (n named) gap(err error) error {
	if !n.byAuthor {
		return err
	}
	return fmt.Errorf("the image %s, which the object names, could not be read: %s", n.ref, err.Error())
}

// hasAll reports whether annotations have the required ones, and names one that is missing.
func hasAll(of, required map[string]string) (string, bool) {
	for name, value := range required {
		if found, ok := of[name]; !ok || found != value {
			return name, false
		}
	}
	return "", true
}

// withName returns a copy of an object under another name and namespace; empty ones are absent.
func withName(object map[string]any, name, namespace string) map[string]any {
	object = maps.Clone(object)
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for field, value := range map[string]string{"name": name, "namespace": namespace} {
		delete(metadata, field)
		if value != "" {
			metadata[field] = value
		}
	}
	object["metadata"] = metadata
	return object
}
