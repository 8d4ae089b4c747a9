# Deadlines that are far away when their task is created, and claims that are
# long: the publisher inserts their timers, those of a minute in one row, and
# those of claims are due early; each is served in time nevertheless, also after a crash and a restore, and where nothing
# is published.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

# Without a publisher, the test decides what is published.
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;
my $db = 'postgres';
$node->safe_psql($db, 'CREATE EXTENSION tq');

sub create
{
	my ($deadline) = @_;
	return $node->safe_psql($db, "SELECT tq.enqueue('far/w', deadline => '$deadline')");
}

# One call of upkeep(), in so much time; which steps it has done, and what for.
sub upkeep
{
	my ($in, $server, $name) = @_;
	return ($server // $node)->safe_psql($name // $db, qq{
		SET tq.clock_offset = '$in';
		SELECT coalesce(string_agg(step || ' ' || tasks, ', '), '') FROM tq.upkeep() WHERE step = 'deadline' AND tasks > 0});
}

# The same at a time, which is an expression of SQL: so it does not matter how much
# time has passed since the test began.
sub upkeep_at
{
	my ($time) = @_;
	return $node->safe_psql($db, qq{
		DO \$\$ BEGIN PERFORM set_config('tq.clock_offset', (($time) - clock_timestamp())::text, false); END \$\$;
		SELECT coalesce(string_agg(step || ' ' || tasks, ', '), '') FROM tq.upkeep() WHERE step = 'deadline' AND tasks > 0});
}

# The deadline of the n-th task, from 0, and the end of the n-th claim.
sub deadline { return "(SELECT deadline FROM tq_internal.task ORDER BY id OFFSET $_[0] LIMIT 1)"; }
sub claimed_until { return "(SELECT taken_until FROM tq.run_overview WHERE worker_id = 'w$_[0]')"; }

# The deadline timers there are, by how many tasks they have.
my $timers = q{SELECT coalesce(string_agg(cardinality(tasks)::text, ' ' ORDER BY due), '') FROM tq_internal.timer WHERE kind = 1};
my $exact = q{SELECT count(*) FROM tq_internal.timer r JOIN tq_internal.task t ON t.id = ANY (r.tasks) WHERE r.kind = 1 AND r.due <> t.deadline};
my $states = q{SELECT string_agg(state, ' ' ORDER BY t.id) FROM tq.task_details JOIN tq_internal.task t USING (task_id)};

create($_) foreach '5 minutes', '1 hour', '1 hour 20 seconds', '1 hour 40 seconds', '3 hours';
is($node->safe_psql($db, $timers), '1', 'only the deadline that is near has a timer');
is(upkeep('0'), '', 'nothing is due');
is($node->safe_psql($db, $timers), '1 3 1', 'the publisher inserts the others, those of a minute in one row');
is($node->safe_psql($db, $exact), '2', 'which is due at the first of them');
is(upkeep_at(deadline(0) . q{ + interval '1 second'}), 'deadline 1', 'the near one is served');
is(upkeep_at(deadline(1) . q{ - interval '1 second'}), '', 'none of the others is, before its time');
is(upkeep_at(deadline(1) . q{ + interval '1 second'}), 'deadline 1', 'of those that share a row, only the first is');
is($node->safe_psql($db, $exact), '0', 'the others have timers of their own now');
is(upkeep_at(deadline(2) . q{ - interval '1 second'}), '', 'and wait for them');
is(upkeep_at(deadline(2) . q{ + interval '1 second'}), 'deadline 1', 'in turn');
is(upkeep_at(deadline(3) . q{ + interval '1 second'}), 'deadline 1', 'in turn again');
is($node->safe_psql($db, $states), 'exception exception exception exception pending', 'all but the last one');

# A task that is resolved before needs no timer, but is deleted when it expires.
$node->safe_psql($db, q{SELECT tq.enqueue('far/done', deadline => '1 day', expires => '1 hour');
	SELECT r.outcome FROM tq.claim_work('far/done', 'g', 'w') c, tq.resolve(ARRAY[c.task_id], ARRAY[c.run_id]) r});
