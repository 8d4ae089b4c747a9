# Timers at scale: what is not due costs the maintenance worker nothing, however
# many there are; what is due at one instant is done, each once; and entries that
# were taken long ago cost nothing while a long transaction keeps them from vacuum.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

# Autovacuum is off, so that the test shows what the maintenance worker does
# without it.
my $node = new_node('scale', 'autovacuum = off', 'work_mem = 64MB');
my $db = 'postgres';
my $due_indexes = "('claim_timer_pkey', 'timer_pkey', 'delayed_due')";

sub query { return $node->safe_psql($db, $_[0]); }

# A column of a row of worker_overview.
sub activity
{
	my ($step, $column) = @_;

	return query("SELECT $column FROM tq.maintenance_overview WHERE step = '$step'");
}

# Index entries of timers that were read, when the maintenance worker has reported
# them: it does before it sleeps for long.
sub entries_read
{
	return query("SELECT sum(idx_tup_read) FROM pg_stat_all_indexes WHERE indexrelname IN $due_indexes");
}

# Lets the maintenance worker run a cycle in which something is done, and waits
# until it sleeps again.
sub turn_of_worker
{
	my $id = enqueue($node, $db, "deadline => '1 ms'");

	wait_state($node, $db, $id, 'exception') or die 'the maintenance worker does nothing';
	return $id;
}

# The same, after turns of the worker that read little.  What it has read is reported late,
# and then all of it: so one report at least has come from these turns alone.
sub read_of_turns
{
	my ($read, $before) = (entries_read());

	foreach (1 .. 100)
	{
		turn_of_worker();
		($before, $read) = ($read, entries_read());
		last if $read > $before && $read < $before + 1000;
	}
	return $read;
}

# Messages are not wanted: they wake the maintenance worker too.
sub unbind_all
{
	query(q{SELECT count(tq.unbind(channel, exchange)) FROM tq.binding_overview});
}

# So many tasks, by statements, as a restore would; n runs from 1.
sub insert_tasks
{
	my ($n, $deadline) = @_;

	return query(qq{
		SELECT setval('tq_internal.id_seq', nextval('tq_internal.id_seq') + $n);
		WITH last AS (SELECT last_value AS id FROM tq_internal.id_seq)
		INSERT INTO tq_internal.task (id, created, deadline, expires, queue, priority, retries, all_resolved, task_id, payload)
		SELECT last.id - $n + n, now(), $deadline, now() + interval '1 year', q.id, 1, 5, false,
			gen_random_uuid()::tq.slugid, '{}'
		FROM last, generate_series(1, $n) AS n, tq_internal.queue q WHERE q.task_queue_id = 'p/w';
		SELECT last_value - $n FROM tq_internal.id_seq}) =~ s/.*\n//sr;
}

# What must be true of all tasks, as far as it can be asked of so many; '' if it is.
sub wrong
{
	return query(q{
		WITH holder AS (
			SELECT task FROM tq_internal.pending UNION ALL SELECT task FROM tq_internal.delayed
			UNION ALL SELECT task FROM tq_internal.unscheduled UNION ALL SELECT task FROM tq_internal.run WHERE state = 2
		)
		SELECT 'more than one holder', task FROM holder GROUP BY task HAVING count(*) > 1
		UNION ALL SELECT 'no holder and no run', id FROM tq_internal.task
			WHERE id NOT IN (SELECT task FROM holder UNION ALL SELECT task FROM tq_internal.run)
		UNION ALL SELECT 'run twice', task FROM tq_internal.run GROUP BY task, run_id HAVING count(*) > 1
		UNION ALL SELECT 'running without a lease', task FROM tq_internal.run WHERE state = 2
			AND task NOT IN (SELECT unnest(tasks) FROM tq_internal.claim_timer)
		UNION ALL SELECT 'unresolved without a deadline timer', task FROM holder
			WHERE task NOT IN (SELECT unnest(tasks) FROM tq_internal.timer WHERE kind = 1)
				AND task NOT IN (SELECT id FROM tq_internal.task WHERE deadline = 'infinity')
		LIMIT 10});
}

# Claimed runs, each with a claim timer of its own; resolved already, or still running.
sub insert_claims
{
	my ($n, $due, $resolved) = @_;
	my $before = insert_tasks($n, "now() + interval '1 day'");
	my $state = $resolved ? 3 : 2;

	query(qq{
		INSERT INTO tq_internal.run (task, scheduled, started, taken_until, resolved, run_id, state, reason_created,
			reason_resolved, retries_left)
		SELECT id, now(), now(), $due, CASE $state WHEN 3 THEN now() END, 0, $state, 1, $state - 2, 5
		FROM tq_internal.task WHERE id > $before;
		INSERT INTO tq_internal.claim_timer (due, tasks) SELECT $due, ARRAY[id] FROM tq_internal.task WHERE id > $before;
		INSERT INTO tq_internal.timer (due, kind, tasks) SELECT deadline, 1, ARRAY[id] FROM tq_internal.task WHERE id > $before});
}

