# Messages that cannot be built, publications that are very large, a publisher
# that cannot notify, and subscriptions that have nothing to read: none of them
# stops anything else.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT $published);
use Time::HiRes qw(usleep);

my $db = 'postgres';

# ---- helpers ----

sub listener
{
	my ($node, @channels) = @_;
	my $session = $node->background_psql($db);

	$session->set_query_timer_restart();
	$session->query_safe("LISTEN \"$_\"") foreach @channels;
	return $session;
}

# The payloads of what a session is notified of, until there are so many.
sub hear
{
	my ($session, $count) = @_;
	my @payloads;

	foreach (1 .. 200)
	{
		push @payloads, $session->query_safe('SELECT 1') =~ /with payload "(.*)" received/g;
		last if @payloads >= $count;
		usleep(20_000);
	}
	return @payloads;
}

sub upkeep
{
	my ($node, @settings) = @_;
	my ($status, $out, $err) = $node->psql($db, join('; ', @settings, 'SELECT FROM tq.upkeep()'));

	return $err;
}

# ---- without the maintenance worker: messages that cannot be built ----

my $plain = PostgreSQL::Test::Cluster->new('plain');
$plain->init;
$plain->append_conf('postgresql.conf', 'shared_buffers = 128MB');
$plain->start;
$plain->safe_psql($db, 'CREATE EXTENSION tq');
$plain->safe_psql($db, "SELECT tq.subscribe('sub', 'task-defined')");

# Tags whose text is larger than a value can be, and tags that cannot be read
# because their rows of the TOAST table are damaged.
my $large = enqueue($plain, $db);
$plain->safe_psql($db, qq{UPDATE tq_internal.task SET tags = jsonb_build_object('k', repeat(E'\\x01', 180000000)) WHERE task_id::text = '$large'});
my $damaged = enqueue($plain, $db, q{tags =>
	(SELECT jsonb_object_agg(n, md5(n::text)) FROM generate_series(1, 600) AS n)});
my $healthy = enqueue($plain, $db);
my $file = $plain->safe_psql($db, q{SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE oid = 'tq_internal.task'::regclass});
my $chunk = $plain->safe_psql($db, qq{SELECT pg_column_size(tags) > 8000 FROM tq_internal.task WHERE task_id::text = '$damaged'});
is($chunk, 't', 'tags are in the TOAST table');
$plain->safe_psql($db, 'CHECKPOINT');
my ($blocks) = $plain->safe_psql($db, q{
	SELECT pg_relation_size(reltoastrelid) / 8192 FROM pg_class WHERE oid = 'tq_internal.task'::regclass});
$plain->stop;
{
	open my $handle, '+<', $plain->data_dir . "/$file" or die "$file: $!";
	seek $handle, ($blocks - 3) * 8192, 0;
	print $handle "\0" x (3 * 8192);
	close $handle or die "$file: $!";
}
$plain->start;

my $listener = listener($plain, 'tq_task_defined', 'tq_task_pending', 'tq_queue_p/w');
my $err = upkeep($plain);
unlike($err, qr/ERROR/, 'a message that cannot be built does not stop the publisher');
my @warnings = $err =~ /WARNING: +(message \d+ cannot be built)/g;
my $warned = $err;
is($plain->safe_psql($db, $published), 't', 'all is published');
my @news = hear($listener, 7);
is(scalar(grep { /"truncated": true/ } @news), 4, 'NOTIFY has those that cannot be built without their payload');
is(scalar(grep { /"taskId": "$healthy"/ } @news), 2, 'and the others whole');
is(scalar(grep { /"taskQueueId": "p\/w", "pending": 3/ } @news), 1, 'and their queue has all of them');
is(scalar(@warnings), 2, 'each is warned of once: those that had to be built');
like($warned, qr/DETAIL: +It is of exchange task-(?:defined|pending) and task \Q$damaged\E/, 'with its task');

