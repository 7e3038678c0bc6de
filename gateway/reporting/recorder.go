package reporting

import (
	"context"
	"log/slog"
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// Recorder records each response: all in the log and the metrics, and important ones as events.
type Recorder struct {
	Log       *slog.Logger
	Strangers *webhook.ErrorLog // for errors that untrusted clients can cause
	Metrics   counter
	Events    Events // nil: no events
	Sinks     Sinks
	Creations *Creations // nil: the results of mutation rules for new objects are left to the scan
}

// counter counts responses and decisions.
type counter interface {
	Admitted(endpoint, cause string, allowed bool)
	Decided(outcome gate.Outcome)
	// The same for a shadow.
	Shadowed(endpoint, cause string, allowed bool)
	DecidedInShadow(outcome gate.Outcome)
}

// Events writes events soon and never waits.
type Events interface {
	Record(event record.Event)
}

// Record implements admission.Recorder.
func (r Recorder) Record(ctx context.Context, review admission.Review) {
	r.count(&review)
	r.write(ctx, review)
	r.pass(review)
	if review.Cause != admission.Decided || review.Endpoint == admission.Policies {
		return
	}
	if r.Events == nil || review.DryRun {
		return
	}
	events := ofMirrors(review)
	if !reportedAgain(review) {
		events = append(events, ofPolicies(review)...)
	}
	for _, event := range events {
		r.Events.Record(event)
	}
}

// count counts the response and the decision.
func (r Recorder) count(review *admission.Review) {
	r.answered(string(review.Endpoint), string(review.Cause), review.Allowed, review.Shadow)
	switch {
	case review.Cause != admission.Decided || review.Endpoint == admission.Policies:
	case review.Shadow:
		r.Metrics.DecidedInShadow(review.Outcome)
	default:
		r.Metrics.Decided(review.Outcome)
	}
}

// write writes the log. For an object that the mutating endpoint admits, the validating one logs,
// unless only the first has additional information.
func (r Recorder) write(ctx context.Context, review admission.Review) {
	if reportedAgain(review) && isPlain(&review.Outcome) && !r.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	about := []slog.Attr{
		slog.String("endpoint", string(review.Endpoint)), slog.String("uid", review.UID),
		slog.String("operation", review.Operation), slog.String("user", review.User),
	}
	if review.DryRun {
		about = append(about, slog.Bool("dryRun", true))
	}
	if review.Shadow {
		about = append(about, slog.Bool("shadow", true))
	}
	if review.Mirror {
		about = append(about, slog.Bool("mirrorPod", true))
	}
	if review.Err != nil {
		about = append(about, slog.String("error", review.Err.Error()))
	}
	if review.Cause == admission.Decided && review.Endpoint != admission.Policies {
		report.Log(ctx, r.Log, review.Outcome, about...)
		return
	}
	level, what := slog.LevelDebug, "not decided"
	if !review.Allowed || review.Cause != admission.NotAsked && review.Cause != admission.Decided {
		level = slog.LevelWarn
	}
	if review.Cause == admission.Decided {
		what = "policy document checked"
	}
	about = append(about, slog.String("kind", review.Kind), slog.String("namespace", review.Namespace), slog.String("name", review.Name),
		slog.String("cause", string(review.Cause)), slog.Bool("allowed", review.Allowed))
	r.Log.LogAttrs(ctx, level, what, about...)
}

// reportedAgain reports whether the validating endpoint will report the same about the object, if it
// is admitted.
func reportedAgain(review admission.Review) bool {
	return review.Endpoint == admission.Mutate && review.Cause == admission.Decided && review.Allowed
}

// isPlain reports whether an outcome has no request to registries, warning, change by a rule,
// redirect or exception.
func isPlain(o *gate.Outcome) bool {
	if o.Cost.Requests > 0 || len(o.Warnings) > 0 || o.Mutations > 0 {
		return false
	}
	for i := range o.Verdicts {
		v := &o.Verdicts[i]
		if v.Redirect != nil || v.Override != nil || len(v.Warnings) > 0 {
			return false
		}
		for j := range v.Decisions {
			if v.Decisions[j].Check.Exception != nil {
				return false
			}
		}
	}
	return true
}

// ofPolicies returns events for each image and policy that denies it, and for each policy that
// could not be evaluated.
func ofPolicies(review admission.Review) []record.Event {
	var events []record.Event
	for i := range review.Outcome.Verdicts {
		v := &review.Outcome.Verdicts[i]
		told := map[*policy.Policy]bool{}
		for _, d := range v.Decisions {
			p := d.Check.Policy
			if told[p] || d.Result != policy.Fail && d.Result != policy.Indeterminate {
				continue
			}
			told[p] = true
			of := finding{policy: p, rule: d.Check.Rule, reason: reasonOf(d.Result), code: d.Reasons[0].Code}
			events = append(events, of.events(review, imageNote(review, v, "policy "+p.ID()+"/"+d.Check.Rule, d.Reasons[0]))...)
		}
	}
	told := map[*policy.Policy]bool{}
	for _, rule := range review.Outcome.Rules {
		if rule.Policy == nil || told[rule.Policy] {
			continue
		}
		about := nameOf(review) + ": policy " + rule.Policy.ID() + "/" + rule.Rule
		if !rule.Ruling.Passes() && len(rule.Ruling.Reasons) > 0 {
			told[rule.Policy] = true
			first := rule.Ruling.Reasons[0]
			of := finding{policy: rule.Policy, rule: rule.Rule, reason: reasonOf(rule.Ruling.Result), code: first.Code}
			events = append(events, of.events(review, about+": "+first.Message)...)
		}
		if rule.Err == nil {
			continue
		}
		told[rule.Policy] = true
		of := finding{policy: rule.Policy, rule: rule.Rule, reason: policyError, code: policy.PolicyError}
		events = append(events, of.events(review, about+" could not be evaluated: "+rule.Err.Error())...)
	}
	return events
}

// The reasons of events, which those on an object and on its policy share.
const policyViolation, policyError = "PolicyViolation", "PolicyError"

func reasonOf(result policy.Result) string {
	if result == policy.Indeterminate {
		return policyError
	}
	return policyViolation
}

// finding is the result of a rule in events.
type finding struct {
	policy       *policy.Policy
	rule, reason string
	code         policy.Code
}

// events returns an event on the object, and one on the policy that is related to the object. The
// event on a cluster-wide policy is in another namespace than the object, where an image's name
// and the message are not public, and so it has neither. An object without a name has no event.
func (f finding) events(review admission.Review, note string) []record.Event {
	on := eventOf(review, f.reason, kinds.Reference(f.policy), note)
	object := objectOf(review)
	if object.Name == "" {
		return []record.Event{on}
	}
	if f.policy.Namespace == "" {
		note = nameOf(review) + ": rule " + f.rule + ": " + string(f.code)
	}
	of := eventOf(review, f.reason, core.ObjectReference{}, note)
	of.Regarding, of.Related = kinds.Reference(f.policy), object
	return []record.Event{on, of}
}

// ofMirrors returns an event for each image that a mirror denies, and for each tag that resolves
// to two digests. Only the mutating endpoint resolves tags, so the event is not repeated.
func ofMirrors(review admission.Review) []record.Event {
	var events []record.Event
	add := func(v *gate.Verdict, name string, reason policy.Reason) {
		who := strings.TrimSpace("mirror " + reason.Path)
		events = append(events, eventOf(review, name, mirrorOf(reason.Path), imageNote(review, v, who, reason)))
	}
	for i := range review.Outcome.Verdicts {
		v := &review.Outcome.Verdicts[i]
		for _, reason := range v.Reasons {
			switch {
			case reason.Code == policy.NotMirrored, reason.Code == policy.NoMirror && v.Result == gate.Error:
				add(v, "MirrorError", reason)
			case reason.Code == policy.NoMirror:
				add(v, "MirrorViolation", reason)
			}
		}
		for _, reason := range v.Warnings {
			if reason.Code == policy.MirrorDiffers {
				reason.Message += ": " + reason.Found + ", and " + reason.Expected + " is used"
				add(v, "MirrorDiffers", reason)
			}
		}
	}
	return events
}

// eventOf regards the object, even if it will not exist: the event is then visible in its
// namespace only, because an image's name is not public. Only for an object without a name does
// the event regard the denying policy.
func eventOf(review admission.Review, reason string, speaker core.ObjectReference, note string) record.Event {
	event := record.Event{Type: core.EventTypeWarning, Reason: reason, Action: "Admitted", Regarding: objectOf(review), Note: note}
	switch {
	case review.Shadow:
		event.Note = "shadow, which stops nothing: " + note
	case !review.Allowed:
		event.Action = "Denied"
	}
	if event.Regarding.Name == "" {
		event.Regarding = speaker
	}
	return event
}

func objectOf(review admission.Review) core.ObjectReference {
	apiVersion := review.Version
	if review.Group != "" {
		apiVersion = review.Group + "/" + review.Version
	}
	return core.ObjectReference{APIVersion: apiVersion, Kind: review.Kind, Namespace: review.Namespace, Name: strings.TrimRight(review.Name, "*-.")}
}

// mirrorOf returns the RegistryMirror of an entry, as in RegistryMirror/hub[0]; zero for another
// kind.
func mirrorOf(entry string) core.ObjectReference {
	name, ours := strings.CutPrefix(entry, "RegistryMirror/")
	if !ours {
		return core.ObjectReference{}
	}
	name, _, _ = strings.Cut(name, "[")
	return core.ObjectReference{APIVersion: kinds.OwnGroup + "/v1alpha1", Kind: "RegistryMirror", Name: name}
}

func nameOf(review admission.Review) string {
	return review.Kind + " " + strings.TrimPrefix(review.Namespace+"/"+review.Name, "/")
}

func imageNote(review admission.Review, v *gate.Verdict, who string, reason policy.Reason) string {
	return nameOf(review) + ": container " + v.Image.Container + ", image " + v.Image.Ref.Written() +
		", " + who + ": " + string(reason.Code) + ": " + reason.Message
}
