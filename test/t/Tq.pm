# Tq.pm: functions that the tests with servers of their own share, with those of
# Test::More and PostgreSQL::Test::Utils.
package Tq;

use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Exporter 'import';
use File::Basename qw(dirname);

# A wait that cannot end fails after one minute, not after three.
BEGIN { $ENV{PG_TEST_TIMEOUT_DEFAULT} //= 60; }

use DBI;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = (qw(new_node new_older pg_upgrade begin_use worker_of worker_in wait_worker wait_no_worker
	  enqueue state_of wait_state lateness wait_past_deadline violations),
	@Test::More::EXPORT, @PostgreSQL::Test::Utils::EXPORT);
our @EXPORT_OK = qw(new_cron_node $published start finish session output);

# Whether all committed messages are published.
our $published = q{
	SELECT NOT EXISTS (SELECT FROM tq_internal.unpublished)};

# Functions of PostgreSQL's own modules of which we have quicker ones.  A psql of its own
# for each statement, and for each attempt of a poll, took most of the tests' time.
my ($safe_psql, $poll_query_until);

BEGIN
{
	no warnings 'redefine';
	$safe_psql = \&PostgreSQL::Test::Cluster::safe_psql;
	$poll_query_until = \&PostgreSQL::Test::Cluster::poll_query_until;
	*PostgreSQL::Test::Cluster::safe_psql = \&safe_sql;
	*PostgreSQL::Test::Cluster::poll_query_until = \&poll_sql_until;
	*PostgreSQL::Test::Utils::system_or_bail = \&system_or_copy;
}

# Whether psql is needed: more than one statement, a command of psql, or what only psql
# reads and prints.
sub is_for_psql
{
	my ($sql) = @_;

	return !defined $sql || $sql =~ /;\s*[^\s;]|\\|^\s*(?:COPY|LISTEN)\b/i;
}

sub session
{
	my ($node, $db) = @_;

	return DBI->connect('dbi:Pg:' . $node->connstr($db), '', '', {
		RaiseError => 1, PrintError => 0, PrintWarn => 0, AutoInactiveDestroy => 1,
		pg_bool_tf => 1, pg_expand_array => 0, pg_enable_utf8 => 0 });
}

# What psql -XAtq prints for a statement.
sub output
{
	my ($session, $sql) = @_;
	my $statement = $session->prepare($sql, { pg_direct => 1 });

	$statement->execute;
	return '' if !$statement->{NUM_OF_FIELDS};
	return join("\n", map { join('|', map { $_ // '' } @$_) } @{ $statement->fetchall_arrayref });
}

# As safe_psql(): run a statement in a session of its own.
sub safe_sql
{
	my ($node, $db, $sql, @options) = @_;
	my ($session, $output);

	return $safe_psql->($node, $db, $sql, @options) if @options || is_for_psql($sql);
	note("$db: $sql");
	eval {
		$session = session($node, $db);
		$output = output($session, $sql);
		1;
	} or die "error running SQL: '$@' with '$sql'";
	$session->disconnect;
	return $output;
}

# As poll_query_until(): repeat a query until it returns what is expected, in one session;
# one that has failed is followed by another.
sub poll_sql_until
{
	my ($node, $db, $sql, $expected) = @_;
	my $end = time + $PostgreSQL::Test::Utils::timeout_default;
	my ($session, $output);

	return $poll_query_until->($node, $db, $sql, $expected) if is_for_psql($sql);
	$expected //= 't';
	while (1)
	{
		eval {
			$session //= session($node, $db);
			$output = output($session, $sql);
			1;
		} or do
		{
			$output = $@;
			undef $session;
		};
		last if $output eq $expected || time >= $end;
		usleep(50_000);
	}
	$session->disconnect if defined $session;
	diag("in $db: $sql\nis not $expected, but $output") if $output ne $expected;
	return $output eq $expected;
}

# As in version 17, initdb copies $INITDB_TEMPLATE, if there is one and no other options
# are wanted.
sub system_or_copy
{
	my (@command) = @_;

	@command = ('cp', '-RPp', $ENV{INITDB_TEMPLATE}, $command[2])
	  if "@command" =~ /^initdb -D \S+ -A trust -N$/ && defined $ENV{INITDB_TEMPLATE};
	return system_or_bail(@command);
}

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

# A server that another one is to take the data of, started.  It is of an older major version
# if TQ_OLDER is the pg_config of one, as in the part `majors` of test/check.
sub new_older
{
	my ($name, @conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name, $ENV{TQ_OLDER} ? (install_path => dirname(dirname($ENV{TQ_OLDER}))) : ());

	init_alike($node);
	$node->append_conf('postgresql.conf', $_) foreach @conf;
	$node->start;
	return $node;
}

# Versions differ in whether a new server has checksums, but pg_upgrade wants them alike.
sub init_alike
{
	my ($node) = @_;

	$node->init($ENV{TQ_OLDER} ? (extra => ['--data-checksums']) : ());
	return;
}

# Minor versions of November 2026 note a version of each column of each table among its
# options.  A next major of an earlier date refuses that option, whatever the table is of, so
# that no table could be upgraded: then the old server is made to forget it.
sub forget_versions
{
	my ($old, $new) = @_;
	my $noted = q{attoptions::text LIKE '%pg_attver=%'};
	my (undef, undef, $err) = $new->psql('postgres', 'CREATE TEMP TABLE plain (a int); ALTER TABLE plain ALTER a SET (pg_attver = 1)');

	return if $err !~ /unrecognized parameter/ || $old->safe_psql('postgres', "SELECT bool_or($noted) FROM pg_attribute") ne 't';
	note($err);
	$old->safe_psql($_, qq{
		SET allow_system_table_mods = on;
		UPDATE pg_attribute SET attoptions = nullif(ARRAY(SELECT o FROM unnest(attoptions) AS o WHERE o NOT LIKE 'pg_attver=%'), '{}')
			WHERE $noted}) foreach split /\n/, $old->safe_psql('postgres', 'SELECT datname FROM pg_database WHERE datallowconn');
	return;
}

# Stops a server, and returns one of this version, started, to which pg_upgrade has copied
# its data.
sub pg_upgrade
{
	my ($old, @conf) = @_;
	my $new = PostgreSQL::Test::Cluster->new('upgraded');
	my $here = getcwd();

	init_alike($new);
	$new->append_conf('postgresql.conf', $_) foreach @conf;
	$new->start;
	forget_versions($old, $new);
	$_->stop foreach $new, $old;
	chdir PostgreSQL::Test::Utils::tempdir() or die "chdir: $!";
	$new->command_ok(
		[ 'pg_upgrade', '--no-sync', '-d', $old->data_dir, '-D', $new->data_dir, '-b', $old->config_data('--bindir'), '-B', $new->config_data('--bindir'),
			'-s', $old->host, '-p', $old->port, '-P', $new->port ],
		'pg_upgrade');
	# left there where it fails
	note(slurp_file($_) =~ /.{0,2000}\z/sg) foreach glob($new->data_dir . '/pg_upgrade_output.d/*/log/pg_upgrade_dump_*.log');
	chdir $here or die "$here: $!";
	$new->start;
	return $new;
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
