# The counters in shared memory are what a count of the rows gives: after a
# commit, an abort, savepoints, PREPARE, a crash, a restart, a promotion, DROP
# and CREATE EXTENSION, and after changes that other statements made.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT $published);

my $db = 'postgres';

# The numbers of rows of each queue, and what queue_stats says.
my $rows = q{
	SELECT q.task_queue_id || ': ' || concat_ws(' ',
		(SELECT count(*) FROM tq_internal.pending p WHERE p.queue = q.id),
		(SELECT count(*) FROM tq_internal.delayed d WHERE d.queue = q.id),
		(SELECT count(*) FROM tq_internal.unscheduled u JOIN tq_internal.task t ON t.id = u.task WHERE t.queue = q.id),
		(SELECT count(*) FROM tq_internal.run r JOIN tq_internal.task t ON t.id = r.task WHERE r.state = 2 AND t.queue = q.id))
	FROM tq_internal.queue q ORDER BY 1};
my $shown = q{
	SELECT task_queue_id || ': ' || concat_ws(' ', pending, delayed, blocked, running)
	FROM tq.queue_stats ORDER BY 1};
my $source = 'SELECT source FROM tq_internal.count_state()';

sub wait_exact
{
	my ($node) = @_;

	return $node->poll_query_until($db, "SELECT source = 'memory' FROM tq.queue_stats LIMIT 1");
}

# The gauges are the numbers of rows, and they are from memory.
sub is_exact
{
	my ($node, $what, $expected) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($node->safe_psql($db, $shown), $node->safe_psql($db, $rows), $what);
	is($node->safe_psql($db, $source), 'memory', "$what: from memory");
	is($node->safe_psql($db, $shown), $expected, "$what: the numbers") if defined $expected;
	return;
}

sub psql { my ($node, $sql) = @_; return $node->safe_psql($db, $sql); }

my $node = new_node('counts', 'max_prepared_transactions = 5', 'tq.counted_group = 5', 'autovacuum = off', 'restart_after_crash = on');
psql($node, 'CREATE EXTENSION tq');
psql($node, q{SELECT tq.enqueue('c/a')});
wait_worker($node, $db);
ok(wait_exact($node), 'the maintenance worker counts when the database is in use');

# ---- what transactions do ----

psql($node, q{SELECT tq.enqueue('c/a', retries => 3) FROM generate_series(1, 20);
	SELECT tq.enqueue('c/b', delay => '1 hour') FROM generate_series(1, 3)});
is_exact($node, 'commits', "c/a: 21 0 0 0\nc/b: 0 3 0 0");
psql($node, q{BEGIN; SELECT tq.enqueue('c/a'); SELECT count(*) FROM tq.claim_work('c/a', 'g', 'w', 5); ROLLBACK});
is_exact($node, 'an abort', "c/a: 21 0 0 0\nc/b: 0 3 0 0");
psql($node, q{
	BEGIN;
	SELECT tq.enqueue('c/a');
	SAVEPOINT a; SELECT tq.enqueue('c/a'), tq.enqueue('c/c'); ROLLBACK TO a;
	SAVEPOINT b; SELECT tq.enqueue('c/a'); SAVEPOINT c; SELECT tq.enqueue('c/a'); RELEASE b;
	SAVEPOINT d; SELECT tq.enqueue('c/a'); SAVEPOINT e; SELECT tq.enqueue('c/a'); RELEASE e; ROLLBACK TO d;
	COMMIT});
is_exact($node, 'savepoints', "c/a: 24 0 0 0\nc/b: 0 3 0 0");
psql($node, q{DO $$ BEGIN
	FOR i IN 1 .. 300 LOOP
		BEGIN
			PERFORM tq.enqueue('c/a');
			IF i % 3 = 0 THEN RAISE division_by_zero; END IF;
		EXCEPTION WHEN division_by_zero THEN NULL;
		END;
	END LOOP;
END $$});
is_exact($node, 'many subtransactions', "c/a: 224 0 0 0\nc/b: 0 3 0 0");
is(psql($node, q{BEGIN; SELECT tq.enqueue('c/n') IS NOT NULL; SELECT (tq.task_queue_counts('c/n') -> 'pendingTasks')::bigint; SELECT pending FROM tq.queue_stats WHERE task_queue_id = 'c/n'; ROLLBACK}),
	"t\n1\n1", 'a transaction sees what it has done');
psql($node, q{
	SELECT count(*) FROM tq.claim_work('c/a', 'g', 'w', 100);
	SELECT tq.resolve(array_agg(task_id), array_agg(run_id)) FROM (SELECT * FROM tq.run_overview WHERE state = 'running' LIMIT 60) AS r;
	SELECT tq.report_failed(task_id, 0) FROM (SELECT * FROM tq.run_overview WHERE state = 'running' LIMIT 10) AS r;
	SELECT tq.report_exception(task_id, 0, 'worker-shutdown') FROM (SELECT * FROM tq.run_overview WHERE state = 'running' LIMIT 7) AS r});
