package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
)

func keeper(t testing.TB, fill byte) *record.Keeper {
	t.Helper()
	k, err := record.New(bytes.Repeat([]byte{fill}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// made is when objects of the tests are made, and asked for.
const made = "2027-01-15T08:00:00Z"

func asked(t testing.TB) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, made)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func object(name, generateName string, annotations map[string]any) map[string]any {
	metadata := map[string]any{"annotations": annotations, "creationTimestamp": made}
	if name != "" {
		metadata["name"] = name
	}
	if generateName != "" {
		metadata["generateName"] = generateName
	}
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
}

func TestRequester(t *testing.T) {
	k := keeper(t, 1)
	alice := policy.User{Name: "alice", Groups: []string{"dev"}, Roles: []string{"a:b"}, ClusterRoles: []string{"edit"}, RolesKnown: true}
	plain := policy.User{Name: "bob"}
	written := func(user policy.User, o map[string]any) string {
		text, err := k.Requester(o, user, asked(t))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	of := written(alice, object("team", "", nil))
	for name, test := range map[string]struct {
		object map[string]any
		want   policy.User
		err    error
		by     *record.Keeper
	}{
		"the requester":              {object: object("team", "", map[string]any{record.RequesterAnnotation: of}), want: alice},
		"without known roles":        {object: object("team", "", map[string]any{record.RequesterAnnotation: written(plain, object("team", "", nil))}), want: plain},
		"by a name that was made up": {object: object("team-x1", "team-", map[string]any{record.RequesterAnnotation: written(alice, object("", "team-", nil))}), want: alice},
		"nobody":                     {object: object("team", "", nil), err: record.ErrNone},
		"of another object":          {object: object("other", "", map[string]any{record.RequesterAnnotation: of}), err: record.ErrForged},
		"of another prefix":          {object: object("other-x1", "team-", map[string]any{record.RequesterAnnotation: written(alice, object("", "team-", nil))}), err: record.ErrForged},
		"of no prefix any more":      {object: object("team-x1", "", map[string]any{record.RequesterAnnotation: written(alice, object("", "team-", nil))}), err: record.ErrForged},
		"another user":               {object: object("team", "", map[string]any{record.RequesterAnnotation: strings.ReplaceAll(of, "alice", "admin")}), err: record.ErrForged},
		"another group":              {object: object("team", "", map[string]any{record.RequesterAnnotation: strings.ReplaceAll(of, "dev", "ops")}), err: record.ErrForged},
		"without its code":           {object: object("team", "", map[string]any{record.RequesterAnnotation: `{"username":"admin"}`}), err: record.ErrForged},
		"no JSON":                    {object: object("team", "", map[string]any{record.RequesterAnnotation: "admin"}), err: record.ErrForged},
		"no text":                    {object: object("team", "", map[string]any{record.RequesterAnnotation: 1.0}), err: record.ErrForged},
		"under another key":          {object: object("team", "", map[string]any{record.RequesterAnnotation: of}), by: keeper(t, 2), err: record.ErrForged},
		"an origin":                  {object: object("team", "", map[string]any{record.RequesterAnnotation: mustOrigin(t, k)}), err: record.ErrForged},
	} {
		t.Run(name, func(t *testing.T) {
			by := k
			if test.by != nil {
				by = test.by
			}
			got, err := by.ReadRequester(test.object)
			if !errors.Is(err, test.err) || !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v, %v; want %+v, %v", got, err, test.want, test.err)
			}
		})
	}
}

// TestBinding: a record is of one object, in whatever version, and of a document that can be
// read as a whole.
func TestBinding(t *testing.T) {
	k := keeper(t, 1)
	in := func(apiVersion, kind, namespace, text string) map[string]any {
		o := object("team", "", map[string]any{record.RequesterAnnotation: text, record.OriginAnnotation: text})
		o["apiVersion"], o["kind"] = apiVersion, kind
		o["metadata"].(map[string]any)["namespace"] = namespace
		return o
	}
	core, grouped := in("v1", "Kind", "a", ""), in("example.com/v1", "Kind", "a", "")
	padded := func(bytes int) func(string) string {
		return func(text string) string { return text + strings.Repeat(" ", bytes-len(text)) }
	}
	for _, c := range []struct {
		reason                      string
		object                      map[string]any
		apiVersion, kind, namespace string
		change                      func(string) string
		err                         error
	}{
		{"where it was written", core, "v1", "Kind", "a", nil, nil},
		{"in another version", core, "v2", "Kind", "a", nil, nil},
		{"in a group", core, "v1/v1", "Kind", "a", nil, record.ErrForged},
		{"of another kind", core, "v1", "Other", "a", nil, record.ErrForged},
		{"in another namespace", core, "v1", "Kind", "b", nil, record.ErrForged},
		{"in its group", grouped, "example.com/v1", "Kind", "a", nil, nil},
		{"in another version of it", grouped, "example.com/v2", "Kind", "a", nil, nil},
		{"in another group", grouped, "example.org/v1", "Kind", "a", nil, record.ErrForged},
		{"in no group", grouped, "v1", "Kind", "a", nil, record.ErrForged},
		{"as long as may be", core, "v1", "Kind", "a", padded(64 << 10), nil},
		{"a byte longer", core, "v1", "Kind", "a", padded(64<<10 + 1), record.ErrForged},
		{"with a field that cannot be read", core, "v1", "Kind", "a", func(text string) string {
			return strings.NewReplacer(`"username"`, `"bound":7,"username"`, `"policy"`, `"orphan":7,"policy"`).Replace(text)
		}, record.ErrForged},
	} {
		requester, err1 := k.Requester(c.object, policy.User{Name: "bob"}, asked(t))
		origin, err2 := k.Origin(c.object, record.Origin{Policy: "ClusterPolicy/p", Rule: "r", Depth: 1})
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			requester, origin = c.change(requester), c.change(origin)
		}
		if user, err := k.ReadRequester(in(c.apiVersion, c.kind, c.namespace, requester)); !errors.Is(err, c.err) || (user.Name == "bob") != (err == nil) {
			t.Errorf("%s: a requester: %+v, %v", c.reason, user, err)
		}
		if o, err := k.ReadOrigin(in(c.apiVersion, c.kind, c.namespace, origin)); !errors.Is(err, c.err) || (o.Rule == "r") != (err == nil) {
			t.Errorf("%s: an origin: %+v, %v", c.reason, o, err)
		}
	}
}

// TestLongestRecord: the very last byte that is written, and one more.
func TestLongestRecord(t *testing.T) {
	k := keeper(t, 1)
	team := object("team", "", nil)
	short, err := k.Requester(team, policy.User{}, asked(t))
	if err != nil {
		t.Fatal(err)
	}
	most := 64<<10 - len(short)
	text, err := k.Requester(team, policy.User{Name: strings.Repeat("a", most)}, asked(t))
	if err != nil || len(text) != 64<<10 {
		t.Errorf("as much as may be: %d bytes, %v", len(text), err)
	}
	if text, err := k.Requester(team, policy.User{Name: strings.Repeat("a", most+1)}, asked(t)); err == nil || text != "" {
		t.Errorf("a byte more: %d bytes", len(text))
	}
}

// TestARecordEndsWithItsObject: one that is made again under its name, or under a name of
// the same prefix, has not its record, in whatever way that came into it.
func TestARecordEndsWithItsObject(t *testing.T) {
	k := keeper(t, 1)
	for kind, of := range map[string][2]map[string]any{
		"a name":   {object("team", "", nil), object("team", "", nil)},
		"a prefix": {object("", "team-", nil), object("team-x2", "team-", nil)},
	} {
		text, err := k.Requester(of[0], policy.User{Name: "admin"}, asked(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			reason string
			made   any
			err    error
		}{
			{"at once", asked(t).Format(time.RFC3339), nil},
			{"by a clock that is behind", asked(t).Add(-2 * time.Minute).Format(time.RFC3339), nil},
			{"after other webhooks took their time", asked(t).Add(2 * time.Minute).Format(time.RFC3339), nil},
			{"later", asked(t).Add(2*time.Minute + time.Second).Format(time.RFC3339), record.ErrForged},
			{"much later", asked(t).Add(24 * time.Hour).Format(time.RFC3339), record.ErrForged},
			{"before", asked(t).Add(-2*time.Minute - time.Second).Format(time.RFC3339), record.ErrForged},
			{"at no time", nil, record.ErrForged},
			{"at a time that is none", "yesterday", record.ErrForged},
		} {
			again := of[1]
			again["metadata"].(map[string]any)["creationTimestamp"] = c.made
			again["metadata"].(map[string]any)["annotations"] = map[string]any{record.RequesterAnnotation: text}
			if user, err := k.ReadRequester(again); !errors.Is(err, c.err) || (user.Name == "admin") != (c.err == nil) {
				t.Errorf("%s, made %s: %+v, %v", kind, c.reason, user, err)
			}
		}
		later := strings.Replace(text, `"asked":`, `"asked":1`, 1)
		of[1]["metadata"].(map[string]any)["annotations"] = map[string]any{record.RequesterAnnotation: later}
		if _, err := k.ReadRequester(of[1]); !errors.Is(err, record.ErrForged) {
			t.Errorf("%s: another time is believed", kind)
		}
	}
}

func mustOrigin(t *testing.T, k *record.Keeper) string {
	t.Helper()
	text, err := k.Origin(object("team", "", nil), record.Origin{Policy: "ClusterPolicy/p", Rule: "r", Trigger: record.Trigger{Name: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestOrigin(t *testing.T) {
	k := keeper(t, 1)
	origin := record.Origin{Policy: "ClusterPolicy/p", Rule: "r", Trigger: record.Trigger{APIVersion: "v1", Kind: "Pod", Name: "x", UID: "u"}, Synchronize: true, Depth: 1}
	text, err := k.Origin(object("made", "", nil), origin)
	if err != nil {
		t.Fatal(err)
	}
	in := func(name, value string) map[string]any {
		return object(name, "", map[string]any{record.OriginAnnotation: value})
	}
	for name, test := range map[string]struct {
		object map[string]any
		err    error
	}{
		"as it was written":      {in("made", text), nil},
		"in another object":      {in("other", text), record.ErrForged},
		"of another trigger":     {in("made", strings.ReplaceAll(text, `"u"`, `"v"`)), record.ErrForged},
		"of a rule that orphans": {in("made", strings.ReplaceAll(text, `"synchronize":true`, `"synchronize":true,"orphan":true`)), record.ErrForged},
		"none":                   {object("made", "", nil), record.ErrNone},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := k.ReadOrigin(test.object)
			if !errors.Is(err, test.err) || err == nil && got != origin {
				t.Errorf("%+v, %v; want %v", got, err, test.err)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	if _, err := record.New(make([]byte, 31)); err == nil {
		t.Error("a short key is taken")
	}
	k := keeper(t, 1)
	if _, err := k.Requester(object("", "", nil), policy.User{Name: "a"}, asked(t)); err == nil {
		t.Error("an object without a name is recorded")
	}
	if _, err := k.Requester(object("team", "", nil), policy.User{Name: strings.Repeat("a", 64<<10)}, asked(t)); err == nil {
		t.Error("a record without bound is written")
	}
}

// FuzzRead: whatever stands in an annotation that the gateway did not write is no
// record.
func FuzzRead(f *testing.F) {
	k := keeper(f, 1)
	f.Add(`{"username":"admin","code":"AAAA"}`)
	f.Add(`{"policy":"ClusterPolicy/p","rule":"r","trigger":{},"depth":1,"code":""}`)
	f.Fuzz(func(t *testing.T, text string) {
		o := object("team", "", map[string]any{record.RequesterAnnotation: text, record.OriginAnnotation: text})
		if user, err := k.ReadRequester(o); err == nil {
			t.Errorf("%q is read as a record of %v", text, user)
		}
		if origin, err := k.ReadOrigin(o); err == nil {
			t.Errorf("%q is read as a record of %v", text, origin)
		}
	})
}

func ExampleKeeper_Requester() {
	k, err := record.New(make([]byte, 32))
	if err != nil {
		fmt.Println(err)
		return
	}
	namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team-a"}}
	now := time.Now()
	text, err := k.Requester(namespace, policy.User{Name: "alice"}, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	metadata := namespace["metadata"].(map[string]any)
	metadata["annotations"], metadata["creationTimestamp"] = map[string]any{record.RequesterAnnotation: text}, now.UTC().Format(time.RFC3339)
	user, err := k.ReadRequester(namespace)
	fmt.Println(user.Name, err)
	// Output: alice <nil>
}
