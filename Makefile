GO       ?= go
GOLANGCI ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
BIN      := bin/till
FUZZTIME ?= 10s
TILL_CRASH_KILLS ?= 100
TILL_CRASH_POINT_KILLS ?= 20
# Simulated weeks of make check, some two minutes of two cores; as many must reach every goal.
SEEDS    ?= 300
# Tests mostly wait for the programs that they start, so those of four packages run at once even on two cores.
AT_ONCE  := $(shell n=$$(nproc 2>/dev/null || echo 4); echo $$((n > 4 ? n : 4)))
# The packages whose tests take longest begin first: begun last, they would run on alone.
LONGEST  := ./cmd/till ./flow/checkout
# The race detector watches our code and not SQLite's, which is C made into Go,
# works under its own locks, and takes four times as long when it is watched; nor
# the hash of a password, which shares nothing. In whatsmeow's store of a device an unlinked
# number meets the name of a payer that is being kept: that is a race of its own, and nobody
# waits for either.
RACE     := CGO_ENABLED=1 $(GO) test -race -p $(AT_ONCE) -gcflags='modernc.org/...=-race=false' -gcflags='golang.org/x/crypto/...=-race=false' -gcflags='go.mau.fi/whatsmeow/store=-race=false'
# Packages whose tests are fast under the race detector, without their sweeps and
# each on one of the databases; `make race` takes all.
FAST     ?= ./bot ./config/... ./flow/... ./hooks/... ./rail/... ./api/...

export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help
.PHONY: help build run test test-browser pictures race check fmt lint golden sim sim-long sim-postgres sim-oracle fuzz cover bench-api bench-chat bench-hooks crash crash-points fault-disk fault-io fault-order fault-wal fault-busy fault-redis fault-rail fault-backup fault-upgrade fault-long search licences sbom vuln audit reproduce unit bench soak fault-slow fault-keys fault-timing fault-rotation fault-races fault-notices fault-sinks fault-whatsapp fault-clock clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/till
	$(GO) build -trimpath -ldflags "-s -w" -o $(BIN) ./cmd/till

run: build ## build it and start everything on this machine
	./$(BIN) dev

# COVER=85 counts what the tests reach of the code, in the programs that they start too, and
# fails where that is less than so many percent of it.
test: build $(if $(COVER),bin/till-counting) ## run every test
	$(if $(COVER),rm -rf bin/counted && mkdir -p bin/counted)
	$(if $(COVER),TILL_COUNTED=$(CURDIR)/bin/counted )TILL_BIN=$(CURDIR)/$(if $(COVER),bin/till-counting,$(BIN)) $(GO) test -p $(AT_ONCE) -timeout 20m $(if $(COVER),-coverpkg=./... -coverprofile=cover.out) $(LONGEST) ./...
	$(if $(COVER),$(GO) tool covdata textfmt -i=bin/counted -o=bin/counted.out && tail -n +2 bin/counted.out >> cover.out)
	$(if $(COVER),@$(GO) tool cover -func=cover.out | awk 'END {print "the tests reach " $$3 " of the statements; $(COVER)% must be"; exit $$3 + 0 < $(COVER)}')

bin/till-counting: build
	$(GO) build -trimpath -cover -coverpkg=./... -o $@ ./cmd/till

cover: ## run every test, and say how much of the code they reach: 85 % or more
	$(MAKE) test COVER=85

test-browser: build ## drive the console and the phone in a browser; needs node, npm and chromium
	cd .browser && npm ci --no-audit --no-fund --silent && TILL_BIN=$(CURDIR)/$(BIN) npm test

pictures: build ## make the README's pictures anew; needs what make test-browser does
	cd .browser && npm ci --no-audit --no-fund --silent && TILL_BIN=$(CURDIR)/$(BIN) TILL_PICTURES=$(CURDIR)/.github node --test journeys.test.mjs

