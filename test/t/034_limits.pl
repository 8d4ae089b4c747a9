# Limits of queues hold under concurrent clients, savepoints, two-phase commit, a
# crash, a restart, a promotion; no slot is lost, and none is free without a
# wake-up (doc/spec/policy.md 6).
#
# TQ_RATE_S=60 has the rate measured for a minute, with the bound of the goals.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Time::HiRes qw(time);
use Tq qw(:DEFAULT start finish);

my $SOON = 8;    # a waiter looks by itself after 10 seconds
my $db = 'postgres';
my $rate_s = $ENV{TQ_RATE_S} // 4;

my $node = new_node('limits', 'max_connections = 60', 'max_prepared_transactions = 20', 'autovacuum = off', 'restart_after_crash = on',
	'tq.counted_queues = 20');

sub psql { my ($where, $sql) = @_; return $where->safe_psql($db, $sql); }

# SQLSTATE of a statement, or ok.
sub answer
{
	my ($where, $sql) = @_;
	my ($status, $out, $err) = $where->psql($db, "\\set VERBOSITY sqlstate\n$sql;");

	return $err =~ /ERROR: +(\S+)/ ? $1 : $status == 0 ? 'ok' : "psql: $err";
}

sub set { my ($where, $queue, $settings) = @_; return psql($where, "SELECT tq.set_queue('$queue', '$settings')"); }
sub fill { my ($where, $queue, $n) = @_; return psql($where, "SELECT count(*) FROM unnest(tq.enqueue_tasks('$queue', array_fill('{}'::jsonb, '{$n}'), retries => 40))"); }
sub claim { my ($queue, $worker, $n, $wait) = @_; return "SELECT count(*) FROM tq.claim_work('$queue', 'g', '$worker', " . ($n // 1) . ', wait => ' . "'" . ($wait // '0') . "')"; }
sub claims { my ($where, @args) = @_; return psql($where, claim(@args)); }
sub running { my ($where, $queue) = @_; return psql($where, "SELECT count(*) FROM tq_internal.run r JOIN tq_internal.task t ON t.id = r.task JOIN tq_internal.queue q ON q.id = t.queue WHERE r.state = 2 AND q.task_queue_id = '$queue'"); }

# Completes up to n running runs of a queue, in a statement.
sub end { my ($queue, $n) = @_; return "SELECT count(*) FROM (SELECT array_agg(task_id) AS t, array_agg(run_id) AS r FROM (SELECT task_id, run_id FROM tq.list_claimed_tasks('$queue') LIMIT $n) AS c HAVING count(*) > 0) AS c, tq.resolve(t, r, 'completed')"; }


# It is used throughout the test: its time is that of one query.
sub session
{
	my ($where) = @_;
	my $session = $where->background_psql($db, on_error_stop => 1);

	$session->set_query_timer_restart;
	return $session;
}

sub is_woken
{
	my ($session, $expected, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(finish($session), $expected, $what);
	cmp_ok(time - $session->{begun}, '<', $SOON, "$what, by a wake-up");
	return;
}

sub asleep
{
	my ($where, $n) = @_;

	$where->poll_query_until($db, "SELECT count(*) = $n FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND backend_type = 'client backend'")
	  or die "$n sessions do not wait";
	return;
}

# Waits until a session waits for a lock.
sub blocked
{
	my ($where) = @_;

	$where->poll_query_until($db, "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND backend_type = 'client backend'")
	  or die 'no session waits for a lock';
	return;
}

# Runs scripts of pgbench side by side; returns what it has said if it failed.
sub load
{
	my ($where, $clients, $time, @scripts) = @_;
	my ($out, $err) = ('', '');
	my $i = 0;
	my @files = map { my $file = $where->basedir . '/load' . $i++ . '.sql'; open my $f, '>', $file or die $!; print $f $_; close $f; ('-f', $file) } @scripts;

	return '' if IPC::Run::run([ 'pgbench', '-n', '-c', $clients, '-j', '2', $time =~ /^t/ ? ('-t', substr $time, 1) : ('-T', $time), @files, '-h', $where->host, '-p', $where->port, $db ], '>', \$out, '2>', \$err);
	return "$out$err";
}

psql($node, 'CREATE EXTENSION tq');
psql($node, q{SELECT tq.enqueue('l/first')});
wait_worker($node, $db);

# ---- concurrent clients ----

my $limit = 3;
set($node, 'l/load', qq({"concurrentLimit": $limit}));
fill($node, 'l/load', 12000);
psql($node, q{CREATE TABLE above (n int, at timestamptz DEFAULT clock_timestamp())});

# Where nothing is resolved between two looks at tables, one snapshot counts.
my $check = qq{SELECT 1 / (count(*) <= $limit)::int FROM tq_internal.run WHERE state = 2;\n};
my $mine = q{SELECT tq.resolve(array_agg(task_id), array_agg(run_id), 'completed') FROM tq.list_claimed_tasks('l/load') WHERE worker_id = 'w:client_id' HAVING count(*) > 0} . ";\n";
my $take = q{SELECT count(*) FROM tq.claim_work('l/load', 'g', 'w:client_id', :n)} . ";\n";
my $n = "\\set n random(1, 4)\n";
my @mix = (
	"$n$take$check$mine$check",
	"${n}BEGIN;\n${take}ROLLBACK;\n$check",
	"${n}BEGIN;\n${take}SAVEPOINT a;\n${take}ROLLBACK TO a;\n${take}SAVEPOINT b;\n${take}RELEASE b;\nCOMMIT;\n$check$mine",
	"${n}BEGIN;\n${mine}${take}COMMIT;\n$check",
	"${n}BEGIN;\n${take}SAVEPOINT a;\n${mine}ROLLBACK TO a;\n${take}${mine}COMMIT;\n$check",
	"${n}BEGIN;\n${take}PREPARE TRANSACTION 'p:client_id';\n${check}COMMIT PREPARED 'p:client_id';\n$check$mine",
	"${n}BEGIN;\n${mine}${take}PREPARE TRANSACTION 'p:client_id';\n${check}ROLLBACK PREPARED 'p:client_id';\n$check$mine");
my $sampler = session($node);
$sampler->query_until(qr/begun/, qq{\\echo begun
	DO \$\$ DECLARE most int := 0; now int; BEGIN
		WHILE NOT EXISTS (SELECT FROM pg_tables WHERE tablename = 'done') LOOP
			SELECT count(*) INTO now FROM tq_internal.run WHERE state = 2;
			most := greatest(most, now);
		END LOOP;
		INSERT INTO above VALUES (most);
	END \$\$;
	\\echo ended
});
is(load($node, 8, 't400', @mix), '', 'eight clients: at no commit more than the limit run');
psql($node, 'CREATE TABLE done ()');
$sampler->query_until(qr/^ended$/m, '');
my $most = psql($node, 'SELECT n FROM above');
cmp_ok($most, '<=', $limit, 'nor at any other time');
cmp_ok($most, '>=', 2, 'although they did at the same time');
psql($node, end('l/load', 10));
is(claims($node, 'l/load', 'w', 10), $limit, 'no slot is lost');
is(claims($node, 'l/load', 'w', 10), 0, 'none is left over');
psql($node, end('l/load', 10));

# ---- rows that a client counts ----

# Where no worker has counted the rows, the call that needs a limit does.  It
# waits here behind its snapshot; a claim that another session commits meanwhile
# is counted by that session alone.
{
	my $uncounted = 'uncounted';

	psql($node, "CREATE DATABASE $uncounted");
	psql($node, "ALTER DATABASE $uncounted SET tq.maintenance = off");
	$node->safe_psql($uncounted, q{CREATE EXTENSION tq; SELECT tq.enqueue('l/before')});
	my $lock    = $node->background_psql($uncounted, on_error_stop => 1);
	my $counter = $node->background_psql($uncounted, on_error_stop => 1);
	$lock->query_safe('BEGIN; LOCK TABLE tq_internal.delayed IN ACCESS EXCLUSIVE MODE');
	start($counter, q{SELECT tq.set_queue('l/counted', '{"concurrentLimit": 2}')});
	blocked($node);
	is($node->safe_psql($uncounted, claim('l/before', 'w')), 1, 'a claim during a count');
	$lock->query_safe('COMMIT');
	finish($counter);
	is($node->safe_psql($uncounted, q{SELECT pending, running FROM tq.queue_stats WHERE task_queue_id = 'l/before'}), '0|1', 'is counted once');
	is($node->safe_psql($uncounted, 'SELECT source FROM tq_internal.count_state()'), 'memory', 'by counters');
	$_->quit for $lock, $counter;
}

# ---- two phases ----

set($node, 'l/two', '{"concurrentLimit": 2}');
fill($node, 'l/two', 20);
psql($node, 'BEGIN; ' . claim('l/two', 'p') . "; PREPARE TRANSACTION 'p'");
is(claims($node, 'l/two', 'w', 5), 1, 'a prepared claim has its slot');
my $a = session($node);
start($a, claim('l/two', 'a', 5, '30 s'));
asleep($node, 1);
psql($node, "ROLLBACK PREPARED 'p'");
is_woken($a, 1, 'ROLLBACK PREPARED of a claim frees it');
psql($node, 'BEGIN; ' . end('l/two', 1) . "; PREPARE TRANSACTION 'p'");
is(claims($node, 'l/two', 'w', 5), 0, 'a prepared end frees none');
start($a, claim('l/two', 'a', 5, '30 s'));
asleep($node, 1);
psql($node, "COMMIT PREPARED 'p'");
is_woken($a, 1, 'COMMIT PREPARED does');
psql($node, end('l/two', 10));

# ---- a slot that is free again wakes a waiter ----

# A claim that takes more slots than it uses, because the rate allows fewer.
set($node, 'l/back', '{"concurrentLimit": 5, "rateCount": 1, "rateInterval": "1 s"}');
fill($node, 'l/back', 10);
my $b = session($node);
my $locker = session($node);
$locker->query_safe('BEGIN; LOCK TABLE tq_internal.pending IN ACCESS EXCLUSIVE MODE');
start($a, claim('l/back', 'a', 5));
blocked($node);
start($b, claim('l/back', 'b', 1, '30 s'));
asleep($node, 1);
$locker->query_safe('COMMIT');
is(finish($a), 1, 'a claim that gives back slots');
is_woken($b, 1, 'one that was refused meanwhile gets one');

# A transaction that takes more than it ends, and ends some.
set($node, 'l/net', '{"concurrentLimit": 3}');
fill($node, 'l/net', 10);
is(claims($node, 'l/net', 'w', 2), 2, 'two of three slots are taken');
$a->query_safe('BEGIN');
is($a->query_safe(claim('l/net', 'a', 1)), 1, 'the third, by a transaction');
start($b, claim('l/net', 'b', 1, '30 s'));
asleep($node, 1);
$a->query_safe(end('l/net', 1) . '; COMMIT');
is_woken($b, 1, 'which ends another one: a slot is free after its commit');
psql($node, end('l/net', 10));

# One that neither adds nor frees any wakes no waiter in vain.
is(claims($node, 'l/net', 'w', 3), 3, 'all slots are taken');
start($b, claim('l/net', 'b', 1, '30 s'));
asleep($node, 1);
$a->query_safe('BEGIN; ' . end('l/net', 1) . '; ' . claim('l/net', 'a', 1) . '; COMMIT');
asleep($node, 1);
is(running($node, 'l/net'), 3, 'an end and a claim in one transaction keep the slot');
psql($node, end('l/net', 1));
is_woken($b, 1, 'the end alone frees it');

# ---- the rate ----

# Returns how many of the claims of a queue are one too many in an interval.
sub excess
{
	my ($where, $queue, $count, $interval) = @_;

	return psql($where, qq{
		SELECT coalesce(max(n), 0) - $count FROM (SELECT count(*) OVER (ORDER BY r.started RANGE BETWEEN CURRENT ROW AND interval '$interval' - interval '1 us' FOLLOWING) AS n
			FROM tq_internal.run r JOIN tq_internal.task t ON t.id = r.task JOIN tq_internal.queue q ON q.id = t.queue WHERE q.task_queue_id = '$queue') AS w});
}

# A claim that has to wait between its permission and its start.
set($node, 'l/stall', '{"rateCount": 1, "rateInterval": "1500 ms"}');
fill($node, 'l/stall', 10);
$locker->query_safe('BEGIN; LOCK TABLE tq_internal.pending IN ACCESS EXCLUSIVE MODE');
start($a, claim('l/stall', 'a', 1));
blocked($node);
$node->poll_query_until($db, "SELECT clock_timestamp() > query_start + interval '1 s' FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND backend_type = 'client backend'");
$locker->query_safe('COMMIT');
is(finish($a), 1, 'a claim that had to wait for a second');
is(claims($node, 'l/stall', 'b', 1, '20 s'), 1, 'and the next one');
is(excess($node, 'l/stall', 1, '1500 ms'), 0, 'an interval lies between their starts');

my $interval_ms = 200;
my $count = 50;
set($node, 'l/rate', qq({"rateCount": $count, "rateInterval": "$interval_ms ms"}));
fill($node, 'l/rate', int(1.2 * $count * $rate_s * 1000 / $interval_ms));
is(load($node, 16, $rate_s, "\\set n random(1, 8)\n" . q{SELECT count(*) FROM tq.claim_work('l/rate', 'g', 'w:client_id', :n, wait => '1 s')} . ";\n"),
	'', '16 clients, a rate');
cmp_ok(excess($node, 'l/rate', $count, "$interval_ms ms"), '<=', 0, 'never more claims in an interval');
my $used = psql($node, qq{SELECT round(count(*) / (extract(epoch FROM max(r.started) - min(r.started)) * 1000 / $interval_ms * $count), 4)
	FROM tq_internal.run r JOIN tq_internal.task t ON t.id = r.task JOIN tq_internal.queue q ON q.id = t.queue WHERE q.task_queue_id = 'l/rate'});
note("$used of the rate was used in $rate_s s");
cmp_ok($used, '>=', $rate_s >= 60 ? 0.97 : 0.8, 'and nearly as many as there may be');

# ---- a subtransaction in which the extension is another one ----

$a->query_safe("DELETE FROM tq_internal.queue_settings; DROP TABLE done, above");
set($node, 'l/drop', '{"concurrentLimit": 2}');
fill($node, 'l/drop', 10);
psql($node, 'BEGIN; ' . claim('l/drop', 'w', 2) . "; DROP EXTENSION tq; CREATE EXTENSION tq; SELECT tq.enqueue('l/other'); ROLLBACK");
is(claims($node, 'l/drop', 'w', 5), 2, 'DROP and CREATE EXTENSION rolled back: no slot is lost');
psql($node, end('l/drop', 5));
psql($node, 'BEGIN; ' . claim('l/drop', 'w', 1) . "; SAVEPOINT s; DROP EXTENSION tq; CREATE EXTENSION tq; SELECT tq.enqueue('l/other'); ROLLBACK TO s; COMMIT");
is(claims($node, 'l/drop', 'w', 5), 1, 'also by a savepoint: the claim before it counts');
psql($node, end('l/drop', 5));

# ---- a crash ----

set($node, 'l/crash', '{"concurrentLimit": 4, "claimTimeout": "3 s"}');
set($node, 'l/window', '{"rateCount": 3, "rateInterval": "1 hour"}');
fill($node, 'l/crash', 40);
fill($node, 'l/window', 10);
is(claims($node, 'l/crash', 'w', 10), 4, 'all slots are taken');
is(claims($node, 'l/window', 'w', 2), 2, 'two claims of an interval');
is(psql($node, 'BEGIN; ' . claim('l/window', 'w', 5) . '; ROLLBACK'), 1, 'one that is rolled back');
psql($node, 'CHECKPOINT');
my $worker = worker_in($node, $db);
kill 'KILL', $a->query_safe('SELECT pg_backend_pid()');
ok(wait_worker($node, $db, $worker), 'the server starts again after a crash');
eval { $_->quit } foreach $a, $b, $locker, $sampler;
is(claims($node, 'l/window', 'w', 5, '20 s'), 1, 'the claims of the interval are counted, but for those that were rolled back');
cmp_ok(running($node, 'l/crash'), '<=', 4, 'no more run than the limit');
$a = session($node);
start($a, claim('l/crash', 'again', 10, '30 s'));
is(finish($a) > 0, 1, 'the slots of the lost workers are free when their claims expire');
ok($node->poll_query_until($db, "SELECT count(*) = 0 FROM tq_internal.run r JOIN tq_internal.task t ON t.id = r.task JOIN tq_internal.queue q ON q.id = t.queue JOIN tq_internal.worker w ON w.id = r.worker WHERE r.state = 2 AND q.task_queue_id = 'l/crash' AND w.worker_id = 'w'"),
	'all of them');
cmp_ok(running($node, 'l/crash'), '<=', 4, 'the limit holds');

# ---- a restart, with a prepared claim ----

set($node, 'l/crash', '{"claimTimeout": null}');
psql($node, end('l/crash', 10));
# What another application prepares stops nothing: not even what has changed too many groups to be kept.
psql($node, "BEGIN; SELECT tq.enqueue('l/other', task_group_id => tq.slugid()) FROM generate_series(1, 40); PREPARE TRANSACTION 'wide'");
is(claims($node, 'l/crash', 'w', 1), 1, 'a prepared transaction with many groups stops no queue with limits');
psql($node, "ROLLBACK PREPARED 'wide'");
psql($node, end('l/crash', 10));
psql($node, "CREATE ROLE guest; SET ROLE guest; BEGIN; SELECT pg_current_xact_id(), tq.current_scopes(); PREPARE TRANSACTION 'stranger'");
psql($node, 'BEGIN; ' . claim('l/crash', 'p', 2) . "; PREPARE TRANSACTION 'p'");
psql($node, 'BEGIN; ' . claim('l/crash', 'q', 1) . "; PREPARE TRANSACTION 'q'");
$a->quit;
$node->restart;
is(claims($node, 'l/crash', 'w', 10, '300 ms'), 0, 'nothing is handed out while a claim from before the start is prepared');
is(answer($node, "SELECT tq.set_queue('l/crash', '{\"maxPending\": 1000}')"), 'ok', 'a setting can be changed');
is(answer($node, "SELECT tq.enqueue('l/crash')"), '55000', 'nor is a task created where that has a limit');
psql($node, "COMMIT PREPARED 'p'");
is(claims($node, 'l/crash', 'w', 10, '300 ms'), 0, 'nor while there is another');
$a = session($node);
start($a, claim('l/crash', 'w', 10, '30 s'));
asleep($node, 1);
psql($node, "ROLLBACK PREPARED 'q'");
is_woken($a, 2, 'after their ends, two of four run');
is(running($node, 'l/crash'), 4, 'as they should');
is(answer($node, "SELECT tq.enqueue('l/crash')"), 'ok', 'tasks are created again');
psql($node, end('l/crash', 10));
psql($node, "ROLLBACK PREPARED 'stranger'");

# ---- a promotion ----

is(claims($node, 'l/crash', 'w', 3), 3, 'three of four run');
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('limits_standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
$a->quit;
$node->stop;
$standby->promote;
is(claims($standby, 'l/crash', 'w', 10, '20 s'), 1, 'promoted: one slot is left');
is(running($standby, 'l/crash'), 4, 'four run');
is(claims($standby, 'l/window', 'w', 5, '300 ms'), 0, 'the claims of the interval are counted');
psql($standby, end('l/crash', 10));
is(claims($standby, 'l/crash', 'w', 10), 4, 'four slots');

# ---- DROP and CREATE EXTENSION ----

psql($standby, 'DROP EXTENSION tq CASCADE; CREATE EXTENSION tq');
foreach my $i (1 .. 25)
{
	psql($standby, q{DROP EXTENSION tq; CREATE EXTENSION tq}) if $i % 5 == 0;
	set($standby, 'l/window', '{"rateCount": 3, "rateInterval": "1 hour", "concurrentLimit": 5}');
	psql($standby, q{SELECT tq.enqueue('l/window')});
	psql($standby, claim('l/window', 'w', 1));
}
fill($standby, 'l/window', 10);
psql($standby, q{DROP EXTENSION tq; CREATE EXTENSION tq});
set($standby, 'l/window', '{"rateCount": 3, "rateInterval": "1 hour", "concurrentLimit": 2}');
fill($standby, 'l/window', 10);
is(claims($standby, 'l/window', 'w', 10, '5 s'), 2, 'a new extension has slots and claims of its own');
psql($standby, end('l/window', 10));
is(claims($standby, 'l/window', 'w', 10), 1, 'and an interval of its own');

# ---- more queues than tq.counted_queues ----

psql($standby, 'SELECT tq.enqueue(format(\'l/many%s\', n), deadline => \'1 day\') FROM generate_series(1, 30) AS n');
is(claims($standby, 'l/many1', 'w', 1), 1, 'queues without limits have no need of counters');
is(psql($standby, 'SELECT source FROM tq_internal.count_state()'), 'tables', 'rows are counted while some queues have no counters');
psql($standby, "SET tq.clock_offset = '$_'; SELECT tq.upkeep()") foreach '30 days', '800 days', '830 days', '860 days';
cmp_ok(psql($standby, q{SELECT count(*) FROM tq_internal.queue}), '<', 20, 'queues expire');
ok($standby->poll_query_until($db, q{SELECT source = 'memory' FROM tq_internal.count_state()}), 'when there is room again, all have counters');
is(answer($standby, "SELECT tq.set_queue('l/one_more', '{\"concurrentLimit\": 1}')"), 'ok', 'and may have limits');
# What a transaction took that was rolled back is given back.
my $burn = q{SELECT tq.set_queue(format('l/burnt%s', n), '{"concurrentLimit": 1}') FROM generate_series(1, 30) AS n};
is(answer($standby, $burn), '53400', 'more limits than there is room for');
psql($standby, 'BEGIN; ' . $burn =~ s/30/5/r . '; SAVEPOINT s; ' . $burn =~ s/1, 30/6, 9/r . '; ROLLBACK TO s; ROLLBACK');
is(answer($standby, "BEGIN; " . $burn =~ s/30/9/r . "; PREPARE TRANSACTION 'burnt'"), 'ok', 'a prepared one');
psql($standby, "ROLLBACK PREPARED 'burnt'");
is(answer($standby, q{SELECT tq.set_queue('l/unburnt', '{"concurrentLimit": 1}'), tq.set_queue('l/unburnt', '{"concurrentLimit": null}')}), 'ok', 'there is room again');
my $counted = psql($standby, q{SELECT count(*) FROM tq_internal.queue});
is(psql($standby, 'BEGIN; ' . $burn =~ s/30/20 - $counted/er . '; SELECT count(*) FROM tq_internal.queue; ROLLBACK') =~ /^20$/m, 1, 'as much as before');

# What is kept of a queue's rate goes with the queue, or once an interval has passed in which it handed out nothing.
my $room = 20 - psql($standby, q{SELECT count(*) FROM tq_internal.queue});
my $rated = sub {
	my ($prefix, $from, $to, $interval) = @_;

	psql($standby, "SELECT tq.set_queue(format('l/$prefix%s', n), '{\"rateCount\": 1, \"rateInterval\": \"$interval\"}'), tq.enqueue(format('l/$prefix%s', n)) FROM generate_series($from, $to) AS n");
	return join ' ', map { claims($standby, "l/$prefix$_", 'w', 5) } $from .. $to;
};
is($rated->('rated', 1, $room, '1 hour'), join(' ', (1) x $room), 'as many queues with a rate as there is room for');
psql($standby, q{SELECT tq.cancel_task(task_id) FROM tq.task_overview WHERE task_queue_id ~ '^l/rated'});
psql($standby, qq{SELECT tq.set_queue(format('l/rated%s', n), '{"rateCount": null, "rateInterval": null}') FROM generate_series(1, $room) AS n});
psql($standby, "SET tq.clock_offset = '$_ days'; SELECT tq.upkeep()") foreach map { 1700 + 30 * $_ } 0 .. 8;
is(psql($standby, q{SELECT count(*) FROM tq_internal.queue WHERE task_queue_id ~ '^l/rated'}), 0, 'they expire');
is($rated->('later', 1, $room, '1 s'), join(' ', (1) x $room), 'and others have room for theirs');
psql($standby, "SELECT tq.set_queue(format('l/later%s', n), '{\"rateCount\": null, \"rateInterval\": null}') FROM generate_series(1, $room) AS n");
fill($standby, 'l/window', 1);

# ---- without shared memory ----

$standby->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$standby->restart;
is(answer($standby, "SELECT tq.set_queue('l/new', '{\"concurrentLimit\": 1}')"), '55000', 'without preload: no limit can be set');
is(answer($standby, "SELECT tq.set_queue('l/new', '{\"rateCount\": 1, \"rateInterval\": 1}')"), '55000', 'nor a rate');
is(answer($standby, "SELECT tq.set_queue('l/new', '{\"maxDelayed\": 1}')"), '55000', 'nor a bound');
is(answer($standby, claim('l/window', 'w')), '55000', 'a queue that has one hands out nothing');
is(answer($standby, "SELECT tq.claim_task(task_id, 0, 'g', 'w') FROM tq.list_pending_tasks('l/window') LIMIT 1"), '55000', 'nor by name');
is(answer($standby, "CALL tq.wait_for_work('l/window', '1 s')"), '55000', 'nor does it wait');
is(answer($standby, "SELECT tq.enqueue('l/window')"), 'ok', 'tasks are created where that has no limit');
is(answer($standby, "SELECT tq.pause_queue('l/new'), tq.resume_queue('l/new')"), 'ok', 'a pause needs no counters');
is(answer($standby, "SELECT tq.set_queue('l/window', '{\"concurrentLimit\": null, \"rateCount\": null, \"rateInterval\": null}')"), 'ok', 'the limits can be removed');
is(claims($standby, 'l/window', 'w', 1), 1, 'then it hands out runs');

# ---- limits take the counters of queues without ----

$standby->stop;
$node = new_node('crowded', 'tq.counted_queues = 20');
psql($node, q{CREATE EXTENSION tq; SELECT count(tq.enqueue('l/many' || n)) FROM generate_series(1, 30) AS n});
wait_worker($node, $db);
ok($node->poll_query_until($db, q{SELECT source = 'tables' FROM tq_internal.count_state()}), 'more queues than there are counters');
# A queue with limits takes the counters of one without, and its rows are counted then.
is(answer($node, "SELECT tq.set_queue('l/one_more', '{\"concurrentLimit\": 1}')"), 'ok', 'a queue without counters gets a limit');
fill($node, 'l/one_more', 5);
is(claims($node, 'l/one_more', 'w', 5), 1, 'which holds');
my @late = map { "l/many$_" } 1 .. 30;
foreach my $queue (@late)
{
	fill($node, $queue, 3);
	claims($node, $queue, 'w', 1);
}
my $few = q{SELECT count(tq.set_queue('l/many' || n, '{"concurrentLimit": 2, "maxPending": 100}')) FROM generate_series(%d, %d) AS n};
psql($node, sprintf $few, 1, 15);
is(join(' ', map { claims($node, $_, 'w', 5, '10 s') } @late[1 .. 14]), join(' ', (1) x 14), 'queues that had rows and no counters: the running ones count');
is(claims($node, 'l/one_more', 'w', 5), 0, 'the limits of the others hold meanwhile');
is(psql($node, q{SELECT sum(running) || ' ' || sum(pending) FROM tq.queue_stats WHERE task_queue_id ~ '^l/many'}), psql($node, q{
	SELECT count(*) FILTER (WHERE r.task IS NOT NULL) || ' ' || count(*) FILTER (WHERE p.task IS NOT NULL) FROM tq_internal.task t JOIN tq_internal.queue q ON q.id = t.queue AND q.task_queue_id ~ '^l/many'
		LEFT JOIN tq_internal.run r ON r.task = t.id AND r.state = 2 LEFT JOIN tq_internal.pending p ON p.task = t.id}), 'the views show all queues');
# What is rolled back keeps no counters from others; nor do limits that were removed.
psql($node, 'BEGIN; ' . sprintf($few, 16, 18) . '; ROLLBACK') foreach 1 .. 3;
is(answer($node, sprintf $few, 19, 23), '53400', 'more limits than there are counters');
is(answer($node, sprintf $few, 19, 22), 'ok', 'as many as there are');
psql($node, q{SELECT count(tq.set_queue('l/many' || n, '{"concurrentLimit": null, "maxPending": null}')) FROM generate_series(1, 22) AS n});
is(answer($node, sprintf $few, 25, 30), 'ok', 'others, once limits are removed');
psql($node, q{SELECT count(tq.set_queue('l/many' || n, '{"concurrentLimit": null, "maxPending": null}')) FROM generate_series(1, 30) AS n});
is(answer($node, "SELECT tq.set_queue('l/one_more', '{\"concurrentLimit\": null}')"), 'ok', 'the first of them, too');

# A queue of another database that loses its counters has its rows counted.
psql($node, 'CREATE DATABASE lone');
$node->safe_psql('lone', q{CREATE EXTENSION tq; SELECT tq.set_queue('o/q', '{"concurrentLimit": 9}')});
ok($node->poll_query_until('lone', q{SELECT source = 'memory' FROM tq_internal.count_state()}), 'a database whose queue has counters');
$node->safe_psql('lone', q{SELECT tq.enqueue_tasks('o/q', '{"{}", "{}", "{}"}'), tq.set_queue('o/q', '{"concurrentLimit": null}')});
my $counted_rows = q{SELECT pending, (tq.task_queue_counts('o/q') ->> 'pendingTasks')::int FROM tq.queue_stats WHERE task_queue_id = 'o/q'};
is($node->safe_psql('lone', $counted_rows), '3|3', 'its rows are counted by them');
is(answer($node, sprintf $few, 1, 20), 'ok', 'limits take them');
is($node->safe_psql('lone', $counted_rows), '3|3', 'and its rows are still counted');
psql($node, q{SELECT count(tq.set_queue('l/many' || n, '{"concurrentLimit": null, "maxPending": null}')) FROM generate_series(1, 20) AS n});
psql($node, 'DROP DATABASE lone WITH (FORCE)');
# The history of a queue whose counters were taken, and that has got others: they begin with zero.
my $seen = $node->background_psql($db);
my $step = q{SELECT tq_internal.write_history() FROM set_config('tq.clock_offset', (date_bin('1 min', clock_timestamp(), 'epoch') + interval '5 min %d s' - clock_timestamp())::text, false)};
set($node, 'l/seen', '{"concurrentLimit": 1}');
fill($node, 'l/seen', 2);
$seen->query_safe(sprintf $step, 13);
set($node, 'l/seen', '{"concurrentLimit": null}');
is(answer($node, sprintf $few, 1, 20), 'ok', 'limits of others take the counters');
psql($node, q{SELECT count(tq.set_queue('l/many' || n, '{"concurrentLimit": null, "maxPending": null}')) FROM generate_series(1, 20) AS n});
set($node, 'l/seen', '{"concurrentLimit": 1}');
fill($node, 'l/seen', 5);
$seen->query_safe(sprintf $step, 23);
is(psql($node, q{SELECT string_agg(h.created::text, ' ') FROM tq_internal.queue_history h JOIN tq_internal.queue q ON q.id = h.queue WHERE q.task_queue_id = 'l/seen' AND h.seconds = 10 AND h.at > clock_timestamp() + interval '3 min'}),
	'5', 'what has happened since then is in the history');
$seen->quit;
set($node, 'l/seen', '{"concurrentLimit": null}');
# Quotas of a role hold in queues without counters, too: by what these have together, or by their rows.
psql($node, q{CREATE ROLE tenant LOGIN; SELECT tq.grant_queue('tenant', 'u/*', 'produce')});
psql($node, q{SELECT count(tq.enqueue('u/q' || n)) FROM generate_series(1, 40) AS n});
ok($node->poll_query_until($db, q{SELECT source = 'tables' FROM tq_internal.count_state()}), 'the others were counted');
my $spilt = psql($node, q{SELECT sum(pending + running) FROM tq.queue_stats});
my $tenant = sub { my ($quota, $n, $call) = @_; return answer($node, "SET tq.max_unresolved_tasks = $quota; SET SESSION AUTHORIZATION tenant; " . ($call // "SELECT tq.enqueue_tasks('u/q$n', array_fill('{}'::jsonb, '{3}'))")); };
is($tenant->($spilt * 2, 40), 'ok', 'a quota in a queue without counters');
is($tenant->(7, 40), 'ok', 'one that all such queues have passed: seven tasks');
is($tenant->(7, 40), '53400', 'not ten');
is($tenant->(7, 40, "BEGIN; SELECT tq.enqueue_tasks('u/q39', array_fill('{}'::jsonb, '{6}')); ROLLBACK; SELECT tq.enqueue_tasks('u/q39', array_fill('{}'::jsonb, '{6}'))"), 'ok', 'what is rolled back does not count');

# Queues with limits go on while the rows of one that gets limits are counted.
psql($node, q{SELECT tq.set_queue('l/one_more', '{"concurrentLimit": 3}')});
{
	# No claim needs the lock for which the count waits.
	my ($locker, $setter) = map { $node->background_psql($db) } 1 .. 2;

	$locker->query('BEGIN; LOCK TABLE tq_internal.task_group IN ACCESS EXCLUSIVE MODE');
	$setter->query_until(qr/counting/, "\\echo counting\nSELECT tq.set_queue('u/q40', '{\"concurrentLimit\": 2}');\n");
	ok($node->poll_query_until($db, q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'tq.set_queue')}), 'the rows of a queue are being counted');
	is(claims($node, 'l/one_more', 'w', 1), 1, 'meanwhile another queue with limits hands out its runs');
	is(claims($node, 'u/q40', 'w', 1), 1, 'and that one, whose limit is not committed yet');
	$locker->quit;
	$setter->quit;
}
is(claims($node, 'u/q40', 'w', 5, '10 s'), 1, 'the run that was claimed meanwhile counts');
psql($node, "SELECT tq.set_queue('$_', '{\"concurrentLimit\": null}')") foreach 'l/one_more', 'u/q40';

# Another database has a part in them, too.
psql($node, 'CREATE DATABASE crowd');
$node->safe_psql('crowd', q{CREATE EXTENSION tq; SELECT count(tq.enqueue('c/q' || n)) FROM generate_series(1, 40) AS n});
$node->safe_psql('crowd', q{SELECT count(tq.set_queue('c/q' || n, '{"concurrentLimit": 1}')) FROM generate_series(1, 18) AS n});
is(answer($node, "SELECT tq.set_queue('l/many2', '{\"concurrentLimit\": 1}')"), 'ok', 'a limit beside those of another database');
is(claims($node, 'l/many2', 'w', 5), 0, 'holds');
is($node->safe_psql('crowd', claim('c/q1', 'w', 5)), 1, 'and so do those');
psql($node, "SELECT tq.set_queue('l/many2', '{\"concurrentLimit\": null}')");
psql($node, 'DROP DATABASE crowd WITH (FORCE)');

# After a start of the server, too, they are those of the queues with limits.
psql($node, sprintf $few, 10, 20);
$node->restart;
is(claims($node, "l/many$_", 'w', 5, '10 s'), 1, "started again: there is room, $_") foreach 16, 20;
is(claims($node, "l/many$_", 'w', 5), 0, "a limit holds, $_") foreach 10, 15;

done_testing();
