GO      ?= go
BIN     := bin/futura
BENCH   := bin/futura-bench
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

# Compression is Go's in every build, as in the binary: without this tag a C library is compiled for the tests alone.
TAGS     := pebblegozstd
FDB_TAGS := fdb,$(TAGS)
# The race detector needs a C compiler.
CC_FOUND := $(shell command -v $$($(GO) env CC) 2>/dev/null)
RACE     := $(if $(CC_FOUND),-race,)
# The bindings read pointers that the client library does not align, which the race detector's checks of pointers refuse.
FDB_RACE := $(if $(RACE),$(RACE) -gcflags=github.com/apple/foundationdb/bindings/go/src/fdb=-d=checkptr=0)
# FoundationDB's part needs its server, its command and its client library.
FDB_CLIENT := $(if $(CC_FOUND),$(shell \
	echo 'int main(void){return 0;}' | $$($(GO) env CC) -x c - -lfdb_c -o /dev/null 2>/dev/null && echo yes))
FDB_FOUND := $(if $(FDB_CLIENT),$(shell command -v fdbserver >/dev/null && command -v fdbcli >/dev/null && echo yes))
# Rooms of the model: those whose goroutines share memory, and the others whose tests need a store.
BUSY_ROOMS := lanes mailbox modules names quota results schedule
CALM_ROOMS := activity actors admin audit batches circles edges fit forks inspect joblog maintenance metering owners pauses \
	promises read steps transfer
FDB_ROOMS  := $(addprefix ./fdbmodel/,$(BUSY_ROOMS) $(CALM_ROOMS))
# Names as alternatives of a pattern.
SPACE := $(subst ,, )
either = ($(subst $(SPACE),|,$(strip $(1))))
FDB_PACKAGES := ./fdbmodel $(FDB_ROOMS) ./fdbmodel/tuple ./fdbmodel/kv/fdbkv ./fdbmodel/kv/kvopen ./futures ./workers \
	./internal/sim ./internal/chaos ./batch/futurestore ./batch/head ./batch/jobqueue ./batch/grouping
# Faults of FoundationDB's own client are a switch of the whole process.
BUGGIFY_TESTS := -run 'TestSimOnServer|TestMachine$$|TestFewFutures|TestTwoClusters' ./internal/sim ./fdbmodel
# A real Prometheus scrapes a cluster, and evaluates what the dashboard and the alerts ask.
PROMETHEUS_FOUND := $(shell command -v prometheus >/dev/null && command -v promtool >/dev/null && echo yes)
FDB_INSTALL  := install foundationdb-clients and foundationdb-server 7.3 from \
	https://github.com/apple/foundationdb/releases, and a C compiler (for Debian: apt-get install gcc)
