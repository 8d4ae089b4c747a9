# kill -9 of a backend, of the maintenance worker and of the postmaster under
# load: nothing that was acknowledged is lost, no run is claimed by two workers,
# and every task is resolved.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;
use POSIX ();
use Time::HiRes qw(usleep);

my $node = new_node('crash', 'restart_after_crash = on', 'log_statement = none');
my $db = 'postgres';
my $tmp = PostgreSQL::Test::Utils::tempdir;
my $stop = "$tmp/stop";
my $parent = $$;
my @clients;

# Clients do not outlive the test, however it ends.
END { append_to_file($stop, '') if defined $stop && $$ == $parent; }

$node->safe_psql($db, 'CREATE EXTENSION tq');
wait_worker($node, $db);

# Scripts of the clients.  What psql prints after a statement was committed;
# every fifth claim is forgotten, so that it expires.
my $create = join("\n", map {
	"SELECT 'created', tq.enqueue('p/w', deadline => '1 hour', retries => 49);"
} 1 .. 50);
my $work = join("\n", map {
	my $report = $_ % 5 == 0 ? '' : q{
		SELECT 'completed', task_id, run_id
		FROM tq.resolve(ARRAY[:'t'::tq.slugid], ARRAY[:r]) WHERE outcome = 'resolved';};
	qq{
		\\unset t
		SELECT task_id AS t, run_id AS r FROM tq.claim_work('p/w', 'g', :'me') \\gset
		\\if :{?t}
			\\echo claimed|:t|:r
			$report
		\\endif}
} 1 .. 50) . "\n";

# A client: runs its script again and again, whatever the server does.
sub start_client
{
	my ($name, $script) = @_;
	my $file = "$tmp/$name.sql";
	my $psql = join(' ', 'psql -XAtq', "-v me=$name", '-d', "'" . $node->connstr($db) . "'",
		"-f $file >> $tmp/$name.out 2>> $tmp/$name.err");

	append_to_file($file, $script);
	my $pid = fork;
	die "cannot fork: $!" unless defined $pid;
	if ($pid == 0)
	{
		$ENV{PGOPTIONS} = '-c tq.claim_timeout=1s';
		while (!-e $stop && getppid() == $parent)
		{
			system($psql) == 0 or usleep(100_000);
		}
		POSIX::_exit(0);
	}
	push @clients, $pid;
}

# What the clients have read so far: lines of one kind.
sub reported
{
	my ($kind) = @_;
	my @lines;

	foreach my $file (glob "$tmp/*.out")
	{
		my ($client) = $file =~ m{/(\w+)\.out$};
		push @lines, map { "$_|$client" } slurp_file($file) =~ /^$kind\|(\S+)$/mg;
	}
	return @lines;
}

# Wait until the clients have completed so many more tasks.
sub wait_progress
{
	my ($what, $more) = @_;
	my $goal = reported('completed') + $more;

	foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return pass($what) if reported('completed') >= $goal;
		usleep(100_000);
	}
	return fail($what);
}

start_client("creator$_", $create) foreach 1 .. 2;
start_client("worker$_", $work) foreach 1 .. 4;
wait_progress('clients work', 100);

# A backend that is in the middle of something.
# The clients' sessions are short: the one that was seen may have ended, so
# another is taken until one was there to be killed.
my $backend;
my $killed = 0;
foreach (1 .. 100)
{
	$backend = $node->safe_psql($db, q{
		SELECT pid FROM pg_stat_activity
		WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY state, pid LIMIT 1});
	$killed = $backend ne '' && kill('KILL', $backend);
	last if $killed;
}
ok($killed, 'kill -9 of a backend');
ok($node->wait_for_log(qr/PID $backend\) was terminated by signal 9/), 'brings the server down');
ok($node->poll_query_until($db, 'SELECT true'), 'and up again');
wait_progress('clients work again', 100);
my $worker = wait_worker($node, $db);

ok(kill('KILL', $worker), 'kill -9 of the maintenance worker');
ok($node->wait_for_log(qr/PID $worker\) was terminated by signal 9/), 'brings the server down');
ok($node->poll_query_until($db, 'SELECT true'), 'and up again');
wait_progress('clients work again', 100);
ok(wait_worker($node, $db, $worker), 'and the maintenance worker is back');

# Start it when the old postmaster and its children have gone.
sub start_again
{
	foreach (1 .. $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if $node->start(fail_ok => 1);
		usleep(100_000);
		$node->stop('fast', fail_ok => 1);
	}
	return 0;
}

my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
$node->kill9;
pass('kill -9 of the postmaster');
usleep(100_000) while kill(0, $postmaster);
ok(start_again(), 'the server starts again');
wait_progress('clients work again', 100);

append_to_file($stop, '');
waitpid($_, 0) foreach @clients;
is(violations($node, $db), '', 'tables are consistent');

# Nothing that was acknowledged is lost, and no run was handed out twice.
my %tables = (created => [ reported('created') ], claimed => [ reported('claimed') ],
	completed => [ reported('completed') ]);
my %seen;
my @twice = grep { s/\|\w+$//; $seen{$_}++ } map { "$_" } @{ $tables{claimed} };
is(scalar @twice, 0, 'no run is claimed by two workers');
foreach my $kind (sort keys %tables)
{
	note(scalar @{ $tables{$kind} }, " $kind");
	append_to_file("$tmp/$kind", join('', map { "$_\n" } @{ $tables{$kind} }));
	my $columns = $kind eq 'created' ? 'task_id tq.slugid, client text'
	  : 'task_id tq.slugid, run_id int, client text';
	$node->safe_psql($db, "CREATE TABLE $kind ($columns);\n\\copy $kind FROM '$tmp/$kind' (DELIMITER '|')");
}
is($node->safe_psql($db, q{
		SET search_path = tq, tq_internal, public;
		SELECT count(*) FROM created c WHERE NOT EXISTS (SELECT FROM task t WHERE t.task_id = c.task_id)}),
	0, 'no task is lost');
is($node->safe_psql($db, q{
		SET search_path = tq, tq_internal, public;
		SELECT count(*) FROM claimed c LEFT JOIN run_overview r USING (task_id, run_id)
		WHERE r.worker_id IS DISTINCT FROM c.client}),
	0, 'no claim is lost');
is($node->safe_psql($db, q{
		SET search_path = tq, tq_internal, public;
		SELECT count(*) FROM completed c LEFT JOIN run_overview r USING (task_id, run_id)
		WHERE r.state IS DISTINCT FROM 'completed'}),
	0, 'no completion is lost');

# Everything ends: what is claimed expires, what is left passes its deadline.
ok($node->poll_query_until($db,
		"SELECT count(*) = 0 FROM tq.run_overview WHERE state = 'running'"),
	'forgotten claims expire');
is($node->safe_psql($db, q{
		SELECT count(*) FROM tq.run_overview WHERE state NOT IN ('completed', 'pending')
		AND reason_resolved <> 'claim-expired'}),
	0, 'and nothing else happened');
{
	local $ENV{PGOPTIONS} = "-c tq.clock_offset=2h";

	ok($node->poll_query_until($db, q{
			SELECT count(*) > 0 FROM tq.upkeep();
			SELECT count(*) = 0 FROM tq.task_details
			WHERE state NOT IN ('completed', 'failed', 'exception')},
			"t\nt"),
		'every task is resolved in the end');
}
is(violations($node, $db), '', 'tables are consistent');
$node->stop;

done_testing();
