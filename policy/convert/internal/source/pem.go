package source

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
)

// Types of PEM blocks.
const (
	PublicKey   = "PUBLIC KEY"
	Certificate = "CERTIFICATE"
)

// PEM checks PEM blocks of one type and returns them, one text each, without surrounding
// text. It refuses text without such blocks, or with others.
func (c *Conversion) PEM(text, kind, at string) []string {
	blocks, why := pemBlocks(text, kind)
	if why != "" {
		c.Refuse(at, why, fmt.Sprintf("give PEM blocks of type %s and nothing else", kind))
		return nil
	}
	return blocks
}

func pemBlocks(text, kind string) ([]string, string) {
	var blocks []string
	wanted := strings.Count(text, "-----BEGIN ")
	for rest := []byte(text); ; {
		block, after := pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != kind {
			return nil, fmt.Sprintf("a PEM block is of type %q", block.Type)
		}
		if why := broken(block); why != "" {
			return nil, why
		}
		blocks, rest = append(blocks, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: block.Bytes}))), after
	}
	switch {
	case wanted == 0:
		return nil, "no PEM block"
	case len(blocks) != wanted:
		return nil, fmt.Sprintf("%d of %d PEM blocks are broken", wanted-len(blocks), wanted)
	}
	return blocks, ""
}

func broken(block *pem.Block) string {
	var err error
	if block.Type == Certificate {
		_, err = x509.ParseCertificate(block.Bytes)
	} else {
		_, err = x509.ParsePKIXPublicKey(block.Bytes)
	}
	if err != nil {
		return fmt.Sprintf("a PEM block of type %s cannot be parsed (%v)", block.Type, err)
	}
	return ""
}

// OptionalPEM checks PEM that may be left out, and returns all its blocks.
func (c *Conversion) OptionalPEM(text, kind, at string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return strings.Join(c.PEM(text, kind, at), "")
}

// EncodedPEM decodes base64 of PEM, as Kubernetes writes bytes.
func (c *Conversion) EncodedPEM(text, kind, at string) []string {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		c.Refuse(at, "no base64", "give PEM, encoded in base64")
		return nil
	}
	return c.PEM(string(data), kind, at)
}

// IsKMS reports whether a key is the URI of one in a key management service that
// an ImageValidatingPolicy's key.kms can name.
func IsKMS(text string) bool {
	return slices.ContainsFunc([]string{"awskms://", "azurekms://", "gcpkms://", "hashivault://"}, func(scheme string) bool {
		return strings.HasPrefix(text, scheme)
	})
}

// SigningKey is a key in PEM or in a key management service.
func (c *Conversion) SigningKey(text, at string) *ivp.Key {
	text = strings.TrimSpace(text)
	if IsKMS(text) {
		return &ivp.Key{KMS: text}
	}
	if strings.Contains(text, "://") {
		c.Refuse(at, fmt.Sprintf("refers to %q", text), "write the public key itself, in PEM, or a URI of awskms, azurekms, gcpkms or hashivault")
		return nil
	}
	blocks := c.PEM(text, PublicKey, at)
	if len(blocks) > 1 {
		c.Refuse(at, fmt.Sprintf("%d keys", len(blocks)), "give each an entry of its own")
	}
	return &ivp.Key{Data: strings.Join(blocks, "")}
}
