# The server's queue of notifications is full because a listener does not read:
# the publisher defers NOTIFY and goes on, other sessions are not affected, and
# what was deferred is sent in order once the queue has free space.
#
# From version 17 on the server's queue can be made small.  Before that it has
# 8 GB, of which tq fills a half at most: TQ_NOTIFY_FULL=1 takes a minute, and
# half of that space on the disk.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT $published);
use Time::HiRes qw(usleep);

my $db = 'postgres';
my $small = qx(pg_config --version) =~ /(\d+)/ && $1 >= 17;

plan skip_all => 'the queue has 8 GB before version 17' if !$small && !$ENV{TQ_NOTIFY_FULL};

my $node = new_node('full', 'shared_buffers = 32MB', 'max_connections = 30', 'log_statement = none',
	$small ? 'max_notify_queue_pages = 256' : ());

# ---- sessions ----

# What a session is notified of: ids, in order.
sub heard
{
	my ($session, $channel, $query) = @_;
	my $output = $session->query_safe($query // 'SELECT 1');

	return $output =~ /^Asynchronous notification "$channel" with payload "\{"id": (\d+),/mg;
}

# The same from a statement on, until there are so many.
sub hear
{
	my ($session, $channel, $count, $query) = @_;
	my @ids = heard($session, $channel, $query);

	foreach (1 .. 100)
	{
		last if @ids >= $count;
		usleep(100_000);
		push @ids, heard($session, $channel);
	}
	return join(' ', @ids, heard($session, $channel));
}

sub usage
{
	return $node->safe_psql('postgres', 'SELECT pg_notification_queue_usage()');
}

# Ids of the messages of some exchanges after that one, as the log has them.
sub published
{
	my ($after, @exchanges) = @_;
	my @ids;

	for (;;)
	{
		my @page = split(/\n/, $node->safe_psql($db,
			"SELECT id || ' ' || exchange FROM tq.messages(after => $after)"));
		last if !@page;
		push @ids, map { /^(\d+) (\S+)/ && grep({ $_ eq $2 } @exchanges) ? $1 : () } @page;
		($after) = $page[-1] =~ /^(\d+)/;
	}
	return join(' ', @ids);
}

my $unsent = 'SELECT count(*) FROM tq_internal.tick WHERE unsent IS NOT NULL';
my $last_id = 'SELECT max(last_id) FROM tq_internal.tick';

# So many tasks from creation to completion, each step in a transaction of its
# own; then checks that all is published, and that a subscription gets it.
sub live
{
	my ($count, $what, @arguments) = @_;
	my $arguments = join(', ', "'p/w'", @arguments);
	my $after = $node->safe_psql($db, $last_id);

	$node->safe_psql($db, "SELECT tq.enqueue($arguments) FROM generate_series(1, $count)");
	is($node->safe_psql($db, "SELECT count(*) FROM tq.claim_work('p/w', 'g', 'w', $count)"), $count, "$what: workers claim");
	is($node->safe_psql($db, q{SELECT count(*) FROM tq.resolve(
			ARRAY(SELECT task_id FROM tq.run_overview WHERE state = 'running' ORDER BY task_id),
			ARRAY(SELECT run_id FROM tq.run_overview WHERE state = 'running' ORDER BY task_id)) WHERE outcome = 'resolved'}),
		$count, "$what: and report");
	ok($node->poll_query_until($db, $published), "$what: everything is published");
	is($node->safe_psql($db, "SELECT count(*) FROM tq.messages(after => $after, exchange => 'task-completed')"), $count,
		"$what: messages() has it");
	is($node->safe_psql($db, "SELECT count(*) FROM tq.fetch('sub', 1000)"), $count, "$what: a subscription gets it");
	$node->safe_psql($db, "SELECT tq.ack('sub', max(last_id)) FROM tq_internal.tick");
	return $after;
}

$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql($db, "CREATE EXTENSION tq; SELECT tq.subscribe('sub', 'task-completed')");
wait_worker($node, $db);

my $listener = $node->background_psql($db);
$listener->query_safe('LISTEN tq_task_defined; LISTEN tq_task_completed; LISTEN "' . $node->safe_psql($db,
	"SELECT tq.queue_channel('p/w')") . '"');
my $neighbour = $node->background_psql('other');
$_->set_query_timer_restart() foreach $listener, $neighbour;
$neighbour->query_safe('LISTEN neighbour');

# ---- a listener of another application ----

# It is in a transaction, and so does not read what others send to its channel; since 19 it
# would not hold what is sent to others.
my $holder = $node->background_psql('other');
$holder->query_safe('LISTEN fill');
$holder->query_safe('BEGIN; SELECT 1');
my $batch = $small ? 10 : 10_000;
my $query = "SELECT count(pg_notify('fill', n || repeat('x', 4200))) FROM generate_series(1, $batch) AS n";
my $filled = 0;
while ($filled <= 0.5)
{
	$node->safe_psql('other', $query);
	$filled = usage();
}
note("filled: $filled");

my $after = live(300, 'full');
cmp_ok($node->safe_psql($db, $unsent), '>', 0, 'NOTIFY is deferred');
is(join(' ', heard($listener, 'tq_task_\w+')), '', 'no session is notified');
is(usage(), $filled, 'nothing is added to the queue');

# Others have the rest of it.
$node->safe_psql('other', "SELECT pg_notify('neighbour', 'still here')");
like($neighbour->query_safe('SELECT 1'), qr/"neighbour" with payload "still here"/, 'another database is not disturbed');

# Another database fills the rest of it.  Delayed runs are released all the same,
# and their queue is notified when there is space again.
1 while $node->psql('other', $query) == 0;
1 while $node->psql('other', "SELECT pg_notify('fill', repeat('x', 4200))") == 0;
cmp_ok(usage(), '>', 0.99, 'the queue is full');
$node->safe_psql($db, q{SELECT tq.enqueue('p/delayed', delay => '500 ms')});
ok($node->poll_query_until($db, 'SELECT NOT EXISTS (SELECT FROM tq_internal.delayed)'), 'delayed runs are released');
is($node->safe_psql($db, "SELECT (tq.task_queue_counts('p/delayed') -> 'pendingTasks')::bigint"), 1, 'and can be claimed');

# The state is in the tables, not in the process.
my $worker = worker_in($node, $db);
$node->safe_psql($db, "SELECT pg_terminate_backend($worker)");
wait_worker($node, $db, $worker);
live(20, 'still full');
is(join(' ', heard($listener, 'tq_task_\w+')), '', 'still no session is notified');

# The queue has free space again, and there is a new message before the publisher
# looks.
my $lock = $node->background_psql($db);
$lock->query_safe('BEGIN; LOCK TABLE tq_internal.tick IN ACCESS EXCLUSIVE MODE');
$holder->query_safe('UNLISTEN *; COMMIT');
$holder->quit;
ok($node->poll_query_until('postgres', 'SELECT pg_notification_queue_usage() < 0.1'), 'the queue is empty again');
$node->safe_psql($db, "SELECT tq.enqueue('p/w') FROM generate_series(1, 5)");
$lock->query_safe('COMMIT');
$lock->quit;
is(hear($listener, 'tq_task_(?:defined|completed)', 646),
	published($after, 'task-defined', 'task-completed'),
	'what was deferred is sent in order, each once');
ok($node->poll_query_until($db, $unsent, 0), 'nothing is left');

$after = live(10, 'not full any more');
is(hear($listener, 'tq_task_defined', 10), published($after, 'task-defined'), 'NOTIFY goes on');
is(join(' ', heard($listener, 'tq_task_defined')), '', 'and nothing comes twice');

# ---- a listener of tq ----

SKIP:
{
	skip 'the queue is too large to be filled by messages', 15 if !$small;

	# With their routes, these messages are larger than the whole queue.
	my $routes = "routes => ARRAY(SELECT 'r' || n || repeat('x', 200) FROM generate_series(1, 10) AS n)";

	$listener->query_safe('BEGIN; SELECT 1');
	$after = live(1000, 'filled by messages', $routes);
	cmp_ok($node->safe_psql($db, $unsent), '>', 0, 'NOTIFY is deferred');
	is($node->psql('other', "SELECT pg_notify('neighbour', 'here as well')"), 0, 'others can still notify');
	like($neighbour->query_safe('SELECT 1'), qr/"neighbour" with payload "here as well"/, 'and are notified');
	live(200, 'more of it');
	is(hear($listener, 'tq_task_defined', 1200, 'COMMIT'), published($after, 'task-defined'),
		'all of it is sent in order, each once');
	ok($node->poll_query_until($db, $unsent, 0), 'nothing is left');
}

unlike(slurp_file($node->logfile), qr/PANIC:|TRAP:|was terminated by signal/, 'nothing crashed');
my $refused = () = slurp_file($node->logfile) =~ /ERROR:  too many notifications/g;
is($refused, 2, 'only the session that filled the queue was refused');
$_->quit foreach $neighbour, $listener;
$node->stop;

done_testing();