# The store for MongoDB is tested on a server that is a module; it comes over the network once. A copy of the list of
# modules is used, for it may have to follow that of the project.
MONGO_TESTS      := batch/mongostore/internal/ferrettest
MONGO_MODULES    := $(CURDIR)/bin/ferrettest
MONGO_LIST       := -mod=mod -modfile=$(MONGO_MODULES).mod
MONGO_FLAGS      := -tags $(TAGS) $(MONGO_LIST)
MONGO_TEST_FLAGS := -short -vet=off -timeout 10m
# Nodes of b7s that variables name; the list of modules is a copy for the same reason.
INTEROP_TESTS   := internal/interop/b7s
INTEROP_MODULES := $(CURDIR)/bin/interop
INTEROP_FLAGS   := -tags $(TAGS) -mod=mod -modfile=$(INTEROP_MODULES).mod
# The pages in a browser: what drives it is no dependency of the project. What looks for obstacles to a keyboard or a
# screen reader comes from npm, for these tests alone.
BROWSER_TESTS   := futures/dashboard/internal/browsertest
BROWSER_MODULES := $(CURDIR)/bin/browsertest
BROWSER_LIST    := -mod=mod -modfile=$(BROWSER_MODULES).mod
BROWSER_FLAGS   := -tags $(TAGS) $(BROWSER_LIST)
# Traces, as the receiver of OpenTelemetry's collector gets them: the collector is no dependency of the project.
COLLECTOR_TESTS   := internal/collectortest
COLLECTOR_MODULES := $(CURDIR)/bin/collectortest
COLLECTOR_LIST    := -mod=mod -modfile=$(COLLECTOR_MODULES).mod
AXE             := $(CURDIR)/bin/axe/package/axe.min.js
# What a short run tests under the race detector: the packages whose goroutines share memory. Compiling and running takes
# several times as long under it; a long run has it everywhere.
RACED := /(fdbmodel|fdbmodel/(internal/(claim|notify|serial)|$(call either,$(BUSY_ROOMS)))|fdbmodel/kv/(embedded|faultkv|remote|sharing)|$\
futures(/.*)?|workers|workers/objects(/.*)?|$\
batch/(futurestore|grouping|head|jobqueue|memstore|rest)|protocol/(p2p|peerhead|peerworker)|internal/(bubble|clock|connlimit))$$
# What make test tests: the model, the stores that need nothing installed, the client and the workers. Its calls are
# those of make test-all for fewer packages, so that neither repeats what the other has run.
CORE := /(fdbmodel(/($(call either,$(BUSY_ROOMS) $(CALM_ROOMS))|layout|reference|state|transfer/archive|tuple|internal/.*|$\
kv|kv/(embedded|faultkv|kvtest(/reference)?)))?|futures(/futurestest)?|workers|batch(/(batchtest|memstore))?|$\
internal/(anomaly|budget|bubble|clock|connlimit|faultdisk|lint|ratelog|socket|timetable|trust))$$
SCOPE := all
UNITS = $(GO) list ./... | grep -E '$(if $(filter core,$(SCOPE)),$(CORE),.)'
# Thousands of runs, which take five times as long with the race detector: a hundred have it.
SIM   := /internal/sim$$
# What is tested without C, as in the binary: the processes that functions run in.
UNC   := /workers/wasm$$
# What is also tested on a store whose rows lie on disk; a long run has all packages that take their store from storetest.
COLD  := ./fdbmodel $(addprefix ./fdbmodel/,lanes read results transfer)
COLDS  = $(shell grep -rl --include='*_test.go' 'internal/storetest"' ./fdbmodel ./futures ./workers ./batch | \
	xargs -n1 dirname | sort -u | grep -v mongostore)
# Packages with files for FoundationDB; vet has seen the others.
FDB_TAGGED := ./fdbmodel/tuple ./fdbmodel/kv/fdbkv ./fdbmodel/kv/kvopen ./internal/bank ./internal/chaos ./internal/fdbtest \
	./internal/sim ./internal/storetest ./cmd/futura ./cmd/futura-bench
