// Package diagnosis judges the state of a gateway: each check has findings, and each finding but a good one has
// its fix. A part of the state that is unknown never counts as good.
package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/health"
)

// Result is the result of a check.
type Result string

// The results, from good to bad. Unknown means that a fact could not be read, and is never good.
const (
	OK      Result = "ok"
	Warning Result = "warning"
	Unknown Result = "unknown"
	Problem Result = "problem"
)

// The checks, in the order of the output. The names are a contract.
const (
	CheckSettings    = "settings"
	CheckReplicas    = "replicas"
	CheckMetrics     = "metrics"
	CheckVersions    = "versions"
	CheckLeader      = "leader"
	CheckCertificate = "certificate"
	CheckWebhooks    = "webhooks"
	CheckPolicies    = "policies"
	CheckTrust       = "trust"
	CheckRegistries  = "registries"
	CheckPermissions = "permissions"
	CheckClocks      = "clocks"
)

// Finding is the result of a check, or of one subject of it. All but OK have a fix.
type Finding struct {
	Check string `json:"check"`
	// Subject is an object, a host or a replica; empty for the check as a whole.
	Subject string `json:"subject,omitempty"`
	Result  Result `json:"result"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// Counts are the numbers of findings by result.
type Counts struct {
	OK       int `json:"ok"`
	Warnings int `json:"warnings"`
	Unknown  int `json:"unknown"`
	Problems int `json:"problems"`
}

// Count counts findings.
func Count(findings []Finding) Counts {
	var c Counts
	for _, f := range findings {
		switch f.Result {
		case OK:
			c.OK++
		case Warning:
			c.Warnings++
		case Problem:
			c.Problems++
		default:
			c.Unknown++
		}
	}
	return c
}

// Worst is the worst result of a check.
func Worst(findings []Finding, check string) Result {
	order := []Result{OK, Warning, Unknown, Problem}
	worst := OK
	found := false
	for _, f := range findings {
		if f.Check == check {
			found = true
			if slices.Index(order, f.Result) > slices.Index(order, worst) {
				worst = f.Result
			}
		}
	}
	if !found {
		return Unknown
	}
	return worst
}

// checker collects the findings about a state.
type checker struct {
	*health.State
	findings []Finding
}

// Of judges a state: each check has at least one finding.
func Of(s *health.State) []Finding {
	c := &checker{State: s}
	for _, check := range []func(){
		c.checkSettings, c.checkReplicas, c.checkMetrics, c.checkVersions, c.checkLeaders, c.checkCertificate, c.checkWebhooks,
		c.checkPolicies, c.checkTrust, c.checkRegistries, c.checkPermissions, c.checkClocks,
	} {
		check()
	}
	return c.findings
}

func (c *checker) add(check, subject string, result Result, message, fix string) {
	c.findings = append(c.findings, Finding{Check: check, Subject: subject, Result: result, Message: message, Fix: fix})
}

// good adds a finding without a fix, unless the check has a worse one.
func (c *checker) good(check, format string, args ...any) {
	if !slices.ContainsFunc(c.findings, func(f Finding) bool { return f.Check == check }) {
		c.add(check, "", OK, fmt.Sprintf(format, args...), "")
	}
}

// unread adds a finding about an unknown part; false if the part was read.
func (c *checker) unread(check, subject string, u health.Unread) bool {
	if u.Unknown == "" {
		return false
	}
	c.add(check, subject, Unknown, u.Unknown, u.Fix)
	return true
}

// unsettled adds an unknown finding where the settings were not read: the defaults may be others.
func (c *checker) unsettled(check string) bool {
	if c.Settings.Unknown == "" {
		return false
	}
	c.add(check, "", Unknown, "it was not checked, because the settings of the gateway could not be read", "see the finding of settings")
	return true
}

// partly adds an unknown finding where the metrics of some replicas were not read: a check of the others
// alone is not good.
func (c *checker) partly(check string) {
	var missing []string
	for _, r := range c.Replicas.Items {
		if !r.HasMetrics() {
			missing = append(missing, r.Name)
		}
	}
	if len(missing) > 0 {
		c.add(check, "", Unknown, "it was not checked for "+strings.Join(missing, ", ")+", because the metrics could not be read", "see the finding of metrics")
	}
}

// kubectl is the beginning of a command about the gateway's namespace.
func (c *checker) kubectl(format string, args ...any) string {
	return "kubectl -n " + c.Namespace + " " + fmt.Sprintf(format, args...)
}

// logs is a command that shows the log of all replicas.
func (c *checker) logs() string {
	return c.kubectl("logs -l %s --prefix --tail=200", health.Selector)
}
