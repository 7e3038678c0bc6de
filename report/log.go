package report

import (
	"context"
	"log/slog"
	"slices"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
)

// Log writes one line for each verdict of an outcome. It adds one for the object as a whole where
// it has no images or has reasons of its own. Admitted images are logged at level Info, and
// denied ones or those with warnings at Warn. Every line has the attributes about. A line holds
// references, digests, policies and reasons; packages registry and keychain keep secrets out of
// reasons.
func Log(ctx context.Context, to *slog.Logger, o gate.Outcome, about ...slog.Attr) {
	if s := o.Subject; s != nil {
		about = append(about, slog.String("kind", s.Kind), slog.String("namespace", s.Namespace), slog.String("name", s.Name))
	}
	attrs := make([]slog.Attr, 0, len(about)+maxAttrs) // for all lines: a record keeps a copy
	for i := range o.Verdicts {
		v := &o.Verdicts[i]
		level := levelOf(v.Result, len(v.Warnings))
		if !to.Enabled(ctx, level) {
			continue
		}
		attrs = append(attrs[:0], about...)
		attrs = append(attrs,
			slog.String("result", string(v.Result)), slog.String("container", v.Image.Container),
			slog.String("image", v.Image.Ref.Written()), slog.String("digest", v.Pinned.Digest().String()))
		if v.Redirect != nil {
			attrs = append(attrs, slog.String("mirror", v.Redirect.Mirror), slog.String("target", v.Redirect.Target.String()))
			if !v.Redirect.Other.IsZero() {
				attrs = append(attrs, slog.String("otherDigest", v.Redirect.Other.String()))
			}
		}
		if v.Override != nil {
			attrs = append(attrs, slog.String("override", v.Override.ID()))
		}
		attrs = appendDecisions(attrs, v)
		attrs = appendReasons(attrs, v.Reasons, v.Warnings)
		attrs = append(attrs, slog.Int64("requests", v.Cost.Requests), slog.Float64("ms", milliseconds(v.Duration)))
		to.LogAttrs(ctx, level, "verdict", attrs...)
	}
	if len(o.Verdicts) == 0 || len(o.Reasons)+len(o.Warnings) > 0 {
		attrs = append(append(attrs[:0], about...), slog.String("result", string(o.Result)), slog.Int("images", len(o.Verdicts)))
		attrs = appendRules(attrs, o.Rules)
		attrs = appendReasons(attrs, o.Reasons, o.Warnings)
		to.LogAttrs(ctx, levelOf(o.Result, len(o.Warnings)), "object", attrs...)
	}
}

func levelOf(answer gate.Result, warnings int) slog.Level {
	if !answer.Admits() || warnings > 0 {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// maxAttrs is the number of attributes of a line besides those of its object.
const maxAttrs = 20

// appendDecisions adds the matching policies and the signers.
func appendDecisions(attrs []slog.Attr, v *gate.Verdict) []slog.Attr {
	var policies, signers, exceptions []string
	for _, d := range v.Decisions {
		policies = append(policies, d.Check.Policy.ID()+"/"+d.Check.Rule+"="+string(d.Result))
		for _, fact := range d.Facts {
			signers = append(signers, fact.Signer.String())
		}
		if d.Check.Exception != nil {
			exceptions = append(exceptions, d.Check.Exception.ID())
		}
	}
	for _, list := range []struct {
		name   string
		values []string
	}{{"policies", policies}, {"signers", signers}, {"exceptions", exceptions}} {
		if len(list.values) > 0 {
			attrs = append(attrs, slog.Any(list.name, list.values))
		}
	}
	return attrs
}

// appendRules counts the rules that matched the object, and names those that failed or mutated
// it.
func appendRules(attrs []slog.Attr, rules []policy.RuleResult) []slog.Attr {
	var (
		spoke      int
		telling    []string
		exceptions []string
	)
	for i := range rules {
		r := &rules[i]
		if r.Kind == policy.ImageRule {
			continue
		}
		if r.Exception != nil {
			exceptions = append(exceptions, r.Exception.ID())
		}
		if r.Skip != "" {
			continue
		}
		spoke++
		switch name := r.Policy.ID() + "/" + r.Rule; {
		case r.Err != nil:
			telling = append(telling, name+"="+string(policy.Indeterminate))
		case !r.Ruling.Passes():
			telling = append(telling, name+"="+string(r.Ruling.Result))
		case r.Changed:
			telling = append(telling, name+"=changed")
		}
	}
	if spoke > 0 {
		attrs = append(attrs, slog.Int("rules", spoke))
	}
	if len(telling) > 0 {
		attrs = append(attrs, slog.Any("policies", telling))
	}
	if len(exceptions) > 0 {
		attrs = append(attrs, slog.Any("exceptions", exceptions))
	}
	return attrs
}

// appendReasons adds the most relevant reason, and the codes of all.
func appendReasons(attrs []slog.Attr, reasons, warnings []policy.Reason) []slog.Attr {
	if len(reasons) > 0 {
		attrs = append(attrs, slog.String("reason", string(reasons[0].Code)), slog.String("message", reasons[0].Message))
		if reasons[0].Expected+reasons[0].Found != "" {
			attrs = append(attrs, slog.String("expected", reasons[0].Expected), slog.String("found", reasons[0].Found))
		}
	}
	if len(reasons) > 1 {
		codes := make([]string, 0, len(reasons))
		for _, reason := range reasons {
			if code := string(reason.Code); !slices.Contains(codes, code) {
				codes = append(codes, code)
			}
		}
		if len(codes) > 1 {
			attrs = append(attrs, slog.Any("codes", codes))
		}
	}
	if len(warnings) > 0 {
		attrs = append(attrs, slog.String("warning", string(warnings[0].Code)), slog.String("warned", warnings[0].Message))
	}
	return attrs
}