# What a long run has without the race detector: tests that fail the power at every call of a workload, which run in one
# goroutine and print how often, and one that is about the time between two steps.
IMAGE_TESTS := TestImagesAtEveryCall|TestImagesOfACluster|TestFailureOfAnyCall|TestDamagedImages|TestMillionArms
# Tests of those packages that a short run runs without the race detector: those that work in one goroutine, or in
# processes of their own, and those that move and measure much memory.
PLAIN_TESTS := ^(TestImagesAtEveryCall|TestFailureOfAnyCall|TestDamagedImages|TestCrashAtEverySync|TestCrashWithoutSyncs|$\
TestCrashCheckFindsForgottenSyncs|TestCrashOfAnOpening|TestEveryFlippedBitIsFoundOrHarmless|$\
TestFlippedBitAfterAKill|TestDamagedTableIsReported|TestTornTail|TestManyOpenings|TestKilledProcess|$\
TestEndOfAClosedLog|TestConformanceOfModes|TestConformanceOnDisk|TestMachine|TestLostGraphIsRebuilt|$\
TestUnknownResults|TestManyDependants|TestCutLogs|TestMemoryIsBounded|TestTablesByChance|TestQueuesByChance|$\
TestDeletedRowsStayGoneWhereAllGetsCold|TestYearOfACrontab|$\
TestNonsenseCostsLittle|TestPackedNonsenseCostsItsSize|$\
TestListsOfLargeFuturesAreShort|TestLargeResultsAreReadOneByOne|TestArchivesAreCountedByWhatTheyUnpackTo|$\
TestRequestsThatAreTooLarge|TestCut|TestSharedFiles|TestLongStream|$\
TestTheLargestCommitsPassACheckpointOfASmallStore)$$
PLAIN := /(fdbmodel|fdbmodel/(results|schedule|kv/embedded|kv/remote)|futures/httpapi|batch/rest|workers/objects(/.*)?)$$
# Tests of many steps that a short run has on the embedded store alone: they are about time, turns and limits, or
# repeat on a server what others show there. A long run has them on FoundationDB too.
FDB_LATER := ^(TestPatienceWithWhatRunsElsewhere|TestNothingIsChargedThatNeverStarted|TestAnEndDoesNotWaitForASlot|$\
TestAPausedWorkerGivesTheDeathBack|TestRetryAfterReplacesTheBackoff|TestJanitorPromotesAndExpires|TestOrderByShards|$\
TestRandomCallsLeaveNothingBehindALongOne|TestQuarantineIsBounded|TestJobThatNeverRanLeavesOtherTimeouts|$\
TestFunctionThatIgnoresItsTimeoutKeepsItsSlot|TestTimeoutOfAFunctionThatHeedsIt|TestAMillionFailuresDoNotFillADisk|$\
TestResourcesAreNeverExceeded|TestWorkersTellWhatTheyUse|TestTheBoundOfWaitingFunctions|$\
TestUnknownResultsOfLanesInACallersTransaction|TestKindsBeginAndEndToHaveBundles|TestLimitOfTheRate|$\
TestARateThatIsRaisedHoldsAtOnce|TestMachineWithAClockThatJumps|TestAssignmentsMoveWhenTheirWorkerGoes|$\
TestMisfitsAreFoundByKind|TestYearOfACrontab|TestACallersTransactionReplacesInALane|$\
TestADamagedLaneCostsOnlyItsOwnFutures|TestManyInputs|TestLaneOfOneSubmitKeepsItsOrder|$\
TestCrowdsWithLabelsBlockNobody|TestLostGraphIsRebuilt|TestLaneSettingsChange|TestSettingsOfLanesHoldForAllLanes|$\
TestWhoFitsIsFoundBehindThoseWhoDoNot|TestNoClassOrQueueStarves|TestFailureUpstreamNamesTheChain|$\
TestAnyNumberOfParentsEnds|TestCallsAreFewUnderLoad)$$
# What vet finds out about a package holds for the same arguments. Tags are no argument here, so that of a package that
# has no files with tags it is found out once.
VET = GOFLAGS="$$($(GO) env GOFLAGS) -tags=$(1)" $(GO) vet
# Stages of the tests that need nothing installed.
UNIT_STAGES = unit-raced unit-plain unit-rest $(if $(filter core,$(SCOPE)),,unit-wasm unit-cold)
# The tests of a short run were vetted before. A package that hangs is ended after 20 minutes: the longest one computes
# for four on an idle machine, and a busy one was seen to need six times as long.
SHORT   := -short -vet=off -timeout 20m
LONG    := -vet=off -count=1 -timeout 60m

.PHONY: help build build-bench build-fdb demo test test-all test-unit unit-raced unit-plain unit-rest unit-wasm unit-cold test-fdb test-mongo test-browser test-collector pictures test-interop test-long \
	long-unit long-images long-fdb long-mongo test-mutants bench fuzz lint generate check clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.DEFAULT_GOAL := help

