package attacks

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/manifests"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/slsa"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// object is JSON in the making.
type object = map[string]any

// Times for the whole of an answer: ample for an object that is admitted, and short for an
// answer that never comes.
const (
	ample = 30 * time.Second
	short = 700 * time.Millisecond
)

// namespace is where everything is to run.
const namespace = "shop"

// scene is where one attack is played at one endpoint.
type scene struct {
	*gatetest.Yard
	*crowd
	t        testing.TB
	endpoint endpoint

	refusals, admissions int
	patience             time.Duration
	clock                func() time.Time
	documents            []string          // policies
	words                map[string][]byte // beside those of every policy
	broken               bool              // the case is about policies that are
	exceptionsFrom       []string          // namespaces
	checkout             string            // the folder that the program runs in; empty: one without files
	environment, more    []string          // of the program, beside its own
	labels               map[string]string
	noLabels             error // namespaces cannot be read
	trusted              []byte
	mirrors              []string           // RegistryMirrors
	builds               slsa.Terms         // required of every image
	caller               rulecontext.Caller // nil: policies make no calls
	globals              engine.GlobalReader

	config     registry.Config
	registries gate.Registries // nil: a client of config
	prover     func(gate.Prover) gate.Prover
	ages       gate.Ages

	last   gate.Outcome // of the library
	listed bool         // lists of referrers do not end
	made   *wired       // once something was asked
}

// wired is the engine of the library and of admission.
type wired struct {
	gate    *gate.Gate
	state   *gate.Current
	catalog *catalog.Catalog
	server  *httptest.Server
}

func newScene(t testing.TB, c *crowd, at endpoint) *scene {
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	return &scene{
		Yard: gatetest.New(server, c.sigstore), crowd: c, t: t, endpoint: at, patience: ample, clock: time.Now,
		labels: map[string]string{"kubernetes.io/metadata.name": namespace}, trusted: c.sigstore.TrustedRoot(),
		ages: gate.Ages{Tag: time.Nanosecond, None: time.Nanosecond},
	}
}

// hostile replaces the registry, before anything is built in it.
func (s *scene) hostile(options registrytest.Options) *registrytest.Server {
	server := registrytest.Start(options)
	s.t.Cleanup(server.Close)
	s.Yard = gatetest.New(server, s.sigstore)
	return server
}

// elsewhere is a second registry.
func (s *scene) elsewhere(options registrytest.Options) *registrytest.Server {
	server := registrytest.Start(options)
	s.t.Cleanup(server.Close)
	return server
}

