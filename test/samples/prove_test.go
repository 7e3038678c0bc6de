package samples

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"oras.land/oras-go/v2/registry/remote"

	"github.com/quaymaster/quaymaster/test/peers/notary"
	"github.com/quaymaster/quaymaster/test/peers/sigstore"
)

// proof is one signature or attestation of an image, by one program.
type proof struct {
	program program
	by      who
	// kind is the type of an attestation; empty for a signature.
	kind string
	// document is the attested document: JSON.
	document   string
	annotation string // cosign: NAME=VALUE that is signed, too
	unlogged   bool   // cosign: leaves the transparency log out
	stamped    bool   // cosign: asks the timestamp authority
}

type program string

const (
	cosign2    program = "cosign 2" // writes tags
	cosign3    program = "cosign 3" // writes bundles
	byNotation program = "notation" // notation-go
)

// who is a signer: by a key in a file or in the vault, or under a name of
// an issuer. For notation the key is the certificate authority's;
// nobody attaches a document without a signature.
type who struct{ key, vault, name, issuer string }

// prove has a program say its thing of the image that a repository has under a
// digest.
func (p *port) prove(t testing.TB, repository, digest string, w proof) error {
	if w.program == byNotation {
		return p.notarize(t.Context(), repository, digest, w)
	}
	args := []string{"sign"}
	if w.kind != "" {
		predicate := filepath.Join(t.TempDir(), "predicate.json")
		if err := os.WriteFile(predicate, []byte(w.document), 0o600); err != nil {
			return err
		}
		args = []string{"attest", "--type", w.kind, "--predicate", predicate}
	}
	switch {
	case w.by.key != "":
		args = append(args, "--key", filepath.Join(p.folder, w.by.key+".key"))
	case w.by.vault != "":
		args = append(args, "--key", "hashivault://"+w.by.vault)
	default:
		token := p.issuers.Token(t, w.by.issuer, w.by.name, map[string]any{"name": w.by.name})
		args = append(args, "--fulcio-url", p.fulcio.URL, "--identity-token", token)
	}
	if w.unlogged {
		args = append(args, "--tlog-upload=false")
	} else {
		args = append(args, "--rekor-url", p.rekor.URL)
	}
	if w.annotation != "" {
		args = append(args, "-a", w.annotation)
	}
	if w.stamped {
		args = append(args, "--timestamp-server-url", p.tsa.URL)
	}
	cosign := p.cosign2
	if w.program == cosign3 {
		cosign, args = p.cosign3, append(args, "--use-signing-config=false")
	} else {
		args = append(args, "--new-bundle-format=false")
	}
	_, err := cosign.Run(t.Context(), append(args, p.registry+"/"+repository+"@"+digest)...)
	return err
}

// notarize signs the image, or attaches a document and signs that.
func (p *port) notarize(ctx context.Context, repository, digest string, w proof) error {
	in, err := remote.NewRepository(p.registry + "/" + repository)
	if err != nil {
		return err
	}
	in.PlainHTTP = true
	if w.kind != "" {
		digest, err = notary.Attach(ctx, in, digest, w.kind, []byte(w.document))
		if err != nil || w.by == nobody {
			return err
		}
	}
	return p.notaries[w.by.key].Sign(ctx, in, digest, notary.JWS)
}

// stamp makes everything that has a timestamp, while the authority runs: there is
// one at a time on a machine.
func (p *port) stamp(t testing.TB, samples []sample) {
	t.Helper()
	var stamped []trial
	for _, s := range samples {
		for _, trial := range s.trials {
			if slices.ContainsFunc(trial.proofs, func(w proof) bool { return w.stamped }) {
				stamped = append(stamped, trial)
			}
		}
	}
	if len(stamped) == 0 {
		return
	}
	p.tsa = sigstore.StartTSA(t)
	defer p.tsa.Stop()
	p.stamps = string(sigstore.PEM(p.tsa.Chain))
	for _, trial := range stamped {
		p.load(t, trial.repository, trial.proofs)
	}
}

func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
