package quaymaster_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/quaymaster/quaymaster"

// layers is the layer of each package; a package imports only lower ones. TestLayers fails for a
// package without a layer.
var layers = map[string]int{
	"gateway/status": 16, "cmd/quaymaster/gateway/lookups": 17, "cmd/quaymaster/gateway/documents": 18, "cmd/quaymaster/gateway/offline": 19, "cmd/quaymaster/gateway/reporting": 20, "cmd/quaymaster/gateway/deleting": 19,

	"image": 0, "image/mirror/internal/mapping": 1, "image/mirror": 2, "cache": 0, "cache/redis": 1, "cache/snapshot": 1,
	"internal/file": 0, "internal/fairqueue": 0, "internal/waittime": 0, "internal/integer": 0, "internal/spelling": 0, "internal/strictjson": 0, "internal/yamlline": 0, "internal/fieldname": 1, "internal/limit": 0, "internal/redact": 0, "internal/testkit": 0, "internal/dial": 0, "internal/dial/dialtest": 1, "internal/expression": 0,
	"registry/internal/content": 1, "registry/internal/memory": 1, "registry/internal/guard": 1, "registry/internal/status": 1, "registry/internal/login": 2,
	"workload": 1, "workload/internal/yamldocument": 0, "registry/ratelimit": 0, "registry": 3, "registry/keychain": 4, "registry/keychain/provider": 4, "registry/layout": 4, "registry/health": 4, "attest": 1, "attest/predicate": 2, "attest/purl": 1, "attest/document": 2, "attest/vulnerability": 3, "attest/license": 1, "attest/sbom": 3, "registry/registrytest": 0, "workload/stored": 2,
	"verify": 2, "verify/internal/limits": 1, "verify/internal/trustedroot": 2, "verify/internal/tufclient": 2, "verify/trust": 3, "verify/trust/kms": 4,
	"verify/cosign": 4, "verify/bundle": 4, "verify/notation": 4, "verify/verifytest": 0, "verify/trust/trusttest": 0,
	"policy/lang/cue": 3, "policy/lang/rego": 3, "policy/internal/field": 3, "policy/internal/builtin": 3, "policy/internal/certificate": 0, "policy/internal/requirement": 4, "policy/internal/logic": 0, "policy/internal/random": 3, "policy/dialect/sigstore/trustroot": 4, "policy/dialect/sigstore/clusterimagepolicy": 0, "policy/dialect/sigstore": 10, "policy/dialect/sigstore/internal/script": 6,
	"policy/lang/wildcard": 1, "policy/unsent": 2, "policy/lang/reference": 4, "policy/age": 3, "policy/components": 4, "policy/lang/cel/packages": 7, "policy/slsa": 3, "policy": 5, "policy/requirements": 6, "policy/policytest": 6, "policy/decide": 6, "policy/extract": 6, "policy/hint": 0, "policy/set": 7, "policy/set/internal/objectindex": 6, "policy/lang/jmespath/internal/function": 6, "policy/lang/jmespath": 7, "policy/lang/jmespath/signature": 8, "policy/lang/variable": 8, "policy/lang/condition": 9, "policy/source": 4, "policy/findings": 4,
	"policy/internal/document": 4, "policy/lang/pattern/comparison": 8, "policy/lang/pattern": 9,
	"policy/lang/patch/internal/jsonvalue": 8, "policy/lang/patch/internal/mergekey": 8, "policy/lang/patch/internal/operation": 9, "policy/lang/patch/internal/yamltemplate": 9, "policy/lang/patch": 10,
	"policy/podsecurity": 4, "policy/subresource": 6, "policy/globalcontext": 8,
	"policy/lang/cel/library": 4, "policy/lang/cel/patchtype": 5, "policy/lang/cel/authorizer": 5, "policy/lang/cel/internal/partial": 4, "policy/lang/cel/internal/cost": 5, "policy/lang/cel/internal/fieldcheck": 0, "policy/lang/cel/internal/optional": 5, "policy/lang/cel/internal/alias": 1, "policy/lang/cel": 6, "policy/lang/cel/mutation": 6, "policy/constraint": 6, "policy/internal/parameter": 7, "policy/internal/schema": 7, "policy/internal/admissionrequest": 7, "policy/internal/revision": 7, "policy/dialect/kyvernocel": 8,
	"policy/dialect/kyvernocel/imagevalidating/attestor": 9, "policy/dialect/kyvernocel/imagevalidating/internal/pointer": 9, "policy/dialect/kyvernocel/imagevalidating/internal/glob": 9, "policy/dialect/kyvernocel/imagevalidating/internal/imagedata": 9, "policy/dialect/kyvernocel/imagevalidating": 10, "policy/dialect/kyvernocel/validating": 10, "policy/dialect/kyvernocel/mutating": 10, "policy/dialect/native": 10, "policy/dialect/kyvernocel/internal/trigger": 9, "policy/dialect/kyvernocel/generating": 10, "policy/internal/schedule": 6, "policy/dialect/kyvernocel/deleting": 10, "policy/ttl": 0,
	"policy/dialect/kyverno/match": 6, "policy/dialect/kyverno/action": 7, "policy/dialect/kyverno/autogen": 10, "policy/dialect/kyverno/rulecontext": 9, "policy/dialect/kyverno/verifyimages/imageverification": 0, "policy/dialect/kyverno/verifyimages": 10, "policy/dialect/kyverno/rule": 10,
	"policy/signedmanifest": 3, "policy/signedmanifest/manifesttest": 1, "policy/signedmanifest/difference": 4, "policy/dialect/kyverno/manifests": 11, "policy/dialect/kyverno/validate": 12, "policy/dialect/kyverno/mutate": 11, "policy/dialect/kyverno/generate/record": 6, "policy/dialect/kyverno/generate": 12, "policy/dialect/kyverno/cleanup": 11, "policy/dialect/kyverno": 13,
	"policy/dialect/override":     6,
	"policy/convert/internal/ivp": 5, "policy/convert/internal/images": 6, "policy/convert/internal/source": 6,
	"policy/convert/native/internal/podtemplate": 9, "policy/convert/native": 14, "policy/convert/cel/internal/celtext": 0, "policy/convert/cel/internal/comment": 0, "policy/convert/cel/internal/overlay": 8, "policy/convert/cel/internal/shape": 0, "policy/convert/cel/internal/template": 0, "policy/convert/cel/internal/term": 1, "policy/convert/cel/internal/jmespath": 8, "policy/convert/cel/internal/condition": 9, "policy/convert/cel/internal/requirement": 10, "policy/convert/cel/internal/selection": 8, "policy/convert/equality/internal/tree": 5, "policy/convert/equality/internal/sampling": 12, "policy/convert/equality/internal/world": 18, "policy/convert/cel/internal/podsecurity": 8, "policy/convert/internal/manifest": 0, "policy/convert/cel/internal/mutation": 7, "policy/convert/cel/internal/triggers": 10, "policy/convert/cel/internal/deletion": 11, "policy/convert/cel/internal/generation": 10, "policy/convert/cel/internal/mutation/jsonpatch": 10, "policy/convert/cel/internal/mutation/merge": 11, "policy/convert/cel/internal/mutating": 12, "policy/convert/cel/internal/generating": 11, "policy/convert/cel": 14, "policy/convert/connaisseur": 7, "policy/convert/containers": 7, "policy/convert/kyverno": 7, "policy/convert/notation": 7, "policy/convert/sigstore": 7, "policy/convert/ratify": 8,
	"policy/convert": 9, "policy/convert/equality": 19, "policy/convert/review": 20, "policy/convert/equality/internal/facts": 4, "policy/convert/internal/converttest": 10, "policy/convert/cel/internal/exception": 10, "policy/convert/cel/internal/imageverification": 11, "policy/convert/suites": 19, "policy/convert/equality/suiteobjects": 20,
	"gate/internal/panics": 0, "gate/internal/tagdigest": 1, "gate/internal/oldobject": 4, "gate/internal/deadline": 6, "gate/internal/fixedfield": 6, "gate/claims": 7, "gate/evidence": 8, "gate/content": 9, "gate/redirect": 9, "gate/evaluate": 10, "gate": 11, "gate/engine": 14,
	"policy/rollout": 6,
	"policy/catalog": 8, "policy/deletion": 8,
	"policy/suite/fixtures": 14, "policy/suite/result": 14, "policy/suite/signing": 15, "policy/suite/evaluation": 15, "policy/suite/document": 16, "policy/suite/cluster": 17, "policy/suite": 18, "policy/suite/trial": 18,
	"report": 12, "report/result": 13, "report/redirection": 13, "report/finding": 13, "report/sarif": 14, "report/junit": 14, "report/markdown": 14, "report/decisionlog/internal/segment": 12, "report/decisionlog": 13, "report/decisionlog/journal": 14, "report/decisionlog/sink": 14, "report/inventory/internal/evidence": 13, "report/inventory/internal/verdict": 13, "report/inventory/internal/timeline": 0, "report/inventory/internal/queue": 0, "report/inventory/internal/policycount": 14, "report/inventory/internal/view": 14, "report/inventory/internal/state": 14, "report/inventory": 15, "report/inventory/recall": 15, "report/inventory/dependents": 18, "report/policyreport/internal/merge": 14, "report/policyreport": 15, "report/compare": 16, "report/vsa": 13, "report/publish": 16,
	"cluster/internal/mirror": 0, "cluster/kubeconfig": 1, "cluster/typed": 1, "cluster": 6, "cluster/breakglass": 7, "cluster/clock": 1, "cluster/document": 7, "cluster/dryrun": 7, "cluster/lease": 7, "cluster/probe": 7, "cluster/record": 7, "cluster/reports": 17, "cluster/comparison": 18, "cluster/live": 12, "scan/findings": 14, "scan": 13, "scan/follow": 14, "scan/dryrun": 14, "cluster/listing": 15, "background": 13,
	"webhook": 13, "webhook/internal/review": 13, "webhook/internal/endpointtest": 15, "webhook/admission": 14, "webhook/certificate": 13, "webhook/configuration": 13, "webhook/configuration/naming": 12, "webhook/configuration/served": 14, "webhook/configuration/reconcile": 14, "webhook/metrics": 13, "webhook/metrics/enforcement": 12, "webhook/trace": 13, "webhook/peers": 13, "webhook/probe": 13, "background/internal/writelimit": 0, "background/internal/queue": 7, "background/internal/outcome": 12, "background/internal/inspect": 7, "background/internal/parts": 8, "background/internal/follow": 8, "background/cleanup": 14, "webhook/lifetime": 14,
	"webhook/imagepolicy": 14, "webhook/externaldata": 14, "webhook/api": 14, "webhook/ui": 16,
	"deploy": 0, "deploy/monitoring": 0, "deploy/release": 0,
	"gate/gatetest": 14, "examples/demo": 13,
	"cmd/quaymaster-node/imageverifier": 13, "cmd/quaymaster-node": 14, "policy/bundle": 2, "gateway": 14, "gateway/native/record": 1, "gateway/native/fitness": 16, "gateway/native": 17, "gateway/kinds": 14, "gateway/discovery": 15, "gateway/documents": 15, "gateway/background": 16, "gateway/cleanup": 17, "gateway/audit": 18, "gateway/reporting": 18, "gateway/endpoints": 19, "gateway/certificates": 15, "gateway/webhooks": 17, "gateway/policies": 17, "gateway/snapshots": 15, "gateway/replicas": 19, "gateway/trust": 16, "gateway/calls": 16, "gateway/globals": 16, "gateway/mirrors": 16, "gateway/rollout": 16,
	"cmd/quaymaster/internal/usage": 1, "cmd/quaymaster/internal/certpool": 0, "cmd/quaymaster/internal/command": 17, "cmd/quaymaster/internal/flagsource": 17, "cmd/quaymaster/internal/manifest": 18, "cmd/quaymaster/internal/output": 19, "cmd/quaymaster/internal/preview": 18, "cmd/quaymaster/internal/authority": 18, "cmd/quaymaster/internal/setup": 20, "cmd/quaymaster/convert": 21, "cmd/quaymaster/jp": 21, "cmd/quaymaster/cel": 21, "cmd/quaymaster/log": 21, "cmd/quaymaster/serve": 22, "cmd/quaymaster/test": 21, "cmd/quaymaster/verify": 21, "cmd/quaymaster/scan/internal/deletions": 19, "cmd/quaymaster/scan": 21, "cmd/quaymaster/apply": 21, "cmd/quaymaster/bundle": 21, "cmd/quaymaster/mirror": 21, "cmd/quaymaster/demo": 22, "cmd/quaymaster/node": 21, "cmd/quaymaster/internal/policystate": 21, "cmd/quaymaster/internal/health": 20, "cmd/quaymaster/internal/diagnosis": 21, "cmd/quaymaster/policies": 22, "cmd/quaymaster/status": 22, "cmd/quaymaster/config": 16, "cmd/quaymaster/config/carried": 17, "cmd/quaymaster/gateway": 21, "cmd/quaymaster/gateway/enforcing": 19, "cmd/quaymaster/tree": 21, "webhook/internal/page": 15, "webhook/playground": 19, "cmd/quaymaster/playground": 21, "cmd/quaymaster/config/timespan": 1, "cmd/quaymaster/config/required": 7, "cmd/quaymaster/config/election": 0, "cmd/quaymaster/config/pinnable": 0,
	"cmd/quaymaster": 23, "cmd/conformance": 14,
}

