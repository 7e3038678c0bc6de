package main

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestClusterImagePolicy verifies by documents of Sigstore's policy-controller.
func TestClusterImagePolicy(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed, unsigned, foreign := h.Build("signed", "v1", "1"), h.Build("unsigned", "v1", "2"), h.Build("foreign", "v1", "3")
	ok(t, h.SignLegacy(signed, verifytest.Claim{Signer: h.key}, nil)) // with an entry in the log
	ok(t, h.SignLegacy(foreign, verifytest.Claim{Signer: h.stranger}, nil))
	policy := func(name, authority string) string {
		return h.file(t, name, `apiVersion: policy.sigstore.dev/v1beta1
kind: ClusterImagePolicy
metadata: {name: `+strings.TrimSuffix(name, ".yaml")+`}
spec:
  images: [{glob: "`+h.Registry.Host()+`/**"}]
  authorities: [`+authority+`]
`)
	}
	key := "key: {data: " + strconv.Quote(string(h.key.PublicPEM())) + "}"
	plain := policy("plain.yaml", "{"+key+"}")
	logged := policy("logged.yaml", "{"+key+", ctlog: {trustRootRef: ours}}")
	ended := policy("ended.yaml", "{static: {action: fail, message: end of life}}")
	root := h.file(t, "root.yaml", fmt.Sprintf(`apiVersion: policy.sigstore.dev/v1alpha1
kind: TrustRoot
metadata: {name: ours}
spec:
  sigstoreKeys:
    certificateAuthorities:
    - {subject: {organization: o, commonName: c}, uri: "https://fulcio.example", certChain: %s}
    tLogs: [{baseURL: %q, hashAlgorithm: sha-256, publicKey: %s}]
`, encode(h.Sigstore.CA.ChainPEM()), h.Sigstore.Rekor.URL(), encode(h.Sigstore.Rekor.PublicPEM())))
	for _, c := range []struct {
		reason   string
		policies []string
		image    string
		code     int
		says     string
	}{
		{"signed", []string{plain}, signed.Name, command.ExitAllowed, "ClusterImagePolicy/plain"},
		{"unsigned", []string{plain}, unsigned.Name, command.ExitDenied, "no signature found"},
		{"signed by another key", []string{plain}, foreign.Name, command.ExitDenied, "another key"},
		{"all policies must hold", []string{plain, ended}, signed.Name, command.ExitDenied, "end of life"},
		{"in the log of the trust root", []string{logged, root}, signed.Name, command.ExitAllowed, "ClusterImagePolicy/logged"},
		{"the trust root is not there", []string{logged}, signed.Name, command.ExitError, "ours"},
		{"a field that is none", []string{h.file(t, "typo.yaml", "apiVersion: policy.sigstore.dev/v1beta1\nkind: ClusterImagePolicy\nmetadata: {name: a}\nspec: {imags: []}\n")}, signed.Name, command.ExitUsage, "spec.imags"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			args := []string{"verify", c.image}
			for _, p := range c.policies {
				args = append(args, "--policy", p)
			}
			code, out, errs := quaymaster(t, args...)
			if code != c.code || !strings.Contains(out+errs, c.says) {
				t.Errorf("exit %d, want %d with %q:\n%s%s", code, c.code, c.says, out, errs)
			}
		})
	}
}

func encode(text []byte) string { return base64.StdEncoding.EncodeToString(text) }
