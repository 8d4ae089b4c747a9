# The largest task that is accepted passes through everything; a larger one is
# refused, and the tasks beside it are served.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $node = new_node('sizes', 'log_statement = none', 'log_min_error_statement = panic');
my $db = 'postgres';

sub query { return $node->safe_psql($db, $_[0]); }

# SQLSTATE of a statement, or 'ok'.
sub code
{
	my ($sql) = @_;
	my ($code, $out, $error) = $node->psql($db, "\\set VERBOSITY verbose\n$sql");

	return $code == 0 && $error !~ /ERROR/ ? 'ok' : $error =~ /ERROR:  (\w{5}):/ ? $1 : $error;
}

# A task beside it all.
sub served
{
	my ($title) = @_;
	my $id = enqueue($node, $db, "deadline => '300 ms'");

	ok(wait_state($node, $db, $id, 'exception'), "$title: a healthy task is served");
	cmp_ok(lateness($node, $db, $id, 0, "(s ->> 'deadline')::timestamptz"), '<', 5, "$title: in time");
	is(query("SELECT count(*) FROM tq.enqueue('p/beside'), tq.claim_work('p/beside', 'g', 'w')"), 1, "$title: and one is claimed");
	return;
}

# As JSON, each of these bytes takes six.
my $bells = sub { return "jsonb_build_object('b', repeat(E'\\u0001', $_[0]))" };

query('CREATE EXTENSION tq');
wait_worker($node, $db);
query("SELECT tq.subscribe('reader', e) FROM unnest('{task-defined,task-pending,task-running,task-failed,task-exception}'::text[]) e");
my $listener = $node->background_psql($db);
$listener->set_query_timer_restart();
$listener->query_safe('LISTEN tq_task_defined; LISTEN tq_task_failed');
served('at first');

# Sizes that once stopped the publisher, the head of a queue, and deadlines.
is(code("SELECT tq.enqueue('p/w', tags => (SELECT jsonb_object_agg(repeat('k', 1000000) || n, '') FROM generate_series(1, 180) n))"),
	'TQ400', '180 MB of tags are refused');
is(code("SELECT tq.enqueue('p/w', " . $bells->(180_000_000) . ')'), 'TQ400', '180 MB of payload are refused');
is(code("SELECT tq.enqueue('p/w', " . $bells->(100_000_000) . ", extra => " . $bells->(100_000_000) . ", policy => '{\"deadLetter\": true}')"),
	'TQ400', 'a definition of 200 MB is refused');
is(query('SELECT (tq.task_queue_counts(\'p/w\') -> \'pendingTasks\')::bigint'), 0, 'none of them is there');
served('refused');

