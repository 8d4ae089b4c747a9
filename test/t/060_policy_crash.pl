# Crashes in the life of tasks with policies: between any two steps, in the
# middle of each, and while timeouts are due.  What was committed is there, what
# was not is not, and what time brings about comes once.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;
use Time::HiRes qw(time usleep);

my $node = new_node('policy', 'log_statement = none');
my $db = 'postgres';

$node->safe_psql($db, q{
	CREATE EXTENSION tq;

	CREATE FUNCTION id(name text) RETURNS tq.slugid LANGUAGE sql IMMUTABLE AS
		$$ SELECT (rpad(name, 8, '_') || 'QAGAAAAAAAAAAA')::tq.slugid $$;
	-- the task that was redriven from another as a new one
	CREATE FUNCTION heir(name text) RETURNS tq.slugid LANGUAGE sql STABLE AS
		$$ SELECT t.task_id FROM tq_internal.task t WHERE t.extra ->> 'redriveOf' = public.id(name)::text $$;
	-- the runs of a task as its dead letter has them, each with its details
	CREATE FUNCTION runs(task tq.slugid) RETURNS jsonb LANGUAGE sql STABLE AS $$
		SELECT jsonb_agg(run || coalesce((SELECT d FROM jsonb_array_elements(status -> 'runDetails') AS d WHERE d -> 'runId' = run -> 'runId'), '{}') ORDER BY n)
		FROM tq.statuses(ARRAY[task]), jsonb_array_elements(status -> 'runs') WITH ORDINALITY AS u (run, n)
	$$;
	-- a task in one line, with the number of attempt of each of its runs
	CREATE FUNCTION line(task tq.slugid) RETURNS text LANGUAGE sql STABLE AS $$
		SELECT coalesce((SELECT concat_ws(' ', status ->> 'state', (status ->> 'retriesLeft') || ':',
			(SELECT string_agg(concat_ws(' ', run ->> 'reasonCreated', coalesce(run ->> 'reasonResolved', run ->> 'state'),
				coalesce(run ->> 'attempt', '0')), ', ' ORDER BY n)
				FROM jsonb_array_elements(public.runs(task)) WITH ORDINALITY AS u (run, n)))
		FROM tq.statuses(ARRAY[task])), 'gone')
	$$;
	-- and the letters that there are: of which task, and of how many runs
	CREATE FUNCTION letters() RETURNS text LANGUAGE sql STABLE AS $$
		SELECT coalesce(string_agg(concat_ws(' ', CASE task_id::text WHEN id('one')::text THEN 'one' WHEN id('two')::text THEN 'two'
			ELSE 'heir' END, tq_internal.reason_resolved_name(reason), error ->> 'message', jsonb_array_length(runs)), ', ' ORDER BY failed_at), '')
		FROM tq_internal.dead_letter
	$$});

# A row as text.  The publisher inserts the timers that are left to it once more
# if the crash has undone what it did; then they have other numbers.
sub row_of
{
	my ($table) = @_;
	my $row = $table =~ /timer$/ ? 'ROW(t.due, t.tasks)' : 't';

	return "$row\::text COLLATE \"C\"";
}

