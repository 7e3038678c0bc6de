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
RACE    := ./internal/fairqueue/... ./background/... ./cache/... ./cluster/... ./gate/... ./gateway/... ./policy/catalog/... ./policy/globalcontext/... ./registry/... ./report/decisionlog/... ./report/inventory/... ./report/publish/... ./scan/... ./verify/trust/... ./webhook/...
ROUNDS  := ^Test(BreakGlass|Chart|Dashboard|Documentation|OwnImages|Prometheus|Reports|Roles|RunningGateway|Scan|Upgrade)
UNIT    := $(if $(RACED),$$($(GO) list ./... | grep -vxF "$$($(GO) list $(RACE))"),./...)
# For go test, as in TESTFLAGS='-vet=off -ldflags=-w' where vet has run already and
# nobody debugs: most of the time goes into linking.
TESTFLAGS ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/quaymaster
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN)/quaymaster ./cmd/quaymaster

.PHONY: images
images: ## build the container images, as OCI layouts, into dist/images
	cd deploy/image && $(GO) run . --version $(VERSION) --output $(CURDIR)/dist/images

.PHONY: images-check
images-check: ## build the images twice, in two folders, and compare every byte (COLD=1: compile twice, too)
	deploy/image/check.sh

.PHONY: test
test: ## the fast answer: the product's own tests, a short run of every fuzz target, and the suites that need no other program (RACED=1: without what make race runs)
	$(MAKE) -j2 --output-sync=target unit fuzz-short suite-own

.PHONY: test-all
test-all: test suites ## the same, and the suites with real programs

.PHONY: unit
unit: ## the product's own tests, and those of the module that builds its images (RACED=1: without what make race runs)
	$(GO) test $(TESTFLAGS) $(UNIT)
	cd deploy/image && $(GO) test $(TESTFLAGS) ./...

.PHONY: metrics
metrics: ## print the measures of the code and its prose, which budgets_test.go and words_test.go bound
	$(GO) test $(TESTFLAGS) -count=1 -run '^Test(Metrics|ReadingOrder)$$' -v . | sed 's/^ *[a-z]*_test.go:[0-9]*: //'

.PHONY: programs
programs: ## cosign, an API server and the rest that the suites run, built once from Go modules into your cache (QUAYMASTER_LONG=1: with those of make long)
	cd test && $(GO) run ./peers/programs

.PHONY: align
align: ## raise what those programs share with this project to its versions, so that it is compiled once
	cd test && $(GO) run ./peers/align

.PHONY: long
long: ## every suite, with the tests that take minutes: each night, and before a release
	QUAYMASTER_LONG=1 $(MAKE) suite-own suites

# The suites that need no program built from another module.
OWN := ./attacks/... ./browser/... ./fuzz/... ./mutants/... ./sigstore/...

.PHONY: suites suite-own suite-programs suite-harness suite-binary suite-cluster suite-cluster-rest suite-rounds
suites: programs ## the suites with real programs, but for those that take minutes; three at a time, for each waits more than it works
	$(MAKE) -j3 --output-sync=target suite-cluster suite-rounds suite-cluster-rest suite-programs suite-harness

suite-own: ## the attacks, the pages in a browser, and the other suites without programs of other modules
	cd test && $(GO) test $(TESTFLAGS) -count=1 -timeout 40m $(OWN)

suite-programs: suite-binary ## against cosign, crane and registries built from Go modules
	cd test && own="$$($(GO) list $(OWN))" && $(GO) test $(TESTFLAGS) -count=1 -timeout 40m $$($(GO) list ./... | grep -vxF "$$own")

suite-harness: suite-binary ## what the suites against an API server are made of, and a few of the faults of make chaos
	cd test/e2e && $(GO) test $(TESTFLAGS) -count=1 -timeout 40m $$($(GO) list ./... | grep /e2e/)

# The suites against a real API server built from Go modules, in three parts, each with an
# API server of its own.
E2E = cd test/e2e && ../../$(BIN)/e2e.test -test.count=1 -test.timeout 40m

suite-binary: # all of them want it, so that make begins with the first, which take longest
	@mkdir -p $(BIN)
	cd test/e2e && $(GO) test -c $(TESTFLAGS) -o ../../$(BIN)/e2e.test .

suite-cluster: suite-binary ## against a real API server: those from A to G
	$(E2E) -test.run '^Test[A-G]' -test.skip '$(ROUNDS)'

suite-cluster-rest: suite-binary ## those from H on
	$(E2E) -test.skip '^Test[A-G]|$(ROUNDS)'

suite-rounds: suite-binary ## and those that install, upgrade, scan or report
	$(E2E) -test.run '$(ROUNDS)'

