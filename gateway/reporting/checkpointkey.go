package reporting

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/webhook/certificate"
)

// The entries of the gateway's Secret that sign and check the decision log.
const (
	entryLogKey    = "decision-log.key"
	entryLogPublic = "decision-log.pub"
)

// maxKeyAttempts bounds the attempts of one update of the Secret, which another replica may write
// concurrently.
const maxKeyAttempts = 10

// KeyInFile reads the key, or creates it with its public key next to it.
func KeyInFile(path string) (*decisionlog.Key, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		key, err := decisionlog.ParseKey(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return key, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("decision log: key: %w", err)
	}
	key, err := decisionlog.GenerateKey()
	if err != nil {
		return nil, err
	}
	private, public, err := key.MarshalPEM()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("decision log: key: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("decision log: key: %w", err)
	}
	_, err = file.Write(private)
	err = errors.Join(err, file.Sync(), file.Close(), os.WriteFile(path+".pub", public, 0o644))
	if err != nil {
		return nil, fmt.Errorf("decision log: key: %w", err)
	}
	return key, nil
}

// KeyInStore reads the key of all replicas, or creates it. The store exists by now, since the
// certificate does. It retries until ctx ends; where names the store in the log.
func KeyInStore(ctx context.Context, store certificate.Store, where string, log *slog.Logger) (*decisionlog.Key, error) {
	const again = time.Second
	for {
		key, err := keyInStore(ctx, store)
		if err == nil {
			return key, nil
		}
		log.Error("the decision log's key cannot be had; it is tried again", slog.String("store", where), slog.String("error", err.Error()))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(again):
		}
	}
}

// keyInStore reads once, and writes if there is no key. The first of several replicas sets it.
func keyInStore(ctx context.Context, store certificate.Store) (*decisionlog.Key, error) {
	for range maxKeyAttempts {
		content, err := store.Get(ctx)
		if err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		if text := content.Entries[entryLogKey]; len(text) > 0 {
			return decisionlog.ParseKey(text)
		}
		key, err := decisionlog.GenerateKey()
		if err != nil {
			return nil, err
		}
		private, public, err := key.MarshalPEM()
		if err != nil {
			return nil, err
		}
		err = store.Put(ctx, map[string][]byte{entryLogKey: private, entryLogPublic: public}, content.Version)
		if err == nil {
			return key, nil
		}
		if !errors.Is(err, certificate.ErrConflict) {
			return nil, fmt.Errorf("write: %w", err)
		}
	}
	return nil, fmt.Errorf("others wrote it %d times at once", maxKeyAttempts)
}
