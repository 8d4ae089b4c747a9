# The claim cursor after a crash, and on a standby that is promoted: claims scan
# from the first entry again; transactions that were prepared before end after
# it, either way, and what they held is found.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $db = 'postgres';
my @conf = ('max_prepared_transactions = 20', 'max_connections = 40', 'autovacuum = off', 'log_statement = none');
my $node = new_node('crash', @conf, 'restart_after_crash = on');

$node->safe_psql($db, q{
	CREATE EXTENSION tq;
	CREATE FUNCTION claim(queue text, n int) RETURNS bigint LANGUAGE sql AS
		$$ SELECT count(*) FROM tq.claim_work(queue, 'g', 'w', n) $$;
	CREATE FUNCTION fill(queue text, n int) RETURNS bigint LANGUAGE sql AS
		$$ SELECT count(tq.enqueue(queue)) FROM generate_series(1, n) $$});

# ---- helpers ----

sub claim
{
	my ($server, $queue, $n) = @_;

	return $server->safe_psql($db, "SELECT claim('$queue', $n)");
}

# A session that is in a transaction, and has run these statements.
sub transaction
{
	my ($server, @statements) = @_;
	my $session = $server->background_psql($db);

	$session->query_safe($_) foreach 'BEGIN', @statements;
	return $session;
}

# Ends a session whose server has stopped.
sub forget
{
	my ($session) = @_;

	$session->{run}->kill_kill;
	return;
}

sub unclaimed
{
	my ($server) = @_;

	return $server->safe_psql($db, 'SELECT count(*) FROM tq_internal.pending');
}

# ---- what it saves where transactions may be prepared ----

my $entries = q{
	SELECT pg_stat_force_next_flush();
	SELECT idx_tup_read FROM pg_stat_all_indexes WHERE indexrelname = 'pending_order'};
my $snapshot = $node->background_psql($db);
$snapshot->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1';
$node->safe_psql($db, "SELECT fill('c/w', 5000)");
my $before = (split /\n/, $node->safe_psql($db, $entries))[-1];
$node->safe_psql($db, join(';', ("SELECT claim('c/w', 50)") x 100, 'SELECT pg_stat_force_next_flush()'));
my $after = (split /\n/, $node->safe_psql($db, $entries))[-1];
is(unclaimed($node), 0, '100 claims of 50 have all');
cmp_ok($after - $before, '<', 7500, 'and do not look at what was claimed before');
$snapshot->query_safe('COMMIT');
$snapshot->quit;

# ---- a crash ----

# Before it, claims have passed over what is not committed, either way.
$node->safe_psql($db, "SELECT fill('c/w', 10)");
my $claimer = transaction($node, "SELECT claim('c/w', 4)");
my $maker = transaction($node, "SELECT fill('c/w', 5)");
is(claim($node, 'c/w', 100), 6, 'others have the rest');
is(claim($node, 'c/w', 100), 0, 'and then there is none');
$node->stop('immediate');
forget($claimer);
forget($maker);
$node->start;
is(claim($node, 'c/w', 1), 1, 'after a crash, what was being claimed is found');
is(claim($node, 'c/w', 100), 3, 'all of it, and nothing that was not committed');

# One process is killed, and takes the others with it.
$node->safe_psql($db, "SELECT fill('c/w', 10)");
$claimer = transaction($node, "SELECT claim('c/w', 4)");
is(claim($node, 'c/w', 100), 6, 'others have the rest');
my $pid = $claimer->query_safe('SELECT pg_backend_pid()');
$node->safe_psql($db, 'CREATE UNLOGGED TABLE before AS SELECT 1');
kill('KILL', $pid);
forget($claimer);
$node->poll_query_until($db, 'SELECT count(*) = 0 FROM before');
is(claim($node, 'c/w', 100), 4, 'so after the crash of a process');

# ---- prepared transactions over a restart ----

