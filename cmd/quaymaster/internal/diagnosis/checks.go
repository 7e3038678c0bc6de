package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/health"
)

const (
	// certificateSoon is when the renewal of a certificate is overdue, and certificateNow when it
	// threatens admission; as in deploy/monitoring/alerts.yaml.
	certificateSoon, certificateNow = 7 * 24 * time.Hour, 24 * time.Hour
	// confirmedAge is how long the leader may take to confirm the webhook configurations: it does so
	// every 30 s.
	confirmedAge = 5 * time.Minute
	// leaseGrace is added to the duration of a Lease, for the whole seconds of the times.
	leaseGrace = 3 * time.Second
)

func (c *checker) checkSettings() {
	if c.unread(CheckSettings, "", c.Settings.Unread) {
		return
	}
	c.good(CheckSettings, "the settings in the ConfigMap %s/quaymaster are valid", c.Namespace)
}

func (c *checker) checkReplicas() {
	r := c.Replicas
	switch {
	case c.unread(CheckReplicas, "", r.Unread):
		return
	case len(r.Deployments) == 0 && len(r.Items) == 0:
		c.add(CheckReplicas, "", Problem,
			"there is no gateway in the namespace "+c.Namespace+": no Deployment with the label "+health.Selector+", and no Lease of a replica",
			"name the gateway's namespace with -n, or install the gateway (docs/helm.md)")
		return
	case len(r.Deployments) == 0:
		c.add(CheckReplicas, "", Unknown,
			fmt.Sprintf("the gateway does not run in a Deployment of the namespace %s: of its %d replicas only the Leases are known", c.Namespace, len(r.Items)),
			"read /readyz at the plain address of each process (listen.plain)")
		return
	}
	for _, d := range r.Deployments {
		c.checkDeployment(d)
	}
	for _, one := range r.Items {
		if one.State != health.NotReady {
			continue
		}
		why, fix := "it is not ready", c.kubectl("logs %s --all-containers", one.Name)
		if len(one.Reasons) > 0 {
			why += ": " + strings.Join(one.Reasons, "; ")
		}
		if !one.HasMetrics() {
			fix = c.kubectl("describe pod %s", one.Name)
		}
		if slices.ContainsFunc(one.Reasons, func(r string) bool { return strings.HasPrefix(r, "CrashLoopBackOff") }) {
			fix = c.kubectl("logs %s --all-containers --previous", one.Name)
		}
		c.add(CheckReplicas, "Pod/"+one.Name, Warning, why, fix)
	}
	c.good(CheckReplicas, "%s", readyText(r.Deployments))
}

// readyText has the numbers of replicas of each Deployment.
func readyText(deployments []health.Deployment) string {
	var parts []string
	for _, d := range deployments {
		parts = append(parts, fmt.Sprintf("%d of %d replicas of the Deployment %s ready", d.Ready, d.Wanted, d.Name))
	}
	return strings.Join(parts, ", ")
}

func (c *checker) checkDeployment(d health.Deployment) {
	subject := "Deployment/" + d.Name
	switch {
	case d.Wanted == 0:
		c.add(CheckReplicas, subject, Problem, "it is scaled to 0 replicas", c.kubectl("scale deployment %s --replicas=3", d.Name))
	case d.Ready == 0:
		c.add(CheckReplicas, subject, Problem, fmt.Sprintf("0 of %d replicas are ready", d.Wanted), c.kubectl("describe deployment %s; %s", d.Name, c.logs()))
	case d.Ready < d.Wanted:
		c.add(CheckReplicas, subject, Warning, fmt.Sprintf("%d of %d replicas are ready", d.Ready, d.Wanted),
			c.kubectl("describe deployment %s; %s", d.Name, c.kubectl("get pods -o wide")))
	}
}

func (c *checker) checkMetrics() {
	read := 0
	forbidden := false
	for _, r := range c.Replicas.Items {
		switch {
		case r.HasMetrics():
			read++
		case strings.HasPrefix(r.Metrics.Unknown, "your user"):
			if !forbidden { // the same for every replica
				c.unread(CheckMetrics, "", r.Metrics)
			}
			forbidden = true
		default:
			c.unread(CheckMetrics, r.Name, r.Metrics)
		}
	}
	if len(c.Replicas.Items) == 0 && !c.unread(CheckMetrics, "", c.Replicas.Unread) {
		c.add(CheckMetrics, "", Unknown, "there is no replica with metrics", "see the finding of replicas")
	}
	c.good(CheckMetrics, "the metrics of %s were read", command.Count(read, "replica"))
}

func (c *checker) checkVersions() {
	versions := map[string][]string{}
	var names []string
	for _, r := range c.Replicas.Items {
		if r.Version == "" {
			continue
		}
		if versions[r.Version] == nil {
			names = append(names, r.Version)
		}
		versions[r.Version] = append(versions[r.Version], r.Name)
	}
	slices.Sort(names)
	switch len(names) {
	case 0:
		c.unread(CheckVersions, "", c.UnreadMetrics())
	case 1:
		c.partly(CheckVersions)
		c.good(CheckVersions, "the replicas run the version %s", names[0])
	default:
		var parts []string
		for _, name := range names {
			parts = append(parts, name+": "+strings.Join(versions[name], ", "))
		}
		c.add(CheckVersions, "", Warning, "the replicas run different versions ("+strings.Join(parts, "; ")+")",
			"wait for the end of the update, as by "+c.kubectl("rollout status deployment -l %s", health.Selector))
	}
}