// forbidden imports hold for a package and all it reaches, unless direct.
var forbidden = []struct {
	packages []string
	imports  []string
	direct   bool
	reason   string
}{
	{
		packages: []string{"image", "attest", "verify"}, imports: []string{"net/http"},
		reason: "the domain types open no connection",
	},
	{
		packages: []string{"workload", "policy", "policy/extract", "gate", "gate/claims", "gate/content", "gate/evaluate", "gate/evidence", "gate/redirect", "image/mirror"}, imports: []string{"net", "net/http", "k8s.io/client-go/..."}, direct: true,
		reason: "packages that decide receive their data from their callers",
	},
	{
		packages: []string{"workload", "policy", "policy/extract", "gate", "gate/claims", "gate/content", "gate/evaluate", "gate/evidence", "gate/redirect", "image/mirror"},
		imports: []string{
			"k8s.io/client-go/...", "github.com/sigstore/sigstore/...", "github.com/sigstore/sigstore-go/...", "github.com/sigstore/cosign/...",
			"github.com/notaryproject/...", "github.com/theupdateframework/...", module + "/registry",
		},
		reason: "packages that decide reach no cryptography, trust store, registry or cluster",
	},
	{
		packages: []string{"verify/cosign"}, imports: []string{module + "/verify/bundle", module + "/verify/notation"},
		reason: "the adapters of signature formats are independent",
	},
	{
		packages: []string{"verify/bundle"}, imports: []string{module + "/verify/cosign", module + "/verify/notation"},
		reason: "the adapters of signature formats are independent",
	},
	{
		packages: []string{"verify/notation"}, imports: []string{module + "/verify/cosign", module + "/verify/bundle"},
		reason: "the adapters of signature formats are independent",
	},
}

