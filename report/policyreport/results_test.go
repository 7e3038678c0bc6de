package policyreport_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// TestResults: a result of a stored part is about the object that a reader takes it for.
func TestResults(t *testing.T) {
	web := report.Resource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "d"}
	say := func(pod string, status result.Status) result.Result {
		return result.Result{
			Policy: result.Policy{Kind: "ImageValidatingPolicy", Name: "signed"}, Rule: "r", Status: status, Time: time.Unix(1_773_480_413, 0),
			Resource: report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: pod, UID: pod},
			Image:    &result.Image{Container: "c", Written: "web:1", Digest: "sha256:d", Signer: "key 0123456789abcdef", Evidence: "web@sha256:e"},
		}
	}
	for _, api := range policyreport.APIs() {
		results := []result.Result{say("web-1", result.Pass), say("web-2", result.Pass), say("web-3", result.Fail)}
		at, _ := policyreport.ByWorkload.Place(results[0], web)
		made := policyreport.New(at, policyreport.Selection{})
		made.Merge(results)
		parts, err := made.Encode(api, policyreport.Limits{})
		if err != nil || len(parts) != 1 {
			t.Fatal(parts, err)
		}
		read, err := policyreport.Results(parts[0].JSON)
		if err != nil || len(read) != 2 {
			t.Fatalf("%s: %d results, %v: want that of all pods, and the one that differs", api, len(read), err)
		}
		for _, r := range read {
			owner := r.Resource.Owner
			switch {
			case r.Image == nil || *r.Image != *results[0].Image || r.Policy.Kind != "ImageValidatingPolicy":
				t.Errorf("%s: %+v has %+v", api, r.Policy, r.Image)
			case r.Status == result.Pass && (r.Resource != web):
				t.Errorf("%s: the result of all pods is about %+v", api, r.Resource)
			case r.Status == result.Fail && (r.Resource.Name != "web-3" || owner == nil || owner.Name != "web"):
				t.Errorf("%s: the result of one pod is about %+v of %+v", api, r.Resource, owner)
			}
		}
		foreign := bytes.Replace(parts[0].JSON, []byte(`"app.kubernetes.io/managed-by":"quaymaster"`), []byte(`"app.kubernetes.io/managed-by":"other"`), 1)
		if _, err := policyreport.Results(foreign); !errors.Is(err, policyreport.ErrForeign) {
			t.Errorf("%s: a report of another writer: %v", api, err)
		}
		if _, err := policyreport.Results([]byte(`{"apiVersion":"v1","kind":"Pod"}`)); err == nil {
			t.Error("a pod is a report")
		}
	}
	// A report about several objects names each, and an edited one may name none.
	edited := []byte(`{"apiVersion":"wgpolicyk8s.io/v1alpha2","kind":"PolicyReport","metadata":{"namespace":"shop","labels":{"app.kubernetes.io/managed-by":"quaymaster"}},"results":[
	 {"source":"quaymaster","policy":"p","result":"pass"},
	 {"source":"quaymaster","policy":"p","result":"pass","resources":[{"apiVersion":"v1","kind":"Pod","namespace":"other","name":"elsewhere"}]},
	 {"source":"quaymaster","policy":"p","result":"pass","resources":[{"apiVersion":"v1","kind":"Node","name":"everywhere"}]},
	 {"source":"quaymaster","policy":"p","result":"pass","resources":[{"apiVersion":"v1","kind":"Pod","namespace":"shop","name":"lone"}]},
	 {"source":"other","policy":"p","result":"pass","resources":[{"apiVersion":"v1","kind":"Pod","namespace":"shop","name":"theirs"}]}]}`)
	read, err := policyreport.Results(edited)
	if err != nil || len(read) != 1 || read[0].Resource.Name != "lone" || read[0].Resource.Owner != nil {
		t.Errorf("%+v, %v: want our result with an object", read, err)
	}
}
