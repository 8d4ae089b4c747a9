# The claim cursor where isolation specs do not reach: with more queues than it
# has slots for, with more in a transaction than it tracks, in several databases,
# around DROP EXTENSION, under load with rollbacks, and whether it saves anything
# at all.  No transaction may be prepared here; 051_cursor_crash.pl has the others.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $tmp = PostgreSQL::Test::Utils::tempdir;
my $node = new_node('cursor', 'tq.queue_slots = 4',
	'max_connections = 40', 'fsync = off', 'autovacuum = off', 'log_statement = none');

# ---- helpers ----

# A database with the extension, and with claim(): the number of tasks, up to n, that it claims.
sub new_database
{
	my ($db) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, q{
		CREATE EXTENSION tq;
		CREATE FUNCTION claim(queue text, n int) RETURNS bigint LANGUAGE sql AS
			$$ SELECT count(*) FROM tq.claim_work(queue, 'g', 'w', n) $$;
		CREATE FUNCTION fill(queue text, n int) RETURNS bigint LANGUAGE sql AS
			$$ SELECT count(tq.enqueue(queue)) FROM generate_series(1, n) $$});
	return;
}

# A session that is in a transaction, and has run these statements.
sub transaction
{
	my ($db, $begin, @statements) = @_;
	my $session = $node->background_psql($db);

	$session->query_safe($_) foreach $begin, @statements;
	return $session;
}

