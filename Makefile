# tq: a task queue inside PostgreSQL.
#
#   make && make install     for a server that you have (PG_CONFIG chooses it)
#   make installcheck        regress, isolation and TAP tests of what is installed,
#                            on temporary servers; not as root
#   make check, make demo    the scripts test/check and test/demo, which need nothing
#   make bench               how fast it is, beside a bare table and other queues

EXTENSION = tq
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" tq.control)

MODULE_big = tq
OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c)))
DATA = $(filter-out src/sql/tq--$(EXTVERSION).sql,$(sort $(wildcard src/sql/tq--*.sql)))
DATA_built = src/sql/tq--$(EXTVERSION).sql

# Bitcode serves the inlining of SQL functions, of which tq has none that gain:
# it would only double the time of a build.  `make with_llvm=yes` makes it.
ifneq ($(origin with_llvm),command line)
override with_llvm = no
endif

PG_CFLAGS = -Wall -Wextra -Wdeclaration-after-statement \
	-Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers

REGRESS = install slugid privilege settings create schedule claim report resolve \
	group priority artifact upkeep delete topic wait preset bad_input bad_definition big
REGRESS_OPTS = --encoding=UTF8 --no-locale --temp-instance=./tmp_check_regress --temp-config=test/tq.conf
ISOLATION = $(patsubst test/isolation/specs/%.spec,%,$(sort $(wildcard test/isolation/specs/*.spec)))
ISOLATION_OPTS = --encoding=UTF8 --no-locale --inputdir=test/isolation --temp-instance=./tmp_check_iso --temp-config=test/tq.conf
TAP_TESTS = 1
PROVE_TESTS = $(sort $(wildcard test/t/*.pl))
EXTRA_CLEAN = tmp_check_regress tmp_check_iso

ifneq ($(filter check demo bench,$(MAKECMDGOALS)),)

# These scripts find, or install, all that they need; PGXS is not asked.
.PHONY: check demo bench
check:
	test/check
demo:
	test/demo
bench:
	test/bench/run

else

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

src/sql/tq--$(EXTVERSION).sql: src/sql/tq.sql tq.control
	cp $< $@

$(OBJS): $(wildcard src/*.h)

endif
