package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// mirroredEnv has a source of images and two mirrors of it. Its policy wants the
// source's images signed, and names no mirror.
type mirroredEnv struct {
	*env
	near, far *gatetest.Yard
}

func newMirroredEnv(t *testing.T) *mirroredEnv {
	t.Helper()
	r := &mirroredEnv{env: newEnv(t)}
	for _, yard := range []**gatetest.Yard{&r.near, &r.far} {
		server := registrytest.Start(registrytest.Options{})
		t.Cleanup(server.Close)
		*yard = gatetest.New(server, r.Sigstore)
	}
	r.write(t, "policies/policy.yaml", r.policy())
	return r
}

// policy wants every image of the source signed by the key.
func (r *mirroredEnv) policy() string {
	return strings.ReplaceAll(policyText("signed", "Pod", r.key), `"*"`, `"`+r.Registry.Host()+`/*"`)
}

// build makes a signed image at the source.
func (r *mirroredEnv) build(t *testing.T, repository, tag, content string) gatetest.Image {
	t.Helper()
	made := r.Build(repository, tag, content)
	r.sign(t, r.Yard, made)
	return made
}

// sign signs an image where it lies.
func (r *mirroredEnv) sign(t *testing.T, yard *gatetest.Yard, image gatetest.Image) {
	t.Helper()
	if err := yard.SignLegacy(image, verifytest.Claim{Signer: r.key, NoLog: true}, nil); err != nil {
		t.Fatal(err)
	}
}

// copyTo puts an image of the content where a mirror has the repository.
func copyTo(yard *gatetest.Yard, repository, tag, content string) gatetest.Image {
	return yard.Build("hub/"+repository, tag, content)
}

// at is the name that an image has at a mirror: its tag and the digest.
func at(yard *gatetest.Yard, image gatetest.Image) string {
	return yard.Registry.Host() + "/hub/" + image.Repository + image.Name[strings.LastIndexByte(image.Name, ':'):] + "@" + image.Manifest.Digest
}

// pinned is the name that an image has where it was written.
func pinned(image gatetest.Image) string { return image.Name + "@" + image.Manifest.Digest }

// open starts a gateway with a mapping of the source to near and far. The mapping's entry has
// further settings; more are lines of the configuration.
func (r *mirroredEnv) open(t *testing.T, settings string, more ...string) *running {
	t.Helper()
	return r.openTo(t, "{location: "+r.near.Registry.Host()+"/hub}, {location: "+r.far.Registry.Host()+"/hub}", settings, more...)
}

// openTo is open with other targets.
func (r *mirroredEnv) openTo(t *testing.T, targets, settings string, more ...string) *running {
	t.Helper()
	r.write(t, "mirrors/hub.yaml", fmt.Sprintf(`apiVersion: quaymaster.dev/v1alpha1
kind: RegistryMirror
metadata: {name: hub}
spec: {mirrors: [{sources: [%q], targets: [%s]%s}]}
`, r.Registry.Host(), targets, settings))
	return r.start(t, "mirrors: {files: ["+filepath.Join(r.folder, "mirrors")+"]}\n"+strings.Join(more, ""))
}

// object is a Kubernetes object as JSON has it.
type object = map[string]any

// podOf is a Pod with a container for each image.
func podOf(images ...string) object {
	containers := make([]any, len(images))
	for i, image := range images {
		containers[i] = object{"name": fmt.Sprint("c", i), "image": image}
	}
	return object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "app", "namespace": "shop"}, "spec": object{"containers": containers},
	}
}

// with returns a copy of an object after a change.
func with(t *testing.T, o object, change func(o object)) object {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var copied object
	if err := json.Unmarshal(text, &copied); err != nil {
		t.Fatal(err)
	}
	change(copied)
	return copied
}

// reply is the response of an endpoint, and the object that the API server would store.
type reply struct {
	Allowed  bool     `json:"allowed"`
	Patch    []byte   `json:"patch"`
	Warnings []string `json:"warnings"`
	Status   struct {
		Message string `json:"message"`
	} `json:"status"`
	operations []operation
	stored     object
}

// text joins the message and the warnings.
func (a reply) text() string { return a.Status.Message + "\n" + strings.Join(a.Warnings, "\n") }

// images are the texts of the stored object's containers.
func (a reply) images() string {
	containers, _ := a.stored["spec"].(object)["containers"].([]any)
	texts := make([]string, len(containers))
	for i, c := range containers {
		texts[i], _ = c.(object)["image"].(string)
	}
	return strings.Join(texts, " ")
}

// written is the annotation of the original references.
func (a reply) written() string { return writtenIn(a.stored) }

func writtenIn(o object) string {
	annotations, _ := o["metadata"].(object)["annotations"].(object)
	text, _ := annotations["quaymaster.dev/written"].(string)
	return text
}

