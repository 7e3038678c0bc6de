package fair

// Remembered returns how many flows are remembered.
func (p *Places) Remembered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.flows)
}
