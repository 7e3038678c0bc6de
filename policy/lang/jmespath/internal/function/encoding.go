package function

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/internal/certificate"
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

func x509Decode(a Arguments) (any, error) {
	decoded, err := certificate.Decode(a.Text(0))
	if err != nil {
		return nil, err
	}
	return decoded, nil
}
