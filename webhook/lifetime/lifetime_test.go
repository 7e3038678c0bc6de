package lifetime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/ttl"
	"github.com/quaymaster/quaymaster/webhook/lifetime"
)

// authorizer lets alice delete.
type authorizer struct {
	err   error
	asked []lifetime.Deletion
	users []policy.User
}

func (a *authorizer) MayDelete(_ context.Context, user policy.User, what lifetime.Deletion) (bool, error) {
	a.asked, a.users = append(a.asked, what), append(a.users, user)
	return user.Name == "alice", a.err
}

func now() time.Time { return time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC) }

func keeper(t testing.TB) *record.Keeper {
	t.Helper()
	k, err := record.New([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func handler(t testing.TB, a *authorizer) *lifetime.Handler {
	t.Helper()
	h, err := lifetime.New(lifetime.Config{Authorizer: a, Grants: keeper(t), Annotation: record.LifetimeAnnotation, Log: slog.New(slog.DiscardHandler), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// configMap returns an object, with a label unless the value is empty, and with an annotation
// unless that is.
func configMap(value, annotation string) map[string]any {
	metadata := map[string]any{"namespace": "shop", "name": "a", "uid": "u1", "creationTimestamp": "2030-01-31T12:00:00Z"}
	if value != "" {
		metadata["labels"] = map[string]any{ttl.Label: value}
	}
	if annotation != "" {
		metadata["annotations"] = map[string]any{"other": "x", record.LifetimeAnnotation: annotation}
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": map[string]any{"k": "v"}}
}

// answer is a response of the endpoint.
type answer struct {
	Allowed  bool
	Warnings []string
	Status   struct{ Message string }
	Patch    []byte
}

func review(t testing.TB, h http.Handler, user, operation string, object, old any) answer {
	t.Helper()
	body, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
		"uid": "r1", "operation": operation, "namespace": "shop", "name": "a",
		"resource": map[string]any{"group": "", "version": "v1", "resource": "configmaps"},
		"userInfo": map[string]any{"username": user, "groups": []string{"dev"}, "extra": map[string]any{"scopes": []string{"all"}}},
		"object":   object, "oldObject": old,
	}})
	if err != nil {
		t.Fatal(err)
	}
	w := post(h, string(body))
	var got struct {
		APIVersion, Kind string
		Response         struct {
			UID string
			answer
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || got.APIVersion != "admission.k8s.io/v1" || got.Response.UID != "r1" {
		t.Fatalf("%d %s, %v", w.Code, w.Body, err)
	}
	return got.Response.answer
}

func post(h http.Handler, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/ttl", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestReview: each request that is admitted has a twin that is refused.
func TestReview(t *testing.T) {
	for _, row := range []struct {
		reason, user, operation string
		object, old             any
		err                     error
		want                    string // allowed, denied or error; with a "grant" or "removal"
		asked                   int
	}{
		{"set at creation by a user that may delete", "alice", "CREATE", configMap("1h", ""), nil, nil, "allowed grant", 1},
		{"set at creation by another", "mallory", "CREATE", configMap("1h", ""), nil, nil, "denied", 1},
		{"permission that could not be verified", "alice", "CREATE", configMap("1h", ""), nil, errors.New("no answer"), "error", 1},
		{"set later by a user that may delete", "alice", "UPDATE", configMap("1h", ""), configMap("", ""), nil, "allowed grant", 1},
		{"set later by another", "mallory", "UPDATE", configMap("1h", ""), configMap("", ""), nil, "denied", 1},
		{"changed by another", "mallory", "UPDATE", configMap("1m", "g"), configMap("1h", "g"), nil, "denied", 1},
		{"changed by a user that may delete", "alice", "UPDATE", configMap("1m", "g"), configMap("1h", "g"), nil, "allowed grant", 1},
		{"removed by another", "mallory", "UPDATE", configMap("", "g"), configMap("1h", "g"), nil, "allowed removal", 0},
		{"unchanged", "mallory", "UPDATE", configMap("1h", "g"), configMap("1h", "g"), nil, "allowed", 0},
		{"unchanged, with another grant", "mallory", "UPDATE", configMap("1h", "forged"), configMap("1h", "g"), nil, "allowed restored", 0},
		{"unchanged, with a grant where there was none", "mallory", "UPDATE", configMap("1h", "forged"), configMap("1h", ""), nil, "allowed removal", 0},
		{"unchanged, without its grant", "mallory", "UPDATE", configMap("1h", ""), configMap("1h", "g"), nil, "allowed restored", 0},
		{"a grant of a user's own at creation", "alice", "CREATE", configMap("1h", "forged"), nil, nil, "allowed grant", 1},
		{"a grant without a label", "mallory", "CREATE", configMap("", "forged"), nil, nil, "allowed removal", 0},
		{"a label that cannot be read", "mallory", "CREATE", configMap("soon", "forged"), nil, nil, "allowed removal warning", 0},
	} {
		t.Run(row.reason, func(t *testing.T) {
			a := &authorizer{err: row.err}
			got := review(t, handler(t, a), row.user, row.operation, row.object, row.old)
			text := describe(t, got, row.object)
			if text != row.want || len(a.asked) != row.asked {
				t.Errorf("%q after %d questions, want %q after %d; %s", text, len(a.asked), row.want, row.asked, got.Status.Message)
			}
			if row.asked > 0 {
				want := lifetime.Deletion{Version: "v1", Resource: "configmaps", Namespace: "shop", Name: "a"}
				if a.asked[0] != want || string(a.users[0].Extra) != `{"scopes":["all"]}` || a.users[0].Groups[0] != "dev" {
					t.Errorf("asked about %+v for %+v", a.asked[0], a.users[0])
				}
			}
		})
	}
}

// describe sums up an answer, and checks a grant with the object that it makes.
func describe(t testing.TB, got answer, object any) string {
	t.Helper()
	text := "allowed"
	switch {
	case !got.Allowed && strings.Contains(got.Status.Message, "could not be verified"):
		text = "error"
	case !got.Allowed:
		text = "denied"
	}
	var patch []struct {
		Op, Path string
		Value    any
	}
	if len(got.Patch) > 0 {
		if err := json.Unmarshal(got.Patch, &patch); err != nil || len(patch) != 1 {
			t.Fatalf("%s, %v", got.Patch, err)
		}
		value := patch[0].Value
		if members, ok := value.(map[string]any); ok {
			value = members[record.LifetimeAnnotation]
		}
		switch {
		case patch[0].Op == "remove":
			text += " removal"
		case value == "g":
			text += " restored"
		default:
			stored, _ := object.(map[string]any)
			metadata, _ := stored["metadata"].(map[string]any)
			metadata["annotations"] = map[string]any{record.LifetimeAnnotation: value}
			if by, err := keeper(t).ReadLifetime(stored); err != nil || by != "alice" {
				t.Errorf("the grant is of %q, %v", by, err)
			}
			text += " grant"
		}
	}
	if len(got.Warnings) > 0 {
		text += " warning"
	}
	return text
}

// TestGeneratedName: an object without a name yet needs the permission for any name.
func TestGeneratedName(t *testing.T) {
	object := configMap("1h", "")
	metadata, _ := object["metadata"].(map[string]any)
	delete(metadata, "name")
	delete(metadata, "uid")
	metadata["generateName"] = "a-"
	a := &authorizer{}
	h := handler(t, a)
	body, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
		"uid": "r1", "operation": "CREATE", "namespace": "shop", "resource": map[string]any{"version": "v1", "resource": "configmaps"},
		"userInfo": map[string]any{"username": "alice"}, "object": object,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if w := post(h, string(body)); !strings.Contains(w.Body.String(), `"allowed":true`) || a.asked[0].Name != "" || a.users[0].Extra != nil {
		t.Errorf("%s, asked %+v", w.Body, a.asked)
	}
	if w := post(h, strings.Replace(string(body), "alice", "mallory", 1)); !strings.Contains(w.Body.String(), `"allowed":false`) {
		t.Errorf("%s", w.Body)
	}
}

// TestRequests that are no reviews.
func TestRequests(t *testing.T) {
	h := handler(t, &authorizer{})
	for reason, body := range map[string]string{
		"no JSON":           "x",
		"no request":        `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`,
		"no uid":            `{"apiVersion":"admission.k8s.io/v1","request":{}}`,
		"another version":   `{"apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"r1"}}`,
		"labels of no text": `{"apiVersion":"admission.k8s.io/v1","request":{"uid":"r1","object":{"metadata":{"labels":{"a":1}}}}}`,
		"a large body":      `{"apiVersion":"` + strings.Repeat("a", 8<<20) + `"}`,
	} {
		if w := post(h, body); w.Code < 400 || w.Code > 499 {
			t.Errorf("%s: %d", reason, w.Code)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ttl", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
}

// FuzzReview: no body makes the handler panic, or admit a new label of a user that may not delete.
func FuzzReview(f *testing.F) {
	f.Add(`{"apiVersion":"admission.k8s.io/v1","request":{"uid":"r1","operation":"CREATE","userInfo":{"username":"mallory"},"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"cleanup.kyverno.io/ttl":"1h"}}}}}`)
	f.Add(`{"apiVersion":"admission.k8s.io/v1","request":{"uid":"r1","object":null,"oldObject":null}}`)
	h := handler(f, &authorizer{err: errors.New("unknown")})
	f.Fuzz(func(t *testing.T, body string) {
		w := post(h, body)
		if strings.Contains(w.Body.String(), `\"by\"`) {
			t.Errorf("a grant: %s", w.Body)
		}
	})
}

func ExampleNew() {
	_, err := lifetime.New(lifetime.Config{})
	fmt.Println(err)
	// Output: lifetime: Authorizer, Grants, Annotation, Log and Now are required
}
