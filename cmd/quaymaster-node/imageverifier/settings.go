package imageverifier

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/fieldname"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/internal/spelling"
	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/internal/yamlline"
)

const (
	// DefaultPath is the path of the settings; containerd passes no flags of the verifier's.
	DefaultPath = "/etc/quaymaster/node.yaml"
	// PathVariable is the environment variable that names another file.
	PathVariable = "QUAYMASTER_NODE_CONFIG"
	// DefaultTimeout is below containerd's own of 10 s, so that the verifier's reason is
	// reported.
	DefaultTimeout = 8 * time.Second
	// maxTimeout is the longest timeout that containerd may plausibly be configured with.
	maxTimeout = 5 * time.Minute
	// maxSettings bounds the file, in bytes, and maxUnverified the images in it.
	maxSettings   = 256 << 10
	maxUnverified = 50
)

// Settings are those of a node: docs/node.md.
type Settings struct {
	// Timeout bounds one request, and must be below containerd's per_verifier_timeout; 8s unless
	// set.
	Timeout string `json:"timeout,omitempty"`
	// Namespace is the namespace that images are evaluated in, since containerd passes none;
	// "default" unless set.
	Namespace string `json:"namespace,omitempty"`
	// RequireMatch denies an image that no policy matches.
	RequireMatch bool `json:"requireMatch,omitempty"`
	// Unverified are exact images, repository@digest, that are allowed without verification: the
	// images that a gateway needs to start.
	Unverified []string `json:"unverified,omitempty"`
	// Gateway is the gateway that quaymaster-node sends requests to.
	Gateway *Gateway `json:"gateway,omitempty"`
	// Local configures verification by quaymaster itself.
	Local *Local `json:"local,omitempty"`

	timeout    time.Duration
	unverified []image.Ref
}

// Gateway is the address of a gateway: URL or Socket.
type Gateway struct {
	// URL is https://host[:port].
	URL string `json:"url,omitempty"`
	// CAFile holds the authorities, in PEM, one of which signed the gateway's
	// certificate; the system's unless set.
	CAFile string `json:"caFile,omitempty"`
	// CertificateFile and KeyFile are the node's own, in PEM.
	CertificateFile string `json:"certificateFile,omitempty"`
	KeyFile         string `json:"keyFile,omitempty"`
	// Socket is the path of a unix socket with plain HTTP.
	Socket string `json:"socket,omitempty"`
	// TokenFile holds the token that authenticates the node to the gateway.
	TokenFile string `json:"tokenFile,omitempty"`
}

// Local configures local verification: files and folders, as the flags of "quaymaster verify"
// name them.
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

// Path returns the path of the settings; env looks up an environment variable.
func Path(env func(string) string) string {
	if path := env(PathVariable); path != "" {
		return path
	}
	return DefaultPath
}

// ReadSettings reads a file of settings. An unknown member is an error. So is a file that is
// writable by users other than root and the user of this process, because the file configures
// trust.
func ReadSettings(path string) (*Settings, error) {
	s, err := readSettings(path)
	if err != nil {
		return nil, fmt.Errorf("settings %s: %w", path, err)
	}
	return s, nil
}

// decode reads YAML strictly.
func (s *Settings) decode(text []byte) error {
	text, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return fmt.Errorf("YAML: %w", yamlline.Readable(err))
	}
	problems, err := strictjson.Decode(text, s)
	for _, problem := range problems {
		if strings.HasPrefix(problem.What, "unknown") {
			problem.What += spelling.DidYouMean(fieldname.Nearest(problem.Path, reflect.TypeFor[Settings]()))
		}
		err = errors.Join(err, problem)
	}
	return err
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
	s := &Settings{timeout: DefaultTimeout}
	if err := s.decode(text); err != nil {
		return nil, yamlline.Locate(text, err)
	}
	if s.Timeout != "" {
		s.timeout, err = time.ParseDuration(s.Timeout)
		if err != nil || s.timeout < 100*time.Millisecond || s.timeout > maxTimeout {
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

// IsUnverified reports whether this digest in this repository is allowed without verification.
// The name's tag is ignored.
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
			return nil, p.Err // the caller adds the path
		}
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return limit.ReadAll(file, most, "the file")
}
