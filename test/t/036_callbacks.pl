# Tasks for the end of a group are created by the maintenance worker: once, soon
# after the end, over crashes, while some of them cannot be created, and where the
# exchange of group resolutions is disabled; a dump has those that wait
# (doc/spec/policy.md 14).
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $db = 'postgres';
my $node = new_node('callbacks', 'autovacuum = off', 'restart_after_crash = on', 'max_connections = 60');

sub psql { my ($sql, $in) = @_; return $node->safe_psql($in // $db, $sql); }
sub wait_for { my ($sql, $what, $in) = @_; local $Test::Builder::Level = $Test::Builder::Level + 1; return ok($node->poll_query_until($in // $db, $sql), $what); }

# Creates a group of n tasks; returns its id.
sub group { my ($n) = @_; return psql("SELECT max(g::text) FROM (SELECT tq.slugid() AS g) AS s, LATERAL unnest(tq.enqueue_tasks('c/work', array_fill('{}'::jsonb, ARRAY[$n]), task_group_id => g))"); }
sub register { my ($group, $queue) = @_; return psql("SELECT tq.on_group_resolved('$group', '$queue')"); }
sub work { return psql(q{SELECT count(tq.report_completed(task_id, run_id)) FROM tq.claim_work('c/work', 'g', 'w', 100)}); }
sub created { my ($queue, $n) = @_; return 'SELECT count(*)' . (defined $n ? " = $n" : '') . " FROM tq.task_overview WHERE task_queue_id = '$queue'"; }

psql('CREATE EXTENSION tq');
psql(q{SELECT tq.enqueue('c/first')});
wait_worker($node, $db);

# ---- soon after the end ----

my $group = group(10);
register($group, 'c/soon');
work();
wait_for(created('c/soon', 1), 'created by the maintenance worker');
is(psql(q{SELECT payload -> 'group' ->> 'tasks' FROM tq.claim_work('c/soon', 'g', 'w')}), '10', 'with the number of tasks');
ok(psql(q{SELECT c.created - g.last_resolved < interval '20 s' FROM tq.task_details c, tq.group_progress('} . $group . q{') g WHERE c.task_queue_id = 'c/soon'}) eq 't',
	'before maintenance would look by itself');

# ---- crashes ----

# Whatever is lost is done again, and nothing twice.
my @groups = map { my $g = group(3); register($g, 'c/crash') foreach 1 .. 2; $g } 1 .. 10;
$node->stop('immediate');
$node->start;
is(psql('SELECT count(*) FROM tq.callback_overview'), 20, 'callbacks survive a crash');
work();
$node->stop('immediate');
$node->start;
wait_for('SELECT count(*) = 0 FROM tq.callback_overview', 'after a crash at any moment all are created');
is(psql(created('c/crash')), 20, 'each once');
is(psql(q{SELECT count(DISTINCT task_id) FROM tq.claim_work('c/crash', 'g', 'w', 100)}), 20, 'and can be claimed');

# ---- a queue that is full ----

psql(q{SELECT tq.set_queue('c/full', '{"maxPending": 1}')});
wait_for(q{SELECT source = 'memory' FROM tq.queue_stats WHERE task_queue_id = 'c/first'}, 'tasks are counted');
psql(q{SELECT tq.enqueue('c/full')});
$group = group(2);
register($group, 'c/full') foreach 1 .. 30;
register($group, 'c/other');
work();
wait_for(created('c/other', 1), 'a full queue holds up no other callback');
wait_for(q{SELECT count(*) = 30 FROM tq.callback_overview WHERE failures > 0 AND error ~ 'is full'}, 'those for it are postponed');
is(psql(q{SELECT ok FROM tq.health() WHERE name = 'postponed'}), 'f', 'which health() shows');
psql(q{SELECT tq.set_queue('c/full', '{"maxPending": 1000}')});
wait_for(created('c/full', 31), 'they are created when there is room');
wait_for('SELECT count(*) = 0 FROM tq.postponed_overview', 'and no failure is left');

# ---- without messages ----

psql(q{SELECT tq.unbind('tq_task_group_resolved', 'task-group-resolved')});
$group = group(2);
register($group, 'c/silent');
work();
psql(q{SET tq.clock_offset = '1 minute'; SELECT count(*) FROM tq.upkeep()});
is(psql(created('c/silent')), 1, 'found by maintenance where the exchange is disabled');
psql(q{SELECT tq.bind('tq_task_group_resolved', 'task-group-resolved')});

# ---- a dump ----

$group = group(2);
register($group, 'c/dump');
my $dump = $node->basedir . '/callbacks.dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr($db) ], 'dump');
psql('CREATE DATABASE copy');
$node->command_ok([ 'pg_restore', '-d', $node->connstr('copy'), $dump ], 'restore');
is(psql('SELECT count(*) FROM tq.callback_overview', 'copy'), 1, 'the copy has the callback');
psql(q{SELECT count(tq.report_completed(task_id, run_id)) FROM tq.claim_work('c/work', 'g', 'w', 100)}, 'copy');
wait_for(created('c/dump', 1), 'which is done there', 'copy');
is(psql(created('c/dump')), 0, 'and not here');

$node->stop;
done_testing();