race: build ## run every test under the race detector
	TILL_BIN=$(CURDIR)/$(BIN) $(RACE) -timeout 40m ./...

check: ## format, lint, vet, module sums, the fast tests under the race detector, and 300 simulated weeks
	$(GOLANGCI) fmt --diff
	$(GOLANGCI) run
	$(GO) vet ./...
	$(GO) vet -tags crashpoints ./flow/crashpoint
	$(GO) mod verify
	$(RACE) -short -timeout 15m $(FAST)
	$(GO) run ./cmd/till sim --seeds $(SEEDS)
	$(GO) build -tags planted -o bin/till-planted ./cmd/till
	TILL_BIN=$(CURDIR)/bin/till-planted $(GO) test -tags planted -run Planted ./cmd/till

fmt: ## format the code
	$(GOLANGCI) fmt

lint: ## find defects and wrong imports
	$(GOLANGCI) run

golden: ## write the goldens anew; look at the difference before you commit it
	@grep -rlE '(Bool|BoolVar)\(.*"update"' --include='*_test.go' . | xargs -r -n1 dirname | sort -u | \
		xargs -r -I{} $(GO) test -count=1 -run Golden {} -update

sim: build ## simulate 300 weeks of the whole service, with everything going wrong
	./$(BIN) sim --seeds 300

sim-long: build ## simulate 10,000 weeks
	./$(BIN) sim --seeds 10000

sim-postgres: ## play TILL_SIM_POSTGRES weeks (100) on SQLite and on PostgreSQL: both must tell the same story: about 10 min
	$(call many,TILL_SIM_POSTGRES,100,^TestAWeekIsTheSameOnPostgreSQL$$,./cmd/till/sim)

sim-oracle: ## plant bugs in the program, one after the other, and see that the simulation finds each: about a CPU minute
	$(GO) build -tags planted -o bin/till-planted ./cmd/till
	./bin/till-planted oracle

unit: build ## run .ops/till.service under a real systemd, kill it, hang it, put it back: about 80 s, as root
	.ci/unit

fuzz: ## run each fuzz target for FUZZTIME (10s)
	@grep -rlE '^func Fuzz' --include='*_test.go' . | sort | while read -r file; do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$$file"); do \
			echo "$$target in $$file"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" || exit 1; \
		done; \
	done

bench-api: ## measure the API beside a bare JSON echo: one table, about 75 s
	@$(GO) test -timeout 5m -run '^$$' -bench '^BenchmarkLoad$$' -benchtime 1x ./api

bench-chat: build ## measure the bot beside a bare echo bot on the local WhatsApp network: one table, about 2 min
	@TILL_BIN=$(CURDIR)/$(BIN) $(GO) test -timeout 10m -run '^$$' -bench '^BenchmarkChat$$' -benchtime 1x ./cmd/till

bench-hooks: ## measure webhooks beside bare commits, bare POSTs and River: one table, about 5 min
	@$(GO) test -timeout 40m -run '^$$' -bench '^BenchmarkHooks$$' -benchtime 1x ./flow/checkout

crash: build ## kill -9 under load TILL_CRASH_KILLS times (100), and look for what is lost or doubled: about 130 s, 1000 take 25 min
	@TILL_BIN=$(CURDIR)/$(BIN) TILL_CRASH_KILLS=$(TILL_CRASH_KILLS) $(GO) test -timeout 90m -run '^$$' -bench '^BenchmarkCrash$$' -benchtime 1x ./cmd/till/crash

crash-points: ## kill it at each of 25 named points TILL_CRASH_POINT_KILLS times (20), and look for the same: about 15 min
	$(GO) build -trimpath -tags crashpoints -o bin/till-crashpoints ./cmd/till
	@TILL_BIN=$(CURDIR)/bin/till-crashpoints TILL_CRASH_POINT_KILLS=$(TILL_CRASH_POINT_KILLS) $(GO) test -timeout 90m -run '^$$' -bench '^BenchmarkCrashPoints$$' -benchtime 1x ./cmd/till/crash

