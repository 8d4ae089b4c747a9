# Tq.pm: functions that the tests with servers of their own share.
package Tq;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';

# A wait that cannot end fails after one minute, not after three.
BEGIN { $ENV{PG_TEST_TIMEOUT_DEFAULT} //= 60; }

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(new_node begin_use worker_of worker_in wait_worker wait_no_worker
  enqueue state_of wait_state lateness wait_past_deadline violations);

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

# Invariants of the tables; returns '' if all hold.
sub violations
{
	my ($node, $db) = @_;

	return $node->safe_psql(
		$db, q{
		WITH last AS (
			SELECT DISTINCT ON (task) * FROM tq_internal.run ORDER BY task, run_id DESC
		), holder AS (
			SELECT task, 'unscheduled' AS place, NULL::int AS run_id FROM tq_internal.unscheduled
			UNION ALL SELECT task, 'pending', run_id FROM tq_internal.pending
			UNION ALL SELECT task, 'delayed', run_id FROM tq_internal.delayed
			UNION ALL SELECT task, 'running', run_id FROM last WHERE state = 2
		), task AS (
			SELECT t.id, t.deadline, count(h.task) AS holders, max(h.place) AS place,
				max(h.run_id) AS held,
				(SELECT count(*) FROM tq_internal.run r WHERE r.task = t.id) AS runs,
				(SELECT max(run_id) FROM tq_internal.run r WHERE r.task = t.id) AS last_run
			FROM tq_internal.task t LEFT JOIN holder h ON h.task = t.id GROUP BY t.id
		)
		SELECT 'more than one holder', id FROM task WHERE holders > 1
		UNION ALL
		SELECT 'no holder and no run', id FROM task WHERE holders = 0 AND runs = 0
		UNION ALL
		SELECT 'holder without a task', task FROM holder h
			WHERE NOT EXISTS (SELECT FROM tq_internal.task t WHERE t.id = h.task)
		UNION ALL
		SELECT 'runs not dense', id FROM task WHERE runs <> COALESCE(last_run + 1, 0)
		UNION ALL
		SELECT 'waiting run is not the next', id FROM task
			WHERE place IN ('pending', 'delayed') AND held <> runs
		UNION ALL
		SELECT 'unscheduled with a run', id FROM task WHERE place = 'unscheduled' AND runs > 0
		UNION ALL
		SELECT 'earlier run is not resolved', r.task FROM tq_internal.run r JOIN last l USING (task)
			WHERE r.run_id < l.run_id AND (r.state < 3 OR r.resolved IS NULL)
		UNION ALL
		SELECT 'running and waiting at once', h.task FROM holder h JOIN tq_internal.run r USING (task)
			WHERE h.place IN ('pending', 'delayed') AND r.state = 2
		UNION ALL
		SELECT 'running without a lease', task FROM last l WHERE state = 2
			AND NOT EXISTS (SELECT FROM tq_internal.claim_timer e WHERE l.task = ANY (e.tasks) AND e.due <= l.taken_until)
			AND NOT EXISTS (SELECT FROM tq_internal.left_timer m WHERE m.is_claim AND m.task = l.task AND m.due <= l.taken_until)
		UNION ALL
		SELECT 'unresolved without a deadline timer', id FROM task t WHERE holders > 0
			AND NOT EXISTS (SELECT FROM tq_internal.timer e WHERE e.kind = 1 AND t.id = ANY (e.tasks))
			AND NOT EXISTS (SELECT FROM tq_internal.left_timer m WHERE NOT m.is_claim AND m.task = t.id)
	});
}

1;
