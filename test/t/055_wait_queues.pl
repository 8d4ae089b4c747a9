# Workers that wait for several queues, under load: no wake-up is lost.
#
# Eight workers wait for overlapping sets of four queues, by all forms of a wait,
# and some are canceled as they sleep.  Tasks come in bursts.  A lost wake-up
# shows after a burst, when nothing else wakes the worker that should have had
# it: a worker that is not woken looks by itself after 10 seconds, so all tasks
# must have been claimed sooner than that.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;
use Time::HiRes qw(time usleep);

my $SOON = 8;
my $BURSTS = 100;
my $db = 'postgres';
my $node = new_node('wait_queues', 'max_connections = 50', 'shared_buffers = 16MB');

$node->safe_psql($db, 'CREATE EXTENSION tq; CREATE TABLE got (task_id text, queue text, at timestamptz DEFAULT clock_timestamp())');
wait_worker($node, $db);
$node->safe_psql($db, "SELECT FROM tq.claim_work('{p/q1,p/q2,p/q3,p/q4}'::text[], 'g', 'first')");

# ---- workers: pgbench repeats each script for each of its clients ----

my @workers;

sub start_workers
{
	my ($name, $clients, $script) = @_;
	my $file = $node->basedir . "/$name.sql";
	my $worker = { name => $name, out => '' };

	append_to_file($file, $script);
	$worker->{run} = IPC::Run::start(
		[ 'pgbench', '-n', '-c', $clients, '-j', 1, '-T', 600, '-f', $file, $node->connstr($db) ],
		'<', \undef, '>', \$worker->{out}, '2>&1');
	push @workers, $worker;
	return;
}

sub claim
{
	my ($name, $queues, $more) = @_;

	return "INSERT INTO got SELECT c.task_id, c.task_queue_id FROM tq.claim_work('$queues'::text[], 'g', '$name' || :client_id, $more) AS c;\n";
}

start_workers('strict', 2, claim('strict', '{p/q1,p/q2,p/q3,p/q4}', "wait => '60 s'"));
start_workers('turns', 1, claim('turns', '{p/q4,p/q3}', "2, '60 s', mode => 'round-robin'"));
start_workers('pattern', 2, claim('pattern', '{p/q2,p/*}', "wait => '60 s'"));
start_workers('single', 1, "INSERT INTO got SELECT c.task_id, 'p/q2' FROM tq.claim_work('p/q2', 'g', 'single', 3, '60 s') AS c;\n");
start_workers('call', 1, "CALL tq.wait_for_work('{p/q3,p/q1,p/*}'::text[], '60 s');\n" . claim('call', '{p/q3,p/q1,p/*}', "wait => '0'"));
my $caught = claim('caught', '{p/q1,p/q4}', "wait => '60 s'") =~ s/ \|\| :client_id//r;
start_workers('caught', 1, "DO \$\$ BEGIN $caught EXCEPTION WHEN query_canceled THEN NULL; END \$\$;\n");

my $sleepers = q{FROM pg_stat_activity WHERE backend_type = 'client backend' AND state = 'active' AND wait_event_type = 'Extension'};
my $all_sleep = "SELECT count(*) = 8 $sleepers";

# ---- bursts of tasks, by two sessions at once ----

my @producers = map { $node->background_psql($db, on_error_stop => 0) } 1 .. 2;
$_->set_query_timer_restart foreach @producers;
my $observer = $node->background_psql($db, on_error_stop => 0);
$observer->set_query_timer_restart;

sub burst
{
	my ($number) = @_;
	my $name = $number % 20 == 0 ? "CASE WHEN i = 1 THEN 'p/n$number' ELSE 'p/q' || 1 + i % 4 END" : q{'p/q' || 1 + floor(4 * random())::int};

	foreach my $producer (@producers)
	{
		$producer->{kept} = $producer->query_until(qr/^begun$/m, "\\echo begun\nDO \$\$ BEGIN FOR i IN 1 .. 10 LOOP PERFORM tq.enqueue($name); COMMIT; END LOOP; END \$\$;\n\\echo ended\n");
	}
	$observer->query_safe("SELECT pg_cancel_backend(pid) $sleepers AND query LIKE 'DO%'");
	foreach my $producer (@producers)
	{
		$producer->query_until(qr/^ended$/m, '') if $producer->{kept} !~ /^ended$/m;
	}
	return;
}

# Wait until nothing is pending.  Returns after how many seconds.
sub claimed_after
{
	my $begun = time;

	while ($observer->query_safe('SELECT count(*) FROM tq_internal.pending') ne '0')
	{
		return $SOON if time - $begun > $SOON;
		usleep(2000);
	}
	return time - $begun;
}

ok($node->poll_query_until($db, $all_sleep), 'eight workers sleep');
is($node->safe_psql($db, "SELECT string_agg(n::text, ' ' ORDER BY n) FROM (SELECT count(*) AS n FROM tq_internal.waiters() GROUP BY pid) AS w"),
	'1 2 2 4 4 5 5 5', 'in the lists of their queues');

my $longest = 0;
my $late = 0;
foreach my $number (1 .. $BURSTS)
{
	burst($number);
	my $lasted = claimed_after();
	$longest = $lasted if $lasted > $longest;
	next if $lasted < $SOON;
	$late++;
	diag("burst $number: " . $observer->query_safe('SELECT string_agg(q.task_queue_id, chr(32)) FROM tq_internal.pending p JOIN tq_internal.queue q ON q.id = p.queue')
		. ' pending, ' . $observer->query_safe('SELECT string_agg(waits_for, chr(32)) FROM tq.waiter_overview') . ' waited for');
	last if $late == 3;
	$observer->query_safe('DELETE FROM tq_internal.pending');
}
note("all of a burst was claimed within $longest s");
is($late, 0, 'no task stays pending while workers wait for its queue');

my $tasks = 20 * $BURSTS;
ok($node->poll_query_until($db, "SELECT count(*) = $tasks FROM got"), 'all tasks were claimed');
is($node->safe_psql($db, 'SELECT count(DISTINCT task_id) FROM got'), $tasks, 'each once');
is($node->safe_psql($db, "SELECT count(*) FROM got JOIN tq.task_overview AS t ON t.task_id::text = got.task_id WHERE t.task_queue_id <> got.queue"), 0, 'from its queue');
is($node->safe_psql($db, q{SELECT count(*) FROM got WHERE queue LIKE 'p/n%'}), 2 * int($BURSTS / 20), 'new queues of a pattern, too');

# ---- they sleep again, and leave nothing when they end ----

ok($node->poll_query_until($db, $all_sleep), 'they sleep again');
$_->quit foreach @producers;
foreach my $worker (@workers)
{
	$worker->{run}->signal('TERM');
	eval { $worker->{run}->finish };
	unlike($worker->{out}, qr/ERROR|aborted/, "no error: $worker->{name}");
}
$observer->query_safe("SELECT pg_terminate_backend(pid) $sleepers");
ok($node->poll_query_until($db, 'SELECT count(*) = 0 FROM tq_internal.waiters()'), 'no list has a session that has ended');
$observer->quit;
$node->stop;

done_testing();