func (c *checker) checkLeaders() {
	if c.unread(CheckLeader, "", c.Leaders.Unread) {
		return
	}
	for _, l := range c.Leaders.Items {
		subject, fix := "Lease/"+l.Lease, "see the findings of replicas; look for the API server and leases in the log: "+c.logs()
		const stopped = "webhook configurations, the status of policies, scans and reports are not updated"
		switch age := c.Time.Sub(l.Renewed); {
		case l.Renewed.IsZero() && l.Holder == "":
			c.add(CheckLeader, subject, Problem, "no replica has led: the Lease does not exist; "+stopped, fix)
		case l.Holder == "":
			c.add(CheckLeader, subject, Problem, "no replica leads: the Lease has no holder; "+stopped, fix)
		case age > l.Duration+leaseGrace:
			c.add(CheckLeader, subject, Problem, fmt.Sprintf("no replica leads: %s has not renewed the Lease for %s; %s", l.Holder, short(age), stopped), fix)
		}
	}
	var holders []string
	for _, l := range c.Leaders.Items {
		holders = append(holders, fmt.Sprintf("%s holds the Lease %s", l.Holder, l.Lease))
	}
	c.good(CheckLeader, "%s", strings.Join(holders, ", "))
}

func (c *checker) checkCertificate() {
	one := c.Certificate
	fix := "look for certificate in the log: " + c.logs() + "; if cert-manager issues it, at its Certificate"
	if end := one.AuthorityExpires; !end.IsZero() {
		c.checkEnd("authority", "the authority in the webhook configurations", end, fix)
	}
	switch {
	case c.unread(CheckCertificate, "", one.Unread):
	case one.Expires.IsZero():
		c.add(CheckCertificate, "Pod/"+one.Replica, Problem, "it has no serving certificate", fix)
	default:
		c.checkEnd("Pod/"+one.Replica, "its serving certificate", one.Expires, fix)
	}
	if one.Unknown == "" {
		c.partly(CheckCertificate)
	}
	c.good(CheckCertificate, "the serving certificate expires %s", c.until(one.Expires))
}

func (c *checker) checkEnd(subject, what string, end time.Time, fix string) {
	switch left := end.Sub(c.Time); {
	case left <= 0:
		c.add(CheckCertificate, subject, Problem, what+" expired at "+stamp(end)+": the API server cannot call the gateway", fix)
	case left < certificateNow:
		c.add(CheckCertificate, subject, Problem, what+" expires "+c.until(end)+", and its renewal is overdue", fix)
	case left < certificateSoon:
		c.add(CheckCertificate, subject, Warning, what+" expires "+c.until(end)+", and its renewal is overdue", fix)
	}
}

func (c *checker) checkWebhooks() {
	w := c.Webhooks
	if c.unread(CheckWebhooks, "", w.Unread) || c.unsettled(CheckWebhooks) {
		return
	}
	if c.Settings.Value.Webhooks.Disabled {
		c.add(CheckWebhooks, "", Unknown,
			"the gateway does not manage webhook configurations (webhooks.disabled), so whether they are in step with the policies is unknown",
			"compare them with the policies, or remove webhooks.disabled")
		return
	}
	restore := "the leader restores it within 30 s; if it does not, see the findings of leader and permissions, " +
		"and look for webhook configurations in the log: " + c.logs()
	for _, one := range w.Items {
		switch one.State {
		case health.Missing:
			c.add(CheckWebhooks, one.Kind+"/"+one.Name, Problem, "it does not exist: the API server does not call the gateway", restore)
		case health.Changed:
			c.add(CheckWebhooks, one.Kind+"/"+one.Name, Problem, "its webhooks are not those that the gateway wrote: another client changed them", restore+
				"; the audit log of the API server names the client")
		}
	}
	age := c.Time.Sub(w.Confirmed)
	if age > confirmedAge {
		c.checkConfirmed(age)
	}
	c.good(CheckWebhooks, "both webhook configurations are in step with the policies, as confirmed %s ago", short(max(age, 0)))
}

// checkConfirmed adds a finding for a late confirmation, which is unknown if the metrics of a replica are:
// that replica may be the leader.
func (c *checker) checkConfirmed(age time.Duration) {
	const inStep = "that the webhook configurations are in step with the policies"
	fix := "see the finding of leader; look for webhook configurations in the log: " + c.logs()
	switch {
	case !slices.ContainsFunc(c.Replicas.Items, health.Replica.HasMetrics):
		c.unread(CheckWebhooks, "", c.UnreadMetrics())
	case slices.ContainsFunc(c.Replicas.Items, func(r health.Replica) bool { return !r.HasMetrics() }):
		c.partly(CheckWebhooks)
	case c.Webhooks.Confirmed.IsZero():
		c.add(CheckWebhooks, "", Problem, "no replica has confirmed "+inStep, fix)
	default:
		c.add(CheckWebhooks, "", Problem, "the leader last confirmed "+short(age)+" ago "+inStep, fix)
	}
}

// until describes a moment in the future.
func (c *checker) until(end time.Time) string {
	return "at " + stamp(end) + " (in " + short(end.Sub(c.Time)) + ")"
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// short writes a duration in its two largest units.
func short(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%d days", d/day)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}