upkeep($_) foreach '0', '25 hours', '30 hours', '31 hours';
is($node->safe_psql($db, q{SELECT count(*) FROM tq.task_details WHERE task_queue_id = 'far/done'}), '0', 'a resolved task is deleted');

# Nothing can be published in a transaction block.
is($node->safe_psql($db, q{
	BEGIN;
	SET LOCAL tq.clock_offset = '2 hours';
	DO $$ BEGIN PERFORM tq.enqueue('far/block', deadline => '1 hour'); END $$;
	SET LOCAL tq.clock_offset = '4 hours';
	SELECT string_agg(step || ' ' || tasks, ', ') FROM tq.upkeep() WHERE tasks > 0 AND step = 'deadline';
	ROLLBACK}), 'deadline 1', 'in a transaction block its own task is served');
create('2 hours');
is($node->safe_psql($db, q{
	BEGIN;
	SET LOCAL tq.clock_offset = '2 hours 1 minute';
	SELECT string_agg(step || ' ' || tasks, ', ') FROM tq.upkeep() WHERE tasks > 0 AND step = 'deadline';
	COMMIT}), 'deadline 1', 'and one of another transaction that is not published');
is(upkeep('2 hours 1 minute'), '', 'and not again when it is');

# A crash, and a restore, before the publisher has seen it.
create('2 hours');
$node->stop('immediate');
$node->start;
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr($db) ], 'pg_dump');
is(upkeep('2 hours 1 second'), 'deadline 1', 'after a crash it is served');
$node->safe_psql($db, 'CREATE DATABASE copy');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('copy') ], 'restore');
$node->safe_psql('copy', q{SELECT tq.enqueue('far/first')});
is(upkeep('2 hours 1 second', $node, 'copy'), 'deadline 1', 'after a restore it is served');

# Claims, each by a call of its own, expire one after the other.
$node->safe_psql($db, q{SELECT tq.enqueue_tasks('far/claims', array_fill('{}'::jsonb, ARRAY[4]), retries => 0)});
my $claims = q{SELECT coalesce(string_agg(cardinality(tasks)::text, ' ' ORDER BY due), '') FROM tq_internal.claim_timer};
my $ends = q{SELECT string_agg(state || coalesce(' ' || reason_resolved, ''), ', ' ORDER BY t.id)
	FROM tq.run_overview r JOIN tq_internal.task t USING (task_id) JOIN tq_internal.queue q ON q.id = t.queue WHERE q.task_queue_id = 'far/claims'};
my %in = (0 => '0', 1 => '20 seconds', 2 => '40 seconds', 3 => '5 minutes');
$node->safe_psql($db, "SET tq.clock_offset = '$in{$_}'; SELECT FROM tq.claim_work('far/claims', 'g', 'w$_')") foreach sort keys %in;
my $counted = q{SELECT tq.task_queue_counts('far/claims') ->> 'claimedTasks'};
is($node->safe_psql($db, $claims), '', 'a single claim has no timer at first');
is($node->safe_psql($db, $counted), '4', 'but is counted');
upkeep('0');
is($node->safe_psql($db, $claims), '4', 'the publisher inserts them, in one row');
is($node->safe_psql($db, q{SELECT bool_and(due < clock_timestamp() + interval '6 seconds') FROM tq_internal.claim_timer}),
	't', 'which is due soon, long before the claims expire');
is($node->safe_psql($db, $counted), '4', 'and they are counted');
upkeep('6 seconds');
is($node->safe_psql($db, $claims), '4', 'what is still running then has a timer again');
is($node->safe_psql($db, "SET tq.clock_offset = '15 minutes'; $counted"), '4', 'by which it is found, due or not');
$node->safe_psql($db, q{SET tq.clock_offset = '10 minutes';
	SELECT FROM tq.reclaim_task((SELECT task_id FROM tq.run_overview WHERE worker_id = 'w0'), 0)});
