package compare

// Bound makes a Collector keep fewer verdicts of each side.
func (c *Collector) Bound(most int) { c.most = most }
