# Tasks with one serialKey run one at a time, in the order of their creation, and
# all of them end, through retries, failures, lost claims and a crash; no client
# holds up the maintenance worker; a dump has what waits (doc/spec/policy.md 11.2,
# 11.3).
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $db = 'postgres';
my $node = new_node('gates', 'autovacuum = off', 'restart_after_crash = on', 'max_connections = 60');

sub psql { my ($sql, $in) = @_; return $node->safe_psql($in // $db, $sql); }
sub wait_for { my ($sql, $what, $in) = @_; local $Test::Builder::Level = $Test::Builder::Level + 1; return ok($node->poll_query_until($in // $db, $sql), $what); }
sub session { return $node->background_psql($db, on_error_stop => 1); }

# Creates a task with a key; returns its id.
sub create
{
	my ($queue, $policy, $more) = @_;

	return psql("SELECT tq.enqueue('$queue', policy => '$policy'" . ($more // '') . ')');
}

sub claim { my ($queue, $n) = @_; return psql("SELECT count(*) FROM tq.claim_work('$queue', 'g', 'w', " . ($n // 10) . ", wait => '0')"); }
sub end { my ($queue) = @_; return psql("SELECT count(tq.report_completed(task_id, run_id)) FROM tq.list_claimed_tasks('$queue')"); }

# SQLSTATE of a statement, or ok.
sub answer
{
	my ($sql) = @_;
	my ($status, $out, $err) = $node->psql($db, "\\set VERBOSITY sqlstate\n$sql;");

	return $err =~ /ERROR: +(\S+)/ ? $1 : $status == 0 ? 'ok' : "psql: $err";
}

my $idle = 'SELECT count(*) = 0 FROM tq_internal.timer WHERE kind = 7 AND due <= clock_timestamp()';

psql('CREATE EXTENSION tq');
psql(q{SELECT tq.enqueue('g/first')});
wait_worker($node, $db);
wait_for("SELECT source = 'memory' FROM tq.queue_stats LIMIT 1", 'limits are known once the tasks have been counted');

# ---- what is counted ----

psql(q{SELECT tq.set_queue('g/full', '{"maxDelayed": 3, "maxPending": 2}')});
create('g/full', '{"serialKey": "a"}') foreach 1 .. 2;
wait_for($idle, 'the first is admitted, the other one waits');
is(psql(q{SELECT pending, delayed FROM tq.queue_stats WHERE task_queue_id = 'g/full'}), '1|1', 'and counts as delayed');
create('g/full', '{"serialKey": "b"}');
wait_for($idle, 'another key');
create('g/full', '{"serialKey": "a"}') foreach 1 .. 2;
is(answer(q{SELECT tq.enqueue('g/full', policy => '{"serialKey": "a"}')}), 'TQ409', 'maxDelayed refuses a task that would wait');
is(answer(q{SELECT tq.enqueue('g/full')}), 'TQ409', 'maxPending counts those that were admitted');

# ---- a limit that comes and goes ----

psql(q{SELECT tq.set_queue('g/again', '{"keyConcurrentLimit": 1}')});
create('g/again', '{"concurrencyKey": "k"}') foreach 1 .. 3;
$node->poll_query_until($db, q{SELECT count(*) = 1 FROM tq.claim_work('g/again', 'g', 'w')}) or die;
psql(q{SELECT tq.set_queue('g/again', '{"keyConcurrentLimit": null}')});
wait_for(q{SELECT count(*) = 2 FROM tq.list_pending_tasks('g/again')}, 'without a limit all go on');
is(claim('g/again'), 2, 'and run');
end('g/again');
psql(q{SELECT tq.set_queue('g/again', '{"keyConcurrentLimit": 1}')});
create('g/again', '{"concurrencyKey": "k"}') foreach 1 .. 2;
wait_for(q{SELECT count(*) = 1 FROM tq.list_pending_tasks('g/again')}, 'what ended meanwhile has no place at its gate');
is(claim('g/again'), 1, 'one at a time again');
end('g/again');
wait_for(q{SELECT count(*) = 1 FROM tq.list_pending_tasks('g/again')}, 'and the next one');
claim('g/again');
end('g/again');
wait_for(q{SELECT count(*) = 0 FROM tq_internal.gate_member m JOIN tq_internal.queue q ON q.id = m.queue WHERE q.task_queue_id = 'g/again'}, 'no member is left');

# ---- open transactions of clients ----

my $open = session();
my $first = create('g/open', '{"serialKey": "a"}');
$node->poll_query_until($db, q{SELECT count(*) = 1 FROM tq.claim_work('g/open', 'g', 'w')}) or die;
$open->query_safe(qq{BEGIN; SELECT tq.enqueue('g/open', policy => '{"serialKey": "a"}'); SELECT tq.report_completed('$first', 0)});
create('g/open', '{"serialKey": "a"}');
create('g/open', '{"serialKey": "b"}');
wait_for(q{SELECT count(*) = 1 FROM tq.list_pending_tasks('g/open')}, 'an open transaction holds up no other key');
$open->query_safe('COMMIT');
wait_for(q{SELECT count(*) = 2 FROM tq.list_pending_tasks('g/open')}, 'after its commit its key goes on');

# One that has called upkeep() has the gates locked: the steps go on.
psql('ALTER SYSTEM SET tq.maintenance = off');
$node->reload;
psql(q{SELECT tq.enqueue('g/later', policy => '{"serialKey": "c"}')});
$open->query_safe(q{SET tq.maintenance = on; BEGIN; SELECT tasks FROM tq.upkeep() WHERE step = 'admit'});
psql('ALTER SYSTEM RESET tq.maintenance');
$node->reload;
psql(q{SELECT tq.enqueue('g/later', policy => '{"serialKey": "d"}'), tq.enqueue('g/later', delay => '10 ms')});
wait_for(q{SELECT count(*) = 1 FROM tq.list_pending_tasks('g/later')}, 'upkeep() in an open transaction does not stop the maintenance worker');
$open->query_safe('COMMIT');
wait_for(q{SELECT count(*) = 3 FROM tq.list_pending_tasks('g/later')}, 'after its commit the gates are looked at');

# A session that has locked a run that could go on: the worker looks seldom.
psql(q{SELECT tq.set_queue('g/lock', '{"keyConcurrentLimit": 1}')});
create('g/lock', '{"concurrencyKey": "k"}');
$node->poll_query_until($db, q{SELECT count(*) = 1 FROM tq.claim_work('g/lock', 'g', 'w')}) or die;
create('g/lock', '{"concurrencyKey": "k"}') foreach 1 .. 3;
wait_for($idle, 'three wait');
$open->query_safe('BEGIN; SELECT FROM tq_internal.delayed FOR UPDATE');
end('g/lock');
my $ids = 'SELECT last_value FROM tq_internal.id_seq';
my $begun = psql("SELECT clock_timestamp()");
my $before = psql($ids);
$node->poll_query_until($db, "SELECT clock_timestamp() > timestamptz '$begun' + interval '2 s'");
my $spent = psql($ids) - $before;
cmp_ok($spent, '<', 200, "a locked run does not keep the maintenance worker busy");
$open->query_safe('COMMIT');
wait_for(q{SELECT count(*) = 1 FROM tq.list_pending_tasks('g/lock')}, 'it is admitted when it is free');

# ---- latency ----

psql(q{SELECT tq.enqueue('g/latency', policy => '{"serialKey": "a"}') FROM generate_series(1, 200)});
my ($out, $err) = ('', '');
my $script = $node->basedir . '/latency.sql';
append_to_file($script, q{SELECT task_id AS t FROM tq.claim_work('g/latency', 'g', 'w', wait => '10 s') \gset
SELECT tq.report_completed(':t', 0);
});
ok(IPC::Run::run([ 'pgbench', '-n', '-t', '200', '-f', $script, '-h', $node->host, '-p', $node->port, $db ], '>', \$out, '2>', \$err), 'one key, one worker') or diag($err);
note('from the end of a task to the claim of the next one of its key, ms: ' . psql(q{
	SELECT 'median ' || round((percentile_cont(0.5) WITHIN GROUP (ORDER BY ms))::numeric, 2) || ', 95 % ' || round((percentile_cont(0.95) WITHIN GROUP (ORDER BY ms))::numeric, 2)
	FROM (SELECT extract(epoch FROM r.started - lag(r.resolved) OVER (ORDER BY r.started)) * 1000 AS ms
		FROM tq_internal.run r JOIN tq_internal.task t ON t.id = r.task JOIN tq_internal.queue q ON q.id = t.queue WHERE q.task_queue_id = 'g/latency') AS l}));

# ---- dump and restore ----

psql(q{SELECT tq.set_queue('g/dump', '{"keyConcurrentLimit": 1}')});
create('g/dump', '{"serialKey": "a", "concurrencyKey": "x"}') foreach 1 .. 3;
create('g/dump', '{"concurrencyKey": "k"}') foreach 1 .. 3;
wait_for($idle, 'six tasks of two keys');
is(claim('g/dump'), 2, 'two run');
create('g/dump', '{"serialKey": "new"}');
my $dump = $node->basedir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr($db) ], 'dump');
psql('CREATE DATABASE copy');
$node->command_ok([ 'psql', '-XAqt', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('copy') ], 'restore');
begin_use($node, 'copy');
wait_worker($node, 'copy');
wait_for(q{SELECT count(*) = 1 FROM tq.list_pending_tasks('g/dump')}, 'what was created last is admitted', 'copy');
foreach my $left (4, 2, 0)
{
	psql(q{SELECT count(tq.report_completed(task_id, run_id)) FROM tq.list_claimed_tasks('g/dump')}, 'copy');
	wait_for(q{SELECT count(*) >= 2 OR count(*) = } . ($left == 0 ? 0 : -1) . q{ FROM tq.list_pending_tasks('g/dump')}, 'the next ones of each key', 'copy');
	psql(q{SELECT count(*) FROM tq.claim_work('g/dump', 'g', 'w', 10)}, 'copy');
}
is(psql(q{SELECT count(*) FROM tq_internal.delayed d JOIN tq_internal.queue q ON q.id = d.queue WHERE q.task_queue_id = 'g/dump'}, 'copy'), 0, 'all of them are claimed');

# ---- load and crash ----

my $keys = 50;
my $tasks = 600;
psql(qq{SELECT count(tq.enqueue('g/load', policy => jsonb_build_object('serialKey', 'k' || (n * 7) % $keys, 'retryOn', '["failed", "worker-shutdown", "claim-expired", "intermittent-task"]'::jsonb), retries => 30))
	FROM generate_series(1, $tasks) AS n});
psql(q{SELECT tq.set_queue('g/load', '{"claimTimeout": "2 s"}')});

# Running tasks of a key of which there are several: none, at any time.
my $two = q{SELECT 1 / (count(*) = 0)::int FROM (SELECT FROM tq_internal.run r JOIN tq_internal.task_key k ON k.task = r.task AND k.kind = 1 WHERE r.state = 2 GROUP BY k.key HAVING count(*) > 1) AS k;} . "\n";
my $take = q{SELECT count(*) FROM tq.claim_work('g/load', 'g', 'w:client_id', :n, wait => '50 ms');} . "\n";
my $own = q{FROM tq.list_claimed_tasks('g/load') WHERE worker_id = 'w:client_id'};
my $set = "\\set n random(1, 4)\n";
my @mix = (
	"$set$take${two}SELECT count(tq.report_completed(task_id, run_id)) $own;\n$two",
	"$set$take${two}SELECT count(tq.report_failed(task_id, run_id)) $own;\n",
	"$set${take}SELECT count(tq.report_exception(task_id, run_id, 'worker-shutdown')) $own;\n$two",
	"${set}BEGIN;\n${take}SELECT count(tq.report_completed(task_id, run_id)) $own;\nROLLBACK;\n$two",
	"${set}BEGIN;\n${take}SAVEPOINT a;\nSELECT count(tq.report_completed(task_id, run_id)) $own;\nROLLBACK TO a;\nCOMMIT;\nSELECT count(tq.defer_task(task_id, run_id, '100 ms')) $own;\n$two",
	"$set$take$take");    # lost
my @files = map { my $file = $node->basedir . "/mix$_.sql"; append_to_file($file, $mix[$_]); ('-f', $file . ($_ == 0 ? '@6' : $_ == 5 ? '@1' : '@2')) } 0 .. $#mix;
my @load = ('pgbench', '-n', '-c', '8', '-j', '2', '-h', $node->host, '-p', $node->port, @files);

my $crashed = IPC::Run::start([ @load, '-T', '60', $db ], '>', \$out, '2>', \$err);
wait_for(qq{SELECT count(*) > $tasks / 8 FROM tq_internal.run r JOIN tq_internal.task t ON t.id = r.task JOIN tq_internal.queue q ON q.id = t.queue WHERE q.task_queue_id = 'g/load' AND state = 3}, 'tasks run');
my $worker = worker_in($node, $db);
eval { $open->quit };
kill 'KILL', $worker;
$crashed->finish;
unlike($err, qr/division by zero/, 'never two of one key before a crash');
ok(wait_worker($node, $db, $worker), 'the server starts again after a crash');
my $unresolved = q{SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'g/load' AND state IN ('pending', 'running', 'unscheduled')};
foreach my $round (1 .. 12)
{
	last if psql($unresolved) == 0;
	($out, $err) = ('', '');
	IPC::Run::run([ @load, '-T', '4', $db ], '>', \$out, '2>', \$err) or diag($err);
	unlike($err, qr/division by zero/, 'never two of one key');
}
is(psql($unresolved), 0, 'all tasks end');
is(psql(qq{SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'g/load' AND state = 'completed'}), $tasks, 'in success') or diag(psql(q{SELECT state, count(*) FROM tq.task_overview WHERE task_queue_id = 'g/load' GROUP BY 1}));

# The runs of a key, from the first start of a task to its last end.
my $spans = q{SELECT k.key, r.task, min(r.started) AS started, max(r.resolved) AS resolved FROM tq_internal.run r JOIN tq_internal.task_key k ON k.task = r.task AND k.kind = 1
	JOIN tq_internal.task t ON t.id = r.task JOIN tq_internal.queue q ON q.id = t.queue WHERE q.task_queue_id = 'g/load' GROUP BY 1, 2};
is(psql(qq{SELECT count(*) FROM (SELECT started < lag(resolved) OVER (PARTITION BY key ORDER BY started) AS early FROM ($spans) AS s) AS e WHERE early}), 0, 'no task began before the one before it had ended');
is(psql(qq{SELECT count(*) FROM (SELECT task < lag(task) OVER (PARTITION BY key ORDER BY started) AS early FROM ($spans) AS s) AS e WHERE early}), 0, 'they began in the order of their creation');
is(psql(qq{SELECT count(*) > $tasks FROM tq_internal.run r JOIN tq_internal.task t ON t.id = r.task JOIN tq_internal.queue q ON q.id = t.queue WHERE q.task_queue_id = 'g/load'}), 't', 'some were retried');
wait_for(q{SELECT count(*) = 0 FROM tq_internal.gate_member m JOIN tq_internal.queue q ON q.id = m.queue WHERE q.task_queue_id = 'g/load'}, 'no member is left');
is(violations($node, $db), '', 'all is well');

done_testing();
