package config

import (
	"time"

	"github.com/quaymaster/quaymaster/scan"
)

// Scan is the periodic evaluation of running workloads, by one replica at a time.
type Scan struct {
	// Do not scan: running workloads are not evaluated, and reports keep deleted objects.
	Disabled bool `json:"disabled,omitempty"`
	// Time from the start of one round to that of the next, at least 1m; a round also starts when
	// policies, mirrors or trusted roots change. Default 1h.
	Interval Duration `json:"interval,omitempty"`
	// Patterns for namespaces that are left out. Default: none; namespaces that the webhooks
	// exclude are scanned.
	ExcludedNamespaces []string `json:"excludedNamespaces,omitempty"`
	// Evaluate objects within seconds of a change, including changes past the webhooks: a watch
	// of the metadata of each scanned kind, and a request for each changed object. It needs watch
	// and get where rounds need list, and keeps some 40 bytes for each changed object, up to a
	// million. Default: where the process has the role scan without admission.
	Follow *bool `json:"follow,omitempty"`
	// Requests per second to the API server, in addition to those of kubernetes.qps: pages of 250
	// objects, changed objects, and Secrets and service accounts of pods. Default 10.
	QPS float32 `json:"qps,omitempty"`
	// Look-ups per second at registries. Default 100.
	RegistryQPS float32 `json:"registryQPS,omitempty"`
	// Concurrent requests to one registry and in total; both or neither. Default 4 and 16.
	PerHost int `json:"perHost,omitempty"`
	Total   int `json:"total,omitempty"`
}

func (s *Scan) fill() {
	if s.Interval == 0 {
		s.Interval = Duration(scan.DefaultInterval)
	}
	if s.QPS == 0 {
		s.QPS = 10
	}
	if s.RegistryQPS == 0 {
		s.RegistryQPS = 100
	}
	if s.PerHost == 0 && s.Total == 0 {
		s.PerHost, s.Total = 4, 16
	}
}

func (s Scan) check(found *complaints) {
	found.refuse(time.Duration(s.Interval) < scan.MinInterval, "scan.interval: want at least %s", scan.MinInterval)
	found.refuse(s.QPS < 0 || s.RegistryQPS < 0, "scan: qps and registryQPS cannot be negative")
	found.refuse(s.PerHost < 1 || s.Total < 1, "scan: set perHost and total both, to at least 1, or neither")
	found.refuse(s.Disabled && s.Follow != nil && *s.Follow, "scan: nothing is followed where disabled is set: remove it, or follow")
	for _, pattern := range s.ExcludedNamespaces {
		found.refuse(pattern == "", "scan.excludedNamespaces: a pattern is empty")
	}
}
