# pg_dump and restore: every row and sequence is restored, and the queue goes on:
# in order, with its claims, deadlines, counters, seals and policies.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

# A server without tq preloaded has no maintenance worker: what is due stays as it is,
# so that a copy can be compared row by row.
my $old = new_older('old');
my $new = new_node('new');

# ---- tasks in every state ----

# public.named gives the tasks names; they are created by make(), for short.
$old->safe_psql('postgres', 'CREATE DATABASE old');
$old->safe_psql(
	'old', q{
	CREATE EXTENSION tq;
	CREATE TABLE named (name text PRIMARY KEY, id tq.slugid NOT NULL);
	CREATE FUNCTION id(text) RETURNS tq.slugid LANGUAGE sql STABLE AS
		'SELECT id FROM public.named WHERE name = $1';
	CREATE FUNCTION make(n text, q text, after text[] DEFAULT '{}', requires text DEFAULT 'all-completed',
		priority text DEFAULT 'lowest', deadline interval DEFAULT '1 day', grp tq.slugid DEFAULT NULL,
		delay interval DEFAULT '0', policy jsonb DEFAULT NULL)
	RETURNS void LANGUAGE sql AS $$
		INSERT INTO public.named SELECT n, tq.enqueue(q, payload => jsonb_build_object('n', n),
			task_group_id => grp, requires => requires, priority => priority, deadline => deadline,
			delay => delay, policy => policy, dependencies => ARRAY(SELECT public.id(a) FROM unnest(after) AS a))
	$$;
	CREATE FUNCTION claim(n text) RETURNS void LANGUAGE sql AS $$
		SELECT 1 FROM tq.claim_task(public.id(n), 0, 'g', 'w')
	$$;

	-- two hours ago: claims that have expired since, deadlines that have passed
	SET tq.clock_offset = '-2 hours';
	SELECT make('claim expired', 'p/late'), make('after claim expired', 'p/late2', '{claim expired}');
	SELECT make('running late', 'p/late', deadline => '1 hour'), make('pending late', 'p/late', deadline => '1 hour'),
		make('unscheduled late', 'p/late', '{claim expired}', deadline => '1 hour'),
		make('after late', 'p/late2', '{running late,pending late}', 'all-resolved');
	SELECT claim('claim expired'), claim('running late');
	SELECT make('backoff late', 'p/late3', policy => '{"retryOn": ["failed"], "retryBackoff": {"delay": 60}}'),
		make('lost late', 'p/late4', policy => '{"retries": 3, "lostRetries": 1, "claimTimeout": 60}'),
		make('waited late', 'p/late5', policy => '{"pendingTimeout": 60, "deadLetter": true}');
	SELECT claim('backoff late'), claim('lost late');
	SELECT tq.report_failed(id('backoff late'), 0, error => '{"message": "once"}');
	RESET tq.clock_offset;

	-- pending, in an order that is not that of their creation
	SELECT make('low 1', 'p/w'), make('high 1', 'p/w', priority => 'high'), make('low 2', 'p/w'),
		make('highest', 'p/w', priority => 'highest'), make('high 2', 'p/w', priority => 'high');
	SELECT make('retried', 'p/w');
	SELECT claim('retried');
	SELECT tq.report_exception(id('retried'), 0, 'intermittent-task');

	-- running, and what waits for that
	SELECT make(n, 'p/busy') FROM unnest('{one,two,three}'::text[]) AS n;
	SELECT claim(n) FROM unnest('{one,two,three}'::text[]) AS n;
	SELECT make('after all', 'p/next', '{one,two,three}'), make('after failure', 'p/next', '{three}', 'all-resolved');
	SELECT tq.report_completed(id('one'), 0);

	-- resolved in each way, and rerun after that
	SELECT make(n, 'p/done') FROM unnest('{completed,failed,exception,canceled,rerun}'::text[]) AS n;
	SELECT claim(n) FROM unnest('{completed,failed,exception,rerun}'::text[]) AS n;
	SELECT tq.report_completed(id('completed'), 0), tq.report_failed(id('failed'), 0),
		tq.report_exception(id('exception'), 0, 'malformed-payload'), tq.cancel_task(id('canceled')),
		tq.report_failed(id('rerun'), 0), tq.rerun_task(id('rerun'));
	SELECT make('waits for rerun', 'p/next', '{rerun}');

	-- groups: one sealed, one open, one of a task's own id
	SELECT make('sealed', 'p/g', grp => 'AAAAAAAAQAaAAAAAAAAAAA');
	SELECT tq.seal_task_group('AAAAAAAAQAaAAAAAAAAAAA');
	SELECT make('open', 'p/g', grp => 'AAAAAAAAQAaAAAAAAAAAAQ');
	SELECT make('head', 'p/g');
	SELECT make('member', 'p/g', grp => id('head'));
	SELECT tq.define_task(tq.slugid(), tq.task(id('open')) - '{dependencies,taskGroupId}'::text[]);

	-- a task for the end of a group
	SELECT tq.on_group_resolved('AAAAAAAAQAaAAAAAAAAAAQ', 'p/callback', task_id => id('callback'));

	-- delayed runs: one due later, one due, one of a later attempt, one that was deferred
	SELECT make('delayed', 'p/delayed', delay => '1 hour'), make('delay over', 'p/delayed', delay => '1 ms');
	SELECT make('backoff', 'p/backoff', policy => '{"retries": 2, "retryOn": ["failed"], "retryBackoff": {"delay": 3600}}'),
		make('deferred', 'p/deferred', policy => '{"runTimeout": 7200}');
	SELECT claim('backoff'), claim('deferred');
	SELECT tq.report_failed(id('backoff'), 0, error => '{"message": "no", "details": [1]}'), tq.defer_task(id('deferred'), 0, '1 hour');

	-- dead letters, one of a task that is gone; a result
	SELECT make('dead', 'p/dead', policy => '{"deadLetter": true, "retries": 0}'), make('result', 'p/result');
	SELECT claim('dead'), claim('result');
	SELECT tq.report_failed(id('dead'), 0, error => '{"message": "bad"}'), tq.report_completed(id('result'), 0, result => '{"n": 1}');
	SELECT tq.enqueue('p/dead', task_id => 'AAAAAAAAQAaAAAAAAAAAAg', policy => '{"deadLetter": true}', deadline => '1 s', expires => '1 s');
	SELECT tq.report_failed(task_id, run_id) FROM tq.claim_task('AAAAAAAAQAaAAAAAAAAAAg', 0, 'g', 'w');
	WITH t AS (DELETE FROM tq_internal.task WHERE task_id = 'AAAAAAAAQAaAAAAAAAAAAg' RETURNING id)
		, f AS (DELETE FROM tq_internal.failure USING t WHERE task = t.id) DELETE FROM tq_internal.run USING t WHERE task = t.id;

	-- a worker in quarantine
	SELECT count(*) FROM tq.claim_work('p/w2', 'g', 'ill');
	SELECT tq.quarantine_worker('p/w2', 'g', 'ill', now() + interval '1 day', 'sneezes');
	SELECT make('healthy only', 'p/w2');

	-- settings of queues, and tasks that wait for one with the same key
	SELECT tq.set_queue('p/set', '{"keyConcurrentLimit": 3, "policy": {"retries": 1}}'), tq.pause_queue('p/paused');
	SELECT make('first', 'p/serial', policy => '{"serialKey": "key"}'), make('second', 'p/serial', policy => '{"serialKey": "key"}'),
		make('unique', 'p/unique', policy => '{"uniqueKey": "key"}');

	-- a recurring task that has fired; a pg_cron that would be in another database
	SET cron.database_name = 'elsewhere';
	SELECT tq.schedule_cron('recurring', '0 6 * * *', 'p/cron', '{"at": "$scheduled"}', retries => 1), tq_internal.fire_cron('recurring', '2026-01-01 06:00+00');

	-- one that waits for many
	SELECT tq.enqueue('p/after', dependencies => tq.enqueue_tasks('p/many', array_fill('{}'::jsonb, ARRAY[300])));

	-- a dependency on a task of another application, which is settled
	INSERT INTO tq_internal.foreign_dependency SELECT r.id, d.id, d.queue, 0, false, true FROM tq_internal.task r, tq_internal.task d
		WHERE r.task_id = id('result') AND d.task_id = id('two');

	-- an artifact, a binding, a default channel that was taken away, a subscription
	SELECT tq.create_artifact(id('two'), 0, 'a', '{"storageType": "inline", "contentType": "text/plain", "content": "a"}'
		|| jsonb_build_object('expires', now() + interval '1 hour'));
	SELECT tq.bind('mine', 'task-completed', 'route.#'), tq.unbind('tq_task_running', 'task-running');
	SELECT tq.subscribe('reader', 'task-failed');
	INSERT INTO tq_internal.departed SELECT 1, now(), created, deadline, deadline, expires, queue, priority, retries, task_id, task_id, NULL, NULL, '{r}', '{}'
		FROM tq_internal.task LIMIT 1;
	INSERT INTO tq_internal.departed_run SELECT * FROM tq_internal.run LIMIT 1;
	SELECT tq.grant_scopes('pg_read_all_data', '{queue:health}');

	-- buckets
	SELECT tq_internal.set_buckets('{[0,1024)}');

	-- a task that is postponed
	INSERT INTO tq_internal.postponed (task, due, origin, since, failures, step, error)
		SELECT t.id, now() + interval '1 day', now(), now(), 1, 'deadline', 'some error' FROM tq_internal.task t
		WHERE t.task_id = id('two');
	});

