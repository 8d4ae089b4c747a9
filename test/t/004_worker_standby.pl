# A standby does nothing until it is promoted; then it does what is due.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $primary = new_node('primary');
my $db = 'postgres';

$primary->safe_psql($db, 'CREATE EXTENSION tq');
wait_worker($primary, $db);
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

# The primary stops with a deadline and a claim that the standby must handle.
my $processes = "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'tq%'";
my $done = enqueue($primary, $db, "deadline => '500 ms'");
ok(wait_state($primary, $db, $done, 'exception'), 'the primary works');
my $later = enqueue($primary, $db, "deadline => '1 hour'");
my $claimed = enqueue($primary, $db, "deadline => '1 hour'", "priority => 'highest'");
$primary->safe_psql($db, "SET tq.claim_timeout = '10s'; SELECT tq.claim_work('p/w', 'g', 'w')");
my $overdue = enqueue($primary, $db, "deadline => '10 seconds'");
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
$primary->stop('immediate');
is(state_of($standby, $db, $done), 'exception', 'the standby has what the primary did');
is($standby->safe_psql($db, $processes), 0, 'no process of tq on a standby');
ok(wait_past_deadline($standby, $db, $overdue), 'a deadline passes');
is(state_of($standby, $db, $overdue), 'pending', 'and nothing happens');
is(state_of($standby, $db, $claimed), 'running', 'nor with the claim');
my ($status, $out, $err) = $standby->psql($db, 'DROP DATABASE template1');
like($err, qr/cannot execute DROP DATABASE/, 'the server refuses what it always does');

$standby->promote;
ok(wait_state($standby, $db, $overdue, 'exception'), 'promoted: the deadline is handled');
ok(wait_state($standby, $db, $claimed, 'pending'), 'and the claim');
is(state_of($standby, $db, $later), 'pending', 'but not what is not due');
is($standby->safe_psql($db, $processes), 2, 'a launcher and a maintenance worker');
is(violations($standby, $db), '', 'tables are consistent');
my $id = enqueue($standby, $db, "deadline => '1 second'");
ok(wait_state($standby, $db, $id, 'exception'), 'and it goes on');
$standby->stop;

done_testing();
