package background

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/quaymaster/quaymaster/background/internal/inspect"
	"github.com/quaymaster/quaymaster/background/internal/queue"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
)

// downstream writes the objects that a generate rule requires for the trigger.
type downstream struct {
	*evaluation
	rule *generated
}

// ensured is the state of an object that a rule requires.
type ensured struct {
	at queue.Key
	// there: it exists. Ours: the rule made it, or keeps it as required.
	there, ours bool
}

// ensure creates or updates an object as a rule requires.
func (d downstream) ensure(ctx context.Context, wanted policy.Downstream) (ensured, error) {
	t := inspect.Identity(wanted.Object)
	is := ensured{at: queue.KeyOf(t)}
	kind, err := d.options.Cluster.Kind(ctx, policy.ObjectKind{APIVersion: t.APIVersion, Kind: t.Kind})
	if err != nil {
		return is, err
	}
	switch {
	case kind.Namespaced && t.Namespace == "":
		return is, errors.New("objects of its kind are in namespaces, and the rule names none")
	case !kind.Namespaced && t.Namespace != "":
		return is, errors.New("objects of its kind are in no namespace, and the rule names one")
	}
	if err := addKind(ctx, d.Controller, kind); err != nil {
		return is, err
	}
	have, err := d.options.Cluster.Get(ctx, kind, t.Namespace, t.Name)
	if errors.Is(err, ErrNotFound) {
		if !d.rule.entitled {
			return is, nil
		}
		is.there, is.ours = true, true
		return is, d.create(ctx, kind, wanted)
	}
	if err != nil {
		return is, err
	}
	owner, err := d.options.Records.ReadOrigin(have)
	ours := err == nil
	is.there, is.ours = true, ours && owner.Policy == d.rule.Policy.ID() && owner.Rule == d.rule.Rule
	switch {
	case !wanted.Synchronize:
		return is, nil
	case inspect.IsLeaving(have):
		return is, errors.New("one of that name is being deleted")
	}
	if ours && owner.Synchronize && (owner.Trigger.UID != d.self.UID || owner.Policy != d.rule.Policy.ID() || owner.Rule != d.rule.Rule) {
		another, err := d.belongsToAnother(ctx, owner)
		if err != nil {
			return is, err
		}
		if another {
			return is, d.share(ctx, kind, owner, have, wanted)
		}
	}
	if !ours && !d.rule.entitled {
		is.there = false // it is of another owner, and this trigger requires none
		return is, nil
	}
	is.ours = true
	return is, d.update(ctx, kind, have, wanted)
}

// create creates an object.
func (d downstream) create(ctx context.Context, kind Kind, wanted policy.Downstream) error {
	object, err := d.signed(wanted.Object, d.origin(wanted))
	if err != nil {
		return err
	}
	at := queue.KeyOf(inspect.Identity(object))
	if err := d.limiter.Allow(at); err != nil {
		return err
	}
	var made map[string]any
	if d.rule.Terms.Apply {
		made, err = d.options.Cluster.Update(ctx, kind, object, Writing{Apply: true})
	} else {
		made, err = d.options.Cluster.Create(ctx, kind, object)
	}
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	d.note(at, kind, d.origin(wanted), object, made)
	d.did(d.rule.id(), Created, at)
	return nil
}

// note records that an object is up to date, with the hashes of the required object, including
// labels and record, and of the stored one.
func (e *evaluation) note(at queue.Key, kind Kind, origin record.Origin, wanted, is map[string]any) {
	e.there.put(at, kind, origin)
	e.there.setUpToDate(at, inspect.SumOf(wanted), inspect.SumOf(inspect.Essence(is)))
}

