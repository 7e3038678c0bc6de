package gate_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/keychain"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// poisoned is a registry that fails for credentials of a certain content.
type poisoned struct {
	scheme   string // Basic, or Bearer with tokens of its own
	isPublic bool   // anonymous requests see the image
	atToken  bool   // the token service fails, in place of the registry
	status   int    // for the poisoned credential; 0: the connection ends, -1: no answer
}

const (
	goodAuth   = "good:hunter2"
	poisonMark = "poison"
)

// act implements registrytest.Action.
func (p poisoned) act(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		authorization := q.Header.Get("Authorization")
		_, credential, _ := strings.Cut(authorization, " ")
		if plain, err := base64.StdEncoding.DecodeString(credential); err == nil && strings.Contains(string(plain), ":") {
			credential = string(plain)
		}
		isToken := q.URL.Path == "/token"
		if isToken && q.Method == http.MethodPost {
			_ = q.ParseForm()
			credential = q.PostForm.Get("refresh_token")
		}
		isPoison := strings.Contains(credential, poisonMark)
		switch {
		case isPoison && isToken == (p.atToken && p.scheme == "Bearer"):
			p.fail(w, q)
		case isToken && isPoison:
			_, _ = fmt.Fprintf(w, `{"token":%q}`, poisonMark)
		case isToken && credential == goodAuth:
			_, _ = fmt.Fprint(w, `{"token":"good"}`)
		case isToken && credential == "" && p.isPublic:
			_, _ = fmt.Fprint(w, `{"token":"anyone"}`)
		case isToken:
			w.WriteHeader(http.StatusUnauthorized)
		case p.isPublic && (p.scheme == "Basic" && authorization == "" || credential == "anyone"),
			credential == goodAuth, credential == "good":
			next.ServeHTTP(w, q)
		default:
			challenge := `Basic realm="test"`
			if p.scheme == "Bearer" {
				challenge = `Bearer realm="http://` + q.Host + `/token",service="test"`
			}
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
}

func (p poisoned) fail(w http.ResponseWriter, q *http.Request) {
	switch p.status {
	case -1:
		<-q.Context().Done()
	case 0:
		if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = connection.Close()
		}
	default:
		w.WriteHeader(p.status)
	}
}

// dockerAuth is an entry as its author may write it.
type dockerAuth map[string]string

var (
	goodEntry   = dockerAuth{"auth": base64.StdEncoding.EncodeToString([]byte(goodAuth))}
	poisonForms = map[string]dockerAuth{
		"a user name and password":       {"username": poisonMark, "password": "x"},
		"a user name of 60 kB":           {"username": poisonMark + strings.Repeat("x", 60_000), "password": "x"},
		"a user name with a line end":    {"username": poisonMark + "\r\nx", "password": "x"},
		"a password with NUL":            {"username": poisonMark, "password": "x\x00y"},
		"a user name alone":              {"username": poisonMark},
		"a password alone":               {"password": poisonMark},
		"an identity token":              {"identitytoken": poisonMark},
		"a registry token":               {"registrytoken": poisonMark},
		"a registry token with line end": {"registrytoken": poisonMark + "\nx"},
		"a registry token with NUL":      {"registrytoken": poisonMark + "\x00"},
		"a registry token of 60 kB":      {"registrytoken": poisonMark + strings.Repeat("x", 60_000)},
		"all at once":                    {"username": poisonMark, "password": "x", "identitytoken": poisonMark, "registrytoken": poisonMark},
	}
)

// pullSecrets are those of one namespace, each with one entry for the host, or with more
// for parts of its path.
type pullSecrets struct {
	host    string
	entries []dockerAuth
}

func (s pullSecrets) PullSecrets(context.Context, string, string) ([]string, error) {
	return []string{"pull"}, nil
}

func (s pullSecrets) Secret(context.Context, string, string) (string, map[string][]byte, error) {
	auths := map[string]dockerAuth{}
	for i, entry := range s.entries {
		auths[s.host+"/app"[:len("/app")-i]] = entry // the narrowest goes first
	}
	body, err := json.Marshal(map[string]any{"auths": auths})
	return "kubernetes.io/dockerconfigjson", map[string][]byte{".dockerconfigjson": body}, err
}

// poisonScene judges images with pull secrets that a pod's author wrote.
type poisonScene struct {
	*env
	unsigned, signed gatetest.Image
	patience         time.Duration // of a decision
}

func newPoisonScene(t *testing.T) *poisonScene {
	t.Helper()
	h := newEnv(t, registrytest.Options{})
	s := &poisonScene{env: h, unsigned: h.Build("app", "unsigned", "unsigned"), signed: h.Build("app", "signed", "signed"), patience: 20 * time.Second}
	must(0, legacy(h, s.signed))(t)
	return s
}

