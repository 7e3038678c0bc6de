package convert

import (
	"bytes"
	"fmt"
	"io/fs"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/convert/connaisseur"
	"github.com/quaymaster/quaymaster/policy/convert/containers"
	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/convert/kyverno"
	"github.com/quaymaster/quaymaster/policy/convert/notation"
	"github.com/quaymaster/quaymaster/policy/convert/ratify"
	"github.com/quaymaster/quaymaster/policy/convert/sigstore"
)

// MaxInput is the largest policy that is read, in bytes: the API server's own bound
// on an object is 1.5 MiB.
const MaxInput = 1 << 20

// Format is a policy language that can be read.
type Format string

// The formats, as --from names them.
const (
	Connaisseur Format = "connaisseur"
	Notation    Format = "notation"
	Containers  Format = "containers"
	OpenShift   Format = "openshift"
	Ratify      Format = "ratify"
	Kyverno     Format = "kyverno"
	Sigstore    Format = "sigstore"
)

// Formats returns all formats, in the order of the documentation.
func Formats() []Format {
	return []Format{Connaisseur, Notation, Containers, OpenShift, Ratify, Kyverno, Sigstore}
}

// Options say how to read.
type Options struct {
	// From is the format; empty means that it is recognised by the content.
	From Format
	// Files is the folder in which files are looked up that the policy names:
	// "/etc/pki/key.pub" is "etc/pki/key.pub" in it. For notation it is also the
	// folder that truststore/ lies in. Nil means that none can be read, and a
	// policy that names one is refused.
	Files fs.FS
	// DropSignedIdentity accepts that the claimed identity of a signature
	// (containers' signedIdentity, OpenShift's too) is not compared with the
	// image's name, which an ImageValidatingPolicy cannot say: a signature that was
	// made for one repository then counts in another one that trusts the same
	// signer. Each place is marked in the output.
	DropSignedIdentity bool
}

// Convert returns the policy as ImageValidatingPolicies, in YAML, with comments
// where the meaning is subtle; the same input gives the same bytes. If a part of it
// cannot be converted the error is a *Refusal, with every such part.
func Convert(data []byte, options Options) ([]byte, error) {
	data, err := limit.ReadAll(bytes.NewReader(data), MaxInput, "the policy")
	if err != nil {
		return nil, err
	}
	documents, err := source.Split(data)
	if err != nil {
		return nil, err
	}
	format := options.From
	if format == "" {
		format, err = detect(documents)
		if err != nil {
			return nil, err
		}
	}
	read, ok := readers()[format]
	if !ok {
		return nil, fmt.Errorf("no format is called %q: want one of %s", format, join(Formats(), ", "))
	}
	c := source.New(source.Options{Files: options.Files, DropSignedIdentity: options.DropSignedIdentity})
	read(c, documents)
	if len(c.Problems) > 0 {
		return nil, &Refusal{Problems: c.Problems}
	}
	return ivp.Write(titles()[format], c.Notes, c.Policies)
}

func readers() map[Format]func(*source.Conversion, []source.Document) {
	return map[Format]func(*source.Conversion, []source.Document){
		Connaisseur: connaisseur.Read, Notation: notation.Read, Containers: containers.Read, OpenShift: containers.ReadImagePolicies,
		Ratify: ratify.Read, Kyverno: kyverno.Read, Sigstore: sigstore.Read,
	}
}

// titles are the names of the formats in the output.
func titles() map[Format]string {
	return map[Format]string{
		Connaisseur: "Connaisseur's application values", Notation: "a notation trust policy", Containers: "a containers policy.json",
		OpenShift: "OpenShift's image policies", Ratify: "Ratify's resources", Kyverno: "Kyverno's verifyImages",
		Sigstore: "policy-controller's ClusterImagePolicies",
	}
}