sub insert_pending
{
	my ($n, $deadline) = @_;
	my $before = insert_tasks($n, $deadline);

	query(qq{
		INSERT INTO tq_internal.pending (seq, task, scheduled, queue, priority, run_id, retries_left, reason_created)
		SELECT id, id, now(), queue, 1, 0, 5, 1 FROM tq_internal.task WHERE id > $before;
		INSERT INTO tq_internal.timer (due, kind, tasks) SELECT deadline, 1, ARRAY[id] FROM tq_internal.task WHERE id > $before});
}

sub insert_delayed
{
	my ($n, $visible_at) = @_;
	my $before = insert_tasks($n, "now() + interval '1 day'");

	query(qq{
		INSERT INTO tq_internal.delayed (visible_at, task, scheduled, queue, priority, run_id, retries_left, reason_created)
		SELECT $visible_at, id, now(), queue, 1, 0, 5, 1 FROM tq_internal.task WHERE id > $before;
		INSERT INTO tq_internal.timer (due, kind, tasks) SELECT deadline, 1, ARRAY[id] FROM tq_internal.task WHERE id > $before});
}

query('CREATE EXTENSION tq');
wait_worker($node, $db);
unbind_all();

# The maintenance worker sleeps until the day after tomorrow, but for a look once a minute.
enqueue($node, $db);

# ---------------------------------------------------------------------------
# Nothing is due
# ---------------------------------------------------------------------------

insert_claims(100_000, "now() + interval '2 hours'");
insert_pending(100_000, "now() + interval '2 hours'");
insert_delayed(100_000, "now() + interval '2 hours'");
is(query('SELECT count(*) >= 100000 FROM tq_internal.claim_timer'), 't', 'there is much that is not due');
turn_of_worker();

my $turns = activity('turn', 'batches');
my $read = entries_read();

# Each of these commits something that will be due some day.
my $session = $node->background_psql($db);
$session->query_safe(q{
	DO $$
	DECLARE id tq.slugid; run int;
	BEGIN
		FOR i IN 1..1000 LOOP
			PERFORM tq.enqueue('p/busy', deadline => '3 hours');
			COMMIT;
			SELECT task_id, run_id INTO STRICT id, run FROM tq.claim_work('p/busy', 'g', 'w');
			COMMIT;
			PERFORM tq.report_completed(id, run);
			COMMIT;
		END LOOP;
	END $$});
is(query(q{SELECT count(*) FROM tq.task_details WHERE task_queue_id = 'p/busy' AND state = 'completed'}),
	1000, 'while a thousand tasks are claimed and completed');
# Not after each commit: it looks at claims after some seconds, and counts what statements have written.
cmp_ok(activity('turn', 'batches') - $turns, '<', 100, 'the maintenance worker sleeps');
cmp_ok(entries_read() - $read, '<', 10_000, 'and reads none of what is not due');

# ---------------------------------------------------------------------------
# Much is due in one instant
# ---------------------------------------------------------------------------

# The instant comes when the maintenance worker's clock is set.
query(q{SELECT count(tq.enqueue('p/lost', priority => CASE WHEN n % 2 = 0 THEN 'low' ELSE 'high' END,
		deadline => '20 hours', retries => n % 2)) FROM generate_series(1, 10000) AS n});
$session->query_safe(q{SET tq.claim_timeout = '90 min'});
$session->query_safe(q{
	DO $$ BEGIN
		FOR i IN 1..5000 LOOP
			PERFORM tq.claim_work('p/lost', 'g', 'w');
			IF i % 100 = 0 THEN COMMIT; END IF;
		END LOOP;
		FOR i IN 1..50 LOOP PERFORM tq.claim_work('p/lost', 'g', 'w', 100); END LOOP;
	END $$});
query(q{SELECT count(tq.enqueue('p/late', deadline => '90 min')) FROM generate_series(1, 10000)});
query(q{SELECT count(tq.enqueue('p/wait', deadline => '20 hours')) FROM generate_series(1, 10000)});
query(q{
	WITH moved AS (DELETE FROM tq_internal.pending USING tq_internal.queue q WHERE queue = q.id AND task_queue_id = 'p/wait'
		RETURNING pending.*)
	INSERT INTO tq_internal.delayed (visible_at, task, scheduled, queue, priority, run_id, retries_left, reason_created)
	SELECT now() + interval '90 min', task, scheduled, queue, priority, run_id, retries_left, reason_created
	FROM moved});
$session->quit;

