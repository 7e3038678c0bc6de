# Everything here needs Go, make and git; what else a target needs it builds
# from Go modules.

GO      ?= go
# The toolchain that go.mod names, also where "go env -w GOTOOLCHAIN=local" is set: a distribution's
# Go is older than go.mod requires.
export GOTOOLCHAIN ?= auto
BIN     := bin
LINTER  := $(BIN)/golangci-lint
VULNS   := $(BIN)/govulncheck
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
RACE    := ./internal/fairqueue/... ./background/... ./cache/... ./cluster/... ./cmd/quaymaster/internal/health/... ./cmd/quaymaster/internal/output/... ./gate/... ./gateway/... ./policy/catalog/... ./policy/globalcontext/... ./registry/... ./report/decisionlog/... ./report/inventory/... ./report/publish/... ./scan/... ./verify/trust/... ./webhook/...
ROUNDS  := ^Test(BreakGlass|Chart|Dashboard|Documentation|OwnImages|Prometheus|Reports|Roles|RunningGateway|Scan|Upgrade)
UNIT    := $(if $(RACED),$$($(GO) list ./... | grep -vxF "$$($(GO) list $(RACE))"),./...)
# For go test, as in TESTFLAGS='-vet=off -ldflags=-w' where vet has run already and
# nobody debugs: most of the time goes into linking.
TESTFLAGS ?=

# Programs that end soon: compiling takes a tenth less time where it collects no garbage.
UNCOLLECTED := GOGC=off GOMEMLIMIT=6GiB

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/quaymaster
	@total=$$($(GO) list -deps ./cmd/quaymaster | wc -l); echo "building bin/quaymaster, of $$total packages; the first time takes minutes"; \
	{ CGO_ENABLED=0 $(GO) build -v -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN)/quaymaster ./cmd/quaymaster 2>&1; echo "status $$?"; } | \
	awk -v total="$$total" '/^status [0-9]+$$/ { exit $$2 } /^[a-zA-Z0-9.\/_~-]+$$/ { if (++n % 100 == 0) print n " of " total " packages compiled"; next } { print }'

.PHONY: dev-cluster
DEV ?= local
dev-cluster: ## run the gateway of this checkout with a local API server (DEV=kind: in a cluster of kind or minikube, CONTEXT=NAME)
	cd test/e2e && $(GO) run ./devcluster -form $(DEV) -context "$(CONTEXT)"

.PHONY: images
images: ## build the container images as OCI layouts in dist/images
	cd deploy/image && $(GO) run . --version $(VERSION) --output $(CURDIR)/dist/images

.PHONY: images-check
images-check: ## build the images twice and compare every byte (COLD=1: compile twice, too)
	deploy/image/check.sh

.PHONY: test
test: ## run the unit tests, a short run of every fuzz target, and the suites without other programs
	$(MAKE) -j2 --output-sync=target unit fuzz-short suite-own

.PHONY: test-all
test-all: test suites ## run make test, and the suites with real programs

.PHONY: unit
unit: ## run the unit tests alone, those of the image builder included
	$(GO) test $(TESTFLAGS) $(UNIT)
	cd deploy/image && $(GO) test $(TESTFLAGS) ./...

.PHONY: metrics
metrics: ## print the measures of code and prose that budgets_test.go and words_test.go bound
	$(GO) test $(TESTFLAGS) -count=1 -run '^Test(Metrics|ReadingOrder)$$' -v . | sed 's/^ *[a-z]*_test.go:[0-9]*: //'

.PHONY: programs
programs: ## build cosign, an API server and the other programs of the suites into your cache (QUAYMASTER_LONG=1: those of make long, too)
	cd test && $(GO) run ./peers/programs

.PHONY: align
align: ## raise the modules that those programs share with this project to its versions
	cd test && $(GO) run ./peers/align

.PHONY: long
long: ## run every suite with the tests that take minutes, as each night and before a release
	QUAYMASTER_LONG=1 $(MAKE) suite-own suites

# The suites that need no program built from another module.
OWN := ./attacks/... ./browser/... ./conversions/... ./fuzz/... ./mutants/... ./sigstore/...

.PHONY: suites suite-own suite-programs suite-harness suite-binary suite-cluster suite-cluster-rest suite-rounds
suites: programs ## run the suites with real programs, three at a time; without those that take minutes
	$(MAKE) -j3 --output-sync=target suite-cluster suite-rounds suite-cluster-rest suite-programs suite-harness

suite-own: ## run the suites without other programs: attacks, pages in a browser, and more
	cd test && $(GO) test $(TESTFLAGS) -count=1 -timeout 40m $(OWN)

suite-programs: suite-binary ## run the suites against cosign, crane and registries
	cd test && own="$$($(GO) list $(OWN))" && $(GO) test $(TESTFLAGS) -count=1 -timeout 40m $$($(GO) list ./... | grep -vxF "$$own")

suite-harness: suite-binary ## run the tests of the harness of the API server suites, and a few faults of make chaos
	cd test/e2e && $(GO) test $(TESTFLAGS) -count=1 -timeout 40m $$($(GO) list ./... | grep /e2e/)

# The suites against a real API server built from Go modules, in three parts, each with an
# API server of its own.
E2E = cd test/e2e && ../../$(BIN)/e2e.test -test.count=1 -test.timeout 40m

suite-binary: # all of them want it, so that make begins with the first, which take longest
	@mkdir -p $(BIN)
	cd test/e2e && $(GO) test -c $(TESTFLAGS) -o ../../$(BIN)/e2e.test .

