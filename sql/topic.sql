-- Topic matching: patterns as in AMQP, and what is refused.  All other cases
-- are in test/unit/topic_test.c.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

-- * is one word, # any number
SELECT pattern, tq_internal.topic_match(pattern, 'lazy.orange.rabbit') AS three, tq_internal.topic_match(pattern, 'lazy') AS one, tq_internal.topic_match(pattern, '') AS none
FROM unnest(ARRAY['#', '*.orange.*', '*.*.rabbit', 'lazy.#', '#.rabbit', '#.orange.#', '*', '*.*.*', '#.*', 'lazy.orange.rabbit', 'lazy.orange', 'LAZY.#', '', 'la*', '#.lazy.#.rabbit.#']) AS pattern;
SELECT key, tq_internal.topic_match('*', key) AS one, tq_internal.topic_match('*.*', key) AS two, tq_internal.topic_match('a.#', key) AS a
FROM unnest(ARRAY['', 'a', 'a.', '.a', '.', 'a.*', 'a.b.']) AS key;

-- The keys of messages
SELECT pattern, tq_internal.topic_match(pattern, 'primary.dSlITZ4yQgmvxxAi4A8fHQ.0.wg.w1.prov.wt.-.dSlITZ4yQgmvxxAi4A8fHQ._')
FROM unnest(ARRAY['primary.dSlITZ4yQgmvxxAi4A8fHQ.#', 'primary.*.*.*.*.prov.wt.#', 'primary.*.*.wg.w1.#', 'primary.*.*.wg.w2.#', 'route.#', '#._', '*.*.*.*.*.*.*.*.*.*', '*.*.*.*.*.*.*.*.*.*.*']) AS pattern;

-- Words are bytes, in any encoding
SELECT tq_internal.topic_match('*.zwölf.#', 'a.zwölf.b') AS same, tq_internal.topic_match('*.zwölf.#', 'a.zwolf.b') AS other;

-- NULL gives NULL; the arguments have names
SELECT tq_internal.topic_match(NULL, 'a') AS pattern, tq_internal.topic_match('a', NULL) AS key, tq_internal.topic_match(routing_key => 'b.c', pattern => 'b.*') AS named;

-- One pattern for many rows, many patterns for one row, and both
SELECT count(*) FILTER (WHERE tq_internal.topic_match('#.7.*', n / 1000 || '.' || n / 10 % 100 || '.' || n % 10)) FROM generate_series(0, 99999) n;
SELECT count(*) FILTER (WHERE tq_internal.topic_match(n || '.#', '17.1')) FROM generate_series(1, 1000) n;
SELECT count(*) FILTER (WHERE tq_internal.topic_match(repeat('*.', n % 7) || '#', repeat('a.', n % 5) || 'a')) FROM generate_series(1, 3500) n;

-- A pattern for which naive backtracking would not end
SELECT tq_internal.topic_match(repeat('#.a.', 1000) || 'b', repeat('a.', 1000) || 'c') AS misses, tq_internal.topic_match(repeat('#.a.', 1000) || 'b', repeat('a.', 1000) || 'b') AS fits;
SELECT tq_internal.topic_match(repeat('*.', 20000) || '#', repeat('a.', 20000)) AS long, tq_internal.topic_match(repeat('*.', 20000) || '#', 'a') AS short;
SELECT tq_internal.topic_match(repeat('x', 65535), repeat('x', 65535)) AS longest;

-- The length is limited
SELECT * FROM pg_temp.answer($$SELECT tq_internal.topic_match(repeat('x', 65536), 'x')$$);
SELECT * FROM pg_temp.answer($$SELECT tq_internal.topic_match('x', repeat('x', 65536))$$);
SELECT count(*) FILTER (WHERE tq_internal.topic_match('a.#', 'a.b')) FROM generate_series(1, 3);
TABLE poor_errors;
