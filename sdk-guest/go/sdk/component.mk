# Makes the component of a project in Go: build/NAME.wasm, with the interfaces in INTERFACES. The Makefile of the project sets both.

SDK    := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
# The module of the SDK contains interface and adapter. A project of `belljar new` has them beside its Makefile.
SHARED := $(if $(wildcard $(SDK)/wit),$(SDK),.)

PROVIDER_WIT = $(SHARED)/wit
include $(SDK)/interfaces.mk

GO ?= go
MODULE := $(shell $(GO) list -m)

SOURCES = $(wildcard *.go belljar/*.go) go.mod

build/$(NAME).wasm: build/core/$(NAME).wasm
	wasm-tools component embed build/wit $< --world provider -o build/core/embedded.wasm
	wasm-tools component new build/core/embedded.wasm --adapt $(SHARED)/adapter/wasi_snapshot_preview1.reactor.wasm -o $@

# Allows the code of wit-bindgen to link to an internal function of Go's runtime.
build/core/$(NAME).wasm: $(SOURCES) $(wildcard *.png) build/_bindings/made
	GOOS=wasip1 GOARCH=wasm $(GO) build -buildmode=c-shared -tags="$(INTERFACE_TAGS)" -ldflags="-s -w -checklinkname=0" -o $@ .

# Generated from INTERFACES as Go; do not edit. The SDK's code for each interface is copied beside it, and imports what is
# generated: its import paths begin with the name of the project's module.
build/_bindings/made: $(WIT)/world.wit $(wildcard $(SDK)/_component/*/*.go)
	rm -rf build/_bindings
	wit-bindgen go $(WIT) --world provider --pkg-name $(MODULE)/build/_bindings --out-dir build/_bindings
	cp -Rf $(SDK)/_component/. build/_bindings/exports/
	chmod -R u+w build/_bindings
	for file in build/_bindings/exports/*/*.go; do \
		sed 's|"my-provider/build/|"$(MODULE)/build/|' $$file > build/edited && mv build/edited $$file; \
	done
	touch $@

.DELETE_ON_ERROR:
