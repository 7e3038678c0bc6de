package cleanup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/policy/set"
)

// Label is the label of ClusterRoles with the permissions to delete.
const Label = "quaymaster.dev/aggregate-to-cleanup"

// Missing is the message about missing permissions, for the author of a policy.
func Missing(permissions string) string {
	return "objects that it names cannot be deleted: the gateway lacks " + permissions +
		"; grant it by a ClusterRole with the label " + Label + `: "true" (docs/cleanup.md)`
}

// verbs are those that a run needs.
func verbs() []string { return []string{"list", "get", "delete"} }

// maxLacking bounds the kinds that are named to the author of a policy.
const maxLacking = 10

// followPermissions checks the permissions of all rules when policies change, and now and then, so
// that an author learns of missing ones before the first run.
func (c *Controller) followPermissions(ctx context.Context) {
	for ctx.Err() == nil {
		changed, lasts := c.options.Policies.Changed(), permissionInterval
		if active := c.options.Policies.Policies(); active != nil {
			lacking, err := c.lacking(ctx, active)
			switch {
			case err == nil:
				c.options.Observer.Lacking(lacking)
			case ctx.Err() == nil:
				c.failed(ctx, fmt.Errorf("the permissions to delete are unknown: %w", err))
				lasts = longestWait
			}
		}
		timer := time.NewTimer(lasts)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// lacking returns the permissions that rules lack, by the IDs of policies.
func (c *Controller) lacking(ctx context.Context, active *set.Set) (map[string]string, error) {
	found := map[string]string{}
	for i, s := range rulesOf(active) {
		if i == maxPolicies {
			break
		}
		kinds, err := kindsOf(ctx, c.options.Cluster, s.rule)
		if err != nil {
			return nil, err
		}
		var missing []string
		for _, kind := range kinds {
			if s.policy.Namespace != "" && !kind.Namespaced {
				continue
			}
			list, err := c.missing(ctx, kind, s.policy.Namespace)
			if err != nil {
				return nil, err
			}
			if len(list) > 0 {
				missing = append(missing, strings.Join(list, ", ")+" on "+resourceOf(kind))
			}
		}
		if len(missing) > maxLacking {
			missing = append(missing[:maxLacking], fmt.Sprintf("and on %d more", len(missing)-maxLacking))
		}
		if len(missing) > 0 {
			found[s.policy.ID()] = strings.Join(missing, "; ")
		}
	}
	return found, nil
}

// missing returns the verbs that this process may not use.
func (c *Controller) missing(ctx context.Context, kind background.Kind, namespace string) ([]string, error) {
	var list []string
	for _, verb := range verbs() {
		may, err := c.options.Access.May(ctx, verb, kind, namespace)
		if err != nil {
			return nil, err
		}
		if !may {
			list = append(list, verb)
		}
	}
	return list, nil
}

// resourceOf names a resource as RBAC does.
func resourceOf(kind background.Kind) string {
	if kind.Group == "" {
		return kind.Resource
	}
	return kind.Resource + "." + kind.Group
}
