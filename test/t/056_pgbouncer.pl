# PgBouncer in transaction mode, set up as doc/clients.md shows: workers that wait
# leave the producers' connections alone.  Of a worker that is killed while it
# waits, the session ends, claims nothing, and its wake-up goes to another one.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;
use Time::HiRes qw(time usleep);

# Debian has it in /usr/sbin, which is not in the PATH of all users.
my ($pgbouncer) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
plan skip_all => 'pgbouncer is not installed' unless $pgbouncer;

my $SOON = 8;				# seconds; a waiter looks for its client every 10 s without the setting
my $db = 'app';
my $node = new_node('pgbouncer');
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $bouncer;

$node->safe_psql('postgres', "CREATE DATABASE $db");
$node->safe_psql($db, "CREATE EXTENSION tq; ALTER DATABASE $db SET client_connection_check_interval = '200 ms'");
wait_worker($node, $db);

# Waiters of a queue that was never used are all woken at once, and this one is to
# be known.
$node->safe_psql($db, "SELECT FROM tq.claim_work('p/w', 'g', 'none')");

# ---- PgBouncer ----

# What doc/clients.md shows, with the addresses of this test; the last setting of
# a name holds.  The pool for producers gets one connection.
sub configuration
{
	my ($shown) = slurp_file("$FindBin::RealBin/../../doc/clients.md") =~ /^```ini\n(\[databases\]\n.*?)^```$/ms
	  or die 'doc/clients.md shows no configuration of PgBouncer';
	my $server = 'host=' . $node->host . ' port=' . $node->port . ' user=' . getpwuid($<);

	$shown =~ s/host=\S+/$server/g;
	$shown =~ s/^default_pool_size\b.*/default_pool_size = 1/m or die 'it has no default_pool_size';
	return $shown . <<"END";
listen_addr =
listen_port = $port
unix_socket_dir = $dir
auth_type = any
admin_users = anyone
logfile = $dir/log
pidfile = $dir/pid
END
}

sub start_bouncer
{
	append_to_file("$dir/ini", configuration());
	$bouncer = IPC::Run::start([ $pgbouncer, '-q', "$dir/ini" ], '<', \undef, '>', \my $out, '2>&1');
	wait_for('pgbouncer', sub { -S "$dir/.s.PGSQL.$port" });
	return;
}

END { local $?; $bouncer->kill_kill if $bouncer; }

sub wait_for
{
	my ($what, $condition) = @_;

	for (my $end = time + $PostgreSQL::Test::Utils::timeout_default; !$condition->();)
	{
		die "waited in vain for $what" if time > $end;
		usleep(50_000);
	}
	return;
}

sub connection
{
	my ($pool) = @_;

	return "host=$dir port=$port dbname=$pool user=anyone";
}

# ---- its clients ----

# What a statement answers through PgBouncer.
sub answer
{
	my ($pool, $sql) = @_;
	my ($out, $err) = run_command([ 'psql', '-XAtq', '-d', connection($pool), '-c', $sql ]);

	return $out . $err;
}

# Connections of the server that the pool for workers has.
sub servers { return scalar grep { /\|${db}_work\|/ } split /\n/, answer('pgbouncer', 'SHOW SERVERS'); }

# A worker that waits in the pool for workers.
sub start_worker
{
	my ($name) = @_;
	my $self = { name => $name, out => '' };

	$self->{run} = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', connection("${db}_work"), '-c', "SELECT worker_id FROM tq.claim_work('p/w', 'g', '$name', wait => '60 s')" ],
		'<', \undef, '>', \$self->{out}, '2>&1', IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	return $self;
}

# Sessions that wait, first come first.
sub waiters { return split /\n/, $node->safe_psql($db, 'SELECT pid FROM tq.waiter_overview ORDER BY since'); }

# Starts workers of these names, one after the other.
sub start_waiting
{
	my $before = waiters();

	return map {
		my $worker = start_worker($_);
		my $n = ++$before;
		$node->poll_query_until($db, "SELECT count(*) = $n FROM tq.waiter_overview") or die "worker $_ does not wait";
		$worker;
	} @_;
}

sub kill_worker
{
	my ($worker) = @_;

	$worker->{run}->signal('KILL');
	eval { $worker->{run}->finish };
	return;
}

sub finish_worker
{
	my ($worker) = @_;

	$worker->{run}->finish;
	chomp $worker->{out};
	return $worker->{out};
}

# ---- tests ----

my $ended = 'SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %d)';

start_bouncer();

# More workers wait than the producers have connections.
my @workers = start_waiting(1 .. 3);
my @sessions = waiters();
is(servers(), 3, 'each worker that waits has a connection of the server');
like(answer($db, q{SELECT tq.enqueue('p/w')}), qr/^[\w-]{22}$/, 'a producer is not held up');
is(finish_worker($workers[0]), '1', 'the first worker has the task');

is(answer("${db}_work", "CALL tq.wait_for_work('p/w', '100 ms')"), '', 'a procedure that waits can be called');

# With the setting the session of a killed worker ends by itself.
my $killed = time;
kill_worker($workers[1]);
ok($node->poll_query_until($db, sprintf $ended, $sessions[1]), 'the session of a killed worker ends');
cmp_ok(time - $killed, '<', $SOON, 'at the interval of the setting');
is_deeply([ waiters() ], [ $sessions[2] ], 'and leaves the other worker waiting');
answer($db, q{SELECT tq.enqueue('p/w')});
is(finish_worker($workers[2]), '3', 'which has the next task');

# Without it the session ends when it is woken, at the latest.
$node->safe_psql('postgres', "ALTER DATABASE $db RESET client_connection_check_interval");
answer('pgbouncer', 'RECONNECT');
@workers = start_waiting(4, 5);
@sessions = waiters();
is($node->safe_psql($db, 'SHOW client_connection_check_interval'), '0', 'without the setting');
kill_worker($workers[0]);
wait_for('pgbouncer to close the connection', sub { servers() == 1 });
answer($db, q{SELECT tq.enqueue('p/w')});
is(finish_worker($workers[1]), '5', 'but the other worker has the task');
ok($node->poll_query_until($db, sprintf $ended, $sessions[0]), 'and it ends');
is($node->safe_psql($db, q{SELECT string_agg(worker, ' ' ORDER BY worker) FROM tq.task_overview}), 'g/1 g/3 g/5', 'no task was claimed for a client that is gone');
done_testing();