is($node->safe_psql($db, $claims), '4', 'a claim that is prolonged keeps its timer');
upkeep_at(claimed_until(1) . q{ - interval '1 second'});
is($node->safe_psql($db, $ends), 'running, running, running, running', 'none expires before its time, nor one that was prolonged');
is($node->safe_psql($db, $claims), '1 1 1 1', 'at last each has its own');
is($node->safe_psql($db, q{SELECT count(*) FROM tq_internal.claim_timer l JOIN tq_internal.run r ON r.task = ANY (l.tasks) AND r.state = 2 WHERE l.due <> r.taken_until}),
	'0', 'when it expires');
upkeep_at(claimed_until(1) . q{ + interval '1 second'});
is($node->safe_psql($db, $ends), 'running, exception claim-expired, running, running', 'then the first');
upkeep_at(claimed_until(2) . q{ - interval '1 second'});
is($node->safe_psql($db, $ends), 'running, exception claim-expired, running, running', 'and no other');
upkeep_at(claimed_until(2) . q{ + interval '1 second'});
is($node->safe_psql($db, $ends), 'running, exception claim-expired, exception claim-expired, running', 'then the next');
upkeep('40 minutes');
is($node->safe_psql($db, $ends), join(', ', ('exception claim-expired') x 4), 'in the end all');

# The timers of claims that end soon go soon, whatever the claim timeout is; and
# so do those of a task that a policy lets run for decades.
$node->safe_psql($db, q{SELECT tq.enqueue_tasks('far/soon', array_fill('{}'::jsonb, ARRAY[3]));
	SELECT tq.enqueue('far/soon', policy => '{"claimTimeout": 2147483647}');
	SELECT r.outcome FROM (SELECT array_agg(task_id) AS ids, array_agg(run_id) AS runs FROM tq.claim_work('far/soon', 'g', 'soon', 4)) c, tq.resolve(c.ids, c.runs) r});
is($node->safe_psql($db, q{SELECT sum(cardinality(tasks)) FROM tq_internal.claim_timer}), '4', 'claims that were resolved have timers');
upkeep('6 seconds');
is($node->safe_psql($db, $claims), '', 'for some seconds');

# The records of a row have ids as differences, up and down.
my $order = $node->safe_psql($db, q{
	SELECT tq.enqueue_tasks('far/order', array_fill('{}'::jsonb, ARRAY[300])) \g /dev/null
	SELECT count(*) FROM tq.upkeep() \g /dev/null
	SELECT max(last_id) AS before FROM tq_internal.tick \gset
	CREATE TABLE claimed AS SELECT task_id, run_id, t.id FROM tq.claim_work('far/order', 'g', 'w', 300) JOIN tq_internal.task t USING (task_id);
	SELECT count(*) FROM (SELECT array_agg(task_id ORDER BY id % 7 DESC, id) AS ids, array_agg(run_id) AS runs FROM claimed) c, tq.resolve(c.ids, c.runs) \g /dev/null
	SELECT count(*) FROM tq.upkeep() \g /dev/null
	SELECT count(*), string_agg(DISTINCT exchange, ' '), bool_and(m.payload #>> '{status,taskId}' IS NOT NULL),
		array_agg(m.payload #>> '{status,taskId}' ORDER BY m.id) = (SELECT array_agg(task_id::text ORDER BY c.id % 7 DESC, c.id) FROM claimed c)
	FROM tq.messages(after => :before) m WHERE exchange = 'task-completed'});
is($order, '300|task-completed|t|t', 'messages are about the tasks that were resolved, in that order');

# Where nothing wants task-defined, nothing is written that the publisher would read.
$node->safe_psql($db, q{SELECT tq.unbind(channel, exchange) FROM tq.binding_overview WHERE exchange = 'task-defined'});
my $before = $node->safe_psql($db, $timers);
create('90 minutes');
is($node->safe_psql($db, q{SELECT count(*) FROM tq_internal.message WHERE due IS NOT NULL AND NOT pg_visible_in_snapshot(xid,
	(SELECT upto FROM tq_internal.tick ORDER BY last_id DESC LIMIT 1))}), '0', 'unbound: no message');
isnt($node->safe_psql($db, $timers), $before, 'but a timer at once');
is(upkeep('91 minutes'), 'deadline 1', 'which serves it');
$node->stop;

done_testing();
