# A clock that was ahead, and is set back: the clocks of all processes go to and fro by
# an hour and a day under a load with limits, keys, gates, retries, cron and retention, and
# what is left in the end is what a clock that stood still leaves (doc/internals.md, "Times").
#
# TQ_CLOCK_SEED=n repeats a load.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Time::HiRes qw(time usleep);
use Tq;

my $seed = $ENV{TQ_CLOCK_SEED} // int(rand(2**31));
note("TQ_CLOCK_SEED=$seed");
my $node = new_node('clock', "tq.claim_timeout = '2s'", "tq.message_retention = '1s'", "cron.database_name = 'elsewhere'", 'autovacuum = off');

# Whether the maintenance worker of a database has the clock of new sessions.
my $is_shared = q{SELECT abs(extract(epoch FROM a.last_at - tq_internal.clock_now())) < 10 FROM tq.maintenance_overview a WHERE a.step = 'turn'};

# Sets the clocks of all processes, by a setting of the server.
sub set_clock
{
	my ($db, $offset) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET tq.clock_offset = '$offset'");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('tq.clock_offset') = '$offset'") or die 'no reload';
	$node->poll_query_until($db, $is_shared) or die 'the maintenance worker has another clock';
	return;
}

# A database, in which the queues have limits.
sub begin
{
	my ($db) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, q{CREATE EXTENSION tq;
		SELECT tq.set_queue('c/limited', '{"concurrentLimit": 3}'), tq.set_queue('c/rate', '{"rateCount": 40, "rateInterval": 1}'),
			tq.set_queue('c/gate', '{"keyConcurrentLimit": 1, "keyRateCount": 20, "keyRateInterval": 1}'), tq.set_queue('c/kept', '{"retainCompleted": 1, "retainFailed": 1}'),
			tq.set_queue('c/aged', '{"agingInterval": 1}');
		SELECT tq.schedule_cron('minutely', '* * * * *', 'c/cron', overlap => 'replace')}) ;
	wait_worker($node, $db);
	return;
}

my @queues = map { "c/$_" } qw(plain limited rate gate kept aged cron);
my %policy = (
	plain => '{"retryBackoff": {"delay": 1}, "lostRetries": 9}', limited => '{"serialKey": "k", "lostRetries": 9}',
	rate => '{"runTimeout": 400000, "lostRetries": 9}', gate => '{"concurrencyKey": "k", "lostRetries": 9}',
	kept => '{"lostRetries": 9}', aged => '{"pendingTimeout": 400000, "lostRetries": 9}');

# Creates tasks of a round: their names say what becomes of them.
sub create
{
	my ($db, $round, $random) = @_;
	my @calls;

	for my $queue (sort keys %policy)
	{
		for my $n (0 .. 2)
		{
			my $delay = $random->(3) == 0 ? ", delay => '1 s'" : '';

			push @calls, sprintf(q{tq.enqueue('c/%s', name => '%s %d-%d %s', deadline => '4 days', retries => 3, policy => '%s'%s)},
				$queue, $queue, $round, $n, (qw(good good bad flaky lost))[ $random->(5) ], $policy{$queue}, $delay);
		}
	}
	$node->safe_psql($db, 'SELECT ' . join(', ', @calls));
	$node->safe_psql($db, q{SELECT tq_internal.fire_cron('minutely')});
	return;
}

