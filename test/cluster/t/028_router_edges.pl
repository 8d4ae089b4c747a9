# A router where something is unusual: a timeout, a style of times, a shard that is
# silent, that fails, or whose clock is set back, a snapshot that is older than the
# map, and objects that another role has put into the path (doc/scaling.md).
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t";

use IO::Socket::INET;
use Time::HiRes qw(time);
use Tq;

my $node = new_node('edges', 'max_connections = 60');
my $at = 'host=' . $node->host . ' port=' . $node->port;

sub ask { my ($db, $sql) = @_; return $node->safe_psql($db, $sql); }

# What a statement raises: SQLSTATE and message.
sub refused
{
	my ($db, $sql) = @_;
	my ($code, $out, $err) = $node->psql($db, "\\set VERBOSITY verbose\n$sql");

	return $err =~ /ERROR: +(.*)/ ? $1 : "no error: $out";
}

ask('postgres', "CREATE DATABASE $_") foreach qw(router s1 s2 s3);
if (!ask('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'plproxy'}))
{
	plan skip_all => 'the extension plproxy is not installed';
}
ask($_, 'CREATE EXTENSION tq') foreach qw(s1 s2 s3);
ask('router', 'CREATE EXTENSION tq_shard CASCADE');
ask('router', "CALL tq_shard.add_shard('one', '$at dbname=s1')");
ask('router', "CALL tq_shard.add_shard('two', '$at dbname=s2')");

# ---- a claim that is canceled ----

{
	my $began = time;

	like(refused('router', q{SET statement_timeout = '500 ms'; SELECT count(*) FROM tq.claim_work('app/none', 'g', 'w', 1, '20 s')}), qr/^57014: /, 'a timeout ends a claim that waits');
	cmp_ok(time - $began, '<', 10, 'at once');
}

# ---- the style of times ----

is(ask('router', q{SET datestyle = 'SQL, DMY'; SELECT tq.declare_worker('app/mail', 'g', 'w', '2027-03-04 12:00+00'::timestamptz) ->> 'expires'}), '2027-03-04T12:00:00.000Z', 'a time that is sent');
is(ask('router', q{SET datestyle = 'SQL, DMY'; SELECT (tq.declare_worker('app/mail', 'g', 'w2', now()) IS NOT NULL) AS x; SHOW datestyle}), "t\nSQL, DMY", 'the setting stays');
is(ask('router', q{SET intervalstyle = 'sql_standard';
	SELECT tq.enqueue('app/delay', delay => interval '1 day 2 hours 3 minutes', task_id => tq_shard_internal.slugid_in_bucket(3)) AS t \gset
	SELECT (tq.task(:'t') ->> 'delay')::int}), 26 * 3600 + 180, 'an interval that is sent');

# ---- sets ----

is(ask('router', q{SELECT tq.slugid() AS id \gset
	SELECT count(tq.enqueue('app/group', task_group_id => :'id')) FROM generate_series(1, 9) \gset
	SELECT count(*) FROM (SELECT (tq.list_task_group(:'id')).task_id, (tq.task_queue_counts('app/group') -> 'pendingTasks')::bigint) AS x}), 9, 'a set beside a call');
is(ask('router', q{SELECT tq.slugid() AS id \gset
	SELECT count(tq.enqueue('app/group2', task_group_id => :'id')) FROM generate_series(1, 5) \gset
	BEGIN;
	DECLARE c CURSOR FOR SELECT (tq.list_task_group(:'id')).task_id IS NOT NULL;
	FETCH 2 FROM c;
	SELECT (tq.task_queue_counts('app/group2') -> 'pendingTasks')::bigint;
	FETCH ALL FROM c;
	COMMIT}), "t\nt\n5\nt\nt\nt", 'a set behind a cursor');
is(ask('router', q{SELECT count(*) FROM (SELECT tq.list_pending_tasks('app/group2')) AS x}), 5, 'a set in a select list');

is(ask('router', q{SELECT tq_shard_internal.slugid_in_bucket(1) AS a, tq_shard_internal.slugid_in_bucket(1000) AS b \gset
	SELECT count(tq.enqueue('app/twice', task_id => id)) FROM unnest(ARRAY[:'a', :'b']) AS id \gset
	SELECT array_agg(s.task_id::text) = ARRAY[:'a', :'b', :'a'], count(s.status) FROM tq.statuses(ARRAY[:'a', :'b', :'a']::tq.slugid[]) AS s;
	SELECT count(*) FROM tq.tasks(ARRAY[[:'a'], [:'b']]::tq.slugid[])}), "t|3\n2", 'statuses() in the order that was asked for');

# ---- pages ----

# Reads a list page by page; returns the ids, sorted.
sub pages
{
	my ($queue, $size) = @_;
	my ($after, @ids) = ('NULL');

	for (1 .. 100)
	{
		my @rows = split /\n/, ask('router', "SELECT task_id, page FROM tq.list_pending_tasks('$queue', $after, $size)");
		last if !@rows;
		push @ids, map { (split /\|/)[0] } @rows;
		$after = "'" . (split /\|/, $rows[-1])[1] . "'";
	}
	return join ' ', sort @ids;
}

ask('router', q{SELECT tq.set_queue('app/fair', '{"fairnessWeights": {"k0": 2}}')});
my $fair = join ' ', sort split /\n/, ask('router', q{SELECT tq.enqueue('app/fair', policy => jsonb_build_object('fairnessKey', 'k' || n % 2)) FROM generate_series(1, 8) AS n});
is(pages('app/fair', 3), $fair, 'pages of a fair queue');
my @paged = (ask('s1', q{SELECT tq.enqueue('app/page', task_id => tq_internal.slugid_in_bucket(1))}),
	ask('s1', q{SET tq.clock_offset = '-5 s'; SELECT tq.enqueue('app/page', task_id => tq_internal.slugid_in_bucket(2))}),
	split /\n/, ask('s2', q{SET tq.clock_offset = '-2 s'; SELECT tq.enqueue('app/page', task_id => tq_internal.slugid_in_bucket(1000 + n)) FROM generate_series(1, 2) AS n}));
is(pages('app/page', 2), join(' ', sort @paged), 'pages of a shard whose clock was set back');

# ---- messages ----

ask('router', q{SELECT tq.subscribe('events', 'task-defined')});
ask('s1', q{SELECT tq.enqueue('app/m'); SELECT tq.upkeep()});
ask('s2', q{SET tq.clock_offset = '-1 hour'; SELECT tq.enqueue('app/m'); SELECT tq.upkeep()});
ask('s1', q{SET tq.clock_offset = '-1 hour'; SELECT tq.enqueue('app/m'); SELECT tq.upkeep()});
is(ask('router', q{SELECT count(*), count(tq.ack('events', m)) FROM (SELECT max(id) AS m FROM tq.fetch('events', 2)) AS f}), '1|1', 'two messages are fetched and acknowledged');
is(ask('router', q{SELECT count(*) FROM tq.fetch('events', 10)}), 1, 'the third one comes later, although a clock was set back');
ask('s1', q{SELECT tq.enqueue('app/m'); SELECT tq.upkeep()});
{
	my $old = $node->background_psql('router', on_error_stop => 0);

	$old->query(q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM tq_shard.map()});
	ask('router', q{SELECT count(*) FROM tq.fetch('events', 10)});
	$old->query("\\set VERBOSITY sqlstate\nSELECT count(*) FROM tq.fetch('events', 10)");
	like($old->{stderr}, qr/40001/, 'fetch() in an older snapshot');
	$old->quit;
}

# ---- a shard that fails ----

ask('s1', q{ALTER FUNCTION tq_internal.claim_lines(text, text, text, int, interval, interval, bool) RENAME TO claim_lines_of_tq;
CREATE FUNCTION tq_internal.claim_lines(text, text, text, int, interval, interval, bool) RETURNS SETOF text LANGUAGE plpgsql
	AS $$ BEGIN RAISE EXCEPTION 'index contains corrupted page' USING ERRCODE = 'index_corrupted'; END $$});
like(refused('router', q{SELECT count(*) FROM generate_series(1, 3) AS n, tq.claim_work('app/none', 'g' || n, 'w')}), qr/^XX002: /, 'an error of a shard that answers is the error of the claim');
ask('s1', q{DROP FUNCTION tq_internal.claim_lines(text, text, text, int, interval, interval, bool);
ALTER FUNCTION tq_internal.claim_lines_of_tq(text, text, text, int, interval, interval, bool) RENAME TO claim_lines});

# ---- an older snapshot than the map ----

{
	my $old = $node->background_psql('router', on_error_stop => 0);

	$old->query(q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM tq_shard.map()});
	ask('router', "CALL tq_shard.add_shard('three', '$at dbname=s3')");
	$old->query("\\set VERBOSITY sqlstate\nSELECT tq_shard.refresh()");
	like($old->{stderr}, qr/40001/, 'refresh() in an older snapshot');
	$old->quit;
	is(ask('router', 'SELECT cardinality(tq_shard_internal.shards())'), 3, 'the map is the new one');
}

