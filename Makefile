# make        builds bin/sublet
# make demo   the main job: lease, prove, change, release (as root)
# make test   everything .ci/run does
# make bench  the benchmarks of bench/README.md (as root, two and a half hours); ONLY=NAME: one
# make soak   what takes long: random mishaps for $SUBLET_SOAK (2h), the kernels of Debian in virtual machines (as root)
# make help   the rest

GO ?= go
export CGO_ENABLED ?= 0
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)

.PHONY: all demo test check unit race bench soak install-deps help clean

all: bin/sublet

bin/sublet: FORCE
	$(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $@ ./cmd/sublet

FORCE:

# The programs Sublet uses or is tested against, from Debian's archive.
install-deps:
	tools/install-deps

demo: install-deps bin/sublet
	tools/demo bin/sublet

test: install-deps check bin/sublet race unit

# Formatting, modules, vet, staticcheck.
check:
	test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	$(GO) mod tidy -diff
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

# All tests, with the kernel's real parts where root allows.
unit: bin/sublet
	SUBLET_BIN=$(CURDIR)/bin/sublet $(GO) test -count=1 -timeout 50m -p 1 ./...

# The race detector over what starts goroutines (internal/archtest finds it).
race:
	CGO_ENABLED=1 $(GO) test -race -count=1 -short -timeout 20m -p 1 $$($(GO) run ./tools/concurrent)

# Alone on the machine, please: one after another, and nothing beside them.
bench: bin/sublet
	SUBLET_BIN=$(CURDIR)/bin/sublet $(GO) run ./bench $(ONLY)

# Below STOCK: 4 GB, made the first time (mmdebstrap, openssh-client).
STOCK ?= /var/tmp/sublet-stock
soak: bin/sublet
	test -d $(STOCK)/boot || STOCK=$(STOCK) test/stock/make-image
	SUBLET_BIN=$(CURDIR)/bin/sublet SUBLET_STOCK=$(STOCK) $(GO) test -count=1 -timeout 60m -v -run TestStockKernels ./test
	SUBLET_BIN=$(CURDIR)/bin/sublet SUBLET_SOAK=$${SUBLET_SOAK:-2h} $(GO) test -count=1 -timeout 0 -v -run TestRandomMishaps ./test

help:
	@sed -n 's/^# make/make/p' Makefile

clean:
	rm -rf bin