# The largest, by the bounds as they are, and by the highest that they can have.
foreach my $case ([ '', 2_700_000, 160_000 ], [ '100MB', 16_000_000, 160_000 ])
{
	my ($bound, $payload, $other) = @$case;
	my $title = $bound || 'default';
	my $set = $bound ? join('', map { "SET tq.max_$_ = '$bound'; " } qw(payload definition)) : '';
	my $tags = "(SELECT jsonb_object_agg(repeat(E'\\u0001', 4000) || n, repeat(E'\\u0001', 4000)) FROM generate_series(1, 20) n)";
	my $make = "SELECT tq.enqueue('p/large', " . $bells->($payload) . ", tags => $tags, extra => " . $bells->($other)
	  . ", deadline => '%s', policy => '{\"deadLetter\": true}')";
	my $id = query($set . sprintf($make, '1 hour'));

	is(query("SELECT length(payload::text) FROM tq.claim_work('p/large', 'g', 'w')"), 6 * $payload + 9, "$title: it is claimed");
	is(query("SELECT length((tq.task('$id') -> 'payload')::text)"), 6 * $payload + 9, "$title: it can be read");
	is(query("SELECT tq.report_failed('$id', 0) ->> 'state'"), 'failed', "$title: it fails");
	is(query("SELECT count(*) FROM tq.list_dead_letters('p/large')"), 1, "$title: it is a dead letter");
	is(query("${set}SELECT tq.redrive('$id') ->> 'state'"), 'pending', "$title: it is redriven");
	is(query("SELECT tq.cancel_task('$id') ->> 'state'"), 'exception', "$title: it is cancelled");
	my $late = query($set . sprintf($make, '500 ms'));
	ok(wait_state($node, $db, $late, 'exception'), "$title: its deadline passes");
	ok($node->poll_query_until($db, "SELECT count(*) = 1 FROM tq.list_dead_letters('p/large')"), "$title: it is a dead letter then, too");
	query("SELECT tq.discard_dead_letter('$late')");
	ok( $node->poll_query_until($db,
			"SELECT count(*) = 9 FROM tq.fetch('reader', 1000) WHERE payload #>> '{status,taskId}' IN ('$id', '$late')"),
		"$title: all of it is published");
	is(query("SELECT count(*) FROM tq.fetch('reader', 1000) WHERE payload #>> '{status,taskId}' IN ('$id', '$late') AND payload #> '{task,tags}' <> '{}'"),
		9, "$title: with its tags");
	is(query('SELECT count(*) FROM tq_internal.postponed'), 0, "$title: nothing is postponed");
	served($title);
}
like($listener->query_safe('SELECT 1'), qr/"truncated": true/, 'a listener gets the short form');
$listener->quit;

# A call for more than 1,024 tasks shows how far it is: at most once a second of the session's clock.
sub notices
{
	my (@calls) = @_;
	my ($begin, $code, $error) = time;

	$code = $node->psql($db, join('; ', 'SET client_min_messages = notice', @calls), stderr => \$error);
	is($code, 0, 'the calls succeed') or diag($error);
	return ([ $error =~ /^psql.*NOTICE:  (.*)$/mg ], time - $begin);
}

sub make_group
{
	my ($first, $n) = @_;

	query(qq{SELECT tq.enqueue('p/many', task_id => tq.stable_slugid('$first'));
		SELECT count(tq.enqueue('p/many', task_group_id => tq.stable_slugid('$first'), dependencies => ARRAY[tq.stable_slugid('$first')])) FROM generate_series(2, $n);
		SELECT tq.seal_task_group(tq.stable_slugid('$first'))});
	return "tq.stable_slugid('$first')";
}

my ($few, $many) = (make_group('few', 1024), make_group('many', 1100));
my ($seen) = notices("SELECT tq.cancel_task_group($few)", "SELECT tq.retry_task_group($few, reasons => '{canceled}')");
is_deeply($seen, [], '1,024 tasks: no notice');
for my $call ("cancel_task_group($many)", "retry_task_group($many, reasons => '{canceled}')", "cancel_task_group($many)", "rerun_task($many, downstream => true)")
{
	($seen) = notices("SELECT tq.$call");
	like($seen->[0] // '', qr/^1024 of 1100 tasks are locked$/, "$call: a notice");
}
my @each = ("SELECT tq.cancel_task_group($many)", "SELECT tq.retry_task_group($many, reasons => '{canceled}')") x 3;
($seen, my $seconds) = notices(@each);
cmp_ok(scalar @$seen, '<=', 2 + $seconds, 'at most one a second');
($seen) = notices(map { ("SET tq.clock_offset = '$_ minutes'", "SELECT tq.cancel_task_group($many)", "SELECT tq.rerun_task($many, downstream => true)") } 2, 4, 1);
cmp_ok(scalar(grep { /locked$/ } @$seen), '>=', 3, 'and one when the clock of the session goes on or back');

is(query("SELECT count(*) FROM tq.maintenance_overview WHERE failures > 0"), 0, 'no step failed');
unlike(slurp_file($node->logfile), qr/PANIC:|was terminated by signal|TRAP:|ERROR: (?! invalid \W?(?:payload|task|tags|extra)\b| \d+ faults in )/, 'nothing crashed, nothing failed');
$node->stop;

done_testing();
