package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gateway/calls"
	"github.com/quaymaster/quaymaster/gateway/rollout"
	"github.com/quaymaster/quaymaster/internal/testkit"
)

// seed is a public policy and its documented behaviour. Files are below
// QUAYMASTER_SAMPLES/seed-policies; our own policy with the same behaviour is in testdata/seeds,
// and has to pass the same cases.
type seed struct {
	ours  string
	files []string
	cases []seedCase
}

// seedCase is a request and what becomes of it. Objects are YAML; those without a
// namespace are in shop.
type seedCase struct {
	reason  string
	object  string
	old     string // with it, the request is an update
	want    string // a subset of the resulting object; empty: the request's object, and no patch
	stopped string // the mutating endpoint's message; empty: it admits
	refused string // the validating endpoint's message; empty: it admits
	audited string // the log line of a rule that only audits
}

// TestSeeds: each of the project's original policies behaves as documented, at both endpoints of a
// running gateway.
func TestSeeds(t *testing.T) {
	for _, s := range seeds() {
		own := filepath.Join("testdata", "seeds", s.ours+".yaml")
		t.Run(s.ours+"/ours", func(t *testing.T) {
			s.try(t, filepath.Join("..", "..", "..", "webhook", "admission", "testdata", "reviews"), own)
		})
		t.Run(s.ours+"/samples", func(t *testing.T) {
			samples := os.Getenv("QUAYMASTER_SAMPLES")
			if samples == "" {
				t.Skip("QUAYMASTER_SAMPLES is not set")
			}
			var files []string
			for _, name := range s.files {
				files = append(files, filepath.Join(samples, "seed-policies", name))
			}
			s.try(t, filepath.Join(samples, "admission-reviews"), files...)
		})
	}
}

// try sends the cases to a gateway with the policies of files, in the shape of the
// reviews in a folder.
func (s seed) try(t *testing.T, reviews string, files ...string) {
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
	r := seedGateway(t, strings.TrimPrefix(checker.URL, "http://"), strings.Join(texts, "\n---\n"))
	for _, c := range s.cases {
		t.Run(c.reason, func(t *testing.T) { c.try(t, r, reviews) })
	}
}

func (c seedCase) try(t *testing.T, r *running, reviews string) {
	recorded := recordedReview(t, reviews, c.old != "")
	object, old := c.read(t, c.object, recorded), c.read(t, c.old, recorded)
	mutated := r.review(t, "/mutate", recorded, object, old)
	if mutated.Allowed != (c.stopped == "") || !strings.Contains(mutated.Status.Message, c.stopped) {
		t.Fatalf("the mutating endpoint: allowed %t, want refused %q: %s", mutated.Allowed, c.stopped, mutated.text())
	}
	if c.stopped != "" {
		return
	}
	stored := applied(t, object, mutated.Patch)
	switch {
	case c.want == "" && len(mutated.Patch) > 0:
		t.Errorf("it was changed: %s", mutated.Patch)
	case c.want != "":
		if err := includes(stored, c.read(t, c.want, recorded), "object"); err != nil {
			t.Errorf("%v\npatch: %s", err, mutated.Patch)
		}
	}
	again := r.review(t, "/mutate", recorded, stored, old)
	if !reflect.DeepEqual(applied(t, stored, again.Patch), stored) {
		t.Errorf("asked again, it changes once more: %s", again.Patch)
	}
	before := len(r.log.String())
	validated := r.review(t, "/validate", recorded, stored, old)
	if validated.Allowed != (c.refused == "") || !strings.Contains(validated.Status.Message, c.refused) {
		t.Errorf("the validating endpoint: allowed %t, want refused %q: %s", validated.Allowed, c.refused, validated.text())
	}
	if lines := r.log.String()[before:]; !strings.Contains(lines, c.audited) || c.audited == "" && strings.Contains(lines, "=fail") != (c.refused != "") {
		t.Errorf("want %q in the log:\n%s", c.audited, lines)
	}
	if len(validated.Warnings) > 0 {
		t.Errorf("it warns: %q", validated.Warnings)
	}
}

