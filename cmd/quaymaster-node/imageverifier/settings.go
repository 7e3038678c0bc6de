package imageverifier

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
)

const (
	// DefaultPath is where the settings are; containerd passes no flags of ours.
	DefaultPath = "/etc/quaymaster/node.yaml"
	// PathVariable is the variable of the environment that names another file.
	PathVariable = "QUAYMASTER_NODE_CONFIG"
	// DefaultTimeout is below containerd's own of 10 s, so that the reason is ours.
	DefaultTimeout = 8 * time.Second
	// maxTimeout is what a patient containerd may be set to.
	maxTimeout = 5 * time.Minute
	// maxSettings bounds the file, in bytes, and maxUnverified the images in it.
	maxSettings   = 256 << 10
	maxUnverified = 50
)

// Settings are those of a node: docs/node.md.
type Settings struct {
	// Timeout is for an answer, and must be below containerd's
	// per_verifier_timeout; 8s unless set.
	Timeout string `json:"timeout,omitempty"`
	// Namespace is the one that images are judged in, since containerd names none;
	// "default" unless set.
	Namespace string `json:"namespace,omitempty"`
	// RequireMatch denies an image that no policy speaks of.
	RequireMatch bool `json:"requireMatch,omitempty"`
	// Unverified are exact images, repository@digest, that are allowed without
	// asking anybody: those without which no gateway can start.
	Unverified []string `json:"unverified,omitempty"`
	// Gateway is whom quaymaster-node asks.
	Gateway *Gateway `json:"gateway,omitempty"`
	// Local is by what quaymaster judges by itself.
	Local *Local `json:"local,omitempty"`

	timeout    time.Duration
	unverified []image.Ref
}

// Gateway is how a gateway is reached: by URL or Socket.
type Gateway struct {
	// URL is https://host[:port].
	URL string `json:"url,omitempty"`
	// CAFile holds the authorities, in PEM, one of which signed the gateway's
	// certificate; the system's unless set.
	CAFile string `json:"caFile,omitempty"`
	// CertificateFile and KeyFile are the node's own, in PEM.
	CertificateFile string `json:"certificateFile,omitempty"`
	KeyFile         string `json:"keyFile,omitempty"`
	// Socket is the path of a unix socket where HTTP is spoken.
	Socket string `json:"socket,omitempty"`
	// TokenFile holds the token that the gateway knows the node by.
	TokenFile string `json:"tokenFile,omitempty"`
}

// Local is what quaymaster judges by: files and folders, as the flags of
// "quaymaster verify" name them.
type Local struct {
	Policies    []string `json:"policies,omitempty"`
	Resources   []string `json:"resources,omitempty"`
	Keys        []string `json:"keys,omitempty"`
	IgnoreTlog  bool     `json:"insecureIgnoreTlog,omitempty"`
	TrustedRoot string   `json:"trustedRoot,omitempty"`
	Mirrors     []string `json:"mirrors,omitempty"`
	RegistryCA  string   `json:"registryCA,omitempty"`
	PlainHTTP   []string `json:"plainHTTP,omitempty"`
}

// Path returns where the settings are; env looks up a variable of the environment.
func Path(env func(string) string) string {
	if path := env(PathVariable); path != "" {
		return path
	}
	return DefaultPath
}

// ReadSettings reads a file of settings. A member that is not known is an error,
// and so is a file that others than root, and the user that this process runs as,
// may write: it says whom to believe.
func ReadSettings(path string) (*Settings, error) {
	s, err := readSettings(path)
	if err != nil {
		return nil, fmt.Errorf("settings %s: %w", path, err)
	}
	return s, nil
}

func readSettings(path string) (*Settings, error) {
	text, err := ReadFile(path, maxSettings)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("its mode is %s: others than its owner may write it; want 0644 or less", info.Mode())
	} else if owner, known := ownerOf(info); known && owner != 0 && owner != os.Geteuid() {
		return nil, fmt.Errorf("its owner is the user %d: want root, or the user that containerd runs as", owner)
	}
	if text, err = yaml.YAMLToJSONStrict(text); err != nil {
		return nil, err
	}
	s := &Settings{timeout: DefaultTimeout}
	if err := json.Unmarshal(text, s, json.RejectUnknownMembers(true)); err != nil { // unlike YAML's, in one case only
		return nil, err
	}
	if s.Timeout != "" {
		if s.timeout, err = time.ParseDuration(s.Timeout); err != nil || s.timeout < 100*time.Millisecond || s.timeout > maxTimeout {
			return nil, fmt.Errorf("timeout %q: want 100ms to %s, as in 8s", s.Timeout, maxTimeout)
		}
	}
	if s.Namespace == "" {
		s.Namespace = "default"
	}
	if len(s.Unverified) > maxUnverified {
		return nil, fmt.Errorf("unverified: %d images, more than %d", len(s.Unverified), maxUnverified)
	}
	for i, name := range s.Unverified {
		ref, err := image.Parse(name)
		if err != nil {
			return nil, fmt.Errorf("unverified[%d]: %w", i, err)
		}
		if ref.Digest().IsZero() || ref.Tag() != "" {
			return nil, fmt.Errorf("unverified[%d]: %s: want repository@digest, since a tag can be pushed anew", i, name)
		}
		s.unverified = append(s.unverified, ref)
	}
	return s, errors.Join(s.Gateway.check(), s.Local.check())
}

func (g *Gateway) check() error {
	if g == nil {
		return nil
	}
	switch {
	case (g.URL == "") == (g.Socket == ""):
		return errors.New("gateway: want url or socket")
	case g.Socket != "" && (g.CAFile != "" || g.CertificateFile != "" || g.KeyFile != ""):
		return errors.New("gateway: caFile, certificateFile and keyFile are about TLS, and a socket has none")
	case (g.CertificateFile == "") != (g.KeyFile == ""):
		return errors.New("gateway: want certificateFile and keyFile together")
	case g.Socket != "" && !filepath.IsAbs(g.Socket):
		return fmt.Errorf("gateway.socket %s: want an absolute path: containerd has a folder of its own", g.Socket)
	}
	for member, path := range map[string]string{"caFile": g.CAFile, "certificateFile": g.CertificateFile, "keyFile": g.KeyFile, "tokenFile": g.TokenFile} {
		if path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("gateway.%s %s: want an absolute path: containerd has a folder of its own", member, path)
		}
	}
	if g.URL == "" {
		return nil
	}
	u, err := url.Parse(g.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("gateway.url: want https://host[:port] and no more")
	}
	return nil
}

func (l *Local) check() error {
	if l != nil && len(l.Policies)+len(l.Keys) == 0 {
		return errors.New("local: want policies or keys; without them nothing is proved")
	}
	return nil
}

// IsUnverified reports whether the very digest in the very repository is allowed
// without asking anybody. Its name's tag says nothing.
func (s *Settings) IsUnverified(q Question) bool {
	for _, ref := range s.unverified {
		if ref.Repository() == q.Ref.Repository() && ref.Digest() == q.Digest {
			return true
		}
	}
	return false
}

// ReadFile reads a file of at most so many bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		if p, ok := errors.AsType[*os.PathError](err); ok {
			return nil, p.Err // whoever asks names the path
		}
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return limit.ReadAll(file, most, "the file")
}
