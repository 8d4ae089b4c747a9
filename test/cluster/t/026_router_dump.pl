# A router is dumped and restored: its map, the ids of messages and what was fetched
# survive, and calls work before tq_shard.refresh() and after it.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t";
use Tq;

my $node = new_node('dump', 'max_connections = 50');

plan skip_all => 'there is no plproxy' unless $node->safe_psql('postgres', q{SELECT 1 FROM pg_available_extensions WHERE name = 'plproxy'});

my $at = 'host=' . $node->host . ' port=' . $node->port;
my $dump = PostgreSQL::Test::Utils::tempdir() . '/router.dump';
my $array;						# tasks of all shards
my $functions = q{SELECT string_agg(md5(pg_get_functiondef(p.oid)), ' ' ORDER BY p.oid::regprocedure::text) FROM pg_proc p
	WHERE p.pronamespace = 'tq_shard_internal'::regnamespace AND p.proname IN ('of_task', 'of_group', 'of_new', 'shards', 'partition_of_ids')};

sub ask { my ($db, $query) = @_; return $node->safe_psql($db, $query); }

# Whether calls through a router find what was created through the first one.
sub works
{
	my ($db, $when) = @_;

	is(ask($db, "SELECT count(*) FROM tq.statuses($array)"), '30', "$when: tasks of all shards");
	is(ask($db, "SELECT count(*) FROM unnest($array) AS t WHERE tq.status(t) ->> 'state' IN ('pending', 'completed')"), '30', "$when: each by itself");
	my $group = ask($db, "SELECT tq.slugid()");
	is(ask($db, "SELECT count(DISTINCT tq.status(tq.enqueue('app/more', task_group_id => '$group')) ->> 'taskGroupId') FROM generate_series(1, 3)"), '1', "$when: a group");
	is(ask($db, "SELECT tasks FROM tq.group_progress('$group')"), '3', "$when: is on one shard");
	is(ask($db, "SELECT count(tq.enqueue('app/new')) FROM generate_series(1, 20)"), '20', "$when: ids that the router chooses");
	is(ask($db, "SELECT count(*) > 0 FROM tq.claim_work('app/new', 'g', 'w')"), 't', "$when: a claim");
	return;
}

$node->safe_psql('postgres', "CREATE DATABASE $_") foreach ('router', 's1', 's2', 's3');
ask($_, 'CREATE EXTENSION tq') foreach ('s1', 's2', 's3');
ask('router', 'CREATE EXTENSION tq_shard CASCADE');
ask('router', "CALL tq_shard.add_shard('one', '$at dbname=s1')");
ask('router', q{SELECT tq.subscribe('ended', 'task-completed')});
my @ids = split /\n/, ask('router', q{SELECT tq.enqueue('app/mail') FROM generate_series(1, 10)});
ask('router', "CALL tq_shard.add_shard('two', '$at dbname=s2')");
ask('router', "CALL tq_shard.add_shard('three', '$at dbname=s3')");
push @ids, split /\n/, ask('router', q{SELECT tq.enqueue('app/mail') FROM generate_series(1, 20)});
$array = "'{" . join(',', @ids) . "}'::tq.slugid[]";
ask('router', 'CREATE USER MAPPING FOR CURRENT_USER SERVER tq_shard');
ask('router', q{SELECT tq.resolve(array_agg(task_id), array_agg(run_id)) FROM tq.claim_work('app/mail', 'g', 'w', 1000)}) foreach 1 .. 3;
$node->poll_query_until('router', q{SELECT count(*) = 30 FROM tq.fetch('ended', 1000)}) or die 'not all is published';
my $fetch = q{SELECT id, routing_key FROM tq.fetch('ended', 1000)};
my @fetched = split /\n/, ask('router', $fetch);
ask('router', q{SELECT tq.ack('ended', } . (split /\|/, $fetched[9])[0] . ')');

# ---- dump and restore ----

command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr('router') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('restored'), $dump ], 'pg_restore, without an error');
is(ask('restored', $_), ask('router', $_), "the same: $_")
  foreach ('SELECT * FROM tq_shard.map()', 'SELECT * FROM tq_shard_internal.bucket ORDER BY bucket', 'SELECT * FROM tq_shard_internal.shard ORDER BY number',
	'SELECT * FROM tq_shard_internal.version', 'SELECT * FROM tq_shard_internal.message ORDER BY role, subscription, id', 'SELECT last_value, is_called FROM tq_shard_internal.message_id',
	q{SELECT f.srvname, f.srvacl::text, md5(array_agg(o ORDER BY o)::text) FROM pg_foreign_server f CROSS JOIN unnest(f.srvoptions) AS o GROUP BY 1, 2 ORDER BY 1}, 'SELECT srvname, usename FROM pg_user_mappings ORDER BY 1, 2');

works('restored', 'before refresh()');
is(ask('restored', $fetch), join("\n", @fetched[10 .. 29]), 'messages that were not acknowledged have their ids');
isnt(ask('restored', $functions), ask('router', $functions), 'the map is read from its tables');
ask($_, 'SELECT tq_shard.refresh()') foreach ('restored', 'router');
is(ask('restored', $functions), ask('router', $functions), 'after refresh() it is a constant');
works('restored', 'after refresh()');

# ---- it goes on from there ----

ask('restored', q{SELECT tq.ack('ended', } . (split /\|/, $fetched[29])[0] . ')');
my $before = (split /\|/, $fetched[29])[0];
ask('restored', q{SELECT tq.resolve(array_agg(task_id), array_agg(run_id)) FROM tq.claim_work('app/more', 'g', 'w', 1000)});
$node->poll_query_until('restored', q{SELECT count(*) > 0 FROM tq.fetch('ended', 1000)}) or die 'nothing is published';
cmp_ok(ask('restored', q{SELECT min(id) FROM tq.fetch('ended', 1000)}), '>', $before, 'ids of messages go on growing');
ask('restored', q{CALL tq_shard.drain_shard('two')});
is(ask('restored', q{SELECT state, buckets FROM tq_shard.map() WHERE name = 'two'}), 'draining|{}', 'the map is changed');
works('restored', 'after a change');

done_testing();