# the estimates for tables that were never analysed make JIT cost seconds
my $invariants = "SET jit = off;\n" . slurp_file("$FindBin::RealBin/../random/invariants.sql");
is($old->safe_psql('old', $invariants), '', 'the original is sound');

# ---- the same rows ----

# Every table and sequence of the schema, whether it is marked to be dumped or
# not, except messages, their publication and what was counted, which start from empty.
sub contents
{
	my ($node, $db) = @_;
	my %all;
	my @names = split /\n/, $node->safe_psql($db,
		"SELECT relkind::text || relname::text FROM pg_class WHERE relnamespace = 'tq_internal'::regnamespace AND relkind IN ('r', 'S')
		AND relname !~ '^(message_.|tick_.|log_segment|activation|secret|task_name_pass|.*_history)\$' ORDER BY 1");
	foreach my $name (@names)
	{
		my ($kind, $relation) = $name =~ /^(.)(.*)$/;
		$all{$relation} = $node->safe_psql($db,
			$kind eq 'S'
			? "SELECT last_value, is_called FROM tq_internal.$relation"
			: "SELECT t FROM tq_internal.$relation AS t ORDER BY t::text COLLATE \"C\"");
	}
	return \%all;
}

my $dir    = PostgreSQL::Test::Utils::tempdir();
my $plain  = "$dir/plain.sql";
my $custom = "$dir/custom.dump";
my $expect = contents($old, 'old');
my $policies = $old->safe_psql('old', 'SELECT count(*) FROM tq_internal.policy');

$old->command_ok([ 'pg_dump', '-f', $plain, '-d', $old->connstr('old') ], 'pg_dump, plain');
$old->command_ok([ 'pg_dump', '-Fc', '-f', $custom, '-d', $old->connstr('old') ], 'pg_dump, custom');

foreach my $relation (sort keys %$expect)
{
	isnt($expect->{$relation}, '', "there is something in $relation");
}

# Restore into a new database of a node, in one way or the other.
my %restore = (
	plain => sub {
		my ($node, $db) = @_;
		return [ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', $plain, '-d', $node->connstr($db) ];
	},
	custom => sub {
		my ($node, $db) = @_;
		return [ 'pg_restore', '--exit-on-error', '-j', '2', '-d', $node->connstr($db), $custom ];
	});

sub restore
{
	my ($node, $kind) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $kind");
	$node->command_ok($restore{$kind}->($node, $kind), "$kind: restored");
	return;
}

foreach my $kind (sort keys %restore)
{
	restore($old, $kind);
	my $got = contents($old, $kind);
	is(join(' ', sort keys %$got), join(' ', sort keys %$expect), "$kind: the same tables and sequences");
	is($got->{$_}, $expect->{$_}, "$kind: $_ is the same") foreach sort keys %$expect;
	is($old->safe_psql($kind, $invariants), '', "$kind: the copy is sound");
}

# ---- the queue works on ----

# Statuses of those whose time has not come.
my $unhurried = q{
	SELECT n.name, tq.status(n.id) FROM named n
	WHERE n.name !~ 'late|expired' ORDER BY n.name COLLATE "C"};
my $statuses = $old->safe_psql('old', $unhurried);
my $line = $old->safe_psql('old', q{
	SELECT string_agg(n.name, ', ' ORDER BY p.priority DESC, p.seq)
	FROM tq_internal.pending p JOIN tq_internal.queue q ON q.id = p.queue JOIN tq_internal.task t ON t.id = p.task
		JOIN named n ON n.id = t.task_id
	WHERE q.task_queue_id = 'p/w'});
is($line, 'highest, high 1, high 2, low 1, low 2, retried', 'the order in the original');

sub goes_on
{
	my ($kind) = @_;
	my $sql = sub { return $new->safe_psql($kind, $_[0]) };
	my $state = sub {
		return $sql->("SELECT concat_ws(' ', s ->> 'state', s -> 'runs' -> 0 ->> 'reasonResolved', s ->> 'retriesLeft')"
			  . " FROM tq.status(id('$_[0]')) AS s");
	};
	my $fails = sub {
		my ($query, $like, $name) = @_;
		my ($rc, $out, $err) = $new->psql($kind, "\\set VERBOSITY verbose\n$query", on_error_stop => 1);
		return like($err, $like, "$kind: $name");
	};

	# the maintenance worker now does what was due before; nothing of it was lost
	ok(wait_worker($new, $kind), "$kind: there is a maintenance worker");
	begin_use($new, $kind);
	foreach my $name ('running late', 'pending late', 'unscheduled late')
	{
		ok($new->poll_query_until($kind, "SELECT tq.status(id('$name')) ->> 'state' = 'exception'"), "$kind: $name ends");
		like($state->($name), qr/^exception deadline-exceeded 5$/, "$kind: by its deadline");
	}
	ok($new->poll_query_until($kind, "SELECT jsonb_array_length(tq.status(id('claim expired')) -> 'runs') = 2"),
		"$kind: the expired claim is handled");
	is($state->('claim expired'), 'pending claim-expired 4', "$kind: by a retry");
	ok($new->poll_query_until($kind, "SELECT tq.status(id('after late')) ->> 'state' = 'pending'"),
		"$kind: a deadline releases what waited for any end");
	is($state->('after claim expired'), 'unscheduled 5', "$kind: a retry releases nothing");
	ok($new->poll_query_until($kind, "SELECT (tq.task_queue_counts('p/delayed') -> 'pendingTasks')::bigint >= 1 AND NOT EXISTS"
			. ' (SELECT FROM tq_internal.delayed WHERE visible_at <= now())'), "$kind: a delay that is over is over");
	is($sql->("SELECT count(*) FROM tq.claim_work('p/delayed', 'g', 'w', 10)"), 1, "$kind: the other is not");

	# policies, too
	ok($new->poll_query_until($kind, "SELECT (tq.task_queue_counts('p/late3') -> 'pendingTasks')::bigint = 1"), "$kind: a backoff that is over is over");
	is($sql->("SELECT run_id, payload ->> 'n' FROM tq.claim_work('p/late3', 'g', 'w')"), '1|backoff late', "$kind: the next attempt can be claimed");
	is($sql->("SELECT s #> '{runDetails,0,error}', s #> '{runDetails,1,attempt}' FROM tq.status(id('backoff late')) AS s"),
		'{"message": "once"}|1', "$kind: it is known as that");
	ok($new->poll_query_until($kind, "SELECT jsonb_array_length(tq.status(id('lost late')) -> 'runs') = 2"), "$kind: a lost run");
	is($state->('lost late'), 'pending claim-expired 3', "$kind: uses its own budget");
	ok($new->poll_query_until($kind, "SELECT tq.status(id('waited late')) ->> 'state' = 'exception'"), "$kind: a pending timeout");
	is($sql->("SELECT reason FROM tq.list_dead_letters('p/late5')"), 'pending-timeout', "$kind: leaves a dead letter");

	# nothing else has changed
	is($sql->($invariants), '', "$kind: sound after that");
	is($sql->($unhurried =~ s/late\|expired/late|expired|delay/r),
		$old->safe_psql('old', $unhurried =~ s/late\|expired/late|expired|delay/r), "$kind: the others are as they were");

	# order of claims, also of what is new
	$sql->("SELECT make('new low', 'p/w'), make('new high', 'p/w', priority => 'high')");
	is($sql->("SELECT string_agg(payload ->> 'n', ', ') FROM tq.claim_work('p/w', 'g', 'w2', 20)"),
		'highest, high 1, high 2, new high, low 1, low 2, retried, new low', "$kind: claims go on in order");

	# claims and dependencies
	ok($sql->("SELECT taken_until > now() FROM tq.reclaim_task(id('two'), 0)"), "$kind: a claim can be prolonged");
	$sql->("SELECT tq.report_completed(id('two'), 0)");
	is($state->('after all'), 'unscheduled 5', "$kind: one requirement is left");
	$sql->("SELECT tq.report_failed(id('three'), 0)");
	is($state->('after all'), 'unscheduled 5', "$kind: and is not met by a failure");
	is($state->('after failure'), 'pending 5', "$kind: but another's is");
	$sql->("SELECT tq.rerun_task(id('three')); SELECT 1 FROM tq.claim_task(id('three'), 1, 'g', 'w')");
	$sql->("SELECT tq.report_completed(id('three'), 1)");
	is($state->('after all'), 'pending 5', "$kind: the last requirement releases it");
	$sql->("SELECT 1 FROM tq.claim_task(id('rerun'), 1, 'g', 'w')");
	$sql->("SELECT tq.report_completed(id('rerun'), 1)");
	is($state->('waits for rerun'), 'pending 5', "$kind: a dependency counts from its run");

	# delays, budgets, dead letters, results
	is($sql->("SELECT count(*) FROM tq.claim_work('$_', 'g', 'w')"), 0, "$kind: not claimable before its time: $_")
	  foreach qw(p/backoff p/deferred);
	{
		local $ENV{PGOPTIONS} = '-c tq.clock_offset=61min';

		$sql->('SELECT FROM tq.upkeep()');
		is($sql->("SELECT run_id FROM tq.claim_work('p/deferred', 'g', 'w2')"), 0, "$kind: a run that was deferred is claimed again when it is due");
		$sql->("SELECT tq.report_failed(task_id, run_id) FROM tq.claim_work('p/backoff', 'g', 'w')");
	}
	is($sql->("SELECT s ->> 'retriesLeft', s #>> '{runDetails,-1,attempt}', (s #>> '{runDetails,-1,visibleAt}')::timestamptz"
			. " - (s #>> '{runs,2,scheduled}')::timestamptz FROM tq.status(id('backoff')) AS s"),
		'0|2|01:00:00', "$kind: the last attempt is delayed as well");
	is($sql->("SELECT l.reason, l.error, l.task = tq.task(l.task_id) FROM tq.list_dead_letters('p/dead') AS l WHERE l.task_id::text = id('dead')::text"),
		'failed|{"message": "bad"}|t', "$kind: a dead letter is complete");
	is($sql->("SELECT tq.redrive(id('dead')) ->> 'taskId' = id('dead')::text"), 't', "$kind: it is redriven by a rerun");
	is($sql->("SELECT tq.redrive('AAAAAAAAQAaAAAAAAAAAAg') ->> 'state'"), 'pending', "$kind: that of a task that is gone as well");
	is($sql->("SELECT tq.result(id('result'))"), '{"n": 1}', "$kind: a result");
	$sql->("SELECT make('old policy', 'p/new', policy => '{\"deadLetter\": true, \"retries\": 0}'), make('new policy', 'p/new', policy => '{\"lostRetries\": 4}')");
	is($sql->('SELECT count(*) FROM tq_internal.policy'), $policies + 1, "$kind: a policy that there is keeps its number, a new one gets its own");

	# groups, workers
	$fails->("SELECT make('x', 'p/g', grp => 'AAAAAAAAQAaAAAAAAAAAAA')", qr/TQ409/, 'a sealed group stays sealed');
	$sql->("SELECT make('y', 'p/g', grp => 'AAAAAAAAQAaAAAAAAAAAAQ'), make('z', 'p/g', grp => id('head'))");
	is($sql->("SELECT tasks FROM tq.group_progress(id('head'))"), 3, "$kind: an open one takes tasks");
	is($sql->("SELECT count(*) FROM tq.claim_work('p/w2', 'g', 'ill')"), 0, "$kind: the quarantine goes on");
	is($sql->("SELECT count(*) FROM tq.claim_work('p/w2', 'g', 'well')"), 1, "$kind: for that worker only");
	ok($new->poll_query_until($kind, "SELECT NOT EXISTS (SELECT FROM tq_internal.pending p JOIN tq_internal.task t ON t.id = p.task WHERE t.deadline <= now() + interval '2 s')"),
		"$kind: what was redriven ends by its deadline");
	ok($new->poll_query_until($kind, "SELECT NOT EXISTS (SELECT FROM tq_internal.task WHERE expires <= now() + interval '10 s')"),
		"$kind: and goes when it expires, before the tables and the counters are compared");
	is($sql->($invariants), '', "$kind: sound at the end");
	return;
}

foreach my $kind (sort keys %restore)
{
	restore($new, $kind);
	goes_on($kind);
}

# ---- the same after pg_upgrade, to another major version ----

if ($ENV{TQ_OLDER})
{
	my $messages = 'SELECT count(*), max(seq), max(xid::text::bigint) FROM tq_internal.message';
	my $written = $old->safe_psql('old', $messages);
	$new = pg_upgrade($old);
	$old->start;
	my $got = contents($new, 'old');
	is($got->{$_}, $expect->{$_}, "pg_upgrade: $_ is the same") foreach sort keys %$expect;
	is($new->safe_psql('old', $messages), $written, 'pg_upgrade: the messages, too');
	$new->append_conf('postgresql.conf', "shared_preload_libraries = 'tq'");
	$new->restart;
	goes_on('old');
	ok($new->poll_query_until('old', $Tq::published), 'pg_upgrade: they are published');
}

done_testing();
