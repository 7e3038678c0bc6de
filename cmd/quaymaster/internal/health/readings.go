package health

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
)

// withMetrics are the replicas whose metrics were read.
func (s *State) withMetrics() []Replica {
	return slices.DeleteFunc(slices.Clone(s.Replicas.Items), func(r Replica) bool { return !r.HasMetrics() })
}

// readMetrics evaluates the metrics of all replicas.
func (s *State) readMetrics() {
	read := s.withMetrics()
	s.Registries.Items = []Registry{}
	if len(read) == 0 {
		why := s.UnreadMetrics()
		s.Certificate.Unread, s.Trust.Unread, s.Registries.Unread = why, why, why
		return
	}
	s.readCertificate(read)
	aged := false
	for _, r := range read {
		if at := r.metrics.time("webhook_configurations_kept_timestamp_seconds"); at.After(s.Webhooks.Confirmed) {
			s.Webhooks.Confirmed = at
		}
		aged = s.Trust.read(r.metrics) || aged
		r.metrics.each("policy_broken", func(labels map[string]string, value float64) {
			if name := labels["policy"]; value > 0 && !slices.Contains(s.Policies.Broken, name) {
				s.Policies.Broken = append(s.Policies.Broken, name)
			}
		})
	}
	if !aged {
		s.Trust.Unread = Unread{Unknown: "no replica has the metric of the age of its trust material", Fix: "see the finding of versions"}
	}
	slices.Sort(s.Policies.Broken)
	s.Registries.Items = registriesOf(read)
}

// UnreadMetrics is why a fact is unknown that only metrics have, and those of no replica were read. The
// replicas have the reasons.
func (s *State) UnreadMetrics() Unread {
	return Unread{Unknown: "the metrics of no replica could be read", Fix: "see the finding of metrics"}
}

// readCertificate finds the certificate that ends first. Replicas without admission serve no webhooks.
func (s *State) readCertificate(read []Replica) {
	c := &s.Certificate
	serving := 0
	for _, r := range read {
		roles := strings.Split(r.metrics.label("ready", "roles"), ",")
		if !slices.Contains(roles, config.RoleAdmission) {
			continue
		}
		serving++
		if end := r.metrics.time("certificate_expiry_timestamp_seconds"); serving == 1 || end.Before(c.Expires) {
			c.Expires, c.Replica = end, r.Name
		}
		if end := r.metrics.time("certificate_authority_expiry_timestamp_seconds"); !end.IsZero() && (c.AuthorityExpires.IsZero() || end.Before(c.AuthorityExpires)) {
			c.AuthorityExpires = end
		}
	}
	if serving == 0 {
		c.Unread = Unread{Unknown: "no replica with the role admission was found", Fix: "see the findings of replicas and metrics"}
	}
}

// read adds the trust of one replica: of each part the worst counts. It returns false if the age is not known.
func (t *Trust) read(m samples) bool {
	age, known := m.value("trust_age_seconds")
	known = known && age >= 0 && age <= maxUnix
	if known {
		t.AgeSeconds = max(t.AgeSeconds, seconds(time.Duration(age*float64(time.Second))))
	}
	failed, _ := m.value("trust_refresh_failed")
	t.RefreshFailed = t.RefreshFailed || failed > 0
	stale, _ := m.value("trust_stale_keys")
	t.StaleKeys = max(t.StaleKeys, int(stale))
	unread, _ := m.value("trust_unread_repositories")
	t.UnreadRepositories = max(t.UnreadRepositories, int(unread))
	m.each("trust_expiry_timestamp_seconds", func(labels map[string]string, value float64) {
		end := unix(value)
		if before, ok := t.Expires[labels["part"]]; end.IsZero() || ok && before.Before(end) {
			return
		}
		if t.Expires == nil {
			t.Expires = map[string]time.Time{}
		}
		t.Expires[labels["part"]] = end
	})
	return known
}

// registriesOf adds the requests of all replicas up.
func registriesOf(read []Replica) []Registry {
	hosts := map[string]Registry{}
	for _, r := range read {
		r.metrics.each("registry_requests_total", func(labels map[string]string, value float64) {
			host := labels["host"]
			one := hosts[host]
			one.Host = host
			one.Requests += int(value)
			if status := labels["status"]; status == "none" || status == "5xx" {
				one.Unanswered += int(value)
			}
			hosts[host] = one
		})
		r.metrics.each("mirror_target_resting", func(labels map[string]string, value float64) {
			if host := labels["registry"]; value > 0 {
				one := hosts[host]
				one.Host, one.Resting = host, true
				hosts[host] = one
			}
		})
	}
	return slices.SortedFunc(maps.Values(hosts), func(a, b Registry) int { return cmp.Compare(a.Host, b.Host) })
}
