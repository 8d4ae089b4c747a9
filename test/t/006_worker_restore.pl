# While a restore loads rows the worker does nothing with the half of them.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('restore');

# A task that is due already.
sub make_due
{
	my ($db) = @_;
	my $id = enqueue($node, $db, "deadline => '100 ms'");

	wait_past_deadline($node, $db, $id);
	return $id;
}

# As the output of pg_dump does it, through psql.
$node->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(plain psql parallel interactive);
my $session = $node->background_psql('psql');
$session->query_safe('SET check_function_bodies = off; CREATE EXTENSION tq');
ok(wait_worker($node, 'psql'), 'worker is there');
my $id = make_due('psql');

# The worker of another database is a clock: it acts, this one does not.
my $other = $node->background_psql('plain');
$other->query_safe('CREATE EXTENSION tq');
my $check = make_due('plain');
ok(wait_state($node, 'plain', $check, 'exception'), 'another database is not concerned');
$check = enqueue($node, 'plain', "deadline => '2 seconds'");
ok(wait_state($node, 'plain', $check, 'exception'), 'two seconds later');
is(state_of($node, 'psql', $id), 'pending', 'nothing is done while the session is there');
$session->quit;
ok(wait_state($node, 'psql', $id, 'exception'), 'everything when it has ended');

# Restored by hand where the extension exists already.
$session = $node->background_psql('psql');
$session->query_safe('SET client_min_messages = warning; SET check_function_bodies = off;'
	  . ' CREATE EXTENSION IF NOT EXISTS tq');
$id = make_due('psql');
$check = enqueue($node, 'plain', "deadline => '1 second'");
ok(wait_state($node, 'plain', $check, 'exception'), 'a second later');
is(state_of($node, 'psql', $id), 'pending', 'a worker that is there already waits, too');
$session->quit;
ok(wait_state($node, 'psql', $id, 'exception'), 'until the session has ended');

# pg_restore -j: those that load are other sessions than the one that created.
{
	local $ENV{PGAPPNAME} = 'pg_restore';
	$session = $node->background_psql('parallel');
	$session->query_safe('SET check_function_bodies = off; CREATE EXTENSION tq');
	$session->quit;
	$session = $node->background_psql('parallel');
	$session->query_safe('SELECT 1');
}
$id = make_due('parallel');
$check = enqueue($node, 'plain', "deadline => '2500 ms'");
ok(wait_state($node, 'plain', $check, 'exception'), 'some seconds later');
is(state_of($node, 'parallel', $id), 'pending', 'nothing is done while a pg_restore is there');
$session->quit;
ok(wait_state($node, 'parallel', $id, 'exception'), 'everything when it has ended');

# CREATE EXTENSION as people type it needs no such care.
$session = $node->background_psql('interactive');
$session->query_safe('CREATE EXTENSION tq');
$id = make_due('interactive');
ok(wait_state($node, 'interactive', $id, 'exception'), 'no restore: at once');
$_->quit foreach $session, $other;

unlike(slurp_file($node->logfile), qr/PANIC|was terminated by signal|TRAP/, 'nothing crashed');
$node->stop;

done_testing();