build: ## build bin/futura: one static binary, without FoundationDB
	CGO_ENABLED=0 $(GO) build -tags $(TAGS) -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/futura

build-bench: ## build bin/futura-bench, which measures and shows the cluster
	CGO_ENABLED=0 $(GO) build -tags $(TAGS) -trimpath -ldflags '$(LDFLAGS)' -o $(BENCH) ./cmd/futura-bench

build-fdb: ## build both with FoundationDB; needs its client library, 7.3
	@test -n "$(FDB_CLIENT)" || { echo "libfdb_c or a C compiler was not found: $(FDB_INSTALL)"; exit 1; }
	$(GO) build -tags $(FDB_TAGS) -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/futura ./cmd/futura-bench

demo: build-bench ## run the main job on real input: a WASM function over the Go sources
	./$(BENCH) demo

# Compilers and tests that collect less garbage need a fifth less of the processor.
test test-all: export GOGC = 400

test: ## run the tests of the model, its stores, the client and the workers; about 5 minutes on two cores with an empty build cache
	@$(MAKE) --no-print-directory --keep-going -j2 lint test-unit SCOPE=core
	@echo "SKIP: $$($(GO) list ./... | grep -cvE '$(CORE)') packages, FoundationDB and MongoDB; make test-all tests all"

test-all: lint ## run all tests, also on FoundationDB where it is installed; at most 15 minutes on two cores
	@failed=0; $(MAKE) --no-print-directory --keep-going --output-sync=target -j3 test-unit test-fdb test-mongo || failed=1; \
	$(MAKE) --no-print-directory --keep-going test-browser test-collector || failed=1; exit $$failed

lint:
	$(call VET,$(TAGS)) $$($(UNITS))
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }

test-unit: # a stage that fails does not keep the next one from running
ifeq ($(RACE),)
	@echo "SKIP: no C compiler found; the tests run without the race detector"
endif
ifeq ($(SCOPE)$(PROMETHEUS_FOUND),all)
	@echo "SKIP: prometheus or promtool not found, alerts and dashboard were not tested (for Debian: apt-get install prometheus)"
endif
	@$(MAKE) --no-print-directory --keep-going $(UNIT_STAGES)

unit-raced:
	$(GO) test -tags $(TAGS) $(RACE) $(SHORT) -skip '$(PLAIN_TESTS)' $$($(UNITS) | grep -E '$(RACED)')

unit-plain:
	$(GO) test -tags $(TAGS) $(SHORT) -run '$(PLAIN_TESTS)' $$($(UNITS) | grep -E '$(PLAIN)')

unit-rest:
	$(GO) test -tags $(TAGS) $(SHORT) $$($(UNITS) | grep -vE -e '$(RACED)' -e '$(UNC)')

unit-wasm:
	CGO_ENABLED=0 $(GO) test -tags $(TAGS) $(SHORT) $$($(UNITS) | grep -E '$(UNC)')

unit-cold:
	FUTURA_TEST_COLD=1 $(GO) test -tags $(TAGS) $(SHORT) $(COLD)

test-fdb: ## run the tests that need a FoundationDB server, on one that they start
ifeq ($(FDB_FOUND),yes)
	$(call VET,$(FDB_TAGS)) $(FDB_TAGGED)
	$(GO) test -tags $(FDB_TAGS) $(SHORT) -p 2 -skip '$(FDB_LATER)' $(filter-out ./internal/sim,$(FDB_PACKAGES))
	$(GO) test -tags $(FDB_TAGS) $(SHORT) -run TestSimOnServer ./internal/sim
	$(GO) test -tags $(FDB_TAGS) $(SHORT) -run FoundationDB ./cmd/futura ./internal/bank
	@echo "SKIP: $(words $(subst |, ,$(FDB_LATER))) tests ran on the embedded store alone; make long-fdb has all on FoundationDB"
