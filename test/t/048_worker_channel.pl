# The channel of a worker: what is taken from it, and nothing else.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use JSON::PP;
use Tq;

my $db = 'postgres';
my $node = new_node('worker_channel', 'max_prepared_transactions = 5');

sub run { return $node->safe_psql($db, shift); }

$node->safe_psql($db, 'CREATE EXTENSION tq');
my $pid = wait_worker($node, $db);
run("SELECT tq.bind('end', 'task-defined', 'route.*')");

# ---- a session that listens ----

my $session;
my @heard;
my $serial = 0;

sub in_session
{
	my $output = $session->query(shift);

	while ($output =~ /^Asynchronous notification "(.*?)" (?:with payload "(.*)" )?received from server process with PID \d+\.$/mg)
	{
		push @heard, [ $1, $2 // '' ];
	}
	return $output;
}

# All that the session is notified of until now, as "worker task run reason": a
# message to a channel of its own is published last, and waited for.
sub heard
{
	my ($end, $ended) = ('end' . ++$serial);

	run("SELECT tq.enqueue('end/q', routes => '{$end}')");
	for (1 .. 10000)
	{
		last if $ended = grep { $_->[1] =~ /"route\.$end"/ } @heard;
		in_session('SELECT pg_sleep(0.01)');
	}
	die 'the last message does not come' unless $ended;
	my @news = map { decode_json($_->[1]) } grep { $_->[0] =~ /^tq_worker_/ } @heard;
	@heard = ();
	return join ', ', map { "$_->{workerGroup}/$_->{workerId} $_->{taskId} $_->{runId} $_->{reason}" } @news;
}

# A task that this worker is running.
sub running
{
	my ($worker, @arguments) = @_;
	my $id = run("SELECT tq.enqueue(" . join(', ', "'q/w'", @arguments) . ")");

	run("SELECT tq.claim_work('q/w', 'g', '$worker')");
	is(state_of($node, $db, $id), 'running', 'a task that is running') or die;
	return $id;
}

sub notes { return run("SELECT count(*) FROM tq_internal.message WHERE detail ? 'workerId' AND NOT detail ? 'artifact'"); }

# ---- no session listens: nothing is written ----

my $id = running('a');
run("SELECT tq.cancel_task('$id')");
is(notes(), 0, 'no session listens: no note');

# ---- what takes a run ----

my $channel = run("SELECT tq.worker_channel('g', 'a')");
is($channel, 'tq_worker_g/a', 'worker_channel: its name');
$session = $node->background_psql($db);
in_session("LISTEN \"$_\"") foreach $channel, 'end', run("SELECT tq.worker_channel('g', repeat('w', 128))");

$id = running('a');
run("SELECT tq.cancel_task('$id')");
is(heard(), "g/a $id 0 canceled", 'cancel_task');
run("SELECT tq.cancel_task('$id')");
is(heard(), '', 'cancel_task again');

my $group = run('SELECT tq.slugid()');
my @members = map { running('a', "task_group_id => '$group'") } 1 .. 2;
run("SELECT tq.enqueue('q/other', task_group_id => '$group')");
run("SELECT tq.seal_task_group('$group'); SELECT tq.cancel_task_group('$group')");
is(join(', ', sort split /, /, heard()), join(', ', sort map { "g/a $_ 0 canceled" } @members), 'cancel_task_group: the running ones');

$id = running('a', "deadline => '3 s'");
wait_state($node, $db, $id, 'exception');
is(heard(), "g/a $id 0 deadline-exceeded", 'the deadline');

$id = running('a', "policy => '{\"runTimeout\": 3, \"retries\": 1, \"retryOn\": [\"run-timeout\"]}'");
$node->poll_query_until($db, "SELECT tq.status('$id') #>> '{runs,0,reasonResolved}' = 'run-timeout'") or die;
is(heard(), "g/a $id 0 run-timeout", 'the run timeout');
run("SELECT tq.cancel_task('$id')");
is(heard(), '', 'a task that is pending');

run("SET tq.claim_timeout = '3 s'; SELECT tq.enqueue('q/w', retries => 1); SELECT tq.claim_work('q/w', 'g', 'a')");
$id = run("SELECT task_id FROM tq.task_overview WHERE task_queue_id = 'q/w' AND state = 'running'");
wait_state($node, $db, $id, 'pending');
is(heard(), "g/a $id 0 claim-expired", 'the end of the claim, and the run is retried');
run("SELECT tq.claim_work('q/w', 'g', 'a'); SELECT tq.worker_removed('q/w', 'g', 'a', 'gone')");
is(heard(), "g/a $id 1 worker-shutdown", 'worker_removed');

$id = running('a');
run("SELECT tq.delete_task('$id')");
is(heard(), "g/a $id 0 deleted", 'delete_task');

my $required = running('a', "policy => '{\"onUnsuccessful\": \"cancel-group\"}'");
$id = running('a', "task_group_id => '$required'");
run("SELECT tq.report_failed('$required', 0)");
is(heard(), "g/a $id 0 canceled", 'a policy that cancels the group: the others, not the one that was reported');

# ---- what does not ----

foreach my $report ("report_completed('%s', 0)", "report_failed('%s', 0)", "report_exception('%s', 0, 'worker-shutdown')",
	"report_exception('%s', 0, 'malformed-payload')", "defer_task('%s', 0, '1 hour')", "reclaim_task('%s', 0)")
{
	run(sprintf "SELECT tq.$report", running('a'));
	is(heard(), '', "$report: the worker knows");
	run("SELECT tq.delete_task(task_id) FROM tq.task_overview WHERE task_queue_id = 'q/w' AND state IN ('running', 'pending')");
	heard();
}
$id = running('b');
run("SELECT tq.cancel_task('$id')");
is(heard(), '', 'the task of another worker');
$id = running('a');
run("BEGIN; SELECT tq.cancel_task('$id'); ROLLBACK");
is(heard(), '', 'a cancel that is rolled back');
run("BEGIN; SELECT tq.cancel_task('$id'); PREPARE TRANSACTION 'two'");
is(heard(), '', 'a cancel that is prepared');
run("COMMIT PREPARED 'two'");
is(heard(), "g/a $id 0 canceled", 'COMMIT PREPARED');

# ---- with other settings ----

my $long = 'w' x 128;
$id = running($long);
run("SELECT tq.cancel_task('$id')");
is(heard(), "g/$long $id 0 canceled", 'a long name');
run("SELECT tq.unbind('tq_task_exception', 'task-exception'), tq.unbind('tq_task_pending', 'task-pending')");
$id = running('a');
run("SELECT tq.cancel_task('$id')");
is(heard(), "g/a $id 0 canceled", 'exchanges that are unbound');
foreach my $case ([ 'ids', qr/^\{.*"taskId": "\S{22}"/ ], [ 'off', qr/^$/ ])
{
	run("ALTER DATABASE $db SET tq.notify_payload = $case->[0]");
	$pid = wait_worker($node, $db, $pid);
	$id = running('a');
	run("SELECT tq.cancel_task('$id')");
	for (1 .. 3000)
	{
		last if grep { $_->[0] eq $channel } @heard;
		in_session('SELECT pg_sleep(0.01)');
	}
	like((grep { $_->[0] eq $channel } @heard)[0]->[1], $case->[1], "tq.notify_payload = $case->[0]");
	@heard = ();
}
run("ALTER DATABASE $db RESET tq.notify_payload");
$pid = wait_worker($node, $db, $pid);

# The log of messages does not show the notes.
is(run("SELECT count(*) FROM tq.messages(max => 1000) WHERE payload IS NULL OR exchange IS NULL"), 0, 'the log has no notes');
cmp_ok(notes(), '>', 5, 'which are rows of the outbox');

# ---- no session listens any more ----

$session->quit;
$node->poll_query_until($db, "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'") or die;
my $notes = notes();
$id = running('a');
run("SELECT tq.cancel_task('$id')");
is(notes(), $notes, 'the session has ended: no note');

is(run(q{SELECT count(*) FROM pg_listening_channels()}), 0, 'no session listens by itself');
$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC:|was terminated by signal|TRAP:|ERROR/, 'nothing crashed or failed');
done_testing();