// update updates an existing object if it differs from the rule's.
func (d downstream) update(ctx context.Context, kind Kind, have map[string]any, wanted policy.Downstream) error {
	at, origin := queue.KeyOf(inspect.Identity(have)), d.origin(wanted)
	signed, err := d.signed(wanted.Object, origin)
	if err != nil {
		return err
	}
	object, same, err := d.same(ctx, kind, have, signed, d.rule.Terms.Apply)
	if err != nil {
		return err
	}
	if same {
		d.note(at, kind, origin, signed, have)
		return nil
	}
	if err := d.limiter.Allow(at); err != nil {
		return err
	}
	is, err := d.options.Cluster.Update(ctx, kind, object, Writing{Apply: d.rule.Terms.Apply})
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	d.note(at, kind, origin, signed, is)
	d.did(d.rule.id(), Updated, at)
	return nil
}

// same reports whether an existing object is as required, and returns the object to write if not.
// It uses a dry run, because only the API server can apply defaults for missing fields.
func (d downstream) same(ctx context.Context, kind Kind, have, signed map[string]any, apply bool) (map[string]any, bool, error) {
	object, is := over(have, signed, apply), inspect.SumOf(inspect.Essence(have))
	if d.there.isUpToDate(queue.KeyOf(inspect.Identity(have)), inspect.SumOf(signed), is) {
		return object, true, nil
	}
	would, err := d.options.Cluster.Update(ctx, kind, object, Writing{Apply: apply, DryRun: true})
	if err != nil {
		return nil, false, fmt.Errorf("update: %w", err)
	}
	return object, inspect.SumOf(inspect.Essence(would)) == is, nil
}

// belongsToAnother reports whether an object belongs to another rule, or to another trigger of
// this one, that still exists.
func (d downstream) belongsToAnother(ctx context.Context, owner record.Origin) (bool, error) {
	if owner.Policy != d.rule.Policy.ID() || owner.Rule != d.rule.Rule {
		set := d.current()
		if _, known := termsOf(set, queue.RuleID{Policy: owner.Policy, Rule: owner.Rule}); !known {
			stays, err := d.outlives(ctx, set, kept{origin: owner})
			return stays && !owner.Orphan, err
		}
	}
	if owner.Trigger.UID == d.self.UID {
		return true, nil
	}
	return d.isThere(ctx, owner.Trigger)
}

// isThere reports whether a trigger still exists and is not being deleted; true if unknown.
func (e *evaluation) isThere(ctx context.Context, trigger record.Trigger) (bool, error) {
	kind, err := e.options.Cluster.Kind(ctx, policy.ObjectKind{APIVersion: trigger.APIVersion, Kind: trigger.Kind})
	if err != nil {
		return true, fmt.Errorf("find its trigger: %w", err)
	}
	found, err := e.options.Cluster.Get(ctx, kind, trigger.Namespace, trigger.Name)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return true, fmt.Errorf("read its trigger: %w", err)
	}
	return inspect.Identity(found).UID == trigger.UID && !inspect.IsLeaving(found), nil
}

// removeDeletedTriggers removes the deleted ones of an object's other triggers before there are many:
// pods are created under ever new names.
func (e *evaluation) removeDeletedTriggers(ctx context.Context, at queue.Key) {
	var deleted []record.Trigger
	for _, trigger := range e.there.triggersToCheck(at) {
		if is, err := e.isThere(ctx, trigger); err == nil && !is {
			deleted = append(deleted, trigger)
		}
	}
	if len(deleted) > 0 {
		e.there.removeTriggers(at, deleted)
	}
}

// share leaves an object to its owner if the rule requires an identical one. Otherwise it returns
// an error, since two rules would overwrite each other forever.
func (d downstream) share(ctx context.Context, kind Kind, owner record.Origin, have map[string]any, wanted policy.Downstream) error {
	at := queue.KeyOf(inspect.Identity(have))
	d.there.put(at, kind, owner)
	d.there.addTrigger(at, d.self)
	d.removeDeletedTriggers(ctx, at)
	signed, err := d.signed(wanted.Object, owner)
	if err != nil {
		return err
	}
	_, same, err := d.same(ctx, kind, have, signed, d.rule.Terms.Apply)
	switch {
	case err != nil:
		return err
	case same:
		d.there.setUpToDate(at, inspect.SumOf(signed), inspect.SumOf(inspect.Essence(have)))
		return nil
	}
	return fmt.Errorf("it was generated by %s/%s for %s, and differs from what this rule requires", owner.Policy, owner.Rule, queue.KeyOf(owner.Trigger))
}