is_exact($node, 'claims and reports');
is(psql($node, q{SELECT concat_ws(' ', created, claimed, completed, failed, exception, retried, reasons) FROM tq.queue_stats WHERE task_queue_id = 'c/a'}),
	'224 100 60 10 7 7 {"failed": 10, "worker-shutdown": 7}', 'totals');
is(psql($node, q{SELECT (SELECT sum(value::int) FROM jsonb_each_text(wait_histogram)), (SELECT sum(value::int) FROM jsonb_each_text(run_histogram)), wait_p50 <= wait_p95 AND wait_p95 <= wait_p99, run_p50 > '0' FROM tq.queue_stats WHERE task_queue_id = 'c/a'}),
	'100|77|t|t', 'histograms have each claim and each end once');

# What metrics and the history read, without a count of rows.
my $read = q{SELECT concat_ws(' ', t.created, t.claimed, t.retried, t.dead_letters, t.ended[1], t.ended[2], t.ended[7], (SELECT sum(w) FROM unnest(t.waited) AS w), (SELECT sum(r) FROM unnest(t.ran) AS r))
	FROM tq_internal.queue_totals() AS t JOIN tq_internal.queue AS q ON q.id = t.queue WHERE q.task_queue_id = 'c/a'};
is(psql($node, $read), '224 100 7 0 60 10 7 100 77', 'the same as totals');
is(psql($node, q{SELECT waited_us = (SELECT sum(extract(epoch FROM r.started - r.scheduled) * 1000000) FROM tq.run_overview AS r JOIN tq_internal.task AS k USING (task_id) WHERE k.queue = q.id AND r.started IS NOT NULL),
	ran_us = (SELECT sum(extract(epoch FROM r.resolved - r.started) * 1000000) FROM tq.run_overview AS r JOIN tq_internal.task AS k USING (task_id) WHERE k.queue = q.id AND r.resolved IS NOT NULL)
	FROM tq_internal.queue_totals() AS t JOIN tq_internal.queue AS q ON q.id = t.queue WHERE q.task_queue_id = 'c/a'}), 't|t', 'sums of the times that runs waited and ran');
is(psql($node, q{SELECT (t.unscheduled, t.delayed, t.pending, t.running) = (s.blocked, s.delayed, s.pending, s.running) FROM tq_internal.queue_totals() AS t JOIN tq_internal.queue AS q ON q.id = t.queue JOIN tq.queue_stats AS s USING (task_queue_id)
	WHERE q.task_queue_id = 'c/a'}), 't', 'and the numbers of tasks');
psql($node, q{SELECT tq.enqueue('c/dead', policy => '{"deadLetter": true}', retries => 0); SELECT tq.report_failed(task_id, 0) FROM tq.claim_work('c/dead', 'g', 'w')});
is(psql($node, q{SELECT t.dead_letters FROM tq_internal.queue_totals() AS t JOIN tq_internal.queue AS q ON q.id = t.queue WHERE q.task_queue_id = 'c/dead'}), 1, 'a dead letter is counted');

# ---- metrics ----

ok($node->poll_query_until('postgres', $published), 'all is published');

# The value of a sample of tq.metrics().
sub sample
{
	my ($server, $name, $role) = @_;
	my $page = psql($server, ($role ? "SET ROLE $role;" : '') . 'SELECT tq.metrics()');

	return $page =~ /^\Q$name\E (\S+)$/m ? $1 : undef;
}

my %samples = ('tq_tasks{queue="c/a",state="running"}' => 23, 'tq_tasks_created_total{queue="c/a"}' => 224, 'tq_runs_claimed_total{queue="c/a"}' => 100,
	'tq_runs_completed_total{queue="c/a"}' => 60, 'tq_runs_failed_total{queue="c/a"}' => 10, 'tq_runs_exception_total{queue="c/a",reason="worker-shutdown"}' => 7,
	'tq_runs_retried_total{queue="c/a"}' => 7, 'tq_claims_expired_total{queue="c/a"}' => 0, 'tq_dead_letters_total{queue="c/dead"}' => 1,
	'tq_wait_seconds_count{queue="c/a"}' => 100, 'tq_run_seconds_bucket{queue="c/a",le="+Inf"}' => 77, 'tq_workers{queue="c/dead"}' => 1,
	'tq_counters_exact' => 1, 'tq_maintenance_up' => 1, 'tq_publisher_lag_seconds' => 0);