else
	@test "$$FUTURA_REQUIRE_FDB" != 1 || { echo "FoundationDB is required and was not found: $(FDB_INSTALL)"; exit 1; }
	@echo "SKIP: FoundationDB not found, its tests did not run: $(FDB_INSTALL)"
endif

test-mongo: ## run the tests of the store for MongoDB, on a server that they embed
	@mkdir -p bin && cp $(MONGO_TESTS)/go.mod $(MONGO_MODULES).mod && cp $(MONGO_TESTS)/go.sum $(MONGO_MODULES).sum
	@cd $(MONGO_TESTS) && if $(GO) list $(MONGO_FLAGS) -test -deps . >/dev/null 2>$(MONGO_MODULES).log; then \
		$(call VET,$(TAGS)) $(MONGO_LIST) . && $(GO) test $(MONGO_FLAGS) $(MONGO_TEST_FLAGS) .; \
	elif test "$$FUTURA_REQUIRE_MONGO" = 1; then cat $(MONGO_MODULES).log; exit 1; \
	else echo "SKIP: the modules of $(MONGO_TESTS) could not be fetched, its tests did not run; see bin/ferrettest.log"; fi

test-browser: ## run the tests of the pages in a Chromium, where one is
	@mkdir -p bin/axe && cp $(BROWSER_TESTS)/go.mod $(BROWSER_MODULES).mod && cp $(BROWSER_TESTS)/go.sum $(BROWSER_MODULES).sum
	@test -f $(AXE) || ! command -v npm >/dev/null || (cd bin/axe && npm pack --silent axe-core@4 >/dev/null 2>&1 && \
		tar xzf axe-core-*.tgz) || true
	@cd $(BROWSER_TESTS) && if $(GO) list $(BROWSER_FLAGS) -test -deps . >/dev/null 2>$(BROWSER_MODULES).log; then \
		$(call VET,$(TAGS)) $(BROWSER_LIST) . && \
		FUTURA_AXE=$$(test -f $(AXE) && echo $(AXE)) $(GO) test $(BROWSER_FLAGS) -vet=off -timeout 10m; \
	else echo "SKIP: the modules of $(BROWSER_TESTS) could not be fetched, the pages were not tested in a browser; see bin/browsertest.log"; fi

test-collector: ## run the test of traces with the receiver of OpenTelemetry's collector
	@mkdir -p bin && cp $(COLLECTOR_TESTS)/go.mod $(COLLECTOR_MODULES).mod && cp $(COLLECTOR_TESTS)/go.sum $(COLLECTOR_MODULES).sum
	@cd $(COLLECTOR_TESTS) && if $(GO) list $(COLLECTOR_LIST) -test -deps . >/dev/null 2>$(COLLECTOR_MODULES).log; then \
		$(call VET,$(TAGS)) $(COLLECTOR_LIST) . && $(GO) test $(COLLECTOR_LIST) -vet=off -timeout 10m .; \
	else echo "SKIP: the modules of $(COLLECTOR_TESTS) could not be fetched, no collector got traces; see bin/collectortest.log"; fi

pictures: ## make the pictures of the documentation, in a Chromium
	@cd $(BROWSER_TESTS) && FUTURA_DOCS_PICTURES=$(CURDIR)/docs/operating $(GO) test -tags $(TAGS) -mod=mod -count=1 -run TestPictures .

test-interop: ## run the tests with nodes of b7s that FUTURA_B7S_PERSIST and FUTURA_B7S_BATCHED name
	@mkdir -p bin && cp $(INTEROP_TESTS)/go.mod $(INTEROP_MODULES).mod && cp $(INTEROP_TESTS)/go.sum $(INTEROP_MODULES).sum
	@if test -z "$$FUTURA_B7S_PERSIST$$FUTURA_B7S_BATCHED"; then \
		echo "SKIP: FUTURA_B7S_PERSIST and FUTURA_B7S_BATCHED are unset, nothing was tested with b7s; see CONTRIBUTING.md"; \
	else cd $(INTEROP_TESTS) && $(GO) vet $(INTEROP_FLAGS) . && \
		$(GO) test $(INTEROP_FLAGS) -vet=off -count=1 -timeout 15m -v .; fi

