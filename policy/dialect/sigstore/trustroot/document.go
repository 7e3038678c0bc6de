package trustroot

import "encoding/json"

// The document in its written form. Fields of type []byte are base64 in it.

type rootDocument struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       rootSpec        `json:"spec"`
	Status     json.RawMessage `json:"status,omitempty"`
}

type rootSpec struct {
	Remote       *remoteRoot     `json:"remote"`
	Repository   *repositoryRoot `json:"repository"`
	SigstoreKeys *sigstoreKeys   `json:"sigstoreKeys"`
	// TrustedRootJSON is the text of a trusted_root.json.
	TrustedRootJSON string `json:"trustedRootJSON"`
}

type remoteRoot struct {
	Root              []byte `json:"root"`
	Mirror            string `json:"mirror"`
	Targets           string `json:"targets"`
	TrustedRootTarget string `json:"trustedRootTarget"`
}

type repositoryRoot struct {
	Root              []byte `json:"root"`
	MirrorFS          []byte `json:"mirrorFS"`
	Targets           string `json:"targets"`
	TrustedRootTarget string `json:"trustedRootTarget"`
}

type sigstoreKeys struct {
	CertificateAuthorities []certificateAuthority `json:"certificateAuthorities"`
	TLogs                  []transparencyLog      `json:"tLogs"`
	CTLogs                 []transparencyLog      `json:"ctLogs"`
	TimestampAuthorities   []certificateAuthority `json:"timestampAuthorities"`
}

type certificateAuthority struct {
	Subject   distinguishedName `json:"subject"`
	URI       string            `json:"uri"`
	CertChain []byte            `json:"certChain"`
}

type distinguishedName struct {
	Organization string `json:"organization"`
	CommonName   string `json:"commonName"`
}

type transparencyLog struct {
	BaseURL       string `json:"baseURL"`
	HashAlgorithm string `json:"hashAlgorithm"`
	PublicKey     []byte `json:"publicKey"`
}
