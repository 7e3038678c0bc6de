package verifytest

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
)

// UnusableKeys returns invalid texts for a PEM public key, by description. None of them can
// verify an image signature.
func UnusableKeys() (map[string]string, error) {
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		return nil, err
	}
	x25519, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	ofCurve := asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}
	noPoint := append([]byte{4}, make([]byte, 64)...)
	all := map[string]string{
		"no key":         keyBlock([]byte("not a key")),
		"an empty block": "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n",
		"PKCS #1":        string(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(LongKey(1024))})),
		"text":           "a key",
	}
	for name, key := range map[string]crypto.PublicKey{
		"P-224": p224.Public(), "X25519": x25519.PublicKey(), "RSA 1024": rsaOf(1024), "RSA 2047": rsaOf(2047), "RSA 8193": LongKey(8193),
	} {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			return nil, err
		}
		all[name] = keyBlock(der)
	}
	dsa, err := asn1.Marshal(big.NewInt(5))
	if err != nil {
		return nil, err
	}
	for name, key := range map[string]struct {
		algorithm  asn1.ObjectIdentifier
		parameters any
		content    []byte
	}{
		"secp256k1":    {ofCurve, asn1.ObjectIdentifier{1, 3, 132, 0, 10}, noPoint},
		"not on P-256": {ofCurve, asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 7}, noPoint},
		"DSA":          {asn1.ObjectIdentifier{1, 2, 840, 10040, 4, 1}, []*big.Int{big.NewInt(23), big.NewInt(11), big.NewInt(4)}, dsa},
	} {
		all[name], err = otherKey(key.algorithm, key.parameters, key.content)
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func rsaOf(bits int) *rsa.PublicKey {
	return &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), bits-1, 1), E: 65537}
}

// otherKey encodes a key of an algorithm that crypto/x509 does not support.
func otherKey(algorithm asn1.ObjectIdentifier, parameters any, content []byte) (string, error) {
	raw, err := asn1.Marshal(parameters)
	if err != nil {
		return "", err
	}
	type identifier struct {
		Algorithm  asn1.ObjectIdentifier
		Parameters asn1.RawValue
	}
	der, err := asn1.Marshal(struct {
		Algorithm identifier
		Key       asn1.BitString
	}{identifier{algorithm, asn1.RawValue{FullBytes: raw}}, asn1.BitString{Bytes: content, BitLength: 8 * len(content)}})
	return keyBlock(der), err
}

func keyBlock(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}
