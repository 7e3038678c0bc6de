package config

import (
	"cmp"
	"time"
)

// Snapshot is the storage of verified claims over a restart of all replicas, for a cluster
// without access to its registry in the meantime (ages.stale). It is sealed under the replicas'
// key.
type Snapshot struct {
	// Save no snapshot.
	Disabled bool `json:"disabled,omitempty"`
	// Folder of the snapshot, as of a volume that outlives the pod. Default: the Secrets
	// quaymaster-snapshot-0 to -7 in the gateway's namespace; running standalone, none is saved
	// without a folder.
	Folder string `json:"folder,omitempty"`
	// Time between two checks for changes, from 1s to 24h. Default 5m.
	Interval Duration `json:"interval,omitempty"`
}

func (s *Snapshot) fill() { s.Interval = cmp.Or(s.Interval, Duration(5*time.Minute)) }

func (s *Snapshot) check(found *complaints) {
	interval := time.Duration(s.Interval)
	found.refuse(interval < time.Second || interval > 24*time.Hour, "snapshot.interval: %s: want from 1s to 24h", interval)
	found.refuse(s.Disabled && s.Folder != "", "snapshot: it is disabled, and folder says where to keep it: drop one of the two")
}