my $rows = q{SELECT string_agg(concat_ws(' ', exchange, split_part(routing_key, '.', 2), payload #>> '{status,taskId}'), ', ' ORDER BY id)};
is($plain->safe_psql($db, "$rows FROM tq.messages(exchange => 'task-defined')"),
	"task-defined $large, task-defined $damaged, task-defined $healthy $healthy", 'messages() has them without payload');
is($plain->safe_psql($db, "$rows FROM tq.fetch('sub')"),
	"task-defined $large, task-defined $damaged, task-defined $healthy $healthy", 'so has fetch()');
is($plain->safe_psql($db, 'SELECT id, payload IS NULL FROM tq.message(1)'), '1|t', 'so has message()');
is($plain->safe_psql($db, 'SELECT count(payload), count(*) FROM tq.messages()'), '2|6', 'a page has all of them');
my ($status, $out);
($status, $out, $err) = $plain->psql($db, 'SELECT count(*) FROM tq.messages(); SELECT count(*) FROM tq.messages()');
@warnings = $err =~ /WARNING: +message (\d+) cannot be built/g;
is("@warnings", '1 2 3 4', 'a reader is warned of each once a session');
my $next = enqueue($plain, $db);
unlike(upkeep($plain), qr/ERROR|WARNING/, 'the next pass is as usual');
is(scalar(grep { /"taskId": "$next"/ } hear($listener, 3)), 2, 'and sends what is new');
$listener->quit;

# ---- nothing to read ----

# A subscription that has read all, and such for which there never was anything,
# lose nothing when the log is emptied.
$plain->safe_psql($db, q{
	SELECT tq.subscribe('all', 'task-pending'), tq.subscribe('silent', 'artifact-created'),
		tq.subscribe('pattern', 'task-pending', 'route.none'), tq.subscribe('real', 'task-pending')});
$plain->safe_psql($db, q{SELECT tq.unsubscribe('sub')});
enqueue($plain, $db, "deadline => '5 days'");
upkeep($plain);
$plain->safe_psql($db, q{SELECT tq.ack('all', (SELECT max(id) FROM tq.fetch('all')))});
my $alarms = '';
foreach my $hour (1 .. 60)
{
	my $said = upkeep($plain, "SET tq.clock_offset = '$hour hours'");

	$alarms .= $said;
	$plain->safe_psql($db, q{SELECT tq.ack('all', id) FROM (SELECT max(id) AS id FROM tq.fetch('all')) AS f WHERE id IS NOT NULL});
}
is(join(' ', $alarms =~ /subscription "(\w+)" had not read/g), 'real', 'only a subscription that had something to read has lost it');
is($plain->safe_psql($db, 'SELECT name FROM tq.subscription_overview WHERE lost_before IS NOT NULL'), 'real', 'as the view has it');
my $served = $plain->safe_psql($db, q{SELECT tq.enqueue('p/healthy')});
is($plain->safe_psql($db, q{SELECT task_id FROM tq.claim_work('p/healthy', 'g', 'w')}), $served,
	'without the maintenance worker: a healthy task beside it was served in time');
$plain->stop;

# ---- the publisher alone notifies ----

my $node = new_node('node', 'max_connections = 30');
$node->safe_psql($db, 'CREATE EXTENSION tq');
wait_worker($node, $db);
$listener = listener($node, 'tq_queue_p/w');
my $id = enqueue($node, $db, "delay => '1 s'");
is(join(' ', hear($listener, 1)), '{"taskQueueId": "p/w", "pending": 1}', 'a delayed run: its queue is notified when it is claimable');
is($node->safe_psql($db, "SELECT task_id FROM tq.claim_work('p/w', 'g', 'w')"), $id, 'which it is');
my $delayed = $node->safe_psql($db, q{SELECT count(tq.enqueue('p/w', delay => '5 s')) FROM generate_series(1, 3)});
ok($node->poll_query_until($db, $published), 'published');
$node->safe_psql($db, 'ALTER TABLE tq_internal.tick ADD CONSTRAINT broken CHECK (messages < 0) NOT VALID');
ok($node->poll_query_until($db, 'SELECT NOT EXISTS (SELECT FROM tq_internal.delayed)'), 'the publisher cannot write: delayed runs are released');
is($node->safe_psql($db, "SELECT count(*) FROM tq.claim_work('p/w', 'g', 'w', 2)"), 2, 'and claimed');
is($listener->query_safe('SELECT 1'), '1', 'none but the publisher notifies');
$node->safe_psql($db, 'ALTER TABLE tq_internal.tick DROP CONSTRAINT broken');
is(join(' ', hear($listener, 1)), '{"taskQueueId": "p/w", "pending": 3}', 'which it does when it can');
$listener->quit;

# ---- large publications ----

# Two transactions write at the same time, more than a pass publishes.
$node->safe_psql($db, q{SELECT tq.enqueue('big/w')});
ok($node->poll_query_until($db, $published), 'published');
my $before = $node->safe_psql($db, 'SELECT max(last_id) FROM tq_internal.tick');
my @sessions = map { $node->background_psql($db) } 1 .. 2;
$_->set_query_timer_restart() foreach @sessions;
$_->query_safe('BEGIN') foreach @sessions;
foreach my $round (1 .. 30)
{
	$_->query_safe(q{SELECT count(*) FROM tq.enqueue_tasks('big/w', array_fill('{}'::jsonb, ARRAY[1000]))}) foreach @sessions;
}
$_->query_safe("SELECT count(tq.enqueue('big/w')) FROM generate_series(1, 5000)") foreach @sessions;
my $worker = worker_in($node, $db);
$_->query_safe('COMMIT') foreach @sessions;
$healthy = enqueue($node, $db);
ok($node->poll_query_until($db, "SELECT max(last_id) > $before FROM tq_internal.tick"), 'a large publication has begun');
$node->safe_psql($db, "SELECT pg_terminate_backend($worker)");
ok($node->poll_query_until($db, $published), 'another maintenance worker goes on with it: it is published');
is($node->safe_psql($db, "SELECT sum(messages) FROM tq_internal.tick WHERE last_id > $before"), 140002, 'all of it');
cmp_ok($node->safe_psql($db, "SELECT max(messages) FROM tq_internal.tick WHERE last_id > $before"), '<', 10_000, 'in parts');
is($node->safe_psql($db, qq{
	SELECT count(*) FROM (SELECT after_seq <> lag(upto_seq) OVER (ORDER BY last_id) AND after_seq <> -9223372036854775808 AS broken
	FROM tq_internal.tick WHERE last_id > $before AND xids IS NOT NULL) AS t WHERE broken}), 0, 'each part goes on behind the one before');
is($node->safe_psql($db, q{SELECT count(*) FROM tq_internal.tick WHERE part_of IS NOT NULL AND last_id = (SELECT max(last_id) FROM tq_internal.tick)}), 0, 'the last one ends it');
$node->safe_psql($db, qq{
	CREATE TABLE seen AS SELECT 0::bigint AS id, ''::text AS exchange, ''::text AS task WHERE false;
	CREATE PROCEDURE read_all(mark bigint) LANGUAGE plpgsql AS \$\$
	DECLARE
		upto bigint := mark;
	BEGIN
		LOOP
			INSERT INTO seen SELECT m.id, m.exchange, m.payload #>> '{status,taskId}' FROM tq.messages(after => upto) AS m;
			EXIT WHEN NOT FOUND;
			upto := (SELECT max(id) FROM seen);
			COMMIT;
		END LOOP;
	END \$\$});
$node->safe_psql($db, "CALL read_all($before)");
is($node->safe_psql($db, q{SELECT count(*), count(DISTINCT id), count(DISTINCT (exchange, task)) FROM seen}), '140002|140002|140002',
	'readers get each message once');
is($node->safe_psql($db, q{SELECT count(*) FROM seen d JOIN seen p USING (task)
	WHERE d.exchange = 'task-defined' AND p.exchange = 'task-pending' AND p.id < d.id}), 0, 'in the order in which it happened');
is($node->safe_psql($db, "SELECT task = '$healthy' FROM seen ORDER BY id DESC LIMIT 1"), 't', 'what was committed later comes later');
$_->quit foreach @sessions;
is($node->safe_psql($db, qq{SELECT task_id FROM tq.claim_task('$healthy', 0, 'g', 'w')}), $healthy, 'a healthy task beside it was served in time');
unlike(slurp_file($_->logfile), qr/PANIC:|TRAP:|was terminated by signal/, 'nothing crashed') foreach $plain, $node;
$node->stop;

done_testing();