// origin returns the rule and the trigger of an object.
func (d downstream) origin(wanted policy.Downstream) record.Origin {
	return record.Origin{
		Policy: d.rule.Policy.ID(), Rule: d.rule.Rule, Trigger: d.self,
		Synchronize: wanted.Synchronize, Orphan: wanted.Orphan || d.rule.Terms.Orphan, Depth: d.depth + 1, Source: sourceOf(wanted),
	}
}

// sourceOf names the object of which an object is a copy; empty for none.
func sourceOf(wanted policy.Downstream) string {
	if wanted.Source.Name == "" {
		return ""
	}
	return wanted.Source.String()
}

// signed returns an object with the labels and the record of its origin.
func (d downstream) signed(object map[string]any, origin record.Origin) (map[string]any, error) {
	code, err := d.options.Records.Origin(object, origin)
	if err != nil {
		return nil, err
	}
	_, id, _ := strings.Cut(origin.Policy, "/")
	namespace, name, namespaced := strings.Cut(id, "/")
	if !namespaced {
		namespace, name = "", id
	}
	labels := map[string]any{
		generatedLabel:                      "true",
		kyvernoPrefix + "policy-name":       inspect.LabelValue(name),
		kyvernoPrefix + "policy-namespace":  inspect.LabelValue(namespace),
		kyvernoPrefix + "rule-name":         inspect.LabelValue(origin.Rule),
		kyvernoPrefix + "trigger-group":     inspect.LabelValue(inspect.Group(origin.Trigger.APIVersion)),
		kyvernoPrefix + "trigger-version":   inspect.LabelValue(inspect.Version(origin.Trigger.APIVersion)),
		kyvernoPrefix + "trigger-kind":      inspect.LabelValue(origin.Trigger.Kind),
		kyvernoPrefix + "trigger-namespace": inspect.LabelValue(origin.Trigger.Namespace),
		kyvernoPrefix + "trigger-uid":       inspect.LabelValue(origin.Trigger.UID),
	}
	metadata := maps.Clone(inspect.Metadata(object))
	if own, _ := metadata["labels"].(map[string]any); own[managedLabel] == nil {
		labels[managedLabel] = "quaymaster"
	}
	metadata["labels"] = merged(metadata["labels"], labels)
	metadata["annotations"] = merged(metadata["annotations"], map[string]any{record.OriginAnnotation: code})
	signed := maps.Clone(object)
	signed["metadata"] = metadata
	return signed, nil
}

// over returns the object to write over an existing one. It retains the status, and labels,
// annotations, finalizers and owners that the rule does not set.
func over(have, wanted map[string]any, apply bool) map[string]any {
	object := maps.Clone(wanted)
	metadata, had := maps.Clone(inspect.Metadata(wanted)), inspect.Metadata(have)
	if !apply {
		for _, name := range []string{"labels", "annotations"} {
			metadata[name] = merged(had[name], metadata[name])
		}
		for _, name := range []string{"finalizers", "ownerReferences"} {
			if metadata[name] == nil && had[name] != nil {
				metadata[name] = had[name]
			}
		}
		if object["status"] == nil && have["status"] != nil {
			object["status"] = have["status"]
		}
		metadata["resourceVersion"] = had["resourceVersion"]
	}
	metadata["uid"] = had["uid"]
	object["metadata"] = metadata
	return object
}

// merged returns the members of both; those of the second take precedence.
func merged(first, second any) map[string]any {
	all := map[string]any{}
	for _, members := range []any{first, second} {
		m, _ := members.(map[string]any)
		maps.Copy(all, m)
	}
	return all
}