func (s *poisonScene) decide(t *testing.T, p poisoned, entries []dockerAuth, failOpen bool, name string) gate.Outcome {
	t.Helper()
	s.Registry.SetFaults(registrytest.Fault{Do: p.act})
	client := must(registry.New(registry.Config{}, registry.WithBackoff(time.Millisecond)))(t)
	defer client.Close()
	secrets := pullSecrets{host: s.Registry.Host(), entries: entries}
	chain := must(keychain.New(keychain.Config{Registry: client, Secrets: secrets, Accounts: secrets}))(t)
	g := s.gateAt(t, chained{chain}, &policy.Policy{Kind: "Test", Name: "test", Settings: policy.Settings{FailOpen: failOpen}, Rules: []policy.Rule{signedBy(s.key)}})
	ctx, cancel := context.WithTimeout(t.Context(), s.patience)
	defer cancel()
	return g.Decide(ctx, must(gate.ForImage(name, "default"))(t))
}

// check expects that the unsigned image is never admitted, by tag and by digest, and that
// the signed one is where any credential, or none, sees it.
func (s *poisonScene) check(t *testing.T, p poisoned, position string, entries []dockerAuth) {
	t.Helper()
	isVisible := p.isPublic || strings.Contains(position, "good")
	for _, name := range []string{s.unsigned.Name, s.unsigned.ByDigest()} {
		out := s.decide(t, p, entries, true, name)
		if out.Result != gate.Deny && (isVisible || out.Result == gate.Allow) {
			t.Errorf("%+v, %s: %s: %+v", p, position, out.Result, slices.Concat(out.Verdicts[0].Reasons, out.Verdicts[0].Warnings))
		}
	}
	for _, failOpen := range []bool{true, false} {
		out := s.decide(t, p, entries, failOpen, s.signed.Name)
		if (out.Result == gate.Allow) != isVisible {
			t.Errorf("%+v, %s, signed, Ignore %t: %s: %+v", p, position, failOpen, out.Result, out.Verdicts[0].Reasons)
		}
	}
}

func positions(entry dockerAuth) map[string][]dockerAuth {
	return map[string][]dockerAuth{
		"alone": {entry}, "before the good one": {entry, goodEntry}, "after the good one": {goodEntry, entry},
		"twice, around the good one": {entry, goodEntry, {"username": poisonMark + "2", "password": "x"}},
		"before another":             {entry, {"username": poisonMark + "2", "password": "x"}},
	}
}

// together runs cases concurrently, each with a scene of its own: most of them wait.
func together(t *testing.T, cases []func(*poisonScene)) {
	t.Helper()
	var group sync.WaitGroup
	for _, run := range cases {
		s := newPoisonScene(t)
		group.Go(func() { run(s) })
	}
	group.Wait()
}

// TestAPoisonedPullSecretDoesNotChooseTheFailureSetting: a pod's author writes entries with which
// the registry or its token service fails. Whatever the failure, the other entries and anonymous
// requests are judged as without it, and an image that none of them can see is not admitted as if
// the registry were down.
func TestAPoisonedPullSecretDoesNotChooseTheFailureSetting(t *testing.T) {
	t.Parallel()
	var cases []func(*poisonScene)
	for _, scheme := range []poisoned{{scheme: "Basic"}, {scheme: "Bearer"}, {scheme: "Bearer", atToken: true}} {
		for _, scheme.isPublic = range []bool{true, false} {
			cases = append(cases, func(s *poisonScene) {
				p := scheme
				for _, p.status = range []int{0, 400, 401, 404, 405, 408, 410, 431, 500, 501, 503} {
					for position, entries := range positions(poisonForms["a user name and password"]) {
						s.check(t, p, position, entries)
					}
				}
				for form, entry := range poisonForms {
					for _, p.status = range []int{405, 500} {
						s.check(t, p, form+", alone", []dockerAuth{entry})
						s.check(t, p, form+", before the good one", []dockerAuth{entry, goodEntry})
					}
				}
			})
		}
	}
	together(t, cases)
}

// TestAPullSecretThatIsLimited: the rate limit that one entry has reached is not that of the
// others, nor the registry's.
func TestAPullSecretThatIsLimited(t *testing.T) {
	t.Parallel()
	var cases []func(*poisonScene)
	for _, p := range []poisoned{
		{scheme: "Basic", status: 429}, {scheme: "Basic", isPublic: true, status: 429}, {scheme: "Bearer", isPublic: true, status: 429},
		{scheme: "Bearer", atToken: true, status: 429}, {scheme: "Bearer", atToken: true, isPublic: true, status: 429},
	} {
		for position, entries := range positions(poisonForms["a user name and password"]) {
			cases = append(cases, func(s *poisonScene) { s.check(t, p, position, entries) })
		}
	}
	together(t, cases)
}