test-long: lint ## everything with fresh seeds, 200 kills, 10,000 programs, 10,000 crash images; hours
	@$(MAKE) --no-print-directory --keep-going long-unit long-images long-fdb long-mongo test-browser test-collector test-interop \
		test-mutants

long-unit:
	FUTURA_LONG=1 $(GO) test -tags $(TAGS) $(RACE) $(LONG) -p 2 -skip '$(IMAGE_TESTS)' $$($(GO) list ./... | grep -v '$(SIM)')
	FUTURA_LONG=1 $(GO) test -tags $(TAGS) $(LONG) ./internal/sim
	FUTURA_LONG=1 $(GO) test -tags $(TAGS) $(RACE) $(LONG) -run 'TestSim$$' ./internal/sim -seeds 100
	FUTURA_LONG=1 CGO_ENABLED=0 $(GO) test -tags $(TAGS) $(LONG) $$($(GO) list ./... | grep -E '$(UNC)')
	FUTURA_TEST_COLD=1 $(GO) test -tags $(TAGS) $(LONG) -short -p 2 $(COLDS)

long-images:
	FUTURA_LONG=1 $(GO) test -tags $(TAGS) $(LONG) -v -run '$(IMAGE_TESTS)' ./fdbmodel/kv/embedded ./internal/faultdisk

long-fdb:
ifeq ($(FDB_FOUND),yes)
	FUTURA_LONG=1 $(GO) test -tags $(FDB_TAGS) $(FDB_RACE) $(LONG) -p 2 $(filter-out ./internal/sim,$(FDB_PACKAGES))
	FUTURA_LONG=1 $(GO) test -tags $(FDB_TAGS) $(FDB_RACE) $(LONG) -run TestSimOnServer ./internal/sim
	FUTURA_LONG=1 $(GO) test -tags $(FDB_TAGS) $(FDB_RACE) $(LONG) -run FoundationDB ./cmd/futura ./internal/bank
	FUTURA_LONG=1 FUTURA_FDB_BUGGIFY=1 $(GO) test -tags $(FDB_TAGS) $(FDB_RACE) $(LONG) $(BUGGIFY_TESTS)
else
	@test "$$FUTURA_REQUIRE_FDB" != 1 || { echo "FoundationDB is required and was not found: $(FDB_INSTALL)"; exit 1; }
	@echo "SKIP: FoundationDB not found, its tests did not run: $(FDB_INSTALL)"
endif

long-mongo:
	FUTURA_LONG=1 $(MAKE) test-mongo MONGO_TEST_FLAGS='$(LONG)'

test-mutants: ## plant faults in the source, one at a time, and see the tests fail; hours, or FUTURA_MUTANTS=2/8
	FUTURA_MUTANTS=$(or $(FUTURA_MUTANTS),1) $(GO) test -tags $(TAGS) -count=1 -timeout 180m -parallel 2 -v -run TestMutantsDie ./internal/mutants

# FoundationDB is one of the stores where its server is.
bench: $(if $(FDB_FOUND),build-fdb,build-bench) ## measure each scenario on each kind of store, and write docs/reference/performance.md; 10 minutes
	./$(BENCH) page

fuzz: ## fuzz each decoder for half a minute
	@set -e; for pkg in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime 30s $$pkg; done; done

generate: ## write the generated pages of docs
	$(GO) test -tags $(TAGS) ./fdbmodel ./fdbmodel/state ./fdbmodel/keyspace ./internal/lint ./protocol ./internal/bench/page -run TestDocs -update

check: test-all ## all tests, then a tidy module and a clean tree
	$(GO) mod tidy -diff
	@test -z "$$(git status --porcelain)" || { echo "the tree is not clean"; git status --short; exit 1; }

clean: ## remove what was built
	rm -rf bin
