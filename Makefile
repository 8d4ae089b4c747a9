# tq: a task queue inside PostgreSQL.
#
#   make && make install     for a server that you have (PG_CONFIG chooses it)
#   make installcheck        regress, isolation and TAP tests of what is installed,
#                            on temporary servers; not as root.  With the DESTDIR
#                            of make install it tests what is installed there
#   make check, make demo    the scripts test/check and test/demo, which need nothing
#   make bench               how fast it is, beside a bare table and other queues
#   make dist                the last commit as tq-VERSION.zip and .tar.gz
#   make deb                 the tree as packages of Debian, by debian/, in this directory
#   make image               what is installed, for 18 or later, as an OCI layout in this
#                            directory, which CloudNativePG mounts; needs umoci
#
# A build in another directory works as usual with PGXS:
#
#   mkdir build && cd build && make -f ../Makefile

comma = ,

# The directory of the sources.  PGXS calls it srcdir, but knows it too late.
tree := $(or $(VPATH),$(patsubst %/,%,$(dir $(firstword $(MAKEFILE_LIST)))))

EXTENSION = tq tq_shard
# The release before, and, as strings of C with a comma, that whose SQL this library
# serves as well (src/util/version.c).
LASTVERSION = 0.1.0
SERVED_TOO =
EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(tree)/tq.control)