# For each end and each way to stop: one that made tasks, one that claimed
# some, one that moved some to another priority.
my @cases = map { my $stop = $_; map { [ $stop, $_ ] } 'COMMIT', 'ROLLBACK' } 'fast', 'immediate';
foreach my $case (@cases)
{
	my ($stop, $end) = @$case;
	my $queue = lc "p/$stop-$end";
	my $committed = $end eq 'COMMIT';

	$node->safe_psql($db, qq{
		SELECT claim('$queue', 1);
		SELECT fill('$queue', 10);
		BEGIN; SELECT fill('$queue', 3); PREPARE TRANSACTION 'made';
		BEGIN; SELECT claim('$queue', 4); PREPARE TRANSACTION 'claimed';
		BEGIN; SELECT tq.change_task_priority(task_id, 'high') FROM tq_internal.task
			WHERE id = (SELECT max(task) FROM tq_internal.pending);
		PREPARE TRANSACTION 'moved';
		SELECT fill('$queue', 2)});
	is(claim($node, $queue, 1), 1, "$stop, $end: claims pass over prepared transactions");
	$node->stop($stop);
	$node->start;
	is(claim($node, $queue, 100), 6, 'after a restart as well');
	is(claim($node, $queue, 100), 0, 'until there is none');
	foreach my $part ([ made => 3, 0 ], [ claimed => 0, 4 ], [ moved => 1, 1 ])
	{
		my ($name, $if_committed, $if_not) = @$part;

		$node->safe_psql($db, "$end PREPARED '$name'");
		is(claim($node, $queue, 100), $committed ? $if_committed : $if_not, "$end PREPARED '$name': its tasks are found");
	}
}
is(unclaimed($node), 0, 'nothing is left');

# Both ends without a restart, while claims go on between any two steps.
foreach my $end ('COMMIT', 'ROLLBACK')
{
	my $claims = "SELECT claim('q/w', 100)";

	$node->safe_psql($db, "SELECT claim('q/w', 1), fill('q/w', 6)");
	is($node->safe_psql($db, qq{
		BEGIN; SELECT claim('q/w', 2); PREPARE TRANSACTION 'claimed'; $claims; $claims;
		BEGIN; SELECT fill('q/w', 3); PREPARE TRANSACTION 'made'; $claims;
		$end PREPARED 'claimed'; $claims;
		$end PREPARED 'made'; $claims}),
		$end eq 'COMMIT' ? "2\n4\n0\n3\n0\n0\n3" : "2\n4\n0\n3\n0\n2\n0", "$end PREPARED in between");
}
is(unclaimed($node), 0, 'nothing is left');

# ---- a standby ----

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->safe_psql($db, "SELECT claim('s/w', 1), fill('s/w', 12)");
$claimer = transaction($node, "SELECT claim('s/w', 3)");
$maker = transaction($node, "SELECT fill('s/w', 2)");
$node->safe_psql($db, "BEGIN; SELECT claim('s/w', 2); PREPARE TRANSACTION 'claimed'");
$node->safe_psql($db, "BEGIN; SELECT fill('s/w', 1); PREPARE TRANSACTION 'made'");
is(claim($node, 's/w', 4), 4, 'the primary claims');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
my ($code, $output, $error) = $standby->psql($db, "SELECT claim('s/w', 1)");
like($error, qr/read-only transaction|during recovery|recovery is in progress/, 'a standby does not');
is($standby->safe_psql($db, "SELECT (tq.task_queue_counts('s/w') -> 'pendingTasks')::bigint"), 8, 'but sees what is pending');
$node->stop('immediate');
forget($_) foreach $claimer, $maker;
$standby->promote;
is(claim($standby, 's/w', 1), 1, 'when it is promoted, it begins with the first');
is(claim($standby, 's/w', 100), 5, 'and has all that no transaction holds');
$standby->safe_psql($db, "ROLLBACK PREPARED 'claimed'");
is(claim($standby, 's/w', 100), 2, 'and what was prepared');
$standby->safe_psql($db, "COMMIT PREPARED 'made'");
is(claim($standby, 's/w', 100), 1, 'either way');
is(unclaimed($standby), 0, 'nothing is left');
is(violations($standby, $db), '', 'the tables are whole');

$standby->stop;
done_testing();
