package sigstore_test

import (
	"encoding/base64"
	"testing"

	"github.com/quaymaster/quaymaster/test/peers/sigstore"
)

// issuers are two for people, with mail addresses, and one for workflows.
type issuers struct{ *sigstore.Issuers }

const (
	people    = "/people"
	others    = "/others"
	workflows = "/workflows"
)

func newIssuers(t testing.TB) *issuers {
	t.Helper()
	return &issuers{sigstore.NewIssuers(t, people, others, workflows)}
}

// person is a token with a mail address.
func (i *issuers) person(t testing.TB, path, mail string) string {
	t.Helper()
	return i.Token(t, path, "1234", map[string]any{"email": mail, "email_verified": true})
}

// workflow is a token for a run of a build workflow.
func (i *issuers) workflow(t testing.TB, trigger string) string {
	t.Helper()
	return i.Token(t, workflows, "repo:org/app", map[string]any{
		"workflow_ref": "org/app/.github/workflows/release.yml@refs/heads/main",
		"repository":   "org/app", "event_name": trigger, "runner": "github-hosted",
	})
}

// base64Of is base64 as Sigstore writes it.
func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
