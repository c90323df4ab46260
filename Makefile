# Everything a developer does. `make help` lists it.
SHELL := bash
.DEFAULT_GOAL := help

KFLARE_CACHE ?= $(HOME)/.cache/kflare
export KFLARE_CACHE
# One target folder for all clones of a machine, so that dependencies are built once.
export CARGO_TARGET_DIR ?= $(KFLARE_CACHE)/target

.PHONY: help
help: ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

.PHONY: demo
demo: ## Show kflare at work on a control plane and a simulator started for it (KEEP=1 leaves them running)
	@hack/demo

.PHONY: test
test: ## All tests: pure, client, kinds, simulation, cluster, the official SDK
	@hack/test

.PHONY: simulate
SEEDS ?= 200
FIRST_SEED ?= 0
simulate: ## Play seeded stories on a virtual clock (SEEDS=1000 FIRST_SEED=0, STORY=file, MUTATIONS=1)
	@hack/simulate $(SEEDS) $(FIRST_SEED)

.PHONY: bench
bench: ## Figures: calls, writes, memory, time; fails when one is above its bound (twenty minutes and more)
	@hack/bench

.PHONY: chaos
chaos: ## Kill kflare at every call and every write; API servers, etcd, watches, Cloudflare and leases that fail
	@hack/chaos

.PHONY: chart
chart: ## The Helm chart on a real API server: rendered, installed, run with its own rights, removed (two minutes)
	@hack/chart

.PHONY: migration
migration: ## Resources of every kind moved to another cluster, as docs/migration.md has it (half a minute)
	@hack/migration

.PHONY: sizing
sizing: ## What a controller takes as the cluster grows: the table of docs/deploy.md (four minutes, after the build)
	@hack/sizing

.PHONY: image
image: ## The container image, without Docker: built, assembled twice, unpacked, run once
	@hack/image

.PHONY: release-check
release-check: ## A release on this machine: image and chart built, published, signed, admitted (ten to thirty minutes)
	@hack/release-check

.PHONY: gitops
gitops: ## The health checks for Argo CD and Flux, with the engines that run them
	@hack/gitops

.PHONY: lint
lint: ## Formatting and clippy
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	@tree=$$(cargo tree --locked --package kflare --edges normal,features) && ! grep -q 'kflare-engine feature "mutations"' <<<"$$tree" \
	  || { echo 'lint: kflare itself would be built with the engines that are broken on purpose' >&2; exit 1; }

.PHONY: deny
deny: ## Licences, sources and duplicate versions of dependencies
	@hack/deny

.PHONY: generate
generate: ## Write what follows from the code: CRDs, RBAC, kube-state-metrics, the kinds reference, the chart's copies
	cargo build --workspace --bins --locked
	$(CARGO_TARGET_DIR)/debug/kflare generate .
	hack/chart-files

.PHONY: check-generated
check-generated: ## Fail when something generated is stale
	cargo build --workspace --all-targets --locked
	$(CARGO_TARGET_DIR)/debug/kflare generate . --check
	hack/chart-files --check

.PHONY: control-plane
control-plane: ## Find or build etcd, kube-apiserver and kubectl; prints their folder
	@hack/test-control-plane
