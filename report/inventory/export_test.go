package inventory

// Drain takes in what waits, as Run does.
func (i *Inventory) Drain() {
	for {
		select {
		case next := <-i.waiting:
			i.take(next)
		default:
			return
		}
	}
}

// MaxBarePods is how many pods of no workload are kept that no scan has found.
const MaxBarePods = maxBarePods
