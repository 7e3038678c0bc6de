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

// FilesConfig configures a certificate that another program writes.
type FilesConfig struct {
	// Certificate is the path of the certificate with its chain, Key that of its private key, and
	// CA that of the authorities that clients verify it with. CA may be empty if the bundle is not
	// used.
	Certificate, Key, CA string
	// Names must be in the certificate. The list may be empty.
	Names []string
	// Log receives changes and errors.
	Log *slog.Logger
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Files is a Source that follows files. It is safe for concurrent use.
type Files struct {
	*Source
	config FilesConfig
	mu     sync.Mutex // serialises Refresh
}

// NewFiles makes a Files that has not read its files yet.
func NewFiles(config FilesConfig) (*Files, error) {
	if config.Certificate == "" || config.Key == "" || config.Log == nil {
		return nil, errors.New("certificate files: a certificate, its key and a log are required")
	}
	config.Names = slices.Clone(config.Names)
	return &Files{Source: newSource(config.Now), config: config}, nil
}

// Run reads the files at once and then every Interval until ctx ends. Until a certificate is loaded
// it reads them more often.
func (f *Files) Run(ctx context.Context) { follow(ctx, f.Source, f.config.Log, f.Refresh) }

// Refresh reads the files once. After an error the previous certificate stays in use.
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

// texts reads the files until two reads agree, because kubelet can replace the whole folder between
// two reads.
func (f *Files) texts() (texts [3][]byte, err error) {
	for range maxAttempts {
		var again [3][]byte
		for i, path := range []string{f.config.Certificate, f.config.Key, f.config.CA} {
			if path == "" {
				continue
			}
			again[i], err = readFile(path)
			if err != nil {
				return texts, fmt.Errorf("read a certificate's files: %w", err)
			}
		}
		if texts[0] != nil && slices.EqualFunc(texts[:], again[:], bytes.Equal) {
			return texts, nil
		}
		texts = again
	}
	return texts, errors.New("read a certificate's files: they changed during the read; retrying")
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
		return held{}, fmt.Errorf("it lacks a required name: %w", err)
	}
	if f.config.CA == "" {
		return held{certificate: pair}, nil
	}
	authorities, err := parseAuthorities(texts[2])
	if err != nil {
		return held{}, fmt.Errorf("%s %w", f.config.CA, err)
	}
	if err := checkTrust(pair, authorities, f.now()); err != nil {
		return held{}, fmt.Errorf("it cannot be verified with %s: %w", f.config.CA, err)
	}
	return held{certificate: pair, bundle: encodeCertificate(authorities...)}, nil
}