# Every row of tq, but for messages, which the maintenance worker publishes meanwhile,
# and claim timers, which it moves.  The publisher inserts timers of deadlines, so
# it has to be done.
sub contents
{
	$node->poll_query_until($db, q{SELECT NOT EXISTS (SELECT FROM tq_internal.unpublished)})
		or die 'nothing is published';
	my @names = split /\n/, $node->safe_psql($db,
		"SELECT relname FROM pg_class WHERE relnamespace = 'tq_internal'::regnamespace AND relkind = 'r'
		AND relname !~ '^(message_|tick_|log_segment|activation\$|queue\$|worker\$|policy\$|claim_timer\$|queue_history\$|task_name_history\$|task_name_pass\$)' ORDER BY 1");

	return $node->safe_psql($db,
		join(';', map { "SELECT '$_', " . row_of($_) . " AS r FROM tq_internal.$_ AS t ORDER BY 2" } @names));
}

sub crash
{
	$node->stop('immediate');
	$node->start;
	return;
}

# ---- the life of a task, step by step ----

# Time is moved by hours, so the maintenance worker has nothing to do.
my $policy = q{{"retries": 1, "retryOn": ["intermittent-task", "claim-expired"], "lostRetries": 1, "retryBackoff": {"delay": 3600},
	"claimTimeout": 3600, "pendingTimeout": 36000, "deadLetter": true, "delay": 3600}};
my $claim = "SELECT FROM tq.claim_work('p/w', 'g', 'w')";
my $upkeep = 'SELECT FROM tq.upkeep()';

# What happens, at how many minutes, the statement, the task, what has become
# of it, and the letters.
my $two = 'two failed other 1';
my @life = (
	[ 'created with a delay', 0, "SELECT tq.enqueue('p/w', task_id => id('one'), deadline => '1 day', expires => '10 days', policy => '$policy')",
		"id('one')", 'pending 1: scheduled pending 0', $two ],
	[ 'released', 61, $upkeep, "id('one')", 'pending 1: scheduled pending 0', $two ],
	[ 'claimed', 61, $claim, "id('one')", 'running 1: scheduled running 0', $two ],
	[ 'reported, and retried', 62, q{SELECT tq.report_exception(id('one'), 0, 'intermittent-task', error => '{"message": "first"}')},
		"id('one')", 'pending 0: scheduled intermittent-task 0, task-retry pending 1', $two ],
	[ 'released after the retry', 123, $upkeep, "id('one')", 'pending 0: scheduled intermittent-task 0, task-retry pending 1', $two ],
	[ 'claimed again', 123, $claim, "id('one')", 'running 0: scheduled intermittent-task 0, task-retry running 1', $two ],
	[ 'lost', 190, $upkeep, "id('one')", 'pending 0: scheduled intermittent-task 0, task-retry claim-expired 1, retry pending 1', $two ],
	[ 'claimed after that', 190, $claim, "id('one')",
		'running 0: scheduled intermittent-task 0, task-retry claim-expired 1, retry running 1', $two ],
	[ 'deferred', 191, "SELECT tq.defer_task(id('one'), 2, '1 hour')", "id('one')",
		'pending 0: scheduled intermittent-task 0, task-retry claim-expired 1, retry pending 1', $two ],
	[ 'released after it was deferred', 252, $upkeep, "id('one')",
		'pending 0: scheduled intermittent-task 0, task-retry claim-expired 1, retry pending 1', $two ],
	[ 'claimed once more', 252, $claim, "id('one')",
		'running 0: scheduled intermittent-task 0, task-retry claim-expired 1, retry running 1', $two ],
	[ 'dead', 253, q{SELECT tq.report_exception(id('one'), 2, 'intermittent-task', error => '{"message": "last"}')}, "id('one')",
		'exception 0: scheduled intermittent-task 0, task-retry claim-expired 1, retry intermittent-task 1',
		"$two, one intermittent-task last 3" ],
	[ 'redriven by a rerun', 254, "SELECT tq.redrive(id('one'))", "id('one')",
		'pending 1: scheduled intermittent-task 0, task-retry claim-expired 1, retry intermittent-task 1, rerun pending 0', $two ],
	[ 'claimed after that', 255, $claim, "id('one')",
		'running 1: scheduled intermittent-task 0, task-retry claim-expired 1, retry intermittent-task 1, rerun running 0', $two ],
	[ 'dead again', 256, q{SELECT tq.report_failed(id('one'), 3, error => '{"message": "no"}')}, "id('one')",
		'failed 1: scheduled intermittent-task 0, task-retry claim-expired 1, retry intermittent-task 1, rerun failed 0',
		"$two, one failed no 4" ],
	[ 'redriven by a new task', 25 * 60, "SELECT tq.redrive(id('one'))", "heir('one')", 'pending 1: scheduled pending 0', $two ],
	[ 'released', 27 * 60, $upkeep, "heir('one')", 'pending 1: scheduled pending 0', $two ],
	[ 'pending for too long', 37 * 60, $upkeep, "heir('one')", 'exception 1: scheduled pending-timeout 0', "$two, heir pending-timeout 1" ],
	[ 'redriven by queue', 38 * 60, "SELECT tq.redrive_queue('p/w')", "heir('one')",
		'pending 1: scheduled pending-timeout 0, rerun pending 0', $two ],
	[ 'canceled', 38 * 60, "SELECT tq.cancel_task(heir('one'))", "heir('one')",
		'exception 1: scheduled pending-timeout 0, rerun canceled 0', $two ],
	[ 'expired', 30 * 1440, $upkeep, "id('two')", 'gone', $two ],
	[ 'redriven after it has expired', 30 * 1440, "SELECT tq.redrive(id('two'))", "heir('two')", 'pending 5: scheduled pending 0', '' ],
	[ 'completed with a result', 30 * 1440, q{SELECT tq.report_completed(task_id, run_id, result => '{"answer": 42}') FROM tq.claim_work('p/two', 'g', 'w')},
		"heir('two')", 'completed 5: scheduled completed 0', '' ]);

# Another one, whose letter is there all the time.
$node->safe_psql($db, q{
	SELECT tq.enqueue('p/two', task_id => id('two'), deadline => '1 day', expires => '1 day', policy => '{"deadLetter": true}');
	SELECT tq.report_failed(task_id, run_id, error => '{"message": "other"}') FROM tq.claim_work('p/two', 'g', 'w')});

foreach my $step (@life)
{
	my ($what, $minutes, $sql, $task, $line, $letters) = @$step;
	my $before = contents();
	my $session = $node->background_psql($db);

	# In the middle of it: what it wrote is on disk, and has not happened.
	$session->query_safe("SET tq.clock_offset = '$minutes min'; BEGIN; $sql");
	$node->safe_psql($db, 'CHECKPOINT');
	crash();
	eval { $session->quit };
	is(contents(), $before, "$what: a crash before it is committed undoes it");

	# After it.
	$node->safe_psql($db, "SET tq.clock_offset = '$minutes min'; $sql");
	my $after = contents();
	crash();
	is(contents(), $after, "$what: a crash after that loses nothing");
	is($node->safe_psql($db, "SELECT line($task)"), $line, "$what: the task");
	is($node->safe_psql($db, 'SELECT letters()'), $letters, "$what: the letters");
	is(violations($node, $db), '', "$what: the tables are consistent");
}
is($node->safe_psql($db, "SELECT tq.result(heir('two'))"), '{"answer": 42}', 'the result is there');
$node->safe_psql($db, "SET tq.clock_offset = '50 days'; $upkeep; $upkeep");
is(join(' ', map { $node->safe_psql($db, "SELECT count(*) FROM tq_internal.$_") } qw(task run run_detail delayed dead_letter)),
	'0 0 0 0 0', 'expiry deletes all rows of a task');

# ---- what becomes due while the server is down ----

# Name, policy, what is done to the task, what becomes of it; all within a second.
my @due = (
	[ 'delay',    '"delay": 1', '', 'pending 5: scheduled pending 0' ],
	[ 'backoff',  '"retryOn": ["failed"], "retryBackoff": {"delay": 1}', q{SELECT tq.report_failed(id('%s'), 0)},
		'pending 4: scheduled failed 0, failure-retry pending 1' ],
	[ 'deferred', '"retries": 2', q{SELECT tq.defer_task(id('%s'), 0, '1 s')}, 'pending 2: scheduled pending 0' ],
	[ 'lost',     '"lostRetries": 1, "claimTimeout": 1', 'SELECT', 'pending 5: scheduled claim-expired 0, retry pending 0' ],
	[ 'claim',    '"retries": 0, "claimTimeout": 1', 'SELECT', 'exception 0: scheduled claim-expired 0' ],
	[ 'pending',  '"pendingTimeout": 1', '', 'exception 5: scheduled pending-timeout 0' ],
	[ 'run',      '"runTimeout": 1, "claimTimeout": 1', 'SELECT', 'exception 5: scheduled run-timeout 0' ],
	[ 'total',    '"totalTimeout": 1', '', 'exception 5: scheduled deadline-exceeded 0' ],
	[ 'alert',    '"runTimeout": 1, "timeoutAlertOnly": true', 'SELECT', 'running 5: scheduled running 0' ]);
my @dead = qw(claim pending run total);

# All of it, as it is or will be.
my $delayed = 'SELECT count(*) FROM tq_internal.delayed WHERE visible_at <= clock_timestamp()';
my $alerts = "SELECT count(*) FROM tq.messages(exchange => 'task-alert')";
my $lines = q{SELECT line(id('} . join(q{')); SELECT line(id('}, map { $_->[0] } @due) . q{'))};
my $expected = join("\n", map { $_->[3] } @due);

foreach my $due (@due)
{
	my ($name, $keys, $do) = @$due;

	$node->safe_psql($db, "SELECT tq.enqueue('p/$name', task_id => id('$name'), deadline => '1 hour', policy => '{\"deadLetter\": true, $keys}');"
		  . ($do eq '' ? '' : "SELECT FROM tq.claim_work('p/$name', 'g', 'w');" . $do =~ s/%s/$name/r));
}
my $last = time + 1;
$node->stop('immediate');
while (time <= $last)
{
	usleep(50_000);
}
$node->start;
ok($node->poll_query_until($db, "$lines; $delayed; $alerts", "$expected\n0\n1"), 'the maintenance worker does what has become due');
is($node->safe_psql($db, $lines), $expected, 'each of it');
is($node->safe_psql($db, "SELECT task_id::text FROM tq_internal.dead_letter ORDER BY 1"),
	$node->safe_psql($db, "SELECT t FROM unnest(ARRAY[" . join(', ', map { "id('$_')::text" } @dead) . "]) AS t ORDER BY 1"),
	'with its letter');
is($node->safe_psql($db, "SELECT count(*) FROM tq_internal.dead_letter WHERE runs = runs(task_id)"), scalar @dead, 'that is whole');
my $after = contents();
crash();
wait_worker($node, $db);
my $id = enqueue($node, $db, "deadline => '100 ms'");
ok(wait_state($node, $db, $id, 'exception'), 'the maintenance worker runs again');
is($node->safe_psql($db, "$lines; $alerts"), "$expected\n1", 'and does nothing twice');
is(violations($node, $db), '', 'the tables are consistent');

# ---- crashes while much is due ----

# 300 tasks that are never claimed: three attempts each, a second and something
# apart.  The server is stopped again and again while the maintenance worker runs.
my $tasks = 300;
$node->safe_psql($db, qq{
	SELECT count(tq.enqueue('p/many', deadline => '1 hour', policy => '{"retries": 2, "retryOn": ["pending-timeout"],
		"retryBackoff": {"delay": 0.5, "jitter": 0.5}, "pendingTimeout": 0.5, "deadLetter": true, "delay": 0.5}'))
	FROM generate_series(1, $tasks)});
my $resolved = "SELECT count(*) FROM tq_internal.run r JOIN tq_internal.task t ON t.id = r.task JOIN tq_internal.queue q ON q.id = t.queue
	WHERE q.task_queue_id = 'p/many' AND r.state = 5";
foreach my $part (1 .. 5)
{
	my $some = $tasks * 3 * $part / 6;

	ok($node->poll_query_until($db, "SELECT ($resolved) >= $some"), "$some timeouts");
	crash();
}
ok($node->poll_query_until($db, "SELECT count(*) = $tasks FROM tq.list_dead_letters('p/many')"), 'every task becomes a dead letter');
is($node->safe_psql($db, "SELECT line(task_id), count(*) FROM tq.list_dead_letters('p/many') GROUP BY 1"),
	"exception 0: scheduled pending-timeout 0, retry pending-timeout 1, retry pending-timeout 2|$tasks", 'after three attempts');
is($node->safe_psql($db, "SELECT count(*) FROM tq.list_dead_letters('p/many') WHERE runs = runs(task_id) AND task = tq.task(task_id)"),
	$tasks, 'the letters are whole');
is($node->safe_psql($db, q{
		SELECT count(*) FROM tq.list_dead_letters('p/many') l, jsonb_array_elements(l.runs) AS run
		WHERE (run ->> 'resolved')::timestamptz < coalesce(run ->> 'visibleAt', run ->> 'scheduled')::timestamptz + '499 ms'}),
	0, 'no run before its time');
my $count = "SELECT count(*), count(DISTINCT concat(payload #>> '{status,taskId}', payload ->> 'runId'))
	FROM tq.messages(exchange => '%s', pattern => '#') WHERE payload #>> '{status,taskQueueId}' = 'p/many'";
ok($node->poll_query_until($db, sprintf($count, 'task-exception'), "$tasks|$tasks"), 'each resolution is published once');
is($node->safe_psql($db, sprintf($count, 'task-pending')), 3 * $tasks . '|' . 3 * $tasks, 'and each run');
is(violations($node, $db), '', 'the tables are consistent');

# And back: two sessions redrive them, and the server is stopped meanwhile.
my $session = $node->background_psql($db);
$session->query_safe("BEGIN; SELECT tq.redrive_queue('p/many', 100)");
is($node->safe_psql($db, "SELECT tq.redrive_queue('p/many', 100)"), 100, 'two sessions redrive');
crash();
eval { $session->quit };
is($node->safe_psql($db, "SELECT count(*) FROM tq.list_dead_letters('p/many')"), $tasks - 100, 'what was committed is redriven');
is($node->safe_psql($db, "SELECT tq.redrive_queue('p/many')"), $tasks - 100, 'what was not can be');
ok($node->poll_query_until($db, "SELECT count(*) = $tasks FROM tq.list_dead_letters('p/many')"), 'and becomes a dead letter again');
is($node->safe_psql($db, "SELECT line(task_id), count(*) FROM tq.list_dead_letters('p/many') GROUP BY 1"),
	'exception 0: scheduled pending-timeout 0, retry pending-timeout 1, retry pending-timeout 2, '
	  . "rerun pending-timeout 0, retry pending-timeout 1, retry pending-timeout 2|$tasks", 'after three attempts more');
is(violations($node, $db), '', 'the tables are consistent');
# ---- many sessions at once ----

# Tasks become dead letters, by reports and by deadlines that are just now over,
# while sessions redrive and rerun them: a dead task has a dead letter, or became
# one new task.
$node->safe_psql($db, q{
	CREATE FUNCTION again(dice int) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		dead tq.slugid;
	BEGIN
		SELECT l.task_id INTO dead FROM tq.list_dead_letters('p/all', tq.slugid(), 1) AS l;
		IF dead IS NULL THEN
			RETURN;
		ELSIF dice = 1 THEN
			PERFORM tq.redrive(dead);
		ELSE
			PERFORM tq.rerun_task(dead);
		END IF;
	EXCEPTION WHEN SQLSTATE 'TQ404' OR SQLSTATE 'TQ409' THEN
		NULL;
	END $$});
$node->pgbench(
	'-n -c 8 -j 2 -T 8', 0, [qr/number of transactions actually processed/], [qr/^$/], 'sessions make tasks and redrive them',
	{
		'060_make@4' => q{
			\set g random(1, 6)
			SELECT tq.enqueue('p/all', task_group_id => id('group' || :g), policy => '{"deadLetter": true, "retries": 0}',
				deadline => (50 + random() * 1000) * interval '1 ms', expires => random() * interval '1 day');
			SELECT count(*) FROM tq.claim_work('p/all', 'g', 'w', 5) AS c, LATERAL tq.resolve(ARRAY[c.task_id], ARRAY[c.run_id], 'failed')},
		'060_queue@2' => "\\set m random(1, 30)\nSELECT tq.redrive_queue('p/all', :m)",
		'060_single@2' => "\\set dice random(1, 2)\nSELECT again(:dice)"
	});
ok( $node->poll_query_until($db,
		"SELECT count(*) = 0 FROM tq.task_details WHERE task_queue_id = 'p/all' AND state NOT IN ('failed', 'exception')"),
	'every task becomes a dead letter');
is($node->safe_psql($db, q{
		SET jit = off;
		WITH heir AS (SELECT t.extra ->> 'redriveOf' AS task, count(*) FROM tq_internal.task t WHERE t.extra ? 'redriveOf' GROUP BY 1)
		SELECT coalesce(h.count, 0) + CASE WHEN l.task_id IS NULL THEN 0 ELSE 1 END, count(*) > 0
		FROM tq.task_details o LEFT JOIN heir h ON h.task = o.task_id::text LEFT JOIN tq_internal.dead_letter l ON l.task_id::text = o.task_id::text
		WHERE o.task_queue_id = 'p/all' GROUP BY 1}),
	'1|t', 'each has a letter, or became one new task');
is($node->safe_psql($db, "SELECT count(*) FROM tq.list_dead_letters('p/all', max => 1000) WHERE runs <> runs(task_id)"),
	0, 'the letters are of the last end');
is(violations($node, $db), '', 'the tables are consistent');

unlike(slurp_file($node->logfile), qr/deadlock detected/, 'no deadlock');
unlike(slurp_file($node->logfile), qr/PANIC:|TRAP:|was terminated by signal/, 'nothing crashed by itself');
$node->stop;

done_testing();