is_deeply({ map { $_ => sample($node, $_) } keys %samples }, \%samples, 'metrics show the same');
is(sample($node, 'tq_wait_seconds_sum{queue="c/a"}') + 0, psql($node, q{SELECT waited_us::float8 / 1000000 FROM tq_internal.queue_totals() AS t JOIN tq_internal.queue AS q ON q.id = t.queue WHERE q.task_queue_id = 'c/a'}) + 0,
	'the sum of a histogram is exact');
is(psql($node, q{SELECT bool_and(last <= value) FROM (SELECT m[2]::numeric AS value, lag(m[2]::numeric, 1, 0) OVER (PARTITION BY m[1] ORDER BY n) AS last
	FROM regexp_matches(tq.metrics(), '(tq_run_seconds_bucket.queue="c/a")[^ ]* (\d+)', 'g') WITH ORDINALITY AS f (m, n)) AS b}), 't', 'and its buckets grow');
psql($node, q{SELECT tq.subscribe(E'a "name"\\\\with\na line', 'task-failed')});
like(psql($node, 'SELECT tq.metrics()'), qr/^tq_subscription_lost\{subscription="a \\"name\\"\\\\with\\na line"\} 0$/m, 'labels of any text');
psql($node, q{SELECT tq.unsubscribe(E'a "name"\\\\with\na line')});
psql($node, "ALTER DATABASE $db SET tq.metrics_queues = 1");
is(sample($node, 'tq_tasks_created_total{queue="other"}'), psql($node, q{SELECT sum(created) FROM tq.queue_stats WHERE task_queue_id <> 'c/a'}), 'other queues are one');
is(sample($node, 'tq_tasks{queue="other",state="pending"}'), psql($node, q{SELECT sum(pending) FROM tq.queue_stats WHERE task_queue_id <> 'c/a'}), 'with their tasks');
is(sample($node, 'tq_tasks_created_total{queue="c/a"}'), 224, 'the first has its own label');
psql($node, "ALTER DATABASE $db RESET tq.metrics_queues");
psql($node, q{CREATE ROLE scraper LOGIN IN ROLE tq_monitor});
is(sample($node, 'tq_tasks_created_total{queue="c/a"}', 'scraper'), 224, 'a member of tq_monitor reads them');
like(($node->psql($db, 'SET ROLE scraper; SELECT * FROM tq.health()'))[2], qr/queue:health/, 'and nothing else');
is(psql($node, q{SET ROLE scraper; SELECT (SELECT count(*) FROM tq.queue_stats) + (SELECT count(*) FROM tq.task_overview)}), 0, 'no rows either');
psql($node, q{DROP ROLE scraper; CREATE ROLE outsider});
like(($node->psql($db, 'SET ROLE outsider; SELECT tq.metrics()'))[2], qr/TQ403|queue:metrics/, 'a role without rights does not');
is(psql($node, q{SET tq.clock_offset = '1 hour'; SELECT substring(tq.metrics() FROM 'tq_oldest_pending_seconds.queue="c/a". (\d+)')::int BETWEEN 3600 AND 3700}), 't', 'since when the first run has been pending');

ok($node->poll_query_until($db, q{SELECT created_per_s > 0 AND claimed_per_s > 0 AND ended_per_s > 0 FROM tq.queue_stats WHERE task_queue_id = 'c/a'}),
	'rates of the last minute');

# ---- time ----

psql($node, q{SET tq.claim_timeout = '10 min'; SELECT tq.claim_work('c/a', 'g', 'w', 5)});
psql($node, q{SELECT tq.enqueue('c/a', deadline => '16 min') FROM generate_series(1, 4)});
is(psql($node, q{SET tq.clock_offset = '15 min'; SELECT running, pending FROM tq.queue_stats WHERE task_queue_id = 'c/a'}),
	psql($node, q{SELECT running - 5, pending FROM tq.queue_stats WHERE task_queue_id = 'c/a'}), 'a claim that has expired counts no longer');
is(psql($node, q{SET tq.clock_offset = '17 min'; SELECT pending, (tq.task_queue_counts('c/a') -> 'pendingTasks')::bigint FROM tq.queue_stats WHERE task_queue_id = 'c/a'}),
	psql($node, q{SELECT pending - 4, pending - 4 FROM tq.queue_stats WHERE task_queue_id = 'c/a'}), 'nor a task past its deadline');

# ---- groups ----

