package slsa_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy/slsa"
	"github.com/quaymaster/quaymaster/verify"
)

const (
	generator = "https://github.com/slsa-framework/slsa-github-generator/.github/workflows/generator_container_slsa3.yml@refs/tags/v2.1.0"
	workflow  = "https://github.com/org/app/.github/workflows/release.yml@refs/tags/v1.2.3"
	github    = "https://token.actions.githubusercontent.com"
	chains    = "https://tekton.dev/chains/v2"
)

// build describes provenance and its signer; each row of a test changes a part.
type build struct {
	predicate              string // v0.2 or v1
	id, buildType          string
	source, ref            string
	issuer, subject        string // of the signer; a key if empty
	runner, project, onRef string // extensions of the certificate
	materials              []string
	noSource               bool
}

// generated is provenance of the generator in v0.2.
func generated(change func(*build)) build {
	b := build{
		predicate: "v0.2", id: generator, buildType: "https://github.com/slsa-framework/slsa-github-generator/container@v1",
		source: "https://github.com/org/app", ref: "refs/tags/v1.2.3", issuer: github, subject: generator,
		runner: "github-hosted", project: "https://github.com/org/app", onRef: "refs/tags/v1.2.3",
	}
	change(&b)
	return b
}

// attested is provenance of artifact attestations in v1.
func attested(change func(*build)) build {
	return generated(func(b *build) {
		b.predicate, b.id, b.subject, b.buildType = "v1", workflow, workflow, "https://actions.github.io/buildtypes/workflow/v1"
		change(b)
	})
}

// chained is provenance of Tekton Chains by the operator's key.
func chained(change func(*build)) build {
	b := build{predicate: "v1", id: chains, buildType: "https://tekton.dev/chains/v2/slsa", materials: []string{"git+https://github.com/org/app.git"}}
	change(&b)
	return b
}

func (b build) fact(t testing.TB) verify.Fact {
	t.Helper()
	var predicate map[string]any
	statement := &attest.Statement{PredicateType: attest.PredicateSLSAv1}
	var materials []any
	for _, uri := range b.materials {
		name, uri, named := strings.Cut(uri, "=")
		if !named {
			name, uri = "", name
		}
		materials = append(materials, map[string]any{"name": name, "uri": uri})
	}
	if b.predicate == "v0.2" {
		statement.PredicateType = attest.PredicateSLSAv02
		source := map[string]any{"uri": "git+" + b.source + "@" + b.ref}
		predicate = map[string]any{"builder": map[string]any{"id": b.id}, "buildType": b.buildType,
			"invocation": map[string]any{"configSource": source}, "materials": append([]any{source}, materials...)}
		if b.noSource {
			predicate["invocation"], predicate["materials"] = map[string]any{}, materials
		}
	} else {
		parameters := map[string]any{}
		if b.source != "" && !b.noSource {
			parameters["workflow"] = map[string]any{"repository": b.source, "ref": b.ref, "path": ".github/workflows/release.yml"}
		}
		predicate = map[string]any{
			"buildDefinition": map[string]any{"buildType": b.buildType, "externalParameters": parameters, "resolvedDependencies": materials},
			"runDetails":      map[string]any{"builder": map[string]any{"id": b.id}},
		}
	}
	text, err := json.Marshal(predicate)
	if err != nil {
		t.Fatal(err)
	}
	statement.Predicate = text
	signer := verify.Signer{KeyFingerprint: "0123456789abcdef"}
	if b.issuer != "" {
		signer = verify.Signer{Issuer: b.issuer, Subject: b.subject, Extensions: map[string]string{}}
		for name, value := range map[string]string{"runnerEnvironment": b.runner, "sourceRepositoryURI": b.project, "sourceRepositoryRef": b.onRef} {
			if value != "" {
				signer.Extensions[name] = value
			}
		}
	}
	return verify.Fact{Statement: statement, Signer: signer}
}

