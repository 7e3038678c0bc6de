package diagnosis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/election"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/health"
	"github.com/quaymaster/quaymaster/gateway/native/record"
)

const (
	// oldTrust is the age of trust material that is not refreshed, and trustEnds the time before the end
	// of a part of it; as in deploy/monitoring/alerts.yaml.
	oldTrust, trustEnds = 2 * 24 * time.Hour, 30 * 24 * time.Hour
	// unansweredShare is the share of failed requests to a registry from which it is a finding.
	unansweredShare = 0.2
	// skewWarning and skewProblem are differences of clocks in seconds: signatures, tokens and exceptions
	// depend on the time.
	skewWarning, skewProblem = 5, 60
)

func (c *checker) checkPolicies() {
	if c.unread(CheckPolicies, "", c.Policies.Unread) {
		return
	}
	ready, both := 0, 0
	for _, p := range c.Policies.Items {
		if p.EnforcedBy == record.InBoth {
			both++
		}
		if p.Ready == "True" {
			ready++
			continue
		}
		result, fix := c.policyFix(p)
		message := strings.TrimPrefix(p.Reason+": "+p.Message, ": ")
		c.add(CheckPolicies, p.Kind+"/"+p.Name, result, cmp.Or(strings.TrimSuffix(message, ": "),
			"the gateway has written no condition Ready for this generation"), fix)
	}
	for _, name := range c.Policies.Broken {
		if !slices.ContainsFunc(c.Policies.Items, func(p health.Policy) bool { return p.Kind+"/"+p.Name == name }) {
			c.add(CheckPolicies, name, Problem, "a replica reports that it is broken, and denies what it matches",
				"correct it in the folder of the gateway (policies.folders); the log has the reason: "+c.logs())
		}
	}
	if both > 0 {
		c.add(CheckPolicies, "Lease/"+election.Native, Warning,
			fmt.Sprintf("no process with the role native leads: nobody restores or removes the native form of %d of the policies, and the webhook enforces them as well", both),
			"run a process with the role native (native.policies of the chart); off removes the native forms (docs/native-policies.md)")
	}
	if len(c.Policies.Items)+len(c.Policies.Broken) == 0 {
		c.add(CheckPolicies, "", Warning, "there are no policies: every image is admitted", "apply a policy, as in docs/start.md")
	}
	c.good(CheckPolicies, "every policy is ready: %d", ready)
}

// policyFix returns the result and the fix for a policy that is not ready, by the reason of its condition
// (docs/gateway.md).
func (c *checker) policyFix(p health.Policy) (Result, string) {
	describe := "see quaymaster policy list"
	switch p.Reason {
	case "Withheld":
		return Warning, "correct the policy, or accept what it denies (docs/policy-guard.md); policies of a source in policies.audit only audit"
	case "KindNotServed":
		return Warning, "correct the kinds of the policy, or install their definitions"
	case "NamespacesExcluded":
		return Warning, "correct the namespaces of the policy, or change webhooks.excludedNamespaces"
	case "NotRead":
		return Problem, "correct the TrustRoot, or let the gateway reach its repository"
	case "WebhookNotConfigured", "WebhookNotObserved":
		return Unknown, "run the command again in a minute; if it stays, see the findings of leader and webhooks"
	case "ProbeForbidden":
		return Unknown, "grant the gateway create on configmaps in the namespace " + c.Namespace
	case "ControllerNotRunning":
		return Unknown, "run a process with the role background (docs/roles.md)"
	case "WebhookNotManaged":
		return Unknown, "compare the webhook configurations with the policies, or remove webhooks.disabled"
	}
	switch {
	case p.Ready == "False" && p.Kind == "ImageOverride" && strings.HasPrefix(p.Message, "it ended"):
		return Warning, "kubectl delete imageoverride " + p.Name
	case p.Ready == "False":
		return Problem, "correct the field that the message names; " + describe
	}
	return Unknown, "run the command again in a minute; if it stays, see the findings of leader and permissions, and policies.writeStatus in docs/configuration.md"
}

func (c *checker) checkTrust() {
	t := c.Trust
	if c.unread(CheckTrust, "", t.Unread) {
		return
	}
	age := time.Duration(t.AgeSeconds * float64(time.Second))
	refresh := "let the replicas reach the TUF repository (NetworkPolicy, proxy), or set trust.trustedRoot; the log has the error: " + c.logs()
	if t.RefreshFailed {
		result := Warning
		if age > oldTrust {
			result = Problem
		}
		c.add(CheckTrust, "trusted root", result, "its last refresh failed; it is "+short(age)+" old", refresh)
	}
	for _, part := range slices.Sorted(maps.Keys(t.Expires)) {
		switch left := t.Expires[part].Sub(c.Time); {
		case left <= 0:
			c.add(CheckTrust, part, Problem, "this part of the trusted root expired at "+stamp(t.Expires[part]),
				"install a newer trusted root: trust.trustedRoot, or trust.refresh: true")
		case left < trustEnds:
			c.add(CheckTrust, part, Warning, "this part of the trusted root expires "+c.until(t.Expires[part]),
				"install a newer trusted root: trust.trustedRoot, or trust.refresh: true")
		}
	}
	if t.StaleKeys > 0 {
		c.add(CheckTrust, "keys", Warning, command.Count(t.StaleKeys, "key")+" of policies could not be refreshed, and the cached form is used",
			"the log names them: "+c.logs())
	}
	if t.UnreadRepositories > 0 {
		c.add(CheckTrust, "repositories", Warning, fmt.Sprintf("%d TUF repositories of policies could not be read at the last attempt", t.UnreadRepositories),
			"the log names them: "+c.logs())
	}
	c.partly(CheckTrust)
	c.good(CheckTrust, "the trust material is %s old", short(age))
}

