package sigstore

import (
	"context"
	"fmt"
	"slices"

	prototrust "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"

	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/clusterimagepolicy"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// names returns the TrustRoots that are named, each once.
func (r refs) names() []string {
	var list []string
	for _, name := range []string{r.ca, r.log, r.tsa} {
		if name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// resolved returns the authorities with the current Secrets and TrustRoots. An authority
// that uses no part of the gateway's own root gets one root, composed of the TrustRoots
// that it names; otherwise the named parts replace those of the gateway's root.
func (s *signer) resolved(secrets map[clusterimagepolicy.SecretRef]string, roots map[string]*prototrust.TrustedRoot) ([]verify.Authority, error) {
	list, err := s.unsealed(secrets)
	if err != nil || len(s.refs.names()) == 0 {
		return list, err
	}
	for i := range list {
		if a := &list[i]; a.Keyless != nil && s.refs.ca == "" {
			err = s.beside(a, roots)
		} else {
			a.TrustedRoot, err = s.compose(roots)
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// unsealed returns the authorities with the current Secrets.
func (s *signer) unsealed(secrets map[clusterimagepolicy.SecretRef]string) ([]verify.Authority, error) {
	switch {
	case s.keySecret != nil:
		blocks, err := publicKeys(secrets[*s.keySecret], s.keySecret.String(), s.any[0].Key.Hash)
		if err != nil {
			return nil, err
		}
		return eachKey(s.any[0], blocks, s.short()+".key.secretRef"), nil
	case s.caSecret != nil:
		roots, err := authorityChain(secrets[*s.caSecret], s.caSecret.String())
		if err != nil {
			return nil, err
		}
		list := slices.Clone(s.any)
		for i := range list {
			keyless := *list[i].Keyless
			keyless.Roots = roots
			list[i].Keyless = &keyless
		}
		return list, nil
	}
	return slices.Clone(s.any), nil
}

// entry returns the only entry of a Secret, whatever its name, as policy-controller
// requires.
func (c *Compiler) entry(ctx context.Context, r clusterimagepolicy.SecretRef) (string, error) {
	_, data, err := c.options.Secrets.Secret(ctx, r.Namespace, r.Name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", r, err)
	}
	if len(data) != 1 {
		return "", fmt.Errorf("%s: want one entry, found %d", r, len(data))
	}
	for _, text := range data {
		return string(text), nil
	}
	return "", nil
}

// beside adds the logs and timestamp authorities of TrustRoots, with their periods of validity, to
// the gateway's own root.
func (s *signer) beside(a *verify.Authority, roots map[string]*prototrust.TrustedRoot) (err error) {
	if s.refs.log != "" {
		logs := roots[s.refs.log].GetTlogs()
		if len(logs) == 0 {
			return fmt.Errorf("the TrustRoot %s has no transparency log", s.refs.log)
		}
		a.Log.Root, err = part(s.refs.log, &prototrust.TrustedRoot{Tlogs: logs})
		if err != nil {
			return err
		}
	}
	if s.refs.tsa == "" {
		return nil
	}
	authorities := roots[s.refs.tsa].GetTimestampAuthorities()
	if len(authorities) == 0 {
		return fmt.Errorf("the TrustRoot %s has no timestamp authority", s.refs.tsa)
	}
	a.Timestamp.Root, err = part(s.refs.tsa, &prototrust.TrustedRoot{TimestampAuthorities: authorities})
	return err
}

// part returns a part of a TrustRoot as a root of its own.
func part(name string, root *prototrust.TrustedRoot) ([]byte, error) {
	root.MediaType = trustroot.MediaType
	text, err := trustroot.Marshal(root)
	if err == nil {
		err = trust.CheckTrustedRoot(text)
	}
	if err != nil {
		return nil, fmt.Errorf("the TrustRoot %s: %w", name, err)
	}
	return text, nil
}

// compose makes one root: certificates of keyless.trustRootRef, logs of
// ctlog.trustRootRef, timestamp authorities of rfc3161timestamp.trustRootRef; a part
// without a name is taken from the first named one.
func (s *signer) compose(roots map[string]*prototrust.TrustedRoot) ([]byte, error) {
	first := s.refs.names()[0]
	log, tsa := first, first
	if s.refs.log != "" {
		log = s.refs.log
	}
	if s.refs.tsa != "" {
		tsa = s.refs.tsa
	}
	return trustroot.Marshal(&prototrust.TrustedRoot{
		MediaType:              trustroot.MediaType,
		CertificateAuthorities: roots[s.refs.ca].GetCertificateAuthorities(),
		Ctlogs:                 roots[s.refs.ca].GetCtlogs(),
		Tlogs:                  roots[log].GetTlogs(),
		TimestampAuthorities:   roots[tsa].GetTimestampAuthorities(),
	})
}
