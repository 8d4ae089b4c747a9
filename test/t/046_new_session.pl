# What new sessions know of bindings, settings, buckets and numbers of queues, which
# sessions share in memory: a call writes a message if and only if its exchange is
# bound when the call begins.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $db = 'postgres';

# Whether a call writes messages, or a task from which they are derived, in a session: a new
# one, or that of the test.
sub writes
{
	my ($node, $session) = @_;
	my $count = q{SELECT (SELECT count(*) FROM tq_internal.message WHERE xid <> '2') + (SELECT count(xid) FROM tq_internal.task)};
	my $before = $node->safe_psql($db, $count);

	$session ? $session->query_safe("SELECT tq.enqueue('p/w')") : enqueue($node, $db);
	return $node->safe_psql($db, $count) > $before ? 'yes' : 'no';
}

my $none = 'SELECT tq.unbind(channel, exchange, pattern) FROM tq.binding_overview';
my $bind = q{SELECT tq.bind('mine', 'task-defined')};
my $unbind = q{SELECT tq.unbind('mine', 'task-defined')};

# Sessions that share what one of them has read, and one that has cached it.
my $node = new_node('facts', 'max_prepared_transactions = 0', 'autovacuum = off');
$node->safe_psql($db, 'CREATE EXTENSION tq');
my $old = $node->background_psql($db, on_error_stop => 1);
my $other = $node->background_psql($db, on_error_stop => 1);

# The first call of all inserts the row that says that the database is in use.
$other->query_safe('BEGIN');
$other->query_safe("SELECT tq.enqueue('p/w')");
$other->query_safe('ROLLBACK');
is($node->safe_psql($db, 'SELECT count(*) FROM tq_internal.activation'), '0', 'the first call is rolled back');
is(writes($node), 'yes', 'default bindings');
is($node->safe_psql($db, 'SELECT count(*) FROM tq_internal.activation'), '1', 'the database is in use');
is(writes($node, $old), 'yes', 'default bindings: a session that stays');

sub both
{
	my ($expected, $title) = @_;

	is(writes($node), $expected, "$title: a new session");
	is(writes($node), $expected, "$title: the next session");
	is(writes($node, $old), $expected, "$title: a session that stays");
	return;
}

$node->safe_psql($db, $none);
both('no', 'nothing is bound');
$other->query_safe('BEGIN');
$other->query_safe($bind);
both('no', 'bound in a transaction in progress');
$other->query_safe("SELECT tq.enqueue('p/w')");
is($other->query_safe("SELECT count(*) > 0 FROM tq_internal.message WHERE xid = pg_current_xact_id_if_assigned()"), 't', 'that transaction sees its binding');
both('no', 'after a call of that transaction');
$other->query_safe('COMMIT');
both('yes', 'after its commit');
$other->query_safe('BEGIN');
$other->query_safe($unbind);
$other->query_safe("SELECT tq.enqueue('p/w')");
$other->query_safe('ROLLBACK');
both('yes', 'unbound and rolled back');
is(writes($node, $other), 'yes', 'unbound and rolled back: the session itself');
$other->query_safe("BEGIN; SAVEPOINT s; $unbind; ROLLBACK TO s; COMMIT");
both('yes', 'unbound in a savepoint that was rolled back');
$other->query_safe("BEGIN; SAVEPOINT s; $unbind; RELEASE s; COMMIT");
both('no', 'unbound in a savepoint');

# An old snapshot must not become what others know.
$other->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$other->query_safe('SELECT count(*) FROM tq_internal.task');
$node->safe_psql($db, $bind);
$other->query_safe("SELECT tq.statuses(ARRAY[tq.slugid()])");
$other->query_safe("SELECT tq.enqueue('p/w')");
$other->query_safe('COMMIT');
both('yes', 'bound since an old snapshot');

# Settings of queues and buckets: what was committed when the call begins.
sub begins
{
	my ($expected, $title) = @_;
	my $call = q{SELECT bool_and(tq_internal.bucket(tq.enqueue('p/w')) = 0) FROM generate_series(1, 3)};
	my $count = 'SELECT count(*) FROM tq_internal.pending';

	for ('a new session', 'the next session', 'a session that stays')
	{
		my $before = $node->safe_psql($db, $count);
		my $is_own = /stays/ ? $old->query_safe($call) : $node->safe_psql($db, $call);
		my $state = $node->safe_psql($db, $count) > $before ? 'pending' : 'delayed';
		is("$is_own $state", $expected, "$title: $_");
	}
	return;
}

my $take = 'SELECT tq_internal.set_buckets(int4multirange(int4range(0, 1)))';
my $delay = q{SELECT tq.set_queue('p/w', '{"policy": {"delay": "1 day"}}')};
my $neither = q{SELECT tq_internal.set_buckets(NULL), tq.set_queue('p/w', '{"policy": null}')};
begins('f pending', 'all buckets, no settings');
$node->safe_psql($db, $take);
begins('t pending', 'one bucket');
$node->safe_psql($db, $delay);
begins('t delayed', 'one bucket, a delay');
$other->query_safe("BEGIN; $neither");
begins('t delayed', 'neither, in a transaction in progress');
is($other->query_safe(q{SELECT max(tq_internal.bucket(tq.enqueue('p/w'))) > 0 FROM generate_series(1, 3)}), 't', 'that transaction has all buckets');
$other->query_safe('COMMIT');
begins('f pending', 'neither');
$other->query_safe("BEGIN; $take; $delay; ROLLBACK");
begins('f pending', 'both, rolled back');
$other->query_safe("BEGIN; SAVEPOINT s; $delay; ROLLBACK TO s; $take; COMMIT");
begins('t pending', 'one bucket, after a delay that was rolled back');
$node->safe_psql($db, $neither);