func (c *checker) checkRegistries() {
	r := c.Registries
	if c.unread(CheckRegistries, "", r.Unread) {
		return
	}
	for _, one := range r.Items {
		fix := "let the replicas reach it (NetworkPolicy, proxy, registries.hosts), or add a mirror (docs/mirrors.md): " +
			"curl -v https://" + one.Host + "/v2/ from a node shows whether it responds"
		switch {
		case one.Resting:
			c.add(CheckRegistries, one.Host, Problem, "it does not respond, and requests to it are suspended; other mirrors are used", fix)
		case one.Requests > 0 && one.Unanswered == one.Requests:
			c.add(CheckRegistries, one.Host, Problem, fmt.Sprintf("it has answered none of %d requests since the replicas started", one.Requests), fix)
		case float64(one.Unanswered) > unansweredShare*float64(one.Requests):
			c.add(CheckRegistries, one.Host, Warning, fmt.Sprintf("%d of %d requests since the replicas started were not answered, or with a server error",
				one.Unanswered, one.Requests), fix)
		}
	}
	c.partly(CheckRegistries)
	if len(r.Items) == 0 {
		c.good(CheckRegistries, "the replicas have sent no request to a registry yet")
	}
	c.good(CheckRegistries, "every registry answers: %d requested", len(r.Items))
}

func (c *checker) checkPermissions() {
	p := c.Permissions
	if c.unread(CheckPermissions, "", p.Unread) || c.unsettled(CheckPermissions) {
		return
	}
	type key struct {
		account, consequence string
		optional             bool
	}
	var keys []key
	objects := map[key]map[string][]string{}
	for _, m := range p.Missing {
		k := key{m.Account, m.Lost, m.Optional}
		if objects[k] == nil {
			objects[k] = map[string][]string{}
			keys = append(keys, k)
		}
		on := strings.TrimSpace(m.Resource + " " + m.Name)
		if m.Namespace != "" {
			on += " in the namespace " + m.Namespace
		}
		objects[k][on] = append(objects[k][on], m.Verb)
	}
	for _, k := range keys {
		var lacks []string
		for _, on := range slices.Sorted(maps.Keys(objects[k])) {
			lacks = append(lacks, strings.Join(objects[k][on], ", ")+" on "+on)
		}
		result, fix := Problem, "restore the roles of the chart (rbac.create: true, helm upgrade), or grant it these permissions (docs/roles.md)"
		if k.optional {
			result, fix = Warning, "grant it these permissions, as the chart does (docs/roles.md), unless they were left out on purpose"
		}
		c.add(CheckPermissions, k.account, result, "it lacks "+strings.Join(lacks, "; ")+": "+k.consequence, fix)
	}
	c.good(CheckPermissions, "the gateway has all of the %d permissions that it needs", p.Checked)
}

func (c *checker) checkClocks() {
	k := c.Clocks
	if math.Abs(k.AheadSeconds) > skewWarning+k.AccuracySeconds {
		c.add(CheckClocks, "this machine", Warning, "its clock is "+skew(k.AheadSeconds)+" the clock of the API server",
			"synchronize the clock of this machine (NTP)")
	}
	for _, r := range k.Replicas {
		result := Warning
		switch ahead := math.Abs(r.AheadSeconds); {
		case ahead <= skewWarning:
			continue
		case ahead > skewProblem:
			result = Problem
		}
		c.add(CheckClocks, "replica "+r.Name, result,
			"its clock is "+skew(r.AheadSeconds)+" the clock of the API server: certificates, tokens and exceptions are judged by a wrong time",
			"synchronize the clocks of the nodes and of the control plane (NTP)")
	}
	if len(k.Replicas) == 0 {
		c.add(CheckClocks, "", Unknown, "the clocks of the replicas are unknown: no Lease of a replica was read", "see the findings of leader and replicas")
	}
	c.good(CheckClocks, "the clocks of this machine and of %s differ from that of the API server by less than %d s",
		command.Count(len(k.Replicas), "replica"), skewWarning+1)
}

// skew describes a difference, as in "2 s ahead of".
func skew(ahead float64) string {
	relation := "ahead of"
	if ahead < 0 {
		relation = "behind"
	}
	return fmt.Sprintf("%s %s", short(time.Duration(math.Abs(ahead)*float64(time.Second))), relation)
}
