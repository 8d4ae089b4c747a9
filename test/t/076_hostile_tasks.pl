# A task for which a step of maintenance fails is postponed; the tasks beside
# it are served in time, by the maintenance worker and by upkeep().
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $node = new_node('tasks', "tq.claim_timeout = '1s'");
my $db = 'postgres';

sub query { return $node->safe_psql($db, $_[0]); }

# Failures on order: of the tables that steps write by statements, for the
# tasks in table poison.
my $poison = q{
	CREATE TABLE poison (id tq.slugid);
	CREATE FUNCTION fail_letter() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF EXISTS (SELECT FROM public.poison p WHERE p.id = NEW.task_id) THEN RAISE 'no letter for this task'; END IF;
		RETURN NEW; END $$;
	CREATE TRIGGER fail BEFORE INSERT ON tq_internal.dead_letter FOR EACH ROW EXECUTE FUNCTION fail_letter();
	CREATE FUNCTION fail_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF EXISTS (SELECT FROM public.poison p WHERE p.id = OLD.task_id) THEN RAISE 'this task stays'; END IF;
		RETURN OLD; END $$;
	CREATE TRIGGER fail BEFORE DELETE ON tq_internal.task FOR EACH ROW EXECUTE FUNCTION fail_delete();
	CREATE FUNCTION fail_unscheduled() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF EXISTS (SELECT FROM public.poison p JOIN tq_internal.task t ON t.task_id = p.id WHERE t.id = OLD.task) THEN RAISE 'this task waits'; END IF;
		RETURN OLD; END $$;
	CREATE TRIGGER fail BEFORE DELETE ON tq_internal.unscheduled FOR EACH ROW EXECUTE FUNCTION fail_unscheduled(); };

query('CREATE EXTENSION tq');
query($poison);
wait_worker($node, $db);

# Tasks of a kind, every tenth of which is poisoned.
sub make
{
	my ($queue, $n, $arguments, $policy) = @_;

	query(qq{
		WITH made AS (SELECT tq.enqueue('p/$queue', policy => '$policy', $arguments) AS id, i FROM generate_series(1, $n) AS i)
		INSERT INTO poison SELECT id FROM made WHERE i % 10 = 0});
	return;
}

