# How long messages are kept by the maintenance worker, and the warnings when a
# subscription has not read them by then.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $node = new_node('retention', 'tq.message_retention = 1s', 'tq.subscription_retention = 6s');
my $db = 'postgres';

# The maintenance worker checks the log whenever something else is due, and drops
# no segment that a session is reading just then: so nothing reads for a while.
sub create_until
{
	my ($what, $query) = @_;

	for (1 .. 1000)
	{
		$node->safe_psql($db, q{SELECT tq.enqueue('p/w', deadline => '10 ms'); SELECT pg_sleep(0.04)});
		return pass($what) if $node->safe_psql($db, $query) eq 't';
	}
	return fail($what);
}

$node->safe_psql($db, 'CREATE EXTENSION tq');
wait_worker($node, $db);

# By the maintenance worker, at its time.
$node->safe_psql($db, q{
	SELECT tq.subscribe('read', 'task-pending'), tq.subscribe('dead', 'task-pending');
	SELECT tq.enqueue('p/w', name => 'first', deadline => '1 hour')});
create_until('messages are read', q{SELECT count(*) > 0 FROM tq.fetch('read')});
is($node->safe_psql($db, q{SELECT count(*) FROM tq.fetch('dead') WHERE id = (SELECT min(id) FROM tq.messages(exchange => 'task-pending'))}),
	1, 'the first one is there');
my $first = $node->safe_psql($db, 'SELECT min(id) FROM tq.messages()');
create_until('the segment that is written to changes', 'SELECT count(*) > 0 FROM tq_internal.log_segment WHERE segment > 1 AND since > (SELECT since FROM tq_internal.log_segment WHERE segment = 0)');
is($node->safe_psql($db, q{SELECT min(id) FROM tq.messages()}), $first, 'nothing is dropped that a subscription has not acknowledged');
# The first segment that is emptied may have nothing that they have not read.
create_until('until tq.subscription_retention has passed',
	"SELECT min(id) > $first AND (SELECT bool_and(lost_before IS NOT NULL) FROM tq.subscription_overview) FROM tq.messages()");
ok($node->wait_for_log(qr/WARNING: .*messages that subscription "dead" had not read were dropped/), 'with a warning in the server log');
my $log = slurp_file($node->logfile);
like($log, qr/DETAIL: .*Those up to \d+ were not acknowledged within tq\.subscription_retention\./, 'with the ids of the messages');
like($log, qr/HINT: .*tq\.fetch\(\).*tq\.unsubscribe\(\)/, 'and with a hint');
# On a slow machine the rest may have been dropped as well.
create_until('each subscription shows what it has lost: nothing that is there',
	q{SELECT count(*) = 2 FROM tq.subscription_overview WHERE lost_before > acked_id AND lost_before <= (SELECT min(id) FROM tq.messages())});
create_until('and gets what comes later', q{SELECT count(*) > 0 FROM tq.fetch('dead')});
$node->safe_psql($db, q{SELECT tq.unsubscribe(name) FROM tq.subscription_overview});
create_until('without subscriptions the log is kept for tq.message_retention',
	q{SELECT min(published) BETWEEN now() - interval '2 s' AND now() + interval '1 s' FROM tq.messages()});
cmp_ok($node->safe_psql($db, q{SELECT count(*) FROM tq_internal.log_segment WHERE since > '-infinity'}), '>=', 5, 'every segment was used, or nearly');

# By upkeep(), in the session that calls it.
$node->safe_psql($db, q{SELECT tq.subscribe('gone', 'task-pending'), tq.subscribe('acked', 'task-pending')});
create_until('two subscriptions', q{SELECT count(*) > 0 FROM tq.fetch('gone')});
my $stderr = '';
for (1 .. 100)
{
	my $more;

	# The maintenance worker may be the one that drops some: then there are others.
	$node->safe_psql($db, q{SELECT tq.enqueue('p/w', deadline => '1 minute')});
	$node->safe_psql($db, q{SELECT tq.ack('acked', last_id) FROM tq.subscription_overview WHERE name = 'acked'});
	$node->psql($db, q{SET tq.clock_offset = '1 hour'; SELECT tq.upkeep()}, stderr => \$more);
	$stderr .= $more;
	last if $stderr =~ /"gone"/;
}
like($stderr, qr/WARNING:  messages that subscription "gone" had not read were dropped\nDETAIL:  .*\nHINT:  /, 'upkeep() warns its caller');
unlike($stderr, qr/"acked"/, 'but not of one that has acknowledged all');

# After a clock that was ahead is set back.
$node->safe_psql($db, q{SELECT tq.unsubscribe(name) FROM tq.subscription_overview});
$node->safe_psql($db, q{SET tq.clock_offset = '1 day'; SELECT tq.enqueue('p/w'); SELECT tq.upkeep(); SELECT tq.upkeep()});
create_until('what was written by a clock that was ahead goes, too',
	q{SELECT min(published) BETWEEN now() - interval '2 s' AND now() + interval '1 s' FROM tq.messages()});
create_until('and no time of the log is ahead', q{SELECT ok FROM tq.health() WHERE name = 'clock'});

unlike(slurp_file($node->logfile), qr/PANIC:|was terminated by signal|TRAP:|ERROR/, 'nothing crashed or failed');
$node->stop;
done_testing();
