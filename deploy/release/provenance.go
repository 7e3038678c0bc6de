package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// buildType is GitHub's own for a workflow; it defines the parameters.
const buildType = "https://actions.github.io/buildtypes/workflow/v1"

// predicate is the part of SLSA provenance v1 that is set.
type predicate struct {
	BuildDefinition struct {
		BuildType          string `json:"buildType"`
		ExternalParameters struct {
			Workflow struct {
				Ref        string `json:"ref"`
				Repository string `json:"repository"`
				Path       string `json:"path"`
			} `json:"workflow"`
		} `json:"externalParameters"`
		InternalParameters struct {
			GitHub struct {
				EventName         string `json:"event_name"`
				RepositoryID      string `json:"repository_id"`
				RepositoryOwnerID string `json:"repository_owner_id"`
				RunnerEnvironment string `json:"runner_environment"`
			} `json:"github"`
		} `json:"internalParameters"`
		ResolvedDependencies []material `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
		Metadata struct {
			InvocationID string `json:"invocationId"`
		} `json:"metadata"`
	} `json:"runDetails"`
}

type material struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest"`
}

// provenance writes the commit, workflow and run of a release. A variable that the run did not set
// is an error, because an incomplete statement must not be signed.
func provenance(out io.Writer, env func(string) string) error {
	var missing []error
	get := func(name string) string {
		value := env(name)
		if value == "" {
			missing = append(missing, fmt.Errorf("%s is not set; it is in a run of GitHub Actions", name))
		}
		return value
	}
	server, repository, ref := get("GITHUB_SERVER_URL"), get("GITHUB_REPOSITORY"), get("GITHUB_REF")
	source := server + "/" + repository
	workflow := get("GITHUB_WORKFLOW_REF") // OWNER/REPOSITORY/PATH@REF
	path, _, _ := strings.Cut(strings.TrimPrefix(workflow, repository+"/"), "@")

	var p predicate
	p.BuildDefinition.BuildType = buildType
	p.BuildDefinition.ExternalParameters.Workflow.Ref = ref
	p.BuildDefinition.ExternalParameters.Workflow.Repository = source
	p.BuildDefinition.ExternalParameters.Workflow.Path = path
	github := &p.BuildDefinition.InternalParameters.GitHub
	github.EventName, github.RunnerEnvironment = get("GITHUB_EVENT_NAME"), get("RUNNER_ENVIRONMENT")
	github.RepositoryID, github.RepositoryOwnerID = get("GITHUB_REPOSITORY_ID"), get("GITHUB_REPOSITORY_OWNER_ID")
	p.BuildDefinition.ResolvedDependencies = []material{{
		URI: "git+" + source + "@" + ref, Digest: map[string]string{"gitCommit": get("GITHUB_SHA")},
	}}
	p.RunDetails.Builder.ID = server + "/" + workflow
	p.RunDetails.Metadata.InvocationID = source + "/actions/runs/" + get("GITHUB_RUN_ID") + "/attempts/" + get("GITHUB_RUN_ATTEMPT")
	if err := errors.Join(missing...); err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(p)
}
