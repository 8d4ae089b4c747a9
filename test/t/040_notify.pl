# Messages by NOTIFY: what a session that LISTENs receives.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use JSON::PP;
use Tq qw(:DEFAULT $published);

my $node = new_node('notify', 'max_prepared_transactions = 5');
my $db = 'postgres';
my $serial = 0;

# ---- sessions that listen ----

# A session, with the notifications that it has received and the test has not read.
sub listener
{
	my (@channels) = @_;
	my $self = { psql => $node->background_psql($db), news => [] };

	$self->{psql}->set_query_timer_restart();		# it lives longer than a query may take
	run_in($self, "LISTEN \"$_\"") foreach @channels;
	return $self;
}

# Run a statement there, and take the notifications that come with its result.
sub run_in
{
	my ($self, $query) = @_;
	my $output = $self->{psql}->query($query);

	while ($output =~ /^Asynchronous notification "(.*?)" (?:with payload "(.*)" )?received from server process with PID \d+\.$/mg)
	{
		push @{ $self->{news} }, [ $1, $2 // '' ];
	}
	return $output;
}

# All that a session is notified of until now: a message is sent last, to a
# channel that all sessions of listener() listen to, and waited for.
sub news
{
	my ($self) = @_;
	my $end = 'end' . ++$serial;
	my @news;

	run_in($self, 'LISTEN "end"');
	$node->safe_psql($db, "SELECT tq.enqueue('end/q', routes => '{$end}')");
	for (1 .. 10000)
	{
		last if grep { $_->[0] eq 'end' && $_->[1] =~ /"route\.$end"/ } @{ $self->{news} };
		run_in($self, 'SELECT pg_sleep(0.01)');
	}
	@news = grep { $_->[0] ne 'end' && $_->[1] !~ m{"route\.end\d+"|end/q} } @{ $self->{news} };
	$self->{news} = [];
	return @news;
}

# The same as text: channel, exchange and queue of each.
sub notified
{
	return join ', ', map {
		my $message = decode_json($_->[1]);
		my $status = $message->{payload}{status} // {};

		join ' ', $_->[0], $message->{exchange} // (), $status->{workerType} // (), $message->{pending} // ();
	} news(@_);
}

# A statement in a session of its own.
sub run { return $node->safe_psql($db, shift); }

sub task
{
	my ($queue, @arguments) = @_;

	return run("SELECT tq.enqueue(" . join(', ', "'q/$queue'", @arguments) . ")");
}

$node->safe_psql($db, 'CREATE EXTENSION tq');
wait_worker($node, $db);
run("SELECT tq.bind('end', 'task-defined', 'route.*')");

# ---- default channels ----

my $all = listener(map { "tq_$_" } qw(task_defined task_pending task_running task_completed task_failed
	task_exception task_group_resolved task_group_sealed));
my $id = task('a', "routes => '{x.y, z}'", "tags => '{\"quote\": \"\\\"\"}'");
run("SELECT tq.claim_work('q/a', 'g', 'w'); SELECT tq.report_completed('$id', 0)");
$node->poll_query_until($db, "SELECT count(*) = 1 FROM tq.messages(exchange => 'task-group-resolved')");
run("SELECT tq.seal_task_group('$id')");
my @news = news($all);
is(join(' ', map { $_->[0] } @news),
	'tq_task_defined tq_task_pending tq_task_running tq_task_completed tq_task_group_resolved tq_task_group_sealed',
	'each exchange has a channel by default')
  or note explain \@news;
foreach my $news (@news)
{
	my ($channel, $payload) = @$news;
	my $number = decode_json($payload)->{id};

	is(run("SELECT \$json\$$payload\$json\$::jsonb = jsonb_build_object('id', id, 'exchange', exchange,
			'routingKey', routing_key, 'cc', cc, 'payload', payload) FROM tq.message($number)"),
		't', "$channel: the payload says what message() does");
	is($channel, 'tq_' . decode_json($payload)->{exchange} =~ tr/-/_/r, "$channel: of its exchange");
}
my @ids = map { decode_json($_->[1])->{id} } @news;
is("@ids", join(' ', sort { $a <=> $b } @ids), 'in the order of ids');

# ---- when one listens ----

my $late = listener('tq_task_failed');
$id = task('b');
run("SELECT tq.claim_work('q/b', 'g', 'w')");
$node->poll_query_until($db, $published) or die 'not published';
run_in($late, 'LISTEN tq_task_running');
run("SELECT tq.report_failed('$id', 0)");
is(notified($late), 'tq_task_failed task-failed b', 'LISTEN: receives what is published after it, and not what is published before');
run_in($late, 'BEGIN');
run_in($late, 'LISTEN tq_task_completed');
$id = task('b');
run("SELECT tq.claim_work('q/b', 'g', 'w'); SELECT tq.report_completed('$id', 0)");
run_in($late, 'COMMIT');
run("SELECT tq.report_completed('$id', 0)");
like(notified($late), qr/^tq_task_running task-running b, (?:tq_task_completed task-completed b, )?tq_task_completed task-completed b$/,
	'LISTEN: in a transaction, what is committed after it');
run_in($late, 'UNLISTEN tq_task_completed');
run("SELECT tq.report_completed('$id', 0)");
is(notified($late), '', 'UNLISTEN');
$late->{psql}->quit;
notified($all);

# ---- bindings ----

my $mine = listener('mine', 'Mine too');
run("SELECT tq.bind('mine', 'task-pending', 'route.#'), tq.bind('mine', 'task-pending', 'route.a'),
	tq.bind('mine', 'task-pending', 'primary.*.0.#'), tq.bind('mine', 'task-failed'), tq.bind('Mine too', 'task-pending', '#.a'),
	tq.bind('unheard', 'task-pending')");
task('c', "routes => '{a, b}'");
is(join(', ', sort split /, /, notified($mine)), 'Mine too task-pending c, mine task-pending c', 'bind: a message once for each channel, however many patterns match');
is(notified($all), 'tq_task_defined task-defined c, tq_task_pending task-pending c', 'bind: the default channels, too');
task('d');
is(notified($mine), 'mine task-pending d', 'bind: one of the patterns');
run("SELECT tq.unbind('mine', 'task-pending', 'primary.*.0.#')");
task('d');
is(notified($mine), '', 'unbind: that pattern');
task('e', "routes => '{b}'");
is(notified($mine), 'mine task-pending e', 'unbind: not the others');
$id = task('f');
run("SELECT tq.claim_work('q/f', 'g', 'w'); SELECT tq.report_failed('$id', 0)");
is(notified($mine), 'mine task-failed f', 'bind: two exchanges to a channel');
run("SELECT tq.bind('later', 'task-defined')");
my $later = listener('later');
task('g');
is(notified($later), 'later task-defined g', 'bind before LISTEN');
my $before = listener('not yet');
task('g');
$node->poll_query_until($db, $published) or die 'not published';
run("SELECT tq.bind('not yet', 'task-defined')");
task('h');
is(notified($before), 'not yet task-defined h', 'LISTEN before bind');
$node->safe_psql($db, q{BEGIN; SELECT tq.bind('not yet', 'task-pending'); SELECT tq.enqueue('q/i'); ROLLBACK; SELECT tq.enqueue('q/j')});
is(notified($before), 'not yet task-defined j', 'bind that is rolled back');
$_->{psql}->quit foreach $later, $before;
notified($all);
run("SELECT tq.unbind('tq_task_defined', 'task-defined')");
task('k');
is(notified($all), 'tq_task_pending task-pending k', 'unbind: a default channel');
run("SELECT tq.bind('tq_task_defined', 'task-defined')");
task('l');
is(notified($all), 'tq_task_defined task-defined l, tq_task_pending task-pending l', 'bind: it again');
my $channel = 'c' x 63;
run("SELECT tq.bind('$channel', 'task-pending', 'route.long')");
run_in($mine, "LISTEN $channel");
task('m', "routes => '{long}'");
like(notified($mine), qr/$channel task-pending m/, 'bind: a channel of 63 bytes');

# ---- what is too large ----

my $large = listener('tq_task_defined');

# The bytes of the payload of a message, as the contract has it.
sub bytes_of
{
	my ($number) = @_;

	return run(qq{SELECT octet_length(format('{"id": %s, "exchange": "%s", "routingKey": "%s", "cc": [%s], "payload": %s}', id, exchange, routing_key,
		(SELECT string_agg(to_json(c)::text, ', ' ORDER BY n) FROM unnest(cc) WITH ORDINALITY AS u (c, n)), payload)) FROM tq.message($number)});
}

# The one message of a task that is defined with tags of so many bytes.
sub defined_with
{
	my ($length) = @_;

	task('n', "tags => jsonb_build_object('a', repeat('x', " . int($length / 2) . "), 'b', repeat('x', " . ($length - int($length / 2)) . "))");
	my @messages = news($large);

	is(scalar @messages, 1, "tags of $length bytes: one notification");
	return decode_json($messages[0]->[1]);
}

my $first = defined_with(100);
my $rest = 7999 - bytes_of($first->{id}) + 100;
my ($whole, $truncated) = (0, 0);

foreach my $length ($rest - 3 .. $rest + 3)
{
	my $message = defined_with($length);
	my $bytes = bytes_of($message->{id});

	if ($bytes <= 7999)
	{
		is(run("SELECT md5(payload::text) FROM tq.message($message->{id})"),
			run('SELECT md5($json$' . encode_json($message->{payload}) . '$json$::jsonb::text)'), "$bytes bytes: whole");
		$whole++;
	}
	else
	{
		is_deeply($message, { id => $message->{id}, exchange => 'task-defined', truncated => JSON::PP::true,
				routingKey => run("SELECT routing_key FROM tq.message($message->{id})") }, "$bytes bytes: truncated");
		is(run("SELECT octet_length(payload #>> '{task,tags,a}') + octet_length(payload #>> '{task,tags,b}') FROM tq.message($message->{id})"),
			$length, "$bytes bytes: message() has it whole");
		$truncated++;
	}
}
ok($whole > 0 && $truncated > 0, 'both sides of the limit were seen');
task('o', "routes => (SELECT array_agg(rpad('r' || n, 249, 'é')) FROM generate_series(1, 64) AS n)");
@news = news($large);
is_deeply([ sort keys %{ decode_json($news[0]->[1]) } ], [qw(exchange id routingKey truncated)], 'a message whose CC is large');
is(run('SELECT cardinality(cc) FROM tq.message(' . decode_json($news[0]->[1])->{id} . ')'), 64, 'message() has it whole');
$large->{psql}->quit;

# ---- channels of queues ----

my $long = ('p' x 38) . '/' . ('w' x 38);
my $queues = listener('tq_queue_q/work', run("SELECT tq.queue_channel('$long')"));
run("SELECT count(tq.enqueue('q/work')) FROM generate_series(1, 3)");
@news = news($queues);
is(scalar @news, 1, 'queue: one notification of a commit');
is_deeply(decode_json($news[0]->[1]), { taskQueueId => 'q/work', pending => 3 }, 'queue: how many became claimable');
is($news[0]->[0], 'tq_queue_q/work', 'queue: its channel');
run("SELECT tq.enqueue('q/other'); SELECT tq.enqueue('$long')");
@news = news($queues);
is_deeply(decode_json($news[0]->[1]), { taskQueueId => $long, pending => 1 }, 'queue: a long name is shortened in the channel only');
is(scalar @news, 1, 'queue: nothing of others');
my ($task) = split /\n/, run("SELECT task_id FROM tq.claim_work('q/work', 'g', 'w', 3)");
is(scalar news($queues), 0, 'queue: nothing of claims');
run("SELECT tq.report_exception('$task', 0, 'worker-shutdown')");
is(notified($queues), 'tq_queue_q/work 1', 'queue: a retry');
my $child = run("SELECT tq.enqueue('q/work', dependencies => ARRAY['$task']::tq.slugid[])");
is(notified($queues), '', 'queue: nothing of a task that waits');
run("SELECT tq.claim_work('q/work', 'g', 'w')");
run("SELECT tq.report_completed('$task', 1)");
is(notified($queues), 'tq_queue_q/work 1', 'queue: a dependent that goes on');
run("SELECT tq.rerun_task('$task')");
is(notified($queues), 'tq_queue_q/work 1', 'queue: a rerun');
run("SELECT tq.enqueue_tasks('q/work', '{\"{}\",\"{}\"}', delay => '5 s')");
is(notified($queues), '', 'queue: nothing of what is delayed');
$node->poll_query_until($db, 'SELECT NOT EXISTS (SELECT FROM tq_internal.delayed)') or die 'nothing is released';
is(notified($queues), 'tq_queue_q/work 2', 'queue: but when it is due');
$node->safe_psql($db, q{BEGIN; SELECT tq.enqueue('q/work'); ROLLBACK});
is(notified($queues), '', 'queue: nothing of what was rolled back');
run("SELECT tq.unbind('tq_task_pending', 'task-pending'), tq.unbind('mine', 'task-pending', 'route.#'), tq.unbind('mine', 'task-pending', 'route.a'),
	tq.unbind('Mine too', 'task-pending', '#.a'), tq.unbind('unheard', 'task-pending'), tq.unbind('$channel', 'task-pending', 'route.long')");
run("SELECT tq.enqueue('q/work')");
is(notified($queues), '', 'queue: silent when task-pending is not bound');
run("SELECT tq.bind('tq_task_pending', 'task-pending')");

# ---- two phases ----

# Just after another commit, when the publisher has done its pass.
my $slowest = 0;
for my $round (1 .. 20)
{
	run("BEGIN; SELECT tq.enqueue('q/work'); PREPARE TRANSACTION 'two'; SELECT tq.enqueue('q/work'); COMMIT PREPARED 'two'");
	my $committed = time;
	$node->poll_query_until($db, 'SELECT NOT EXISTS (SELECT FROM tq_internal.unpublished)');
	$slowest = time - $committed if time - $committed > $slowest;
}
cmp_ok($slowest, '<', 10, 'COMMIT PREPARED: its messages are published at once, within seconds on any machine');
is(scalar grep({ /"pending": \d/ } map { $_->[1] } news($queues)) > 0, 1, 'COMMIT PREPARED: the queue is notified');

# ---- another database ----

$node->safe_psql($db, 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION tq');
notified($all);
$node->safe_psql('other', "SELECT tq.enqueue('q/other'), tq.enqueue('q/work')");
$node->poll_query_until('other', 'SELECT count(*) = 4 FROM tq.messages()');
is(notified($all), '', 'nothing comes from another database');
is(notified($queues), '', 'nor from its queues');

# ---- tq.notify_payload ----

my $pid = wait_worker($node, $db);
my @channels = qw(tq_queue_q/small tq_task_defined tq_task_group_sealed tq_task_pending tq_task_running);
my $small = listener(@channels);

# What a session receives of one task, each channel once, when there is a notification of each.
sub received
{
	my ($mode) = @_;
	my %received;

	run("ALTER DATABASE $db SET tq.notify_payload = $mode");
	$pid = wait_worker($node, $db, $pid);
	$id = task('small', "routes => '{secret.route}'", "tags => '{\"secret\": \"tag\"}'", "scheduler_id => 'secret-scheduler'");
	run("SELECT tq.claim_work('q/small', 'secret-group', 'secret-worker'); SELECT tq.seal_task_group('$id')");
	for (1 .. 3000)
	{
		run_in($small, 'SELECT pg_sleep(0.01)');
		$received{ $_->[0] } = $_->[1] =~ s/"id": \d+/"id": N/r foreach @{ $small->{news} };
		last if @channels == keys %received;
	}
	$small->{news} = [];
	return \%received;
}

my %ids = (
	'tq_queue_q/small' => '{"taskQueueId": "q/small", "pending": 1}',
	(map { ("tq_task_$_" => qq({"id": N, "exchange": "task-$_", "taskId": "<id>"}) =~ s/\}/$_ eq 'defined' ? '}' : ', "runId": 0}'/er) } qw(defined pending running)),
	tq_task_group_sealed => '{"id": N, "exchange": "task-group-sealed", "taskGroupId": "<id>"}');
my $received = received('ids');
is_deeply($received, { map { $_ => $ids{$_} =~ s/<id>/$id/r } keys %ids }, 'tq.notify_payload = ids: ids, exchange and run') or note explain $received;
is_deeply(received('off'), { map { $_ => '' } @channels }, 'tq.notify_payload = off: nothing');
is(run("SELECT count(*) > 4 FROM tq.messages(pattern => 'route.secret.#') WHERE payload -> 'status' ->> 'state' IS NOT NULL"), 't', 'but the log has all of it');
$received = received('DEFAULT');
is(scalar grep({ /secret-scheduler/ } values %$received), 4, 'tq.notify_payload = auto, the default: whole messages') or note explain $received;
$small->{psql}->quit;

# Where a role has rights to a part of the queues, only channels that a role has bound carry them.
my ($notice, $again);
run("CREATE ROLE part; SELECT tq.grant_queue('part', '*', 'read')");
$node->psql($db, "SELECT tq.grant_queue('part', 'q/small', 'read')", stderr => \$notice);
like($notice, qr/NOTICE:  notifications on the default channels carry ids only/, 'the first such grant says so');
$node->psql($db, "SELECT tq.grant_queue('part', 'q/other', 'read')", stderr => \$again);
is($again, '', 'the next one does not');
run("SELECT tq.bind('own', 'task-pending')");
push @channels, 'own';
$small = listener(@channels);
$received = received('DEFAULT');
like(delete $received->{own}, qr/secret-scheduler/, 'a channel that was bound carries whole messages');
is_deeply($received, { map { $_ => $ids{$_} =~ s/<id>/$id/r } keys %ids }, 'the default channels carry ids') or note explain $received;
is($node->safe_psql($db, "SELECT detail FROM tq.health() WHERE name = 'listeners'"), 'default channels carry ids', 'health() shows it');
run("SELECT tq.revoke_queue('part', 'q/small', 'read'), tq.revoke_queue('part', 'q/other', 'read')");
is(scalar grep({ /secret-scheduler/ } values %{ received('DEFAULT') }), 5, 'and whole messages when the rights are revoked');
$small->{psql}->quit;

$_->{psql}->quit foreach $all, $mine, $queues;
$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC:|was terminated by signal|TRAP:|ERROR/, 'nothing crashed or failed');
done_testing();