func source(t testing.TB, text string) slsa.Source {
	t.Helper()
	s, err := slsa.ParseSource(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// operator is a declared builder with a key.
func operator(id string, level int) slsa.Builder {
	return slsa.Builder{ID: id, Level: level, Authorities: []verify.Authority{{Name: "operator", Key: &verify.Key{Ref: "key"}}}}
}

// TestVerify: one statement must have a builder for which its signer may sign, its level and the source.
func TestVerify(t *testing.T) {
	none := func(*build) {}
	app := source(t, "github.com/org/app")
	tagged := app
	tagged.Ref = "refs/tags/v1.2.3"
	reusable := slsa.Builder{ID: "https://github.com/org/workflows/.github/workflows/build.yml@refs/tags/*", Level: 3, Issuer: github}
	shared := "https://github.com/org/workflows/.github/workflows/build.yml@refs/tags/v1"
	pipelines := []slsa.Builder{operator(chains, 0)}
	for _, c := range []struct {
		reason   string
		terms    slsa.Terms
		declared []slsa.Builder
		build    build
		code     slsa.Code
		level    int
	}{
		{"the generator", slsa.Terms{Level: 3, Source: tagged}, nil, generated(none), "", 3},
		{"not at a release", slsa.Terms{Level: 3}, nil, generated(func(b *build) {
			b.id = strings.Replace(generator, "v2.1.0", "main", 1)
			b.subject = b.id
		}), slsa.WrongBuilder, 0},
		{"at a branch", slsa.Terms{Level: 3}, nil, generated(func(b *build) {
			b.id = strings.Replace(generator, "tags/v2.1.0", "heads/v2.1.0", 1)
			b.subject = b.id
		}), slsa.WrongBuilder, 0},
		{"the generator's id by another workflow", slsa.Terms{Level: 1}, nil, generated(func(b *build) { b.subject = workflow }), slsa.WrongBuilder, 0},
		{"the generator's id by another issuer", slsa.Terms{Level: 1}, nil, generated(func(b *build) { b.issuer = "https://issuer.example" }), slsa.WrongBuilder, 0},
		{"another build type", slsa.Terms{Level: 1}, nil, generated(func(b *build) { b.buildType = "https://example.com/shell@v1" }), slsa.WrongBuilder, 0},
		{"on the builder's own runner", slsa.Terms{Level: 1}, nil, generated(func(b *build) { b.runner = "self-hosted" }), slsa.WrongBuilder, 0},
		{"on an unknown runner", slsa.Terms{Level: 1}, nil, generated(func(b *build) { b.runner = "" }), slsa.WrongBuilder, 0},
		{"an unknown builder", slsa.Terms{Level: 1}, nil, generated(func(b *build) { b.id, b.subject = "https://builder.example", "https://builder.example" }), slsa.WrongBuilder, 0},

		{"artifact attestations", slsa.Terms{Level: 2, Source: tagged}, nil, attested(none), "", 2},
		{"of a lower level", slsa.Terms{Level: 3, Source: tagged}, nil, attested(none), slsa.LowBuildLevel, 0},
		{"the builder that is required", slsa.Terms{Builders: []string{"https://github.com/org/app/.github/workflows/release.yml@**"}}, nil, attested(none), "", 2},
		{"* ends at / and @", slsa.Terms{Builders: []string{"https://github.com/org/app/*"}}, nil, attested(none), slsa.WrongBuilder, 0},
		{"another builder", slsa.Terms{Builders: []string{"https://github.com/org/app/.github/workflows/build.yml@**"}}, nil, attested(none), slsa.WrongBuilder, 0},
		{"one of two builders", slsa.Terms{Builders: []string{chains, workflow}}, nil, attested(none), "", 2},
		{"the first form of the id", slsa.Terms{Level: 2}, nil, attested(func(b *build) { b.id = "https://github.com/actions/runner/github-hosted" }), "", 2},

		{"a reusable workflow that is declared", slsa.Terms{Level: 3}, []slsa.Builder{reusable}, attested(func(b *build) { b.id, b.subject = shared, shared }), "", 3},
		{"not declared", slsa.Terms{Level: 3}, nil, attested(func(b *build) { b.id, b.subject = shared, shared }), slsa.LowBuildLevel, 0},
		{"declared, by another workflow", slsa.Terms{Level: 3}, []slsa.Builder{reusable}, attested(func(b *build) { b.id = shared }), slsa.WrongBuilder, 0},

		{"another repository", slsa.Terms{Source: app}, nil, attested(func(b *build) { b.source = "https://github.com/org/other" }), slsa.WrongSource, 0},
		{"a fork, by the certificate", slsa.Terms{Source: app}, nil, attested(func(b *build) { b.project = "https://github.com/fork/app" }), slsa.WrongSource, 0},
		{"another case of the path", slsa.Terms{Source: app}, nil, attested(func(b *build) { b.source = "https://github.com/Org/app" }), slsa.WrongSource, 0},
		{"the same with .git", slsa.Terms{Source: app}, nil, attested(func(b *build) { b.source = "https://GitHub.com/org/app.git" }), "", 2},
		{"the first repository among the dependencies is another", slsa.Terms{Source: app}, nil, attested(func(b *build) {
			b.materials = []string{"pkg:oci/base", "git+https://github.com/org/other@refs/heads/main"}
		}), slsa.WrongSource, 0},
		{"a later one may be", slsa.Terms{Source: app}, nil, attested(func(b *build) {
			b.materials = []string{"git+https://github.com/org/app@refs/tags/v1.2.3", "git+https://github.com/org/other"}
		}), "", 2},
		{"another reference", slsa.Terms{Source: tagged}, nil, attested(func(b *build) { b.ref = "refs/heads/main" }), slsa.WrongSource, 0},
		{"a reference that begins alike", slsa.Terms{Source: tagged}, nil, attested(func(b *build) { b.ref = "refs/tags/v1.2.3-rc1" }), slsa.WrongSource, 0},
		{"another reference, by the certificate", slsa.Terms{Source: tagged}, nil, attested(func(b *build) { b.onRef = "refs/heads/main" }), slsa.WrongSource, 0},
		{"the reference alone", slsa.Terms{Source: slsa.Source{Ref: "refs/tags/v1.2.3"}}, nil, attested(none), "", 2},
		{"no source", slsa.Terms{Source: app}, nil, attested(func(b *build) { b.noSource = true }), slsa.WrongSource, 0},
		{"no source in v0.2", slsa.Terms{Source: app}, nil, generated(func(b *build) { b.noSource = true }), slsa.WrongSource, 0},

		{"Tekton Chains by the declared key", slsa.Terms{Level: 2, Source: app}, pipelines, chained(none), "", 2},
		{"another type has level 1", slsa.Terms{Level: 2}, pipelines, chained(func(b *build) { b.buildType = "https://example.com/shell@v1" }), slsa.LowBuildLevel, 0},
		{"a builder that is not declared for the key", slsa.Terms{Level: 1}, pipelines, chained(func(b *build) { b.id = generator }), slsa.WrongBuilder, 0},
		{"another dependency", slsa.Terms{Source: app}, pipelines, chained(func(b *build) {
			b.materials = append(b.materials, "git+https://github.com/org/other")
		}), slsa.WrongSource, 0},
		{"the definition of a task is no source", slsa.Terms{Source: app}, pipelines, chained(func(b *build) {
			b.materials = append(b.materials, "task=git+https://github.com/tektoncd/catalog.git")
		}), "", 2},
		{"no reference anywhere", slsa.Terms{Source: tagged}, pipelines, chained(none), slsa.WrongSource, 0},
		{"Cloud Build by its declared key", slsa.Terms{Level: 3}, []slsa.Builder{operator("https://cloudbuild.googleapis.com/GoogleHostedWorker", 0)}, chained(func(b *build) {
			b.id, b.buildType = "https://cloudbuild.googleapis.com/GoogleHostedWorker", "https://cloud.google.com/build/gcb-buildtypes/google-worker/v1"
		}), "", 3},
		{"Cloud Build by the key of a pattern", slsa.Terms{Level: 3}, []slsa.Builder{operator("https://**", 0)}, chained(func(b *build) {
			b.id, b.buildType = "https://cloudbuild.googleapis.com/GoogleHostedWorker", "https://cloud.google.com/build/gcb-buildtypes/google-worker/v1"
		}), slsa.LowBuildLevel, 0},
		{"a pattern without a level", slsa.Terms{Level: 1}, []slsa.Builder{operator("https://**", 0)}, chained(none), "", 1},
		{"BuildKit by a declared key", slsa.Terms{Level: 1}, []slsa.Builder{operator("https://ci.example/*", 0)}, chained(func(b *build) {
			b.id, b.buildType = "https://ci.example/7", "https://mobyproject.org/buildkit@v1"
		}), "", 1},
		{"a declared level", slsa.Terms{Level: 3}, []slsa.Builder{operator("https://ci.example/*", 3)}, chained(func(b *build) { b.id = "https://ci.example/7" }), "", 3},
		{"no builder id", slsa.Terms{Level: 1}, pipelines, chained(func(b *build) { b.id = "" }), slsa.Malformed, 0},
	} {
		t.Run(c.reason, func(t *testing.T) {
			v, err := slsa.New(c.terms, c.declared)
			if err != nil {
				t.Fatal(err)
			}
			fact := c.build.fact(t)
			by := len(v.Authorities()) - 1
			if fact.Signer.KeyFingerprint != "" {
				by = 0
			}
			found, miss := v.Verify(by, fact)
			if miss == nil {
				miss = &slsa.Miss{}
			}
			if miss.Code != c.code || found.Level != c.level && c.code == "" {
				t.Errorf("%+v, %+v; want %q and level %d", found, miss, c.code, c.level)
			}
		})
	}
}

// TestGitLab: a runner speaks for its own project.
func TestGitLab(t *testing.T) {
	runner := generated(func(b *build) {
		b.predicate, b.id, b.buildType = "v1", "https://gitlab.com/group/app/-/runners/12", "https://gitlab.com/gitlab-org/gitlab-runner/-/blob/v18.0.0/PROVENANCE.md"
		b.issuer, b.subject, b.runner, b.project = "https://gitlab.com", "https://gitlab.com/group/app//.gitlab-ci.yml@refs/tags/v1", "gitlab-hosted", "https://gitlab.com/group/app"
	})
	v, err := slsa.New(slsa.Terms{Level: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if found, miss := v.Verify(0, runner.fact(t)); miss != nil || found.Level != 2 {
		t.Errorf("%+v, %+v", found, miss)
	}
	for reason, project := range map[string]string{"another project": "https://gitlab.com/group/other", "a project that begins alike": "https://gitlab.com/group/ap", "none": ""} {
		runner.project = project
		if _, miss := v.Verify(0, runner.fact(t)); miss == nil || miss.Code != slsa.WrongBuilder {
			t.Errorf("%s: %+v", reason, miss)
		}
	}
}

func TestParseSource(t *testing.T) {
	for _, c := range []struct{ reason, text, want string }{
		{"provenance", "git+https://github.com/org/app@refs/heads/main", "https://github.com/org/app@refs/heads/main"},
		{"a command line", "github.com/org/app", "https://github.com/org/app"},
		{"BuildKit", "https://github.com/org/app.git#refs/tags/v1", "https://github.com/org/app@refs/tags/v1"},
		{"the case of the host", "git+https://GitHub.COM/Org/App.git", "https://github.com/Org/App"},
		{"nothing else is normalised", "https://github.com/org/app/", "https://github.com/org/app/"},
		{"a port", "https://git.example:8443/app", "https://git.example:8443/app"},
		{"a user", "https://token@github.com/org/app", ""},
		{"a user that looks like a host", "git+https://github.com@evil.example/org/app", ""},
		{"a query", "https://github.com/org/app?x", ""},
		{"an image", "oci://registry.example/app", ""},
		{"a file", "file:///src", ""},
		{"no path", "https://github.com/", ""},
		{"nothing", "", ""},
	} {
		got, err := slsa.ParseSource(c.text)
		if (err != nil) != (c.want == "") || err == nil && got.String() != c.want {
			t.Errorf("%s: %q, %v; want %q", c.reason, got, err, c.want)
		}
	}
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		reason   string
		terms    slsa.Terms
		declared slsa.Builder
		want     string
	}{
		{"a key", slsa.Terms{Level: 1}, operator(chains, 2), ""},
		{"an identity", slsa.Terms{Level: 1}, slsa.Builder{ID: chains, Issuer: github, Subject: workflow}, ""},
		{"no signer", slsa.Terms{Level: 1}, slsa.Builder{ID: chains, Level: 3}, "any signer can write"},
		{"every id", slsa.Terms{Level: 1}, operator("**", 3), "want a URI"},
		{"every identity", slsa.Terms{Level: 1}, slsa.Builder{ID: chains, Issuer: github, Subject: "**"}, "every identity"},
		{"a subject without an issuer", slsa.Terms{Level: 1}, slsa.Builder{ID: chains, Subject: workflow}, "no effect"},
		{"level 4", slsa.Terms{Level: 1}, operator(chains, 4), "level 4"},
		{"level 4 of an image", slsa.Terms{Level: 4}, operator(chains, 1), "level 4"},
		{"a required builder that is empty", slsa.Terms{Builders: []string{""}}, operator(chains, 1), "want a URI"},
		{"a long pattern", slsa.Terms{Level: 1}, operator("https://"+strings.Repeat("a", 2000), 1), "exceeds the bound"},
		{"too many patterns", slsa.Terms{Builders: make([]string, 65)}, operator(chains, 1), "exceed the bounds"},
	} {
		_, err := slsa.New(c.terms, []slsa.Builder{c.declared})
		if fmt := fmt.Sprint(err); (err == nil) != (c.want == "") || !strings.Contains(fmt, c.want) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.want)
		}
	}
	if _, err := slsa.New(slsa.Terms{}, make([]slsa.Builder, slsa.MaxBuilders+1)); err == nil {
		t.Error("too many builders are accepted")
	}
}

// TestAuthorities: without a row of identities no trusted root of Sigstore has to exist.
func TestAuthorities(t *testing.T) {
	for _, c := range []struct {
		reason   string
		builders []string
		want     string
	}{
		{"any builder", nil, "key keyless"},
		{"the declared one", []string{chains}, "key"},
		{"a pattern", []string{"https://**"}, "key keyless"},
		{"GitHub's", []string{workflow}, "key keyless"},
	} {
		v, err := slsa.New(slsa.Terms{Builders: c.builders}, []slsa.Builder{operator(chains, 0)})
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, a := range v.Authorities() {
			kinds = append(kinds, a.Kind())
			if err := a.Validate(); err != nil {
				t.Error(err)
			}
		}
		if got := strings.Join(kinds, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}

// TestKnown: each row of the table has a level, a source, and build types. A build type that any program may
// run has level 1.
func TestKnown(t *testing.T) {
	for _, b := range slsa.Known() {
		if b.Name == "" || b.Source == "" || b.Level < 1 || b.Level > slsa.Highest || len(b.BuildTypes) == 0 || b.Issuer == "" && b.ID == "**" && b.Level != 1 {
			t.Errorf("%+v", b)
		}
	}
}

// FuzzVerify: no provenance and no source makes the verification panic, or a level of nothing.
func FuzzVerify(f *testing.F) {
	v, err := slsa.New(slsa.Terms{Level: 1, Source: slsa.Source{Repository: "https://github.com/org/app", Ref: "refs/heads/main"}}, []slsa.Builder{operator(chains, 0)})
	if err != nil {
		f.Fatal(err)
	}
	for _, b := range []build{generated(func(*build) {}), attested(func(*build) {}), chained(func(*build) {})} {
		fact := b.fact(f)
		f.Add(fact.Statement.PredicateType, []byte(fact.Statement.Predicate), "git+https://github.com/org/app@refs/heads/main")
	}
	f.Fuzz(func(t *testing.T, kind string, predicate []byte, uri string) {
		fact := verify.Fact{Statement: &attest.Statement{PredicateType: kind, Predicate: predicate}, Signer: verify.Signer{KeyFingerprint: "0123456789abcdef"}}
		if found, miss := v.Verify(0, fact); miss == nil && (found.Builder != chains || found.Source.Repository != "https://github.com/org/app") {
			t.Errorf("%+v", found)
		}
		if s, err := slsa.ParseSource(uri); err == nil {
			if again, err := slsa.ParseSource(s.Repository); err != nil || !strings.Contains(s.Repository, ".git") && again.Repository != s.Repository {
				t.Errorf("%q: %+v, then %+v, %v", uri, s, again, err)
			}
		}
	})
}