MODULE_big = tq
OBJS = $(patsubst $(tree)/%.c,%.o,$(filter-out $(tree)/src/bin/%,$(sort $(wildcard $(tree)/src/*.c $(tree)/src/*/*.c))))
# Pictures and the router are libraries of their own, with copies of what they need of
# core and util.
extras = tq_picture$(DLSUFFIX) tq_shard$(DLSUFFIX)
tq_picture_OBJS = $(patsubst $(tree)/%.c,%.o,$(sort $(wildcard $(tree)/src/extras/picture/*.c))) src/core/names.o src/util/declared.o
tq_shard_OBJS = $(patsubst $(tree)/%.c,%.o,$(sort $(wildcard $(tree)/src/extras/router/*.c))) src/util/declared.o src/util/lines.o src/util/slugid.o
extra_OBJS = $(tq_picture_OBJS) $(tq_shard_OBJS)
# A program, which PGXS does not build beside a library.
worker = src/bin/tq-worker$(X)
worker_OBJS = $(patsubst $(tree)/%.c,%.o,$(sort $(wildcard $(tree)/src/bin/*.c)))
# Another, which is built where libmicrohttpd is; `make web` says what is missing.
web = src/bin/web/tq-web$(X)
web_OBJS = $(patsubst $(tree)/%.c,%.o,$(sort $(wildcard $(tree)/src/bin/web/*.c))) src/bin/text.o src/bin/log.o src/bin/notify.o
web_assets = $(addprefix $(tree)/src/bin/web/assets/,style.css live.js icon.svg)
has_web := $(shell pkg-config --exists 'libmicrohttpd >= 0.9.71' zlib 2>/dev/null && echo yes)
DATA = $(filter-out $(DATA_built),$(patsubst $(tree)/%,%,$(sort $(wildcard $(tree)/src/sql/tq--*.sql $(tree)/src/extras/router/tq_shard--*.sql))))
upgrade = src/sql/tq--$(LASTVERSION)--$(EXTVERSION).sql
# The router of 0.1.0 is made again.
router_upgrade = $(patsubst %,src/extras/router/tq_shard--%--$(EXTVERSION).sql,$(filter-out 0.1.0,$(LASTVERSION)))
DATA_built = src/sql/tq--$(EXTVERSION).sql $(upgrade) src/extras/router/tq_shard--$(EXTVERSION).sql $(router_upgrade)
DOCS = README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE
documents = $(patsubst $(tree)/%,%,$(sort $(wildcard $(tree)/doc/*.md $(tree)/doc/*/*.md $(tree)/doc/*/*.svg $(tree)/doc/*/*.png $(tree)/doc/monitoring/*.yml $(tree)/doc/monitoring/*.json $(tree)/client/*.md $(tree)/client/*.json)))

# Bitcode serves the inlining of SQL functions, of which tq has none that gain:
# it would only double the time of a build.  `make with_llvm=yes` makes it.
ifneq ($(origin with_llvm),command line)
override with_llvm = no
endif

# For what is generated into another directory than that of the sources.
PG_CPPFLAGS = -Isrc/api -DTQ_VERSION='"$(EXTVERSION)"' -DTQ_SERVED_TOO='$(SERVED_TOO)'
PG_CFLAGS = -Wall -Wextra -Wdeclaration-after-statement \
	-Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers

REGRESS = install slugid privilege scope body settings limit create schedule claim report resolve \
	group priority artifact upkeep delete interned statement topic wait preset bad_input bad_definition big
REGRESS_OPTS = --encoding=UTF8 --no-locale --temp-instance=./tmp_check_regress $(test_settings)
ISOLATION = $(patsubst $(tree)/test/isolation/specs/%.spec,%,$(sort $(wildcard $(tree)/test/isolation/specs/*.spec)))
ISOLATION_OPTS = --encoding=UTF8 --no-locale --inputdir=$(tree)/test/isolation --launcher=$(tree)/test/isolation/launch \
	--load-extension=tq --temp-instance=./tmp_check_iso $(test_settings)
# The hunks of a diff name the permutation, or the statement, in which they are.
export PG_REGRESS_DIFF_OPTS ?= -U3 -F'^[^[:space:]]'
# The claim cursor has two modes (src/shmem/claim_cursor.c).  The specs of claims run in
# both: once more on a server on which transactions may be prepared.  Those that
# prepare one run on that server only.
PREPARING = ack-vs-ack create-vs-set-buckets cursor-prepare foreign-dependency-prepared late-commit-vs-publish
CLAIMING = claim-% cursor-% wait-% %-vs-claim recalled-number new-queue-vs-new-queue
isolation_prepared := $(filter $(PREPARING) $(CLAIMING),$(ISOLATION))
override ISOLATION := $(filter-out $(PREPARING),$(ISOLATION))
TAP_TESTS = 1
PROVE_TESTS = $(patsubst $(tree)/%,%,$(sort $(wildcard $(tree)/test/t/*.pl)))
test_settings = --temp-config=$(tree)/test/tq.conf

archives = tq-$(EXTVERSION).zip tq-$(EXTVERSION).tar.gz
generated = src/api/audited.inc test/calls.sql src/bin/web/assets.inc
EXTRA_CLEAN = $(generated) $(extras) $(extra_OBJS) $(worker) $(worker_OBJS) $(web) $(web_OBJS) tmp_check_regress tmp_check_iso tmp_check_iso_prepared tmp_check_destdir.conf $(archives)

.PHONY: check demo bench dist deb

ifeq ($(filter-out check demo bench dist deb,$(or $(MAKECMDGOALS),all)),)

# The scripts find, or install, all that they need.  PGXS is not asked.
check:
	$(tree)/test/check
demo:
	$(tree)/test/demo
bench:
	$(tree)/test/bench/run

# An archive as PGXN wants it.  It holds what is committed, and no more.
git = git -c safe.directory='*' -C '$(tree)'
dist:
	@top=$$($(git) rev-parse --show-prefix) && test -z "$$top" || \
		{ echo 'make dist: $(tree) is not the top of a git repository' >&2; exit 1; }
	@test -z "$$($(git) status --porcelain)" || echo 'make dist: changes that are not committed are left out' >&2
	for archive in $(archives); do \
		$(git) archive --prefix='tq-$(EXTVERSION)/' -o "$(CURDIR)/$$archive" HEAD || exit; \
	done

# In a copy, so that nothing is left in the tree.  The majors are those of
# /etc/postgresql-common/supported_versions, or of the distribution.
deb:
	@command -v dh >/dev/null && command -v pg_buildext >/dev/null || \
		{ echo 'make deb: install debhelper and postgresql-server-dev-all, as apt build-dep ./ does' >&2; exit 1; }
	work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && mkdir "$$work/tq" && \
	tar -C '$(tree)' --exclude-vcs --exclude='*.o' --exclude='*.so' --exclude=./src/bin/tq-worker --exclude=./src/bin/web/tq-web --exclude='./.build' --exclude='./tmp_check*' \
		--exclude='./*.deb' --exclude='./tq-*.oci' -cf - . | tar -C "$$work/tq" -xf - && \
	( cd "$$work/tq" && pg_buildext updatecontrol && env -u PG_CONFIG -u VPATH -u MAKEFLAGS -u MAKELEVEL dpkg-buildpackage -b -us -uc ) && \
	mv "$$work"/*.deb "$$work"/*.changes "$$work"/*.buildinfo '$(CURDIR)'

else

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq ($(PGXS),)
$(error PG_CONFIG=$(PG_CONFIG) does not work: set it to the pg_config of a PostgreSQL server)
endif
ifeq ($(wildcard $(PGXS)),)
$(error $(PG_CONFIG) names $(PGXS), which does not exist: install the headers of the server (Debian: postgresql-server-dev-*))
endif

# make would take objects of the sources' directory for those of this one.
ifneq ($(realpath $(tree)),$(CURDIR))
ifneq ($(wildcard $(tree)/src/*.o $(tree)/src/*/*.o $(tree)/src/*/*/*.o),)
$(error $(tree) holds a build: run make clean there first)
endif
$(shell mkdir -p $(sort $(dir $(OBJS) $(extra_OBJS) $(worker_OBJS) $(web_OBJS))) src/sql test)
EXTRA_CLEAN += src test
endif

include $(PGXS)

# The other libraries.  They are linked as MODULE_big is; where the linker can, so that
# each calls its own copies, whichever library is loaded first.
all: $(extras)
install: install-extras
uninstall: uninstall-extras
.PHONY: install-extras uninstall-extras
tq_picture$(DLSUFFIX): $(tq_picture_OBJS)
tq_shard$(DLSUFFIX): $(tq_shard_OBJS)
$(extras):
	$(LINK.shared) $(if $(filter darwin win32,$(PORTNAME)),,-Wl$(comma)-Bsymbolic) -o $@ $^ $(LDFLAGS) $(LDFLAGS_SL) $(SHLIB_LINK)
install-extras: $(extras) installdirs
	$(INSTALL_SHLIB) $(extras) '$(DESTDIR)$(pkglibdir)/'
uninstall-extras:
	rm -f $(addprefix '$(DESTDIR)$(pkglibdir)'/,$(extras))

# The worker links libpq only, and is installed beside the server's programs.
all: $(worker)
install: install-worker
uninstall: uninstall-worker
.PHONY: install-worker uninstall-worker
$(worker_OBJS): override CPPFLAGS := -D_GNU_SOURCE -I$(includedir) $(CPPFLAGS)
$(worker): $(worker_OBJS)
	$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) $(LDFLAGS_EX) $(libpq)
