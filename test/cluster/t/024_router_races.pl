# Calls through a router while its map is changed: the change waits for a transaction on
# the shard that loses buckets, and sessions call meanwhile, and in transactions that
# began before.  No group is on two shards, no task is lost, no message skipped.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t";
use Tq;

my $node = new_node('races', 'max_connections = 80', 'max_worker_processes = 20');
my @shards = ('s1', 's2');

plan skip_all => 'there is no plproxy' unless $node->safe_psql('postgres', q{SELECT 1 FROM pg_available_extensions WHERE name = 'plproxy'});

my ($created, $deadline) = split /\|/, $node->safe_psql('postgres', q{SELECT to_char(now() AT TIME ZONE 'UTC', f), to_char(now() AT TIME ZONE 'UTC' + interval '1 day', f) FROM (VALUES ('YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) AS v (f)});
my $at = 'host=' . $node->host . ' port=' . $node->port;

sub ask { return $node->safe_psql('router', $_[0]); }

sub on { my ($shard, $query) = @_; return $node->safe_psql($shard, $query); }

# The error of a statement, as psql shows it.
sub refused
{
	my ($query, $db) = @_;
	my ($code, $out, $error) = $node->psql($db // 'router', "\\set VERBOSITY verbose\n$query");

	return $error;
}

sub session { my ($db) = @_; return $node->background_psql($db, on_error_stop => 0); }

# A statement that goes on in a session of its own; see ended().
sub begin
{
	my ($db, $statement) = @_;
	my $session = session($db);

	$session->query_until(qr/begun/, "\\echo begun\n$statement;\n");
	return $session;
}

# Waits for the statement of begin(); returns what it printed.
sub ended
{
	my ($session) = @_;
	my $out = $session->query(q{SELECT 'over'}) . $session->{stderr};

	$session->quit;
	return $out =~ s/over|\n//gr;
}

sub new_id { my ($bucket) = @_; return ask("SELECT tq_shard_internal.slugid_in_bucket($bucket)"); }

sub create { my ($id, $group) = @_; return "SELECT length(tq.enqueue('app/load', task_id => '$id', task_group_id => '$group')::text)"; }

# On which shards a group is.
sub shards_of
{
	my ($group) = @_;

	return join ' ', grep { on($_, "SELECT tq_internal.has_task_group('$group')") eq 't' } @shards;
}

sub definition
{
	my ($id) = @_;

	return qq({"taskId": "$id", "task": {"taskQueueId": "app/load", "created": "$created", "deadline": "$deadline",
		"payload": {}, "metadata": {"name": "n", "description": "d", "owner": "o", "source": "https://example.com/"}}});
}

# Waits until a shard begins no more groups of a bucket.
sub wait_lost
{
	my ($shard, $bucket) = @_;

	$node->poll_query_until($shard, "SELECT NOT tq_internal.buckets() @> $bucket") or die "$shard keeps bucket $bucket";
	return;
}

on('postgres', "CREATE DATABASE $_") foreach ('router', @shards);
on($_, "CREATE EXTENSION tq") foreach @shards;
ask('CREATE EXTENSION tq_shard CASCADE');
ask("CALL tq_shard.add_shard('s1', '$at dbname=s1')");
ask(q{SELECT tq.subscribe('ended', 'task-completed')});

# ---- a shard is added while a transaction is open on the one that loses buckets ----

# Buckets from 512 on will be those of s2.
my ($old, $old_low) = (new_id(1000), new_id(5));
ask(create($_, $_)) foreach ($old, $old_low);
my $open_group = new_id(1000);
my $open = session('s1');
$open->query_safe("BEGIN; " . create($open_group, $open_group) . ';');
my $long = session('router');
$long->query_safe("BEGIN; SELECT tq.status('$old'); SELECT count(*) FROM tq.list_task_group('$old');");
my $snapshot = session('router');
$snapshot->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT tq.status('$old');");
my $waiter = begin('router', q{SELECT 'got ' || count(*) FROM tq.claim_work('app/late', 'g', 'w', 1, '60 s')});
my $change = begin('router', "CALL tq_shard.add_shard('s2', '$at dbname=s2')");
wait_lost('s1', 1000);

my ($new, $new_low) = (new_id(1000), new_id(6));
like(refused(create($new, $new)), qr/TQ409/, 'a new group in a bucket that is moved is refused');
like(refused(create($new, $new), 's1'), qr/TQ409.*HINT/s, 'so it is on the shard that loses the bucket');
is(shards_of($new), '', 'it is on neither');
is(ask(create(new_id(1000), $old)), '22', 'an old group gets a further task');
is($long->query_safe(create(new_id(1000), $old) . ';'), '22', 'also by a transaction that began before');
is($snapshot->query_safe(create(new_id(1000), $old) . ';'), '22', 'also by one that is REPEATABLE READ');
is(shards_of($old), 's1', 'where it is');
is(ask('SELECT count(*) FILTER (WHERE tq_shard_internal.bucket(tq.enqueue(\'app/free\')) >= 512) FROM generate_series(1, 60)'), '0', 'an id that the router chooses is in no bucket that is moved');
is(ask(create($new_low, $new_low)), '22', 'a new group in a bucket that stays');
my ($batch_low, $batch_old) = (new_id(7), new_id(1000));
my $batch = "SELECT tq.create_tasks('[" . definition($batch_low) . ', ' . (definition($batch_old) =~ s/"taskQueueId"/"taskGroupId": "$old", "taskQueueId"/r) . "]')";
like(refused($batch =~ s/"taskGroupId": "$old", //r), qr/TQ409/, 'create_tasks() with a new group in a bucket that is moved');
my $claimed = ask(q{SELECT string_agg(task_id::text, ',') FROM tq.claim_work('app/load', 'g', 'w', 1000)});
cmp_ok(scalar(split /,/, $claimed), '>=', 5, 'what is there is claimed');
is(ask("SELECT DISTINCT outcome FROM tq.resolve('{$claimed}'::tq.slugid[], array_fill(0, ARRAY[cardinality('{$claimed}'::text[])]))"), 'resolved', 'and resolved, of all buckets');
foreach my $call ('SELECT tq_shard.refresh()', "CALL tq_shard.add_shard('s3', '$at dbname=s3')", q{CALL tq_shard.drain_shard('s1')}, q{CALL tq_shard.remove_shard('s1')})
{
	like(refused($call), qr/55006: another session changes the map.*HINT/s, ($call =~ /(\w+)\(/)[0] . '() while another session changes the map');
}
is(ask(q{SELECT state FROM tq_shard.map() WHERE name = 's2'}), 'joining', 'the change waits for the transaction');
$open->query_safe('COMMIT;');
$open->quit;
is(ended($change), '', 'and ends after it');
is(ask(q{SELECT string_agg(name || ' ' || state, ', ') FROM tq_shard.map()}), 's1 active, s2 active', 'the shard is there');

is(ask("SELECT tq.status('$open_group') ->> 'state'"), 'pending', 'what the transaction has created is found');
is(ask(create(new_id(1000), $open_group)), '22', 'its group gets a further task');
is(shards_of($open_group), 's1', 'where it is');
is(ask(create($new, $new)), '22', 'what was refused is accepted now');
is(shards_of($new), 's2', 'by the new shard');
foreach my $session ([ $long, 'a transaction that began before' ], [ $snapshot, 'one that is REPEATABLE READ' ])
{
	my $own = new_id(1001);
	is($session->[0]->query_safe(create($own, $own) . ';'), '22', "$session->[1] begins a group");
	is(shards_of($own), 's2', 'on the new shard');
	is($session->[0]->query_safe("SELECT tq.status('$own') ->> 'state';"), 'pending', 'and finds it');
	is($session->[0]->query_safe("SELECT tq.status('$old') ->> 'state';"), 'completed', 'and an old one');
	is($session->[0]->query_safe("SELECT count(*) FROM tq.statuses('{$own,$old}');"), '2', 'or both with one call');
	is($session->[0]->query_safe(create(new_id(1000), $old) . ';'), '22', 'which gets a further task');
	is(shards_of($old), 's1', 'where it is');
	$session->[0]->query_safe('COMMIT;');
	$session->[0]->quit;
}
is(ask($batch), '2', 'create_tasks() over both shards');
is(ask($batch), '0', 'which a repetition has already');
is(ask("SELECT count(*) FROM tq.statuses('{$batch_low,$batch_old}')"), '2', 'the tasks are there once');
on('s2', q{SELECT tq.enqueue('app/late')});
is(ended($waiter), 'got 1', 'a claim that waits since before the change gets what comes on the new shard');

# ---- a shard is drained while a transaction is open on it, and the session ends ----

my ($gone, $stays) = (new_id(1002), new_id(1002));
ask(create($stays, $stays));
$open = session('s2');
$open->query_safe("BEGIN; " . create($gone, $gone) . ';');
$change = begin('router', q{CALL tq_shard.drain_shard('s2')});
wait_lost('s2', 1002);
like(refused(create($gone, $gone)), qr/TQ409/, 'a group in a bucket that is moved is refused');
is(ask(create(new_id(1002), $stays)), '22', 'an old group on the shard gets a further task');
is(shards_of($stays), 's2', 'where it is');
my $left = ask(q{SELECT string_agg(task_id::text || ' ' || run_id, ',') FROM generate_series(1, 4) AS n, tq.claim_work('app/load', 'g' || n - n, 'w', 1000)});
is(ask(q{SELECT (tq.task_queue_counts('app/load') -> 'pendingTasks')::bigint}), '0', 'tasks of both shards are claimed');
my @reports = map { my ($id, $run) = split / /; qq({"taskId": "$id", "runId": $run}) } split /,/, $left;
is(ask(q{SELECT count(*) FROM tq.resolve('[} . join(',', @reports) . q{]') WHERE outcome = 'resolved'}), scalar(@reports), 'and resolved');
my $completed = scalar(@reports) + split /,/, $claimed;
$node->poll_query_until('router', "SELECT count(*) = $completed FROM tq.fetch('ended', 1000)") or die 'not all is published';
my @messages = split /\n/, ask(q{SELECT id, routing_key FROM tq.fetch('ended', 1000)});
ask(q{SELECT tq.ack('ended', } . (split /\|/, $messages[2])[0] . ')');
my $caller = q{FROM pg_stat_activity WHERE datname = 'router' AND query LIKE 'CALL tq_shard.drain_shard%'};
is(ask("SELECT count(pg_terminate_backend(pid)) $caller"), '1', 'the session that changes the map is terminated');
$node->poll_query_until('router', "SELECT count(*) = 0 $caller") or die 'it stays';
eval { $change->quit; };
is(ask(q{SELECT state FROM tq_shard.map() WHERE name = 's2'}), 'draining', 'the change has not ended');
like(refused(create($gone, $gone)), qr/TQ409/, 'the group is refused as before');
$open->query_safe('ROLLBACK;');
$open->quit;
ask(q{CALL tq_shard.drain_shard('s2')});
is(ask(q{SELECT buckets FROM tq_shard.map() WHERE name = 's2'}), '{}', 'a repetition in another session ends it');
is(shards_of($gone), '', 'what was rolled back is on no shard');
is(ask(create($gone, $gone)), '22', 'the group begins');
is(shards_of($gone), 's1', 'on the shard that has the bucket now');
is(ask(create(new_id(1002), $stays)), '22', 'the old one gets a further task');
is(shards_of($stays), 's2', 'where it is');
is(ask(q{SELECT id, routing_key FROM tq.fetch('ended', 1000)}), join("\n", @messages[3 .. $#messages]), 'messages that were fetched before the change keep their ids');
ask(q{SELECT tq.ack('ended', } . (split /\|/, $messages[-1])[0] . ')');
is(ask(q{SELECT count(*) FROM tq.fetch('ended', 1000)}), '0', 'and are acknowledged after it');

done_testing();
