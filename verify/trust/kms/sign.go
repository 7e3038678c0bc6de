package kms

import (
	"bytes"
	"context"
	"crypto"
	"fmt"

	"github.com/sigstore/sigstore/pkg/signature/kms"
	"github.com/sigstore/sigstore/pkg/signature/options"
)

// Sign signs a message with the private key under the URI, and returns the corresponding public
// key. The digest is SHA-256 if the key allows several.
func (p Providers) Sign(ctx context.Context, uri string, message []byte) ([]byte, crypto.PublicKey, error) {
	if err := p.checkEndpoint(uri); err != nil {
		return nil, nil, err
	}
	type answer struct {
		signed []byte
		key    crypto.PublicKey
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		signed, key, err := sign(ctx, uri, message)
		answers <- answer{signed, key, err}
	}()
	select {
	case a := <-answers:
		return a.signed, a.key, a.err
	case <-ctx.Done(): // not every provider honours it
		return nil, nil, context.Cause(ctx)
	}
}

func sign(ctx context.Context, uri string, message []byte) (signed []byte, public crypto.PublicKey, err error) {
	defer func() { // as in fetch
		if value := recover(); value != nil {
			signed, public, err = nil, nil, fmt.Errorf("the service's answer cannot be read: %v", value)
		}
	}()
	key, err := kms.Get(ctx, uri, crypto.SHA256)
	if err != nil {
		return nil, nil, fmt.Errorf("open the key: %w", &failure{err})
	}
	public, err = key.PublicKey(options.WithContext(ctx))
	if err != nil {
		return nil, nil, fmt.Errorf("fetch the public key: %w", &failure{err})
	}
	signed, err = key.SignMessage(bytes.NewReader(message), options.WithContext(ctx))
	if err != nil {
		return nil, nil, fmt.Errorf("sign: %w", &failure{err})
	}
	return signed, public, nil
}
