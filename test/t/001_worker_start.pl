# The launcher and its maintenance workers: where there is one, and where there
# is none.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $node = new_node('start');
my $launcher = "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'tq launcher'";

ok($node->poll_query_until('postgres', $launcher), 'launcher runs');
$node->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(one two none);

# By CREATE EXTENSION, in each database of its own.
$node->safe_psql('one', 'CREATE EXTENSION tq');
my $one = wait_worker($node, 'one');
ok($one, 'CREATE EXTENSION starts a maintenance worker');
$node->safe_psql('two', 'CREATE EXTENSION tq');
ok(wait_worker($node, 'two'), 'a second database has its own');
is(worker_in($node, 'one'), $one, 'the first is not disturbed');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'tq worker'"),
	2, 'there is none where there is no extension');

# A transaction that is rolled back starts nothing.
$node->safe_psql('none', 'BEGIN; CREATE EXTENSION tq; ROLLBACK');
is(worker_in($node, 'none'), '', 'CREATE EXTENSION that is rolled back starts none');

# By a restart of the server, orderly or not.
$node->restart;
ok(wait_worker($node, 'one'), 'the maintenance worker is there after a restart, in the first');
ok(wait_worker($node, 'two'), 'and in the second');
$node->stop('immediate');
$node->start;
ok(wait_worker($node, 'one'), 'the maintenance worker is there after an immediate shutdown');

# DROP EXTENSION ends it, CREATE EXTENSION brings it back.
wait_worker($node, 'two');
$node->safe_psql('two', 'DROP EXTENSION tq');
ok(wait_no_worker($node, 'two'), 'DROP EXTENSION ends the maintenance worker');
$node->safe_psql('two', 'CREATE EXTENSION tq');
my $two = wait_worker($node, 'two');
ok($two, 'CREATE EXTENSION again starts it again');
my $id = enqueue($node, 'two', "deadline => '1 second'");
ok(wait_state($node, 'two', $id, 'exception'), 'and it works');
$node->safe_psql('two', 'BEGIN; DROP EXTENSION tq; CREATE EXTENSION tq; COMMIT');
$two = wait_worker($node, 'two', $two);
ok($two, 'another extension gets another maintenance worker');
$id = enqueue($node, 'two', "deadline => '1 second'");
ok(wait_state($node, 'two', $id, 'exception'), 'which works, too');
$node->safe_psql('two', 'DROP SCHEMA tq CASCADE');
ok(wait_no_worker($node, 'two'), 'DROP SCHEMA CASCADE ends the maintenance worker');

# Terminated or cancelled by another session.
$one = worker_in($node, 'one');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($one)");
ok(wait_worker($node, 'one', $one), 'a maintenance worker that was terminated comes back');
$one = worker_in($node, 'one');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($one)");
$id = enqueue($node, 'one', "deadline => '1 second'");
ok(wait_state($node, 'one', $id, 'exception'), 'a maintenance worker that was cancelled goes on');
is(worker_in($node, 'one'), $one, 'in the same process');
my $old = $node->safe_psql('postgres',
	"SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'tq launcher'");
$old =~ s/\|.*//;
ok( $node->poll_query_until(
		'postgres', "$launcher AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $old)"),
	'a launcher that was terminated comes back');
is(worker_in($node, 'one'), $one, 'and leaves the maintenance workers alone');
$node->safe_psql('none', 'BEGIN; SAVEPOINT a; CREATE EXTENSION tq; RELEASE a; SAVEPOINT b; ROLLBACK TO b; COMMIT');
ok(wait_worker($node, 'none'), 'and starts others, also of a savepoint before one that is rolled back');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($one)");
ok(wait_worker($node, 'one', $one), 'and starts those again that it did not start');

# Configuration is read again.
$node->append_conf('postgresql.conf', "tq.deadline_delay = '1ms'");
$node->reload;
$id = enqueue($node, 'one', "deadline => '1 second'");
ok(wait_state($node, 'one', $id, 'exception'), 'works after a reload');
unlike(slurp_file($node->logfile), qr/PANIC:|was terminated by signal|TRAP:/, 'nothing crashed');
$node->stop;

# Too few processes: a warning; the maintenance worker starts when a process is free.
my $small = new_node('small', 'max_worker_processes = 2', 'max_logical_replication_workers = 0');
$small->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(one two);
$small->safe_psql('one', 'CREATE EXTENSION tq');
wait_worker($small, 'one');
$small->safe_psql('two', 'CREATE EXTENSION tq');
my $complaint = qr/WARNING: .* no background worker process is free for tq/;
ok($small->wait_for_log($complaint), 'too few processes: a warning');
like(slurp_file($small->logfile), qr/HINT: .*max_worker_processes/, 'with a hint');
$small->safe_psql('one', 'DROP EXTENSION tq');
ok(wait_worker($small, 'two'), 'the maintenance worker starts when a process is free');
$small->stop;

# Not preloaded: everything works by upkeep(), and nothing is started.
my $plain = PostgreSQL::Test::Cluster->new('plain');
$plain->init;
$plain->start;
$plain->safe_psql('postgres', 'CREATE EXTENSION tq');
$id = enqueue($plain, 'postgres', "deadline => '1 minute'");
$plain->safe_psql('postgres', "SET tq.clock_offset = '2 minutes'; SELECT tq.upkeep()");
is(state_of($plain, 'postgres', $id), 'exception', 'without preload there is upkeep()');
is($plain->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'tq%'"),
	0, 'and no process of ours');
$plain->stop;

done_testing();
