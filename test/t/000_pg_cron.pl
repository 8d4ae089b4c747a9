# A server without tq in shared_preload_libraries: pg_cron calls upkeep() in
# place of the maintenance worker.  Before version 1.5 the shortest interval of
# pg_cron is a minute, so this test starts first: others run while it waits.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT new_cron_node);

my $node = new_cron_node();
my $db = 'postgres';
$node->safe_psql($db, 'CREATE EXTENSION pg_cron; CREATE EXTENSION tq');

# A deadline that passes, and a claim that expires.
my $late = enqueue($node, $db, "deadline => '100 ms'");
my $lost = $node->safe_psql($db, "SELECT tq.enqueue('p/lost')");
$node->safe_psql($db, q{SET tq.claim_timeout = '100 ms'; SELECT * FROM tq.claim_work('p/lost', 'g', 'w')});
ok(wait_past_deadline($node, $db, $late), 'the deadline has passed');
is(state_of($node, $db, $late), 'pending', 'still pending before the next call');
is(worker_in($node, $db), '', 'there is no maintenance worker');

my $often = $node->safe_psql($db, q{
	SELECT CASE WHEN string_to_array(substring(extversion, '^[0-9.]*'), '.')::int[] >= '{1,5}'
		THEN '1 seconds' ELSE '* * * * *' END
	FROM pg_extension WHERE extname = 'pg_cron'});
$node->safe_psql($db, "SELECT cron.schedule('tq upkeep', '$often', 'SELECT tq.upkeep()')");

# Twice, as one wait may be as short as the minute between two calls.
ok(wait_state($node, $db, $late, 'exception') || wait_state($node, $db, $late, 'exception'),
	"pg_cron calls upkeep() ($often)");
is($node->safe_psql($db, "SELECT tq.status('$late') #>> '{runs,0,reasonResolved}'"),
	'deadline-exceeded', 'the task has missed its deadline');
is($node->safe_psql($db, "SELECT tq.status('$lost') #>> '{runs,0,reasonResolved}'"),
	'claim-expired', 'the claim has expired');
is(state_of($node, $db, $lost), 'pending', 'the task can be claimed again');
is($node->safe_psql($db, "SELECT count(*) FROM cron.job_run_details WHERE status = 'failed'"),
	0, 'no call has failed');

$node->stop;
done_testing();