// recordedReview is what an API server sent for a pod: at its creation or an update.
func recordedReview(t *testing.T, folder string, update bool) object {
	t.Helper()
	name := "pod-create.json"
	if update {
		name = "pod-update-label.json"
	}
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	var review object
	if err := json.Unmarshal(text, &review); err != nil {
		t.Fatal(err)
	}
	return review
}

// read reads an object, and replaces REQUESTER by the requester of a review as JSON.
func (c seedCase) read(t *testing.T, text string, recorded object) object {
	t.Helper()
	if text == "" {
		return nil
	}
	var o object
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	metadata, _ := o["metadata"].(object)
	if o["kind"] != nil && o["kind"] != "Namespace" && metadata["namespace"] == nil {
		metadata["namespace"] = "shop"
	}
	who, err := json.Marshal(recorded["request"].(object)["userInfo"])
	if err != nil {
		t.Fatal(err)
	}
	annotations, _ := metadata["annotations"].(object)
	for name, value := range annotations {
		annotations[name] = strings.ReplaceAll(value.(string), "REQUESTER", string(who))
	}
	return o
}

// review sends a recorded review with its object exchanged; old is nil at a creation.
func (r *running) review(t *testing.T, endpoint string, recorded, object, old object) reply {
	t.Helper()
	group, version, found := strings.Cut(object["apiVersion"].(string), "/")
	if !found {
		group, version = "", group
	}
	name, metadata := object["kind"].(string), object["metadata"].(map[string]any)
	kind := map[string]any{"group": group, "version": version, "kind": name}
	resource := map[string]any{"group": group, "version": version, "resource": strings.ToLower(name) + "s"}
	review := with(t, recorded, func(review map[string]any) {
		request := review["request"].(map[string]any)
		request["kind"], request["requestKind"], request["resource"], request["requestResource"] = kind, kind, resource, resource
		request["name"], request["namespace"], request["object"] = metadata["name"], metadata["namespace"], object
		delete(request, "oldObject")
		if old != nil {
			request["oldObject"] = old
		}
	})
	status, body := post(t, r.client, "https://"+r.address+endpoint+"?timeout=10s", "", review)
	var said struct {
		Response reply `json:"response"`
	}
	if err := json.Unmarshal([]byte(body), &said); err != nil || status != http.StatusOK {
		t.Fatalf("HTTP %d: %s: %v", status, body, err)
	}
	return said.Response
}

// seedGateway runs a gateway with policies. Their calls reach the service at a host and an API
// server that serves the namespaces among the documents.
func seedGateway(t *testing.T, host, documents string) *running {
	t.Helper()
	d := &env{folder: t.TempDir()}
	d.write(t, "policies/all.yaml", documents)
	c, err := config.Parse([]byte(head + strings.ReplaceAll(`standalone: true
policies: {folders: [FOLDER/policies], expressions: {httpHosts: ["`+host+`"]}}
`, "FOLDER", d.folder)))
	if err != nil {
		t.Fatal(err)
	}
	c.Listen.Address, c.Listen.Plain, c.Listen.DrainDelay = "127.0.0.1:0", "127.0.0.1:0", config.Duration(time.Millisecond)
	ctx, stop := context.WithCancel(t.Context())
	r := &running{log: &testkit.Log{}, stop: stop, ended: make(chan error, 1), client: &http.Client{}}
	open := make(chan string, 1)
	g, err := newAssembly(ctx, c, Options{Log: r.log, Version: "test", Replica: "test", Listening: func(address, _ string) { open <- address }})
	if err != nil {
		t.Fatal(err)
	}
	g.reachAPI(t, documents)
	go func() { r.ended <- g.run(ctx) }()
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		stop()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
		g.close()
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	select {
	case r.address = <-open:
	case <-time.After(patience):
		t.Fatalf("the endpoints are not active after %s:\n%s", patience, r.log)
	}
	r.client = clientOf(g.certificates.Bundle())
	return r
}

