# A long outage: 100,000 tasks with a deadline and 100,000 without one, and no worker
# for 20 days.  Then maintenance resolves what is overdue, in rounds, and other work goes
# on; what has no deadline is all there, and is handed out in order.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Time::HiRes qw(time);
use Tq qw(:DEFAULT session output);

my $n = 100_000;
my $node = new_node('outage');
my $db = 'postgres';

sub query { return $node->safe_psql($db, $_[0]); }

query('CREATE EXTENSION tq');
query("SELECT cardinality(tq.enqueue_tasks('o/overdue', array_fill('{}'::jsonb, ARRAY[$n]), deadline => '10 days', policy => '{\"deadLetter\": true}'))");
query("SELECT cardinality(tq.enqueue_tasks('o/patient', (SELECT array_agg(to_jsonb(g) ORDER BY g) FROM generate_series(1, $n) g), retry => 5))");
is(query('SELECT sum(cardinality(tasks)) FROM tq_internal.timer'), $n, 'only tasks with a deadline have timers');

# The clocks of all sessions, and of the maintenance worker, which it restarts.
my $before = wait_worker($node, $db);
query(q{ALTER DATABASE postgres SET tq.clock_offset = '20 days'});
wait_worker($node, $db, $before);

# Other work, as long as there is something overdue: how long each round of it takes, and
# what is left.
my $session = session($node, $db);
my $end = time + 300;
my (@took, @seen);
push @seen, $n;
while ($seen[-1] > 0 && time < $end)
{
	my $began = time;

	output($session, q{SELECT tq.enqueue('o/other', '{}')});
	my $done = output($session, q{SELECT tq.report_completed(task_id, run_id) ->> 'state' FROM tq.claim_work('o/other', 'g', 'w')});
	die "other work: $done" if $done ne 'completed';
	push @took, time - $began;
	my $now = output($session, q{SELECT count(*) FROM tq_internal.pending p JOIN tq_internal.queue q ON q.id = p.queue WHERE q.task_queue_id = 'o/overdue'});
	push @seen, $now if $now != $seen[-1];
}
is($seen[-1], 0, 'all that is overdue is resolved');
my @steps = map { $seen[ $_ - 1 ] - $seen[$_] } 1 .. $#seen;
my ($largest) = sort { $b <=> $a } @steps;
@took = sort { $a <=> $b } @took;
note(scalar(@steps) . " rounds were seen, of at most $largest tasks; other work took at most $took[-1] s, $took[@took * 0.9] s for nine of ten");
cmp_ok($largest, '<=', 40_000, 'in rounds of a bounded size');		# a look may miss some rounds
is(query(q{SELECT tasks <= 10000 * batches FROM tq.maintenance_overview WHERE step = 'deadline'}), 't', 'of 10,000 at most');
cmp_ok($took[ @took * 0.9 ], '<', 1, 'while other work goes on');
cmp_ok($took[-1], '<', 30, 'always');
is(query(q{SELECT state || ' ' || reason_resolved || ' ' || count(*) FROM tq.task_details WHERE task_queue_id = 'o/overdue' GROUP BY state, reason_resolved}),
	"exception deadline-exceeded $n", 'each by its deadline');
is(query('SELECT count(*) FROM tq_internal.dead_letter'), $n, 'with a dead letter each');

# What has no deadline.
is(query(q{SELECT tq.task_queue_counts('o/patient') ->> 'pendingTasks'}), $n, 'all that has none is pending');
my ($claimed, $in_order) = (0, 1);
while (my $some = output($session, q{
	WITH c AS MATERIALIZED (SELECT * FROM tq.claim_work('o/patient', 'g', 'w', 1000)),
	r AS MATERIALIZED (SELECT count(*) FROM tq.resolve((SELECT coalesce(array_agg(task_id), '{}') FROM c), (SELECT coalesce(array_agg(run_id), '{}') FROM c)) WHERE outcome = 'resolved')
	SELECT count(*) || ' ' || min(payload::text::int) || ' ' || max(payload::text::int) FROM c, r WHERE r.count > 0 HAVING count(*) > 0}))
{
	my ($count, $first, $last) = split / /, $some;

	$in_order = 0 if $first != $claimed + 1 || $last != $claimed + $count;
	$claimed += $count;
}
is($claimed, $n, 'all of it is claimed and resolved');
ok($in_order, 'in its order');
is(query(q{SELECT string_agg(DISTINCT state, ' ') FROM tq.task_overview WHERE task_queue_id = 'o/patient'}), 'completed', 'as completed');
$session->disconnect;

$node->stop;
done_testing();
