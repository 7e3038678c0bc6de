package trust

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/quaymaster/quaymaster/internal/file"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// lastName is the file of the root that a repository gave last, beside its metadata. The
// metadata expires, and is not believed from then on; what it vouched for when it was good
// is still newer than what a program was built with, also to a clock that is behind.
const lastName = "last_trusted_root.json"

// last is what the file holds.
type last struct {
	// URL of the repository.
	URL string `json:"url"`
	// Confirmed is when the repository said so.
	Confirmed   time.Time       `json:"confirmed"`
	TrustedRoot json.RawMessage `json:"trustedRoot"`
}

func (t *TUF) origin() string { return "TUF repository " + t.URL }

// keep writes down what a repository gave. The root is in use already; what cannot be
// written is told as a refresh that failed.
func (s *Store) keep(from source) error {
	if s.tuf.CachePath == "" {
		return nil
	}
	text, err := json.Marshal(last{URL: s.tuf.URL, Confirmed: s.Status().Loaded.UTC(), TrustedRoot: from.canonical})
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

// remember makes the root current that was kept, so that a start without a repository does
// not bring back what the repository has taken away since the program was built. What
// cannot be read is as if there were none.
func (s *Store) remember() {
	if s.tuf == nil || s.tuf.CachePath == "" {
		return
	}
	kept, err := readLast(filepath.Join(s.tuf.CachePath, lastName))
	if err != nil || kept.URL != s.tuf.URL {
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