my $group = psql($node, q{SELECT tq.slugid()});
my $state = "SELECT tq_internal.counted_group('$group')";
my $progress = "SELECT p FROM tq.group_progress('$group') AS p";
psql($node, qq{
	CREATE FUNCTION tq_internal.counted_group(g tq.slugid) RETURNS text LANGUAGE sql AS \$\$
		SELECT concat_ws(' ', count(*), count(*) FILTER (WHERE state = 'unscheduled'), count(*) FILTER (WHERE state = 'pending'),
			count(*) FILTER (WHERE state = 'running'), count(*) FILTER (WHERE state = 'completed'), count(*) FILTER (WHERE state = 'failed'),
			count(*) FILTER (WHERE state = 'exception'), min(created), max(resolved))
		FROM tq.task_details WHERE task_group_id = g \$\$;
	SELECT tq.create_tasks(jsonb_agg(jsonb_build_object('taskId', tq.slugid(), 'task', jsonb_build_object('taskQueueId', 'c/g', 'taskGroupId', '$group',
		'created', now(), 'deadline', now() + interval '1 hour', 'payload', '{}'::jsonb, 'metadata', jsonb_build_object('name', 'x', 'description', 'x', 'owner', 'a\@b.c', 'source', 'https://x.y')))))
	FROM generate_series(1, 10)});
my $counted = "SELECT concat_ws(' ', tasks, unscheduled, pending + delayed, running, completed, failed, exception, first_created, last_resolved) FROM tq.group_progress('$group')";
is(psql($node, $counted), psql($node, $state), 'a large group is counted');

# A group has counters from its first task on.
my $young = psql($node, q{SELECT tq.slugid()});
psql($node, "BEGIN; SELECT tq.enqueue('c/g', task_group_id => '$young') FROM generate_series(1, 2); SAVEPOINT s; SELECT tq.enqueue('c/g', task_group_id => '$young'); ROLLBACK TO s; COMMIT");
psql($node, "SELECT tq.enqueue('c/g', task_group_id => '$young')");
is(psql($node, $counted =~ s/$group/$young/r), psql($node, $state =~ s/$group/$young/r), 'a new group');
my $early = $counted;
$counted =~ s/$group/$young/;

# Whether a call has read rows of tasks: not if there are counters, and no run of
# the group has reported progress.
sub reads_rows
{
	return psql($node, q{SELECT pg_stat_reset(); SELECT 1} ) && psql($node, "BEGIN; $counted; SELECT coalesce(sum(idx_tup_fetch + seq_tup_read), 0) > 5 FROM pg_stat_xact_all_tables WHERE relname IN ('task', 'pending', 'run'); COMMIT") =~ /t\z/;
}
ok(!reads_rows(), 'it had counters from the beginning');
psql($node, "SELECT tq.cancel_task(task_id) FROM tq.task_details WHERE task_group_id = '$young'");
$counted = $early;
ok(!reads_rows(), 'the next call reads the counters of the first');
psql($node, q{
	SELECT tq.report_completed(task_id, run_id) FROM tq.claim_work('c/g', 'g', 'w', 3);
	SELECT tq.report_failed(task_id, run_id) FROM tq.claim_work('c/g', 'g', 'w', 2);
	SELECT task_id FROM tq.claim_work('c/g', 'g', 'w', 1)});
is(psql($node, $counted), psql($node, $state), 'claims and reports');
is(psql($node, "BEGIN; SELECT tq.report_exception(task_id, run_id, 'malformed-payload') IS NULL FROM tq.claim_work('c/g', 'g', 'w', 1); SELECT ($counted) = ($state); ROLLBACK"),
	"f\nt", 'in a transaction that has changed it');
psql($node, "SELECT tq.rerun_task(task_id) FROM tq.task_overview WHERE task_queue_id = 'c/g' AND state = 'failed' ORDER BY since LIMIT 1");
is(psql($node, $counted), psql($node, $state), 'a rerun');
psql($node, "SELECT tq.report_completed(task_id, run_id) FROM tq.claim_work('c/g', 'g', 'w', 1)");
psql($node, "SELECT tq.rerun_task(task_id) FROM (SELECT * FROM tq.task_overview WHERE task_queue_id = 'c/g' AND state IN ('completed', 'failed') ORDER BY since DESC LIMIT 1) AS t");
is(psql($node, $counted), psql($node, $state), 'a rerun of the task that was resolved last');
is(psql($node, $counted), psql($node, $state), 'and once more, from counters again');
ok(!reads_rows(), 'without reading rows');
psql($node, "SELECT tq.delete_task(task_id) FROM (SELECT * FROM tq.task_overview WHERE task_queue_id = 'c/g' AND state = 'completed' LIMIT 1) AS t");
is(psql($node, $counted), psql($node, $state), 'a deleted task');
is_exact($node, 'all queues after that');

# ---- progress of running tasks ----

