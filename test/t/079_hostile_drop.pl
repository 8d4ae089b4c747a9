# DROP EXTENSION, and CREATE EXTENSION after it, at any moment: a call beside it
# succeeds or gets an error that says what has happened, and the next one works.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $node = new_node('node');
my $db = 'postgres';
my $slug = "'one_____QAGAAAAAAAAAAA'";

$node->safe_psql($db, 'CREATE EXTENSION tq; CREATE TABLE answer (state text, message text, call text)');

# One call for each way in which a call comes to tables.
my %call = (
	enqueue => "tq.enqueue('p/w')",
	enqueue_tasks => "tq.enqueue_tasks('p/w', ARRAY['{}', '{}']::jsonb[])",
	claim_work => "tq.claim_work('p/w', 'g', 'w')",
	claim_task => "tq.claim_task($slug, 0, 'g', 'w')",
	report_completed => "tq.report_completed($slug, 0)",
	resolve => "tq.resolve('{one_____QAGAAAAAAAAAAA}', '{0}')",
	cancel_task => "tq.cancel_task($slug)",
	status => "tq.status($slug)",
	statuses => "tq.statuses('{one_____QAGAAAAAAAAAAA}')",
	get_task_group => "tq.get_task_group($slug)",
	seal_task_group => "tq.seal_task_group($slug)",
	task_queue_counts => "tq.task_queue_counts('p/w')",
	get_worker => "tq.get_worker('p/w', 'g', 'w')",
	messages => 'tq.messages()',
	bind => "tq.bind('c', 'task-defined')",
	upkeep => 'tq.upkeep()',
);

# What is right: the task, worker or group is not there, or tq is not.
my $right = qr/^(00000|TQ404|TQ409|42704|42883|42P01|3F000|40P01)$/;

sub state_of_answer
{
	my ($session, $call) = @_;
	my $out = $session->query("\\set VERBOSITY verbose\n$call;\n\\echo :SQLSTATE");

	return (split /\n/, $out)[-1];
}

# In a transaction block nothing makes the session look at what others have done
# before it is in the function.
foreach my $again (0, 1)
{
	foreach my $name (sort keys %call)
	{
		my $session = $node->background_psql($db, on_error_stop => 0);
		my $run = "SELECT * FROM $call{$name}";

		$node->safe_psql($db, 'CREATE EXTENSION IF NOT EXISTS tq');
		state_of_answer($session, $run) foreach 1 .. 2;
		$session->query('BEGIN');
		$node->safe_psql($db, 'DROP EXTENSION tq');
		$node->safe_psql($db, 'CREATE EXTENSION tq') if $again;
		my $state = state_of_answer($session, $run);
		like($state, $right, "$name() in a transaction block after DROP EXTENSION" . ($again ? ' and CREATE EXTENSION' : ''));
		$session->query('ROLLBACK');
		$node->safe_psql($db, 'CREATE EXTENSION IF NOT EXISTS tq');
		$state = state_of_answer($session, $run);
		like($state, qr/^(00000|TQ404|TQ409)$/, "$name(): the next call works");
		$session->quit;
	}
}

# Everything at once, but for functions that return a composite type: when the
# server reads a statement with such a call it opens the type's relation itself.
my @scalar = grep { !/^(claim_work|claim_task|resolve|statuses|messages)$/ } sort keys %call;
$node->safe_psql($db, q{
	CREATE PROCEDURE storm(calls text[]) LANGUAGE plpgsql AS $$
	DECLARE
		said text := 'ok';
	BEGIN
		FOR n IN 1 .. 1000000 LOOP
			EXIT WHEN EXISTS (SELECT FROM public.answer WHERE state = 'done');
			BEGIN
				EXECUTE 'SELECT * FROM ' || calls[1 + n % cardinality(calls)];
			EXCEPTION WHEN OTHERS THEN
				INSERT INTO public.answer VALUES (SQLSTATE, SQLERRM, calls[1 + n % cardinality(calls)]);
			END;
			COMMIT;
		END LOOP;
	END $$});
my $calls = 'ARRAY[' . join(', ', map { '$q$' . $call{$_} . '$q$' } @scalar) . ']';
my @sessions = map {
	my $session = $node->background_psql($db, on_error_stop => 0);
	$session->query_until(qr/begun/, "\\echo begun\nCALL storm($calls);\n");
	$session
} 1 .. 3;
foreach my $round (1 .. 20)
{
	foreach my $statement ('DROP EXTENSION tq', 'CREATE EXTENSION tq')
	{
		my ($status, $out, $err) = $node->psql($db, $statement);

		redo if $err =~ /deadlock detected/;
		die $err if $err =~ /ERROR/;
	}
}
$node->safe_psql($db, "INSERT INTO answer VALUES ('done', '')");
foreach my $session (@sessions)
{
	$session->query('SELECT 1');
	$session->quit;
}
is( $node->safe_psql($db, qq{
	SELECT state, message, call, count(*) FROM answer
	WHERE state <> 'done' AND state !~ '^(TQ404|TQ409|42704|42883|42P01|3F000|40P01)\$' GROUP BY 1, 2, 3}),
	'', 'while the extension comes and goes, no call says anything else');
is($node->safe_psql($db, 'SELECT count(*) FROM tq_internal.task WHERE queue NOT IN (SELECT id FROM tq_internal.queue)'), 0, 'and none mixes the old with the new');
is($node->safe_psql($db, "SELECT count(*) > 0 FROM answer WHERE message = 'extension tq was dropped'"), 't', 'calls came in the middle of it');
is(violations($node, $db), '', 'tables are consistent');

# ---- a healthy task beside it was served in time ----

wait_worker($node, $db);
my $healthy = enqueue($node, $db, "deadline => '1 second'");
ok(wait_state($node, $db, $healthy, 'exception'), 'a healthy task meets its deadline');
cmp_ok(lateness($node, $db, $healthy, 0, q{(s ->> 'deadline')::timestamptz}), '<', 5, 'in time');
$node->stop;

done_testing();
