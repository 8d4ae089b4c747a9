# Shards are added and drained while clients create tasks through the router, with ids
# of its choice and of their own, and workers claim and resolve.  No task is lost, created twice, or run
# twice; no group is on two shards; what is refused says so.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t";
use Tq;

my $node = new_node('growth', 'max_connections = 100');
my $router = 'router';
my $CLIENTS = 3;
my @shards = map { "s$_" } 1 .. 4;

plan skip_all => 'there is no plproxy' unless $node->safe_psql('postgres', q{SELECT 1 FROM pg_available_extensions WHERE name = 'plproxy'});

my $at = 'host=' . $node->host . ' port=' . $node->port;

sub ask { return $node->safe_psql($router, $_[0]); }

$node->safe_psql('postgres', "CREATE DATABASE $_") foreach ($router, @shards);
$node->safe_psql($_, 'CREATE EXTENSION tq') foreach @shards;
ask('CREATE EXTENSION tq_shard CASCADE; CREATE TABLE created (task_id tq.slugid, how text); CREATE TABLE resolved (task_id tq.slugid); CREATE TABLE refused (state text, message text)');
ask("CALL tq_shard.add_shard('s1', '$at dbname=s1')");

# A client creates tasks in each way until it is stopped, and writes down those that
# were acknowledged.  While the map is changed, a group of its own choice may be
# refused, with TQ409; then it tries again with the same ids.
my $create = <<'SQL';
CREATE PROCEDURE create_many() LANGUAGE plpgsql AS $$
DECLARE
	id tq.slugid;
	own tq.slugid;
	tries int;
BEGIN
	WHILE NOT EXISTS (SELECT FROM refused WHERE message = 'stop') LOOP
		INSERT INTO created SELECT tq.enqueue('app/load'), 'new';
		own := tq.slugid();
		FOR n IN 1 .. 3 LOOP
			id := tq_shard_internal.slugid_in_bucket(tq_shard_internal.bucket(own));
			LOOP
				BEGIN
					INSERT INTO created SELECT tq.enqueue('app/load', task_id => id, task_group_id => own), 'group';
					EXIT;
				EXCEPTION WHEN SQLSTATE 'TQ409' THEN
					INSERT INTO refused VALUES (SQLSTATE, SQLERRM);
				END;
				COMMIT;
			END LOOP;
		END LOOP;
		COMMIT;
	END LOOP;
END
$$;
CREATE PROCEDURE work() LANGUAGE plpgsql AS $$
DECLARE
	idle int := 0;
	n int;
BEGIN
	WHILE idle < 3 LOOP
		WITH c AS MATERIALIZED (SELECT array_agg(c.task_id) AS ids, array_agg(c.run_id) AS runs FROM tq.claim_work('app/load', 'g', 'w' || pg_backend_pid(), 10, '200 ms') AS c)
		INSERT INTO resolved SELECT r.task_id FROM c CROSS JOIN LATERAL tq.resolve(c.ids, c.runs) AS r WHERE c.ids IS NOT NULL AND r.outcome = 'resolved';
		GET DIAGNOSTICS n = ROW_COUNT;
		idle := CASE WHEN n > 0 OR NOT EXISTS (SELECT FROM refused WHERE message = 'stop') THEN 0 ELSE idle + 1 END;
		COMMIT;
	END LOOP;
END
$$;
SQL
ask($create);

my @clients;
foreach my $call (('create_many') x $CLIENTS, ('work') x $CLIENTS)
{
	my ($out, $error) = ('', '');
	push @clients, { call => $call, error => \$error,
		handle => IPC::Run::start([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($router), '-c', "CALL $call()" ], '<', \undef, '>', \$out, '2>', \$error) };
}

# So many more tasks are created in each state of the map.
sub wait_created
{
	my ($more) = @_;
	my $now = ask('SELECT count(*) FROM created');

	$node->poll_query_until($router, "SELECT count(*) >= $now + $more FROM created") or die 'no task is created';
	return;
}

