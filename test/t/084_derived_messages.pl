# Messages that the publisher derives from new tasks: each creation that is committed
# has one task-defined and one task-pending in the log, with ascending ids and in the
# order of causes, whatever becomes of the creator, the publisher and the server
# meanwhile, and also in a database that is restored.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT session output start finish);
use Time::HiRes qw(usleep);

my $dir = PostgreSQL::Test::Utils::tempdir;
my $node = new_node('derive', 'restart_after_crash = on', 'max_connections = 60', 'shared_buffers = 32MB',
	'max_worker_processes = 16', 'log_statement = none', "tq.publish_interval = '20ms'", "tq.default_deadline = '1 day'");

# ---- helpers ----

# In these databases the maintenance worker does nothing, so that the test decides when
# there is a pass.  ledger has what a subscription gets; read_on() reads it to its end, and
# raises an error if ids do not ascend.
my $tools = q{
	CREATE TABLE ledger (id bigint PRIMARY KEY, exchange text NOT NULL, task text NOT NULL, run int, payload jsonb NOT NULL);
	CREATE TABLE reading (id bigint NOT NULL);
	CREATE FUNCTION read_on() RETURNS bigint LANGUAGE plpgsql AS $$
	DECLARE
		last bigint := coalesce((SELECT max(id) FROM public.ledger), 0);
		m tq.exchange_message;
		n bigint;
		total bigint := 0;
	BEGIN
		LOOP
			n := 0;
			FOR m IN SELECT * FROM tq.fetch('ledger', 1000) LOOP
				IF m.id <= last THEN
					RAISE EXCEPTION 'message % comes after %', m.id, last;
				END IF;
				last := m.id;
				n := n + 1;
				INSERT INTO public.ledger VALUES (m.id, m.exchange, m.payload #>> '{status,taskId}', (m.payload ->> 'runId')::int, m.payload);
			END LOOP;
			EXIT WHEN n = 0;
			PERFORM tq.ack('ledger', last);
			total := total + n;
		END LOOP;
		RETURN total;
	END $$;
	CREATE FUNCTION read_now() RETURNS text LANGUAGE sql AS $$
		SELECT public.read_on();
		SELECT string_agg(l.exchange || ' ' || coalesce(t.metadata ->> 'name', '?'), ', ' ORDER BY l.id)
			FROM public.ledger l LEFT JOIN tq_internal.task t ON t.task_id::text = l.task
			WHERE l.id > coalesce((SELECT max(r.id) FROM public.reading r), 0);
	$$;
	CREATE VIEW fault AS
		SELECT t.metadata ->> 'name' AS name, e.exchange, e.n || ' times' AS what
		FROM tq_internal.task t CROSS JOIN LATERAL (
			SELECT x.exchange, (SELECT count(*) FROM ledger l WHERE l.task = t.task_id::text AND l.exchange = x.exchange) AS n
			FROM (VALUES ('task-defined'), ('task-pending')) AS x (exchange)) AS e
		WHERE e.n <> 1
		UNION ALL
		SELECT l.task, l.exchange, 'of no task' FROM ledger l
		WHERE NOT EXISTS (SELECT FROM tq_internal.task t WHERE t.task_id::text = l.task)
		UNION ALL
		SELECT task, exchange, 'after ' || before FROM (
			SELECT task, exchange, lag(exchange) OVER w AS before,
				strpos('task-defined task-pending task-running task-completed', exchange) AS step,
				lag(strpos('task-defined task-pending task-running task-completed', exchange)) OVER w AS step_before
			FROM ledger WINDOW w AS (PARTITION BY task ORDER BY id)) AS s
		WHERE step <= step_before;
	CREATE INDEX ON ledger (task);
};
my @exchanges = qw(task-defined task-pending task-running task-completed);

# Make a database that is in use, of which the test publishes.
sub new_database
{
	my ($server, $db) = @_;

	$server->safe_psql('postgres', "CREATE DATABASE $db");
	$server->safe_psql('postgres', "ALTER DATABASE $db SET tq.maintenance = off");
	$server->safe_psql($db, 'CREATE EXTENSION tq');
	$server->safe_psql($db, $tools);
	subscribe($server, $db);
	return;
}

sub subscribe
{
	my ($server, $db) = @_;

	$server->safe_psql($db, "SELECT tq.subscribe('ledger', '$_')") foreach @exchanges;
	return;
}

# A pass of upkeep(); returns what it has published.
sub publish_some
{
	my ($server, $db) = @_;

	return $server->safe_psql($db, q{
		SET tq.maintenance = on;
		SELECT tasks FROM tq.upkeep() WHERE step = 'publish'});
}

# Publish until nothing is left.
sub publish
{
	my ($server, $db) = @_;

	foreach (1 .. 200)
	{
		return if publish_some($server, $db) == 0;
	}
	die "$db: publication does not end";
}

sub name
{
	my ($server, $db, $name, @options) = @_;

	return $server->safe_psql($db, 'SELECT tq.enqueue(' . join(', ', "'p/w'", "name => '$name'", @options) . ')');
}

# What the ledger gets now: exchange and name of each message, in order.
sub news
{
	my ($server, $db) = @_;

	return $server->safe_psql($db, q{
		INSERT INTO reading SELECT coalesce(max(id), 0) FROM ledger;
		SELECT read_now()}) =~ s/task-//gr;
}

sub faults
{
	my ($server, $db) = @_;

	$server->safe_psql($db, 'SELECT read_on()');
	return $server->safe_psql($db, 'SELECT * FROM fault LIMIT 10');
}

# Of these names, both messages each.
sub both
{
	return join(', ', map { "defined $_, pending $_" } @_);
}

sub is_derived
{
	my ($server, $db, $name) = @_;

	return $server->safe_psql($db, "SELECT xid IS NOT NULL FROM tq_internal.task WHERE metadata ->> 'name' = '$name'");
}

my $waiting = 'SELECT count(*) FROM tq_internal.underived';
my $last = q{FROM tq_internal.tick ORDER BY last_id DESC LIMIT 1};

new_database($node, 'db');
name($node, 'db', 'first');
is(is_derived($node, 'db', 'first'), 't', 'a task of a database in use is derived');
is($node->safe_psql('db', 'SELECT count(*) FROM tq_internal.message'), 0, 'and no row is written');
is(news($node, 'db'), '', 'it has no messages before a pass');
publish($node, 'db');
is(news($node, 'db'), both('first'), 'and both after it');
publish($node, 'db');
is(news($node, 'db'), '', 'which come once');

# ---- transactions ----

my $open = session($node, 'db');
my $number;

# The lowest number is committed last.
$open->begin_work;
output($open, q{SELECT tq.enqueue('p/w', name => 'late')});
$number = output($open, q{SELECT id FROM tq_internal.task WHERE metadata ->> 'name' = 'late'});
$node->safe_psql('db', q{
	DO $$ BEGIN FOR i IN 1 .. 3000 LOOP PERFORM tq.enqueue('p/w', name => 'between'); COMMIT; END LOOP; END $$});
publish($node, 'db');
is($node->safe_psql('db', "SELECT $number = ANY (open), low > $number $last"), 't|t', 'a creation in progress is listed, and the mark goes on');
name($node, 'db', 'listed again');
publish($node, 'db');
is($node->safe_psql('db', "SELECT open, low > $number + 2900 $last"), "{$number}|t", 'and so by the next tick');
is($node->safe_psql('db', $waiting), 0, 'it does not wait for the publisher before it is committed');
$node->safe_psql('db', 'SELECT read_on()');
is($node->safe_psql('db', 'SELECT count(*) FROM fault'), 0, 'and has no messages');
$open->commit;
is($node->safe_psql('db', $waiting), 1, 'now it waits for the publisher');
publish($node, 'db');
is(news($node, 'db'), both('late'), 'the creation that was committed late has them');
is(faults($node, 'db'), '', 'each once');
is($node->safe_psql('db', "SELECT open IS NULL $last"), 't', 'and is not listed any more');

# Several of them end in whatever order and way.
my @some = map { session($node, 'db') } 1 .. 6;
foreach my $i (0 .. $#some)
{
	$some[$i]->begin_work;
	output($some[$i], "SELECT tq.enqueue('p/w', name => 'some $i')");
	$node->safe_psql('db', q{DO $$ BEGIN FOR i IN 1 .. 300 LOOP PERFORM tq.enqueue('p/w', name => 'among'); COMMIT; END LOOP; END $$});
	publish($node, 'db') if $i % 2;
}
$node->safe_psql('db', 'SELECT read_on()');
foreach my $i (4, 0, 5, 2, 1, 3)
{
	$i == 2 || $i == 5 ? $some[$i]->rollback : $some[$i]->commit;
	publish($node, 'db');
	is(news($node, 'db'), $i == 2 || $i == 5 ? '' : both("some $i"), "creation $i of six has ended");
}
is(faults($node, 'db'), '', 'none is missing, none twice');
$some[0]->begin_work;
output($some[0], q{SELECT tq.enqueue('p/w', name => 'gone')});
name($node, 'db', 'beside');
publish($node, 'db');
$some[0]->disconnect;
publish($node, 'db');
is(news($node, 'db'), both('beside'), 'the creator has left');
$_->disconnect foreach @some[ 1 .. $#some ];

# A commit that waits for a standby is not visible yet, and so its number is open.
$node->safe_psql('postgres', q{ALTER DATABASE db SET synchronous_commit = local});
$node->append_conf('postgresql.conf', "synchronous_standby_names = 'absent'");
$node->reload;
my $waits = $node->background_psql('db');
start($waits, q{SET synchronous_commit = on; SELECT tq.enqueue('p/w', name => 'waits')});
ok($node->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')}), 'a commit waits');
$node->safe_psql('db', q{DO $$ BEGIN FOR i IN 1 .. 300 LOOP PERFORM tq.enqueue('p/w', name => 'among'); COMMIT; END LOOP; END $$});
publish($node, 'db');
$node->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$node->reload;
finish($waits);
$waits->quit;
$node->safe_psql('postgres', q{ALTER DATABASE db RESET synchronous_commit});
$node->safe_psql('db', 'SELECT read_on()');
publish($node, 'db');
is(news($node, 'db'), both('waits'), 'its messages come after it');

# Savepoints, and two creations of a transaction: the second has a row.
my %transaction = (
	'the first is rolled back to a savepoint' => [
		q{SAVEPOINT s}, q{SELECT tq.enqueue('p/w', name => 'a')}, q{ROLLBACK TO s},
		q{SELECT tq.enqueue('p/w', name => 'b')} ],
	'the second is' => [
		q{SELECT tq.enqueue('p/w', name => 'b')}, q{SAVEPOINT s}, q{SELECT tq.enqueue('p/w', name => 'a')}, q{ROLLBACK TO s} ],
	'a savepoint is released' => [
		q{SAVEPOINT s}, q{SELECT tq.enqueue('p/w', name => 'b')}, q{RELEASE s} ],
	'an exception block fails' => [
		q{DO $$ BEGIN
			BEGIN PERFORM tq.enqueue('p/w', name => 'a'); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END;
			PERFORM tq.enqueue('p/w', name => 'b');
			BEGIN PERFORM tq.enqueue('p/w', name => 'c'); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END;
		END $$} ],
	'exception blocks in each other' => [
		q{DO $$ BEGIN
			BEGIN
				BEGIN PERFORM tq.enqueue('p/w', name => 'b'); EXCEPTION WHEN division_by_zero THEN NULL; END;
				PERFORM tq.enqueue('p/w', name => 'c');
				BEGIN RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END;
			EXCEPTION WHEN division_by_zero THEN NULL; END;
		END $$} ]);
my %left = ('exception blocks in each other' => [qw(b c)]);
foreach my $what (sort keys %transaction)
{
	$open->begin_work;
	output($open, $_) foreach @{ $transaction{$what} };
	name($node, 'db', 'other');
	publish($node, 'db');
	is(news($node, 'db'), both('other'), "$what: before the commit");
	$open->commit;
	publish($node, 'db');
	is(news($node, 'db'), both(@{ $left{$what} // ['b'] }), "$what: after it");
}
$node->safe_psql('db', q{BEGIN; SELECT tq.enqueue('p/w', name => 'one'); SELECT tq.enqueue('p/w', name => 'two'), tq.enqueue('p/w', name => 'three'); COMMIT});
is(is_derived($node, 'db', 'one') . is_derived($node, 'db', 'two'), 'tf', 'one creation of a transaction is derived');
publish($node, 'db');
is(news($node, 'db'), both(qw(one two three)), 'and they are in order');

# A creation after, before and between others' ends, in one transaction.
name($node, 'db', 'parent');
$node->safe_psql('db', q{
	SELECT tq.claim_task((SELECT task_id FROM tq_internal.task WHERE metadata ->> 'name' = 'parent'), 0, 'g', 'w');
	BEGIN;
	SELECT tq.report_completed((SELECT task_id FROM tq_internal.task WHERE metadata ->> 'name' = 'parent'), 0);
	SELECT tq.enqueue('p/w', name => 'follower');
	SELECT tq.claim_task((SELECT task_id FROM tq_internal.task WHERE metadata ->> 'name' = 'follower'), 0, 'g', 'w');
	SELECT tq.report_completed((SELECT task_id FROM tq_internal.task WHERE metadata ->> 'name' = 'follower'), 0);
	COMMIT});
publish($node, 'db');
is(news($node, 'db'),
	both('parent') . ', running parent, completed parent, ' . both('follower') . ', running follower, completed follower',
	'causes come before what they cause');

# ---- what becomes of a task before it is published ----

$node->safe_psql('db', q{SELECT tq.enqueue('p/w', name => 'raised', priority => 'low')});
$node->safe_psql('db', q{SELECT tq.change_task_priority(task_id, 'highest') FROM tq_internal.task WHERE metadata ->> 'name' = 'raised'});
publish($node, 'db');
is(news($node, 'db'), both('raised'), 'a task whose priority was changed');
is($node->safe_psql('db', q{SELECT string_agg(DISTINCT payload #>> '{status,priority}', ' ') FROM ledger
	WHERE task = (SELECT task_id::text FROM tq_internal.task WHERE metadata ->> 'name' = 'raised')}), 'low', 'and its messages have the first');
name($node, 'db', 'deleted');
$node->safe_psql('db', q{
	SELECT tq.cancel_task(task_id), tq.delete_task(task_id) FROM tq_internal.task WHERE metadata ->> 'name' = 'deleted'});
publish($node, 'db');
is(news($node, 'db'), '', 'a deleted task has no messages');

# A task does not expire before it is published; after that its messages outlive it.
my $expired = name($node, 'db', 'expired', "deadline => '20 minutes'", "expires => '30 minutes'");
my $at = sub {
	my ($begin, $offset, $end) = @_;

	return qq{
		SET tq.maintenance = on;
		$begin
		SET tq.clock_offset = '$offset';
		SELECT tq.upkeep();
		$end};
};
my $is_there = "SELECT count(*) FROM tq_internal.task WHERE task_id = '$expired'";
$node->safe_psql('db', $at->('BEGIN;', $_, 'COMMIT')) foreach '25 minutes', '40 minutes';
is($node->safe_psql('db', $is_there), 1, 'a task does not expire before it is published');
$node->safe_psql('db', $at->('', $_, 'SELECT tq.upkeep()')) foreach '41 minutes', '61 minutes', '2 hours';
is($node->safe_psql('db', $is_there), 0, 'and does after that');
$node->safe_psql('db', 'SELECT read_on()');
is($node->safe_psql('db', "SELECT string_agg(exchange, ' ' ORDER BY id) FROM ledger WHERE task = '$expired'"),
	'task-defined task-pending', 'and its messages are read');
$node->safe_psql('db', "DELETE FROM ledger WHERE task = '$expired'");
is(faults($node, 'db'), '', 'nothing else has changed');

# ---- deadlines ----

# Timers are there after publication; without one, a deadline holds that a call of upkeep()
# in a transaction block looks at.
name($node, 'db', 'with timer', "deadline => '20 minutes'");
my $timers = q{SELECT count(*) FROM tq_internal.timer};
my $before = $node->safe_psql('db', $timers);
is($node->safe_psql('db', q{SELECT count(*) FROM tq_internal.left_timer}), 1, 'a timer is left to the publisher');
publish($node, 'db');
cmp_ok($node->safe_psql('db', $timers), '>', $before, 'which has inserted it');
name($node, 'db', 'without timer', "deadline => '20 minutes'");
$node->safe_psql('db', q{
	SET tq.maintenance = on;
	BEGIN;
	SET LOCAL tq.clock_offset = '21 minutes';
	SELECT tq.upkeep();
	COMMIT});
is($node->safe_psql('db', q{
		SELECT string_agg(metadata ->> 'name' || ' ' || (tq.status(task_id) ->> 'state'), ', ' ORDER BY id)
		FROM tq_internal.task WHERE metadata ->> 'name' LIKE 'with% timer'}),
	'with timer exception, without timer exception', 'both deadlines hold');
publish($node, 'db');
is(news($node, 'db'), both('with timer', 'without timer'), 'and the messages come, too');

# ---- exchanges ----

# What is wanted when a task is created is sent: 6.4.
sub bind_defined
{
	my ($how) = @_;

	$node->safe_psql('db', $how eq 'off'
		? q{SELECT tq.unbind('tq_task_defined', 'task-defined'), tq.unsubscribe('ledger')}
		: q{SELECT tq.bind('tq_task_defined', 'task-defined')});
	return;
}
name($node, 'db', 'bound');
publish($node, 'db');
is(faults($node, 'db'), '', 'so far all is there');
bind_defined('off');
name($node, 'db', 'unbound');
is(is_derived($node, 'db', 'unbound'), 'f', 'where one of both is not wanted nothing is derived');
bind_defined('on');
name($node, 'db', 'bound again');
is(is_derived($node, 'db', 'bound again'), 't', 'and is again where both are');
publish($node, 'db');
is($node->safe_psql('db', q{
		SELECT string_agg(substr(exchange, 6) || ' ' || (t.metadata ->> 'name'), ', ' ORDER BY m.id)
		FROM tq.messages(after => -3) m JOIN tq_internal.task t ON t.task_id::text = m.payload #>> '{status,taskId}'}),
	'pending unbound, defined bound again, pending bound again', 'each with what was wanted at its creation');

# Where no exchange is wanted there are no messages, and yet a pass does not read all tasks again.
new_database($node, 'silent');
$node->safe_psql('silent', q{SELECT tq.unbind(channel, exchange, pattern) FROM tq.binding_overview; SELECT tq.unsubscribe('ledger')});
$node->safe_psql('silent', q{DO $$ BEGIN FOR i IN 1 .. 3100 LOOP PERFORM tq.enqueue('p/w'); COMMIT; END LOOP; END $$});
publish($node, 'silent');
is($node->safe_psql('silent', "SELECT low > 3000, messages $last"), 't|0', 'a tick without messages has the mark');
$node->safe_psql('silent', q{SELECT setval('tq_internal.id_seq', 500)});
$node->safe_psql('silent', q{DO $$ BEGIN FOR i IN 1 .. 100 LOOP PERFORM tq.enqueue('p/w'); COMMIT; END LOOP; END $$});
publish($node, 'silent');
is($node->safe_psql('silent', "SELECT low < 1000, messages $last"), 't|0', 'and another one, where numbers were set back');

# ---- many, in several passes ----

new_database($node, 'many');
$node->safe_psql('many', 'SELECT tq.enqueue(\'p/w\')');
$node->safe_psql('many', q{
	DO $$ BEGIN
		FOR i IN 1 .. 30000 LOOP
			PERFORM tq.enqueue('p/w', name => 'many');
			IF i % 1000 = 500 THEN PERFORM tq.enqueue('p/w', name => 'written'); END IF;
			COMMIT;
		END LOOP;
	END $$});
$node->append_conf('postgresql.conf', "tq.publish_interval = '10ms'");
is($node->safe_psql('many', $waiting), 30001, 'so many wait for the publisher');

# The worker and a session pass in turns: the next pass continues from the tick of the one before.
$node->safe_psql('postgres', 'ALTER DATABASE many RESET tq.maintenance');
my $session = session($node, 'many');
output($session, 'SET tq.maintenance = on');
foreach (1 .. 300)
{
	output($session, 'SELECT tq.upkeep()');
	name($node, 'many', 'meanwhile') if $_ % 10 == 0;
	last if $_ > 30 && output($session, 'SELECT count(*) FROM tq_internal.unpublished') eq '0';
	usleep(20_000);
}
$session->disconnect;
is(faults($node, 'many'), '', '30,000 creations have each message once, in order');
cmp_ok($node->safe_psql('many', 'SELECT count(*) FROM tq_internal.tick WHERE xids IS NOT NULL'), '>', 5, 'of several ticks that are parts');
is($node->safe_psql('many', q{
		SELECT count(*) FROM (SELECT t.id < lag(t.id) OVER (ORDER BY l.id) AS is_back FROM ledger l
			JOIN tq_internal.task t ON t.task_id::text = l.task WHERE t.metadata ->> 'name' = 'many') AS b WHERE is_back}),
	0, 'and in the order of their numbers');
$node->safe_psql('postgres', 'ALTER DATABASE many SET tq.maintenance = off');

# ---- crashes ----

subscribe($node, 'db');
name($node, 'db', 'before the crash');
$open->begin_work;
output($open, q{SELECT tq.enqueue('p/w', name => 'never committed')});
name($node, 'db', 'after an open one');
news($node, 'db');
$node->stop('immediate');
eval { $open->disconnect };
undef $open;
$node->start;
name($node, 'db', 'after the crash');
publish($node, 'db');
is(news($node, 'db'), both('before the crash', 'after an open one', 'after the crash'), 'a crash of the server before a pass');
$node->stop('immediate');
$node->start;
publish($node, 'db');
is(news($node, 'db'), '', 'and after it');

# Before a session takes a number, the value of the sequence is no mark: one that has drawn a
# block may have created a task in it when another draws the next.
my $low = "SELECT low $last";
$node->safe_psql('db', q{DO $$ BEGIN FOR i IN 1 .. 300 LOOP PERFORM tq.enqueue('p/w', name => 'left'); COMMIT; END LOOP; END $$});
my $low_before = $node->safe_psql('db', $low);
$node->restart;
publish($node, 'db');
cmp_ok($node->safe_psql('db', $low), '<=', $node->safe_psql('db', 'SELECT last_value FROM tq_internal.id_seq'), 'the mark is not above it until a number was taken');
name($node, 'db', 'taken');
publish($node, 'db');
cmp_ok($node->safe_psql('db', $low), '>', $low_before, 'and goes on then');
$node->safe_psql('db', 'SELECT read_on()');
is($node->safe_psql('db', q{SELECT * FROM fault WHERE name IN ('left', 'taken') LIMIT 10}), '', 'each once');

# ---- servers of other settings ----

# A server that does not load the library, and one on which transactions may be prepared,
# write rows, and publish what was left.
sub restart_with
{
	my ($line) = @_;

	$node->append_conf('postgresql.conf', $line);
	$node->restart;
	return;
}
foreach my $setting ([ "shared_preload_libraries = ''", "shared_preload_libraries = 'tq'" ],
	[ 'max_prepared_transactions = 5', 'max_prepared_transactions = 0' ])
{
	my ($other, $usual) = @$setting;

	name($node, 'db', 'derived');
	restart_with($other);
	is($node->safe_psql('db', $waiting), 1, "$other: one is left");
	name($node, 'db', 'written');
	is(is_derived($node, 'db', 'written'), 'f', "$other: the next is written");
	publish($node, 'db');
	is(news($node, 'db'), both('derived', 'written'), "$other: and both are published");
	name($node, 'db', 'written by it');
	restart_with($usual);
	name($node, 'db', 'derived again');
	is(is_derived($node, 'db', 'derived again'), 't', "$usual: the next is derived");
	publish($node, 'db');
	is(news($node, 'db'), both('written by it', 'derived again'), "$usual: and both are published");
	$node->safe_psql('db', q{UPDATE tq_internal.task SET metadata = '{"name": "older"}' WHERE metadata ->> 'name' ~ '^(derived|written)'});
}

# ---- dump and restore ----

new_database($node, 'old');
name($node, 'old', "acked $_") foreach 1, 2;
publish($node, 'old');
news($node, 'old');
name($node, 'old', "packed $_") foreach 1, 2;
publish($node, 'old');
name($node, 'old', 'unpublished', "deadline => '20 minutes'", "priority => 'high'");
name($node, 'old', 'claimed');
$node->safe_psql('old', q{SELECT tq.claim_task(task_id, 0, 'g', 'w') FROM tq_internal.task WHERE metadata ->> 'name' = 'claimed'});

my $other = new_node('restored', "tq.default_deadline = '1 day'");
foreach my $server ($node, $other)
{
	my $db = 'restored';

	$server->safe_psql('postgres', "CREATE DATABASE $db");
	$server->safe_psql('postgres', "ALTER DATABASE $db SET tq.maintenance = off");
	$server->command_ok([ 'pg_dump', '-f', "$dir/dump.sql", '-d', $node->connstr('old') ], 'pg_dump') if $server == $node;
	$server->command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', "$dir/dump.sql", '-d', $server->connstr($db) ], 'restored');
	is(publish_some($server, $db), 0, 'nothing is published before the database is in use');
	begin_use($server, $db);
	publish($server, $db);
	is(news($server, $db), both('packed 1', 'packed 2', 'unpublished', 'claimed') . ', running claimed',
		'what was not acknowledged comes, once, and nothing else');
	is($server->safe_psql($db, q{SELECT payload #>> '{status,priority}' FROM ledger
			WHERE exchange = 'task-defined' AND task = (SELECT task_id::text FROM tq_internal.task WHERE metadata ->> 'name' = 'unpublished')}),
		'high', 'with its priority');
	name($server, $db, 'new');
	is(is_derived($server, $db, 'new'), 't', 'a new task is derived here');
	publish($server, $db);
	is(news($server, $db), both('new'), 'and none of the old ones comes again');
	is(faults($server, $db), '', 'each once in both databases together');
	$server->safe_psql($db, qq{
		SET tq.maintenance = on;
		SET tq.clock_offset = '21 minutes';
		SELECT tq.upkeep()});
	is($server->safe_psql($db, q{SELECT tq.status(task_id) ->> 'state' FROM tq_internal.task WHERE metadata ->> 'name' = 'unpublished'}),
		'exception', 'the deadline of an unpublished task holds here');
}
publish($node, 'old');
is(news($node, 'old'), both('packed 1', 'packed 2', 'unpublished', 'claimed') . ', running claimed', 'the original has them, too');

# What a restored database has not published is dumped again.
name($node, 'old', 'twice');
$node->command_ok([ 'pg_dump', '-f', "$dir/once.sql", '-d', $node->connstr('old') ], 'pg_dump');
foreach my $db (qw(once again))
{
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql('postgres', "ALTER DATABASE $db SET tq.maintenance = off");
	$node->command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', "$dir/once.sql", '-d', $node->connstr($db) ], "$db: restored");
	begin_use($node, $db);
	$node->command_ok([ 'pg_dump', '-f', "$dir/once.sql", '-d', $node->connstr($db) ], 'pg_dump');
}
publish($node, 'again');
is(news($node, 'again'), both('twice'), 'a copy of a copy publishes what neither has');
name($node, 'again', 'own');
publish($node, 'again');
is(news($node, 'again'), both('own'), 'and its own');

# What one tick has derived is one row in a dump; the tasks in it keep their places.
new_database($node, 'sorted');
name($node, 'sorted', $_) foreach 'first', 'reported';
$node->safe_psql('sorted', q{SELECT tq.claim_work('p/w', 'g', 'w', 2)});
$node->safe_psql('sorted', q{
	BEGIN;
	SELECT tq.report_completed(task_id, 0) FROM tq_internal.task WHERE metadata ->> 'name' = 'reported';
	SELECT tq.enqueue('p/w', name => 'caused');
	COMMIT});
publish($node, 'sorted');
$node->command_ok([ 'pg_dump', '-f', "$dir/order.sql", '-d', $node->connstr('sorted') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE ordered');
$node->safe_psql('postgres', 'ALTER DATABASE ordered SET tq.maintenance = off');
$node->command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', "$dir/order.sql", '-d', $node->connstr('ordered') ], 'order: restored');
begin_use($node, 'ordered');
publish($node, 'ordered');
like(news($node, 'sorted'), qr/completed reported, defined caused, pending caused$/, 'what a report has caused follows it');
is($node->safe_psql('ordered', q{SELECT read_now()}) =~ s/task-//gr, $node->safe_psql('sorted', q{SELECT string_agg(l.exchange || ' ' || (t.metadata ->> 'name'), ', ' ORDER BY l.id)
	FROM ledger l JOIN tq_internal.task t ON t.task_id::text = l.task}) =~ s/task-//gr, 'in the restored database, too');

# Rows alone, into a database that is in use.
new_database($node, 'rows');
begin_use($node, 'rows');
new_database($node, 'origin');
name($node, 'origin', "published $_") foreach 1, 2;
publish($node, 'origin');
news($node, 'origin');
name($node, 'origin', "unpublished $_") foreach 1, 2;
$node->command_ok([ 'pg_dump', '--data-only', '--exclude-table-data=tq_internal.subscription*', '-f', "$dir/rows.sql", '-d', $node->connstr('origin') ], 'pg_dump of rows');
$node->command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', "$dir/rows.sql", '-d', $node->connstr('rows') ], 'rows: loaded');
is($node->safe_psql('rows', 'SELECT count(xid) FROM tq_internal.task'), 0, 'a task that is loaded names no transaction');
publish($node, 'rows');
is(news($node, 'rows'), both('unpublished 1', 'unpublished 2'), 'what was not published is, once, and nothing else');

# A part of a publication is done: what it has derived is not derived elsewhere.
new_database($node, 'parts');
name($node, 'parts', $_) foreach 1 .. 4;
$node->safe_psql('parts', q{
	SET session_replication_role = replica;
	UPDATE tq_internal.tick SET part_of = pg_current_snapshot(), upto_seq = (SELECT id FROM tq_internal.task WHERE metadata ->> 'name' = '3')
	WHERE last_id = (SELECT max(last_id) FROM tq_internal.tick)});
is($node->safe_psql('parts', q{SELECT string_agg(t.metadata ->> 'name', ' ' ORDER BY t.id) FROM tq_internal.underived u JOIN tq_internal.task t ON t.id = u.task}), '4', 'the view has the rest');
is($node->safe_psql('parts', q{SELECT string_agg(t.metadata ->> 'name', ' ' ORDER BY t.id) FROM tq_internal.underived_message() u JOIN tq_internal.task t ON t.id = u.seq}), '4', 'and so has a dump');

# A number that could not be drawn does not hold up the mark.
new_database($node, 'held');
name($node, 'held', 'first');
my $locker = session($node, 'held');
my $waiter = session($node, 'held');
output($waiter, q{SELECT tq.enqueue('p/w')});
output($waiter, q{SET lock_timeout = '10ms'});
$locker->begin_work;
$locker->do('ALTER SEQUENCE tq_internal.id_seq OWNER TO CURRENT_USER');
my $failed = 0;
foreach my $i (1 .. 200)
{
	$failed = !eval { $waiter->do(q{SELECT tq.enqueue('p/w')}); 1 };
	last if $failed;
}
ok($failed, 'the block is used up');
$waiter->begin_work;
$waiter->do('SAVEPOINT s');
ok(!eval { $waiter->do(q{SELECT tq.enqueue('p/w')}); 1 }, 'a session could not draw a number');
$waiter->do('ROLLBACK TO s');
$locker->rollback;
$node->safe_psql('held', q{DO $$ BEGIN FOR i IN 1 .. 200 LOOP PERFORM tq.enqueue('p/w'); COMMIT; END LOOP; END $$});
publish($node, 'held');
is($node->safe_psql('held', "SELECT low >= (SELECT max(id) FROM tq_internal.task) $last"), 't', 'and the mark goes on while its transaction is open');
$waiter->rollback;
$_->disconnect foreach $locker, $waiter;

# ---- DROP EXTENSION, and a database beside ----

$open = session($node, 'again');
$open->begin_work;
output($open, q{SELECT tq.enqueue('p/w', name => 'open elsewhere')});
new_database($node, 'beside');
name($node, 'beside', 'first');
publish($node, 'beside');
is(news($node, 'beside'), both('first'), 'another database has its own');
is($node->safe_psql('beside', "SELECT open IS NULL $last"), 't', 'and lists no creation of another');
$node->safe_psql('beside', 'DROP EXTENSION tq CASCADE');
$node->safe_psql('beside', 'DROP VIEW IF EXISTS fault; DROP TABLE IF EXISTS ledger, reading');
$node->safe_psql('beside', 'DROP FUNCTION IF EXISTS read_now, read_on');
$node->safe_psql('beside', 'CREATE EXTENSION tq');
$node->safe_psql('beside', $tools);
subscribe($node, 'beside');
name($node, 'beside', $_) foreach qw(new newer);
publish($node, 'beside');
name($node, 'beside', 'newest');
publish($node, 'beside');
is(news($node, 'beside'), both(qw(new newer newest)), 'an extension that was created again');
$open->commit;
publish($node, 'again');
$open->disconnect;
is(news($node, 'again'), both('open elsewhere'), 'the other database is as it was');

# ---- promotion ----

my $standby = PostgreSQL::Test::Cluster->new('standby');
$node->backup('backup');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
news($node, 'again');
name($node, 'again', $_) foreach qw(seen replicated);
publish($node, 'again');
name($node, 'again', 'unseen');
$node->wait_for_catchup($standby);
is($standby->safe_psql('again', $waiting), 1, 'a standby shows what waits');
$node->stop('immediate');
$standby->promote;
publish($standby, 'again');
name($standby, 'again', 'promoted');
is(is_derived($standby, 'again', 'promoted'), 't', 'the promoted server derives');
publish($standby, 'again');
is(news($standby, 'again'), both(qw(seen replicated unseen promoted)), 'and publishes what its primary has not');
is(faults($standby, 'again'), '', 'each once');
unlike(slurp_file($_->logfile), qr/PANIC:|TRAP:|was terminated by signal/, 'nothing crashed') foreach $node, $standby, $other;
$_->stop foreach $standby, $other;

done_testing();