install-worker: $(worker)
	$(MKDIR_P) '$(DESTDIR)$(bindir)' '$(DESTDIR)$(mandir)/man1'
	$(INSTALL_PROGRAM) $(worker) '$(DESTDIR)$(bindir)/'
	$(INSTALL_DATA) '$(tree)/src/bin/tq-worker.1' '$(DESTDIR)$(mandir)/man1/'
uninstall-worker:
	rm -f '$(DESTDIR)$(bindir)/$(notdir $(worker))' '$(DESTDIR)$(mandir)/man1/tq-worker.1'

# The page links libmicrohttpd and zlib as well, and has its assets inside.
ifeq ($(has_web),yes)
all: $(web)
install: install-web
endif
uninstall: uninstall-web
.PHONY: web web-ready install-web uninstall-web
web: $(web)
$(filter src/bin/web/%,$(web_OBJS)): override CPPFLAGS := -D_GNU_SOURCE -I$(tree)/src/bin -Isrc/bin/web -I$(includedir) $(CPPFLAGS)
$(web): $(web_OBJS)
	$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) $(LDFLAGS_EX) $(libpq) -lmicrohttpd -lz -lm -lpthread
$(filter src/bin/web/%,$(web_OBJS)): | web-ready
web-ready:
	@test '$(has_web)' = yes || { echo 'make web: install libmicrohttpd, zlib and pkg-config (Debian: libmicrohttpd-dev zlib1g-dev pkg-config)' >&2; exit 1; }
