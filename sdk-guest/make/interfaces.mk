# Makes the world of the component from INTERFACES of the Makefile: the interfaces that the provider has besides
# resource-provider. Each one also defines a macro or a build tag, such as BELLJAR_TOOLS or belljar_tools.

INTERFACES_MAKEFILE := $(lastword $(MAKEFILE_LIST))

# The directory with the interface of belljar in WIT, and the interfaces of WASI below it.
PROVIDER_WIT ?= wit

.DEFAULT_GOAL = build/$(NAME).wasm

KNOWN_INTERFACES = completion revisions parts tools prompts skills progress http
UNKNOWN_INTERFACES = $(filter-out $(KNOWN_INTERFACES),$(INTERFACES))
$(if $(UNKNOWN_INTERFACES),$(error INTERFACES names "$(UNKNOWN_INTERFACES)": remove it, or use one of $(KNOWN_INTERFACES)))

completion.wit = export belljar:provider/completion@0.1.1;
revisions.wit  = export belljar:provider/revisions@0.1.1;
parts.wit      = export belljar:provider/parts@0.1.1;
tools.wit      = export belljar:provider/tool-provider@0.1.1;
prompts.wit    = export belljar:provider/prompt-provider@0.1.1;
skills.wit     = export belljar:provider/skill-provider@0.1.1;
progress.wit   = import belljar:provider/progress@0.1.1;
http.wit       = import wasi:http/outgoing-handler@0.2.12;

INTERFACE_MACROS = $(shell echo '$(INTERFACES:%=-DBELLJAR_%)' | tr a-z A-Z)
INTERFACE_TAGS   = $(INTERFACES:%=belljar_%)

# A file that changes with INTERFACES, also if they come from the command line.
INTERFACES_FILE = build/interfaces
$(shell mkdir -p build; echo '$(INTERFACES)' | cmp -s - $(INTERFACES_FILE) || echo '$(INTERFACES)' > $(INTERFACES_FILE))

# The directory of the world, with the interface beside it. The copies are writable, also if the originals are not.
WIT = build/wit
$(WIT)/world.wit: $(wildcard $(PROVIDER_WIT)/*.wit) $(INTERFACES_FILE) $(INTERFACES_MAKEFILE)
	mkdir -p $(WIT)/deps/provider
	cp -f $(PROVIDER_WIT)/*.wit $(WIT)/deps/provider/
	$(if $(filter http,$(INTERFACES)),cp -Rf $(PROVIDER_WIT)/deps/. $(WIT)/deps/)
	chmod -R u+w $(WIT)
	printf '%s\n' 'package local:component;' 'world provider {' 'include belljar:provider/provider@0.1.1;' \
		$(foreach name,$(INTERFACES),'$($(name).wit)') '}' > $@
