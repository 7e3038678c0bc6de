package gate

import (
	"context"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/workload"
)

// lookForSecrets finds out which pull secrets the pod can be given.
func (p *objectEvaluation) lookForSecrets(ctx context.Context, secrets PullSecrets) {
	if secrets == nil || p.pins().pinning() != PinHere || p.request.Anonymous {
		return // the future pod and its Secrets are unknown, and their existence must not leak
	}
	known := map[string]*policy.Reason{}
	for i := range p.verdicts {
		v := &p.verdicts[i]
		if v.Redirect == nil || v.Redirect.Target.IsZero() {
			continue
		}
		for _, name := range p.mirrors.of(v.Image.Ref).secrets {
			missing, asked := known[name]
			if !asked {
				if !slices.Contains(p.identity.PullSecrets, name) {
					missing = lacksSecret(ctx, secrets, name, p.subject)
				}
				known[name] = missing
			}
			if missing != nil {
				v.Warnings = append(v.Warnings, *missing)
				continue
			}
			v.Redirect.PullSecrets = append(v.Redirect.PullSecrets, name)
		}
	}
}

// lacksSecret returns the reason why a pod cannot be given a Secret, nil if it can.
func lacksSecret(ctx context.Context, secrets PullSecrets, name string, subject *policy.Subject) *policy.Reason {
	reason := policy.Reason{Code: policy.NoPullSecret, Hint: hint.PullSecret}
	if !maySetSecrets(subject) {
		reason.Message = "the mirror wants the pull secret " + name + ", and the pull secrets of a pod that exists cannot be changed"
		return &reason
	}
	there, err := secrets.Has(ctx, subject.Namespace, name)
	switch {
	case err != nil:
		reason.Message = "the mirror wants the pull secret " + name + ", which could not be looked up: " + err.Error()
	case !there:
		reason.Message = "the mirror wants the pull secret " + name + ", which is not in the namespace " + subject.Namespace
	default:
		return nil
	}
	return &reason
}

// maySetSecrets reports whether the object's pull secrets can be set.
func maySetSecrets(subject *policy.Subject) bool {
	return subject.Operation == "CREATE" && subject.Subresource == "" || subject.Kind != "Pod"
}

// addPullSecrets completes the patch of an object with the Secrets of its mirrors.
func (p *objectEvaluation) addPullSecrets(out *Outcome) {
	if len(out.Patch) == 0 || !maySetSecrets(p.subject) {
		return
	}
	var names []string
	for i := range out.Verdicts {
		if r := out.Verdicts[i].Redirect; r != nil && !r.Target.IsZero() {
			names = union(names, r.PullSecrets)
		}
	}
	if len(names) > 0 {
		out.Patch = append(out.Patch, workload.AddPullSecrets(p.request.Object, names)...)
	}
}
