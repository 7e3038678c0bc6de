package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/peers"
)

// everyKind is values with which the chart makes an object of every kind that it knows.
const everyKind = "--set=certificates.mode=certManager,metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true," +
	"dashboard.expose=true,dashboard.ingress.enabled=true,dashboard.ingress.host=q.example,dashboard.ingress.tlsSecretName=q"

// tryForeignKinds has the API server validate the chart's objects of other projects' kinds,
// by the definitions that cert-manager and Prometheus' operator release, and refuse each kind
// with one thing wrong.
func (r *release) tryForeignKinds(t *testing.T) {
	for module, folder := range map[string]string{
		peers.CertManager:        filepath.Join("deploy", "crds"),
		peers.PrometheusOperator: filepath.Join("example", "prometheus-operator-crd"),
	} {
		at, err := peers.Module(t.Context(), module)
		must(t, err)
		objects, err := controlplane.ReadManifests(filepath.Join(at, folder))
		must(t, err, r.plane.Apply(t.Context(), objects...))
	}
	render := func(arguments ...string) string {
		return r.run(t, append([]string{"template", "quaymaster", r.chart("quaymaster")}, arguments...)...)
	}
	every := render(everyKind)
	if said, err := r.strictly(t, every); err != nil {
		t.Fatalf("every kind: %v\n%s", err, said)
	}
	if said, err := r.strictly(t, render("--set=certificates.mode=certManager,certificates.certManager.issuerName=company,certificates.certManager.issuerKind=ClusterIssuer")); err != nil {
		t.Errorf("the company's issuer: %v\n%s", err, said)
	}
	for _, row := range []struct{ kind, right, wrong, word string }{
		{"Issuer", "selfSigned: {}", "selfSign: {}", "selfSign"},
		{"Certificate", "rotationPolicy: Always", "rotationPolicy: Sometimes", "rotationPolicy"},
		{"ServiceMonitor", "interval: 30s", "interval: soon", "interval"},
		{"PrometheusRule", "expr:", "expression:", "expr"},
		{"NetworkPolicy", "podSelector:", "podSelektor:", "podSelektor"},
		{"Ingress", "pathType: Prefix", "pathType: Suffix", "pathType"},
	} {
		var objects []string
		for object := range strings.SplitSeq(every, "\n---\n") {
			if strings.Contains("\n"+object, "\nkind: "+row.kind+"\n") && strings.Contains(object, row.right) {
				objects = append(objects, object)
			}
		}
		if len(objects) == 0 {
			t.Errorf("the chart makes no %s with %q", row.kind, row.right)
			continue
		}
		said, err := r.strictly(t, strings.Replace(objects[0], row.right, row.wrong, 1))
		if err == nil || !strings.Contains(said, row.word) {
			t.Errorf("%s with %q: %v\n%s", row.kind, row.wrong, err, said)
		}
	}
}