query(q{SELECT count(tq.bind('seen', e)) FROM unnest('{task-exception,task-pending}'::text[]) AS e});
$session = $node->background_psql($db);
$session->query_until(qr/begun/, q{\echo begun
	SET tq.clock_offset = '100 min';
	DO $$
	DECLARE id tq.slugid; run int; done int = 0;
	BEGIN
		WHILE done < 100 OR EXISTS (SELECT FROM tq_internal.claim_timer WHERE due < now() + interval '99 min')
			OR EXISTS (SELECT FROM tq_internal.timer WHERE kind = 1 AND due < now() + interval '99 min')
			OR EXISTS (SELECT FROM tq_internal.delayed WHERE visible_at < now() + interval '99 min')
		LOOP
			PERFORM tq.enqueue('p/beside', deadline => '3 hours');
			COMMIT;
			SELECT task_id, run_id INTO STRICT id, run FROM tq.claim_work('p/beside', 'g', 'w');
			COMMIT;
			PERFORM tq.report_completed(id, run);
			COMMIT;
			done = done + 1;
		END LOOP;
	END $$;
});
my $pid = worker_in($node, $db);
query(q{ALTER DATABASE postgres SET tq.clock_offset = '100 min'});
wait_worker($node, $db, $pid);
$session->query_safe('SELECT 1');

is(query(q{SELECT state, last_run_id, count(*) FROM tq.task_details WHERE task_queue_id = 'p/lost'
		GROUP BY 1, 2 ORDER BY 1}),
	"exception|0|5000\npending|1|5000", '10,000 claims have expired, those that may be are retried');
is(query(q{SELECT r.reason_resolved, count(*) FROM tq.run_overview r JOIN tq.task_details t ON t.task_id = r.task_id
		WHERE task_queue_id = 'p/lost' AND r.run_id = 0 GROUP BY 1}), 'claim-expired|10000', 'each once');
is(query(q{SELECT r.run_id, r.reason_resolved, count(*) FROM tq.run_overview r JOIN tq.task_details t ON t.task_id = r.task_id
		WHERE task_queue_id = 'p/late' GROUP BY 1, 2}),
	'0|deadline-exceeded|10000', '10,000 deadlines have passed, each once');
is(query(q{SELECT count(*), count(DISTINCT task), count(DISTINCT seq) FROM tq_internal.pending
		JOIN tq_internal.queue q ON q.id = queue WHERE task_queue_id = 'p/wait'}),
	'10000|10000|10000', '10,000 delayed runs can be claimed, each once');
is(query(q{SELECT count(*) FROM tq_internal.delayed JOIN tq_internal.queue q ON q.id = queue WHERE task_queue_id = 'p/wait'}),
	0, 'and are not delayed any more');
cmp_ok(query(q{SELECT count(*) FROM tq.task_details WHERE task_queue_id = 'p/beside' AND state = 'completed'}),
	'>=', 100, 'others claim and complete meanwhile');
is(query(q{SELECT count(*) FROM tq.task_details WHERE task_queue_id = 'p/beside' AND state <> 'completed'}),
	0, 'and none of theirs is lost');
is(wrong(), '', 'nothing is wrong in the tables');

# What was published of it: each resolution, and each retry, once.
ok( $node->poll_query_until(
		$db, q{SELECT sum(messages) >= 20000 AND NOT EXISTS (SELECT FROM tq_internal.unpublished) FROM tq_internal.tick}),
	'all of it is published');
query(q{
	CREATE TABLE notified (id bigint, exchange text, status jsonb);
	DO $$
	DECLARE upto bigint = 0;
	BEGIN
		LOOP
			INSERT INTO notified SELECT id, exchange, payload -> 'status' FROM tq.messages(after => upto);
			EXIT WHEN NOT FOUND;
			SELECT max(id) INTO upto FROM notified;
		END LOOP;
	END $$});
is(query(q{SELECT exchange, count(*), count(DISTINCT status ->> 'taskId') FROM notified
		WHERE status ->> 'taskQueueId' IN ('p/lost', 'p/late') GROUP BY 1 ORDER BY 1}),
	"task-exception|15000|15000\ntask-pending|5000|5000", 'each once');

# ---------------------------------------------------------------------------
# What the maintenance worker says of itself
# ---------------------------------------------------------------------------

is(activity('claim-expired', 'tasks'), 10000, 'claims are counted');
is(activity('deadline', 'tasks'), 10000, 'deadlines too');
is(activity('delayed', 'tasks'), 10000, 'and delayed runs');
is(query(q{SELECT string_agg(step, ' ') FROM tq.maintenance_overview WHERE batches > 0 AND step NOT IN ('retain', 'history', 'names')}),
	'turn publish deadline claim-expired delayed', 'what was not done is not counted');
