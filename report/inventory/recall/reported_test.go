package recall_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/report/inventory/recall"
	"github.com/quaymaster/quaymaster/report/result"
)

// TestReported: what reports say of images is found by the same questions as what a
// gateway remembers.
func TestReported(t *testing.T) {
	web := &report.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "d"}
	of := func(name string, owner *report.Owner, container, signer string, status result.Status) result.Result {
		return result.Result{
			Policy: result.Policy{Kind: "ClusterPolicy", Name: "signed"}, Rule: "r", Status: status,
			Resource: report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: name, UID: name, Owner: owner},
			Image: &result.Image{
				Container: container, Written: "registry.example/" + container + ":1", Digest: "sha256:" + strings.Repeat(container, 64), Signer: signer,
				Evidence: "registry.example/" + container + "@sha256:" + strings.Repeat("e", 64),
			},
		}
	}
	var said recall.Reported
	whole := of("web-1", web, "a", "key abababababababab", result.Pass)
	said.Add([]result.Result{whole, of("web-2", web, "a", "key abababababababab", result.Pass)})
	said.Add([]result.Result{of("lone", nil, "b", "release@example.com (https://issuer.example)", result.Fail), {Policy: whole.Policy, Resource: whole.Resource}})
	said.Add([]result.Result{of("web-1", web, "c", "key of the team", result.Pass), whole}) // another part, and another API
	known, err := inventory.New(inventory.Options{Replica: "reports"})
	if err != nil {
		t.Fatal(err)
	}
	said.Fill(known, known.About().Since)
	for _, row := range []struct {
		reason string
		query  inventory.ImageQuery
		want   string // images with their workloads and pods
	}{
		{"all", inventory.ImageQuery{}, "a:1/2/allowed b:1/1/warned c:1/1/allowed"},
		{"a key", inventory.ImageQuery{Key: "abababababababab"}, "a:1/2/allowed"},
		{"another key", inventory.ImageQuery{Key: "cdcd"}, ""},
		{"an identity", inventory.ImageQuery{Signer: "release@example.com"}, "b:1/1/warned"},
		{"its issuer", inventory.ImageQuery{Signer: "https://issuer.example"}, "b:1/1/warned"},
		{"a subject that only begins like a key", inventory.ImageQuery{Signer: "key of the team"}, "c:1/1/allowed"},
		{"a digest", inventory.ImageQuery{Digest: "sha256:bbbb"}, "b:1/1/warned"},
		{"a policy", inventory.ImageQuery{Policy: "ClusterPolicy/signed", Failed: true}, "b:1/1/warned"},
		{"another policy", inventory.ImageQuery{Policy: "ClusterPolicy/other"}, ""},
	} {
		row.query.Sort = inventory.ByReference
		page, err := known.Images(row.query)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range page.Items {
			name := strings.TrimSuffix(strings.TrimPrefix(i.Reference, "registry.example/"), ":1")
			got = append(got, name+":"+string(rune('0'+i.Workloads))+"/"+string(rune('0'+i.Pods))+"/"+string(i.Verdict))
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%s: %v, want %s", row.reason, got, row.want)
		}
	}
}
