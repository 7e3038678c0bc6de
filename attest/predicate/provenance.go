package predicate

import (
	"strings"
	"time"

	slsa02 "github.com/in-toto/in-toto-golang/in_toto/slsa_provenance/v0.2"
	slsa1 "github.com/in-toto/in-toto-golang/in_toto/slsa_provenance/v1"

	"github.com/quaymaster/quaymaster/attest"
)

// Provenance is the common content of SLSA provenance v0.2 and v1: the builder, the build and its
// materials.
type Provenance struct {
	// BuilderID is a URI that identifies the builder, on which trust is based.
	BuilderID string
	// BuildType is a URI that defines the parameters.
	BuildType string
	// Invocation identifies the run, by the builder's rules; may be empty.
	Invocation string
	// Materials are the inputs of the build: sources and dependencies.
	Materials []Material
	// ConfigSource is v0.2's source of the build's definition; zero if there is none.
	ConfigSource Material
	// Started and Finished are zero if they are absent.
	Started, Finished time.Time
	// Parameters are chosen by a user of the builder: v1's external parameters, v0.2's invocation
	// parameters.
	Parameters any
}

// Material is an input of a build.
type Material struct {
	// Name distinguishes the inputs of one build in v1; may be empty.
	Name   string
	URI    string
	Digest map[string]string
}

// ParseProvenance parses SLSA provenance v0.2 or v1. Builder and build type are required.
func ParseProvenance(s attest.Statement) (Provenance, error) {
	parse := parseProvenance1
	if s.PredicateType == attest.PredicateSLSAv02 {
		parse = parseProvenance02
	}
	p, err := parse(s)
	if err != nil {
		return Provenance{}, err
	}
	if err := required(s, "builder id", p.BuilderID); err != nil {
		return Provenance{}, err
	}
	return p, required(s, "build type", p.BuildType)
}

func parseProvenance02(s attest.Statement) (Provenance, error) {
	var wire slsa02.ProvenancePredicate
	if err := decode(s, &wire, attest.PredicateSLSAv02); err != nil {
		return Provenance{}, err
	}
	p := Provenance{BuilderID: wire.Builder.ID, BuildType: wire.BuildType, Parameters: wire.Invocation.Parameters}
	source := wire.Invocation.ConfigSource
	if source.URI != "" {
		p.ConfigSource = Material{URI: source.URI, Digest: source.Digest}
		p.Materials = append(p.Materials, p.ConfigSource)
	}
	for _, m := range wire.Materials {
		if m.URI != source.URI || m.URI == "" {
			p.Materials = append(p.Materials, Material{URI: m.URI, Digest: m.Digest})
		}
	}
	if wire.Metadata != nil {
		p.Invocation = wire.Metadata.BuildInvocationID
		p.Started, p.Finished = moment(wire.Metadata.BuildStartedOn), moment(wire.Metadata.BuildFinishedOn)
	}
	return p, nil
}

func parseProvenance1(s attest.Statement) (Provenance, error) {
	var wire slsa1.ProvenancePredicate //nolint:staticcheck // its successor is a protobuf message, which is stricter than existing statements
	if err := decode(s, &wire, attest.PredicateSLSAv1); err != nil {
		return Provenance{}, err
	}
	build, run := wire.BuildDefinition, wire.RunDetails
	p := Provenance{
		BuilderID: run.Builder.ID, BuildType: build.BuildType, Invocation: run.BuildMetadata.InvocationID,
		Started: moment(run.BuildMetadata.StartedOn), Finished: moment(run.BuildMetadata.FinishedOn),
		Parameters: build.ExternalParameters,
	}
	for _, d := range build.ResolvedDependencies {
		p.Materials = append(p.Materials, Material{Name: d.Name, URI: d.URI, Digest: d.Digest})
	}
	return p, nil
}

func moment(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Source returns the first material that is a source repository (git+...), or
// else the first; the zero Material if there is none.
func (p Provenance) Source() Material {
	for _, m := range p.Materials {
		if strings.HasPrefix(m.URI, "git+") {
			return m
		}
	}
	if len(p.Materials) > 0 {
		return p.Materials[0]
	}
	return Material{}
}
