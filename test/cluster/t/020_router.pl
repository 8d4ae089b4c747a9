# A router, tq_shard, before three shards, which are databases of one server: each
# function goes to where its task or group is, or to all; shards are added and
# drained; errors and rights are those of the shards.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t";
use Tq;

my $node = new_node('router', 'max_connections = 50', "cron.database_name = 'elsewhere'");
my $router = 'router';

plan skip_all => 'there is no plproxy' unless $node->safe_psql('postgres', q{SELECT 1 FROM pg_available_extensions WHERE name = 'plproxy'});

my $at = 'host=' . $node->host . ' port=' . $node->port;

sub ask { return $node->safe_psql($router, $_[0]); }

# The error of a statement, as psql shows it.
sub refused
{
	my ($query, $db) = @_;
	my ($code, $out, $error) = $node->psql($db // $router, "\\set VERBOSITY verbose\n$query");

	return $error;
}

$node->safe_psql('postgres', "CREATE DATABASE $_") foreach ($router, 's1', 's2', 's3', 'mixed');
foreach my $db ('s1', 's2', 's3')
{
	$node->safe_psql($db, 'CREATE EXTENSION tq');
}

# ---- the extension ----

$node->safe_psql('mixed', 'CREATE EXTENSION plproxy; CREATE EXTENSION tq');
like(refused('CREATE EXTENSION tq_shard', 'mixed'), qr/55000: extension "tq" is installed in this database/, 'a shard is no router');
$node->safe_psql('mixed', 'DROP EXTENSION tq; CREATE EXTENSION tq_shard');
like(refused('CREATE EXTENSION tq', 'mixed'), qr/55000: extension "tq_shard" is installed in this database/, 'a router is no shard');

ask('CREATE EXTENSION tq_shard CASCADE');
like(refused(q{SELECT tq.enqueue('app/mail')}), qr/cluster not found: tq_shard/, 'without a shard');

my $names = q{SELECT p.proname, p.prokind, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), p.proretset, obj_description(p.oid, 'pg_proc')
	FROM pg_proc p WHERE p.pronamespace = 'tq'::regnamespace ORDER BY 1, 3};
is(ask($names), $node->safe_psql('s1', $names), 'functions: names, arguments, defaults, results, comments are those of tq');
my $columns = q{SELECT c.relkind, c.relname, a.attname, format_type(a.atttypid, a.atttypmod), col_description(c.oid, a.attnum), obj_description(c.oid, 'pg_class')
	FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
	WHERE c.relnamespace = 'tq'::regnamespace ORDER BY c.relname, a.attnum};
is(ask($columns), $node->safe_psql('s1', $columns), 'types and views: so are they');

# ---- the first server, which has tasks, becomes one of several ----

my $old = $node->safe_psql('s1', q{SELECT tq.enqueue('app/old', task_id => tq.slugid(), task_group_id => tq.slugid()) FROM generate_series(1, 40)});
ask("CALL tq_shard.add_shard('one', '$at dbname=s1')");
is(ask(q{SELECT count(*) FROM tq.statuses(string_to_array('} . join(',', split /\n/, $old) . q{', ',')::tq.slugid[])}), '40', 'tasks of the first shard');
$node->safe_psql('postgres', 'CREATE ROLE producer LOGIN; CREATE ROLE outsider LOGIN; CREATE ROLE reader LOGIN');
ask(q{SELECT tq.grant_queue('producer', 'app/mail', 'produce'), tq.subscribe('ended', 'task-completed'), tq.set_queue('app/limited', '{"concurrentLimit": 5}'),
	tq.unbind('tq_task_failed', 'task-failed')});
ask(q{SELECT tq.declare_worker('app/mail', 'g', 'bad', now() + interval '1 hour'); SELECT tq.quarantine_worker('app/mail', 'g', 'bad', now() + interval '1 hour')});
ask("CALL tq_shard.add_shard('two', '$at dbname=s2')");
ask("CALL tq_shard.add_shard('three', '$at dbname=s3')");
is(ask('SELECT name, state, (SELECT sum(upper(r) - lower(r)) FROM unnest(buckets) AS r) FROM tq_shard.map()'),
	"one|active|341\ntwo|active|342\nthree|active|341", 'each has a third of the buckets');