wait_created(50);
foreach my $shard (@shards[1 .. 3])
{
	ask("CALL tq_shard.add_shard('$shard', '$at dbname=$shard')");
	wait_created(50);
}
ask(q{CALL tq_shard.drain_shard('s2')});
wait_created(50);
is($node->safe_psql('s2', q{SELECT tq_internal.buckets()}), '{}', 'what is drained begins no groups');
ask(q{INSERT INTO refused VALUES (NULL, 'stop')});
foreach my $client (@clients)
{
	ok(IPC::Run::finish($client->{handle}), "$client->{call} ended well") or diag(${ $client->{error} });
}

note(ask(q{SELECT count(*) || ' creations were refused' FROM refused WHERE state = 'TQ409'}));
is(ask('SELECT count(*) - count(DISTINCT task_id) FROM created'), '0', 'each task was created once');
is(ask('SELECT count(*) - count(DISTINCT task_id) FROM resolved'), '0', 'and resolved once');
is(ask('SELECT count(*) FROM created c FULL JOIN resolved r USING (task_id) WHERE c.task_id IS NULL OR r.task_id IS NULL'), '0', 'none is lost')
  or diag(ask('SELECT task_id, c.how, tq_shard_internal.bucket(task_id), tq.status(task_id) FROM created c FULL JOIN resolved r USING (task_id) WHERE c.task_id IS NULL OR r.task_id IS NULL'));
is(ask('SELECT count(*) FROM created c CROSS JOIN LATERAL tq.status(c.task_id) AS s WHERE s ->> \'state\' <> \'completed\''), '0', 'all are found, and are completed');

my %shards_of;
foreach my $shard (@shards)
{
	$shards_of{$_}{$shard} = 1 foreach split /\n/, $node->safe_psql($shard, q{SELECT DISTINCT task_group_id FROM tq.task_details});
}
is(scalar(grep { keys %$_ > 1 } values %shards_of), 0, 'no group is on two shards, of ' . keys(%shards_of));
my %tasks = map { $_ => $node->safe_psql($_, 'SELECT count(*) FROM tq_internal.task') } @shards;
note(join ', ', map { "$_: $tasks{$_}" } @shards);
cmp_ok($tasks{$_}, '>', 0, "$_ has tasks") foreach @shards;

# A session knows where it has claimed a task; another one asks the shards, which it cannot do without this server.
# Only tasks of buckets that were moved need be asked for.
my $moved = ask(q{SELECT array_agg(bucket) FROM (SELECT bucket FROM tq_shard_internal.bucket WHERE old <> '{}' ORDER BY bucket LIMIT 10) AS b});
my $ids = $node->safe_psql('s1', "SELECT array_agg(tq_internal.slugid_in_bucket(b)) FROM unnest('$moved'::int[]) AS b");
ask("SELECT count(tq.enqueue('app/known')) FROM generate_series(1, 70)");
is(ask("SELECT count(tq.enqueue('app/known', task_id => id)) FROM unnest('$ids'::tq.slugid[]) AS id"), 10, 'buckets that were moved have new tasks');
ask('ALTER SERVER tq_shard_lookup RENAME TO away');
ask(q{CREATE TABLE known AS SELECT c.task_id FROM generate_series(1, 20) AS n, tq.claim_work('app/known', 'g' || n - n, 'w', 30) AS c;
	SELECT count(*) FROM tq.resolve((SELECT array_agg(task_id) FROM (SELECT task_id FROM known LIMIT 40) AS k), array_fill(0, ARRAY[40]));
	SELECT count(tq.report_completed(task_id, 0)) FROM (SELECT task_id FROM known OFFSET 40) AS k});
foreach my $call ('tq.statuses((SELECT array_agg(task_id) FROM known))', 'known, tq.status(task_id)')
{
	my ($code, $out, $error) = $node->psql($router, "SELECT count(*) FROM $call");

	like($error, qr/cluster not found: tq_shard_lookup/, "another session looks them up: $call");
}
ask(q{ALTER SERVER away RENAME TO tq_shard_lookup});
is(ask(q{SELECT count(*), count(*) FILTER (WHERE tq.status(task_id) ->> 'state' = 'completed') FROM known}), '80|80', 'and finds them completed');
is(ask(q{SELECT tq_shard.refresh() >= 0}), 't', 'buckets of which no task is left are forgotten');
is(ask('SELECT count(*) FROM created c CROSS JOIN LATERAL tq.status(c.task_id) AS s WHERE s ->> \'state\' <> \'completed\''), '0', 'and all are found');

done_testing();
