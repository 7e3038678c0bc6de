package inventory

import "github.com/quaymaster/quaymaster/report"

// resolve removes the use of a reference without a digest by a workload that runs a digest of it now, and
// the reference's entry where no workload runs it. Another workload may run it without a policy: a digest that
// was resolved elsewhere is no result for it, nor is that of another container, which is in
// current. The caller holds the lock.
func resolve(i *Inventory, image *report.Image, at place, running bool, current map[*entry]bool) {
	unknown := report.Image{Reference: image.Reference}
	was := i.images[idOf(&unknown)]
	if image.Digest.IsZero() || was == nil || current[was] {
		return
	}
	if running {
		i.remove(was, at)
		was.describe()
	}
	if !was.runs() {
		i.drop(was)
	}
}