// connecting are the packages that may open connections, by importing net/http
// or net themselves.
var connecting = map[string]string{
	"registry":                        "the only package that sends HTTP requests to registries",
	"policy/suite/cluster":            "reads addresses; opens no connection",
	"registry/ratelimit":              "reads headers; opens no connection",
	"registry/registrytest":           "a registry for tests",
	"gate/engine":                     "binds verifiers to the guarded dialer",
	"gate/gatetest":                   "registries that answer with errors, for tests",
	"internal/dial":                   "the guarded dialer",
	"internal/redact":                 "scrubs URLs; opens no connection",
	"verify/trust":                    "TUF and KMS",
	"verify/internal/tufclient":       "TUF repositories, through their callers' clients",
	"verify/notation":                 "OCSP and CRL, through the guarded dialer",
	"verify/verifytest":               "OCSP and CRL answers for tests",
	"verify/trust/trusttest":          "a TUF repository for tests",
	"cache/redis":                     "the shared cache, through the guarded dialer",
	"registry/internal/guard":         "the registry client's transport",
	"registry/internal/status":        "classifies statuses; opens no connection",
	"internal/dial/dialtest":          "a resolver for tests",
	"cluster":                         "calls the API server through client-go",
	"cluster/typed":                   "gives client-go the connections; opens none",
	"cluster/clock":                   "requests the version of an API server, for its date",
	"cluster/probe":                   "connects to each API server, with the client's own TLS settings",
	"webhook":                         "the gateway's listeners",
	"webhook/internal/review":         "reads bodies; opens no connection",
	"webhook/admission":               "answers reviews; opens no connection",
	"webhook/imagepolicy":             "answers reviews; opens no connection",
	"webhook/externaldata":            "answers providers' requests; opens no connection",
	"webhook/api":                     "answers requests; opens no connection",
	"webhook/probe":                   "answers reviews; opens no connection",
	"webhook/lifetime":                "answers reviews; opens no connection",
	"webhook/ui":                      "answers requests; opens no connection",
	"cmd/quaymaster-node":             "calls a gateway",
	"webhook/certificate":             "reads addresses; opens no connection",
	"webhook/metrics":                 "answers scrapes; opens no connection",
	"webhook/trace":                   "delivers traces",
	"report/decisionlog/sink":         "the decision log's webhook and collector, through the guarded dialer",
	"report/inventory/dependents":     "requests the inventory of a gateway",
	"webhook/peers":                   "calls other replicas, through the guarded dialer",
	"gateway/endpoints":               "serves at the unix socket",
	"gateway/replicas":                "reads addresses; opens no connection",
	"gateway/calls":                   "calls of policies, through the guarded dialer",
	"cmd/quaymaster/config":           "reads addresses; opens no connection",
	"cmd/quaymaster/gateway":          "wiring of the gateway",
	"cmd/quaymaster/gateway/deleting": "wiring of the endpoint for lifetimes",
	"cmd/conformance":                 "TUF of the staging instance",

	"cmd/quaymaster/internal/setup": "wiring",
	"gateway/reporting":             "serves the dashboard",
	"cmd/quaymaster/bundle":         "wiring of the client of a TUF repository",
	"cmd/quaymaster/demo":           "sends requests to its own gateway",
	"cmd/quaymaster/scan":           "requests the inventory of a gateway",
	"webhook/internal/page":         "answers requests; opens no connection",
	"webhook/playground":            "answers requests; opens no connection",
	"cmd/quaymaster/playground":     "serves a page on loopback",
}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestLayers(t *testing.T) {
	packages := list(t)
	for name, p := range packages {
		height, ok := layers[name]
		if !ok {
			t.Errorf("%s has no layer: add it to layers_test.go, and run go test -run TestArchitecture . -update", name)
			continue
		}
		for _, imported := range p.Imports {
			own, ok := strings.CutPrefix(imported, module+"/")
			if !ok {
				continue
			}
			if layers[own] >= height {
				t.Errorf("%s (layer %d) imports %s (layer %d): a package imports only lower layers", name, height, own, layers[own])
			}
		}
	}
	for name := range layers {
		if _, ok := packages[name]; !ok {
			t.Errorf("%s has a layer and does not exist", name)
		}
	}
}

