# A full disk: what needs no new page goes on, the rest gets 53100 and leaves nothing
# behind; health() says that writes fail; with room again all goes on by itself.  Also
# numbers of names that are used up.
#
# The tables are on a small file system, which only the server sees: an ordinary user
# may mount one in a name space of its own, where the kernel lets it.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT $published session output);

my @alone = qw(unshare --user --map-current-user --keep-caps --mount sh -c);
my $node = PostgreSQL::Test::Cluster->new('full');
my $small = $node->basedir . '/small';
my $db = 'small';

mkdir $small or die "$small: $!";
my $reason = qx(@alone 'mount -t tmpfs none $small' 2>&1);
plan skip_all => 'no file system can be mounted: ' . $reason =~ s/\s+/ /gr if $? != 0;

$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'tq'\nautovacuum = off");
system_or_bail(@alone, "mount -t tmpfs -o size=32m none $small && exec pg_ctl -D '@{[ $node->data_dir ]}' -l '@{[ $node->logfile ]}' -o --cluster-name=full -w start");
$node->_update_pid(1);
$node->safe_psql('postgres', "CREATE TABLESPACE small LOCATION '$small'");
$node->safe_psql('postgres', "CREATE DATABASE $db TABLESPACE small");
$node->safe_psql($db, 'CREATE EXTENSION tq');

# Sessions that are there before; a new one may not come in while the disk is full.
my $worker = session($node, $db);
my $operator = session($node, $db);

sub health { return output($operator, "SELECT ok, detail, hint FROM tq.health() WHERE name = '$_[0]'"); }

# Runs a statement of the worker until it fails; returns how often it did not, and the
# SQLSTATE.
sub repeat
{
	my ($sql) = @_;

	for my $n (0 .. 10000) { eval { output($worker, $sql); 1 } or return ($n, $worker->state); }
	return (10001, '');
}

my $job = "SELECT tq.report_completed(task_id, run_id) FROM tq.claim_work('p/known', 'g', 'w', 1)";
my $completed = "SELECT tq.task_queue_counts('p/known') ->> 'pendingTasks', count(*) FROM tq.task_overview WHERE state = 'completed'";

# The last page of each table that a claim and a report insert into has room.
output($worker, "SELECT count(tq.enqueue('p/known')) FROM generate_series(1, 10000)");
output($worker, $job) for 1 .. 10;
ok($node->poll_query_until($db, $published), 'what was done before is published');
like(health('disk'), qr/^t\|the database has \d+ MB\|$/, 'there is room');
output($operator, 'CHECKPOINT');

# ---- full ----

my $fill = "COPY (SELECT) TO PROGRAM 'dd if=/dev/zero of=$small/ballast bs=4k 2>/dev/null || true'";
output($operator, $fill);
is(health('disk'), 'f|writes fail: No space left on device|make room: calls that write fail', 'health() says that writes fail');
my ($done, $state) = repeat($job);
is($state, '53100', 'a worker that is known gets disk_full');
cmp_ok($done, '>=', 1, "but not before the pages are full: it has claimed and reported $done more");
is(output($operator, $completed), (10000 - 10 - $done) . '|' . (10 + $done), 'what has failed has left nothing');
my ($made, $refused) = repeat("SELECT tq.enqueue('p/known')");
is($refused, '53100', "a producer, too, after $made tasks");
is(output($operator, $completed), (10000 - 10 - $done + $made) . '|' . (10 + $done), 'and has made no half a task');
is(output($operator, "SELECT count(*) > 0 FROM tq.why((SELECT task_id FROM tq.task_overview WHERE state = 'pending' LIMIT 1))"), 't', 'why() answers');
is(output($operator, q{SELECT count(*) > 5 FROM tq.top()}), 't', 'and so does top()');

# ---- room again ----

output($operator, "COPY (SELECT) TO PROGRAM 'rm $small/ballast'");
like(health('disk'), qr/^t\|the database has \d+ MB\|$/, 'health() is well again');
is((eval { output($worker, $job); 1 }) // $worker->errstr, 1, 'the same session goes on');
is(output($worker, "SELECT tq.enqueue('p/new') IS NOT NULL"), 't', 'and so do producers');
ok($node->poll_query_until($db, $published), 'all messages are published');
ok($node->poll_query_until($db, q{SELECT ok FROM tq.health() WHERE name = 'steps'}), 'no step of maintenance fails any more');

# ---- the numbers of names are used up: they begin again, without those in use ----

output($operator, "SELECT setval('tq_internal.${_}_id_seq', 2147483647)") foreach qw(queue worker policy);
is((eval { output($worker, $job); 1 }) // $worker->errstr, 1, 'a queue and a worker that are known go on');
is(output($worker, q{SELECT count(tq.enqueue('p/other-' || n, policy => jsonb_build_object('claimTimeout', 100 + n))) FROM generate_series(1, 5) AS n}), 5, 'there are numbers for new queues and policies');
is(output($worker, q{SELECT count(*) FROM generate_series(1, 5) AS n CROSS JOIN LATERAL tq.claim_work('p/other-' || n, 'g', 'new') AS c}), 5, 'and for new workers');
is(output($operator, q{SELECT bool_and(id < 1000) FROM (SELECT id FROM tq_internal.queue UNION ALL SELECT id FROM tq_internal.worker UNION ALL SELECT id FROM tq_internal.policy) AS i}), 't', 'which are those that are free');
is(violations($node, $db), '', 'tables are consistent');
$_->disconnect foreach $worker, $operator;
unlike(slurp_file($node->logfile), qr/PANIC:|was terminated by signal|TRAP:/, 'nothing crashed');
$node->stop;
done_testing();