is($node->safe_psql('s2', 'SELECT tq_internal.buckets()'), ask(q{SELECT buckets FROM tq_shard.map() WHERE name = 'two'}), 'and knows it');
is(ask(q{SELECT count(*) FROM tq.statuses(string_to_array('} . join(',', split /\n/, $old) . q{', ',')::tq.slugid[])}), '40', 'old tasks are found, whatever their bucket');
is(ask(q{SELECT count(*) FROM unnest(string_to_array('} . join(',', split /\n/, $old) . q{', ',')) AS t WHERE tq.status(t) ->> 'state' = 'pending'}), '40', 'each by itself');

my ($one_old) = $old =~ /^(.*)$/m;
my $group = $node->safe_psql('s1', "SELECT tq.status('$one_old') ->> 'taskGroupId'");
my $joined = ask("SELECT tq.enqueue('app/old', task_group_id => '$group')");
is($node->safe_psql('s1', "SELECT tq.status('$joined') ->> 'taskGroupId'"), $group, 'an old group gets its further tasks on its shard');

# ---- tasks ----

my @ids = split /\n/, ask(q{SELECT tq.enqueue('app/mail', jsonb_build_object('n', n)) FROM generate_series(1, 60) AS n});
my %on;
foreach my $db ('s1', 's2', 's3')
{
	$on{$db} = $node->safe_psql($db, q{SELECT (tq.task_queue_counts('app/mail') -> 'pendingTasks')::bigint});
	cmp_ok($on{$db}, '>', 5, "$db has some of the tasks: $on{$db}");
}
is(ask(q{SELECT (tq.task_queue_counts('app/mail') -> 'pendingTasks')::bigint}), '60', 'sum');
is(ask(q{SELECT (tq.task_queue_counts('app/mail')) ->> 'pendingTasks', sum(pending) FROM tq.queue_stats WHERE task_queue_id = 'app/mail'}), '60|60', 'counts');
is(ask(q{SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'app/mail'}), '60', 'a view');
is(ask(q{SELECT state FROM tq.task_overview WHERE task_id = '} . $ids[0] . q{'}), 'pending', 'a row of a view');

my $array = "'{" . join(',', @ids) . "}'::tq.slugid[]";
is(ask("SELECT string_agg(task_id::text, ',') = array_to_string($array, ',') FROM tq.statuses($array)"), 't', 'statuses(): in the order asked for');
is(ask("SELECT string_agg(task -> 'payload' ->> 'n', ',') = (SELECT string_agg(n::text, ',') FROM generate_series(1, 60) AS n) FROM tq.tasks($array)"), 't', 'tasks(): so');

is(ask(q{SELECT count(DISTINCT task_id), bool_and(inserted >= before) FROM (
	SELECT task_id, inserted, COALESCE(lag(inserted) OVER (), inserted) AS before FROM tq.list_pending_tasks('app/mail')) AS l}), '60|t', 'list_pending_tasks(): in order');
my ($page, %seen) = ('NULL');
for (my $n = 0; $n < 20; $n++)
{
	my @rows = split /\n/, ask("SELECT task_id, page FROM tq.list_pending_tasks('app/mail', $page, 7)") or last;
	$seen{ (split /\|/, $_)[0] }++ foreach @rows;
	$page = "'" . (split /\|/, $rows[-1])[1] . "'";
}
is(scalar(keys %seen) . ' ' . scalar(grep { $_ > 1 } values %seen), '60 0', 'pages: each run once');
like(refused(q{SELECT tq.list_pending_tasks('app/mail', 'x')}), qr/TQ400: .*invalid after "x"/, 'a page that is none');

# A group is on one shard, whatever the ids of its tasks.
my $in_group = ask(q{WITH g AS MATERIALIZED (SELECT tq.slugid() AS id), t AS (SELECT tq.enqueue('app/group', task_group_id => g.id) AS id FROM g, generate_series(1, 9))
	SELECT g.id, count(t.id) FROM g, t GROUP BY 1}) =~ s/\|.*//r;