func TestForbiddenImports(t *testing.T) {
	packages := list(t)
	for _, rule := range forbidden {
		for _, name := range rule.packages {
			p, ok := packages[name]
			if !ok {
				t.Errorf("the rule %q names %s, which is not in the tree", rule.reason, name)
				continue
			}
			reached := p.Deps
			if rule.direct {
				reached = p.Imports
			}
			for _, pattern := range rule.imports {
				if i := slices.IndexFunc(reached, func(path string) bool { return matches(pattern, path) }); i >= 0 {
					t.Errorf("%s reaches %s: %s", name, reached[i], rule.reason)
				}
			}
		}
	}
}

func TestOnlyNamedPackagesConnect(t *testing.T) {
	for name, p := range list(t) {
		opens := slices.Contains(p.Imports, "net/http") || slices.Contains(p.Imports, "net")
		if _, named := connecting[name]; opens && !named {
			t.Errorf("%s imports net or net/http and is not among the packages that open connections", name)
		}
	}
}

func matches(pattern, path string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	}
	return pattern == path
}

// list returns the packages of the module by their path in it.
func list(t *testing.T) map[string]listed {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := map[string]listed{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		if name, ok := strings.CutPrefix(p.ImportPath, module+"/"); ok {
			packages[name] = p
		}
	}
	if len(packages) == 0 {
		t.Fatal("go list found no package")
	}
	return packages
}
