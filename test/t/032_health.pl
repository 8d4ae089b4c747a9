# Each check of tq.health() is made to fail, and to succeed again; and each row
# has at most 120 columns in psql.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Time::HiRes qw(usleep);
use Tq;

# Four background workers: two launchers, tq's and that of logical replication,
# and the maintenance workers of two databases.
my $node = new_node('health', 'max_worker_processes = 4', 'max_prepared_transactions = 5', 'autovacuum = off', 'log_statement = none');
my $db = 'postgres';
my $widest = 0;
my @names = ('version', 'preload', 'maintenance', 'lateness', 'steps', 'postponed', 'worker slots', 'publisher', 'subscriptions', 'notifications',
	'oldest pending', 'expired claims', 'transactions', 'dead rows', 'paused', 'limits', 'gates', 'replay', 'clock', 'listeners', 'workers', 'cron', 'policies',
	'failures', 'disk', 'wraparound');

# ---- what psql shows ----

# The rows as psql shows them: by name, ok, detail and hint.
sub health
{
	my (%at) = @_;
	local $ENV{PGOPTIONS} = '-c tq.clock_offset=' . ($at{offset} // '0') =~ s/ /\\ /gr;
	my ($out) = run_command([ 'psql', '-X', '-d', ($at{on} // $node)->connstr($at{db} // $db), '-c', 'SELECT * FROM ' . ($at{from} // 'tq.health()') ]);
	my %rows;

	foreach my $line (split /\n/, $out)
	{
		my @cells = split /\s*\|\s*/, ' ' . $line;

		$widest = length($line) if length($line) > $widest;
		$cells[0] =~ s/^\s+//;
		$rows{$cells[0]} = [ @cells[ 1 .. 3 ] ] if @cells >= 3 && $cells[1] =~ /^[tf]$/;
	}
	return %rows;
}

sub is_bad
{
	my ($name, $detail, $hint, %at) = @_;
	my ($ok, $is, $do) = @{ { health(%at) }->{$name} };

	is($ok, 'f', "$name: not ok");
	like($is, qr/^$detail$/, "$name: detail");
	like($do, qr/^$hint$/, "$name: hint");
	return;
}

sub is_good
{
	my ($name, $detail, %at) = @_;
	my ($ok, $is, $do);

	# A standby may be about to replay what has just come, and maintenance has transactions too.
	foreach (1 .. ($at{on} || $name eq 'transactions' ? 100 : 1))
	{
		($ok, $is, $do) = @{ { health(%at) }->{$name} };
		last if $is =~ /^$detail$/;
	}
	is($ok, 't', "$name: ok") or diag($is);
	like($is, qr/^$detail$/, "$name: detail when it is ok");
	is($do // '', '', "$name: no hint then");
	return;
}

# Wait until a check is, or is not, ok.
sub wait_for_check
{
	my ($name, $ok, $in) = @_;

	return ok($node->poll_query_until($in // $db, "SELECT ok = $ok FROM tq.health() WHERE name = '$name'"), "$name: ok is $ok");
}

sub query
{
	my ($query, $in) = @_;

	return $node->safe_psql($in // $db, $query);
}

$ENV{PGTZ} = 'UTC';
query('CREATE EXTENSION tq');
wait_worker($node, $db);
is_good('maintenance', 'it begins with the first call that writes');
begin_use($node, $db);
ok($node->poll_query_until($db, "SELECT state = 'running' FROM tq.maintenance_overview WHERE step = 'turn'"), 'it begins');
is(query('SELECT count(*) FROM tq.health() WHERE ok'), @names, 'all is well');
is(query("SELECT string_agg(name, ' ') FROM tq.health()"), "@names", 'the names of the checks');
is_good('maintenance', 'the maintenance worker is running');
is_good('preload', 'the server has preloaded tq');

# ---- worker slots, maintenance: absent ----

ok($node->poll_query_until($db, 'SELECT tq_internal.background_workers() = 3'), 'two launchers and a maintenance worker');
is_good('worker slots', '3 of 4 background workers are in use');
foreach my $other ('one', 'two')
{
	query("CREATE DATABASE $other");
	query('CREATE EXTENSION tq', $other);
	begin_use($node, $other);
	wait_worker($node, $other) if $other eq 'one';
}
is_bad('worker slots', '4 of 4 background workers are in use', 'raise max_worker_processes, restart');
is_bad('maintenance', 'the maintenance worker is absent', q{see the server's log, or call tq.upkeep\(\)}, db => 'two');
is_good('expired claims', 'not counted without a maintenance worker', db => 'two');
query('DROP DATABASE one');
wait_for_check('maintenance', 'true', 'two');
query('DROP DATABASE two');
wait_for_check('worker slots', 'true');

# ---- maintenance: off; lateness, publisher ----

is_good('lateness', 'nothing that is due waits');
is_good('publisher', '0 rows of messages are not published');
query("ALTER DATABASE $db SET tq.maintenance = off");
wait_for_check('maintenance', 'false');
is_bad('maintenance', 'tq.maintenance is off', 'set tq.maintenance to on');
query("SELECT count(tq.enqueue('p/many', deadline => '1 hour')) FROM generate_series(1, 10001)");
my $late = enqueue($node, $db, "deadline => '10 ms'");
wait_past_deadline($node, $db, $late);
is_bad('lateness', 'what is due has waited for 00:0\d:\d\d', 'see maintenance, steps', offset => '10 s');
is_bad('publisher', 'more than 10000 rows of messages are not published', 'see maintenance, steps; or it is behind');
query("ALTER DATABASE $db RESET tq.maintenance");
wait_for_check($_, 'true') foreach 'maintenance', 'publisher';
ok(wait_state($node, $db, $late, 'exception'), 'the deadline is handled');
is_good('lateness', 'nothing that is due waits', offset => '10 s');
is_good('publisher', '\d+ rows of messages are not published');

# ---- oldest pending ----

# An old run is found behind a new one of a higher priority.
is_good('oldest pending', 'for 00:00:\d\d in p/many');
is_bad('oldest pending', 'for 00:00:\d\d in p/many', 'start workers; see tq.why\(\) of a task', from => q{tq.health('{"oldest pending": "0 s"}')});
is_bad('oldest pending', 'for 00:00:\d\d in p/many', 'start workers; see tq.why\(\) of a task', from => q{tq.health('{"queues": {"p/many": "0 s"}}')});
is_good('oldest pending', 'for 02:00:\d\d in p/many', from => q{tq.health('{"queues": {"p/many": "3 hours"}}')}, offset => '2 hours');
query("SELECT count(tq.cancel_task(task_id)) FROM tq.task_overview WHERE task_queue_id = 'p/many'");
is_good('oldest pending', 'no run is pending');
query(q{
	SET tq.clock_offset = '-2 hours'; SELECT tq.enqueue('provisioner/a-queue-with-a-long-name', priority => 'low', deadline => '1 day');
	RESET tq.clock_offset; SELECT tq.enqueue('provisioner/a-queue-with-a-long-name', priority => 'high')});
is_bad('oldest pending', 'for 02:00:\d\d in provisioner/a-queue-w\.\.\.', 'start workers; see tq.why\(\) of a task');
query("SELECT count(tq.cancel_task(task_id)) FROM tq.task_overview WHERE task_queue_id ~ 'long-name'");
is_good('oldest pending', 'no run is pending');

# ---- steps, postponed ----

is_good('steps', 'no step fails');
query('ALTER TABLE tq_internal.claim_timer RENAME TO away');
enqueue($node, $db, "deadline => '10 ms'");	# wakes the maintenance worker
wait_for_check('steps', 'false');
is_bad('steps', 'failing: claim-expired', 'see error in tq.maintenance_overview');
query('ALTER TABLE tq_internal.away RENAME TO claim_timer');
wait_for_check('steps', 'true');
is_good('steps', 'no step fails');

is_good('postponed', 'no step has failed for a task');
query(q{
	CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.definition #>> '{metadata,name}' = 'poison' THEN RAISE 'no letter for this task, for a reason that fills more than a line'; END IF;
		RETURN NEW;
	END $$;
	CREATE TRIGGER fail BEFORE INSERT ON tq_internal.dead_letter FOR EACH ROW EXECUTE FUNCTION fail();
	SELECT tq.enqueue('p/letters', name => CASE n WHEN 1 THEN 'poison' ELSE 'task' END, deadline => '100 ms', policy => '{"deadLetter": true}')
		FROM generate_series(1, 10) AS n});
wait_for_check('postponed', 'false');
is_bad('postponed', 'tasks for which a step has failed: 1', 'see tq.postponed_overview');
my %poison = health(from => q{(SELECT reason, true, detail, advice FROM tq.why((SELECT task_id FROM tq.postponed_overview))) AS w WHERE detail ~ '^error'});
is($poison{postponed}[1], 'error: no letter for this task, for a reason th...', 'why() has the error, in a line');
query('DROP TRIGGER fail ON tq_internal.dead_letter');
wait_for_check('postponed', 'true');
is_good('postponed', 'no step has failed for a task');

# ---- expired claims ----

is_good('expired claims', '0 within an hour');
query(q{
	SELECT count(tq.enqueue('p/lost', retries => 0, policy => '{"claimTimeout": 1}')) FROM generate_series(1, 101);
	SELECT count(*) FROM tq.claim_work('p/lost', 'g', 'w', 100)});
ok($node->poll_query_until($db, "SELECT count(*) = 100 FROM tq.failure_overview WHERE task_queue_id = 'p/lost'"), 'a worker with a hundred claims dies');
$node->poll_query_until($db, "SELECT detail LIKE '100 %' FROM tq.health() WHERE name = 'expired claims'");
is_good('expired claims', '100 within an hour');
query("SELECT count(*) FROM tq.claim_work('p/lost', 'g', 'w', 1)");
wait_for_check('expired claims', 'false');
is_bad('expired claims', '101 within an hour', 'workers have died, or reclaim too late');
is_bad('expired claims', '101 within an hour', 'workers have died, or reclaim too late', offset => '55 minutes');
is_good('expired claims', '0 within an hour', offset => '61 minutes');

# The log has a line, and not one for each: the next one counts those since the last one.
sub logged { return slurp_file($node->logfile) =~ /LOG:  (\d+) claims? expired in database "$db"/g; }

my @before = logged();
is(@before, 1, 'a line of the log for claims that expire within a minute');
query($_) foreach 'ALTER SYSTEM SET tq.log_expired_claims = 0', 'SELECT pg_reload_conf()';
query("SELECT tq.enqueue('p/lost', retries => 0, policy => '{\"claimTimeout\": 1}'); SELECT count(*) FROM tq.claim_work('p/lost', 'g', 'w', 1)");
ok($node->poll_query_until($db, "SELECT count(*) = 102 FROM tq.failure_overview WHERE task_queue_id = 'p/lost'"), 'one more');
# The worker logs what it has committed.
foreach (1 .. 600)
{
	last if logged() == 2;
	usleep(100_000);
}
my @lines = logged();
is(@lines, 2, 'another line when its time has come');
is($lines[0] + $lines[1], 102, 'no claim is left out');

# ---- failures ----

is_bad('failures', 'more than 100 in 10 minutes, in p/lost', 'see tq.failure_overview');
is_good('failures', '\d+ within 10 minutes', from => q{tq.health('{"failures": 1000}')});
is_good('failures', '0 within 10 minutes', offset => '11 minutes');
query(q{SELECT tq.purge('p/lost', '{exception}', '0')});
is_good('failures', '\d+ within 10 minutes');

# ---- lines of the log about single runs ----

sub lines { return grep { /LOG:  tq: event=/ } split /\n/, slurp_file($node->logfile); }

query(q{SELECT tq.enqueue('p/log'); SELECT tq.report_failed(task_id, run_id, error_message => 'x') FROM tq.claim_work('p/log', 'g', 'w')});
is(lines(), 0, 'none by default');
query($_) foreach 'ALTER SYSTEM SET tq.log_min_wait = 30000', 'ALTER SYSTEM SET tq.log_failures = 0', 'SELECT pg_reload_conf()';
query(q{SELECT tq.enqueue('p/log')});
query(q{SELECT tq.report_completed(task_id, run_id) FROM tq.claim_work('p/log', 'g', 'w')});
is(lines(), 0, 'none of a run that has waited for less, and has not failed');
query(q{SET tq.clock_offset = '-90 s'; SELECT tq.enqueue('p/log')});
query(q{SELECT count(*) FROM tq.claim_work('p/log', 'g', E'w-1')});
my $running = query(q{SELECT task_id FROM tq.run_overview WHERE state = 'running' AND worker_id = 'w-1'});
like((lines())[0], qr/LOG:  tq: event=waited queue="p\/log" task=$running run=0 seconds=(89|90|91)\.\d{3} worker_group="g" worker_id="w-1"$/, 'a line for one that has waited for longer');
query(qq{SELECT tq.report_failed('$running', 0, error_message => E'it said "no" \\\\ \\t and\\nLOG:  tq: event=failed queue="p/other"')});
like((lines())[1], qr/LOG:  tq: event=failed queue="p\/log" task=$running run=0 reason=failed retried=false error="it said \\"no\\" \\\\ \\x09 and"$/, 'a line for a failure, with the first line of its error, and no other key');
is(lines(), 2, 'and no other line');
query(q{SELECT tq.enqueue('p/log'); SELECT tq.report_failed(task_id, run_id, error => '{"code": 7}') FROM tq.claim_work('p/log', 'g', 'w')});
like((lines())[2], qr/ error="\{\\"code\\": 7\}"$/, 'an error that has no message');
query(q{SELECT tq.enqueue('p/log'); SELECT tq.report_exception(task_id, run_id, 'worker-shutdown') FROM tq.claim_work('p/log', 'g', 'w')});
like((lines())[3], qr/ reason=worker-shutdown retried=true$/, 'a run that is retried');
query(q{SELECT tq.cancel_task(task_id) FROM tq.task_overview WHERE task_queue_id = 'p/log' AND state = 'pending'});
is(lines(), 4, 'none for one that was cancelled');
query(q{SELECT tq.enqueue('p/log', retries => 0, policy => '{"claimTimeout": 1}'); SELECT count(*) FROM tq.claim_work('p/log', 'g', 'w')});
ok($node->poll_query_until($db, q{SELECT count(*) = 1 FROM tq.run_overview JOIN tq.task_overview USING (task_id) WHERE task_queue_id = 'p/log' AND run_overview.reason_resolved = 'claim-expired'}), 'a claim expires');
like((lines())[4], qr/ reason=claim-expired retried=false$/, 'which maintenance logs');
query($_) foreach q{ALTER SYSTEM SET tq.log_failures = '1 h'}, 'SELECT pg_reload_conf()';
query(q{SELECT tq.enqueue('p/some'); SELECT tq.report_failed(task_id, run_id) FROM tq.claim_work('p/some', 'g', 'w')}) foreach 1 .. 3;
is(lines(), 6, 'one of three failures within the hour');
query($_) foreach 'ALTER SYSTEM SET tq.log_failures = 0', 'SELECT pg_reload_conf()';
query(q{SELECT tq.enqueue('p/some'); SELECT tq.report_failed(task_id, run_id) FROM tq.claim_work('p/some', 'g', 'w')});
like((lines())[6], qr/ retried=false left_out=2$/, 'and the next one says how many were left out');
query($_) foreach 'ALTER SYSTEM RESET tq.log_min_wait', 'ALTER SYSTEM RESET tq.log_failures', 'SELECT pg_reload_conf()';

# ---- disk, wraparound; 086_disk_full.pl has a disk that is full ----

is_good('disk', 'the database has \d+ .B');
is_bad('disk', 'the database has \d+ .B', 'add room, or keep less: see retention', from => q{tq.health('{"disk": "1 MB"}')});
is_good('disk', 'the database has \d+ .B', from => q{tq.health('{"disk": "1 TB"}')});
is_good('wraparound', '0 million transactions are not frozen');
is_bad('wraparound', '0 million transactions are not frozen', 'VACUUM \(FREEZE\); see transactions', from => q{tq.health('{"wraparound": 10}')});

# ---- subscriptions ----

is_good('subscriptions', 'there are none', offset => '2 hours');
query("SELECT tq.subscribe('reader-' || n, 'task-defined') FROM generate_series(1, 3) AS n; SELECT tq.enqueue('p/w', name => 'message', deadline => '1 day')");
ok($node->poll_query_until($db, "SELECT count(*) = 1 FROM tq.fetch('reader-1')"), 'a message');
is_good('subscriptions', 'none of 3 is unread for 1 hour');
is_bad('subscriptions', 'unread: reader-1, reader-2, reader-3', 'read it, or tq.unsubscribe\(\) it', offset => '2 hours');
query("SELECT tq.ack(name, last_id) FROM tq.subscription_overview");
is_good('subscriptions', 'none of 3 is unread for 1 hour', offset => '2 hours');

# ---- transactions ----

is_good('transactions', 'none is open', offset => '11 minutes');
my $session = $node->background_psql($db);
$session->query_safe("BEGIN; SELECT tq.enqueue('p/w')");
is_good('transactions', 'process \d+ for 00:00:\d\d');
is_bad('transactions', 'process \d+ for 00:11:\d\d', 'end it: it holds back vacuum', offset => '11 minutes');
$session->query_safe('COMMIT');
is_good('transactions', 'none is open', offset => '11 minutes');
$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
is_bad('transactions', 'process \d+ for 00:11:\d\d', 'end it: it holds back vacuum', offset => '11 minutes');

# ---- dead rows, also while that snapshot is held ----

my $rows = 'INSERT INTO tq_internal.dependency SELECT n, n, 0 FROM generate_series(1, %s) AS n; DELETE FROM tq_internal.dependency WHERE required = dependent; SELECT pg_stat_force_next_flush()';
is_good('dead rows', '\d+ in \w+; \d+ .B in all');
query(sprintf $rows, 100001);
is_bad('dead rows', '100001 in dependency; \d+ .B in all', 'vacuum does not come: is autovacuum on\?');
query('VACUUM tq_internal.dependency');
is_good('dead rows', '100001 in dependency; \d+ .B in all');
query(sprintf $rows, 900000);
query('VACUUM tq_internal.dependency');
is_bad('dead rows', '1000001 in dependency; \d+ .B in all', 'vacuum is in vain: see transactions');
$session->query_safe('COMMIT');
query('VACUUM tq_internal.dependency');
is_good('dead rows', '\d+ in \w+; \d+ .B in all');

$session->query_safe("BEGIN; SELECT tq.enqueue('p/w'); PREPARE TRANSACTION 'a-transaction-with-a-long-name'");
is_bad('transactions', 'prepared a-transaction-w... for 00:11:\d\d', 'end it: it holds back vacuum', offset => '11 minutes');
$session->query_safe("ROLLBACK PREPARED 'a-transaction-with-a-long-name'");
is_good('transactions', 'none is open', offset => '11 minutes');

# ---- notifications ----

is_good('notifications', 'the notification queue is 0 % full');
# one that listens to another channel would hold it no more since 19; what it has not read is not sent to it
$session->query_safe('LISTEN fill');
$session->query_safe('BEGIN; SELECT 1');
for (1 .. 100)
{
	query("SELECT count(pg_notify('fill', n || repeat('x', 4200))) FROM generate_series(1, 10000) AS n");
	last if query('SELECT pg_notification_queue_usage() >= 0.1') eq 't';
}
is_bad('notifications', 'the notification queue is 10 % full', 'end the session that does not read it');
$session->query_safe('UNLISTEN *; COMMIT');
$session->quit;
ok($node->poll_query_until($db, 'SELECT pg_notification_queue_usage() < 0.01'), 'the queue is read');
is_good('notifications', 'the notification queue is 0 % full');

# ---- roles ----

query('CREATE ROLE monitor LOGIN IN ROLE pg_monitor; CREATE ROLE client LOGIN IN ROLE tq_admin');
foreach my $role ('monitor', 'client')
{
	is(query("SET SESSION AUTHORIZATION $role; SELECT count(ok) FROM tq.health()"), @names, "$role may call it");
}
$session = $node->background_psql($db);
$session->query_safe("BEGIN; SELECT tq.enqueue('p/w')");
like(query("SET SESSION AUTHORIZATION $_; SELECT detail FROM tq.health() WHERE name = 'transactions'"), qr/^process \d+ for /, "$_ sees the transactions of others")
	foreach qw(monitor client);
$session->query_safe('ROLLBACK');
$session->quit;

# ---- a standby ----

$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is_good('maintenance', 'it begins when this standby is promoted', on => $standby);
is($standby->safe_psql($db, q{SELECT string_agg(name, ' ') FROM tq.health() WHERE NOT ok AND name <> 'workers'}), '',
	'nothing is wrong there, but for workers when this has taken more than a minute');

# It receives what it does not replay.
enqueue($node, $db);
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is_good('replay', 'this server is no standby');
is_good('replay', 'all that this standby has received is replayed', on => $standby);
$standby->safe_psql($db, 'SELECT pg_wal_replay_pause()');
enqueue($node, $db);
ok($standby->poll_query_until($db, 'SELECT pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn()'), 'replay is behind');
is_good('replay', 'the last commit that is replayed is 00:00:\d\d old', on => $standby);
is_bad('replay', 'the last commit that is replayed is 00:02:\d\d old', 'see pg_stat_wal_receiver; end long queries', on => $standby, offset => '2 min');
$standby->safe_psql($db, 'SELECT pg_wal_replay_resume()');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is_good('replay', 'all that this standby has received is replayed', on => $standby, offset => '2 min');

# It receives nothing, and begins with the checkpoint of a primary that was stopped.
$node->stop;
$standby->poll_query_until($db, 'SELECT pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()') or die 'the standby does not replay all';
$standby->safe_psql($db, 'CHECKPOINT');
$standby->append_conf('postgresql.conf', "primary_conninfo = ''");
$standby->restart;
is_good('replay', 'nothing has come since this standby was started', on => $standby);
is_bad('replay', 'nothing has come since this standby was started', 'see pg_stat_wal_receiver; end long queries', on => $standby, offset => '2 min');
$standby->stop;
$node->start;

# ---- preload ----

$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
is_bad('preload', 'the server has not preloaded tq', 'set shared_preload_libraries, restart');
is_bad('maintenance', 'the maintenance worker is absent', q{see the server's log, or call tq.upkeep\(\)});
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'tq'");
$node->restart;
wait_for_check('maintenance', 'true');
is_good('preload', 'the server has preloaded tq');

# ---- what goes with the next version ----

my ($code, $detail, $notices) = $node->psql($db, q(BEGIN;
	CREATE OR REPLACE FUNCTION tq_internal.deprecated() RETURNS TABLE (name text, instead text) LANGUAGE sql IMMUTABLE
		AS $$ VALUES ('tq.old()', 'tq.new()'), ('tq.older()', 'tq.newer()') $$;
	SELECT detail FROM tq.health() WHERE name = 'version' AND ok;
	COMMIT;
	SELECT tq_internal.say_deprecated('tq.old()') IS NULL;
	SELECT tq_internal.say_deprecated(name) IS NULL FROM tq_internal.deprecated();));
like($detail, qr/^library \S+, SQL \S+; to go: tq\.old\(\), tq.*\.\.\.$/m, 'health names what is to go');
is($notices =~ s/^psql:\S+ //gmr, join("\n", map { "NOTICE:  tq.$_->[0]() goes with the next version of tq\nHINT:  Use tq.$_->[1]()." } [ 'old', 'new' ], [ 'older', 'newer' ]),
	'a NOTICE for each, once in a session');

cmp_ok($widest, '<=', 120, 'every row has at most 120 columns in psql');
unlike(slurp_file($node->logfile), qr/PANIC:|was terminated by signal|TRAP:/, 'nothing crashed');
$node->stop;
done_testing();