is(query(q{SELECT bool_and(last_late BETWEEN '0' AND max_late AND max_late_at <= last_at) FROM tq.maintenance_overview
		WHERE step IN ('deadline', 'claim-expired', 'delayed')}),
	't', 'the view shows how late it was');
is(query(q{SELECT max_late BETWEEN '9 min' AND '20 min' FROM tq.maintenance_overview WHERE step = 'deadline'}),
	't', 'and since when it was due: the clock was set ten minutes past');
note($_) foreach split /\n/, query('SELECT * FROM tq.maintenance_overview');

# ---------------------------------------------------------------------------
# What has been taken is not in the way
# ---------------------------------------------------------------------------

$session->quit;

# A transaction is prepared here.
$node->append_conf('postgresql.conf', 'max_prepared_transactions = 5');
$node->restart;
wait_worker($node, $db);
unbind_all();
query(q{SELECT count(tq.unbind('seen', e)) FROM unnest('{task-exception,task-pending}'::text[]) AS e});
my $long = $node->background_psql($db);
$long->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM tq_internal.queue');
insert_claims(20_000, "now() + interval '100 min'", 1);
insert_delayed(1000, "now() + interval '100 min'");
ok($node->poll_query_until($db, qq{SELECT NOT EXISTS (SELECT FROM tq_internal.claim_timer WHERE due < now() + interval '101 min')
		AND NOT EXISTS (SELECT FROM tq_internal.delayed WHERE visible_at < now() + interval '101 min')}),
	'stale claim timers are taken, under a snapshot that is held');
$read = read_of_turns();
$turns = activity('turn', 'batches');
turn_of_worker() foreach 1 .. 10;
cmp_ok(activity('turn', 'batches') - $turns, '>=', 9, 'cycles are run');
cmp_ok(entries_read() - $read, '<', 1000, 'that do not read dead entries');

# But nothing is skipped for good.  A deadline that has passed is committed.
$session = $node->background_psql($db);
$session->query_safe("BEGIN");
my $id = $session->query_safe("SELECT tq.enqueue('p/w', deadline => '1 ms')");
turn_of_worker() foreach 1 .. 2;
$session->query_safe('COMMIT');
ok(wait_state($node, $db, $id, 'exception'), 'a deadline that is committed when others behind it are done');
$session->query_safe("BEGIN");
$id = $session->query_safe("SELECT tq.enqueue('p/w', deadline => '1 ms')");
$session->query_safe("PREPARE TRANSACTION 'late'");
turn_of_worker() foreach 1 .. 2;
$session->query_safe("COMMIT PREPARED 'late'");
ok(wait_state($node, $db, $id, 'exception'), 'the same in two phases');

# Another session takes a row, and rolls back.
$id = enqueue($node, $db, "deadline => '5 s'");
$session->query_safe("BEGIN");
is($session->query_safe("DELETE FROM tq_internal.timer WHERE kind = 1 AND due < now() + interval '101 min' RETURNING 1"),
	1, 'another session takes a timer');
$node->poll_query_until($db, "SELECT (tq.status('$id') ->> 'deadline')::timestamptz < now() + interval '100 min'");
turn_of_worker() foreach 1 .. 2;
is(state_of($node, $db, $id), 'pending', 'its task waits');
$session->query_safe('ROLLBACK');
ok(wait_state($node, $db, $id, 'exception'), 'but not after the rollback');

# A statement of a user writes a row.
$id = enqueue($node, $db);
query(qq{
	WITH moved AS (DELETE FROM tq_internal.pending p USING tq_internal.task t WHERE t.id = p.task AND t.task_id = '$id'
		RETURNING p.*)
	INSERT INTO tq_internal.delayed (visible_at, task, scheduled, queue, priority, run_id, retries_left, reason_created)
	SELECT now(), task, scheduled, queue, priority, run_id, retries_left, reason_created FROM moved});
ok($node->poll_query_until($db, qq{SELECT EXISTS (SELECT FROM tq_internal.pending p JOIN tq_internal.task t ON t.id = p.task
		WHERE t.task_id = '$id')}), 'a row that a statement has written is seen');
is(wrong(), '', 'nothing is wrong in the tables');
$long->quit;

# ---------------------------------------------------------------------------
# Who may see it
# ---------------------------------------------------------------------------

query('CREATE ROLE admin IN ROLE tq_admin; CREATE ROLE other');
is(query('SET ROLE admin; SELECT count(*) FROM tq.maintenance_overview'), 19, 'tq_admin sees the maintenance worker at work');
my ($code, $out, $error) = $node->psql($db, 'SET ROLE other; SELECT * FROM tq.maintenance_overview');
like($error, qr/permission denied/, 'others do not');

$session->quit;
unlike(slurp_file($node->logfile), qr/PANIC:|was terminated by signal|TRAP:/, 'nothing crashed');
$node->stop;

done_testing();
