package kms_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// awsService is AWS KMS: its JSON protocol (version 1.1, targets
// TrentService.*), with requests signed by Signature Version 4.
type awsService struct {
	*safe
	host string
}

func serveAWS(t testing.TB, host string, s *safe) {
	t.Helper()
	earth.serve(t, host, &awsService{safe: s, host: host})
}

func (s *awsService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		awsFail(w, "ValidationException", err.Error())
		return
	}
	if !signedV4(r, body) {
		awsFail(w, "IncompleteSignatureException", "the request is not signed with the key that we share")
		return
	}
	var asked struct {
		KeyID            string `json:"KeyId"`
		Message          []byte
		SigningAlgorithm string
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		awsFail(w, "SerializationException", err.Error())
		return
	}
	versions, allowed := s.versions(strings.TrimPrefix(asked.KeyID, "alias/"))
	if !allowed {
		awsFail(w, "AccessDeniedException", "User is not authorized to perform this operation on this resource")
		return
	}
	key, ok := pick(versions, "") // an alias leads to one key
	if !ok {
		awsFail(w, "NotFoundException", "Alias "+asked.KeyID+" is not found.")
		return
	}
	switch r.Header.Get("X-Amz-Target") {
	case "TrentService.GetPublicKey":
		awsAnswer(w, map[string]any{
			"KeyId": awsARN(len(versions)), "KeyUsage": "SIGN_VERIFY", "KeySpec": awsSpec(key),
			"SigningAlgorithms": awsAlgorithms(key), "PublicKey": publicDER(key),
		})
	case "TrentService.DescribeKey":
		awsAnswer(w, map[string]any{"KeyMetadata": map[string]any{
			"KeyId": awsARN(len(versions)), "Enabled": true, "KeyState": "Enabled", "KeyUsage": "SIGN_VERIFY",
			"KeySpec": awsSpec(key), "SigningAlgorithms": awsAlgorithms(key),
		}})
	case "TrentService.Sign":
		signature, err := signDigest(key, asked.Message)
		if err != nil {
			awsFail(w, "KMSInternalException", err.Error())
			return
		}
		awsAnswer(w, map[string]any{"KeyId": awsARN(len(versions)), "SigningAlgorithm": asked.SigningAlgorithm, "Signature": signature})
	default:
		awsFail(w, "UnknownOperationException", "")
	}
}

func awsARN(version int) string {
	return "arn:aws:kms:eu-central-1:111122223333:key/00000000-0000-0000-0000-00000000000" + string(rune('0'+version))
}

func awsSpec(key crypto.Signer) string {
	if key.Public().(*ecdsa.PublicKey).Curve == elliptic.P384() {
		return "ECC_NIST_P384"
	}
	return "ECC_NIST_P256"
}

func awsAlgorithms(key crypto.Signer) []string {
	if awsSpec(key) == "ECC_NIST_P384" {
		return []string{"ECDSA_SHA_384"}
	}
	return []string{"ECDSA_SHA_256"}
}

func awsAnswer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_ = json.NewEncoder(w).Encode(value)
}

func awsFail(w http.ResponseWriter, kind, message string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": kind, "message": message})
}

var authorizationV4 = regexp.MustCompile(
	`^AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/kms/aws4_request, SignedHeaders=([^,]+), Signature=[0-9a-f]{64}$`)

// signedV4 signs the request again, with the secret, and compares.
func signedV4(r *http.Request, body []byte) bool {
	got := r.Header.Get("Authorization")
	parts := authorizationV4.FindStringSubmatch(got)
	if parts == nil || parts[1] != awsKeyID {
		return false
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	again, err := http.NewRequestWithContext(r.Context(), r.Method, "https://"+r.Host+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return false
	}
	for _, name := range strings.Split(parts[3], ";") {
		if name != "host" && name != "content-length" {
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	sum := sha256.Sum256(body)
	who := aws.Credentials{AccessKeyID: awsKeyID, SecretAccessKey: awsSecret}
	if err := v4.NewSigner().SignHTTP(r.Context(), who, again, hex.EncodeToString(sum[:]), "kms", parts[2], at); err != nil {
		return false
	}
	return again.Header.Get("Authorization") == got
}
