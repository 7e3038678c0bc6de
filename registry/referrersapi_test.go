package registry_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// askOnce lists the referrers of a digest in the repository.
func askOnce(t *testing.T, client *registry.Client, name string) {
	t.Helper()
	if _, err := client.Referrers(t.Context(), repository(t, name), image.DigestOf([]byte("content")), nil); err != nil {
		t.Fatal(err)
	}
}

// TestTheTagNeverReplacesTheAPI: the referrers tag counts only where the API is missing,
// whether it is requested in parallel or after the API.
func TestTheTagNeverReplacesTheAPI(t *testing.T) {
	const listed, tagged = "listed", "tagged"
	for _, row := range []struct {
		reason   string
		api, tag registrytest.Action
		found    []string
		kind     image.Kind
	}{
		{"the API lists one, the tag another one", nil, nil, []string{listed}, ""},
		{"an empty list of the API is authoritative", registrytest.ForgeReferrers(), nil, nil, ""},
		{"no API: the tag counts", noPath, nil, []string{tagged}, ""},
		{"the API does not have the digest: the tag counts", unknownManifest, nil, []string{tagged}, ""},
		{"no API, and the tag fails", noPath, registrytest.Status(500), nil, image.Unavailable},
		{"no API, and the tag is refused", noPath, registrytest.Status(403), nil, image.Refused},
		{"no API, and no tag", noPath, unknownManifest, nil, ""},
		{"the API fails", registrytest.Status(500), nil, nil, image.Unavailable},
		{"the API refuses", registrytest.Status(403), nil, nil, image.Refused},
		{"the API limits", registrytest.Status(429), nil, nil, image.Unavailable},
		{"the API does not answer in time", registrytest.Hang(), nil, nil, image.Unavailable},
		{"the API ends in the middle", registrytest.Half(), nil, nil, image.Unavailable},
		{"the API lists too many", registrytest.ForgeReferrers(crowd(1001, wantedType)...), nil, nil, image.Bound},
		{"the tag fails where the API answers", nil, registrytest.Status(500), []string{listed}, ""},
		{"the tag hangs where the API answers", nil, registrytest.Hang(), []string{listed}, ""},
		{"the tag lies where the API answers", nil, registrytest.HTML(), []string{listed}, ""},
	} {
		for _, known := range []bool{false, true} {
			t.Run(row.reason+map[bool]string{true: ", of a known host"}[known], func(t *testing.T) {
				server := start(t, registrytest.Options{})
				subject := server.PutImage("app", "v1", "content")
				names := map[string]string{server.PutReferrer("app", subject, wantedType, []byte(listed)).Digest: listed}
				other := server.PutReferrer("app", server.PutImage("app", "v2", "other"), wantedType, []byte(tagged))
				names[other.Digest] = tagged
				tag := strings.Replace(subject.Digest, ":", "-", 1)
				server.PutIndex("app", tag, other)
				client := newClient(t, registry.Config{}, registry.WithTimeout(2*time.Second), registry.WithBackoff(time.Millisecond))
				if known {
					askOnce(t, client, server.Host()+"/seen")
				}
				var faults []registrytest.Fault
				if row.api != nil {
					faults = append(faults, registrytest.Fault{Kind: registrytest.Referrers, Do: row.api})
				}
				if row.tag != nil {
					faults = append(faults, registrytest.Fault{Reference: tag, Do: row.tag})
				}
				server.SetFaults(faults...)
				started := time.Now()
				list, err := client.Referrers(t.Context(), repository(t, server.Host()+"/app"), image.MustParseDigest(subject.Digest), []string{wantedType})
				if kind := image.KindOf(err); kind != row.kind || (err == nil) != (row.kind == "") {
					t.Fatalf("%q, want %q: %v", kind, row.kind, err)
				}
				var found []string
				for _, d := range list {
					if name := names[d.Digest.String()]; name != "" {
						found = append(found, name)
					}
				}
				if !slices.Equal(found, row.found) {
					t.Errorf("%q, want %q", found, row.found)
				}
				if took := time.Since(started); row.found != nil && took > 1500*time.Millisecond {
					t.Errorf("%v: the API's answer waited for the tag's", took)
				}
			})
		}
	}
}

// TestRequestsForReferrers: the tag is requested in parallel until a host is known to have
// the API, and one request is made from then on, on both kinds of registries.
func TestRequestsForReferrers(t *testing.T) {
	type step struct {
		repository       string
		requests, rounds int
	}
	for _, row := range []struct {
		reason  string
		without []string // repositories without the API
		steps   []step
	}{
		{"a host with the API", nil, []step{{"a", 2, 1}, {"a", 1, 1}, {"b", 1, 1}}},
		{"a host without it: known for each repository", []string{"a", "b"}, []step{{"a", 2, 1}, {"a", 1, 1}, {"b", 2, 1}, {"b", 1, 1}}},
		{
			"a host of both kinds: one round but for the first repository that is different",
			[]string{"b", "c"},
			[]step{{"a", 2, 1}, {"b", 2, 2}, {"b", 1, 1}, {"c", 2, 1}, {"a", 2, 1}, {"a", 1, 1}, {"c", 1, 1}, {"d", 2, 1}, {"d", 1, 1}},
		},
	} {
		t.Run(row.reason, func(t *testing.T) {
			server := start(t, registrytest.Options{Delay: 100 * time.Millisecond})
			var faults []registrytest.Fault
			for _, name := range row.without {
				faults = append(faults, registrytest.Fault{Kind: registrytest.Referrers, Repository: name, Do: noPath})
			}
			server.SetFaults(faults...)
			client := newClient(t, registry.Config{})
			for i, step := range row.steps {
				server.Reset()
				askOnce(t, client, server.Host()+"/"+step.repository)
				if n, rounds := server.Count(""), server.Rounds(); n != step.requests || rounds != step.rounds {
					t.Errorf("step %d, %s: %d requests in %d rounds, want %d in %d: %v", i, step.repository, n, rounds, step.requests, step.rounds, server.Requests())
				}
			}
		})
	}
}

// TestTheTagDoesNotWaitForASeat: the request for the tag in parallel takes a free seat or none, and
// is made after the API's where that is missing. So a full host costs no round more.
func TestTheTagDoesNotWaitForASeat(t *testing.T) {
	for _, hasAPI := range []bool{true, false} {
		server := start(t, registrytest.Options{NoReferrers: !hasAPI})
		subject := server.PutImage("app", "v1", "content")
		server.PutReferrer("app", subject, wantedType, []byte("listed"))
		client := newClient(t, registry.Config{}, registry.WithConcurrency(1, 1))
		arrived, release := make(chan struct{}, 1), make(chan struct{})
		server.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Do: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				arrived <- struct{}{}
				<-release
				next.ServeHTTP(w, q)
			})
		}})
		// The API's request of another repository has the only seat.
		held := make(chan struct{})
		go func() {
			defer close(held)
			askOnce(t, client, server.Host()+"/other")
		}()
		<-arrived
		server.Reset()
		found := make(chan int, 1)
		go func() {
			list, err := client.Referrers(t.Context(), repository(t, server.Host()+"/app"), image.MustParseDigest(subject.Digest), []string{wantedType})
			if err != nil {
				t.Error(err)
			}
			found <- len(list)
		}()
		close(release)
		if n := <-found; n != 1 {
			t.Errorf("with the API %t: %d referrers, want 1", hasAPI, n)
		}
		<-held
	}
}
