# Plans and caches of a backend while others change the tables' catalog entries,
# and while a trigger of the owner's calls tq from within tq: no crash, no error.
use strict;
use warnings FATAL => 'all';

use FindBin qw($RealBin);
use lib $RealBin;

use PostgreSQL::Test::Utils;
use Test::More;
use Tq;

my $node = new_node('invalidated');
my $dir = PostgreSQL::Test::Utils::tempdir();

$node->safe_psql('postgres', 'CREATE EXTENSION tq');
append_to_file("$dir/enqueue.sql", "SELECT tq.enqueue('short/w' || (random() * 50)::int);\n");
append_to_file("$dir/grant.sql", join "\n", map { "GRANT SELECT ON tq.$_ TO tq_admin; REVOKE SELECT ON tq.$_ FROM tq_admin;" } qw(queue task pending timer));

# Enqueue and change catalogs side by side; the number of enqueued tasks.
sub storm
{
	my $changes = IPC::Run::start(
		[ 'pgbench', '-n', '-c', '2', '-t', '300', '-h', $node->host, '-p', $node->port, '-f', "$dir/grant.sql", 'postgres' ],
		'>', '/dev/null', '2>', '/dev/null');

	$node->command_ok(
		[ 'pgbench', '-n', '-c', '3', '-t', '1000', '-h', $node->host, '-p', $node->port, '-f', "$dir/enqueue.sql", 'postgres' ],
		'enqueue while catalogs change');
	$changes->finish;
	return $node->safe_psql('postgres', 'SELECT count(*) FROM tq.task');
}

is(storm(), 3000, 'nothing is lost');

$node->safe_psql('postgres', q{
	CREATE FUNCTION nest() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF pg_trigger_depth() < 2 THEN
			PERFORM tq.enqueue('short/nested');
			PERFORM tq.pending_tasks('short/nested');
		END IF;
		RETURN NULL;
	END $$;
	CREATE TRIGGER nest AFTER INSERT ON tq.task FOR EACH ROW EXECUTE FUNCTION nest();
});
is(storm(), 9000, 'nor when a trigger enqueues a second task for each');
is($node->safe_psql('postgres', "SELECT tq.pending_tasks('short/nested')"), 3000, 'which are all claimable');
is($node->safe_psql('postgres', 'SELECT count(*) FROM tq.task WHERE id NOT IN (SELECT task FROM tq.pending)'),
	0, 'and so are the others');

$node->stop;
unlike(slurp_file($node->logfile), qr/terminated by signal|TRAP/, 'no process crashed');
done_testing();
