# make        builds bin/sublet
# make demo   the main job: lease, prove, change, release (as root)
# make chain  a service chain: lease, draw, measure (as root)
# make test   every promise and every room, each kind of fault once (as root; ten minutes)
# make soak   the rest: every fault, random lives, floods, comparisons (as root; half an hour, or longer by SUBLET_SOAK=2h)
# make stock  Debian's kernels, for make soak to boot in virtual machines (4 GB below STOCK; mmdebstrap, openssh-client)
# make bench  the benchmarks of bench/README.md (as root, two and a half hours); ONLY=NAME: one
# make experiment  an application over leased links: its makespan by what was leased (as root, a quarter of an hour)
# make man    the manual pages of all commands, into bin/man1
# make site   all documents as a static site, into bin/site (mkdocs)
# make help   the rest

GO ?= go
export CGO_ENABLED ?= 0
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)

.PHONY: all demo chain experiment test check unit race bench soak stock install-deps man site help clean

all: bin/sublet

bin/sublet: FORCE
	$(GO) build -trimpath -ldflags '-s -w' -o cmd/sublet/nodeinit.elf ./cmd/nodeinit
	$(GO) build -trimpath -tags nodeinit -ldflags '-s -w -X main.version=$(VERSION)' -o $@ ./cmd/sublet

FORCE:

# The programs Sublet uses or is tested against, from Debian's archive.
install-deps:
	tools/install-deps

demo: install-deps bin/sublet
	tools/demo bin/sublet

chain: bin/sublet
	tools/chain bin/sublet

experiment: bin/sublet
	bin/sublet bench application --runs 5

test: install-deps check bin/sublet unit

# Formatting, modules, vet, staticcheck.
check:
	test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	$(GO) mod tidy -diff
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

# Tests whose names begin with LONG are those of make soak, all others those of make test.
LONG := ^TestSoak

# Packages that measure ask whether the machine had processors to spare; nothing
# runs beside them. The others run side by side.
MEASURING = ./internal/stall $(shell grep -rl --include='*_test.go' '"sublet/internal/stall"' --exclude-dir=bench . | xargs -n1 dirname | sort -u)
# The longest begin first.
LONGEST   = ./server ./datapath/vxrouter ./lease/store ./datapath/overlay ./datapath/iplb
OTHERS    = $(LONGEST) $(filter-out $(MEASURING) $(LONGEST),$(shell $(GO) list -f '.{{slice .ImportPath 6}}' ./...))
SOAKING   = $(shell grep -rl --include='*_test.go' 'func TestSoak' . | xargs -n1 dirname | sort -u)

# Python of tools/install-deps, for tests that compare with os-ken.
export OSKEN_PYTHON ?= /var/lib/sublet-test/python/bin/python

# What a run took is kept in RESULTS, and its slowest tests are told. Up to five tests
# that failed are run again, by themselves, twice at most, and told: a test that passes
# then is unsteady (CONTRIBUTING.md), and the run goes on.
RESULTS := $(CURDIR)/bin/tests
RUN      = $(GO) tool gotestsum --format pkgname-and-test-fails --jsonfile $(RESULTS)/$(1).json \
	--rerun-fails=2 --rerun-fails-max-failures=5 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race \
	--rerun-fails-report $(RESULTS)/$(1).again --packages "$(2)" --
TESTS    = SUBLET_BIN=$(CURDIR)/bin/sublet $(RUN)
AGAIN    = ! grep -s . $(RESULTS)/$(1)*.again || echo "failed, and were run again: mend them"
SLOWEST  = cat $(RESULTS)/$(1)*.json | $(GO) tool gotestsum tool slowest --threshold 200ms | head -20

unit: bin/sublet
	mkdir -p $(RESULTS)
	$(call TESTS,test-others,$(OTHERS)) -count=1 -timeout 20m -p 3 -skip '$(LONG)'
	$(call TESTS,test-measuring,$(MEASURING)) -count=1 -timeout 40m -p 1 -skip '$(LONG)'
	@echo "the slowest tests:" && $(call SLOWEST,test-)
	@$(call AGAIN,test-)

# Bounded in CI: SUBLET_SOAK is how long random mishaps go on.
soak: bin/sublet race
	mkdir -p $(RESULTS)
	$(call TESTS,soak-others,$(filter-out $(MEASURING),$(SOAKING))) -count=1 -timeout 0 -p 3 -run '$(LONG)'
	SUBLET_STOCK=$(STOCK) $(call TESTS,soak-measuring,$(filter $(MEASURING),$(SOAKING))) -count=1 -timeout 0 -p 1 -run '$(LONG)'
	@echo "the slowest tests:" && $(call SLOWEST,soak-)
	@$(call AGAIN,soak-)

# The race detector, over all that starts goroutines (internal/archtest finds it). The
# longest begin first: tests of servers wait for most of their time.
CONCURRENT = $(shell $(GO) run ./tools/concurrent)
race:
	mkdir -p $(RESULTS)
	CGO_ENABLED=1 $(call RUN,race,$(filter $(LONGEST),$(CONCURRENT)) $(filter-out $(LONGEST),$(CONCURRENT))) -race -count=1 -short -timeout 20m -skip '$(LONG)' -p 3
	@$(call AGAIN,race)

# Below STOCK: 4 GB.
STOCK ?= /var/tmp/sublet-stock
stock:
	STOCK=$(STOCK) test/stock/make-image

man: bin/sublet
	bin/sublet man bin/man1

# Ends with 1 if a link leads nowhere.
site:
	tools/site/site bin/site

# Alone on the machine, please: one after another, and nothing beside them.
bench: bin/sublet
	SUBLET_BIN=$(CURDIR)/bin/sublet $(GO) run ./bench $(ONLY)

help:
	@sed -n 's/^# make/make/p' Makefile

clean:
	rm -rf bin cmd/sublet/nodeinit.elf
