package verifyimages

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/verifyimages/imageverification"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// builder turns an entry into a check.
type builder struct {
	namespace       string // of a Policy
	secretNamespace string
	platforms       policy.Platforms
	// lenient accepts texts with variables in them, to find all other mistakes
	// when the policy is loaded.
	lenient bool
	// kind is Cosign, SigstoreBundle or Notary.
	kind string
}

// open reports whether a text has unresolved variables.
func (b builder) open(text string) bool { return b.lenient && strings.Contains(text, "{{") }

func isTrue(value *bool) bool { return value == nil || *value }

func (b builder) prepare(v imageverification.Entry, path string) (*prepared, error) {
	var errs []error
	b.kind = v.Type
	switch v.Type {
	case "":
		b.kind = "Cosign"
	case "Cosign", "SigstoreBundle", "Notary":
	default:
		errs = append(errs, field.Fail(path+".type", "unknown type %q: want Cosign, SigstoreBundle or Notary", v.Type))
	}
	out := &prepared{check: policy.Check{
		Entry:   path[strings.LastIndex(path, "verifyImages"):],
		Pinning: policy.Pinning{MutateDigest: isTrue(v.MutateDigest), VerifyDigest: isTrue(v.VerifyDigest)}, Claims: policy.Claims{Required: isTrue(v.Required)},
		Lookup: policy.Lookup{Platforms: b.platforms},
	}}
	if len(v.ImageReferences) == 0 {
		errs = append(errs, field.Fail(path+".imageReferences", "is empty, and so would name no image"))
	}
	for i, list := range [][]string{v.ImageReferences, v.SkipImageReferences} {
		for n, pattern := range list {
			name := [2]string{"imageReferences", "skipImageReferences"}[i]
			pattern, err := b.pattern(pattern, fmt.Sprintf("%s.%s[%d]", path, name, n), i == 1)
			errs = append(errs, err)
			if i == 0 {
				out.references = append(out.references, pattern)
			} else {
				out.exempt = append(out.exempt, pattern)
			}
		}
	}
	errs = append(errs, checkSkipped(&v, path))
	var err error
	out.check.Sources, err = b.source(v.Repository, path+".repository")
	errs = append(errs, err)
	out.check.Credentials, err = b.credentials(v.ImageRegistryCredentials, path+".imageRegistryCredentials")
	errs = append(errs, err)
	out.check.Requirements, err = b.sets(v.Attestors, path, "attestors")
	errs = append(errs, err)
	out.check.Attestations, err = b.attestations(v.Attestations, path)
	errs = append(errs, err)
	if !isTrue(v.UseCache) {
		markUncacheable(out.check.Requirements)
		for i := range out.check.Attestations {
			markUncacheable(out.check.Attestations[i].Signers)
		}
	}
	return out, errors.Join(errs...)
}

// checkSkipped refuses skipImageReferences that by their text leave out every image of the entry.
// One that names a tag or a digest leaves out only some references of a repository.
func checkSkipped(v *imageverification.Entry, path string) error {
	covers := func(skip, pattern string) bool {
		repository := skip[strings.LastIndex(skip, "/")+1:]
		return strings.HasSuffix(skip, "*") && !strings.ContainsAny(repository, ":@") && !strings.ContainsAny(skip, "?{") && wildcard.Match(skip, pattern)
	}
	left := func(pattern string) bool {
		return !slices.ContainsFunc(v.SkipImageReferences, func(skip string) bool { return covers(skip, pattern) })
	}
	if len(v.ImageReferences) == 0 || slices.ContainsFunc(v.ImageReferences, left) {
		return nil
	}
	return field.Fail(path+".skipImageReferences", "leaves out everything that imageReferences names, and so the entry would verify nothing")
}

// noMemory is useCache: false.
const noMemory = -1

// markUncacheable marks the verifications of every authority as uncacheable.
func markUncacheable(requirements []policy.Requirement) {
	for _, r := range requirements {
		for _, m := range r.Members {
			if m.Authority != nil {
				m.Authority.MaxAge = noMemory
			}
			if m.Set != nil {
				markUncacheable([]policy.Requirement{*m.Set})
			}
		}
	}
}

// source is the evidence repository; empty means the image's own.
func (b builder) source(repository, path string) ([]attest.Source, error) {
	if repository == "" || b.open(repository) {
		return nil, nil
	}
	parsed, err := image.ParseRepository(repository)
	if err != nil {
		return nil, field.Below(path, err)
	}
	return []attest.Source{{Repository: parsed}}, nil
}

func (b builder) credentials(doc *imageverification.Credentials, path string) (policy.Credentials, error) {
	if doc == nil {
		return policy.Credentials{}, nil
	}
	out := policy.Credentials{AllowInsecure: doc.AllowInsecureRegistry, Providers: doc.Providers}
	var errs []error
	for i, provider := range doc.Providers {
		if !b.open(provider) && !slices.Contains([]string{"default", "amazon", "azure", "google", "github"}, provider) {
			errs = append(errs, field.Fail(fmt.Sprintf("%s.providers[%d]", path, i), "unknown provider %q: want default, amazon, azure, google or github", provider))
		}
	}
	for i, secret := range doc.Secrets {
		namespace, name, qualified := strings.Cut(secret, "/")
		if !qualified {
			namespace, name = b.secretNamespace, secret
			if b.namespace != "" {
				namespace = b.namespace
			}
		}
		place := fmt.Sprintf("%s.secrets[%d]", path, i)
		if name == "" || namespace == "" || strings.Contains(name, "/") {
			errs = append(errs, field.Fail(place, "%q: want name or namespace/name", secret))
		}
		errs = append(errs, b.allowed(namespace, place))
		out.Secrets = append(out.Secrets, namespace+"/"+name)
	}
	return out, errors.Join(errs...)
}

// allowed keeps a namespaced Policy in its namespace.
func (b builder) allowed(namespace, path string) error {
	if b.namespace != "" && namespace != b.namespace && !b.open(namespace) {
		return field.Fail(path, "a Policy in namespace %s cannot use a Secret of namespace %s: use a ClusterPolicy", b.namespace, namespace)
	}
	return nil
}