# While it is open, vacuum and index scans remove nothing.
sub hold_snapshot
{
	my ($db) = @_;

	return transaction($db, 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1');
}

# Claim all that there is in a queue, some at a time; how many there were.
sub drain
{
	my ($db, $queue) = @_;
	my ($n, $sum) = (1, 0);

	while ($n > 0)
	{
		$n = $node->safe_psql($db, "SELECT claim('$queue', 1000)");
		$sum += $n;
	}
	return $sum;
}

sub unclaimed
{
	my ($db) = @_;

	return $node->safe_psql($db, 'SELECT count(*) FROM tq_internal.pending');
}

# Tasks that were not claimed exactly once.
sub not_once
{
	my ($db) = @_;

	return $node->safe_psql($db, q{
		SELECT count(*) FROM (SELECT t.id FROM tq_internal.task t LEFT JOIN tq_internal.run r ON r.task = t.id
			GROUP BY t.id HAVING count(r.task) <> 1 OR max(r.run_id) <> 0) AS x});
}

# Entries of the order of pending that were read so far.
sub entries_read
{
	my ($db) = @_;

	return $node->safe_psql($db, q{
		SELECT idx_tup_read FROM pg_stat_all_indexes WHERE indexrelname = 'pending_order'});
}

# Entries that are read by that many claims of so many each.
sub cost_of
{
	my ($db, $queue, $claims, $each) = @_;
	my $before = entries_read($db);
	my $claimed = 0;

	$claimed += $_ foreach split /\n/, $node->safe_psql($db,
		join(';', ("SELECT claim('$queue', $each)") x $claims, 'SELECT pg_stat_force_next_flush()'));
	is($claimed, $claims * $each, "$claims claims of $each have all they ask for");
	return entries_read($db) - $before;
}

# Many sessions, each with so many runs of scripts that are chosen at random.
sub load
{
	my ($db, $clients, $runs, $what, %scripts) = @_;
	my @files;

	foreach my $name (sort keys %scripts)
	{
		append_to_file("$tmp/$db-$name", $scripts{$name});
		push @files, '-f', "$tmp/$db-$name";
	}
	$node->command_ok([ 'pgbench', '-n', '-c', $clients, '-j', 2, '-t', $runs, @files, $db ], $what);
	return;
}

# ---- does it save anything? ----

new_database('cost');
my $snapshot = hold_snapshot('cost');
$node->safe_psql('cost', "SELECT fill('c/w', 20000)");
cmp_ok(cost_of('cost', 'c/w', 200, 100), '<', 30000,
	'200 claims of 100 under a held snapshot do not look at what was claimed before');
$node->safe_psql('cost', "SELECT fill('c/w', 100)");
cmp_ok(cost_of('cost', 'c/w', 100, 1), '<', 300, 'nor do claims of one');

# Rows of a long transaction are passed over as well, and found when it ends.
my $long = transaction('cost', 'BEGIN', "SELECT fill('c/w', 500)", "SELECT claim('c/w', 10)");
$node->safe_psql('cost', "SELECT fill('c/w', 5000)");
cmp_ok(cost_of('cost', 'c/w', 50, 100), '<', 7500, 'nor at what a long transaction holds');
is($node->safe_psql('cost', "SELECT claim('c/w', 1000)"), 0, 'which no other session gets while it is open');
$long->query_safe('COMMIT');
is(drain('cost', 'c/w'), 490, 'all that it made is found after its commit');
is(unclaimed('cost'), 0, 'nothing is left');
$long->quit;
$snapshot->query_safe('COMMIT');
$snapshot->quit;

# ---- sessions that end in the middle of a transaction ----

$node->safe_psql('cost', "SELECT fill('c/w', 20)");
my $doomed = transaction('cost', 'BEGIN', "SELECT claim('c/w', 5)");
$node->safe_psql('cost', "SELECT claim('c/w', 10)");
my $pid = $doomed->query_safe('SELECT pg_backend_pid()');
$node->safe_psql('cost', "SELECT pg_terminate_backend($pid, 60000)");
is($node->safe_psql('cost', "SELECT claim('c/w', 1000)"), 10, 'what a terminated session had claimed is found');
$doomed->{run}->finish;

$node->safe_psql('cost', "SELECT fill('c/w', 20)");
my $leaver = transaction('cost', 'BEGIN', "SELECT claim('c/w', 5)");
$pid = $leaver->query_safe('SELECT pg_backend_pid()');
$node->safe_psql('cost', "SELECT claim('c/w', 10)");
$leaver->quit;
$node->poll_query_until('cost', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)");
is(drain('cost', 'c/w'), 10, 'and what one had that has left');

# ---- more queues than there are slots for ----

new_database('many');
my @queues = map { "m/q$_" } 1 .. 12;
$node->safe_psql('many', join(';', map { "SELECT fill('$_', 3), claim('$_', 0 + 1)" } @queues));
is($node->safe_psql('many', join(';', map { "SELECT claim('$_', 1)" } @queues, @queues, @queues)),
	join("\n", (1) x 24, (0) x 12), 'claims of many queues in turn find one task after the other');
$node->safe_psql('many', join(';', map { "SELECT fill('$_', 1)" } @queues));
is($node->safe_psql('many', join(';', map { "SELECT claim('$_', 1)" } reverse @queues)),
	join("\n", (1) x 12), 'and what came into a queue that was empty');

# One transaction for each queue, open at the same time; then rolled back.
$node->safe_psql('many', join(';', map { "SELECT fill('$_', 2)" } @queues));
my @open = map { transaction('many', 'BEGIN', "SELECT claim('$_', 1)") } @queues;
$node->safe_psql('many', join(';', map { "SELECT claim('$_', 10)" } @queues));
$_->query_safe('ROLLBACK') foreach @open;
$_->quit foreach @open;
is($node->safe_psql('many', join(';', map { "SELECT claim('$_', 10)" } @queues)),
	join("\n", (1) x 12), 'what was rolled back is found in each of them');

# ---- more in a transaction than it notes ----

@queues = map { "n/q$_" } 1 .. 70;
my $all = join(';', map { "SELECT claim('$_', 10)" } @queues);
$node->safe_psql('many', join(';', map { "SELECT fill('$_', 2)" } @queues));
$node->safe_psql('many', "BEGIN; $all; ROLLBACK");
is($node->safe_psql('many', "SELECT claim('n/q70', 1)"), 1, 'what a transaction took of many queues is found in the last');
$node->safe_psql('many', "BEGIN; SAVEPOINT a; $all; ROLLBACK TO a; COMMIT");
is($node->safe_psql('many', "SELECT claim('n/q70', 1)"), 1, 'and after a savepoint');
is($node->safe_psql('many', $all), join("\n", (2) x 69, 0), 'and in all of them');
my $maker = transaction('many', 'BEGIN', map { "SELECT fill('$_', 1)" } @queues);
$node->safe_psql('many', "SELECT claim('n/q70', 1)");
is($maker->query_safe("SELECT claim('n/q69', 5) + claim('n/q70', 5)"), 2, 'a transaction that has made many finds its own');
$maker->query_safe('COMMIT');
$maker->quit;
is($node->safe_psql('many', $all), join("\n", (1) x 68, 0, 0), 'and others find the rest');

# All priorities of a few queues are more than it notes, too.
my $prioritized = join(';', map {
	my $queue = $_;
	map { "SELECT tq.enqueue('p/q$queue', priority => tq_internal.priority_name($_))" } 1 .. 7 } 1 .. 12);
$node->safe_psql('many', join(';', map { "SELECT claim('p/q$_', 7)" } 9 .. 12));
$node->safe_psql('many', "BEGIN; $prioritized; COMMIT");
is($node->safe_psql('many', join(';', map { "SELECT claim('p/q$_', 10)" } reverse 1 .. 12)),
	join("\n", (7) x 12), 'what a transaction made with all priorities is found');
is(unclaimed('many'), 0, 'nothing is left');

# ---- databases and extensions ----

# A copy has the same oids and the same queues.
new_database('one');
$node->safe_psql('one', "SELECT fill('d/w', 5)");
wait_worker($node, 'one');
$node->safe_psql('postgres', 'CREATE DATABASE two TEMPLATE one');
is(drain('two', 'd/w'), 5, 'a copy of a database has its tasks');
is(drain('one', 'd/w'), 5, 'and the other one has them still');

$node->safe_psql('one', q{
	SELECT fill('d/w', 5);
	BEGIN; DROP EXTENSION tq CASCADE; CREATE EXTENSION tq;
	SELECT tq.claim_work('d/w', 'g', 'w', 10);
	ROLLBACK});
is(drain('one', 'd/w'), 5, 'nothing is lost when the extension was not replaced after all');
$node->safe_psql('one', q{
	DROP EXTENSION tq CASCADE;
	CREATE EXTENSION tq;
	SELECT fill('d/w', 3)});
is(drain('one', 'd/w'), 3, 'nor when it was');
is($node->safe_psql('one', "BEGIN; SELECT fill('d/w', 4); SELECT claim('d/w', 1); COMMIT; SELECT claim('d/w', 9)"),
	"4\n1\n3", 'which then goes on from there');

# ---- claims while low numbers are committed, in any order ----

# Rows are put below so many dead entries, that a claim looks at, and in the
# order of their numbers, so that no later one makes good for a loss.
sub race
{
	my ($db, $tasks, $dead, %more) = @_;
	my $held;

	new_database($db);
	$held = hold_snapshot($db);
	$node->safe_psql($db, qq{
		SELECT fill('r/w', $tasks);
		CREATE TABLE kept AS SELECT row_number() OVER (ORDER BY seq) AS n, * FROM tq_internal.pending;
		ALTER TABLE kept ADD PRIMARY KEY (n);
		DELETE FROM tq_internal.pending;
		SELECT fill('r/w', $dead);
		CREATE SEQUENCE next});
	drain($db, 'r/w');
	$node->safe_psql($db, q{
		CREATE PROCEDURE put() LANGUAGE plpgsql AS $$
		BEGIN
			INSERT INTO tq_internal.pending SELECT seq, task, scheduled, queue, priority, run_id, retries_left, reason_created
				FROM kept WHERE n = (SELECT nextval('next'));
			PERFORM pg_sleep(random() * 0.002);
		END $$});
	load($db, 6, $tasks, "$db: puts and claims at the same time",
		put => 'CALL put();', claim => "SELECT claim('r/w', 1);", claimmore => "SELECT claim('r/w', 2);", %more);
	drain($db, 'r/w');
	is(unclaimed($db), 0, "$db: all that was put is claimed");
	$held->query_safe('COMMIT');
	$held->quit;
	return;
}

race('race', 2000, 2500);
race('evicted', 1500, 900, other => "\\set q random(1, 8)\nSELECT claim('o/q' || :q, 1);\n");

# ---- claims with rollbacks ----

new_database('abort');
$snapshot = hold_snapshot('abort');
$node->safe_psql('abort', "SELECT claim('a/w', 1)");
my $early = transaction('abort', 'BEGIN', "SELECT fill('a/w', 50)");
$node->safe_psql('abort', q{
	SELECT fill('a/w', 6000);
	CREATE PROCEDURE try() LANGUAGE plpgsql AS $$
	DECLARE
		dice float := random();
	BEGIN
		IF dice < 0.3 THEN
			PERFORM claim('a/w', 1 + (random() * 4)::int);
		ELSIF dice < 0.5 THEN
			PERFORM claim('a/w', 1 + (random() * 20)::int);
			ROLLBACK;
		ELSIF dice < 0.6 THEN
			PERFORM fill('a/w', 2);
			PERFORM claim('a/w', 1);
		ELSIF dice < 0.65 THEN
			PERFORM fill('a/w', 2);
			PERFORM pg_sleep(random() * 0.002);
			ROLLBACK;
		ELSIF dice < 0.85 THEN
			PERFORM claim('a/w', 1);
			BEGIN
				PERFORM claim('a/w', 1 + (random() * 5)::int);
				PERFORM pg_sleep(random() * 0.002);
				RAISE division_by_zero;
			EXCEPTION WHEN division_by_zero THEN
				PERFORM claim('a/w', 1);
			END;
		ELSE
			PERFORM claim('a/w', 3);
			PERFORM pg_sleep(random() * 0.005);
			ROLLBACK;
		END IF;
	END $$});
load('abort', 5, 1000, 'claims, of which many are rolled back', try => 'CALL try();');
is($early->query_safe("SELECT claim('a/w', 10)"), 10, 'a long transaction finds what it made before all others');
$early->query_safe('COMMIT');
$early->quit;
drain('abort', 'a/w');
is(unclaimed('abort'), 0, 'all are claimed');
is(not_once('abort'), 0, 'each exactly once');
is(violations($node, 'abort'), '', 'the tables are whole');
$snapshot->query_safe('COMMIT');
$snapshot->quit;

# ---- vacuum ----

# A vacuum that cut off the empty end of the table would have an exclusive lock for that.
my $size = "SELECT pg_relation_size('tq_internal.pending')";
my $before = $node->safe_psql('abort', $size);
$node->safe_psql('abort', 'VACUUM tq_internal.pending');
is($node->safe_psql('abort', $size), $before, 'a vacuum of pending locks no claim out');
is($node->safe_psql('abort', q{SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class
	WHERE 'vacuum_truncate=false' = ANY (reloptions)}), 'claim_timer delayed dependency_counter pending unscheduled',
	'nor does one of the other tables whose rows come and go with each task');

$node->stop;
done_testing();
