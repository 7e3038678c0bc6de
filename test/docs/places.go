package docs

// Place is where the commands of a page are run.
type Place int

// The places.
const (
	Nowhere Place = iota
	// Machine has quaymaster, cosign, crane, notation and a registry, and no cluster.
	Machine
	// Cluster has a Kubernetes API server beside that, with kubectl and helm: the tests
	// of module test/e2e.
	Cluster
	// Running has a gateway in the cluster, too, which all such pages share.
	Running
)

// Pages that are run, and where.
func Pages() map[string]Place {
	return map[string]Place{
		"README.md":       Machine,
		"docs/air-gap.md": Machine, "docs/apply.md": Machine, "docs/cleanup.md": Machine, "docs/convert.md": Machine, "docs/expressions.md": Machine, "docs/from-connaisseur.md": Machine, "docs/notation.md": Machine,
		"docs/private-sigstore.md": Machine, "docs/from-policy-controller.md": Machine, "docs/gitops.md": Machine,
		"docs/high-availability.md": Machine, "docs/signed-manifests.md": Machine, "docs/troubleshooting.md": Machine, "docs/cold-start.md": Machine,
		"docs/start.md": Cluster, "docs/from-kyverno.md": Cluster, "docs/multi-tenancy.md": Cluster, "docs/helm.md": Cluster,
		"docs/upgrade.md": Cluster,
		"docs/api.md":     Running, "docs/dashboard.md": Running, "docs/decision-log.md": Running, "docs/overrides.md": Running,
		"docs/reports.md": Running, "docs/runbooks.md": Running, "docs/scan.md": Running,
	}
}

// Other names the test that runs the commands of a page that has no place here, or is the
// reason why no test does. Flags are compared all the same.
type Other struct{ RunBy, NotRun string }

// Others are the pages of other tests, and those with commands that need an environment that no
// test has. A comment before a block has the same meaning for that block alone.
func Others() map[string]Other {
	return map[string]Other{
		"docs/break-glass.md":             {RunBy: "TestBreakGlass"},
		"docs/own-images.md":              {RunBy: "TestOwnImages"},
		"docs/ci.md":                      {NotRun: "charts and overlays of the reader's"},
		"docs/compare.md":                 {RunBy: "TestCompare"},
		"docs/from-cluster.md":            {RunBy: "TestFromCluster"},
		"docs/gateway.md":                 {NotRun: "a server in the foreground; installing is run for docs/start.md"},
		"docs/mirrors.md":                 {NotRun: "Docker Hub and ECR; the commands without a registry are run by TestMirrorsPage"},
		"docs/node.md":                    {NotRun: "a node's own containerd"},
		"docs/offline.md":                 {RunBy: "TestOfflineDocumentation"},
		"docs/engineering/performance.md": {NotRun: "benchmarks"},
		"docs/release.md":                 {NotRun: "publishes a release"},
		"docs/policy-guard.md":            {RunBy: "TestGuard"},
		"docs/rate-limits.md":             {RunBy: "TestRegistryReturns429"},
		"docs/roles.md":                   {NotRun: "a server in the foreground"},
		"docs/testing-policies.md":        {RunBy: "TestDocumentation"},
		"docs/vsa.md":                     {RunBy: "TestSummaryPage"},
	}
}