// TestAPullSecretThatHangs takes a part of the time, and leaves enough. Where no other entry sees
// a private image, that the time passes does not show that the registry is down.
func TestAPullSecretThatHangs(t *testing.T) {
	t.Parallel()
	var cases []func(*poisonScene)
	for _, p := range []poisoned{
		{scheme: "Basic", status: -1}, {scheme: "Bearer", status: -1}, {scheme: "Bearer", isPublic: true, status: -1},
		{scheme: "Bearer", atToken: true, status: -1}, {scheme: "Bearer", atToken: true, isPublic: true, status: -1},
	} {
		for position, entries := range positions(poisonForms["a user name and password"]) {
			want, code := gate.Deny, policy.Unsigned
			if !p.isPublic && !strings.Contains(position, "good") {
				want, code = gate.Error, policy.AccessRefused
			}
			cases = append(cases, func(s *poisonScene) {
				s.patience = 5 * time.Second
				if out := s.decide(t, p, entries, true, s.signed.Name); (out.Result == gate.Allow) != (want == gate.Deny) {
					t.Errorf("%+v/%s: signed: %s: %+v", p, position, out.Result, out.Verdicts[0].Reasons)
				}
				for _, name := range []string{s.unsigned.Name, s.unsigned.ByDigest()} {
					out := s.decide(t, p, entries, true, name)
					hasCode := slices.ContainsFunc(out.Verdicts[0].Reasons, func(r policy.Reason) bool { return r.Code == code })
					if out.Result != want || !hasCode {
						t.Errorf("%+v/%s: %s: %s, want %s %s: %+v", p, position, name, out.Result, want, code, slices.Concat(out.Verdicts[0].Reasons, out.Verdicts[0].Warnings))
					}
				}
			})
		}
	}
	together(t, cases)
}

// TestManyPullSecretsThatHang: the last of them has not been tried when the time passes.
func TestManyPullSecretsThatHang(t *testing.T) {
	t.Parallel()
	s := newPoisonScene(t)
	s.patience = 3 * time.Second
	var entries []dockerAuth
	for range len("/app") {
		entries = append(entries, dockerAuth{"username": poisonMark + strconv.Itoa(len(entries)), "password": "x"})
	}
	out := s.decide(t, poisoned{scheme: "Basic", status: -1}, entries, true, s.unsigned.Name)
	if out.Result != gate.Error || out.Verdicts[0].Reasons[0].Code != policy.AccessRefused {
		t.Errorf("%s: %+v", out.Result, out.Verdicts[0])
	}
}

// TestARegistryThatIsDownIsSilence: with pull secrets, too, whether or not tokens are cached.
func TestARegistryThatIsDownIsSilence(t *testing.T) {
	s := newPoisonScene(t)
	down := func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	}
	noTokens := poisoned{scheme: "Bearer"}.act
	for _, test := range []struct {
		reason  string
		do      registrytest.Action
		entries []dockerAuth
		want    gate.Result
	}{
		{"all of it", down, []dockerAuth{goodEntry}, gate.Allow},
		{"all of it, with entries that it would refuse", down, []dockerAuth{poisonForms["a user name of 60 kB"], goodEntry}, gate.Allow},
		{"its token service", func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if q.URL.Path == "/token" {
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				noTokens(next).ServeHTTP(w, q)
			})
		}, []dockerAuth{goodEntry}, gate.Allow},
		{"its front answers, so that the entry may be the cause", poisoned{scheme: "Basic", status: 503}.act, []dockerAuth{poisonForms["a user name and password"]}, gate.Error},
	} {
		s.Registry.SetFaults(registrytest.Fault{Do: test.do})
		client := must(registry.New(registry.Config{}, registry.WithBackoff(time.Millisecond)))(t)
		secrets := pullSecrets{host: s.Registry.Host(), entries: test.entries}
		chain := must(keychain.New(keychain.Config{Registry: client, Secrets: secrets, Accounts: secrets}))(t)
		for failOpen, want := range map[bool]gate.Result{true: test.want, false: gate.Error} {
			g := s.gateAt(t, chained{chain}, &policy.Policy{Kind: "Test", Name: "test", Settings: policy.Settings{FailOpen: failOpen}, Rules: []policy.Rule{signedBy(s.key)}})
			if out := decide(t, g, s.unsigned.Name); out.Result != want {
				t.Errorf("%s, Ignore %t: %s, want %s: %+v", test.reason, failOpen, out.Result, want, out.Verdicts)
			}
		}
		client.Close()
	}
	if image.ByCredential(nil) {
		t.Error("no failure has a cause")
	}
}