my $reporting = psql($node, q{SELECT tq.slugid()});
my $done = "SELECT done FROM tq.group_progress('$reporting')";
psql($node, "SELECT tq.enqueue('c/r', task_group_id => '$reporting') FROM generate_series(1, 8); SELECT tq.claim_work('c/r', 'g', 'w', 4)");
my ($run) = split /\n/, psql($node, "SELECT task_id FROM tq.task_overview WHERE task_queue_id = 'c/r' AND state = 'running'");
my $report = "SELECT tq.report_progress('$run', 0, 1, 4)";
$counted = $early =~ s/$group/$reporting/r;
ok(!reads_rows(), 'running tasks that have reported nothing are not read');
is(psql($node, "BEGIN; $report IS NULL; $done; ROLLBACK"), "f\n0.03125", 'the transaction of a report sees it');
ok(!reads_rows(), 'nor after a report that is rolled back');
psql($node, $report);
is(psql($node, $done), '0.03125', 'a report counts');
ok(reads_rows(), 'and is read');
my $rates = q{SELECT sum(created_per_s) > 0 FROM tq.queue_stats};
$node->poll_query_until($db, $rates) or die 'no rate';
psql($node, q{SELECT tq_internal.reset_queue_stats()});
is(psql($node, $rates), 'f', 'a reset forgets the last minute');
ok(wait_exact($node), 'counted again');
is(psql($node, $done), '0.03125', 'a report that is counted with the rows');
is(psql($node, $done), '0.03125', 'and by the counters from then on');
ok(reads_rows(), 'it is still read');
psql($node, "SELECT tq.report_completed('$run', 0)");
is(psql($node, $done), '0.125', 'an end counts whole');
$counted = $early;

# The maintenance worker writes the history of this one while the test goes on.
psql($node, q{SELECT tq.enqueue('c/h') FROM generate_series(1, 7)});

# ---- prepared transactions ----

# The queue first: another session would wait for the end of a new one.
psql($node, q{SELECT tq.cancel_task(tq.enqueue('c/p'))});
psql($node, q{BEGIN; SELECT tq.enqueue('c/p') FROM generate_series(1, 3); PREPARE TRANSACTION 'one'});
psql($node, q{BEGIN; SELECT tq.enqueue('c/p') FROM generate_series(1, 9); PREPARE TRANSACTION 'two'});
psql($node, q{BEGIN; SELECT tq.enqueue('c/p' || i) FROM generate_series(1, 40) AS i; PREPARE TRANSACTION 'large'});
is_exact($node, 'prepared');
psql($node, q{COMMIT PREPARED 'one'});
psql($node, q{ROLLBACK PREPARED 'two'});
is(psql($node, q{SELECT (tq.task_queue_counts('c/p') -> 'pendingTasks')::bigint}), 3, 'COMMIT PREPARED and ROLLBACK PREPARED');
is_exact($node, 'both');
psql($node, q{COMMIT PREPARED 'large'});
is(psql($node, q{SELECT sum(pending) FROM tq.queue_stats WHERE task_queue_id ~ '^c/p'}), 43, 'one with many changes: rows are counted at once');
ok(wait_exact($node), 'and counters again');
is_exact($node, 'after that');

# ---- two reasons have one name ----

psql($node, q{SELECT tq.cancel_task(tq.enqueue('c/x')); SELECT tq.enqueue('c/x');
	SELECT tq.resolve(jsonb_build_array(jsonb_build_object('taskId', task_id, 'runId', run_id, 'reason', 'canceled'))) FROM tq.claim_work('c/x', 'g', 'w')});
