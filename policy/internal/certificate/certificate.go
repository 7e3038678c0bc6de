// Package certificate decodes certificates for expressions, in both rule languages.
package certificate

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
)

// Decode returns a certificate or certificate request in PEM as an object with the field names of
// crypto/x509, as Kyverno does, which refuses keys other than RSA.
func Decode(text string) (map[string]any, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the text holds no PEM block")
	}
	var decoded any
	switch block.Type {
	case "CERTIFICATE":
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certificate.PublicKey = readable(certificate.PublicKey)
		decoded = certificate
	case "CERTIFICATE REQUEST":
		request, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return nil, err
		}
		request.PublicKey = readable(request.PublicKey)
		decoded = request
	default:
		return nil, fmt.Errorf("the PEM block is a %.160q: want CERTIFICATE or CERTIFICATE REQUEST", block.Type)
	}
	data, err := json.Marshal(decoded)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	return object, json.Unmarshal(data, &object)
}

// rsaKey and ecKey write big numbers as strings, for JSON has no integers of
// their size.
type rsaKey struct {
	N string
	E int
}

type ecKey struct{ Curve, X, Y string }

func readable(key any) any {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return rsaKey{N: k.N.String(), E: k.E}
	case *ecdsa.PublicKey:
		point, err := k.Bytes() // 4, X, Y
		if err != nil || len(point)%2 == 0 {
			return nil
		}
		half := (len(point) - 1) / 2
		x, y := new(big.Int).SetBytes(point[1:1+half]), new(big.Int).SetBytes(point[1+half:])
		return ecKey{Curve: k.Curve.Params().Name, X: x.String(), Y: y.String()}
	}
	return key
}