# What a new session opens for a call: of the partial indexes, those into which its rows
# belong; and the index of queues only for one that no session has read lately.
sub opens
{
	my ($call, $which) = @_;
	my @lines = split /\n/, $node->safe_psql($db, "BEGIN; SELECT $call IS NOT NULL; SELECT 'opens ' || count(*) || coalesce(': ' ||
		string_agg(indexrelid::regclass::text, ' ' ORDER BY indexrelid::regclass::text COLLATE \"C\"), '') FROM pg_locks
		JOIN pg_index ON indexrelid = relation WHERE pid = pg_backend_pid() AND $which; ROLLBACK");

	return $lines[-1];
}

my $partial = q(indpred IS NOT NULL AND indrelid::regclass::text ~ '^tq_internal');
is(opens(q{tq.enqueue('p/w')}, $partial), 'opens 0', 'no partial index');
my $group = $node->safe_psql($db, q{SELECT tq.enqueue('p/w')});
is(opens("tq.enqueue('p/w', task_group_id => '$group')", $partial), 'opens 1: tq_internal.task_group_idx', 'that of groups');
is(opens("tq.enqueue('p/w', dependencies => ARRAY['$group'])", $partial), 'opens 2: tq_internal.pending_moved tq_internal.task_dependent', 'that of dependents; another finds what it requires');
my $member = $node->safe_psql($db, "SELECT tq.enqueue('p/w', task_group_id => '$group')");
is($node->safe_psql($db, "SET enable_seqscan = off; SELECT task_id FROM tq_internal.task WHERE group_id IS NOT NULL"), $member, 'a new session has made its entry');

my $by_name = q(indexrelid = 'tq_internal.queue_task_queue_id_key'::regclass);
my $gone = q{tq.enqueue('p/gone')};
my $is_retired = q{SELECT retired IS NOT NULL FROM tq_internal.queue WHERE task_queue_id = 'p/gone'};
my $is_opened = 'opens 1: tq_internal.queue_task_queue_id_key';
$node->safe_psql($db, q{INSERT INTO tq_internal.queue (task_queue_id) VALUES ('p/gone')});
is(opens($gone, $by_name), $is_opened, 'a queue that no session has read');
is(opens($gone, $by_name), 'opens 0', 'a queue that a session has read');
is(opens(q{tq.enqueue('p/gon')}, $by_name), $is_opened, 'a new queue, which is rolled back');
is(opens(q{tq.enqueue('p/gon')}, $by_name), $is_opened, 'and is new again');
$node->safe_psql($db, q{UPDATE tq_internal.activation SET swept = now() - interval '9 days'});
$node->safe_psql($db, q{SET tq.clock_offset = '-1 minute'; SELECT count(*) FROM tq.upkeep()});
ok($node->poll_query_until($db, $is_retired), 'the queue is retired');
is(opens($gone, $by_name), $is_opened, 'a queue that is retired');
is(opens($gone, $by_name), $is_opened, 'and whose number is not shared again');
$node->safe_psql($db, "SELECT $gone");
is($node->safe_psql($db, $is_retired), 'f', 'a session that needs it revives it');

# Written by other means than those of tq: a session that has cached what the
# table says, such as the maintenance worker, notices when the table's entry in
# the catalog changes.
$node->safe_psql($db, 'DELETE FROM tq_internal.binding; ANALYZE tq_internal.binding');
my $tries = 0;
$tries++ while $tries < 1000 && writes($node) eq 'yes';
cmp_ok($tries, '<', 1000, 'deleted by SQL: new sessions notice');
both('no', 'deleted by SQL');

# Another extension of the same name.
$old->quit;
$other->quit;
$node->safe_psql($db, 'DROP EXTENSION tq CASCADE; CREATE EXTENSION tq');
is(writes($node), 'yes', 'created again: default bindings');

# Another database.
$node->safe_psql($db, $none);
$node->safe_psql($db, 'CREATE DATABASE second');
$node->safe_psql('second', 'CREATE EXTENSION tq');
enqueue($node, 'second');
is($node->safe_psql('second', 'SELECT count(*) FROM tq_internal.message'), '1', 'another database has its own bindings');
is(writes($node), 'no', 'and the first one has its own');
$node->stop;

# The change of a prepared transaction takes effect at its commit.
$node = new_node('facts_prepared', 'max_prepared_transactions = 5', 'autovacuum = off');
$node->safe_psql($db, 'CREATE EXTENSION tq');
$node->safe_psql($db, $none);
$old = $node->background_psql($db, on_error_stop => 1);
both('no', 'prepared: nothing is bound');
$node->safe_psql($db, "BEGIN; $bind; PREPARE TRANSACTION 'bind'");
both('no', 'prepared');
$node->safe_psql($db, "COMMIT PREPARED 'bind'");
both('yes', 'commit prepared');
$node->safe_psql($db, "BEGIN; $unbind; PREPARE TRANSACTION 'unbind'; ROLLBACK PREPARED 'unbind'");
both('yes', 'rollback prepared');
begins('f pending', 'prepared: all buckets, no settings');
$node->safe_psql($db, "BEGIN; $take; $delay; PREPARE TRANSACTION 'take'");
begins('f pending', 'prepared: one bucket, a delay');
$node->safe_psql($db, "COMMIT PREPARED 'take'");
begins('t delayed', 'commit prepared: one bucket, a delay');
$old->quit;
$node->stop;

done_testing();