# Each fault is a benchmark of its name: BenchmarkFaultBusy, of the packages named.
fault = @TILL_BIN=$(CURDIR)/$(BIN) $(GO) test -timeout 30m -run '^$$' -bench '^BenchmarkFault$(1)$$' -benchtime 1x $(2)

fault-disk: build ## take its disk away 50 times in each of three ways; a disk of its own needs root
	$(call fault,Disk,./cmd/till/crash ./flow/store)

fault-io: build ## have the Nth write and the Nth sync fail, for N up to 50; needs strace
	$(call fault,IO,./cmd/till/crash)

fault-order: build ## look at the order of writes, syncs and answers of 500 calls; needs strace
	$(call fault,Order,./cmd/till/crash)

fault-wal: ## tear the log of its database 1000 times: about 3 min
	$(call fault,Wal,./flow/store)

fault-busy: build ## hold its database from another process for 1, 5 and 30 s
	$(call fault,Busy,./cmd/till/crash)

fault-redis: build ## lose Redis, or let it lie, in six ways in the middle of 100 chats each
	$(call fault,Redis,./cmd/till/crash)

fault-rail: build ## let the bank do what it is asked and not say so, 1000 times
	$(call fault,Rail,./cmd/till/crash)

fault-long: ## write the longest message there can be, of nine kinds: about 2 s
	$(call fault,Long,./bot)

fault-backup: build ## back up 50 times under load, and verify each
	$(call fault,Backup,./cmd/till/crash)

fault-upgrade: build ## kill -9 what brings a working Till on by a version, 50 times on each kind of database; needs strace: about 3 min
	$(call fault,Upgrade,./cmd/till/crash)

search: build ## push card numbers, BVNs and keys through every door, then look for a byte of them: about 1 min
	TILL_BIN=$(CURDIR)/$(BIN) $(GO) test -count=1 -timeout 10m -v -run '^(TestTheSearchFindsEachForm|TestNoSecretIsKeptWhicheverDoorItComesThrough)$$' ./cmd/till

licences: build ## list the modules in the binary with their licences anew
	$(GO) run .supply/supply.go licences $(BIN) > .supply/licences.new && mv .supply/licences.new .supply/licences.txt
	$(GO) run .supply/supply.go check $(BIN) .supply/licences.txt

sbom: build ## write bin/till.cdx.json, the bill of materials (CycloneDX)
	$(GO) run .supply/supply.go sbom $(BIN) > $(BIN).cdx.json && echo $(BIN).cdx.json

