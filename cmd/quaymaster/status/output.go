package status

import (
	"fmt"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/diagnosis"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/health"
	"github.com/quaymaster/quaymaster/report"
)

// stateDocument is the JSON of status.
type stateDocument struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	*health.State
	Results diagnosis.Counts `json:"results"`
	Summary string           `json:"summary"`
}

func statusDocument(s *state) stateDocument {
	return stateDocument{apiVersion, "GatewayStatus", s.value, diagnosis.Count(s.findings), summary(s.findings)}
}

// findingsDocument is the JSON of doctor.
type findingsDocument struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Namespace  string              `json:"namespace"`
	Time       time.Time           `json:"time,omitzero"`
	Results    diagnosis.Counts    `json:"results"`
	Items      []diagnosis.Finding `json:"items"`
}

func doctorDocument(s *state) findingsDocument {
	d := findingsDocument{APIVersion: apiVersion, Kind: "GatewayDiagnosis", Namespace: s.namespace, Results: diagnosis.Count(s.findings), Items: s.findings}
	if s.value != nil {
		d.Time = s.value.Time
	}
	return d
}

// sign is that of a result. It alone is sufficient.
func sign(r diagnosis.Result) string {
	switch r {
	case diagnosis.OK:
		return "✓"
	case diagnosis.Warning:
		return "!"
	case diagnosis.Problem:
		return "✗"
	}
	return "?"
}

// summary counts the findings in a line.
func summary(findings []diagnosis.Finding) string {
	c := diagnosis.Count(findings)
	return fmt.Sprintf("%s, %s, %d unknown, %d ok", command.Count(c.Problems, "problem"), command.Count(c.Warnings, "warning"), c.Unknown, c.OK)
}

// doctorText has a line for each finding, and its fix below.
func doctorText(s *state) string {
	var b strings.Builder
	for _, f := range s.findings {
		message := f.Message
		if f.Subject != "" {
			message = f.Subject + ": " + message
		}
		fmt.Fprintf(&b, "%s %-8s %-12s %s\n", sign(f.Result), f.Result, f.Check, report.Clean(message))
		if f.Fix != "" {
			fmt.Fprintf(&b, "%24sfix: %s\n", "", report.Clean(f.Fix))
		}
	}
	fmt.Fprintf(&b, "\n%s\n", summary(s.findings))
	return b.String()
}

// statusText is the page of status.
func statusText(s *state) string {
	var b strings.Builder
	v := s.value
	fmt.Fprintf(&b, "Gateway in the namespace %s, %s, Kubernetes %s\n\n", report.Clean(v.Namespace), mode(v.Settings), orUnknown(v.Kubernetes))
	for _, line := range []struct{ check, text string }{
		{diagnosis.CheckReplicas, replicas(v.Replicas)}, {diagnosis.CheckVersions, versions(v)}, {diagnosis.CheckLeader, leaders(v.Leaders)},
		{diagnosis.CheckCertificate, certificate(v)}, {diagnosis.CheckWebhooks, webhooks(v)}, {diagnosis.CheckPolicies, policies(v.Policies)},
		{diagnosis.CheckTrust, trust(v.Trust)}, {diagnosis.CheckRegistries, registries(v.Registries)}, {diagnosis.CheckPermissions, permissions(v.Permissions)},
		{diagnosis.CheckClocks, clocks(v.Clocks)},
	} {
		worst := diagnosis.Worst(s.findings, line.check)
		if worst == diagnosis.Unknown && !strings.Contains(line.text, "unknown") {
			line.text += "; a part is unknown"
		}
		fmt.Fprintf(&b, "%s %-8s %-12s %s\n", sign(worst), worst, line.check, report.Clean(line.text))
	}
	if len(v.Replicas.Items) > 0 {
		b.WriteString("\nREPLICA")
		for _, r := range v.Replicas.Items {
			text := r.Name + "  " + r.State
			if r.Version != "" {
				text += "  " + r.Version
			}
			for _, l := range v.Leaders.Items {
				if l.Holder == r.Name {
					text += "  leader by " + l.Lease
				}
			}
			if len(r.Reasons) > 0 {
				text += "  " + strings.Join(r.Reasons, "; ")
			}
			b.WriteString("\n" + report.Clean(text))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\n%s", summary(s.findings))
	if c := diagnosis.Count(s.findings); c.Problems+c.Warnings+c.Unknown > 0 {
		fmt.Fprintf(&b, "; the fix of each: %s doctor", s.program)
	}
	b.WriteString("\n")
	return b.String()
}

func orUnknown(text string) string {
	if text == "" {
		return "version unknown"
	}
	return report.Clean(text)
}

func mode(s health.Settings) string {
	if s.Unknown != "" {
		return "mode unknown"
	}
	return "mode " + s.Mode
}

// unless returns why a part is unknown, or its text.
func unless(u health.Unread, text func() string) string {
	if u.Unknown != "" {
		return "unknown: " + u.Unknown
	}
	return text()
}

func replicas(r health.Replicas) string {
	return unless(r.Unread, func() string {
		if len(r.Deployments) == 0 && len(r.Items) > 0 {
			return fmt.Sprintf("no Deployment; %s by Leases, and their state is unknown", command.Count(len(r.Items), "replica"))
		}
		if len(r.Deployments) == 0 {
			return "there is no gateway in this namespace"
		}
		var parts []string
		for _, d := range r.Deployments {
			parts = append(parts, fmt.Sprintf("%d of %d ready (Deployment %s)", d.Ready, d.Wanted, d.Name))
		}
		return strings.Join(parts, ", ")
	})
}

func versions(v *health.State) string {
	seen := map[string]bool{}
	var list []string
	for _, r := range v.Replicas.Items {
		if r.Version != "" && !seen[r.Version] {
			seen[r.Version] = true
			list = append(list, r.Version)
		}
	}
	if len(list) == 0 {
		return "unknown: the metrics of no replica could be read"
	}
	return strings.Join(list, ", ")
}

func leaders(l health.Leaders) string {
	return unless(l.Unread, func() string {
		var parts []string
		for _, one := range l.Items {
			holder := one.Holder
			if holder == "" {
				holder = "none"
			}
			part := holder + " (Lease " + one.Lease
			if !one.Renewed.IsZero() {
				part += ", renewed " + one.Renewed.Format(time.RFC3339)
			}
			parts = append(parts, part+")")
		}
		return strings.Join(parts, ", ")
	})
}