is(ask("SELECT tasks FROM tq.group_progress('$in_group')"), '9', 'a group');
my ($task_of_it) = ask("SELECT task_id FROM tq.list_task_group('$in_group', max => 1)");
my $dependent = ask("SELECT tq.enqueue('app/group', dependencies => ARRAY['$task_of_it']::tq.slugid[])");
is(ask("SELECT tq.status('$dependent') ->> 'state'"), 'unscheduled', 'a task without a group goes to the shard of what it depends on');
is(ask("SELECT count(*) FROM tq.list_dependent_tasks('$task_of_it')"), '1', 'which knows it');

is(ask(q{SELECT count(*) FILTER (WHERE name LIKE '%: disk' AND NOT ok), count(*) FILTER (WHERE name LIKE '%: preload') FROM tq.health('{"disk": "1 MB"}')}), '3|3', 'health() passes thresholds to all shards');

# ---- many at once ----

is(ask(q{SELECT tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', tq.slugid(), 'task',
	(tq.task('} . $ids[0] . q{') - '{taskGroupId,provisionerId,workerType}'::text[]) || jsonb_build_object('taskQueueId', 'app/many', 'deadline', now() + interval '1 day'))) FROM generate_series(1, 30)))}), '30', 'create_tasks() of several shards');
is(ask(q{SELECT (tq.task_queue_counts('app/many') -> 'pendingTasks')::bigint}), '30', 'all are there');
is(ask(q{WITH i AS MATERIALIZED (SELECT array_agg(tq.slugid()) AS ids, array_agg('{}'::jsonb) AS payloads FROM generate_series(1, 30))
	SELECT tq.enqueue_tasks('app/many', payloads, ids) = ids::text[] FROM i}), 't', 'enqueue_tasks() with ids of several shards');
is(ask(q{SELECT cardinality(tq.enqueue_tasks('app/many', array_fill('{}'::jsonb, ARRAY[40])))}), '40', 'enqueue_tasks() without');
is(ask(q{SELECT (tq.task_queue_counts('app/many') -> 'pendingTasks')::bigint}), '100', 'all are there');
like(refused(q{SELECT tq.create_tasks('[{"taskId": "x"}]')}), qr/TQ400: .*invalid element of tasks/, 'the error of the shard');
is(ask(q{SELECT tq.create_tasks('[]')}), '0', 'none');

# ---- work ----

my $claims = 0;
my @claimed;
for (my $n = 0; $n < 200 && $claims < 100; $n++)
{
	push @claimed, split /\n/, ask(q{SELECT task_id, run_id FROM tq.claim_work('app/many', 'g', 'w', 17)});
	$claims = @claimed;
}
is($claims, 100, 'all are claimed');
is(ask(q{SELECT count(*) FROM tq.claim_work('app/many', 'g', 'w', 17)}), '0', 'and no more');

# Each call of tq_internal.claim_lines() on a shard is counted there.
sub asked { return $node->safe_psql($_[0], q{SELECT sum(calls) FROM pg_stat_user_functions WHERE funcname = 'claim_lines'}); }
$node->safe_psql('postgres', "ALTER DATABASE $_ SET track_functions = 'all'") foreach ('s1', 's2', 's3');
$node->safe_psql('s2', q{SELECT tq.enqueue_tasks('app/one', array_fill('{}'::jsonb, ARRAY[60]))});
# A claim begins with each of the three in turn: without what the session knows, 60 would ask one of the others.
my $milliseconds = ask(q{WITH t AS MATERIALIZED (SELECT clock_timestamp() AS began), c AS MATERIALIZED (SELECT count(*) AS n FROM generate_series(1, 60) AS n, tq.claim_work('app/one', 'g' || n - n, 'w'))
	SELECT extract(epoch FROM clock_timestamp() - t.began) * 1000 FROM t, c WHERE c.n = 60});
