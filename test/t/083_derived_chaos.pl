# Clients create tasks, in transactions that sleep, roll back and have savepoints, while
# the maintenance worker and sessions publish, and backends are killed: each task that is
# committed has one task-defined and one task-pending, in that order.  TQ_SECONDS is how
# long each of TQ_ROUNDS (3) rounds takes at most, of which all but the last end in a crash;
# TQ_SEED repeats the moments of the crashes.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT session output);
use Time::HiRes qw(usleep);

my $seconds = $ENV{TQ_SECONDS} // 4;
my $rounds = $ENV{TQ_ROUNDS} // 3;
my $seed = $ENV{TQ_SEED} // int(rand(1_000_000));
my $db = 'postgres';
my $tmp = PostgreSQL::Test::Utils::tempdir;

note("seed $seed");
srand($seed);

my $node = new_node('chaos', 'restart_after_crash = on', 'max_connections = 40', 'shared_buffers = 32MB',
	'log_statement = none', "tq.publish_interval = '5ms'", "tq.default_deadline = '1 day'");

$node->safe_psql($db, 'CREATE EXTENSION tq');
$node->safe_psql($db, "SELECT tq.subscribe('all', '$_')") foreach qw(task-defined task-pending);
enqueue($node, $db);

my %script = (
	plain => q{SELECT tq.enqueue('p/w');},
	sleeps => q{BEGIN; SELECT tq.enqueue('p/w'); SELECT pg_sleep(random() * 0.05); COMMIT;},
	two => q{BEGIN; SELECT tq.enqueue('p/w'); SELECT tq.enqueue('p/w'); COMMIT;},
	aborts => q{BEGIN; SELECT tq.enqueue('p/w'); SELECT pg_sleep(random() * 0.01); ROLLBACK;},
	savepoints => q{BEGIN; SAVEPOINT s; SELECT tq.enqueue('p/w'); ROLLBACK TO s; SELECT tq.enqueue('p/w'); SAVEPOINT s; SELECT tq.enqueue('p/w'); RELEASE s; COMMIT;},
	passes => q{SELECT tq.upkeep();});
my %weight = (plain => 8, sleeps => 2, two => 2, aborts => 1, savepoints => 2, passes => 1);
foreach my $name (keys %script)
{
	append_to_file("$tmp/$name.sql", $script{$name} =~ s/; /;\n/gr . "\n");
}

# A load of eight clients; it ends early where the server crashes.
sub start_load
{
	my $pid = fork() // die "fork: $!";

	return $pid if $pid != 0;
	open(STDOUT, '>', "$tmp/load.out");
	open(STDERR, '>&', \*STDOUT);
	exec('pgbench', '-n', '-c', '8', '-j', '2', '-T', $seconds, (map { ('-f', "$tmp/$_.sql\@$weight{$_}") } sort keys %script),
		'-h', $node->host, '-p', $node->port, $db) or die "pgbench: $!";
}

my $created = 0;
foreach my $round (1 .. $rounds)
{
	my $load = start_load();

	if ($round < $rounds)
	{
		my $pid = '';

		usleep(1_000_000 * (0.3 + rand(0.5)) * $seconds);
		foreach (1 .. 100)
		{
			$pid = eval { $node->safe_psql($db, q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1}) } // '';
			last if $pid ne '';
			usleep(20_000);
		}
		die 'no client is there' if $pid eq '';
		is(kill('KILL', $pid), 1, "round $round: a client's backend is killed");
		waitpid($load, 0);
		# the crash, and the restart
		$node->poll_query_until($db, 'SELECT NOT pg_is_in_recovery()') or die 'no restart';
	}
	else
	{
		waitpid($load, 0);
	}
	ok($node->poll_query_until($db, 'SELECT NOT EXISTS (SELECT FROM tq_internal.unpublished)'), "round $round: all is published");
	my $now = $node->safe_psql($db, 'SELECT count(*) FROM tq_internal.task');
	cmp_ok($now, '>', $created, "round $round: tasks were created");
	$created = $now;
}
note("$created tasks");

# The ledger.
my $reader = session($node, $db);
output($reader, 'CREATE TABLE ledger (id bigint, exchange text, task text)');
my ($descending, $last, $n) = (0, 0);
do
{
	my $rows = $reader->selectall_arrayref(q{SELECT id, exchange, payload #>> '{status,taskId}' FROM tq.fetch('all', 1000)});

	$n = @$rows;
	foreach (@$rows)
	{
		$descending++ if $_->[0] <= $last;
		$last = $_->[0];
	}
	if ($n > 0)
	{
		$reader->do('INSERT INTO ledger SELECT * FROM unnest(?::bigint[], ?::text[], ?::text[])', undef,
			map { my $i = $_; [ map { $_->[$i] } @$rows ] } 0 .. 2);
		$reader->do("SELECT tq.ack('all', $last)");
	}
} while $n > 0;
is($descending, 0, 'ids ascend');
output($reader, 'CREATE INDEX ON ledger (task)');
output($reader, 'ANALYZE ledger');
is(output($reader, q{
		SELECT t.id, string_agg(l.exchange, ' ' ORDER BY l.id) FROM tq_internal.task t LEFT JOIN ledger l ON l.task = t.task_id::text
		GROUP BY 1 HAVING string_agg(l.exchange, ' ' ORDER BY l.id) IS DISTINCT FROM 'task-defined task-pending' ORDER BY 1 LIMIT 10}),
	'', 'each task that was committed has both messages, once, in their order');
is(output($reader, q{SELECT task FROM ledger EXCEPT SELECT task_id::text FROM tq_internal.task LIMIT 10}), '', 'and no other task has any');
cmp_ok(output($reader, 'SELECT count(*) FROM tq_internal.task WHERE xid IS NOT NULL'), '>', $created / 3, 'most were derived');
$reader->disconnect;
is(violations($node, $db), '', 'tables are consistent');
unlike(slurp_file($node->logfile), qr/PANIC:|TRAP:|was terminated by signal (?!9)/, 'nothing else crashed');
$node->stop;

done_testing();
