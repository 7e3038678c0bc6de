package attacks

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/test/peers"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// endpoint is a way to evaluate an image.
type endpoint string

const (
	library     endpoint = "library"
	commandLine endpoint = "command line"
	admitting   endpoint = "admission"
)

// everywhere are all endpoints, webhooks those that remember, and only one of them for what
// exists there alone.
func everywhere() []endpoint     { return []endpoint{library, commandLine, admitting} }
func remembering() []endpoint    { return []endpoint{library, admitting} }
func only(e endpoint) []endpoint { return []endpoint{e} }

// attack is one case.
type attack struct {
	// Name is unique, in words of a file's name.
	Name string
	// The attacker's steps, and the expected result.
	What string
	// Source is an advisory, a peer's issue or a line of what peers get wrong.
	Source    string
	Endpoints []endpoint
	// Play plays it at one endpoint; it must be refused and admitted something.
	Play func(s *scene)
}

// subject is a file of attacks.
type subject struct {
	title   string
	attacks []attack
}

func subjects() []subject {
	return []subject{
		{"False responses of registries", registryAttacks()},
		{"Theft of credentials by registries", credentialAttacks()},
		{"Signatures", signatureAttacks()},
		{"Logs", logAttacks()},
		{"Certificates and timestamps", append(certificateAttacks(), chainAttacks()...)},
		{"Repositories of trust", trustAttacks()},
		{"Attestations", attestationAttacks()},
		{"Provenance", provenanceAttacks()},
		{"Bills of materials and scans", inventoryAttacks()},
		{"Times of signing", ageAttacks()},
		{"References and indexes", referenceAttacks()},
		{"Mirrors", mirrorAttacks()},
		{"Admission", append(admissionAttacks(), objectAttacks()...)},
		{"Policies", slices.Concat(policyAttacks(), callAttacks(), manifestAttacks(), copyAttacks())},
		{"Deletions", cleanupAttacks()},
		{"Policies of the API server", nativeAttacks()},
		{"Files and variables next to the program", checkoutAttacks()},
		{"Cache", memoryAttacks()},
		{"Bounds", boundAttacks()},
	}
}

// crowd has the keys, signers and programs that the cases share; they keep no state.
type crowd struct {
	sigstore, foreign     *verifytest.Sigstore
	key, second, stranger *verifytest.Signer
	release               *verifytest.Signer // a certificate of the sigstore's
	notary, other         *verifytest.Notary
	program               func() *peers.Program
}

func newCrowd(t testing.TB) *crowd {
	t.Helper()
	key := func() *verifytest.Signer { return testkit.Must(verifytest.KeySigner(verifytest.KeyOptions{}))(t) }
	c := &crowd{
		sigstore: testkit.Must(verifytest.New(verifytest.Options{}))(t), foreign: testkit.Must(verifytest.New(verifytest.Options{Name: "foreign"}))(t),
		key: key(), second: key(), stranger: key(),
		notary: testkit.Must(verifytest.NewNotary(verifytest.NotaryOptions{Name: "release"}))(t),
		other:  testkit.Must(verifytest.NewNotary(verifytest.NotaryOptions{Name: "other"}))(t),
	}
	c.release = testkit.Must(c.sigstore.Keyless(identity(nil)))(t)
	c.program = sync.OnceValue(func() *peers.Program { return peers.Quaymaster(t) })
	return c
}

// TestMain plays more cases at once than there are processors: many wait for an answer
// that does not come.
func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		if err := parallel.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	m.Run()
}

// TestAttacks holds what attacks may cost, and plays every case at every endpoint that it
// names.
func TestAttacks(t *testing.T) {
	c := newCrowd(t)
	t.Run("cost", func(t *testing.T) { holdsCosts(t, c) })
	for _, subject := range subjects() {
		for _, attack := range subject.attacks {
			for _, at := range attack.Endpoints {
				t.Run(fmt.Sprintf("%s/%s", attack.Name, at), func(t *testing.T) {
					t.Parallel()
					s := newScene(t, c, at)
					attack.Play(s)
					if s.refusals == 0 || s.admissions == 0 {
						t.Errorf("%d were refused and %d admitted: a case has both", s.refusals, s.admissions)
					}
				})
			}
		}
	}
}

// leastAttacks is how many cases there are at least.
const leastAttacks = 80

// TestAttacksAreNamed checks that names and descriptions are set and unique.
func TestAttacksAreNamed(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	var names []string
	for _, subject := range subjects() {
		for _, a := range subject.attacks {
			names = append(names, a.Name)
			if !name.MatchString(a.Name) || !strings.HasSuffix(a.What, ".") || a.Source == "" || len(a.Endpoints) == 0 || strings.Contains(a.What+a.Source, "|") {
				t.Errorf("%q: want a name of small letters, sentences, a source and endpoints: %+v", a.Name, a)
			}
		}
	}
	if len(names) < leastAttacks {
		t.Errorf("%d cases, want %d at least", len(names), leastAttacks)
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Error("two cases have one name")
	}
}

// TestPage holds that docs/engineering/attacks.md lists the cases as they are.
func TestPage(t *testing.T) {
	docs := filepath.Join(testkit.Must(peers.Checkout())(t), "docs", "engineering")
	path := filepath.Join(docs, "attacks.md")
	want, cases := page()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s differs from the cases; run: go test ./attacks -run TestPage -update (%v)", path, err)
	}
	survived, err := os.ReadFile(filepath.Join(docs, "reliability.md"))
	if row := fmt.Sprintf("| %d attacks that are known", cases); err != nil || !strings.Contains(string(survived), row) {
		t.Errorf("docs/engineering/reliability.md has no row %q (%v)", row, err)
	}
}