is($milliseconds eq '' ? 'fewer' : 60, 60, 'all work of one shard is claimed');
$node->poll_query_until('s2', q{SELECT sum(calls) = 60 FROM pg_stat_user_functions WHERE funcname = 'claim_lines'}) or die 'calls are not counted';
cmp_ok((asked('s1') || 0) + (asked('s3') || 0), '<=', 2 * (1 + $milliseconds / 200), 'shards without work are asked once in 200 ms');
$node->safe_psql('postgres', "ALTER DATABASE $_ RESET track_functions") foreach ('s1', 's2', 's3');

is(ask(q{SELECT (tq.get_worker('app/many', 'g', 'w') ->> 'workerId'), jsonb_array_length(tq.get_worker('app/many', 'g', 'w') -> 'recentTasks')}), 'w|20', 'get_worker()');
is(ask(q{SELECT worker_group, worker_id FROM tq.list_workers('app/many')}), 'g|w', 'list_workers()');
is(ask(q{SELECT string_agg(task_queue_id, ',') FROM tq.list_task_queues()}), 'app/mail,app/many,app/one', 'list_task_queues()');
is(ask(q{SELECT count(*) FROM tq.list_claimed_tasks('app/many')}), '100', 'list_claimed_tasks()');
my $tasks = "'{" . join(',', map { (split /\|/)[0] } @claimed[0 .. 59]) . "}'::tq.slugid[]";
is(ask("SELECT count(*), bool_and(outcome = 'resolved'), string_agg(task_id::text, ',') = array_to_string($tasks, ',') FROM tq.resolve($tasks, array_fill(0, ARRAY[60]))"),
	'60|t|t', 'resolve() of several shards, in its order');
my $reports = join ',', map { '{"taskId": "' . (split /\|/)[0] . '", "runId": 0, "result": 5}' } @claimed[60 .. 79];
is(ask("SELECT count(*), bool_and(outcome = 'resolved') FROM tq.resolve('[$reports]')"), '20|t', 'resolve(reports) of several shards');
$reports = join ',', map { '{"taskId": "' . (split /\|/)[0] . '", "runId": 0}' } @claimed[80 .. 98];
is(ask("SELECT count(*) FILTER (WHERE outcome = 'resolved'), count(*) FILTER (WHERE outcome = 'claimed') > 0 FROM tq.resolve_and_claim('[$reports]', 'app/mail', 'g', 'w', 3)"),
	'19|t', 'resolve_and_claim() of several shards');
my $last = (split /\|/, $claimed[99])[0];
is(ask("SELECT tq.report_completed('$last', 0, result => '7') ->> 'state'"), 'completed', 'report_completed()');
is(ask("SELECT tq.result('$last')"), '7', 'result()');
like(refused("SELECT tq.report_completed('$last', 3)"), qr/TQ404/, 'an error of the shard has its SQLSTATE');
like(refused('SELECT tq.status(tq.slugid())'), qr/TQ404: .*does not exist/, 'of a task that is not there, too');
like(refused(q{SELECT tq.assume('{}')}), qr/0A000: function tq.assume\(\) does not run through a router/, 'what does not run through a router');
like(refused(q{CALL tq.wait_for_work('app/mail')}), qr/0A000: procedure tq.wait_for_work/, 'so a procedure');

# ---- settings of all ----