src/bin/web/assets.o: src/bin/web/assets.inc
src/bin/web/assets.inc: $(web_assets)
	for file in $^; do \
		echo "static const unsigned char $$(basename "$$file" | tr . _)[] = {" && od -An -v -tu1 "$$file" | sed 's/ *\([0-9][0-9]*\)/\1,/g' && echo '};' || exit; \
	done >$@.new && mv $@.new $@
install-web: $(web)
	$(MKDIR_P) '$(DESTDIR)$(bindir)' '$(DESTDIR)$(mandir)/man1'
	$(INSTALL_PROGRAM) $(web) '$(DESTDIR)$(bindir)/'
	$(INSTALL_DATA) '$(tree)/src/bin/web/tq-web.1' '$(DESTDIR)$(mandir)/man1/'
uninstall-web:
	rm -f '$(DESTDIR)$(bindir)/$(notdir $(web))' '$(DESTDIR)$(mandir)/man1/tq-web.1'

# Other extensions install a README.md as well.
docmoduledir = extension/tq

# PGXS installs DOCS into one folder.  What README.md links to keeps its own.
ifdef docdir
install: install-documents
uninstall: uninstall-documents
.PHONY: install-documents uninstall-documents
install-documents: installdirs
	for file in $(documents); do \
		target='$(DESTDIR)$(docdir)/$(docmoduledir)'/$$file && $(MKDIR_P) "$$(dirname "$$target")" && \
			$(INSTALL_DATA) '$(tree)'/$$file "$$target" || exit; \
	done
uninstall-documents:
	rm -f $(addprefix '$(DESTDIR)$(docdir)/$(docmoduledir)'/,$(documents))
	find '$(DESTDIR)$(docdir)/$(docmoduledir)/doc' '$(DESTDIR)$(docdir)/$(docmoduledir)/client' -depth -type d -empty -delete 2>/dev/null || true
endif

# The parts of the SQL, each after those that it uses.
sql_parts = roles types tables functions lists workers settings scopes cron presets subscriptions artifacts shard views find pictures clock history health leaving grants
sql_sources = $(patsubst %,$(tree)/src/sql/%.sql,$(sql_parts))
src/sql/tq--$(EXTVERSION).sql: $(sql_sources) $(tree)/tq.control
	cat $(filter %.sql,$^) >$@

# Until a release, after which it is a file like any other (doc/releasing.md).
$(upgrade): $(addprefix $(tree)/src/sql/,generate Manifest.pm functions upgrade/$(LASTVERSION).sql) $(filter-out %/roles.sql,$(sql_sources))
	$(generate) upgrade $(tree) $(filter %.sql,$^) >$@.new && mv $@.new $@

# The functions, as they are declared and as src/sql/functions describes them.
manifest = $(addprefix $(tree)/src/sql/,functions Manifest.pm) $(sql_sources)
generate = $(or $(PERL),perl) $(filter %/generate,$^)

# The router has the functions and types of tq: they are made of the same files.
src/extras/router/tq_shard--$(EXTVERSION).sql: $(addprefix $(tree)/src/extras/router/,generate views router.sql) $(manifest) src/sql/tq--$(EXTVERSION).sql $(tree)/tq_shard.control
	$(generate) $(tree) src/sql/tq--$(EXTVERSION).sql $(EXTVERSION) >$@.new && mv $@.new $@
$(router_upgrade): src/extras/router/tq_shard--$(EXTVERSION).sql
	$(or $(PERL),perl) $(tree)/src/extras/router/generate $(tree) src/sql/tq--$(EXTVERSION).sql $(EXTVERSION) upgrade >$@.new && mv $@.new $@

src/api/audited.inc: $(tree)/src/sql/generate $(manifest)
	$(generate) audited $(tree) >$@.new && mv $@.new $@

# For tests that call every function.
all: test/calls.sql
test/calls.sql: $(tree)/src/sql/generate $(manifest) $(tree)/test/states.sql
	$(generate) calls $(tree) >$@.new && mv $@.new $@

src/api/audit_call.o src/api/audit_call.bc: src/api/audited.inc