// reachAPI lets rules call an API server that knows namespaces alone.
func (g *assembly) reachAPI(t *testing.T, texts string) {
	t.Helper()
	known := map[string]map[string]any{}
	for _, text := range strings.Split(texts, "\n---\n") {
		var document map[string]any
		if yaml.Unmarshal([]byte(text), &document) == nil && document["kind"] == "Namespace" {
			known["/api/v1/namespaces/"+document["metadata"].(map[string]any)["name"].(string)] = document
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if found, ok := known[r.URL.Path]; ok && r.Method == http.MethodGet {
			_ = json.NewEncoder(w).Encode(found)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c, user: \"\"}}]\ncurrent-context: c\n", server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := cluster.NewClient(cluster.ClientOptions{Kubeconfig: file, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	compilers, err := engine.NewCompilers(engine.CompilerOptions{
		ConfigMaps: g.around.ConfigMaps, Secrets: g.around.Secrets, Images: &g.documents.Images,
		Caller: calls.Rules{Cluster: client, Services: calls.New(g.configuration.Policies.Expressions.HTTPHosts, engine.GuardedTransport)},
	})
	if err != nil {
		t.Fatal(err)
	}
	g.documents.Policies.Catalog, err = documents.NewCatalog(g.configuration, compilers, rollout.NewEffective(g.configuration.Policies.Audit, g.log))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.documents.Policies.WatchFolders(g.configuration.Policies.Folders, g.around.Files.Consume()); err != nil {
		t.Fatal(err)
	}
}

// imageExists is the service that reports whether a registry has an image: nginx exists in the
// account 000000000000; for secret it fails.
func imageExists(w http.ResponseWriter, r *http.Request) {
	var asked struct{ RepositoryName, ImageTag, RegistryID, Region string }
	text, err := io.ReadAll(r.Body)
	if err = errors.Join(err, json.Unmarshal(text, &asked)); err != nil || r.Method != http.MethodPost || r.URL.Path != "/api/v1/image-exists" || r.Header.Get("Authorization") != "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	if asked.RepositoryName == "secret" {
		http.Error(w, "not today", http.StatusServiceUnavailable)
		return
	}
	exists := asked.RepositoryName == "nginx" && asked.ImageTag == "latest" && asked.RegistryID == "000000000000" && asked.Region == "eu-west-1"
	_, _ = fmt.Fprintf(w, `{"exists": %t}`, exists)
}

// applied returns the object that the API server stores.
func applied(t *testing.T, o object, patch []byte) object {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if len(patch) > 0 {
		decoded, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			t.Fatalf("%v in %s", err, patch)
		}
		text, err = decoded.Apply(text)
		if err != nil {
			t.Fatalf("%v in %s", err, patch)
		}
	}
	var stored object
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	return stored
}

// includes reports what of want is not in got: elements of lists are found by their
// names, and a text that ends with * is the beginning of one.
func includes(got, want any, path string) error {
	switch want := want.(type) {
	case object:
		members, ok := got.(object)
		if !ok {
			return fmt.Errorf("%s is %v, want an object", path, got)
		}
		var errs []error
		for name, value := range want {
			errs = append(errs, includes(members[name], value, path+"."+name))
		}
		return errors.Join(errs...)
	case []any:
		elements, ok := got.([]any)
		if !ok || len(elements) != len(want) {
			return fmt.Errorf("%s is %v, want %d elements", path, got, len(want))
		}
		var errs []error
		for i, value := range want {
			at := i
			if named, ok := value.(object); ok && named["name"] != nil {
				at = slices.IndexFunc(elements, func(e any) bool { o, ok := e.(object); return ok && o["name"] == named["name"] })
			}
			if at < 0 {
				errs = append(errs, fmt.Errorf("%s has no %v", path, value))
				continue
			}
			errs = append(errs, includes(elements[at], value, fmt.Sprintf("%s[%d]", path, at)))
		}
		return errors.Join(errs...)
	}
	prefix, open := strings.CutSuffix(fmt.Sprint(want), "*")
	if text, ok := got.(string); open && ok && strings.HasPrefix(text, prefix) {
		return nil
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%s is %v, want %v", path, got, want)
	}
	return nil
}