is(ask(q{SELECT tq.pause_queue('app/mail') ->> 'paused'}), 'true', 'pause_queue()');
is($node->safe_psql($_, q{SELECT tq.get_task_queue('app/mail') #>> '{settings,paused}'}), 'true', "on $_") foreach ('s1', 's2', 's3');
is(ask(q{SELECT count(*) FROM tq.claim_work('app/mail', 'g', 'w')}), '0', 'nothing is claimed');
ask(q{SELECT tq.resume_queue('app/mail')});

is(ask(q{SELECT min(c), max(c) FROM (SELECT count(*) AS c FROM tq.worker_overview WHERE state = 'quarantined' GROUP BY worker_id) AS w}), '3|3',
	'a quarantine is on all, also on shards that were added later');
is($node->safe_psql($_, q{SELECT tq.get_task_queue('app/limited') -> 'settings'}), '{"concurrentLimit": 5}', "$_ has the settings of a queue")
  foreach ('s1', 's2', 's3');

# A worker that has claimed on one shard only is put into quarantine on all.
ask(q{SELECT tq.enqueue('app/lone')});
is(ask(q{SELECT count(*) FROM tq.claim_work('app/lone', 'g', 'lone')}), '1', 'a worker');
is(ask(q{SELECT tq.quarantine_worker('app/lone', 'g', 'lone', now() + interval '1 hour') ->> 'workerId'}), 'lone', 'in quarantine');
ask(q{SELECT tq.enqueue('app/lone') FROM generate_series(1, 20)});
is(ask(q{SELECT count(*) FROM generate_series(1, 9) AS n, tq.claim_work('app/lone', left('g', n), 'lone')}), '0', 'claims nothing on any shard');
ask(q{SELECT tq.quarantine_worker('app/lone', 'g', 'lone', now() - interval '1 hour')});
is(ask(q{SELECT count(*) FROM generate_series(1, 9) AS n, tq.claim_work('app/lone', left('g', n), 'lone')}), '9', 'until the quarantine ends');
like(refused(q{SELECT tq.quarantine_worker('app/lone', 'g', 'none', now())}), qr/TQ404: /, 'one that no shard knows');

# A call has its own transaction on the shard.
ask(q{BEGIN; SELECT tq.enqueue('app/rolled'); ROLLBACK});
is(ask(q{SELECT (tq.task_queue_counts('app/rolled') -> 'pendingTasks')::bigint}), '1', 'a rollback on the router leaves what was created');

# ---- rights are those of the role on the shard ----

is(ask(q{SET ROLE producer; SELECT length(tq.enqueue('app/mail')::text)}), '22', 'a role that may create');
like(refused(q{SET ROLE producer; SELECT tq.enqueue('app/other')}), qr/TQ403|42501/, 'in its queue only');
like(refused(q{SET ROLE outsider; SELECT tq.enqueue('app/mail')}), qr/TQ403|42501/, 'a role that may not');
like(refused(q{SET ROLE outsider; CALL tq_shard.add_shard('x', 'dbname=x')}), qr/42501/, 'nor change the map');
is(ask(q{SET ROLE outsider; SELECT count(*) FROM tq_shard.map()}), '3', 'but read it');

# ---- messages ----

my $messages = q{SELECT id, exchange, routing_key FROM tq.fetch('ended', %d)};
$node->poll_query_until($router, q{SELECT count(*) = 100 FROM tq.fetch('ended', 1000)}) or die 'not all is published';
my @fetched = split /\n/, ask(sprintf $messages, 1000);
my @ids_of = map { (split /\|/)[0] } @fetched;
is(join(',', @ids_of), join(',', sort { $a <=> $b } @ids_of), 'ids grow');
is(ask(q{SELECT count(*) FROM (SELECT published, lag(published) OVER (ORDER BY id) AS before FROM tq.fetch('ended', 1000)) AS m WHERE published < before}), '0', 'with the time of publication');
is(ask(sprintf $messages, 1000), join("\n", @fetched), 'what is fetched again has the same ids');
ask("SELECT tq.ack('ended', $ids_of[49])");
is(ask(sprintf $messages, 1000), join("\n", @fetched[50 .. 99]), 'what is acknowledged does not come again, and nothing else is lost');
is(ask(sprintf $messages, 5), join("\n", @fetched[50 .. 54]), 'at most so many');
is(ask(q{SET ROLE outsider; SELECT count(*) FROM tq_shard_internal.message}), '0', 'no role sees what another one fetched');
like(refused(q{SET ROLE outsider; SELECT tq.fetch('ended')}), qr/TQ403|42501/, 'nor fetches it');
ask(q{BEGIN; SELECT count(*) FROM tq.fetch('ended', 1000); ROLLBACK});
# One session of a role at a time numbers its messages, and no other role is in its way.
{
	my $other = $node->background_psql($router);

	$other->query_safe(q{SET ROLE outsider; BEGIN; SELECT pg_advisory_xact_lock('tq_shard_internal.message'::regclass::oid::int, hashtext(} . "'" . ask('SELECT current_user') . q{ ended')); SELECT tq_shard_internal.lock_subscription('ended')});
	is(ask(q{SET lock_timeout = '1 s'; SELECT count(*) > 0 FROM tq.fetch('ended', 1000)}), 't', 'another role cannot lock a subscription');
	$other->query_safe(q{COMMIT; RESET ROLE; BEGIN; SELECT count(*) FROM tq.fetch('ended', 1000)});
	like(refused(q{SET lock_timeout = '100 ms'; SELECT count(*) FROM tq.fetch('ended', 1000)}), qr/55P03/, 'another session of the role waits');
	$other->query_safe('ROLLBACK');
	$other->quit;
}
ask("SELECT tq.ack('ended', $ids_of[99])");
is(ask(sprintf $messages, 1000), '', 'all');
like(refused(q{SELECT tq.ack('none', 5)}), qr/TQ404: .*subscription "none" does not exist/, 'no subscription');

# ---- owners, teams and quotas ----

$node->safe_psql('postgres', 'CREATE ROLE lead LOGIN; CREATE ROLE small LOGIN; ALTER ROLE small SET tq.max_queues = 1');
ask(q{SELECT tq.grant_queue('lead', 'team/*', a), tq.grant_queue('small', 'small/*', a) FROM unnest('{produce,work,read,manage}'::text[]) AS a;
	SELECT tq.grant_scopes('lead', '{queue:schedule-cron-in-queue:team/*}'), tq.grant_scopes('small', '{queue:set-queue:small/*}')});
my @team = split /\n/, ask(q{SET ROLE lead; SELECT tq.enqueue('team/work', '{"secret": 1}', retries => 0) FROM generate_series(1, 12)});
is(ask(q{SET ROLE lead; SELECT count(*), count(*) FILTER (WHERE task_queue_id LIKE 'team/%') FROM tq.task_overview}), '12|12', 'a team sees its tasks on all shards, and no others');
is(ask(q{SET ROLE lead; SELECT sum(pending), count(*) FILTER (WHERE task_queue_id NOT LIKE 'team/%') FROM tq.queue_stats}), '12|0', 'and its queues');
is(ask(q{SET ROLE lead; SELECT sum((tq.task_queue_counts('team/work') ->> 'pendingTasks')::int)}), '12', 'and their counts');
is(ask(q{SET ROLE outsider; SELECT count(*) FROM tq.task_overview}), '0', 'a role without rights sees none');
like(refused("SET ROLE lead; SELECT tq.status('$ids[0]')"), qr/TQ404|TQ403/, 'nor one that it names');

# A claim that names no worker has one of the session, whichever shard it is from.
my $claimed = ask(q{SET ROLE lead; SET application_name = 'team app';
	SELECT count(*), count(DISTINCT (worker_group, worker_id)), min(worker_group) FROM generate_series(1, 9) AS n, tq.claim_work(left('team/work', n * 0 + 9), tasks => 4)});
is($claimed, '12|1|team-app', 'claims of all shards without a name: one worker');
is(ask(q{SET ROLE lead; SELECT DISTINCT worker_group FROM tq.worker_overview}), 'team-app', 'which the shards know');
ask("SET ROLE lead; SELECT tq.report_failed('$_', 0) FROM tq.status('$_')") foreach @team[0, 1];
is(ask(q{SET ROLE lead; SELECT count(*) FROM tq.failure_overview}), '2', 'a team lists its failures');
is(ask(q{SET ROLE outsider; SELECT count(*) FROM tq.failure_overview}), '0', 'and no other role does');

# A group that is stuck, on the shard where it is.
my $stuck = ask("SET ROLE lead; SELECT tq.enqueue('team/next', task_group_id => '$team[0]', dependencies => ARRAY['$team[0]']::tq.slugid[])");
is(ask("SET ROLE lead; SELECT blocked, blocked_by FROM tq.group_progress('$team[0]')"), "t|{$team[0]}", 'a blocked group');
is(ask("CALL tq.wait_for_task_group('$team[0]', '20 s')"), 'blocked', 'a wait for it ends');
is(ask(q{SET ROLE lead; SELECT sum(blocked) FROM tq.queue_stats WHERE task_queue_id = 'team/next'}), '1', 'its queue shows the task');
is(ask("SET ROLE lead; SELECT count(*) FROM tq.why('$stuck') AS w WHERE w.detail LIKE '%$team[0]%'") > 0, 1, 'why() knows the cause');
is(refused("DO \$\$ DECLARE answer text; BEGIN CALL tq.wait_for_task('$team[0]', '20 s', answer); IF answer <> 'failed' THEN RAISE EXCEPTION 'answer %', answer; END IF; END \$\$"),
	'', 'the state of a task, in a variable');
is(ask("CALL tq.wait_for_task(result => NULL, wait => '1 ms', task_id => '$team[2]')"), 'unresolved', 'and by the names of the arguments');

# A dependency on a task of another application goes to its shard.
my @foreign = split /\n/, ask(q{SELECT tq.enqueue('app/foreign') FROM generate_series(1, 9)});
like(refused("SET ROLE lead; SELECT tq.enqueue('team/after', dependencies => ARRAY['$foreign[0]']::tq.slugid[])"), qr/TQ40[034]/, 'no dependency on a task of another application');
ask(q{SELECT tq.grant_queue('lead', 'app/foreign', 'depend')});
my $after = ask("SET ROLE lead; SELECT tq.enqueue('team/after', dependencies => ARRAY['$foreign[0]']::tq.slugid[])");
is(ask("SELECT tq.status('$after') ->> 'state'"), 'unscheduled', 'with the right to depend on it there is one');
is(ask("SELECT count(*), count(DISTINCT (worker_group, worker_id)) FROM unnest('{" . join(',', @foreign) . "}'::tq.slugid[]) AS i, tq.claim_task(i, 0)"), '9|1', 'claim_task() on all shards: one worker');
ask("SELECT tq.report_completed('$foreign[0]', 0)");
ok($node->poll_query_until($router, "SELECT tq.status('$after') ->> 'state' = 'pending'"), 'and settled when that is completed');

# A recurring task is of its owner.
is(ask(q{SET ROLE lead; SELECT owner, active FROM tq.schedule_cron('nightly', '0 3 * * *', 'team/cron')}), 'lead|t', 'a recurring task has an owner');
is(ask(q{SELECT owner, fault FROM tq.cron_overview WHERE name = 'nightly'}), 'lead|', 'which a view shows');
like(refused(q{SELECT tq.pause_cron('nightly')}), qr/TQ404/, 'another role has none of that name');
is(ask(q{SELECT active FROM tq.pause_cron('nightly', owner => 'lead')}), 'f', 'unless it names the owner');
is(ask(q{SET ROLE lead; SELECT active FROM tq.resume_cron('nightly')}), 't', 'who does not');
is(ask(q{SELECT length(tq.run_cron_now('nightly', owner => 'lead')::text)}), '22', 'a task of it');
is(ask(q{SELECT name FROM tq.unschedule_cron('nightly', owner => 'lead')}), 'nightly', 'and its end');

# A quota counts on each shard.
ask(q{SET ROLE small; SELECT tq.set_queue('small/one', '{"retainFailed": "1 day"}')});
is($node->safe_psql($_, q{SELECT count(*) FROM tq_internal.queue WHERE task_queue_id LIKE 'small/%'}), '1', "$_ has the queue of a quota of one") foreach ('s1', 's2', 's3');
like(refused(q{SET ROLE small; SELECT tq.set_queue('small/two', '{"retainFailed": "1 day"}')}), qr/53400: .*role "small" has too many queues/, 'one too many');
is(join(' ', map { $node->safe_psql($_, q{SELECT count(*) FROM tq_internal.queue WHERE task_queue_id LIKE 'small/%'}) } ('s1', 's2', 's3')), '1 1 1', 'no shard has it');

# ---- waits ----

my $waiter = $node->background_psql($router, on_error_stop => 0);
$waiter->query_until(qr/begun/, "\\echo begun\nSELECT 'got ' || count(*) FROM tq.claim_work('app/awaited', 'g', 'w', 1, '50 s');\n");
$node->poll_query_until($router, q{SELECT EXISTS (SELECT FROM tq.waiter_overview WHERE waits_for = 'app/awaited' OR waits_for = 'a new queue')}) or die 'nothing waits';
ask(q{SELECT tq.enqueue('app/awaited')});
like($waiter->query(q{SELECT 'after'}), qr/got 1/, 'a claim that waits gets what comes on any shard');
$waiter->quit;
my $awaited = ask(q{SELECT task_id FROM tq.list_claimed_tasks('app/awaited')});
is(ask("CALL tq.wait_for_task('$awaited', '10 ms')"), 'unresolved', 'wait_for_task(): the time is over');
ask("SELECT tq.report_completed('$awaited', 0)");
is(ask("CALL tq.wait_for_task('$awaited')"), 'completed', 'wait_for_task(): its state');
is(ask("CALL tq.wait_for_task_group('$awaited')"), 'completed', 'wait_for_task_group(): its outcome');
like(refused(q{SELECT tq.claim_work('app/awaited', 'g', 'w', 1, '2 minutes')}), qr/wait is out of range/, 'too long a wait');

# ---- a shard that does not answer ----

ask(q{SELECT tq.enqueue('app/outage') FROM generate_series(1, 60)});
my $left = $node->safe_psql('s1', q{SELECT (tq.task_queue_counts('app/outage') -> 'pendingTasks')::bigint}) + $node->safe_psql('s2', q{SELECT (tq.task_queue_counts('app/outage') -> 'pendingTasks')::bigint});
$node->safe_psql('postgres', q{ALTER DATABASE s3 ALLOW_CONNECTIONS false; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 's3' AND backend_type = 'client backend'});
is(ask(q{SELECT sum((SELECT count(*) FROM tq.claim_work('app/outage', 'g' || n - n, 'w', 1000))) FROM generate_series(1, 6) AS n}), $left, 'the work of the other shards is claimed');
like(refused(q{SELECT count(*) FROM generate_series(1, 9) AS n, tq.claim_work('app/outage', 'g' || n - n, 'w')}), qr/WARNING: .*shard "three" does not answer/, 'with a warning');
is(ask(q{SELECT name FROM tq_shard.status() WHERE NOT reachable}), 'three', 'status()');
is(ask(q{SELECT string_agg(name, ',') FROM tq.health() WHERE name LIKE '%connection'}), 'three: connection', 'health()');
$node->safe_psql('postgres', 'ALTER DATABASE s3 ALLOW_CONNECTIONS true');
cmp_ok(ask(q{SELECT sum((SELECT count(*) FROM tq.claim_work('app/outage', 'g' || n - n, 'w', 1000))) FROM generate_series(1, 6) AS n}), '>', 0, 'it is asked again when it is back');

# ---- a shard is drained and removed ----

like(refused(q{CALL tq_shard.remove_shard('two')}), qr/55000: shard "two" begins task groups/, 'a shard that works is not removed');
ask(q{CALL tq_shard.drain_shard('two')});
is(ask(q{SELECT state, buckets FROM tq_shard.map() WHERE name = 'two'}), 'draining|{}', 'drained');
ask(q{SELECT tq.enqueue('app/later') FROM generate_series(1, 40)});
is($node->safe_psql('s2', q{SELECT (tq.task_queue_counts('app/later') -> 'pendingTasks')::bigint}), '0', 'it gets no new groups');
is(ask("SELECT count(*) FROM tq.statuses($array)"), '60', 'and keeps the old ones, which are found');
like(refused(q{CALL tq_shard.remove_shard('two')}), qr/55000: shard "two" has tasks/, 'it is not removed before they are gone');
# A group without tasks stays until it expires.
$node->safe_psql('s2', q{SELECT tq.delete_task(task_id) FROM tq.task_overview; DELETE FROM tq_internal.task_group});
is($node->safe_psql('s2', q{SELECT count(*) FROM tq_internal.bucket_counts()}), '0', 'they are gone');
ask(q{CALL tq_shard.remove_shard('two')});
is(ask(q{SELECT string_agg(name, ',') FROM tq_shard.map()}), 'one,three', 'removed');
is(ask(q{SELECT count(*) FROM tq_shard.status() WHERE reachable}), '2', 'status()');

done_testing();
