package deletions_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/preview"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/scan/internal/deletions"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/workload"
)

// every deletes all objects of its targets, unless the labels of their namespaces are unknown.
type every []policy.Target

func (every) Name() string                    { return "old" }
func (e every) Targets() []policy.Target      { return e }
func (every) Labels() string                  { return "" }
func (every) Propagation() policy.Propagation { return "" }
func (every) Next(time.Time) time.Time        { return time.Time{} }
func (every) Decide(_ context.Context, about policy.Case) policy.DeletionDecision {
	if !about.Subject.NamespaceKnown {
		return policy.DeletionDecision{Result: policy.Indeterminate, Reasons: []policy.Reason{{Message: "unknown labels"}}}
	}
	return policy.DeletionDecision{Result: policy.Pass}
}

// served is a cluster with two versions of a kind, a kind that may not be listed and a list that expires.
type served struct{ listed []string }

func (*served) Kinds(context.Context) ([]scan.Kind, error) {
	kind := func(group, version, kind string) scan.Kind {
		return scan.Kind{Group: group, Version: version, Kind: kind, Resource: strings.ToLower(kind) + "s", Namespaced: true}
	}
	return []scan.Kind{kind("", "v1", "Pod"), kind("apps", "v2", "App"), kind("apps", "v1", "App"), kind("", "v1", "Secret"), kind("", "v1", "Service")}, nil
}

func (s *served) List(_ context.Context, kind scan.Kind, from string, most int) (scan.Page, error) {
	s.listed = append(s.listed, kind.String()+" "+from)
	switch {
	case kind.Kind == "Secret":
		return scan.Page{}, scan.ErrRefused
	case kind.Kind == "App" && from == "":
		return scan.Page{}, &scan.ExpiredError{Next: "again", Err: errors.New("gone")}
	case kind.Kind == "App":
		from = ""
	}
	at, _ := strconv.Atoi(from)
	var page scan.Page
	namespaces := []string{"shop", "bank", "unknown"}
	for i := at; i < min(at+most, 300); i++ {
		version := strings.TrimPrefix(kind.Group+"/"+kind.Version, "/")
		text := fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: n%d, namespace: %s}}", version, kind.Kind, i, namespaces[i%3])
		objects, err := workload.Read(strings.NewReader(text), "list")
		if err != nil {
			return page, err
		}
		page.Objects = append(page.Objects, objects...)
	}
	if at+most < 300 && kind.Kind == "Pod" {
		page.Continue = strconv.Itoa(at + most)
	}
	return page, nil
}

// known are the namespaces with known labels.
type known struct{}

func (known) Labels(_ context.Context, name string) (map[string]string, error) {
	if name == "unknown" {
		return nil, scan.ErrUnknown
	}
	return map[string]string{}, nil
}

// TestDeletions lists each object once, of the kinds of the rules and in all pages.
func TestDeletions(t *testing.T) {
	for _, c := range []struct {
		reason   string
		targets  every
		excluded []string
		want     string // deletes, errors, kinds that are refused
		listed   string
	}{
		{"a kind", every{{Version: "*", Kind: "Pod"}}, nil, "200 100 0", "pods.v1 , pods.v1 250"},
		{"without a namespace", every{{Version: "*", Kind: "Pod"}}, []string{"ba*"}, "100 100 0", "pods.v1 , pods.v1 250"},
		{"a kind of two versions", every{{Group: "apps", Version: "*", Kind: "App"}}, nil, "167 83 0", "apps.v2.apps , apps.v2.apps again"},
		{"the version that it names", every{{Group: "apps", Version: "v1", Kind: "App"}}, nil, "167 83 0", "apps.v1.apps , apps.v1.apps again"},
		{"a kind that may not be listed", every{{Version: "v1", Kind: "Secret"}}, nil, "0 0 1", "secrets.v1 "},
		{"a kind of another group", every{{Group: "example.com", Version: "*", Kind: "Pod"}}, nil, "0 0 0", ""},
		{"no kinds", every{}, nil, "0 0 0", ""},
	} {
		p := &policy.Policy{Kind: "DeletingPolicy", Name: "old", ObjectRules: policy.ObjectRules{Deletions: []policy.Deletion{c.targets}}}
		of, err := set.New(p)
		if err != nil {
			t.Fatal(err)
		}
		cluster := &served{}
		list, refused, err := deletions.List(t.Context(), deletions.Options{
			Policies: of, Limits: preview.Defaults("quaymaster"), Cluster: cluster, Namespaces: known{}, Excluded: c.excluded,
		})
		if err != nil {
			t.Fatal(err)
		}
		run := list.Runs[0]
		if got := fmt.Sprint(run.Deletes, run.Errors, len(refused)); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
		if got := strings.Join(cluster.listed, ", "); got != c.listed {
			t.Errorf("%s: listed %s, want %s", c.reason, got, c.listed)
		}
	}
	none, err := set.New()
	if err != nil {
		t.Fatal(err)
	}
	if list, _, err := deletions.List(t.Context(), deletions.Options{Policies: none, Limits: preview.Defaults("quaymaster")}); list != nil || err != nil {
		t.Errorf("without policies: %v, %v", list, err)
	}
}