suite-cluster: suite-binary ## run the suites against a real API server, tests A to G
	$(E2E) -test.run '^Test[A-G]' -test.skip '$(ROUNDS)'

suite-cluster-rest: suite-binary ## run the suites against a real API server, tests from H on
	$(E2E) -test.skip '^Test[A-G]|$(ROUNDS)'

suite-rounds: suite-binary ## run the suites that install, upgrade, scan or report
	$(E2E) -test.run '$(ROUNDS)'

.PHONY: race
race: ## run packages with goroutines under the race detector
	@$(UNCOLLECTED) CGO_ENABLED=1 $(GO) list -race -export -deps -test $(RACE) >/dev/null
	CGO_ENABLED=1 $(GO) test $(TESTFLAGS) -race $(RACE)

.PHONY: static
static: vet tidy lint ## run vet, tidy and lint

.PHONY: vet
vet: ## run go vet in every module
	$(UNCOLLECTED) $(GO) vet ./...
	cd test && $(UNCOLLECTED) $(GO) vet ./...
	cd test/e2e && $(UNCOLLECTED) $(GO) vet ./...
	cd deploy/image && $(UNCOLLECTED) $(GO) vet ./...

$(LINTER): test/tools/golangci-lint/go.mod
	@mkdir -p $(BIN)
	cd test/tools/golangci-lint && $(UNCOLLECTED) $(GO) build -o ../../../$(LINTER) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: lint
lint: $(LINTER) ## run golangci-lint, built from Go modules
	$(LINTER) run ./...
	cd deploy/image && ../../$(LINTER) run ./...

$(VULNS): test/tools/govulncheck/go.mod
	@mkdir -p $(BIN)
	cd test/tools/govulncheck && $(GO) build -o ../../../$(VULNS) golang.org/x/vuln/cmd/govulncheck

.PHONY: vulnerabilities
vulnerabilities: $(VULNS) ## check the called code for known vulnerabilities in https://vuln.go.dev (VULNDB=url: another database)
	$(VULNS) $(if $(VULNDB),-db $(VULNDB)) ./cmd/...

.PHONY: docs
docs: ## build the documentation as HTML in bin/docs
	cd test && $(GO) run ./docs/build -o ../$(BIN)/docs

.PHONY: bench
bench: ## run the benchmarks, which count requests as well
	$(GO) test -run '^$$' -bench . -benchmem ./...

.PHONY: bench-admission
bench-admission: ## measure pod creation without a webhook, with an empty one, with the gateway, and with policies of the API server
	cd test/e2e && $(GO) run ./bench && $(GO) run ./bench -policy Native

.PHONY: load
load: ## simulate nodes and users on a real API server (some four minutes)
	cd test/e2e && $(GO) run ./load

.PHONY: chaos
chaos: ## inject faults under load and check every decision and record (some five minutes; CHAOS='-faults kill,disk': some of them)
	cd test/e2e && $(GO) run ./chaos $(CHAOS)

.PHONY: soak
soak: ## hold a steady load for SOAK (default 1h) and check memory, goroutines and files
	cd test/e2e && $(GO) run ./chaos -soak $${SOAK:-1h}

.PHONY: manifests
manifests: ## generate the manifests and documents that follow from the charts and definitions
	$(GO) test -count=1 ./deploy -run 'TestValues|TestCopies' -update
	cd test && $(GO) test -count=1 ./chart -run 'TestManifests$$' -update

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (default 20s)
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzzminimizetime 5x -fuzztime $${FUZZTIME:-20s} $$p || exit 1; \
	  done; \
	done

# Packages with a fuzz target.
FUZZED = $$(grep -rl --include='*_test.go' --exclude-dir=test '^func Fuzz' . | xargs -n1 dirname | sort -u)

.PHONY: fuzz-short
fuzz-short: ## run every fuzz target for FUZZCOUNT inputs (default 1000)
	@packages="$(FUZZED)"; \
	test -n "$$packages" || { echo "no fuzz target found"; exit 1; }; \
	$(GO) test $(TESTFLAGS) -count=1 -exec '$(CURDIR)/test/fuzz/short.sh' $$packages

.PHONY: mutants
mutants: ## remove or invert checks, each of which must make a test fail (PACKAGE=verify/...: only there)
	cd test && $(GO) run ./mutants/run $(if $(VERBOSE),-v) $(if $(MATCH),-match '$(MATCH)') $(PACKAGE)

.PHONY: convert-check
convert-check: ## compare policies with their conversions to CEL (QUAYMASTER_CONVERT_OBJECTS=n: on n objects; QUAYMASTER_LONG=1: with times)
	cd test && $(GO) test $(TESTFLAGS) -count=1 -timeout 4h -v ./conversions

.PHONY: differential
differential: ## compare CASES (default 1000) random cases with cosign 2, cosign 3 and notation (SEED=n: those of a seed)
	cd test && SEED=$${SEED:-$$(date +%s)} CASES=$${CASES:-1000} $(GO) test -count=1 -timeout 24h -run TestDifferential/cases -v ./differential

.PHONY: tidy
tidy: ## fail if go.mod, formatting or generated files are not up to date
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run gofmt"; exit 1; }
	$(GO) mod tidy -diff
	cd test && $(GO) mod tidy -diff
	cd test/e2e && $(GO) mod tidy -diff
	cd deploy/image && $(GO) mod tidy -diff
	$(GO) generate ./...
	@git diff --exit-code --stat || { echo "generated files differ: commit what go generate made"; exit 1; }
