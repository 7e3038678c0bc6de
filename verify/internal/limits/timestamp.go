package limits

import (
	"encoding/asn1"
	"errors"
	"fmt"

	"github.com/digitorus/pkcs7"
)

const (
	// maxTimestamp is the greatest size of a timestamp response. Responses have some kilobytes:
	// the authority's certificates and a signature.
	maxTimestamp = 64 << 10
	// maxNesting is the greatest depth of elements in a token. Those of a certificate's name, in
	// a token, are about twelve deep.
	maxNesting = 32
)

// Timestamp measures a timestamp response (RFC 3161, 2.4.2) in DER.
func Timestamp(response []byte) error {
	_, err := Token(response)
	return err
}

// Token returns the token of a timestamp response that Timestamp has measured; nil if it cannot
// be parsed.
func Token(response []byte) (*pkcs7.PKCS7, error) {
	if len(response) > maxTimestamp {
		return nil, fmt.Errorf("the timestamp has %d bytes, more than the bound of %d", len(response), maxTimestamp)
	}
	var parts struct {
		Status asn1.RawValue
		Token  asn1.RawValue `asn1:"optional"`
	}
	if _, err := asn1.Unmarshal(response, &parts); err != nil {
		return nil, nil //nolint:nilerr,nilnil // the next parser reports the error
	}
	// pkcs7 parses BER: nested elements, and the bytes after their end again for each level. So
	// 200 bytes would take it years, and deep nesting would exhaust the stack.
	if err := nested(parts.Token.FullBytes, maxNesting); err != nil {
		return nil, fmt.Errorf("the timestamp: %w", err)
	}
	token, err := pkcs7.Parse(parts.Token.FullBytes)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // the next parser reports the error
	}
	return token, Signers(token.Certificates, len(token.Signers))
}

// nested refuses anything but DER elements, each within its parent and nested at most depth deep.
func nested(der []byte, depth int) error {
	if len(der) > 0 && depth == 0 {
		return fmt.Errorf("its elements are more than %d deep", maxNesting)
	}
	for len(der) > 0 {
		var element asn1.RawValue
		rest, err := asn1.Unmarshal(der, &element)
		if err != nil {
			return errors.New("its token is not in DER, as RFC 3161, 3.4, has it")
		}
		if element.IsCompound {
			if err := nested(element.Bytes, depth-1); err != nil {
				return err
			}
		}
		der = rest
	}
	return nil
}