# A layer has few headers, and most files include most of those below: each depends on all.
$(OBJS) $(extra_OBJS) $(worker_OBJS) $(web_OBJS): $(wildcard $(tree)/src/*/*.h $(tree)/src/*/*/*.h)

# The extension's files alone, where CloudNativePG has PostgreSQL look for them, and the
# names of tags and labels that it uses.  Libraries fit the Debian on which they are built.
distribution := $(shell sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null)
image = tq-$(EXTVERSION).oci
image_tag = $(EXTVERSION)-$(MAJORVERSION)$(addprefix -,$(distribution))
image_labels = org.opencontainers.image.title=tq org.opencontainers.image.version=$(EXTVERSION) \
	org.opencontainers.image.licenses=PostgreSQL io.cloudnativepg.image.sql.version=$(EXTVERSION) \
	io.cloudnativepg.image.base.pgmajor=$(MAJORVERSION) $(addprefix io.cloudnativepg.image.base.os=,$(distribution))
EXTRA_CLEAN += $(image)
.PHONY: image
image: all
	@command -v umoci >/dev/null || { echo 'make image: install umoci' >&2; exit 1; }
	@test '$(MAJORVERSION)' -ge 18 || { echo 'make image: PostgreSQL $(MAJORVERSION) has no extension_control_path: set PG_CONFIG to that of 18 or later' >&2; exit 1; }
	rm -rf $(image)
	umask 022 && work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && \
	$(MAKE) -f '$(firstword $(MAKEFILE_LIST))' install DESTDIR="$$work/root" docdir= && \
	mkdir -p "$$work/image/share" "$$work/image/licenses/tq" && cp '$(tree)/LICENSE' "$$work/image/licenses/tq/" && \
	mv "$$work/root$(pkglibdir)" "$$work/image/lib" && mv "$$work/root$(datadir)/extension" "$$work/image/share/" && \
	$(STRIP_SHARED_LIB) "$$work"/image/lib/* && \
	umoci init --layout $(image) && umoci new --image $(image):$(image_tag) && \
	umoci insert --rootless --image $(image):$(image_tag) "$$work/image" / && \
	umoci config --image $(image):$(image_tag) $(foreach label,$(image_labels),--config.label $(label) --manifest.annotation $(label))
	@echo 'made $(image):$(image_tag)'

installcheck: installcheck-ready
ifneq ($(isolation_prepared),)
installcheck: installcheck-prepared
endif
.PHONY: installcheck-ready installcheck-prepared
installcheck-ready:
	@if test "$$(id -u)" = 0; then \
		echo 'make installcheck: run this as an ordinary user, because the server refuses to run as root' >&2; \
		missing=yes; \
	fi; \
	if test -n '$(TAP_TESTS)' && ! $(or $(PERL),perl) -MIPC::Run -MDBD::Pg -e 1 2>/dev/null; then \
		echo 'make installcheck: install IPC::Run and DBD::Pg for Perl (Debian: libipc-run-perl, libdbd-pg-perl), or give TAP_TESTS=' >&2; \
		missing=yes; \
	fi; \
	if test ! -f '$(DESTDIR)$(datadir)/extension/tq.control'; then \
		echo 'make installcheck: run make install first' >&2; \
		missing=yes; \
	fi; \
	test -z "$$missing"
installcheck-prepared: installcheck-ready
	mkdir -p output_iso
	$(pg_isolation_regress_installcheck) $(ISOLATION_OPTS) \
		--outputdir=output_iso/prepared --temp-instance=./tmp_check_iso_prepared \
		--temp-config=$(tree)/test/prepared.conf $(isolation_prepared)

# The servers of the tests look for tq in DESTDIR.  From 18 on any server can,
# before that only Debian's.
ifneq ($(DESTDIR),)
test_settings += --temp-config=tmp_check_destdir.conf
export TEMP_CONFIG = $(CURDIR)/tmp_check_destdir.conf
installcheck installcheck-prepared: tmp_check_destdir.conf
.PHONY: tmp_check_destdir.conf
tmp_check_destdir.conf: installcheck-ready
	@{ \
		echo "dynamic_library_path = '$(DESTDIR)$(pkglibdir):\$$libdir'"; \
		if test '$(MAJORVERSION)' -ge 18; then \
			echo "extension_control_path = '$(DESTDIR)$(datadir):\$$system'"; \
		else \
			echo "extension_destdir = '$(DESTDIR)'"; \
		fi; \
	} >$@
endif

endif