# Claims and completes the tasks of a queue.
sub resolve_all
{
	my ($queue, $n) = @_;

	is(query("SELECT count(*) FROM (SELECT array_agg(task_id) AS ids, array_agg(run_id) AS runs FROM tq.claim_work('p/$queue', 'g', 'w', $n)) AS c,
			tq.resolve(c.ids, c.runs) AS r WHERE r.outcome = 'resolved'"), $n, "$queue: resolved");
	return;
}

sub healthy
{
	my ($queue) = @_;

	return "SELECT * FROM tq.task_details o WHERE task_queue_id = 'p/$queue'"
	  . ' AND NOT EXISTS (SELECT FROM poison p WHERE p.id = o.task_id)';
}

# All but the poisoned tasks are resolved, and those are postponed.
sub check_step
{
	my ($step, $queue, $n) = @_;

	ok($node->poll_query_until($db, 'SELECT bool_and(resolved IS NOT NULL) FROM (' . healthy($queue) . ') AS t'),
		"$step: healthy tasks are served");
	ok($node->poll_query_until($db, "SELECT postponed = $n / 10 FROM tq.maintenance_overview WHERE step = '$step'"),
		"$step: the others are counted in the view");
	is(query("SELECT count(DISTINCT o.task_id) FROM tq.postponed_overview o JOIN poison p ON p.id = o.task_id JOIN tq.task_details t ON t.task_id = p.id
			WHERE step = '$step' AND task_queue_id = 'p/$queue' AND failures > 0 AND o.error LIKE '%this task%'"),
		$n / 10, "$step: and are those that fail");
	return;
}

# Steps whose ends write dead letters.
my $letter = '"deadLetter": true';
make('deadline', 100, "deadline => '1 s'", "{$letter}");
make('pending', 30, "deadline => '1 hour'", "{$letter, \"pendingTimeout\": 1}");
make('run', 30, "deadline => '1 hour'", "{$letter, \"runTimeout\": 1}");
make('lost', 30, "deadline => '1 hour', retries => 0", "{$letter, \"lostRetries\": 0}");
query("SET tq.claim_timeout = '1h'; SELECT count(*) FROM tq.claim_work('p/run', 'g', 'w', 30)");
query("SELECT count(*) FROM tq.claim_work('p/lost', 'g', 'w', 30)");
check_step('deadline', 'deadline', 100);
check_step('pending-timeout', 'pending', 30);
check_step('run-timeout', 'run', 30);
check_step('claim-expired', 'lost', 30);
is(query("SELECT running FROM tq.queue_stats WHERE task_queue_id = 'p/lost'"), 3, 'claim-expired: they are found as running, although their timers were taken');
query("SET tq.claim_timeout = '1h'; SELECT tq.reclaim_task(id, 0) FROM poison p JOIN tq.task_details t ON t.task_id = p.id WHERE task_queue_id = 'p/lost'");
is(query("SELECT tq.task_queue_counts('p/lost') ->> 'claimedTasks'"), 3, 'claim-expired: one that is prolonged is claimed again');
is(query("SELECT count(DISTINCT t.id) FROM poison p JOIN tq_internal.task t ON t.task_id = p.id JOIN tq_internal.queue q ON q.id = t.queue
		JOIN tq_internal.claim_timer l ON t.id = ANY (l.tasks) WHERE q.task_queue_id = 'p/lost' AND l.due <= now() + interval '1 minute'"),
	3, 'claim-expired: and has a timer again');
query("UPDATE tq_internal.run SET taken_until = now() - interval '1 s' FROM tq_internal.task t JOIN tq_internal.queue q ON q.id = t.queue WHERE task = t.id AND q.task_queue_id = 'p/lost' AND state = 2");

# A delayed run that cannot become pending, as there is a row of it already.
make('delayed', 20, "delay => '5 s', deadline => '1 hour'", '{}');
query(q{INSERT INTO tq_internal.pending (seq, task, scheduled, queue, priority, run_id, retries_left, reason_created)
	SELECT -t.id, t.id, now(), -1, 1, 0, 0, 1 FROM poison p JOIN tq_internal.task t ON t.task_id = p.id JOIN tq_internal.queue q ON q.id = t.queue WHERE q.task_queue_id = 'p/delayed'});
ok($node->poll_query_until($db, "SELECT count(*) = 18 FROM tq_internal.pending p JOIN tq_internal.queue q ON q.id = p.queue WHERE q.task_queue_id = 'p/delayed'"),
	'delayed: healthy tasks can be claimed');
ok($node->poll_query_until($db, "SELECT postponed = 2 FROM tq.maintenance_overview WHERE step = 'delayed'"), 'delayed: the others are counted');
is(query('SELECT count(*) FROM tq_internal.delayed'), 2, 'delayed: and are still delayed');
query('DELETE FROM tq_internal.pending WHERE queue = -1');
ok($node->poll_query_until($db, "SELECT count(*) = 20 FROM tq_internal.pending p JOIN tq_internal.queue q ON q.id = p.queue WHERE q.task_queue_id = 'p/delayed'"),
	'delayed: they follow when that is repaired');
is(query("SELECT count(*) FROM tq_internal.postponed WHERE step = 'delayed'"), 0, 'delayed: and are postponed no longer');

# Each failure puts the next attempt further off; only the first is logged.
ok($node->poll_query_until($db, 'SELECT min(failures) >= 3 FROM tq_internal.postponed'), 'a step is tried again for each');
is(query("SELECT bool_and(due - now() <= make_interval(secs => least(300, 2 ^ (failures - 1))) + interval '1 s') FROM tq_internal.postponed"),
	't', 'each time later');
my $log = slurp_file($node->logfile);
my @logged = $log =~ /WARNING: .*maintenance step "deadline" failed for task "([\w-]{22})": no letter for this task/g;
is(join(' ', sort @logged), query(
		"SELECT string_agg(id::text, ' ' ORDER BY id::text COLLATE \"C\") FROM poison p JOIN tq.task_details t ON t.task_id = p.id WHERE task_queue_id = 'p/deadline'"),
	'each task is logged once, by its id');
like($log, qr/HINT: .*tq.delete_task/, 'with a hint');

# An operator gets rid of one, and has the others go on.
my $one = query("SELECT task_id FROM tq.postponed_overview WHERE step = 'deadline' LIMIT 1");
my ($code, $out, $error) = $node->psql($db, "SELECT tq.cancel_task('$one')");
like($error, qr/is past its deadline/, 'a task past its deadline cannot be cancelled, by a superuser either');
query("ALTER TABLE tq_internal.task DISABLE TRIGGER fail; SELECT tq.delete_task('$one'); ALTER TABLE tq_internal.task ENABLE TRIGGER fail");
is(query("SELECT count(*) FROM tq.postponed_overview WHERE task_id = '$one'"), 0, 'a postponed task can be deleted');
query('DELETE FROM poison');
ok($node->poll_query_until($db, 'SELECT count(*) = 0 FROM tq_internal.postponed'), 'when the cause is gone, the others go on');
is(query('SELECT count(*) FROM tq_internal.dead_letter'), 100 + 30 + 30 + 30 - 1, 'each has its dead letter');
is(violations($node, $db), '', 'tables are consistent');

# Tasks whose retention is over, by the maintenance worker: its pass begins when
# the server does.
make('swept', 50, "deadline => '1 hour'", '{"retainCompleted": 0}');
query("INSERT INTO poison SELECT task_id FROM tq.task_details WHERE task_queue_id = 'p/swept' ORDER BY task_id LIMIT 1");
resolve_all('swept', 50);
my $kept = query("SELECT count(DISTINCT id) FROM poison");
ok($node->poll_query_until($db, "SELECT min(clock_timestamp() - resolved) > '3 s' FROM tq.task_details WHERE task_queue_id = 'p/swept'"), 'sweep: retention is over');
$node->append_conf('postgresql.conf', "tq.message_retention = '1s'");
$node->restart;
ok($node->poll_query_until($db, "SELECT count(*) = $kept FROM tq.task_details WHERE task_queue_id = 'p/swept'"), 'sweep: healthy tasks are deleted');
is(query("SELECT count(DISTINCT o.task_id) FROM tq.postponed_overview o JOIN poison p ON p.id = o.task_id WHERE step = 'sweep' AND o.error = 'this task stays'"),
	$kept, 'sweep: and the others are postponed');
query('DELETE FROM poison');
ok($node->poll_query_until($db, "SELECT count(*) = 0 FROM tq.task_details WHERE task_queue_id = 'p/swept'"), 'sweep: until the cause is gone');

# After a batch the sweep pauses as long as that took, here 200 ms, if a client is
# at work; not for one that waits.  The shortest of the pauses, in seconds:
sub shortest_pause
{
	my ($work, $n) = @_;

	$node->adjust_conf('postgresql.conf', 'tq.maintenance', 'off');
	$node->restart;
	query('TRUNCATE batch');
	make('paused', $n, "deadline => '1 hour'", '{"retainCompleted": 0}');
	resolve_all('paused', $n);
	ok($node->poll_query_until($db, "SELECT min(clock_timestamp() - resolved) > '3 s' FROM tq.task_details WHERE task_queue_id = 'p/paused'"), 'sweep: retention is over');
	my $client = $node->background_psql($db);
	$client->query_until(qr/begun/, "SELECT 'begun';\n$work;\n");
	$node->adjust_conf('postgresql.conf', 'tq.maintenance', 'on');
	$node->reload;
	ok($node->poll_query_until($db, "SELECT count(*) = $n FROM batch"), 'sweep: a batch for each task');
	query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%at_work%' AND pid <> pg_backend_pid()");
	eval { $client->quit };
	return query('SELECT min(gap) FROM (SELECT extract(epoch FROM began - lag(ended) OVER (ORDER BY began)) AS gap FROM batch) AS b');
}
query(q{CREATE UNLOGGED TABLE batch (began timestamptz, ended timestamptz);
	CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE began timestamptz = clock_timestamp(); BEGIN
		PERFORM pg_sleep(0.2); INSERT INTO public.batch VALUES (began, clock_timestamp()); RETURN OLD; END $$;
	CREATE TRIGGER slow BEFORE DELETE ON tq_internal.task FOR EACH ROW EXECUTE FUNCTION slow();});
$node->append_conf('postgresql.conf', "tq.maintenance = off\ntq.expire_batch = 1");
cmp_ok(shortest_pause("SELECT count(*) AS at_work FROM generate_series(1, 100000000000)", 4), '>=', 0.19, 'sweep: it pauses while a client is at work');
cmp_ok(shortest_pause("SELECT task_id AS at_work FROM tq.claim_work('p/none', 'g', 'w', wait => '60 s')", 9), '<', 0.19, 'sweep: and not while one waits for work');
query('DROP TRIGGER slow ON tq_internal.task');
$node->adjust_conf('postgresql.conf', 'tq.expire_batch', '1000');
$node->reload;

# What every task meets is not the tasks' fault: nothing is postponed.
query("CREATE FUNCTION fail_all() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''full''; END'");
query('CREATE TRIGGER fail_all BEFORE INSERT ON tq_internal.dead_letter FOR EACH ROW EXECUTE FUNCTION fail_all()');
make('all', 50, "deadline => '500 ms'", "{$letter}");
ok($node->poll_query_until($db, "SELECT state = 'failing' AND failures >= 3 FROM tq.maintenance_overview WHERE step = 'deadline'"),
	'a step that fails for all is seen in the view');
is(query('SELECT count(*) FROM tq_internal.postponed'), 0, 'and no task is postponed');
query('DROP TRIGGER fail_all ON tq_internal.dead_letter; DELETE FROM poison');
ok($node->poll_query_until($db, 'SELECT bool_and(resolved IS NOT NULL) FROM (' . healthy('all') . ') AS t'), 'it goes on when it can');

my $beside = enqueue($node, $db, "deadline => '300 ms'");
ok(wait_state($node, $db, $beside, 'exception'), 'a healthy task beside is served');
cmp_ok(lateness($node, $db, $beside, 0, "(s ->> 'deadline')::timestamptz"), '<', 5, 'in time');
unlike(slurp_file($node->logfile), qr/PANIC:|was terminated by signal|TRAP:/, 'nothing crashed');
$node->stop;

# Without a maintenance worker: upkeep() goes on with the other steps, and the other tasks.
$node = PostgreSQL::Test::Cluster->new('plain');
$node->init;
$node->start;
query('CREATE EXTENSION tq');
query($poison);
make('expire', 30, "deadline => '1 hour', expires => '0'", '{}');
query(q{SELECT tq.enqueue('p/group', task_id => 'groupaaaQAGAAAAAAAAAAA', policy => '{"onUnsuccessful": "cancel-group"}', deadline => '10 hours')});
query(qq{WITH made AS (SELECT tq.enqueue('p/member', task_group_id => 'groupaaaQAGAAAAAAAAAAA', dependencies => '{groupaaaQAGAAAAAAAAAAA}', deadline => '10 hours') AS id, i
	FROM generate_series(1, 20) AS i) INSERT INTO poison SELECT id FROM made WHERE i % 10 = 0});

# The members are held by another session when the group is cancelled.
my $holder = $node->background_psql($db);
$holder->query_safe('BEGIN; SELECT count(*) FROM (SELECT FROM tq_internal.unscheduled FOR UPDATE) AS t');
query("SELECT r.outcome FROM tq.claim_work('p/group', 'g', 'w') AS c, tq.resolve(ARRAY[c.task_id], ARRAY[c.run_id], 'failed') AS r");
$holder->query_safe('COMMIT');
$holder->quit;
is(query("SET tq.clock_offset = '1 minute'; SELECT tasks FROM tq.upkeep() WHERE step = 'cancel'"), 18, 'cancel: healthy members of the group');
is(query("SELECT count(*) FROM tq.postponed_overview WHERE step = 'cancel'"), 2, 'cancel: the others are postponed');
is(query("SET tq.clock_offset = '100 minutes'; SET tq.message_retention = '1s'; SELECT sum(tasks) FROM tq.upkeep(), generate_series(1, 2) WHERE step = 'deadline'"), 30 * 2, 'deadlines have passed');
query("SET tq.clock_offset = '5 hours'; SET tq.message_retention = '1s'; SELECT tq.upkeep()") foreach 1 .. 3;
is(query(q{SELECT count(*) FROM tq.task_details WHERE task_queue_id = 'p/expire'}), 3, 'expired: healthy tasks are gone');
is(query("SELECT count(*) FROM tq.postponed_overview WHERE step = 'expired'"), 3, 'expired: the others are postponed');
query('DELETE FROM poison');
is(query("SET tq.clock_offset = '6 hours'; SET tq.message_retention = '1s'; SELECT tasks FROM tq.upkeep() WHERE step = 'postponed'"), 5, 'postponed: they are done when they can be');
is(query('SELECT count(*) FROM tq_internal.postponed'), 0, 'and are postponed no longer');

# Tasks whose retention is over: some that cannot be deleted, because of a
# trigger or a foreign key, do not keep those beside them.
make('sweep', 40, "deadline => '1 hour'", '{"retainCompleted": 0}');
resolve_all('sweep', 40);
query('CREATE TABLE mine (id tq.slugid REFERENCES tq_internal.task (task_id))');
query("INSERT INTO mine SELECT task_id FROM (" . healthy('sweep') . ") AS t LIMIT 2");
my $sweep = "SET tq.clock_offset = '7 hours'; SET tq.message_retention = '1s'; SELECT sum(tasks) FROM tq.upkeep() WHERE step = ";
my ($ret, $swept, $warnings) = $node->psql($db, "$sweep 'sweep'");
is($swept, 40 - 4 - 2, 'sweep: healthy tasks are deleted');
is(query("SELECT string_agg(task_id::text, ' ' ORDER BY task_id) FROM tq.postponed_overview WHERE step = 'sweep'"),
	query('SELECT string_agg(id::text, \' \' ORDER BY id) FROM (SELECT id FROM poison UNION SELECT id FROM mine) AS t'), 'sweep: the others are postponed');
is(() = $warnings =~ /WARNING: .*maintenance step "sweep" failed for task/g, 6, 'sweep: with a warning each');
($ret, $swept, $warnings) = $node->psql($db, "$sweep 'sweep'");
is("$swept $warnings", '0 ', 'sweep: the next one leaves them alone');
query('DELETE FROM poison; DROP TABLE mine');
is(query("SET tq.clock_offset = '8 hours'; SET tq.message_retention = '1s'; SELECT tasks FROM tq.upkeep() WHERE step = 'postponed'"), 6, 'sweep: they go when they can');
is(query(q{SELECT count(*) FROM tq.task_details WHERE task_queue_id = 'p/sweep'}), 0, 'sweep: all');

# Dead letters that cannot be deleted do not keep tasks either.
make('letters', 10, "deadline => '1 hour'", '{"retainCompleted": 0}');
resolve_all('letters', 10);
query(q{INSERT INTO tq_internal.dead_letter (task_id, task, queue, failed_at, seq, reason, definition, runs) VALUES (tq.slugid(), 0, 1, now() - interval '1 year', 1, 3, '{}', '[]')});
query(q{CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''this letter stays''; END';
	CREATE TRIGGER keep BEFORE DELETE ON tq_internal.dead_letter FOR EACH ROW EXECUTE FUNCTION keep()});
query('DELETE FROM poison');
($ret, $swept, $warnings) = $node->psql($db, "$sweep 'sweep'");
is($swept, 10, 'dead letters: tasks are deleted');
like($warnings, qr/WARNING: .*could not delete old dead letters: this letter stays/, 'dead letters: a warning says so');
query('DROP TRIGGER keep ON tq_internal.dead_letter');
is(query("$sweep 'sweep'"), 1, 'dead letters: they go when they can');

# A step that cannot be taken at all.
my $overdue = enqueue($node, $db, "deadline => '1 minute'");
query('ALTER TABLE tq_internal.claim_timer RENAME TO claim_timer_away');
($code, $out, $error) = $node->psql($db, "SET tq.clock_offset = '2 minutes'; SELECT step, tasks FROM tq.upkeep() WHERE tasks <> 0 OR tasks IS NULL");
is($code, 0, 'upkeep() succeeds although a step fails');
like($out, qr/^claim-expired\|$/m, 'the row of the step says so');
like($error, qr/WARNING: .*maintenance step "claim-expired" failed: .*claim_timer/, 'a warning says why');
is(state_of($node, $db, $overdue), 'exception', 'the other steps were taken: a healthy task is served');
query('ALTER TABLE tq_internal.claim_timer_away RENAME TO claim_timer');
is(query("SELECT count(*) FROM tq.upkeep() WHERE tasks IS NULL"), 0, 'and all when it can be');
$node->stop;

done_testing();
