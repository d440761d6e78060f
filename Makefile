# What a person types here. The same targets are what .ci/run calls.

SHELL = /bin/sh
GO ?= go
TOOL = $(GO) tool -modfile=build/tools/go.mod

# As shipped: no cgo, no paths of the build machine, no symbol table.
RELEASE = CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w'

# What a stripped linux/amd64 binary may weigh, in bytes.
SIZE_MAX = 25000000

# Where a release runs.
PLATFORMS = linux/amd64 linux/arm64 linux/arm windows/amd64 darwin/arm64

FUZZTIME ?= 10s
SEEDS ?= 10000
KILLS ?= 200
BROKER_KILLS ?= 25
CLUSTER_SECONDS ?= 600
ANSWER_KILLS ?= 500
MASTER_KILLS ?= 300
HISTORIES ?= 200
DELIVERY_SEEDS ?= 1100
TRIAL ?= 1m
HANDOVER ?= 1000
TESTFLAGS ?=
BENCHFLAGS ?=

.DEFAULT_GOAL = help
.PHONY: help build test race fmt lint vet vuln libc fuzz cross size demo sim mutants soak bench ci clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build ./leasehold, without cgo as shipped
	CGO_ENABLED=0 $(GO) build -trimpath -o leasehold .

test: ## run the whole suite, without cgo as shipped; list what was skipped
	@sh build/setup.sh test
	@mkdir -p .cache && rm -f .cache/skipped
	@status=0; CGO_ENABLED=0 LEASEHOLD_SKIPPED='$(CURDIR)/.cache/skipped' $(GO) test -count=1 -timeout 30m $(TESTFLAGS) ./... || status=$$?; \
	if [ -s .cache/skipped ]; then echo 'skipped here:'; sort .cache/skipped; fi; exit $$status

# One processor for each package: the race detector of Go 1.26 keeps one state for all
# the timers of a synctest bubble, and two processors that use it at once end the test
# with SIGSEGV (golang/go#78156). It finds by what happens before what, so that it needs
# no second one; two packages run at once all the same, two tests of each that mostly wait,
# and so do the programs they start.
race: ## run the whole suite under the race detector, which needs cgo and gcc
	@sh build/setup.sh race
	CGO_ENABLED=1 $(GO) test -race -cpu 1 -parallel 2 -count=1 -timeout 30m $(TESTFLAGS) ./...

fmt: ## format every Go file
	$(TOOL) golangci-lint fmt

lint: ## run the linters, the import rule among them (the first time builds them: minutes)
	$(TOOL) golangci-lint config verify
	$(TOOL) golangci-lint run

vet: ## run go vet for this platform
	CGO_ENABLED=0 $(GO) vet ./...

vuln: ## look for known vulnerabilities, offline
	@sh build/vuln.sh

libc: ## check that modernc.org/libc is the version that its SQLite was made for
	@sh build/libc.sh

fuzz: ## fuzz every fuzz test for FUZZTIME (10s)
	@FUZZTIME='$(FUZZTIME)' sh build/fuzz.sh

cross: ## build and vet for every platform of a release, into dist/
	@PLATFORMS='$(PLATFORMS)' sh build/cross.sh

size: ## weigh the stripped linux/amd64 binary against its limit
	@mkdir -p dist
	@GOOS=linux GOARCH=amd64 $(RELEASE) -o dist/leasehold-size .
	@size=$$(wc -c <dist/leasehold-size); rm dist/leasehold-size; echo "$$size bytes of at most $(SIZE_MAX)"; [ "$$size" -le $(SIZE_MAX) ]

demo: build ## build, and watch one event travel (Ctrl-C ends it)
	@exec ./leasehold run --demo

sim: ## simulate SEEDS (10000) runs of the engine's core
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 30m ./engine -run TestSimulation -sim.seeds $(SEEDS)

mutants: ## break promises one by one; write who noticed into docs/evidence.md (half an hour)
	$(GO) run ./internal/mutants -write docs/evidence.md

soak: ## kill the program KILLS (200) times under load, BROKER_KILLS (25) with its MQTT broker, ANSWER_KILLS (500) while it answers and MASTER_KILLS (300) while it rotates its master key; break a cluster for CLUSTER_SECONDS (600); restart one of HANDOVER (1000) installations in turn; deliver a million events of DELIVERY_SEEDS (1100); check HISTORIES (200) of each store
	LEASEHOLD_KILLS=$(KILLS) CGO_ENABLED=0 $(GO) test -count=1 -v -timeout 30m -run '^TestKilled$$' ./internal/evidence/
	LEASEHOLD_BROKER_KILLS=$(BROKER_KILLS) CGO_ENABLED=0 $(GO) test -count=1 -v -timeout 30m -run '^TestBrokerKilled$$' ./internal/evidence/
	LEASEHOLD_CLUSTER_SECONDS=$(CLUSTER_SECONDS) CGO_ENABLED=0 $(GO) test -count=1 -v -timeout 30m -run '^TestCluster$$' ./internal/evidence/
	LEASEHOLD_HANDOVER=$(HANDOVER) CGO_ENABLED=0 $(GO) test -count=1 -v -timeout 30m -run '^(TestHandOver|TestOneBoxKilled)$$' ./internal/evidence/
	LEASEHOLD_ANSWER_KILLS=$(ANSWER_KILLS) CGO_ENABLED=0 $(GO) test -count=1 -v -timeout 30m -run '^TestAnswersKilled$$' ./internal/evidence/
	LEASEHOLD_MASTER_KILLS=$(MASTER_KILLS) CGO_ENABLED=0 $(GO) test -count=1 -v -timeout 30m -run '^TestMasterKeyKilled$$' ./internal/evidence/
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 30m ./delivery -run '^TestSimulation$$' -sim.seeds $(DELIVERY_SEEDS)
	LEASEHOLD_HISTORIES=$(HISTORIES) LEASEHOLD_TRIAL=$(TRIAL) CGO_ENABLED=0 $(GO) test -count=1 -timeout 30m -run '^(TestHistories|TestTrial)$$' ./store/sqlite ./store/postgres

bench: ## measure what it costs, beside what it could cost; a quarter of an hour (Linux, Mosquitto, PostgreSQL)
	CGO_ENABLED=0 $(GO) run ./internal/bench $(BENCHFLAGS)

ci: ## all that a change must pass; .ci/run
	@bash .ci/run

clean: ## remove what the targets above made
	rm -rf leasehold leasehold.exe dist .cache