// check ends the case where its own preparations fail.
func (s *scene) check(errs ...error) {
	s.t.Helper()
	for _, err := range errs {
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// fill puts the registry and the signers into a text.
func (s *scene) fill(text string) string {
	quoted := func(text []byte) string { return string(testkit.Must(json.Marshal(string(text)))(s.t)) }
	var words []string
	for word, means := range s.words {
		words = append(words, word, quoted(means))
	}
	return strings.NewReplacer(append(words, // in one pass: PEM has words in it, too
		"HOST", s.Registry.Host(), "KEY", quoted(s.key.PublicPEM()), "SECOND", quoted(s.second.PublicPEM()),
		"STRANGER", quoted(s.stranger.PublicPEM()), "NOTARY", quoted(s.notary.RootPEM()), "ROOT", quoted(s.sigstore.CA.RootPEM()),
		"ISSUER", quoted([]byte(issuer)), "SUBJECT", quoted([]byte(releaser)), "SCAN", quoted([]byte(scanType)),
	)...).Replace(text)
}

// policies are asked from now on, in place of those before.
func (s *scene) policies(texts ...string) {
	s.documents = nil
	for _, text := range texts {
		s.documents = append(s.documents, s.fill(text))
	}
	if s.made != nil {
		s.load(s.made.catalog, s.made.state)
	}
}

// misbehaves replaces the faults of the registry.
func (s *scene) misbehaves(rows ...registrytest.Fault) { s.Registry.SetFaults(rows...) }

// wire makes the engine as the gateway does.
func (s *scene) wire() *wired {
	if s.made != nil {
		return s.made
	}
	t := s.t
	resources, images := engine.NewResources(), &engine.RuleImages{}
	with := testkit.Must(engine.NewCompilers(engine.CompilerOptions{
		ConfigMaps: resources, Secrets: engine.FileSecrets{Resources: resources}, Resources: engine.FileObjects{ConfigMaps: resources}, Now: s.clock,
		Caller: s.caller, Globals: s.globals, Images: images, Manifests: manifests.Options{Signatures: images},
	}))(t)
	s.made = &wired{state: &gate.Current{}, catalog: testkit.Must(catalog.New(catalog.Options{
		Dialects: with.Dialects(), Exceptions: with.Exceptions(), ExceptionNamespaces: s.exceptionsFrom, Overrides: with.Overrides(), Beside: s.required,
	}))(t)}
	s.load(s.made.catalog, s.made.state)
	s.reflect(s.made.state)
	s.trust(s.trusted)
	if s.registries == nil {
		client := testkit.Must(registry.New(s.config, registry.WithBackoff(time.Millisecond)))(t)
		t.Cleanup(client.Close)
		s.registries = opened{client}
	}
	config := gate.Config{Registries: s.registries, State: s.made.state}
	images.Use(config)
	s.made.gate = testkit.Must(gate.New(config,
		gate.WithTimeout(s.patience), gate.WithAges(s.ages), gate.WithClock(s.clock)))(t)
	return s.made
}

func (s *scene) load(to *catalog.Catalog, state *gate.Current) {
	var all []catalog.Document
	for i, text := range s.documents {
		all = append(all, catalog.Document{Key: fmt.Sprint("folder/", i), Text: []byte(text), Source: "policy.yaml"})
	}
	snapshot := to.Replace("folder/", all)
	for _, entry := range snapshot.Entries {
		if entry.State != catalog.Ours && !s.broken {
			s.t.Fatalf("the policy is %s: %s\n%s", entry.State, entry.Why, s.documents)
		}
	}
	state.ReplacePolicies(snapshot.Set)
}

// trust is believed from now on.
func (s *scene) trust(root []byte) {
	s.trusted = root
	if s.made == nil {
		return
	}
	s.believe(testkit.Must(trust.New(trust.Options{TrustedRoot: root}))(s.t).Snapshot())
}

// believe replaces the engine's trust snapshot.
func (s *scene) believe(snapshot *trust.Snapshot) {
	s.t.Helper()
	prover := testkit.Must(engine.NewProver(snapshot))(s.t)
	if s.prover != nil {
		prover = s.prover(prover)
	}
	s.made.state.ReplaceProver(prover)
}

// reflect has the engine know the mirrors.
func (s *scene) reflect(state *gate.Current) {
	s.t.Helper()
	var all []*mirror.Document
	for _, text := range s.mirrors {
		all = append(all, testkit.Must(mirror.ParseFile([]byte(s.fill(text)), "mirrors.yaml"))(s.t)...)
	}
	if len(all) > 0 {
		state.ReplaceMirrors(testkit.Must(mirror.NewSet(all...))(s.t))
	}
}

// again empties the caches, and sets the patience of the next request.
func (s *scene) again(patience time.Duration) {
	if s.made != nil && s.made.server != nil {
		s.made.server.Close()
	}
	s.made, s.patience = nil, patience
}

// refused asks for what must not run, for one of the codes if any are given.
func (s *scene) refused(asked any, codes ...policy.Code) {
	s.t.Helper()
	s.refusals++
	a := s.ask(asked)
	named := func(code policy.Code) bool {
		// An endpoint with a timeout shorter than the gate's returns its own text.
		return strings.Contains(a.said, string(code)) || code == policy.TimedOut && strings.Contains(a.said, "the evaluation timed out")
	}
	switch {
	case a.allowed:
		s.t.Errorf("it is admitted, and must not be: %s", a.said)
	case len(codes) > 0 && !slices.ContainsFunc(codes, named):
		s.t.Errorf("it is refused, but not for %v: %s", codes, a.said)
	}
}

// admitted asks for what must run, and returns the images that would.
func (s *scene) admitted(asked any) []string {
	s.t.Helper()
	s.admissions++
	a := s.ask(asked)
	if !a.allowed {
		s.t.Errorf("it is refused, and must not be: %s", a.said)
	}
	return a.images
}

// runs is admitted, and holds which digest would run.
func (s *scene) runs(asked any, image gatetest.Image) {
	s.t.Helper()
	got := s.admitted(asked)
	if len(got) != 1 || !strings.HasSuffix(got[0], "@"+image.Manifest.Digest) {
		s.t.Errorf("%v would run, want the digest that was proved: %s", got, image.Manifest.Digest)
	}
}

// never asks for what may be refused, and may run as one image alone.
func (s *scene) never(asked any, but gatetest.Image) {
	s.t.Helper()
	a := s.ask(asked)
	if a.allowed && (len(a.images) != 1 || !strings.HasSuffix(a.images[0], "@"+but.Manifest.Digest)) {
		s.t.Errorf("%v would run, and only %s may: %s", a.images, but.Manifest.Digest, a.said)
	}
	s.refusals++
}

// pod runs images in containers c0, c1 and so on.
func pod(images ...string) object {
	containers := make([]any, len(images))
	for i, image := range images {
		containers[i] = object{"name": fmt.Sprintf("c%d", i), "image": image}
	}
	return object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "web", "namespace": namespace}, "spec": object{"containers": containers},
	}
}

// with returns a copy of an object with members of its metadata or spec set.
func with(of object, part string, members object) object {
	out := maps.Clone(of)
	inner, _ := of[part].(object)
	inner = maps.Clone(inner)
	maps.Copy(inner, members)
	out[part] = inner
	return out
}

// built makes an image in the registry, below shop.
func (s *scene) built(name string) gatetest.Image { return s.Build("shop/"+name, "1", name) }

// signed makes one that is signed by the key, without a log.
func (s *scene) signed(name string) gatetest.Image {
	s.t.Helper()
	image := s.built(name)
	s.check(s.SignLegacy(image, by(s.key), nil))
	return image
}

// by claims without a log.
func by(signer *verifytest.Signer) verifytest.Claim {
	return verifytest.Claim{Signer: signer, NoLog: true}
}