is(psql($node, q{SELECT reasons FROM tq.queue_stats WHERE task_queue_id = 'c/x'}), '{"canceled": 2}', 'a client canceled a task, and a worker one');
is(join(' ', psql($node, 'SELECT tq.metrics()') =~ /^tq_runs_exception_total\{queue="c\/x",(.*)$/mg), 'reason="canceled"} 2', 'they are one sample of the metrics');

# ---- changes by other statements ----

psql($node, q{DELETE FROM tq_internal.pending WHERE task IN (SELECT task FROM tq_internal.pending LIMIT 1)});
ok(wait_exact($node), 'a statement has deleted a row: counted again');
is_exact($node, 'after that');

# ---- the history ----

ok($node->poll_query_until($db, q{SELECT sum(created_per_s * seconds) = 7 AND max(pending) = 7 FROM tq.queue_history('c/h')}), 'the maintenance worker writes what has happened');
# Runs are counted by name from the first step that has something to write.
psql($node, q{SELECT tq.enqueue('c/n', name => 'named') FROM generate_series(1, 3); SELECT tq.report_completed(task_id, run_id) FROM tq.claim_work('c/n', 'g', 'w', 2)});
ok($node->poll_query_until($db, q{SELECT count(*) > 1 AND min(pending) = 7 FROM tq.queue_history('c/h', clock_timestamp() - interval '20 s') WHERE created_per_s = 0}), 'a number lasts while nothing happens');

ok($node->poll_query_until($db, q{SELECT sum(completed) = 2 AND min(name) = 'named' AND count(*) = 1 FROM tq.task_name_stats('c/n', clock_timestamp() - interval '1 day')}), 'the names of the tasks are counted');

# ---- by the names of tasks, each run once ----

# Sessions do what the maintenance worker would do; the history has a run that has ended.
psql($node, 'CREATE DATABASE named');
psql($node, 'ALTER DATABASE named SET tq.maintenance = off');
$node->safe_psql('named', q{CREATE EXTENSION tq; SELECT tq.enqueue('n/q', name => 'a') FROM generate_series(1, 6);
	INSERT INTO tq_internal.queue_history SELECT 10, clock_timestamp() + interval '1 hour', 1, 0, 0, 0, 1, 0, 0, 0});
my $end = q{SELECT tq.report_completed(task_id, run_id) FROM tq.claim_work('n/q', 'g', 'w')};
my $named = q{SELECT coalesce((SELECT sum(completed) FROM tq.task_name_stats('n/q', clock_timestamp() - interval '1 day')), 0)};
my $count = q{SELECT tq_internal.write_names()};
my $counts = sub { my ($n) = @_; return $node->poll_query_until('named', "SELECT tq_internal.write_names() IS NOT NULL AND ($named) >= $n") && $node->safe_psql('named', $named); };
$node->safe_psql('named', $end);
is($counts->(1), 1, 'the first run of a database');
$node->safe_psql('named', "BEGIN; $end; PREPARE TRANSACTION 'named'");
my $late = $node->background_psql('named');
$late->query_safe("BEGIN; SAVEPOINT s; $end; RELEASE s");
$node->safe_psql('named', $end);
is($node->safe_psql('named', join '; ', $count, $count, $named) =~ s/.*\n//sr, 1, 'none is counted that a transaction has ended which is later than one that is open');
$late->query_safe('COMMIT');
is($node->safe_psql('named', join '; ', $count, $count, $named) =~ s/.*\n//sr, 1, 'or prepared');
$node->safe_psql('named', q{COMMIT PREPARED 'named'});
is($counts->(4), 4, 'all of them are counted when it has ended');
$node->safe_psql('named', q{CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$refused$$; END'; CREATE TRIGGER refuse BEFORE UPDATE ON tq_internal.task_name_history FOR EACH ROW EXECUTE FUNCTION refuse()});
$node->safe_psql('named', $end);
ok($node->poll_query_until('named', "SELECT pg_snapshot_xmin(pg_current_snapshot()) > max(xmin::text::bigint)::text::xid8 FROM tq_internal.run"), 'a run that no open transaction hides');
is(($node->psql('named', $count))[0], 3, 'a pass fails');
$node->safe_psql('named', 'DROP TRIGGER refuse ON tq_internal.task_name_history');
is($counts->(5), 5, 'and is made again');
is($node->safe_psql('named', join '; ', $end, $count, $count, $count, $named) =~ s/.*\n//sr <= 6, 1, 'nothing is counted twice');
is($counts->(6), 6, 'nor lost');
$late->quit;

# A step that comes while the counters are not exact has no numbers of tasks; the next one has.
my $go = q{SELECT set_config('tq.clock_offset', (date_bin('1 min', clock_timestamp(), 'epoch') + interval '5 min 33 s' + interval '%d s' - clock_timestamp())::text, false) <> ''};
my $looker = $node->background_psql('named');
isnt($node->safe_psql('named', $source), 'memory', 'counters that are not exact');
$looker->query_safe(sprintf($go, 0) . '; SELECT tq_internal.write_history()');
$node->safe_psql('named', q{SELECT tq.enqueue('n/h') FROM generate_series(1, 3); SELECT tq.cancel_task(tq.enqueue('n/i'))});
$looker->query_safe(sprintf($go, 10) . '; SELECT tq_internal.write_history()');
psql($node, 'ALTER DATABASE named RESET tq.maintenance');
ok($node->poll_query_until('named', "SELECT ($source) = 'memory'"), 'and are');
$looker->query_safe(sprintf($go, 20) . "; BEGIN; SELECT tq_internal.write_history(); ROLLBACK; SELECT tq_internal.write_history()");
is($node->safe_psql('named', q{SELECT string_agg(concat_ws(' ', created, coalesce(pending::text, '-')), ', ' ORDER BY task_queue_id, at) FROM tq_internal.queue_history h JOIN tq_internal.queue q ON q.id = h.queue WHERE task_queue_id IN ('n/h', 'n/i') AND at > clock_timestamp() + interval '2 min'}),
	'3 -, 0 3, 1 -, 0 0', 'the step after has the numbers of tasks');
$looker->quit;
psql($node, 'DROP DATABASE named WITH (FORCE)');

# A session that writes as if it were the maintenance worker, in the middle of a minute
# that is still to come.
my $writer = $node->background_psql($db);
my $written = q{SELECT string_agg(concat_ws(' ', created, claimed, pending, running), ', ' ORDER BY at) FROM tq_internal.queue_history h JOIN tq_internal.queue q ON q.id = h.queue
	WHERE task_queue_id = 'c/w' AND seconds = 10 AND at > clock_timestamp() + interval '2 min'};
$writer->query_safe(sprintf($go, 0) . '; SELECT tq_internal.write_history()');
is($writer->query_safe('BEGIN; SELECT tq_internal.write_history(), pg_current_xact_id_if_assigned() IS NULL; COMMIT'), '0|t', 'a step in which nothing has happened writes nothing');
psql($node, q{SELECT tq.enqueue('c/w') FROM generate_series(1, 3)});
cmp_ok($writer->query_safe('BEGIN; SELECT tq_internal.write_history(); ROLLBACK'), '>=', 1, 'a step fails');
psql($node, q{SELECT count(*) FROM tq.claim_work('c/w', 'g', 'w')});
$writer->query_safe('SELECT tq_internal.write_history()');
is(psql($node, $written), '3 1 2 1', 'the next one has what it should have written');
psql($node, q{SELECT tq_internal.reset_queue_stats(); SELECT tq.enqueue('c/w') FROM generate_series(1, 2)});
ok(wait_exact($node), 'the counters begin again');
$writer->query_safe(sprintf($go, 10) . '; SELECT tq_internal.write_history()');
is(psql($node, $written), '3 1 2 1, 2 0 4 1', 'so does the history');
psql($node, $_) foreach q{BEGIN; SELECT tq.enqueue('c/w'); PREPARE TRANSACTION 'w'}, q{COMMIT PREPARED 'w'};
$writer->query_safe(sprintf($go, 20) . '; SELECT tq_internal.write_history()');
is(psql($node, $written), '3 1 2 1, 2 0 4 1, 1 0 5 1', 'what was prepared is part of it');
$writer->quit;

# ---- a restart ----

my $totals = q{SELECT string_agg(concat_ws(' ', s.task_queue_id, s.created, s.claimed, s.completed, s.reasons, s.wait_histogram, t.waited_us, t.ran_us, t.dead_letters), ';' ORDER BY s.task_queue_id)
	FROM tq.queue_stats AS s JOIN tq_internal.queue AS q USING (task_queue_id) LEFT JOIN tq_internal.queue_totals() AS t ON t.queue = q.id};
my $before = psql($node, $totals);
psql($node, q{BEGIN; SELECT tq.enqueue('c/p') FROM generate_series(1, 2); PREPARE TRANSACTION 'old'});
psql($node, $counted);
$node->restart;
is(psql($node, $totals), $before, 'totals are as they were before a restart');
is(psql($node, $written), '3 1 2 1, 2 0 4 1, 1 0 5 1', 'and so is the history');
ok(wait_exact($node), 'the gauges are counted');
is_exact($node, 'after a restart');
ok($node->poll_query_until($db, "SELECT count(*) = 0 FROM tq.queue_stats WHERE source <> 'memory'"), 'all of them');
is(psql($node, $counted), psql($node, $state), 'and the group');
psql($node, q{COMMIT PREPARED 'old'});
is(psql($node, q{SELECT (tq.task_queue_counts('c/p') -> 'pendingTasks')::bigint}), 5, 'a transaction that was prepared before the restart');
ok(wait_exact($node), 'counted again');
is_exact($node, 'after that');

# ---- a crash ----

my $worker = worker_in($node, $db);
kill 'KILL', $worker;
ok(wait_worker($node, $db, $worker), 'the server starts again after a crash');
ok(wait_exact($node), 'the gauges are counted');
is_exact($node, 'after a crash');
is(psql($node, q{SELECT sum(created) FROM tq.queue_stats}), 0, 'the totals are lost');

# ---- while rows are counted ----

# A transaction that is open while they are.
my $open = $node->background_psql($db, on_error_stop => 1);
$open->set_query_timer_restart();
$open->query_safe(qq{BEGIN; SELECT tq.enqueue('c/a', task_group_id => '$group', scheduler_id => '-') FROM generate_series(1, 3)});
psql($node, q{SELECT tq_internal.reset_queue_stats()});
ok(wait_exact($node), 'counted while a transaction is open');
is(psql($node, $counted), psql($node, $state), 'and a group');
is_exact($node, 'before its commit');
$open->query_safe('COMMIT');
$open->quit;
is_exact($node, 'after it');
is(psql($node, $counted), psql($node, $state), 'and the group');

# Sessions commit at full speed, while one counts fifty groups, each once.
my $groups = 50;
psql($node, qq{
	CREATE TABLE load AS SELECT n, tq.slugid() AS g FROM generate_series(1, $groups) AS n;
	SELECT tq.enqueue('c/load', task_group_id => g) FROM load, generate_series(1, 6)});
psql($node, q{SELECT tq_internal.reset_queue_stats()});
ok(wait_exact($node), 'the groups have no counters');
my $script = $node->basedir . '/load.sql';
append_to_file($script, qq{\\set n random(1, $groups)
	SELECT tq.enqueue('c/load', task_group_id => g) FROM load WHERE n = :n;
	SELECT tq.resolve(ARRAY[task_id], ARRAY[run_id]) FROM tq.claim_work('c/load', 'g', 'w');
});
my ($out, $err);
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', '4', '-j', '2', '-t', '400', '-f', $script, '-h', $node->host, '-p', $node->port, $db ], '>', \$out, '2>', \$err);
psql($node, "SELECT (tq.group_progress(g)).tasks FROM load WHERE n = $_") foreach 1 .. $groups;
ok($load->finish, 'a load') or diag($err);
is(psql($node, q{
	SELECT concat_ws(' ', n, p.pending, p.completed, 'but', r.pending, r.completed)
	FROM load, tq.group_progress(g) AS p, LATERAL (SELECT count(*) FILTER (WHERE state = 'pending') AS pending, count(*) FILTER (WHERE state = 'completed') AS completed
		FROM tq.task_details WHERE task_group_id = g) AS r
	WHERE (p.pending, p.completed) IS DISTINCT FROM (r.pending, r.completed)}), '', 'each group has exact counters');
is_exact($node, 'after a load');

# Thousands of small groups make room for each other, and leave large ones alone.
psql($node, $counted);
psql($node, q{DO $$ BEGIN FOR i IN 1 .. 20 LOOP PERFORM tq.enqueue('c/small', task_group_id => tq.slugid()) FROM generate_series(1, 500); COMMIT; END LOOP; END $$});
ok(!reads_rows(), 'a large group has its counters among 10,000 small ones');
is(psql($node, $counted), psql($node, $state), 'and they are right');

# ---- DROP and CREATE EXTENSION, TRUNCATE ----

psql($node, 'DROP TABLE load; DROP FUNCTION tq_internal.counted_group; DROP EXTENSION tq; CREATE EXTENSION tq');
psql($node, q{SELECT tq.enqueue('d/a'), tq.enqueue('d/b')});
ok(wait_exact($node), 'another extension');
is_exact($node, 'DROP and CREATE EXTENSION', "d/a: 1 0 0 0\nd/b: 1 0 0 0");
psql($node, q{BEGIN; TRUNCATE tq_internal.task, tq_internal.pending; SELECT tq.enqueue('d/a'); ROLLBACK});
is_exact($node, 'TRUNCATE rolled back', "d/a: 1 0 0 0\nd/b: 1 0 0 0");
psql($node, q{TRUNCATE tq_internal.task, tq_internal.pending; SELECT tq.enqueue('d/a')});
is(psql($node, $shown), "d/a: 1 0 0 0\nd/b: 0 0 0 0", 'TRUNCATE: the rows are counted');
ok(wait_exact($node), 'and counters again');
is_exact($node, 'after that', "d/a: 1 0 0 0\nd/b: 0 0 0 0");

# ---- a standby ----

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
psql($node, q{SELECT tq.enqueue('d/b')});
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is(psql($standby, $shown), "d/a: 1 0 0 0\nd/b: 1 0 0 0", 'a standby counts the rows');
is(psql($standby, $source), 'tables', 'and says so');
$node->stop;
$standby->promote;
wait_worker($standby, $db);
ok(wait_exact($standby), 'promoted: the gauges are counted');
psql($standby, q{SELECT tq.enqueue('d/b')});
is_exact($standby, 'after a promotion', "d/a: 1 0 0 0\nd/b: 2 0 0 0");

# ---- without counters ----

$standby->append_conf('postgresql.conf', 'tq.counted_queues = 1');
$standby->restart;
ok($standby->poll_query_until($db, "SELECT source = 'tables' FROM tq.queue_stats LIMIT 1"), 'more queues than tq.counted_queues');
is(psql($standby, $shown), "d/a: 1 0 0 0\nd/b: 2 0 0 0", 'the rows are counted');
is(psql($standby, q{SELECT (tq.task_queue_counts('d/a') -> 'pendingTasks')::bigint, (tq.task_queue_counts('d/b') -> 'pendingTasks')::bigint}), '1|2', 'by each function');
$standby->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$standby->restart;
is(psql($standby, $shown), "d/a: 1 0 0 0\nd/b: 2 0 0 0", 'without preload the rows are counted');
is(psql($standby, q{SELECT DISTINCT source FROM tq.queue_stats}), 'tables', 'and queue_stats says so');

done_testing();