# ---- a first shard that is drained ----

ask('router', q{CALL tq_shard.drain_shard('one')});
like(refused('router', q{SELECT tq.run_cron_now('none')}), qr/\[s2\]/, 'recurring tasks are on the next one');

# ---- objects of other roles in the path ----

is(ask('router', q{SELECT string_agg(p.oid::regprocedure::text, ' ' ORDER BY p.proname)
	FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
	WHERE p.pronamespace::regnamespace::text IN ('tq', 'tq_shard', 'tq_shard_internal') AND l.lanname = 'plpgsql' AND p.proconfig IS NULL AND p.prokind = 'f'}), '', 'every function has a path of its own');
ask('router', q{CREATE FUNCTION public.cardinality(tq.slugid[]) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'hostile'; END $$});
is(ask('router', q{SELECT tq_shard_internal.slugid_in_bucket(1) AS a, tq_shard_internal.slugid_in_bucket(1000) AS b \gset
	SELECT count(*) FROM tq.statuses(ARRAY[:'a', :'b']::tq.slugid[])}), 0, 'a function of another role is not called');
ask('router', 'DROP FUNCTION public.cardinality(tq.slugid[])');

# ---- a shard that is silent ----

# PL/Proxy waits for it as long as TCP does; a timeout of the session ends that.
my $silent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', Proto => 'tcp') or die $!;
ask('router', "UPDATE tq_shard_internal.shard SET connection = 'host=127.0.0.1 port=" . $silent->sockport . " dbname=s2' WHERE name = 'two'; SELECT tq_shard_internal.apply_map()");
like(refused('router', q{SET statement_timeout = '1 s'; SELECT count(*) FROM generate_series(1, 3) AS n, tq.claim_work('app/none', 'g' || n, 'w')}), qr/^57014: /, 'a timeout ends a claim that waits for a silent shard');

done_testing();
