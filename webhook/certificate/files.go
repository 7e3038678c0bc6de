package certificate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// FilesConfig says where a certificate of somebody else is.
type FilesConfig struct {
	// Certificate is the path of the certificate with its chain, Key that of its
	// key, CA that of the authorities by which callers know it; CA may be empty where
	// nobody asks for the bundle.
	Certificate, Key, CA string
	// Names must be in the certificate; may be none.
	Names []string
	// Log is told of changes and of trouble.
	Log *slog.Logger
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Files is a Source that follows files. It is safe for concurrent use.
type Files struct {
	*Source
	config FilesConfig
	mu     sync.Mutex // held by one look at a time
}

// NewFiles makes a Files that has looked at nothing yet.
func NewFiles(config FilesConfig) (*Files, error) {
	if config.Certificate == "" || config.Key == "" || config.Log == nil {
		return nil, errors.New("certificate files: want a certificate, its key and a log")
	}
	config.Names = slices.Clone(config.Names)
	return &Files{Source: newSource(config.Now), config: config}, nil
}

// Run looks at the files at once and then every Interval until ctx ends, more
// often until something was loaded.
func (f *Files) Run(ctx context.Context) { follow(ctx, f.Source, f.config.Log, f.Refresh) }

// Refresh looks at the files once. With an error, what was served before is
// served still.
func (f *Files) Refresh(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	texts, err := f.texts()
	if err != nil {
		return err
	}
	next, err := f.parse(texts)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", f.config.Certificate, err)
	}
	if f.swap(next) {
		tell(ctx, f.config.Log, f.Source)
	}
	return nil
}

// texts reads the files until two readings agree: kubelet swaps a whole folder
// between two reads.
func (f *Files) texts() (texts [3][]byte, err error) {
	for range maxAttempts {
		var again [3][]byte
		for i, path := range []string{f.config.Certificate, f.config.Key, f.config.CA} {
			if path == "" {
				continue
			}
			if again[i], err = readFile(path); err != nil {
				return texts, fmt.Errorf("read a certificate's files: %w", err)
			}
		}
		if texts[0] != nil && slices.EqualFunc(texts[:], again[:], bytes.Equal) {
			return texts, nil
		}
		texts = again
	}
	return texts, errors.New("read a certificate's files: they change while they are read; it is tried again")
}

func (f *Files) parse(texts [3][]byte) (held, error) {
	pair, err := parsePair(texts[0], texts[1])
	if err != nil {
		return held{}, err
	}
	if err := checkLife(pair.Leaf, f.now()); err != nil {
		return held{}, err
	}
	if err := checkNames(pair.Leaf, f.config.Names); err != nil {
		return held{}, fmt.Errorf("callers use a name that it lacks: %w", err)
	}
	if f.config.CA == "" {
		return held{certificate: pair}, nil
	}
	authorities, err := parseAuthorities(texts[2])
	if err != nil {
		return held{}, fmt.Errorf("%s %w", f.config.CA, err)
	}
	if err := checkTrust(pair, authorities, f.now()); err != nil {
		return held{}, fmt.Errorf("callers who know %s would refuse it: %w", f.config.CA, err)
	}
	return held{certificate: pair, bundle: encodeCertificate(authorities...)}, nil
}
