package ratelimit

// Remembered returns how many accounts are remembered.
func (b *Limiter) Remembered() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lines)
}

// Knows reports whether an account is remembered.
func (b *Limiter) Knows(account Account) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.lines[account]
	return ok
}
