package fairqueue

// Remembered returns how many flows are remembered.
func (p *Queue) Remembered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.flows)
}
