# pg_dump and restore: bindings and subscriptions are restored; what was committed
# and not yet published or not acknowledged is delivered afterwards, what was
# acknowledged is not; ids continue upwards, and nothing is published while only
# some of the rows are loaded.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT $published);
use POSIX ();
use Time::HiRes qw(usleep);

my $dir = PostgreSQL::Test::Utils::tempdir;
my $stop = "$dir/stop";
my $parent = $$;

END { append_to_file($stop, '') if defined $stop && $$ == $parent; }

# Without a publisher, what is published is decided by the test.
my $old = PostgreSQL::Test::Cluster->new('old');
$old->init;
$old->start;
my $new = new_node('new', 'max_connections = 40', 'max_worker_processes = 32', 'shared_buffers = 32MB',
	"tq.publish_interval = '20ms'");

# ---- what there is to be restored ----

# Transactions have higher numbers than those of a new server.
$old->safe_psql('postgres', q{
	CREATE PROCEDURE age() LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. 3000 LOOP
			PERFORM pg_current_xact_id();
			COMMIT;
		END LOOP;
	END $$;
	CALL age()});

# public.named gives the tasks names.  Each of live() is created and completed.
my $tools = q{
	CREATE EXTENSION tq;
	CREATE TABLE named (name text PRIMARY KEY, id tq.slugid NOT NULL);
	CREATE FUNCTION id(text) RETURNS tq.slugid LANGUAGE sql STABLE AS
		'SELECT id FROM public.named WHERE name = $1';
	CREATE FUNCTION name_of(jsonb) RETURNS text LANGUAGE sql STABLE AS
		$$SELECT name FROM public.named WHERE id::text = $1 #>> '{status,taskId}'$$;
	CREATE FUNCTION live(n text, grp tq.slugid DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO public.named SELECT n, tq.enqueue('p/w', task_group_id => grp, routes => ARRAY['index.' || n]);
		PERFORM tq.claim_task(public.id(n), 0, 'g', 'w');
		PERFORM tq.report_completed(public.id(n), 0);
	END $$;
};
my $publish = 'SELECT count(*) FROM tq.upkeep()';
my $last_id = 'SELECT max(last_id) FROM tq_internal.tick';

$old->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(old quiet);
$old->safe_psql('old', $_) foreach $tools, q{
	SELECT tq.bind('done', 'task-completed', 'route.index.#'), tq.bind('done', 'task-failed'),
		tq.unbind('tq_task_running', 'task-running');
	SELECT tq.subscribe('audit', 'task-defined'), tq.subscribe('audit', 'task-completed', '#.p.w.#'),
		tq.subscribe('audit', 'task-group-resolved'), tq.subscribe('ahead', 'task-defined')},
  q{SELECT live('acked ' || n) FROM generate_series(1, 3) AS n}, $publish, $publish,
  q{SELECT tq.ack(name, (SELECT max(last_id) FROM tq_internal.tick)) FROM tq_internal.subscription},
  q{SELECT live('unread ' || n) FROM generate_series(1, 3) AS n}, $publish, $publish,
  q{SELECT tq.ack('ahead', (SELECT max(last_id) FROM tq_internal.tick))},
  q{SELECT live('half ' || n) FROM generate_series(1, 3) AS n}, $publish, $publish,
  q{SELECT tq.ack('ahead', (SELECT max(id) FROM tq.fetch('ahead', 2)))},
  q{SELECT live('unpublished ' || n, 'AAAAAAAAQAaAAAAAAAAAAA') FROM generate_series(1, 3) AS n},
  q{INSERT INTO named VALUES ('running', tq.enqueue('p/w'))},
  q{SELECT FROM tq.claim_task(id('running'), 0, 'g', 'w')},
  q{BEGIN; SELECT live('never'); ROLLBACK};
$old->safe_psql('quiet', $_) foreach $tools, q{SELECT live('quiet ' || n) FROM generate_series(1, 3) AS n},
  $publish, $publish;

# Names of the tasks of which a subscription gets the messages of an exchange.
sub fetched
{
	my ($node, $db, $name, $exchange) = @_;

	return $node->safe_psql($db, qq{
		SELECT string_agg(name_of(payload), ', ' ORDER BY id) FROM tq.fetch('$name', 1000)
		WHERE exchange = '$exchange'});
}

my @expected = map { my $what = $_; map { "$what $_" } 1 .. 3 } qw(unread half unpublished);
my $defined = join(', ', @expected, 'running');
my $completed = join(', ', @expected);
my $overview = q{SELECT * FROM tq.binding_overview ORDER BY channel, exchange, pattern};
my $subscriptions = q{SELECT name, bindings, acked_id, lost_before, created, acked_at FROM tq.subscription_overview ORDER BY name};

# A message, all but its id and time.
my $notified = q{
	SELECT exchange, routing_key, cc, payload FROM tq.fetch('audit', 1000)
	WHERE name_of(payload) ~ '^(unread|half)' ORDER BY exchange, name_of(payload)};

my %expect = map { $_ => $old->safe_psql('old', $_) } $overview, $subscriptions, $last_id, $notified;
is(fetched($old, 'old', 'audit', 'task-completed'), 'unread 1, unread 2, unread 3, half 1, half 2, half 3',
	'what has been published in the original');
is(fetched($old, 'old', 'ahead', 'task-defined'), 'half 3', 'and what is left of it for another');

my %dump = (plain => "$dir/plain.sql", custom => "$dir/custom.dump");
$old->command_ok([ 'pg_dump', '-f', $dump{plain}, '-d', $old->connstr('old') ], 'pg_dump, plain');
$old->command_ok([ 'pg_dump', '-Fc', '-f', $dump{custom}, '-d', $old->connstr('old') ], 'pg_dump, custom');
$old->command_ok([ 'pg_dump', '-f', "$dir/quiet.sql", '-d', $old->connstr('quiet') ], 'pg_dump of what is all published');
is(fetched($old, 'old', 'ahead', 'task-defined'), 'half 3', 'a dump changes nothing');

# ---- ways to restore ----

sub psql
{
	my ($file, @options) = @_;

	return sub {
		my ($connstr) = @_;
		return ('psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', @options, '-f', $file, '-d', $connstr);
	};
}

sub pg_restore
{
	my (@options) = @_;

	return sub {
		my ($connstr) = @_;
		return ('pg_restore', '--exit-on-error', @options, '-d', $connstr, $dump{custom});
	};
}

my %restore = (
	plain => psql($dump{plain}),
	plain_single => psql($dump{plain}, '--single-transaction'),
	custom => pg_restore(),
	custom_jobs => pg_restore('-j', '2'),
	custom_single => pg_restore('--single-transaction'));

# Restores into a new database; the maintenance worker or upkeep() then publishes
# everything.
sub restore
{
	my ($node, $db, $command) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db");
	my $began = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
	$node->command_ok([ $command->($node->connstr($db)) ], "$db: restored");
	begin_use($node, $db);
	return $began;
}

# What must be true of a copy once all is published.
sub check_copy
{
	my ($node, $db, $began) = @_;
	my $sql = sub { return $node->safe_psql($db, $_[0]) };

	is($sql->($overview), $expect{$overview}, "$db: the bindings are the same");
	is($sql->($subscriptions), $expect{$subscriptions}, "$db: the subscriptions and their positions are the same");
	is(fetched($node, $db, 'audit', 'task-defined'), $defined, "$db: what was not acknowledged is delivered, in order");
	is(fetched($node, $db, 'audit', 'task-completed'), $completed, "$db: by each exchange");
	is($sql->($notified), $expect{$notified}, "$db: with the same contents");
	is($sql->("SELECT count(*) FROM tq.messages() WHERE name_of(payload) LIKE 'acked%'"), 0,
		"$db: what all have acknowledged is not published again");
	is($sql->("SELECT count(*) FROM tq.messages() WHERE name_of(payload) = 'never'"), 0, "$db: nor what never was");
	is($sql->("SELECT count(*) FROM tq.messages() WHERE payload ->> 'taskGroupId' = 'AAAAAAAAQAaAAAAAAAAAAA'"), 1,
		"$db: the resolution of a group is published");
	cmp_ok($sql->('SELECT min(id) FROM tq.messages()'), '>', $expect{$last_id}, "$db: ids go on upwards");
	cmp_ok($sql->('SELECT min(id) FROM tq.messages()'), '>', 2**40, "$db: above those that the original gives after the dump");
	is($sql->("SELECT count(*) FROM tq_internal.tick WHERE published < '$began'"), 0, "$db: ticks are its own");
	is($sql->("SELECT count(*) FROM tq_internal.log_segment WHERE since < '$began' AND since <> '-infinity'"), 0, "$db: so are the segments");
	is($sql->('SELECT count(*) FROM tq_internal.message WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())'), 0,
		"$db: and the transactions are of this server");

	# It goes on.
	my $listener = $node->background_psql($db);

	$listener->set_query_timer_restart();
	$listener->query_safe('LISTEN done; LISTEN tq_task_running; LISTEN tq_task_completed');
	$sql->("SELECT tq.report_completed(id('running'), 0)");
	$sql->("SELECT live('afterwards')");
	if ($node == $old)
	{
		$sql->($publish) foreach 1 .. 2;
	}
	ok($node->poll_query_until($db, $published), "$db: what comes then is published");
	like(fetched($node, $db, 'audit', 'task-completed'), qr/^$completed, running, afterwards$/, "$db: for subscriptions");
	is($sql->(q{SELECT payload #>> '{status,state}' FROM tq.fetch('audit', 1000)
			WHERE exchange = 'task-completed' AND name_of(payload) = 'running'}),
		'completed', "$db: also of a run that began before");
	my $heard = '';
	foreach (1 .. 100)
	{
		$heard .= $listener->query_safe('SELECT 1');
		last if $heard =~ /"done" .*index\.afterwards/;
		usleep(50_000);
	}
	is(join(' ', sort $heard =~ /notification "(\w+)" with payload "\{"id": \d+, "exchange": "task-completed"/g),
		'done tq_task_completed tq_task_completed',
		"$db: NOTIFY on channels bound before, and not on one that was unbound");
	$listener->quit;
	$sql->("SELECT tq.ack('audit', (SELECT max(id) FROM tq.fetch('audit', 1000)))");
	is($sql->("SELECT count(*) FROM tq.fetch('audit', 1000)"), 0, "$db: acknowledged is acknowledged");
	is(violations($node, $db), '', "$db: tables are consistent");
	return;
}

foreach my $kind (sort keys %restore)
{
	my $began = restore($new, $kind, $restore{$kind});

	ok($new->poll_query_until($kind, $published), "$kind: everything is published");
	check_copy($new, $kind, $began);
}

# Into the cluster that it comes from; there upkeep() publishes.
my $began = restore($old, 'copy', $restore{plain});
is($old->safe_psql('copy', 'SELECT count(*) FROM tq.messages()'), 0, 'copy: nothing is published before upkeep()');
is($old->psql('copy', "BEGIN; SELECT tq.ack('audit', " . $old->safe_psql('old', "SELECT max(id) FROM tq.fetch('audit', 1000)") . '); ROLLBACK',
		on_error_stop => 1), 0, 'copy: what was fetched before the dump can be acknowledged');
$old->safe_psql('copy', $publish) foreach 1 .. 2;
check_copy($old, 'copy', $began);

# A copy of a copy; and one that had nothing to be delivered.
$old->command_ok([ 'pg_dump', '-f', "$dir/copy.sql", '-d', $old->connstr('copy') ], 'pg_dump of a copy');
restore($new, 'again', psql("$dir/copy.sql"));
ok($new->poll_query_until('again', "SELECT count(*) = 11 FROM tq.fetch('ahead', 1000)"),
	'again: a subscription that is behind gets everything again');
$new->poll_query_until('again', $published) or die 'not published';
is($new->safe_psql('again', "SELECT count(*) FROM tq.fetch('audit', 1000)"),
	$new->safe_psql('again', 'SELECT count(*) FROM tq.messages() WHERE exchange IN '
	  . "('task-defined', 'task-completed', 'task-group-resolved')"), 'again: and so do the others');
restore($new, 'quiet', psql("$dir/quiet.sql"));
my $other = enqueue($new, 'quiet');
ok($new->poll_query_until('quiet', 'SELECT count(*) > 0 FROM tq.messages()'), 'quiet: what is new is published');
is($new->safe_psql('quiet', "SELECT count(*) FROM tq.messages() WHERE payload #>> '{status,taskId}' <> '$other'"), 0,
	'quiet: and nothing else is');
cmp_ok($new->safe_psql('quiet', 'SELECT min(id) FROM tq.messages()'), '>', $old->safe_psql('quiet', $last_id),
	'quiet: under higher ids');

# Rows only, into an extension that is there already, with a publisher that is
# awake.
$old->safe_psql('postgres', 'CREATE DATABASE rows_only');
$old->safe_psql('rows_only', $_) foreach "CREATE EXTENSION tq; SELECT tq.subscribe('sub', 'task-defined')",
  q{SELECT tq.enqueue('p/w') FROM generate_series(1, 20)}, $publish,
  q{SELECT tq.ack('sub', max(last_id)) FROM tq_internal.tick}, q{SELECT tq.enqueue('p/w') FROM generate_series(1, 3)};
$old->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/rows_only", '-d', $old->connstr('rows_only') ], 'rows only: dumped');
$new->safe_psql('postgres', 'CREATE DATABASE rows_only');
$new->safe_psql('rows_only', 'CREATE EXTENSION tq');
wait_worker($new, 'rows_only');
$new->command_ok([ 'pg_restore', '--data-only', '--exit-on-error', '-d', $new->connstr('rows_only'), "$dir/rows_only" ],
	'rows only: restored');
begin_use($new, 'rows_only');
ok($new->poll_query_until('rows_only', $published), 'rows only: everything is published');
$old->safe_psql('rows_only', $publish);
my $defined_ids = "SELECT payload #>> '{status,taskId}' FROM tq.fetch('sub')";
is($new->safe_psql('rows_only', $defined_ids), $old->safe_psql('rows_only', $defined_ids),
	'rows only: what was not acknowledged is delivered');

# ---- half of the rows ----

# The messages are there, the tasks are not: a publisher would find no payload.
# psql would refuse \i between \restrict and \unrestrict.
my ($first, $second) = split(/^(?=COPY tq_internal\.task )/m, slurp_file($dump{plain}) =~ s/^\\(?:un)?restrict .*\n//mgr);
append_to_file("$dir/first.sql", $first);
append_to_file("$dir/second.sql", $second);
$new->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(half clock);
$new->safe_psql('clock', 'CREATE EXTENSION tq');
my $session = $new->background_psql('half');
$session->query_safe("\\o /dev/null\n\\i $dir/first.sql");
ok(wait_worker($new, 'half'), 'half: a publisher is there');
cmp_ok($new->safe_psql('half', 'SELECT count(*) FROM tq_internal.message'), '>', 0, 'half: messages are there');
is($new->safe_psql('half', 'SELECT count(*) FROM tq_internal.task'), 0, 'half: tasks are not');
foreach my $round (1 .. 3)
{
	enqueue($new, 'clock', "deadline => '1 second'");
	ok($new->poll_query_until('clock', 'SELECT count(*) = ' . 3 * $round . ' FROM tq.messages()'
			. " WHERE exchange <> 'task-group-resolved'"), "clock: $round s");
	is($new->safe_psql('half', 'SELECT count(*) FROM tq_internal.tick WHERE messages > 0'), 0, 'half: nothing is published');
}
$session->query_safe("\\i $dir/second.sql");
$session->quit;
begin_use($new, 'half');
ok($new->poll_query_until('half', $published), 'half: everything is, once it is whole');
is(fetched($new, 'half', 'audit', 'task-completed'), $completed, 'half: nothing was lost');

# ---- a dump while others work ----

# The subscription's position and the messages after it match: what the copy does
# not deliver was acknowledged before.
$new->safe_psql('postgres', 'CREATE DATABASE busy');
$new->safe_psql('busy', $_) foreach $tools, q{
	CREATE PROCEDURE live_on() LANGUAGE plpgsql AS $$
	BEGIN
		IF (SELECT count(*) < 900 FROM tq_internal.task) THEN
			PERFORM live(gen_random_uuid()::text);
		END IF;
		PERFORM pg_sleep(random() * 0.08);
		COMMIT;
	END $$;
	SELECT tq.subscribe('sub', 'task-defined'), tq.subscribe('sub', 'task-completed')};
wait_worker($new, 'busy');

sub start_loop
{
	my ($do) = @_;
	my $pid = fork;

	die "cannot fork: $!" unless defined $pid;
	return $pid if $pid;
	$do->() while !-e $stop && getppid() == $parent;
	POSIX::_exit(0);
}

append_to_file("$dir/live.sql", "CALL live_on();\n" x 50);
append_to_file("$dir/read.sql", "SELECT tq.ack('sub', max(id)) FROM tq.fetch('sub', 10) HAVING count(*) > 0;\nSELECT pg_sleep(0.01);\n" x 50);
my @loops;
foreach my $script (qw(live live read))
{
	my $command = "psql -XqAt -o /dev/null -d '" . $new->connstr('busy') . "' -f $dir/$script.sql";
	push @loops, start_loop(sub { system($command) });
}

foreach my $round (1 .. 3)
{
	my $copy = "busy$round";
	my $keys = q{exchange || ' ' || (payload #>> '{status,taskId}')};

	ok($new->poll_query_until('busy', "SELECT acked_id > $round * 100 FROM tq_internal.subscription"), "$copy: the reader reads");
	$new->command_ok([ 'pg_dump', '-Fd', '-j', '2', '-f', "$dir/$copy", '-d', $new->connstr('busy') ], "$copy: dumped");
	$new->safe_psql('postgres', "CREATE DATABASE $copy");
	$new->command_ok([ 'pg_restore', '--exit-on-error', '-j', '2', '-d', $new->connstr($copy), "$dir/$copy" ],
		"$copy: restored");
	begin_use($new, $copy);
	ok($new->poll_query_until($copy, $published), "$copy: everything is published");

	my $acked = $new->safe_psql($copy, 'SELECT acked_id FROM tq_internal.subscription');
	my %got = map { $_ => 1 } split(/\n/, $new->safe_psql($copy, "SELECT $keys FROM tq.fetch('sub', 1000)"));
	my %read = map { $_ => 1 } split(/\n/, $new->safe_psql('busy', qq{
		SELECT $keys FROM tq.messages(exchange => 'task-defined') WHERE id <= $acked
		UNION ALL SELECT $keys FROM tq.messages(exchange => 'task-completed') WHERE id <= $acked}));
	my @happened = split(/\n/, $new->safe_psql($copy, q{
		SELECT 'task-defined ' || task_id FROM tq_internal.task
		UNION ALL SELECT 'task-completed ' || task_id FROM tq.task_details WHERE state = 'completed'}));
	cmp_ok(scalar @happened, '<', 2000, "$copy: one call can read it");
	is(join(' ', grep { !$got{$_} && !$read{$_} } @happened), '', "$copy: no message is lost");
	my %happened = map { $_ => 1 } @happened;
	is(join(' ', grep { !$happened{$_} } keys %got), '', "$copy: and none came too early");
	note(scalar @happened, ' messages, ', scalar(keys %got), ' after the restore');
}
append_to_file($stop, '');
waitpid($_, 0) foreach @loops;

unlike(slurp_file($_->logfile), qr/PANIC:|TRAP:|was terminated by signal/, $_->name . ': nothing crashed') foreach $old, $new;
$_->stop foreach $old, $new;

done_testing();
