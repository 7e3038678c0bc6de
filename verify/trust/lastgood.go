package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sigstore/sigstore-go/pkg/tuf"

	"github.com/quaymaster/quaymaster/internal/file"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// lastName is the file with the last root of a repository, next to its metadata. The metadata
// expires and is then not trusted. A root that was verified before is still newer than the
// embedded one, also with a clock that is behind.
const lastName = "last_trusted_root.json"

// last is the content of the file.
type last struct {
	// URL of the repository.
	URL string `json:"url"`
	// First identifies the first root.json of the repository, and Target is the name of the trusted root.
	First  string `json:"first,omitempty"`
	Target string `json:"target,omitempty"`
	// Confirmed is the time at which the repository confirmed the root.
	Confirmed   time.Time       `json:"confirmed"`
	TrustedRoot json.RawMessage `json:"trustedRoot"`
}

func (t *TUF) origin() string { return "TUF repository " + t.URL }

// first is the SHA-256 of the first root.json in hexadecimal: a new one at the same address means that the
// keys of the earlier one are no longer trusted. It is empty for the one of the public-good repository,
// which releases replace by a later one of the same chain.
func (t *TUF) first() string {
	if bytes.Equal(t.Root, tuf.DefaultRoot()) {
		return ""
	}
	sum := sha256.Sum256(t.Root)
	return hex.EncodeToString(sum[:])
}

// keep writes the root of a repository to disk. The root is in use already; a write error is
// reported as a failed refresh.
func (s *Store) keep(from source) error {
	if s.tuf.CachePath == "" {
		return nil
	}
	text, err := json.Marshal(last{
		URL: s.tuf.URL, First: s.tuf.first(), Target: s.tuf.Target, Confirmed: s.Status().Loaded.UTC(), TrustedRoot: from.canonical,
	})
	if err == nil {
		err = file.Replace(filepath.Join(s.tuf.CachePath, lastName), text)
	}
	if err != nil {
		err = fmt.Errorf("the trusted root is up to date, and cannot be kept for the next start: %w", err)
		s.mu.Lock()
		s.status.Err = err
		s.mu.Unlock()
	}
	return err
}

// remember loads the stored root, so that a start without a connection does not restore keys that
// the repository has removed since the build. A file that is unreadable, or of another address, first root or
// target, is ignored.
func (s *Store) remember() {
	if s.tuf == nil || s.tuf.CachePath == "" {
		return
	}
	kept, err := readLast(filepath.Join(s.tuf.CachePath, lastName))
	if err != nil || kept.URL != s.tuf.URL || kept.First != s.tuf.first() || kept.Target != s.tuf.Target {
		return
	}
	from, err := jsonSource(s.tuf.origin()+", as it was last read", kept.TrustedRoot)
	if err != nil {
		return
	}
	if _, err := from.parse(); err != nil {
		return
	}
	s.swap(from)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Loaded = kept.Confirmed
	if now := s.now(); now.Before(kept.Confirmed) {
		s.status.Loaded = now
	}
}

func readLast(path string) (last, error) {
	opened, err := os.Open(path)
	if err != nil {
		return last{}, err
	}
	defer func() { _ = opened.Close() }()
	text, err := limit.ReadAll(opened, 2*MaxRoot, "the trusted root that was read last")
	if err != nil {
		return last{}, err
	}
	var kept last
	return kept, json.Unmarshal(text, &kept)
}