// create asks the mutating endpoint about a new object.
func (r *running) create(t *testing.T, o object) reply { return r.admit(t, "/mutate", o, nil, nil) }

// update asks the mutating endpoint about a change.
func (r *running) update(t *testing.T, o, old object) reply {
	return r.admit(t, "/mutate", o, old, nil)
}

// validate asks the validating endpoint about a stored object.
func (r *running) validate(t *testing.T, o, old object) reply {
	return r.admit(t, "/validate", o, old, nil)
}

// admit sends a review after change has edited its request; old is nil at creation.
func (r *running) admit(t *testing.T, endpoint string, o, old object, change func(request object)) reply {
	t.Helper()
	kind, _ := o["kind"].(string)
	review := reviewOf(kind, "shop", "")
	request := review["request"].(object)
	request["object"] = o
	if old != nil {
		request["operation"], request["oldObject"] = "UPDATE", old
	}
	if change != nil {
		change(request)
	}
	status, text := post(t, r.client, "https://"+r.address+endpoint+"?timeout=10s", "", review)
	var said struct {
		Response reply `json:"response"`
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil || status != http.StatusOK {
		t.Fatalf("HTTP %d: %s: %v", status, text, err)
	}
	a := said.Response
	a.stored, a.operations = patchedBy(t, o, a.Patch)
	return a
}

// patchedBy applies a patch as the API server does.
func patchedBy(t *testing.T, o object, patch []byte) (stored object, operations []operation) {
	t.Helper()
	stored = with(t, o, func(object) {})
	if len(patch) == 0 {
		return stored, nil
	}
	if err := json.Unmarshal(patch, &operations); err != nil {
		t.Fatalf("%v in %s", err, patch)
	}
	for _, op := range operations {
		if _, err := op.in(stored, strings.Split(op.Path, "/")[1:]); err != nil {
			t.Fatalf("%s %s: %v in %s", op.Op, op.Path, err, patch)
		}
	}
	return stored, operations
}

// operation is one of RFC 6902: test, add, replace or remove.
type operation struct {
	Op, Path string
	Value    any
}

// in returns a value after the operation at the path in it.
func (op operation) in(value any, path []string) (any, error) {
	if len(path) == 0 {
		if op.Op == "test" && !reflect.DeepEqual(value, op.Value) {
			return nil, fmt.Errorf("found %v", value)
		}
		if op.Op == "test" {
			return value, nil
		}
		return op.Value, nil
	}
	name := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[0])
	switch parent := value.(type) {
	case object:
		inner, is := parent[name]
		if !is && (len(path) > 1 || op.Op != "add") {
			return nil, fmt.Errorf("there is no %q", name)
		}
		if len(path) == 1 && op.Op == "remove" {
			delete(parent, name)
			return parent, nil
		}
		after, err := op.in(inner, path[1:])
		parent[name] = after
		return parent, err
	case []any:
		if name == "-" && op.Op == "add" {
			return append(parent, op.Value), nil
		}
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(parent) || len(path) == 1 && op.Op != "test" && op.Op != "replace" {
			return nil, fmt.Errorf("cannot %s %q", op.Op, name)
		}
		parent[i], err = op.in(parent[i], path[1:])
		return parent, err
	}
	return nil, fmt.Errorf("%q is in no object", name)
}

// admitted reports an answer that is not the one that is wanted: allowed with these
// images, or refused with this word if images is empty.
func admitted(t *testing.T, reason string, a reply, images, word string) {
	t.Helper()
	switch {
	case images == "" && (a.Allowed || !strings.Contains(a.Status.Message, word)):
		t.Errorf("%s: allowed %t, want it refused with %q: %s", reason, a.Allowed, word, a.text())
	case images != "" && (!a.Allowed || a.images() != images):
		t.Errorf("%s: allowed %t, images %s, want %s: %s", reason, a.Allowed, a.images(), images, a.text())
	case images != "" && !strings.Contains(a.text(), word):
		t.Errorf("%s: got %q, want %q", reason, a.text(), word)
	}
}

// same reports two objects that differ.
func same(t *testing.T, reason string, got, want object) {
	t.Helper()
	if !reflect.DeepEqual(with(t, got, func(object) {}), with(t, want, func(object) {})) {
		t.Errorf("%s: got %v\nwant %v", reason, got, want)
	}
}

// count returns how often a registry was asked for a manifest.
func count(yard *gatetest.Yard, repository, reference string) (n int) {
	for _, q := range yard.Registry.Requests() {
		if q.Kind == registrytest.Manifest && q.Repository == repository && (reference == "" || q.Reference == reference) {
			n++
		}
	}
	return n
}