# What the release of Go that go.mod names is not known to be open to: an older one on
# this machine would be told of what it is.
vuln: ## look for known vulnerabilities, in the newest database that the module proxy has or VULNDB=, a folder or an address
	@$(if $(VULNDB),,$(GO) run .supply/supply.go vulndb bin/vulndb)
	GOTOOLCHAIN=$$(sed -n 's/^toolchain //p' go.mod) $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.1.4 -db $(if $(findstring ://,$(VULNDB)),$(VULNDB),file://$(abspath $(or $(VULNDB),bin/vulndb))) ./...

audit: build ## gosec and staticcheck by themselves, each finding explained, licences, and other machines: about 5 min
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	$(GO) run github.com/securego/gosec/v2/cmd/gosec@v2.22.4 -quiet -no-fail -fmt json -out bin/gosec.json ./...
	$(GO) run .supply/supply.go gosec bin/gosec.json .supply/gosec.txt
	$(GO) run .supply/supply.go check $(BIN) .supply/licences.txt
	for on in darwin/arm64 linux/arm64 linux/386; do echo "vet for $$on" && GOOS=$${on%/*} GOARCH=$${on#*/} $(GO) vet ./... || exit; done

reproduce: ## build the last commit twice, in two places and from nothing: the same bytes; about 5 min
	@set -eu; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	for place in one another/and/deeper; do \
		git clone -q . "$$dir/$$place"; \
		(cd "$$dir/$$place"; GOCACHE="$$dir/$$place-cache" $(GO) build -trimpath -ldflags "-s -w" -o bin/till ./cmd/till); \
		(cd "$$dir/$$place"; sha256sum bin/till) >> "$$dir/sums"; \
	done; \
	cat "$$dir/sums"; \
	test "$$(cut -d' ' -f1 "$$dir/sums" | sort -u | wc -l)" -eq 1 && echo "the same bytes from two places"

bench: build ## measure the whole service beside what the machine does bare: one table, 20 min to 1 h; TILL_BENCH_SHORT=1: small numbers, 10 min
	@TILL_BIN=$(CURDIR)/$(BIN) $(GO) test -timeout 120m -run '^$$' -bench '^BenchmarkService$$' -benchtime 1x ./cmd/till/load

soak: build ## 100 checkouts/s for TILL_SOAK (30m) with a fault each 30 s, and look for what grows
	@TILL_BIN=$(CURDIR)/$(BIN) $(GO) test -timeout 12h -run '^$$' -bench '^BenchmarkSoak$$' -benchtime 1x ./cmd/till/load

fault-timing: ## see whether the time of a refusal tells more than its words: keys, ids, e-mail addresses: about 2 min
	$(call fault,Timing,./api)

fault-slow: build ## 2,000 clients that are slow on purpose, three kinds, for TILL_FAULT_SLOW (4m) each: about 30 min
	$(call fault,Slow,./cmd/till/load)

# Tests that make test runs with small numbers, with the numbers that a variable says.
# What is shown ends as the tests do, and not as a filter of their lines does.
many = @$(1)=$${$(1):-$(2)} $(GO) test -timeout 60m -count=1 -v -run '$(3)' $(4) | \
	awk '/^=== |^ +--- PASS/ {next} {print; fflush()} /^ok/ {ok = 1} /FAIL/ {bad = 1} END {exit bad || !ok}'

fault-notices: ## 20,000 messages of a bank that tells badly, and of others who forge: about 5 min
	$(call many,TILL_FAULT_NOTICES,20000,^TestNoticesAsNoBankShouldTellThem$$,./flow/checkout)

fault-keys: ## guess 100,000 keys from one address, and from a hundred, beside one that holds: about 2 min
	$(call many,TILL_FAULT_KEYS,100000,^TestGuessingKeysKeepsNobodyOut$$,./api)

fault-rotation: ## rotate a key 200 times while 64 callers use it: about 10 s
	$(call many,TILL_FAULT_ROTATIONS,200,^TestRotationUnderLoadRefusesNobody$$,./api)

fault-races: ## eight things at once to each of 5,000 sessions, under the race detector: about 12 min
	@TILL_FAULT_RACES=$${TILL_FAULT_RACES:-5000} $(RACE) -timeout 60m -count=1 -v -run '^TestWhateverHappensAtOnceASessionHasOneEnd$$' ./flow/checkout

fault-sinks: ## 100 deliveries at once to each of 100 kinds of endpoint that misbehave: about 15 s
	$(call many,TILL_FAULT_SINKS,100,^TestSend(To|While|Verifies|Survives|Follows),./hooks)

fault-whatsapp: ## each event of WhatsApp 100 times, in the middle of talks: about 7 min
	$(call many,TILL_FAULT_WHATSAPP,100,^TestATalkGoesOnWhateverWhatsAppDoes$$,./bot/whatsapp)

fault-clock: ## 200 seeds of each of six kinds of clocks that jump: about 4 min
	$(call many,TILL_FAULT_CLOCK,200,^TestNoClockEndsOrSendsTooMuch$$,./flow/checkout)

clean: ## remove what was built
	rm -rf bin cover.out
