package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated documentation")

const head = "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\n"

func TestConfigurationsThatContradictThemselves(t *testing.T) {
	for _, c := range []struct{ reason, good, bad, want string }{
		{"an unknown field", "namespace: q\n", "namespaces: q\n", "unknown field"},
		{"a field that stands twice", "namespace: q\n", "namespace: q\nnamespace: r\n", "already set"},
		{"a duration without a unit", "ages: {tag: 5s}\n", "ages: {tag: 5}\n", "duration"},
		{"standalone without policies", "standalone: true\npolicies: {folders: [p]}\n", "standalone: true\n", "policies.folders"},
		{"half a certificate", "certificate: {certificateFile: c, keyFile: k, caFile: a}\n", "certificate: {certificateFile: c, caFile: a}\n", "belong together"},
		{"a certificate of an unknown authority", "certificate: {certificateFile: c, keyFile: k, caFile: a}\n", "certificate: {certificateFile: c, keyFile: k}\n", "which authority"},
		{"a folder for the certificate in a cluster", "standalone: true\npolicies: {folders: [p]}\ncertificate: {folder: f}\n", "certificate: {folder: f}\n", "standalone"},
		{"profiles for everybody", "listen: {profiling: '127.0.0.1:6060'}\n", "listen: {profiling: ':6060'}\n", "loopback"},
		{"a pull secret without a namespace", "registries: {pullSecrets: [a/b]}\n", "registries: {pullSecrets: [b]}\n", "namespace/name"},
		{"an unknown keychain", "registries: {providers: [amazon]}\n", "registries: {providers: [acme]}\n", "want one of"},
		{"plain HTTP with a certificate", "registries: {hosts: {r: {plainHTTP: true}}}\n", "registries: {hosts: {r: {plainHTTP: true, caFile: c}}}\n", "contradicts"},
		{"half a client certificate", "registries: {hosts: {r: {certificateFile: c, keyFile: k}}}\n", "registries: {hosts: {r: {certificateFile: c}}}\n", "belong together"},
		{"names of clients that are not asked", "listen: {clientCA: ca, clientNames: [a]}\n", "listen: {clientNames: [a]}\n", "clientCA"},
		{"webhooks without TLS", "webhooks: {url: 'https://h'}\n", "webhooks: {url: 'http://h'}\n", "https"},
		{"a selector that is none", "policies: {selector: 'a=b'}\n", "policies: {selector: 'a=='}\n", ""},
		{"a level that is none", "log: {level: debug}\n", "log: {level: loud}\n", "unknown level"},
		{"mirrors of a cluster without one", "standalone: true\npolicies: {folders: [p]}\nmirrors: {files: [m]}\n", "standalone: true\npolicies: {folders: [p]}\nmirrors: {configMaps: [a/b]}\n", "mirrors.files"},
		{"OpenShift's sets without a cluster", "mirrors: {openShift: true}\n", "standalone: true\npolicies: {folders: [p]}\nmirrors: {openShift: true}\n", "a cluster's"},
		{"a ConfigMap without a namespace", "mirrors: {configMaps: [a/b]}\n", "mirrors: {configMaps: [b]}\n", "namespace/name"},
		{"everybody's tokens", "endpoints: {api: {tokenReview: true, groups: [ci]}}\n", "endpoints: {api: {tokenReview: true}}\n", "name the allowed callers"},
		{"token reviews without a cluster", "endpoints: {api: {tokenReview: true, users: [ci]}}\n", "standalone: true\npolicies: {folders: [p]}\nendpoints: {api: {tokenReview: true, users: [ci]}}\n", "requires a cluster"},
		{"audiences without token reviews", "endpoints: {api: {tokenReview: true, users: [ci], audiences: [a]}}\n", "endpoints: {api: {tokens: f, audiences: [a]}}\n", "tokenReview"},
		{"users that nothing lets in", "endpoints: {api: {tokens: f, users: [ci]}}\n", "endpoints: {api: {users: [ci]}}\n", "open nothing"},
		{"an endpoint that is not turned on", "endpoints: {imageReview: true}\nlisten: {clientCA: ca, clientEndpoints: [/imagereview]}\n", "listen: {clientCA: ca, clientEndpoints: [/imagereview]}\n", "not turned on"},
		{"a socket somewhere", "listen: {socket: /run/q.sock}\n", "listen: {socket: q.sock}\n", "absolute"},
		{"a password for no server", "sharedMemory: {address: 'h:6379', passwordFile: f}\n", "sharedMemory: {passwordFile: f}\n", "sharedMemory.address is required"},
		{"a shared cache at no host", "sharedMemory: {address: 'h:6379'}\n", "sharedMemory: {address: ':6379'}\n", "host:port"},
		{"a shared cache that is waited for", "sharedMemory: {address: 'h:6379', timeout: 2s}\n", "sharedMemory: {address: 'h:6379', timeout: 3s}\n", "sharedMemory.timeout"},
		{"a field in another case, which would undo it", "listen: {clientCA: f}\n", "listen: {clientCA: f, clientca: ''}\n", "clientca"},
		{"an authority without TLS", "sharedMemory: {address: 'h:6379', tls: true, caFile: f}\n", "sharedMemory: {address: 'h:6379', caFile: f}\n", "tls"},
		{"a shared cache under a key of this process", "standalone: true\npolicies: {folders: [p]}\ncertificate: {folder: f}\nsharedMemory: {address: 'h:6379'}\n", "standalone: true\npolicies: {folders: [p]}\nsharedMemory: {address: 'h:6379'}\n", "certificate.folder"},
		{"exceptions of a pattern", "exceptions: {namespaces: ['*', team-a]}\n", "exceptions: {namespaces: ['team-*']}\n", "exceptions.namespaces: \"team-*\""},
		{"another kind", "", "kind: Other\n", "found \"quaymaster.dev/v1alpha1\" and \"Other\""},
		{"another kind, which has other fields", "", "kind: Pod\nmetadata: {name: a}\n", "and \"Pod\""},
	} {
		if _, err := Parse([]byte(head + c.good)); err != nil {
			t.Errorf("%s: the good twin is refused: %v", c.reason, err)
		}
		text := head + c.bad
		if strings.HasPrefix(c.bad, "kind:") {
			text = "apiVersion: quaymaster.dev/v1alpha1\n" + c.bad
		}
		if c.reason == "a selector that is none" {
			text = head + "policies: {selector: 'a in ('}\n"
		}
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error about %q", c.reason, err, c.want)
		}
	}
}

