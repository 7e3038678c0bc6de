package function

import (
	"crypto/ecdsa"
	"crypto/md5"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"

	"sigs.k8s.io/yaml"
)

func base64Decode(a Arguments) (any, error) {
	decoded, err := base64.StdEncoding.DecodeString(a.Text(0))
	if err != nil {
		return nil, err
	}
	return string(decoded), nil
}

func base64Encode(a Arguments) (any, error) {
	return base64.StdEncoding.EncodeToString([]byte(a.Text(0))), nil
}

func parseJSON(a Arguments) (any, error) {
	var value any
	if err := json.Unmarshal([]byte(a.Text(0)), &value); err != nil {
		return nil, err
	}
	return value, nil
}

// parseYAML relies on the YAML library to refuse aliases that grow out of
// proportion, and on checkResult for the rest.
func parseYAML(a Arguments) (any, error) {
	var value any
	if err := yaml.Unmarshal([]byte(a.Text(0)), &value); err != nil {
		return nil, err
	}
	return value, nil
}

func sumSHA256(a Arguments) (any, error) {
	sum := sha256.Sum256([]byte(a.Text(0)))
	return hex.EncodeToString(sum[:]), nil
}

// sumSHA1 and sumMD5 create names, as policies use them; they are not used for security.
func sumSHA1(a Arguments) (any, error) {
	sum := sha1.Sum([]byte(a.Text(0)))
	return hex.EncodeToString(sum[:]), nil
}

func sumMD5(a Arguments) (any, error) {
	sum := md5.Sum([]byte(a.Text(0)))
	return hex.EncodeToString(sum[:]), nil
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

// x509Decode turns a PEM certificate or certificate request into an object
// with the field names of crypto/x509.
func x509Decode(a Arguments) (any, error) {
	block, _ := pem.Decode([]byte(a.Text(0)))
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
		return nil, fmt.Errorf("the PEM block is a %q: want CERTIFICATE or CERTIFICATE REQUEST", Shorten(block.Type))
	}
	text, err := json.Marshal(decoded)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	return object, json.Unmarshal(text, &object)
}
