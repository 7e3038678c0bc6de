package manifests

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/policy/signedmanifest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/workload"
)

// maxCandidates is how many manifests of one content may be of the object: more than one only without
// a namespace, or by mistake.
const maxCandidates = 8

// parsed is a content that was parsed.
type parsed struct {
	manifests []workload.Object
	err       error
}

// compared is the result of a comparison with one manifest, which no attestor changes.
type compared struct {
	differences []string
	err         error
}

// made is an object that a dry run made.
type made struct {
	object map[string]any
	err    error
}

// compare returns the differences between the object and the nearest of its manifests, none if it is
// what was signed. The contents must have been verified. An error means that it is not known.
func (e *evaluation) compare(contents [][]byte, annotations map[string]string) ([]string, error) {
	var candidates []workload.Object
	for _, content := range contents {
		read := e.parse(content)
		if read.err != nil {
			return []string{"the signed content cannot be used: " + read.err.Error()}, nil //nolint:nilerr // that is a difference
		}
		for _, manifest := range read.manifests {
			if signedmanifest.IsOf(manifest, e.object, e.terms.Ignored.IgnoresNamespace() || e.isClusterScoped()) {
				candidates = append(candidates, manifest)
			}
		}
	}
	switch {
	case len(candidates) == 0:
		return []string{"the signed content has no manifest of this object, by its apiVersion, kind, namespace and name: " + e.identity()}, nil
	case len(candidates) > maxCandidates:
		return []string{fmt.Sprintf("the signed content has more than %d manifests of this object", maxCandidates)}, nil
	}
	var first []string
	for _, manifest := range candidates {
		differences, err := e.differences(manifest, annotations)
		if err != nil || len(differences) == 0 {
			return nil, err
		}
		if first == nil {
			first = differences
		}
	}
	return first, nil
}

// identity is the object by what a manifest of it must have.
func (e *evaluation) identity() string {
	text := func(of any, name string) string {
		members, _ := of.(map[string]any)
		value, _ := members[name].(string)
		return value
	}
	metadata := e.object["metadata"]
	name := cmp.Or(text(metadata, "name"), text(metadata, "generateName")+"*")
	if namespace := text(metadata, "namespace"); namespace != "" {
		name = namespace + "/" + name
	}
	return text(e.object, "apiVersion") + " " + text(e.object, "kind") + " " + name
}

// isClusterScoped reports whether the object is known to be in no namespace: the API server clears the one
// that its manifest names. It sets that of any other object before it sends a request.
func (e *evaluation) isClusterScoped() bool {
	metadata, _ := e.object["metadata"].(map[string]any)
	if namespace, _ := metadata["namespace"].(string); namespace != "" {
		return false
	}
	s := e.subject
	return s.Request.IsWhole() && s.Home() == "" || constraint.IsClusterScoped(s.Group, s.Kind)
}

func (e *evaluation) parse(content []byte) parsed {
	sum := sha256.Sum256(content)
	key := string(sum[:])
	read, ok := e.manifests[key]
	if !ok {
		read.manifests, read.err = signedmanifest.Manifests(content)
		e.manifests[key] = read
	}
	return read
}

func (e *evaluation) differences(manifest workload.Object, annotations map[string]string) ([]string, error) {
	if name, ok := hasAll(annotationsOf(manifest), annotations); !ok {
		return []string{"the signed manifest lacks the annotation " + name + " that the policy requires, or has another value of it"}, nil
	}
	if name, ok := hasAll(e.annotations, annotations); !ok {
		return []string{"the object lacks the annotation " + name + " that the policy requires, or has another value of it"}, nil
	}
	key := string(manifest.JSON())
	found, known := e.compared[key]
	if !known {
		found.differences, found.err = e.found(manifest)
		e.compared[key] = found
	}
	return found.differences, found.err
}

// found compares the object with a manifest, and with what a dry run makes of it.
func (e *evaluation) found(manifest workload.Object) ([]string, error) {
	differences, err := e.terms.Find(manifest, e.object)
	if err != nil || len(differences) == 0 {
		return nil, err
	}
	resource, known := e.subject.Resource()
	if !e.rule.dryRun.Enable || e.rule.options.DryRuns == nil || !known {
		return differences, nil
	}
	run, err := e.dryRun(resource, manifest)
	if err != nil {
		// Not wrapped: the author of the object causes the dry run, so that no failure setting admits its end.
		return nil, fmt.Errorf("%s; a dry run, which could explain that, was not possible: %s", differences[0], err.Error())
	}
	return e.terms.FindDryRun(manifest, run, e.object)
}

func annotationsOf(manifest workload.Object) map[string]string {
	metadata, _ := manifest.Content()["metadata"].(map[string]any)
	written, _ := metadata["annotations"].(map[string]any)
	out := map[string]string{}
	for name, value := range written {
		if text, ok := value.(string); ok {
			out[name] = text
		}
	}
	return out
}

// dryRun returns what the API server would make of a manifest, with the manifest's own name and
// namespace. A namespaced object is made in the namespace for dry runs, where nothing has its name.
func (e *evaluation) dryRun(resource policy.APIResource, manifest workload.Object) (map[string]any, error) {
	key := string(manifest.JSON())
	if run, ok := e.made[key]; ok {
		return run.object, run.err
	}
	name, namespace := manifest.Name(), e.subject.Home()
	if namespace != "" {
		namespace = e.rule.dryRun.Namespace
	} else if name != "" {
		name += "-dry-run"
	}
	object, err := e.rule.options.DryRuns.DryRunCreate(e.ctx, resource, namespace, withName(manifest.Content(), name, namespace))
	if err == nil {
		object = withName(object, manifest.Name(), manifest.Namespace())
	}
	e.made[key] = made{object: object, err: err}
	return object, err
}

// reword puts a reason for an image into words for a manifest.
func reword(reason policy.Reason) policy.Reason {
	switch reason.Code {
	case policy.Unsigned:
		reason.Message, reason.Hint = "the object carries no signed manifest", hint.SignManifest
	case policy.Violated:
		reason.Message = "the object is not what was signed: " + strings.TrimPrefix(reason.Message, string(policy.Violated)+": ")
		reason.Hint = hint.ApplySigned
	case policy.Verified:
		reason.Message = "the manifest is " + reason.Message
	case policy.TooFewSigners, policy.Code(verify.WrongKey), policy.Code(verify.WrongIdentity), policy.Code(verify.WrongExtension):
		reason.Hint = hint.SignManifest
	}
	return reason
}