.PHONY: race
race: ## the race detector where there are goroutines
	CGO_ENABLED=1 $(GO) test $(TESTFLAGS) -race $(RACE)

.PHONY: static
static: vet tidy lint ## all that is found without running the program

.PHONY: vet
vet: ## go vet, every module
	$(GO) vet ./...
	cd test && $(GO) vet ./...
	cd test/e2e && $(GO) vet ./...
	cd deploy/image && $(GO) vet ./...

$(LINTER): test/tools/golangci-lint/go.mod
	@mkdir -p $(BIN)
	cd test/tools/golangci-lint && $(GO) build -o ../../../$(LINTER) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: lint
lint: $(LINTER) ## the linter, itself built from Go modules
	$(LINTER) run ./...
	cd deploy/image && ../../$(LINTER) run ./...

$(VULNS): test/tools/govulncheck/go.mod
	@mkdir -p $(BIN)
	cd test/tools/govulncheck && $(GO) build -o ../../../$(VULNS) golang.org/x/vuln/cmd/govulncheck

.PHONY: vulnerabilities
vulnerabilities: $(VULNS) ## known vulnerabilities in what the programs call, by https://vuln.go.dev (VULNDB=url: another database)
	$(VULNS) $(if $(VULNDB),-db $(VULNDB)) ./cmd/...

.PHONY: docs
docs: ## the documentation as HTML in bin/docs
	cd test && $(GO) run ./docs/build -o ../$(BIN)/docs

.PHONY: bench
bench: ## the benchmarks, with requests and rounds counted
	$(GO) test -run '^$$' -bench . -benchmem ./...

.PHONY: bench-admission
bench-admission: ## pod creation with no webhook, a no-op pair and the gateway, against a real API server
	cd test/e2e && $(GO) run ./bench

.PHONY: load
load: ## a drain, users who come and rush in, and a steady day, on simulated nodes (some four minutes)
	cd test/e2e && $(GO) run ./load

.PHONY: chaos
chaos: ## everything that can fail does, under load, and a checker looks at every answer and record (some five minutes, and the first time those in which the gateway is compiled for a clock that can be set; CHAOS='-faults kill,disk' for a part)
	cd test/e2e && $(GO) run ./chaos $(CHAOS)

.PHONY: soak
soak: ## a steady load for SOAK (default 1h), in which memory, goroutines and files must stay what they are
	cd test/e2e && $(GO) run ./chaos -soak $${SOAK:-1h}

.PHONY: manifests
manifests: ## what is made from the charts' values, from the definitions and from the chart
	$(GO) test -count=1 ./deploy -run 'TestValues|TestCopies' -update
	cd test && $(GO) test -count=1 ./chart -run 'TestManifests$$' -update

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME each (default 20s)
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzzminimizetime 5x -fuzztime $${FUZZTIME:-20s} $$p || exit 1; \
	  done; \
	done

# Packages with a fuzz target.
FUZZED = $$(grep -rl --include='*_test.go' --exclude-dir=test '^func Fuzz' . | xargs -n1 dirname | sort -u)

.PHONY: fuzz-short
fuzz-short: ## every fuzz target for FUZZCOUNT inputs (default 1000), as many packages at a time as there are cores
	@packages="$(FUZZED)"; \
	test -n "$$packages" || { echo "no fuzz target found"; exit 1; }; \
	$(GO) test $(TESTFLAGS) -count=1 -exec '$(CURDIR)/test/fuzz/short.sh' $$packages

.PHONY: mutants
mutants: ## checks taken out or turned round, of which each must make a test fail (PACKAGE=verify/...: only there)
	cd test && $(GO) run ./mutants/run $(if $(VERBOSE),-v) $(if $(MATCH),-match '$(MATCH)') $(PACKAGE)

.PHONY: differential
differential: ## CASES (1000) drawn at random for cosign 2, cosign 3 or notation and for us (SEED=n: those of a seed)
	cd test && SEED=$${SEED:-$$(date +%s)} CASES=$${CASES:-1000} $(GO) test -count=1 -timeout 24h -run TestDifferential/cases -v ./differential

.PHONY: tidy
tidy: ## fail if go.mod, formatting or generated files are not as a clean run leaves them
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run gofmt"; exit 1; }
	$(GO) mod tidy -diff
	cd test && $(GO) mod tidy -diff
	cd test/e2e && $(GO) mod tidy -diff
	cd deploy/image && $(GO) mod tidy -diff
	$(GO) generate ./...
	@git diff --exit-code --stat || { echo "generated files differ: commit what go generate made"; exit 1; }
