package policyreport_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// TestYesterday: reports of the previous version are read, and an equal result is no
// change, so that an upgrade rewrites none. testdata/yesterday was written by that version.
func TestYesterday(t *testing.T) {
	web := report.Resource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "7d9c"}
	say := func(pod string, status result.Status) result.Result {
		return result.Result{
			Policy: result.Policy{Kind: "ClusterPolicy", Name: "signed"}, Rule: "by-key", Status: status, Message: "no signature was found", Enforced: true,
			Image:    &result.Image{Container: "c", Written: "registry.example/web:1", Digest: image.DigestOf([]byte("web")).String()},
			Resource: report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: pod, UID: pod}, Time: time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC), Process: report.ProcessScan,
		}
	}
	at, _ := policyreport.ByWorkload.Place(say("web-1", result.Pass), web)
	for _, file := range []string{"policyreport.json", "openreport.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", "yesterday", file))
		if err != nil {
			t.Fatal(err)
		}
		read, err := policyreport.Decode(at, policyreport.Selection{}, [][]byte{text})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if listed := read.Resources(); len(listed) != 1 || listed[0].Name != "web-3" {
			t.Errorf("%s: it lists %v", file, listed)
		}
		results, err := policyreport.Results(text)
		if err != nil || len(results) == 0 {
			t.Errorf("%s: results %v, %v", file, results, err)
		}
		if read.Merge([]result.Result{say("web-1", result.Pass)}) {
			t.Errorf("%s: the same again is a change", file)
		}
		failed := say("web-1", result.Fail)
		failed.Time = failed.Time.Add(time.Minute)
		if !read.Merge([]result.Result{failed}) {
			t.Errorf("%s: a failure is no change", file)
		}
		for reason, other := range map[string][]byte{
			"cut":                bytes.TrimRight(text, "}\n"),
			"of a later version": bytes.Replace(text, []byte(`/v1alpha`), []byte(`/v9alpha`), 1),
			"another writer's":   bytes.ReplaceAll(text, []byte(policyreport.ManagedBy), []byte("another")),
		} {
			if _, err := policyreport.Decode(at, policyreport.Selection{}, [][]byte{other}); err == nil {
				t.Errorf("%s, %s: it is read", file, reason)
			}
		}
	}
}