# Claims from all queues, and reports what the names say.  A lost run is reported when it
# was lost once, and a flaky one fails once.
sub work
{
	my ($db) = @_;

	$node->safe_psql($db, q{
		SELECT CASE WHEN how = 'lost' AND c.run_id = 0 THEN NULL
			WHEN how = 'bad' THEN tq.report_failed(c.task_id, c.run_id)
			WHEN how = 'flaky' AND c.run_id = 0 THEN tq.report_exception(c.task_id, c.run_id, 'worker-shutdown')
			ELSE tq.report_completed(c.task_id, c.run_id) END
		FROM (SELECT x.task_id, x.run_id, split_part(tq.task(x.task_id) #>> '{metadata,name}', ' ', 3) AS how
			FROM unnest(string_to_array('} . join(',', @queues) . q{', ',')) AS q (name), tq.claim_work(q.name, 'g', 'w', 5) AS x OFFSET 0) AS c});
	return;
}

# What is left: no unresolved task, and of the others how they ended.
my $left = q{SELECT string_agg(format('%s: %s', coalesce(nullif(t.name, '-'), 'cron'), d.state), E'\n' ORDER BY t.name COLLATE "C")
	FROM tq.task_details d CROSS JOIN LATERAL (SELECT tq.task(d.task_id) #>> '{metadata,name}' AS name) AS t
	WHERE d.task_queue_id NOT IN ('c/kept', 'c/cron')};
my $unresolved = q{SELECT count(*) FROM tq.task_overview WHERE state IN ('unscheduled', 'pending', 'running')};

# Works until nothing is left to do; returns what is left, and how long it took.
sub drain
{
	my ($db) = @_;
	my $began = time;

	until ($node->safe_psql($db, $unresolved) eq '0' || time > $began + 90)
	{
		work($db);
		usleep(200_000);
	}
	is($node->safe_psql($db, $unresolved), '0', "$db: all is done") or diag($node->safe_psql($db, 'SELECT * FROM tq.task_details WHERE resolved IS NULL'));
	return ($node->safe_psql($db, $left), time - $began);
}

# A generator of its own, so that each run has the same load.
sub generator
{
	my $state = $seed;

	return sub { $state = ($state * 1103515245 + 12345) % 2**31; return ($state >> 16) % $_[0]; };
}

my %ends;
my %seconds = ('-1 hour' => -3600, '0' => 0, '1 hour' => 3600, '1 day' => 86400);
foreach my $run ([ still => ('0') x 7 ], [ leaps => '0', '1 hour', '0', '1 day', '-1 hour', '1 day', '0' ])
{
	my ($db, @offsets) = @$run;
	my $random = generator();
	my $round = 0;
	my $last = '0';

	begin($db);
	foreach my $offset (@offsets)
	{
		my $worker = worker_in($node, $db);

		set_clock($db, $offset) if $db eq 'leaps';
		ok(wait_worker($node, $db, $worker), "$db: from $last to $offset: the maintenance worker starts again") if $seconds{$offset} < $seconds{$last};
		$last = $offset;
		create($db, $round++, $random);
		work($db) for 1 .. 3;
	}
	my ($end, $seconds) = drain($db);
	$ends{$db} = $end;
	cmp_ok($seconds, '<', 60, "$db: within a minute");
	ok($node->poll_query_until($db, q{SELECT count(*) < 0 FROM tq.upkeep() UNION SELECT NOT EXISTS (SELECT FROM tq.task_overview WHERE task_queue_id = 'c/kept') ORDER BY 1 DESC LIMIT 1}),
		"$db: retention has deleted what it should") or diag($node->safe_psql($db, q{
			SELECT clock_timestamp(), t.created, t.deadline, t.expires_given, r.state, r.started, r.resolved, r.taken_until FROM tq_internal.task t JOIN tq_internal.run r ON r.task = t.id
			WHERE t.queue = (SELECT id FROM tq_internal.queue WHERE task_queue_id = 'c/kept');
			SELECT * FROM tq_internal.log_segment; SELECT last_id, published, segment, messages, segments, part_of, unsent FROM tq_internal.tick ORDER BY 1;
			SELECT * FROM tq.maintenance_overview}));
	ok($node->poll_query_until($db, q{SELECT ok FROM tq.health() WHERE name = 'clock'}), "$db: no stored time is ahead");
	is($node->safe_psql($db, q{SELECT string_agg(name || ': ' || detail, '; ') FROM tq.health() WHERE name IN ('maintenance', 'steps', 'postponed', 'gates', 'lateness', 'publisher') AND NOT ok}),
		'', "$db: maintenance is well");
	is(violations($node, $db), '', "$db: invariants hold");
	is($node->safe_psql($db, 'SELECT count(*) FROM tq.queue_stats WHERE running <> 0 OR pending <> 0 OR delayed <> 0'), '0', "$db: no counter is left");
	is($node->safe_psql($db, q{SELECT count(*) FROM tq_internal.gate_member m WHERE m.state <> 3}), '0', "$db: no key is held");
}
is($ends{leaps}, $ends{still}, 'the same ends as of a clock that stood still');

# The clock of one session, as tests have it: nothing is set back for half a minute, not
# by a maintenance worker that begins either, which would look at once.
my $db = 'leaps';
my $task = $node->safe_psql($db, q{
	SELECT tq.enqueue('c/alone', deadline => '4 days') AS task \gset
	SET tq.clock_offset = '1 day';
	SELECT task_id FROM tq.claim_work('c/alone', 'g', 'w')});
my $old = worker_in($node, $db);
$node->safe_psql($db, "SELECT pg_terminate_backend($old)");
ok(wait_worker($node, $db, $old), 'another maintenance worker');
my $retained = q{SELECT batches FROM tq.maintenance_overview WHERE step = 'retain'};
my $runs = $node->safe_psql($db, $retained);
ok($node->poll_query_until($db, "SELECT x.batches > $runs + 2 FROM ($retained) AS x, tq.enqueue('c/other')"), 'a session has another clock: maintenance goes on');
is($node->safe_psql($db, qq{SELECT tq.status('$task') ->> 'state', h.ok, h.detail ~ 'by 23:59:' FROM tq.health() h WHERE h.name = 'clock'}), 'running|f|t', 'and sets nothing back');
ok($node->poll_query_until($db, qq{SELECT h.ok AND tq.status('$task') ->> 'state' = 'pending' FROM tq.health() h WHERE h.name = 'clock'}), 'but later, when its claim expires');

unlike(slurp_file($node->logfile), qr/PANIC:|was terminated by signal|TRAP:/, 'nothing crashed');
$node->stop;
done_testing();
