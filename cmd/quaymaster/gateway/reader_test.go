package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/carried"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/lookups"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/offline"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/bundle"
	"github.com/quaymaster/quaymaster/workload"
)

// bundled carries documents through a bundle, and returns a gate that rests on it and
// nothing else, with what its policies ask for that no bundle has.
func bundled(t *testing.T, settings, documents string) (*offline.Reader, *gate.Gate, []string) {
	t.Helper()
	objects, err := workload.Read(strings.NewReader(documents), "all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	contents := &bundle.Contents{}
	var gaps []string
	for i, object := range objects {
		text, err := json.Marshal(object.Content())
		if err != nil {
			t.Fatal(err)
		}
		item := bundle.Item{Name: fmt.Sprintf("%06d", i), Source: object.Source(), Text: text}
		if engine.IsResource(object) {
			contents.Resources = append(contents.Resources, item)
			continue
		}
		contents.Policies = append(contents.Policies, item)
		gaps = append(gaps, bundle.Find(object.Content(), bundle.Defaults{}).Gaps...)
	}
	c, err := config.Parse([]byte(head + settings))
	if err != nil {
		t.Fatal(err)
	}
	contents.Gateway, err = carried.Bundled(c)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := bundle.Write(&file, contents); err != nil {
		t.Fatal(err)
	}
	read, err := bundle.Open(&file, image.Digest{})
	if err != nil {
		t.Fatal(err)
	}
	c, err = config.Parse(read.Gateway)
	if err != nil {
		t.Fatal(err)
	}
	found := &offline.Material{}
	for _, item := range read.Policies {
		found.Policies = append(found.Policies, offline.Written{Key: item.Name, Source: item.Source, Text: item.Text})
	}
	for _, item := range read.Resources {
		object, err := workload.Parse(item.Text)
		if err != nil {
			t.Fatal(err)
		}
		found.Resources = append(found.Resources, object)
	}
	reader, err := offline.NewReader(t.Context(), c, offline.ReaderOptions{Version: "test", Material: found})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	return reader, gateOf(t, reader), gaps
}

// gateOf makes a gate on what a reader read, and on registries that are asked as by the
// gateway.
func gateOf(t *testing.T, reader *offline.Reader) *gate.Gate {
	t.Helper()
	store, err := newTrust(config.Trust{}, reader.Keys())
	if err != nil {
		t.Fatal(err)
	}
	prover, err := engine.NewProver(store.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	client, err := newClient(config.Registries{}, func(string, int, time.Duration) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	chain, err := newKeychain(config.Registries{}, client, lookups.Lookups{Credentials: reader.Secrets()}, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	reader.Images().Use(gate.Config{Registries: registries{chain}})
	made, err := gate.New(gate.Config{
		Registries: registries{chain}, State: gate.Fixed{Policies: reader.Policies(), Prover: prover, Mirrors: reader.Mirrors()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// allows asks both endpoints as the API server does at CREATE.
func (r *running) allows(t *testing.T, recorded, o object) (bool, string) {
	t.Helper()
	mutated := r.review(t, "/mutate", recorded, o, nil)
	if !mutated.Allowed {
		return false, mutated.Status.Message
	}
	validated := r.review(t, "/validate", recorded, applied(t, o, mutated.Patch), nil)
	return validated.Allowed, validated.Status.Message
}

// decides asks a reader's gate about the same.
func decides(t *testing.T, reader *offline.Reader, made *gate.Gate, recorded, o object) gate.Outcome {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := workload.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var who struct {
		Username, UID string
		Groups        []string
		Extra         json.RawMessage
	}
	said, _ := json.Marshal(recorded["request"].(object)["userInfo"])
	if err := json.Unmarshal(said, &who); err != nil {
		t.Fatal(err)
	}
	request := gate.Request{Object: parsed, Subject: policy.Subject{User: policy.User{Name: who.Username, UID: who.UID, Groups: who.Groups, Extra: who.Extra}}}
	carried.AsAdmitted(reader.Configuration(), &request)
	reader.Describe(t.Context(), &request)
	return made.Decide(t.Context(), request)
}

// TestBundleAgrees: a bundle decides about an object as the admission endpoints of a gateway with
// the same documents, for each of the project's original policies and for our twins of them.
func TestBundleAgrees(t *testing.T) {
	reviews := filepath.Join("..", "..", "..", "webhook", "admission", "testdata", "reviews")
	samples := os.Getenv("QUAYMASTER_SAMPLES")
	for _, s := range seeds() {
		t.Run(s.ours+"/ours", func(t *testing.T) {
			s.agrees(t, reviews, filepath.Join("testdata", "seeds", s.ours+".yaml"))
		})
		t.Run(s.ours+"/samples", func(t *testing.T) {
			if samples == "" {
				t.Skip("QUAYMASTER_SAMPLES is not set")
			}
			var files []string
			for _, name := range s.files {
				files = append(files, filepath.Join(samples, "seed-policies", name))
			}
			s.agrees(t, reviews, files...)
		})
	}
}

func (s seed) agrees(t *testing.T, reviews string, files ...string) {
	checker := httptest.NewServer(http.HandlerFunc(imageExists))
	t.Cleanup(checker.Close)
	texts := []string{seedNamespaces}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, strings.ReplaceAll(string(text), "http://ecr-image-checker.kube-system:9898", checker.URL))
	}
	documents, host := strings.Join(texts, "\n---\n"), strings.TrimPrefix(checker.URL, "http://")
	r := seedGateway(t, host, documents)
	reader, made, gaps := bundled(t, `policies: {expressions: {httpHosts: ["`+host+`"]}}`, documents)
	recorded := recordedReview(t, reviews, false)
	for _, c := range s.cases {
		if c.old != "" {
			continue // a manifest has no old object
		}
		t.Run(c.reason, func(t *testing.T) {
			o := c.read(t, c.object, recorded)
			allowed, why := r.allows(t, recorded, o)
			outcome := decides(t, reader, made, recorded, o)
			switch {
			case outcome.Result == gate.Error && len(gaps) > 0:
				t.Logf("a bundle lacks its lookups, as reported when it is made: %q", gaps)
			case outcome.Result == gate.Error && len(outcome.Reasons) > 0 && strings.Contains(outcome.Reasons[0].Message, "request.userInfo"):
				t.Log("a manifest has no requester, so a rule that writes them down is indeterminate")
			case outcome.Result.Admits() != allowed:
				t.Errorf("the bundle's result is %s, and the gateway allows: %t: %s\n%+v", outcome.Result, allowed, why, outcome.Reasons)
			}
		})
	}
}

// TestBundleAgreesOnImages: the same for the public policies that verify images, about
// images that are signed and that are not, in a registry in place of theirs.
func TestBundleAgreesOnImages(t *testing.T) {
	samples := os.Getenv("QUAYMASTER_SAMPLES")
	if samples == "" {
		t.Skip("QUAYMASTER_SAMPLES is not set")
	}
	d := newEnv(t)
	names := []string{d.signed.Name, d.unsigned.Name}
	for _, repository := range []string{"kyverno/test-verify-image", "fluxcd/source-controller", "myorg/myrepo"} {
		names = append(names, d.Build(repository, "signed", repository).Name)
	}
	recorded := recordedReview(t, filepath.Join("..", "..", "..", "webhook", "admission", "testdata", "reviews"), false)
	err := filepath.WalkDir(filepath.Join(samples, "verify-images"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		documents := seedNamespaces + "\n---\n" + strings.ReplaceAll(string(text), "ghcr.io/", d.Registry.Host()+"/")
		if !strings.Contains(documents, "Policy") {
			return nil
		}
		t.Run(strings.TrimPrefix(path, samples), func(t *testing.T) {
			own := *d
			own.folder = t.TempDir()
			own.write(t, "policies/all.yaml", documents)
			r := own.start(t, "")
			reader, made, _ := bundled(t, "ages: {tag: 1ms, none: 1ms}\n", documents)
			for _, written := range names {
				pod := object{
					"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "p", "namespace": "shop"},
					"spec": object{"containers": []any{object{"name": "a", "image": written}}},
				}
				allowed, why := r.allows(t, recorded, pod)
				if outcome := decides(t, reader, made, recorded, pod); outcome.Result.Admits() != allowed {
					t.Errorf("%s: the bundle's result is %s, and the gateway allows: %t: %s", written, outcome.Result, allowed, why)
				}
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
