package allowance

// Remembered returns how many accounts are remembered.
func (b *Book) Remembered() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lines)
}
