# Tq.pm: functions that the tests with servers of their own share, with those of
# Test::More and PostgreSQL::Test::Utils.
package Tq;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use File::Basename qw(dirname);

# A wait that cannot end fails after one minute, not after three.
BEGIN { $ENV{PG_TEST_TIMEOUT_DEFAULT} //= 60; }

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

our @EXPORT = (qw(new_node begin_use worker_of worker_in wait_worker wait_no_worker
	  enqueue state_of wait_state lateness wait_past_deadline violations),
	@Test::More::EXPORT, @PostgreSQL::Test::Utils::EXPORT);
our @EXPORT_OK = qw(new_cron_node $published start finish);

# Whether all committed messages are published.
our $published = q{
	SELECT NOT EXISTS (SELECT FROM tq_internal.message m WHERE NOT pg_visible_in_snapshot(m.xid,
		(SELECT upto FROM tq_internal.tick ORDER BY last_id DESC LIMIT 1)))};

# A server that has tq in shared_preload_libraries, started.
sub new_node
{
	my ($name, @conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(allows_streaming => 1);
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'tq'");
	$node->append_conf('postgresql.conf', $_) foreach @conf;
	$node->start;
	return $node;
}

# A server that has pg_cron in place of tq, started; without pg_cron the test is skipped.
sub new_cron_node
{
	my (@conf) = @_;
	my $share = `pg_config --sharedir`;
	my $node;

	chomp $share;
	plan skip_all => 'pg_cron is not installed' unless -f "$share/extension/pg_cron.control";
	$node = PostgreSQL::Test::Cluster->new('cron');
	$node->init;
	$node->append_conf('postgresql.conf', $_)
	  foreach "shared_preload_libraries = 'pg_cron'", 'cron.use_background_workers = on', @conf;
	$node->start;
	return $node;
}

# A client begins to use a restored database: a call that may write, and changes
# nothing.
sub begin_use
{
	my ($node, $db) = @_;

	return $node->safe_psql($db, "SELECT tq.unbind('none', 'task-failed')");
}

# Query for the process of the maintenance worker in a database.
sub worker_of
{
	my ($db) = @_;

	return "SELECT pid FROM pg_stat_activity WHERE backend_type = 'tq worker' AND datname = '$db'";
}

# Process of the maintenance worker in a database, or ''.
sub worker_in
{
	my ($node, $db) = @_;

	return $node->safe_psql('postgres', worker_of($db));
}

# Wait until a database has a maintenance worker other than that process; returns
# its process id.
sub wait_worker
{
	my ($node, $db, $other) = @_;
	my $query = worker_of($db) . (defined $other ? " AND pid <> $other" : '');

	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM ($query) AS w")
	  or die "no maintenance worker in $db";
	return $node->safe_psql('postgres', $query);
}

sub wait_no_worker
{
	my ($node, $db) = @_;

	return $node->poll_query_until('postgres', 'SELECT NOT EXISTS (' . worker_of($db) . ')');
}

# Create a task; the arguments are those of tq.enqueue(), as SQL.
sub enqueue
{
	my ($node, $db, @arguments) = @_;

	return $node->safe_psql($db, "SELECT tq.enqueue(" . join(', ', "'p/w'", @arguments) . ")");
}

sub state_of
{
	my ($node, $db, $id) = @_;

	return $node->safe_psql($db, "SELECT tq.status('$id') ->> 'state'");
}

sub wait_state
{
	my ($node, $db, $id, $state) = @_;

	return $node->poll_query_until($db, "SELECT tq.status('$id') ->> 'state' = '$state'");
}

# Seconds from a moment of a task to the resolution of one of its runs.
sub lateness
{
	my ($node, $db, $id, $run, $from) = @_;

	return $node->safe_psql($db, qq{
		SELECT extract(epoch FROM (run ->> 'resolved')::timestamptz - $from)
		FROM (SELECT s, s -> 'runs' -> $run AS run FROM tq.status('$id') AS s) AS t});
}

# Wait until the server's clock has passed the deadline of a task.
sub wait_past_deadline
{
	my ($node, $db, $id) = @_;

	return $node->poll_query_until($db,
		"SELECT clock_timestamp() > (tq.status('$id') ->> 'deadline')::timestamptz");
}

# Begin a statement of a background session, which may take its time.
sub start
{
	my ($session, $sql) = @_;

	$session->{begun} = time;
	$session->{kept} = $session->query_until(qr/^begun$/m, "\\echo begun\n$sql;\n\\echo ended\n") =~ s/.*^begun\n//msr;
	return;
}

# Its output, once it has ended.
sub finish
{
	my ($session) = @_;
	my $output = $session->{kept};

	$output .= $session->query_until(qr/^ended$/m, '') if $output !~ /^ended$/m;
	return $output =~ s/\n?^ended\n//mr;
}

# Invariants of the tables; returns '' if all hold.  Functions that the query calls see
# what the maintenance worker does meanwhile, and the query itself does not: so a
# violation counts if it is there again.
sub violations
{
	my ($node, $db) = @_;
	my $sql   = slurp_file(dirname(__FILE__) . '/../violations.sql');
	my $first = $node->safe_psql($db, $sql);

	return $first eq '' ? '' : $node->safe_psql($db, $sql);
}

1;
