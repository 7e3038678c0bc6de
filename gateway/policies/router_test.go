package policies

import (
	"context"
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/gateway/kinds"
)

// consumed is a document.Consumer that remembers.
type consumed struct{ calls []string }

func (c *consumed) Changed(_ context.Context, upserts []document.Document, deletes []document.Key) {
	text := ""
	for _, d := range upserts {
		text += "+" + d.Key.Resource
	}
	for _, key := range deletes {
		text += "-" + key.Resource
	}
	c.calls = append(c.calls, text)
}

func TestRouter(t *testing.T) {
	policies, mirrors, globals := &consumed{}, &consumed{}, &consumed{}
	s := &Router{Policies: policies, Mirrors: mirrors, Globals: globals}
	own := document.Key{Group: kinds.KyvernoGroup, Resource: "policies", Name: "p"}
	mirror := document.Key{Group: kinds.OwnGroup, Resource: kinds.MirrorResource, Name: "m"}
	sets := document.Key{Group: "config.openshift.io", Resource: "imagetagmirrorsets", Name: "s"}
	s.Changed(t.Context(), nil, nil)
	s.Changed(t.Context(), []document.Document{{Key: own}}, []document.Key{mirror})
	s.Changed(t.Context(), []document.Document{{Key: sets}}, nil)
	s.Changed(t.Context(), []document.Document{{Key: document.Key{Group: kinds.KyvernoGroup, Resource: kinds.GlobalContextResource, Name: "g"}}}, nil)
	if want := []string{"", "+globalcontextentries"}; !slices.Equal(globals.calls, want) {
		t.Errorf("global context entries received %q, want %q", globals.calls, want)
	}
	if want := []string{"", "+policies"}; !slices.Equal(policies.calls, want) {
		t.Errorf("policies received %q, want %q", policies.calls, want)
	}
	if want := []string{"", "-registrymirrors", "+imagetagmirrorsets"}; !slices.Equal(mirrors.calls, want) {
		t.Errorf("mirrors received %q, want %q", mirrors.calls, want)
	}
}
