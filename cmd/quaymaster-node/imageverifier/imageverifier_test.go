package imageverifier_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster-node/imageverifier"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

const (
	name      = "registry.test/shop/app:v1"
	digest    = "sha256:98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4"
	other     = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	mediaType = "application/vnd.oci.descriptor.v1+json"
	index     = "application/vnd.oci.image.index.v1+json"
)

func descriptor(mediaType, digest string, size int) string {
	return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d,"annotations":{"a":"b"},"futureMember":1}`+"\n", mediaType, digest, size)
}

func args(name, digest, mediaType string) []string {
	return []string{"-name", name, "-digest", digest, "-stdin-media-type", mediaType}
}

func TestRead(t *testing.T) {
	good := descriptor(index, digest, 2048)
	for _, row := range []struct {
		reason string
		args   []string
		stdin  string
		image  string // empty: refused
	}{
		{"as containerd asks", args(name, digest, mediaType), good, name + "@" + digest},
		{"in another order", []string{"-stdin-media-type", mediaType, "-digest", digest, "-name", name}, good, name + "@" + digest},
		{"by digest", args("registry.test/shop/app@"+digest, digest, mediaType), good, "registry.test/shop/app@" + digest},
		{"by tag and digest", args(name+"@"+digest, digest, mediaType), good, name + "@" + digest},
		{"a short name", args("nginx", digest, mediaType), good, "nginx@" + digest},
		{"a name by another digest", args("registry.test/shop/app@"+other, digest, mediaType), good, ""},
		{"no arguments", nil, good, ""},
		{"a flag is missing", args(name, digest, mediaType)[:4], good, ""},
		{"a value is missing", args(name, digest, mediaType)[:5], good, ""},
		{"an empty value", args("", digest, mediaType), good, ""},
		{"an unknown flag", append(args(name, digest, mediaType), "-platform", "linux/amd64"), good, ""},
		{"an argument more", append(args(name, digest, mediaType), "more"), good, ""},
		{"a flag twice", append(args(name, digest, mediaType), "-name", name), good, ""},
		{"two hyphens", append([]string{"--name", name}, args(name, digest, mediaType)[2:]...), good, ""},
		{"another media type", args(name, digest, "application/vnd.oci.descriptor.v2+json"), good, ""},
		{"a name that is none", args("UPPER CASE", digest, mediaType), good, ""},
		{"a digest that is none", args(name, "sha256:98ea", mediaType), good, ""},
		{"another algorithm", args(name, "md5:98ea6e4f216f2fb4b69fff9b3a44842c", mediaType), good, ""},
		{"a descriptor of another digest", args(name, digest, mediaType), descriptor(index, other, 2048), ""},
		{"one without a media type", args(name, digest, mediaType), descriptor("", digest, 2048), ""},
		{"one without a size", args(name, digest, mediaType), descriptor(index, digest, 0), ""},
		{"one of a negative size", args(name, digest, mediaType), descriptor(index, digest, -1), ""},
		{"a duplicate digest", args(name, digest, mediaType), `{"digest":"` + other + `",` + good[1:], ""},
		{"two descriptors", args(name, digest, mediaType), good + good, ""},
		{"half of one", args(name, digest, mediaType), good[:30], ""},
		{"none", args(name, digest, mediaType), "", ""},
		{"null", args(name, digest, mediaType), "null", ""},
		{"one without end", args(name, digest, mediaType), strings.Repeat(" ", 1<<20) + good, ""},
		{"the twin that is just not too long", args(name, digest, mediaType), strings.Repeat(" ", 1<<20-len(good)) + good, name + "@" + digest},
	} {
		q, err := imageverifier.Read(row.args, strings.NewReader(row.stdin))
		if q.Image != row.image || (err != nil) != (row.image == "") {
			t.Errorf("%s: %q, %v", row.reason, q.Image, err)
		}
		if err == nil && (q.Digest.String() != digest || q.Ref.Digest() != q.Digest) {
			t.Errorf("%s: about %s", row.reason, q.Ref)
		}
	}
	if !imageverifier.IsAsked(args(name, digest, mediaType)) || imageverifier.IsAsked([]string{"verify", "-name"}) || imageverifier.IsAsked(nil) {
		t.Error("containerd's arguments are recognised by the first")
	}
}

func question(t testing.TB) imageverifier.Question {
	t.Helper()
	q, err := imageverifier.Read(args(name, digest, mediaType), strings.NewReader(descriptor(index, digest, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// record is what report writes of an image that is allowed; change may be nil.
func record(t testing.TB, change func(o *gate.Outcome)) map[string]any {
	t.Helper()
	ref := image.MustParse(name + "@" + digest)
	o := gate.Outcome{
		Subject: &policy.Subject{Kind: "Pod", Version: "v1", Name: "image"}, Result: gate.Allow,
		Verdicts: []gate.Verdict{{
			Image: policy.Image{Ref: ref, Container: "image"}, Result: gate.Allow,
			Reasons:   []policy.Reason{{Code: policy.Verified, Message: "signed by a key"}},
			Decisions: []policy.Decision{{Check: &policy.Check{Policy: &policy.Policy{Kind: "ClusterPolicy", Name: "signed"}}, Result: policy.Pass}},
		}},
	}
	if change != nil {
		change(&o)
	}
	var text strings.Builder
	if err := report.JSON(&text, []gate.Outcome{o}); err != nil {
		t.Fatal(err)
	}
	var r map[string]any
	if err := json.Unmarshal([]byte(text.String()), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestJudge(t *testing.T) {
	type object = map[string]any
	item := func(r object) object { return r["items"].([]any)[0].(object) }
	img := func(r object) object { return item(r)["images"].([]any)[0].(object) }
	for _, row := range []struct {
		reason  string
		outcome func(*gate.Outcome)
		change  func(object)
		require bool
		allowed bool
		says    string // of a verdict
		fails   bool
	}{
		{reason: "allowed", allowed: true, says: "allowed: verified: signed by a key"},
		{reason: "allowed, where a policy must match", require: true, allowed: true},
		{reason: "no policy matches it", outcome: func(o *gate.Outcome) { o.Verdicts[0].Decisions = nil }, allowed: true},
		{reason: "none does, and one must", outcome: func(o *gate.Outcome) { o.Verdicts[0].Decisions = nil }, require: true, says: "requireMatch"},
		{reason: "denied", outcome: func(o *gate.Outcome) {
			o.Result, o.Verdicts[0].Result = gate.Deny, gate.Deny
			o.Verdicts[0].Reasons = []policy.Reason{{Code: policy.Unsigned, Message: "no signature"}}
		}, says: "denied: unsigned: no signature"},
		{reason: "could not be verified", outcome: func(o *gate.Outcome) { o.Result, o.Verdicts[0].Result = gate.Error, gate.Error }, says: "could not be verified"},
		{reason: "the object is denied and the image is not", outcome: func(o *gate.Outcome) {
			o.Result, o.Reasons = gate.Error, []policy.Reason{{Code: policy.PolicyError, Message: "a rule could not be evaluated"}}
		}, says: "a rule could not be evaluated"},
		{reason: "the image is denied and the object is not", change: func(r object) { img(r)["result"] = "deny" }, says: "denied"},
		{reason: "an answer of another day", change: func(r object) { img(r)["result"] = "maybe" }, says: "not allowed"},
		{reason: "no answer", change: func(r object) { delete(item(r), "result") }, says: "not allowed"},
		{reason: "a denial without images", change: func(r object) { item(r)["result"] = "error"; item(r)["images"] = []any{} }, says: "could not"},
		{reason: "a member that is new", change: func(r object) { img(r)["new"] = true }, allowed: true},
		{reason: "another version", change: func(r object) { r["apiVersion"] = "quaymaster.dev/v2" }, fails: true},
		{reason: "another kind", change: func(r object) { r["kind"] = "Error" }, fails: true},
		{reason: "no items", change: func(r object) { r["items"] = []any{} }, fails: true},
		{reason: "two items", change: func(r object) { r["items"] = []any{item(r), item(r)} }, fails: true},
		{reason: "two images", change: func(r object) { item(r)["images"] = []any{img(r), img(r)} }, fails: true},
		{reason: "allowed without images", change: func(r object) { item(r)["images"] = []any{} }, fails: true},
		{reason: "another image", change: func(r object) { img(r)["written"] = name }, fails: true},
		{reason: "another repository", change: func(r object) { img(r)["reference"] = "evil.test/shop/app:v1@" + digest }, fails: true},
		{reason: "a reference of another digest", change: func(r object) { img(r)["reference"] = name + "@" + other }, fails: true},
		{reason: "a reference without one", change: func(r object) { img(r)["reference"] = name }, fails: true},
		{reason: "no reference", change: func(r object) { delete(img(r), "reference") }, fails: true},
		{reason: "another digest was proved", change: func(r object) { img(r)["digest"] = other }, fails: true},
		{reason: "the digest is a number", change: func(r object) { img(r)["digest"] = 1 }, fails: true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			r := record(t, row.outcome)
			if row.change != nil {
				row.change(r)
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			v, err := imageverifier.Judge(text, question(t), row.require)
			if v.Allowed != row.allowed || (err != nil) != row.fails || !strings.Contains(v.Reason, row.says) || err == nil && v.Reason == "" {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
	for _, text := range []string{"", "null", "[]", `{"apiVersion":"quaymaster.dev/v1alpha1","apiVersion":"quaymaster.dev/v1alpha1"}`} {
		if v, err := imageverifier.Judge([]byte(text), question(t), false); err == nil || v.Allowed {
			t.Errorf("%q: %+v", text, v)
		}
	}
}

// TestSettingsOfAnotherOwner: only files of the process's user or root are trusted.
func TestSettingsOfAnotherOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	path := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(path, []byte("gateway: {url: \"https://gateway.test:9443\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for owner, refused := range map[int]bool{0: false, 1000: true} {
		if err := os.Chown(path, owner, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := imageverifier.ReadSettings(path); (err != nil) != refused {
			t.Errorf("a file of the user %d: %v", owner, err)
		}
	}
}

func TestReadSettings(t *testing.T) {
	gateway := "gateway: {url: \"https://gateway.test:9443\"}\n"
	for _, row := range []struct {
		reason, text string
		mode         os.FileMode
		refused      bool
	}{
		{"a gateway", gateway, 0o644, false},
		{"JSON", `{"gateway": {"url": "https://gateway.test/"}}`, 0o600, false},
		{"a socket", "gateway: {socket: /run/quaymaster/api.sock}\n", 0o600, false},
		{"local", "local: {policies: [/etc/quaymaster/policies]}\n", 0o600, false},
		{"writable by others", gateway, 0o666, true},
		{"writable by the group", gateway, 0o664, true},
		{"an unknown member", gateway + "allowAll: true\n", 0o600, true},
		{"a member twice", gateway + gateway, 0o600, true},
		{"a member in another case", strings.ToUpper(gateway[:1]) + gateway[1:], 0o600, true},
		{"a member in two cases", gateway + "requireMatch: true\nrequirematch: false\n", 0o600, true},
		{"no YAML", "gateway: [", 0o600, true},
		{"plain HTTP", "gateway: {url: \"http://gateway.test\"}\n", 0o600, true},
		{"a URL with a path", "gateway: {url: \"https://gateway.test/api\"}\n", 0o600, true},
		{"a URL with a password", "gateway: {url: \"https://a:b@gateway.test\"}\n", 0o600, true},
		{"neither URL nor socket", "gateway: {tokenFile: /etc/token}\n", 0o600, true},
		{"both", "gateway: {url: \"https://gateway.test\", socket: /run/s}\n", 0o600, true},
		{"a relative socket", "gateway: {socket: s}\n", 0o600, true},
		{"a relative token file", "gateway: {url: \"https://gateway.test\", tokenFile: token}\n", 0o600, true},
		{"a certificate without a key", "gateway: {url: \"https://gateway.test\", certificateFile: /c}\n", 0o600, true},
		{"TLS on a socket", "gateway: {socket: /run/s, caFile: /ca}\n", 0o600, true},
		{"no time", gateway + "timeout: 0s\n", 0o600, true},
		{"an hour", gateway + "timeout: 1h\n", 0o600, true},
		{"unverified by digest", gateway + "unverified: [\"registry.k8s.io/pause@" + digest + "\"]\n", 0o600, false},
		{"unverified by tag", gateway + "unverified: [\"registry.k8s.io/pause:3.10\"]\n", 0o600, true},
		{"unverified by both", gateway + "unverified: [\"registry.k8s.io/pause:3.10@" + digest + "\"]\n", 0o600, true},
		{"unverified by a pattern", gateway + "unverified: [\"registry.k8s.io/*\"]\n", 0o600, true},
		{"local without anything to prove", "local: {mirrors: [/m]}\n", 0o600, true},
	} {
		path := filepath.Join(t.TempDir(), "node.yaml")
		if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, row.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := imageverifier.ReadSettings(path); (err != nil) != row.refused {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}

func TestRunDenies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(path, []byte("gateway: {url: \"https://gateway.test\"}\ntimeout: 200ms\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	yes := imageverifier.Verdict{Allowed: true, Reason: "line one\nline \x1b[31mtwo " + strings.Repeat("long ", 1000)}
	for _, row := range []struct {
		reason, path string
		look         imageverifier.Look
		status       int
	}{
		{"the twin that is right", path, func(context.Context, *imageverifier.Settings, imageverifier.Question) (imageverifier.Verdict, error) {
			return yes, nil
		}, imageverifier.Allow},
		{"an error beside a yes", path, func(context.Context, *imageverifier.Settings, imageverifier.Question) (imageverifier.Verdict, error) {
			return yes, io.ErrUnexpectedEOF
		}, imageverifier.Deny},
		{"a panic", path, func(context.Context, *imageverifier.Settings, imageverifier.Question) (imageverifier.Verdict, error) {
			panic("fell")
		}, imageverifier.Deny},
		{"a verifier that ignores its deadline", path, func(context.Context, *imageverifier.Settings, imageverifier.Question) (imageverifier.Verdict, error) {
			select {}
		}, imageverifier.Deny},
		{"no settings", filepath.Join(t.TempDir(), "none"), nil, imageverifier.Deny},
	} {
		var out strings.Builder
		p := imageverifier.Process{In: strings.NewReader(descriptor(index, digest, 1)), Out: &out, Err: io.Discard, Env: func(variable string) string {
			if variable == imageverifier.PathVariable {
				return row.path
			}
			return ""
		}}
		status := imageverifier.Run(t.Context(), args(name, digest, mediaType), p, row.look)
		if said := out.String(); status != row.status || strings.Count(said, "\n") != 1 || len(said) > 2<<10 || strings.Contains(said, "\x1b") {
			t.Errorf("%s: status %d, %q", row.reason, status, said)
		}
	}
	if got := imageverifier.Path(func(string) string { return "" }); got != imageverifier.DefaultPath {
		t.Errorf("without the variable the settings are at %s", got)
	}
}

func FuzzJudge(f *testing.F) {
	text, err := json.Marshal(record(f, nil))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"apiVersion":"quaymaster.dev/v1alpha2","kind":"VerdictList","items":[{"result":"error","images":[]}]}`))
	q := question(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := imageverifier.Judge(text, q, false)
		if v.Allowed && (err != nil || !strings.Contains(string(text), digest[len("sha256:"):][:8]) && !strings.Contains(string(text), `\u`)) {
			t.Errorf("allowed by %q, %v", text, err)
		}
	})
}

func Example() {
	q, err := imageverifier.Read([]string{
		"-name", "docker.io/library/nginx:1.27", "-digest", digest, "-stdin-media-type", "application/vnd.oci.descriptor.v1+json",
	}, strings.NewReader(`{"mediaType": "application/vnd.oci.image.index.v1+json", "digest": "`+digest+`", "size": 10229}`))
	fmt.Println(q.Image, err)
	// Output:
	// docker.io/library/nginx:1.27@sha256:98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4 <nil>
}