func TestEmptyFile(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n"} {
		if _, err := Parse([]byte(text)); err == nil || err.Error() != "the file is empty" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDefaultsAreSafe(t *testing.T) {
	c, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	if c.Endpoints.ImageReview || c.Endpoints.ExternalData || c.Endpoints.API.IsOpen() || c.Listen.Socket != "" || c.Mirrors.OpenShift || c.SharedMemory.Address != "" {
		t.Errorf("an endpoint or a server that is not configured: %+v", c)
	}
	if c.Standalone || c.Webhooks.Disabled || len(c.Exceptions.Namespaces) > 0 || len(c.Registries.Providers) > 0 || c.Trust.Refresh {
		t.Errorf("a default that admits or connects more than it must: %+v", c)
	}
	if got := *c.Webhooks.ExcludedNamespaces; !reflect.DeepEqual(got, []string{"kube-system"}) {
		t.Errorf("excluded namespaces: %v", got)
	}
	none, err := Parse([]byte(head + "webhooks: {excludedNamespaces: []}\n"))
	if err != nil || len(*none.Webhooks.ExcludedNamespaces) != 0 {
		t.Errorf("an empty list excludes %v, %v", none.Webhooks.ExcludedNamespaces, err)
	}
}

// TestConfigurationIsDocumented writes docs/configuration.md from the comments of
// the types, so that none can be missing.
func TestConfigurationIsDocumented(t *testing.T) {
	const path = "../../../docs/configuration.md"
	made := manual(t)
	if *update {
		if err := os.WriteFile(path, []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(path)
	if err != nil || string(written) != made {
		t.Errorf("%s differs from the types (%v): run go test ./cmd/quaymaster/config -update", path, err)
	}
}

func manual(t *testing.T) string {
	t.Helper()
	types := map[string]*ast.StructType{}
	comments := map[string]string{}
	var declarations []ast.Decl
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "required/required.go")
	for _, name := range slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		declarations = append(declarations, file.Decls...)
	}
	for _, d := range declarations {
		declaration, ok := d.(*ast.GenDecl)
		if !ok || declaration.Tok != token.TYPE {
			continue
		}
		spec := declaration.Specs[0].(*ast.TypeSpec)
		comments[spec.Name.Name] = sentence(declaration.Doc)
		if fields, ok := spec.Type.(*ast.StructType); ok {
			types[spec.Name.Name] = fields
		}
	}
	var b strings.Builder
	b.WriteString(`# Configuration

The file of ` + "`quaymaster serve --config FILE`" + `. It is read strictly: an unknown field
is an error. Every field may be left out.

` + "```yaml\napiVersion: " + APIVersion + "\nkind: " + Kind + "\n```\n")
	section(t, &b, types, comments, "Configuration", "")
	return b.String()
}

func section(t *testing.T, b *strings.Builder, types map[string]*ast.StructType, comments map[string]string, name, path string) {
	t.Helper()
	var below []func()
	rows := ""
	for _, field := range types[name].Fields.List {
		tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
		key, _, _ := strings.Cut(tag, ",")
		if key == "" { // the type of the document
			continue
		}
		kind, inner := typeOf(field.Type)
		if _, isStruct := types[inner]; isStruct {
			at := path + key
			switch kind {
			case "map":
				at += "[host]"
			case "list of sections":
				at += "[]"
			default:
				below = append(below, func() { section(t, b, types, comments, inner, at+".") })
				continue
			}
			below = append(below, func() { section(t, b, types, comments, inner, at+".") })
		}
		said := sentence(field.Doc)
		if said == "" && !strings.HasSuffix(rows, "| |\n") && key != "keyFile" && key != "caFile" && key != "total" {
			t.Errorf("%s%s has no comment", path, key)
		}
		if said == "" {
			said = "See above."
		}
		rows += fmt.Sprintf("| `%s%s` | %s | %s |\n", path, key, kind, said)
	}
	if rows != "" {
		if path != "" {
			fmt.Fprintf(b, "\n## %s\n\n%s\n", strings.TrimSuffix(path, "."), explained(comments[name]))
		}
		b.WriteString("\n| field | type | meaning |\n|---|---|---|\n" + rows)
	}
	for _, next := range below {
		next()
	}
}

// explained turns "Trust is the ..." into a sentence without the type's name.
func explained(comment string) string {
	_, rest, _ := strings.Cut(comment, " ")
	for _, verb := range []string{"says ", "is ", "bounds "} {
		if after, ok := strings.CutPrefix(rest, verb); ok {
			if verb == "bounds " {
				after = verb + after
			}
			return strings.ToUpper(after[:1]) + after[1:]
		}
	}
	return rest
}

func typeOf(e ast.Expr) (kind, inner string) {
	switch e := e.(type) {
	case *ast.Ident:
		switch e.Name {
		case "bool":
			return "true or false", ""
		case "int", "int32", "float32":
			return "number", ""
		case "string":
			return "text", ""
		case "Duration":
			return "duration", ""
		case "StatusWriting":
			return "auto, always or never", ""
		}
		return "section", e.Name
	case *ast.SelectorExpr: // of another package
		if x, ok := e.X.(*ast.Ident); ok && (x.Name == "required" || x.Name == "timespan") {
			return typeOf(e.Sel)
		}
		return "off, requested or auto", ""
	case *ast.StarExpr:
		return typeOf(e.X)
	case *ast.ArrayType:
		if kind, inner := typeOf(e.Elt); kind == "section" {
			return "list of sections", inner
		}
		return "list of texts", ""
	case *ast.MapType:
		_, inner := typeOf(e.Value)
		return "map", inner
	}
	return "", ""
}

func sentence(doc *ast.CommentGroup) string {
	return strings.Join(strings.Fields(doc.Text()), " ")
}
