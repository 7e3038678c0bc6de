package status

import (
	"fmt"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/health"
)

func certificate(v *health.State) string {
	c := v.Certificate
	text := unless(c.Unread, func() string {
		if c.Expires.IsZero() {
			return "none in " + c.Replica
		}
		return "expires " + c.Expires.Format(time.RFC3339)
	})
	if !c.AuthorityExpires.IsZero() {
		text += "; its authority expires " + c.AuthorityExpires.Format(time.RFC3339)
	}
	return text
}

func webhooks(v *health.State) string {
	w := v.Webhooks
	return unless(w.Unread, func() string {
		var parts []string
		for _, one := range w.Items {
			parts = append(parts, fmt.Sprintf("%s %s %s (%s)", one.Kind, one.Name, one.State, command.Count(one.Count, "webhook")))
		}
		confirmed := "; confirmed by the leader: unknown"
		if !w.Confirmed.IsZero() {
			confirmed = "; confirmed by the leader " + w.Confirmed.Format(time.RFC3339)
		}
		return strings.Join(parts, ", ") + confirmed
	})
}

func policies(p health.Policies) string {
	return unless(p.Unread, func() string {
		var parts []string
		for _, k := range p.Kinds {
			part := fmt.Sprintf("%s %d ready", k.Kind, k.Ready)
			if k.NotReady > 0 {
				part += fmt.Sprintf(", %d not ready", k.NotReady)
			}
			if k.Unknown > 0 {
				part += fmt.Sprintf(", %d unknown", k.Unknown)
			}
			parts = append(parts, part)
		}
		if len(parts) == 0 {
			return "none"
		}
		return strings.Join(parts, "; ")
	})
}

func trust(t health.Trust) string {
	return unless(t.Unread, func() string {
		text := fmt.Sprintf("%s old", (time.Duration(t.AgeSeconds) * time.Second).String())
		if t.RefreshFailed {
			text += ", the last refresh failed"
		}
		if t.StaleKeys > 0 {
			text += fmt.Sprintf(", %s not refreshed", command.Count(t.StaleKeys, "key"))
		}
		if t.UnreadRepositories > 0 {
			text += fmt.Sprintf(", %d repositories not read", t.UnreadRepositories)
		}
		return text
	})
}

func registries(r health.Registries) string {
	return unless(r.Unread, func() string {
		if len(r.Items) == 0 {
			return "no request was sent to one yet"
		}
		var failing []string
		for _, one := range r.Items {
			switch {
			case one.Resting:
				failing = append(failing, one.Host+" does not respond")
			case one.Unanswered > 0:
				failing = append(failing, fmt.Sprintf("%s: %d of %d requests not answered", one.Host, one.Unanswered, one.Requests))
			}
		}
		text := fmt.Sprintf("%d requested", len(r.Items))
		if len(failing) > 0 {
			text += "; " + strings.Join(failing, "; ")
		}
		return text
	})
}

func permissions(p health.Permissions) string {
	return unless(p.Unread, func() string {
		return fmt.Sprintf("%d of %d granted to %s", p.Checked-len(p.Missing), p.Checked, strings.Join(p.Accounts, ", "))
	})
}

func clocks(c health.Clocks) string {
	worst := 0.0
	for _, r := range c.Replicas {
		if r.AheadSeconds*r.AheadSeconds > worst*worst {
			worst = r.AheadSeconds
		}
	}
	text := fmt.Sprintf("this machine %+.1f s (accurate to %.1f s) to the API server", c.AheadSeconds, c.AccuracySeconds)
	if len(c.Replicas) == 0 {
		return text + "; replicas unknown"
	}
	return text + fmt.Sprintf("; replicas at most %+.1f s", worst)
}
