package gateway

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cache/redis"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// newSharedMemory makes the shared cache of replicas, which must be closed. key is the replicas'
// own.
func newSharedMemory(c config.SharedMemory, key []byte, to *metrics.Metrics) (*redis.Store, error) {
	// Not the replicas' key itself, because derived values are visible elsewhere.
	own, err := hkdf.Key(sha256.New, key, nil, "quaymaster shared memory", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("sharedMemory: %w", err)
	}
	settings := redis.Config{
		Address: c.Address, Username: c.Username,
		Keys: func() ([]byte, [][]byte) { return own, nil },
	}
	if c.PasswordFile != "" {
		settings.Password = func() (string, error) {
			text, err := os.ReadFile(c.PasswordFile)
			return strings.TrimRight(string(text), "\r\n"), err
		}
	}
	if c.TLS {
		settings.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		if c.CAFile != "" {
			settings.TLS.RootCAs, err = config.ReadPool(c.CAFile, false)
			if err != nil {
				return nil, fmt.Errorf("sharedMemory.caFile: %w", err)
			}
		}
	}
	options := []redis.Option{redis.WithObserver(sharedMetrics{to})}
	if c.Prefix != "" {
		options = append(options, redis.WithPrefix(c.Prefix))
	}
	if c.Timeout != 0 {
		options = append(options, redis.WithTimeout(time.Duration(c.Timeout)))
	}
	return redis.New(settings, options...)
}

// sharedMetrics counts the events of entries; it implements redis.Observer.
type sharedMetrics struct{ to *metrics.Metrics }

// Requested implements redis.Observer, as do the methods below.
func (s sharedMetrics) Requested(asked, known int) {
	s.to.SharedMemory("hit", known)
	s.to.SharedMemory("miss", asked-known)
}
func (s sharedMetrics) Rejected(redis.Reason) { s.to.SharedMemory("rejected", 1) }
func (s sharedMetrics) Kept(n int)            { s.to.SharedMemory("kept", n) }
func (s sharedMetrics) Dropped(n int)         { s.to.SharedMemory("dropped", n) }
func (s sharedMetrics) Failed(redis.Op)       { s.to.SharedMemory("failed", 1) }
