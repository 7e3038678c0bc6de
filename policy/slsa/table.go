package slsa

// The issuers of identities of the known builders.
const (
	issuerGitHub = "https://token.actions.githubusercontent.com"
	issuerGitLab = "https://gitlab.com"
)

// Build types of BuildKit, which any program may run: the type and not the builder identifies it.
const (
	buildKit02 = "https://mobyproject.org/buildkit@v1"
	buildKit1  = "https://github.com/moby/buildkit/blob/master/docs/attestations/slsa-definitions.md"
)

// Known returns the reviewed builders. A row is added with the documentation in which the builder's
// publisher states the level, and with the identity that signs.
func Known() []Builder {
	return []Builder{
		{
			Name: "GitHub, slsa-github-generator for containers", Level: 3, Issuer: issuerGitHub, Runner: "github-hosted", Release: true,
			ID:         "https://github.com/slsa-framework/slsa-github-generator/.github/workflows/generator_container_slsa3.yml@refs/tags/*",
			BuildTypes: []string{"https://github.com/slsa-framework/slsa-github-generator/container@v1"},
			Source:     "https://github.com/slsa-framework/slsa-github-generator/blob/main/internal/builders/container/README.md",
		},
		{
			Name: "GitHub, artifact attestations", Level: 2, Issuer: issuerGitHub, Runner: "github-hosted",
			ID:         "https://github.com/*/*/.github/workflows/*@**",
			BuildTypes: []string{"https://actions.github.io/buildtypes/workflow/v1"},
			Source:     "https://docs.github.com/en/actions/concepts/security/artifact-attestations",
		},
		{
			Name: "GitHub, artifact attestations before 2025", Level: 2, Issuer: issuerGitHub, Runner: "github-hosted",
			ID: "https://github.com/actions/runner/github-hosted", Subject: "https://github.com/*/*/.github/workflows/*@**",
			BuildTypes: []string{"https://actions.github.io/buildtypes/workflow/v1"},
			Source:     "https://docs.github.com/en/actions/concepts/security/artifact-attestations",
		},
		{
			Name: "GitLab.com, CI/CD jobs on hosted runners", Level: 2, Issuer: issuerGitLab, Runner: "gitlab-hosted", Project: true,
			ID: "https://gitlab.com/**/-/runners/*", Subject: "https://gitlab.com/**",
			BuildTypes: []string{"https://gitlab.com/gitlab-org/gitlab-runner/-/blob/*/PROVENANCE.md"},
			Source:     "https://docs.gitlab.com/ci/pipeline_security/slsa/",
		},
		{
			Name: "Google Cloud Build", Level: 3, ID: "https://cloudbuild.googleapis.com/GoogleHostedWorker",
			BuildTypes: []string{"https://cloud.google.com/build/gcb-buildtypes/google-worker/v1"},
			Source:     "https://cloud.google.com/build/docs/securing-builds/view-build-provenance",
		},
		{
			Name: "Tekton Chains", Level: 2, ID: "https://tekton.dev/chains/v2",
			BuildTypes: []string{"tekton.dev/v1/*", "tekton.dev/v1beta1/*", "https://tekton.dev/chains/v2/slsa", "https://tekton.dev/chains/v2/slsa-tekton"},
			Source:     "https://tekton.dev/docs/concepts/supply-chain-security/",
		},
		{
			Name: "BuildKit", Level: 1, ID: "**", BuildTypes: []string{buildKit02, buildKit1},
			Source: "https://docs.docker.com/build/metadata/attestations/slsa-definitions/",
		},
	}
}
