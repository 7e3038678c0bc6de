package inventory

import "github.com/quaymaster/quaymaster/report/inventory/internal/queue"

// barePods are the pods without a workload that admission has seen and no scan has found. A scan
// detects their deletion; without scans it is never observed, and each pod has its own name.
// Denied pods have a separate bound: creating them is free, so they must not evict running ones.
type barePods struct {
	running, refused queue.Queue[place]
}

func newBarePods() barePods {
	return barePods{running: queue.New[place](maxBarePods), refused: queue.New[place](maxDeniedBarePods)}
}

// add adds a pod, and returns the pod to evict for it; false for none.
func (b *barePods) add(at place, running bool) (oldest place, full bool) {
	if running {
		b.refused.Drop(at)
		return b.running.Add(at)
	}
	b.running.Drop(at)
	return b.refused.Add(at)
}

// drop removes a pod that a scan has found, or that was deleted.
func (b *barePods) drop(at place) {
	b.running.Drop(at)
	b.refused.Drop(at)
}
