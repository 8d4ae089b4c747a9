# kill -9 of the publisher and of the server under load: a reader with a
# subscription or with a cursor gets every message of every committed transition,
# in order, and none of an aborted one.  TQ_CRASHES is the number of crashes,
# TQ_SEED repeats their moments.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT $published session output);
use POSIX ();
use Time::HiRes qw(usleep);

my $crashes = $ENV{TQ_CRASHES} // 50;
my $seed = $ENV{TQ_SEED} // int(rand(1_000_000));
my $db = 'postgres';
my $tmp = PostgreSQL::Test::Utils::tempdir;
my $stop = "$tmp/stop";
my $finish = "$tmp/finish";
my $parent = $$;
my (@clients, @readers);

# Clients do not outlive the test, however it ends.
END
{
	if (defined $parent && $$ == $parent)
	{
		append_to_file($_, '') foreach $stop, $finish;
	}
}

note("seed $seed");
srand($seed);

# The log changes its segment and drops old ones meanwhile.  The publisher waits
# longer than by default, so that there is something between commit and publication.
my $node = new_node('crash', 'restart_after_crash = on', 'synchronous_commit = on',
	'log_statement = none', 'max_connections = 30', 'shared_buffers = 32MB',
	"tq.message_retention = '10s'", "tq.publish_interval = '50ms'");
$node->safe_psql($db, 'CREATE EXTENSION tq');
wait_worker($node, $db);

# ---- the load ----

# Each call is some transactions of one kind, of which some roll back.  No call
# repeats what may have been committed, so that nothing is published twice.
$node->safe_psql($db, q{
	CREATE PROCEDURE produce() LANGUAGE plpgsql AS $$
	DECLARE
		dice float := random();
		g tq.slugid := tq.slugid();
		first tq.slugid;
	BEGIN
		IF dice < 0.3 THEN
			PERFORM tq.enqueue('p/w', retries => 3);
		ELSIF dice < 0.4 THEN
			PERFORM tq.enqueue('p/w', routes => '{some.route}') FROM generate_series(1, 5);
		ELSIF dice < 0.6 THEN
			first := tq.enqueue('p/w', task_group_id => g);
			PERFORM tq.enqueue('p/w', task_group_id => g, dependencies => ARRAY[first],
				requires => 'all-resolved');
		ELSIF dice < 0.7 THEN
			PERFORM tq.enqueue('p/w') FROM generate_series(1, 3);
			PERFORM pg_sleep(random() * 0.02);
			ROLLBACK;
		ELSIF dice < 0.8 THEN
			PERFORM tq.enqueue('p/w');
			BEGIN
				PERFORM tq.enqueue('p/w');
				PERFORM tq.claim_work('p/w', 'g', 'nobody', 2);
				RAISE EXCEPTION 'not to be';
			EXCEPTION WHEN raise_exception THEN
				PERFORM tq.enqueue('p/w');
			END;
			PERFORM pg_sleep(random() * 0.02);
		ELSIF dice < 0.9 THEN
			PERFORM tq.enqueue('p/w');
			PERFORM pg_sleep(random() * 0.05);	-- commits late what it wrote early
		ELSE
			PERFORM tq.enqueue('p/late', deadline => '300 ms');
		END IF;
		COMMIT;
		PERFORM pg_sleep(random() * 0.01);
	END $$;

	CREATE PROCEDURE report(ids tq.slugid[], runs int[]) LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM tq.resolve(ids, runs, ('{completed,completed,completed,failed,worker-shutdown,
			intermittent-task,malformed-payload}'::text[])[1 + floor(random() * 7)]);
	END $$;

	CREATE PROCEDURE work(me text) LANGUAGE plpgsql AS $$
	DECLARE
		dice float := random();
		ids tq.slugid[];
		runs int[];
	BEGIN
		IF random() < 0.3 THEN
			PERFORM pg_current_xact_id(), pg_sleep(random() * 0.05);	-- older than what it claims
		END IF;
		SELECT array_agg(task_id), array_agg(run_id) INTO ids, runs
		FROM tq.claim_work('p/w', 'g', me, 1 + floor(random() * 4)::int);
		IF ids IS NULL OR dice < 0.1 THEN
			ROLLBACK;
			PERFORM pg_sleep(random() * 0.02);
			RETURN;
		ELSIF dice < 0.3 THEN
			CALL report(ids, runs);				-- all in one transaction
			COMMIT;
			RETURN;
		END IF;
		COMMIT;
		IF dice < 0.4 THEN
			RETURN;								-- the claim expires
		ELSIF dice < 0.5 THEN
			PERFORM tq.create_artifact(ids[1], runs[1], 'log', jsonb_build_object('storageType', 'inline',
				'contentType', 'text/plain', 'content', 'done', 'expires', now() + '1 hour'));
		ELSIF dice < 0.6 THEN
			BEGIN
				CALL report(ids, runs);
				RAISE EXCEPTION 'not so';
			EXCEPTION WHEN raise_exception THEN
				NULL;
			END;
		ELSIF dice < 0.7 THEN
			CALL report(ids, runs);
			PERFORM pg_sleep(random() * 0.02);
			ROLLBACK;
		END IF;
		CALL report(ids, runs);
		COMMIT;
	END $$;

	CREATE PROCEDURE manage() LANGUAGE plpgsql AS $$
	DECLARE
		task tq.slugid;
	BEGIN
		SELECT t.task_id INTO task FROM tq_internal.task t
		WHERE t.id >= (SELECT max(id) FROM tq_internal.task) - floor(random() * 300) ORDER BY t.id LIMIT 1;
		IF NOT FOUND THEN
			NULL;
		ELSIF tq.status(task) ->> 'state' NOT IN ('completed', 'failed', 'exception') THEN
			PERFORM tq.cancel_task(task);
		ELSIF (tq.status(task) ->> 'deadline')::timestamptz > clock_timestamp() THEN
			PERFORM tq.rerun_task(task);
		END IF;
		IF random() < 0.2 THEN
			ROLLBACK;
		END IF;
		COMMIT;
		PERFORM pg_sleep(random() * 0.1);
	END $$});

# Do something again and again, whatever becomes of the server.
sub start_process
{
	my ($do) = @_;
	my $pid = fork;

	die "cannot fork: $!" unless defined $pid;
	return $pid if $pid;
	srand($seed + $$);
	$do->();
	POSIX::_exit(0);
}

sub start_client
{
	my ($name, $call) = @_;

	append_to_file("$tmp/$name.sql", "$call;\n" x 40);
	push @clients, start_process(
		sub {
			$ENV{PGOPTIONS} = '-c tq.claim_timeout=700ms';
			while (!-e $stop && getppid() == $parent)
			{
				system(join(' ', 'psql -XAtq -d', "'" . $node->connstr($db) . "'",
						"-f $tmp/$name.sql > /dev/null 2>> $tmp/$name.err")) == 0
				  or usleep(50_000);
			}
		});
	return;
}

# ---- the readers ----

my $columns = q{id, exchange, coalesce(payload #>> '{status,taskId}', payload ->> 'taskGroupId'),
	payload ->> 'runId', payload #>> '{artifact,name}', md5(m::text)};

# Rows of a query, and whether it came to its end.  The session is kept until it fails.
my $session;

sub ask
{
	my ($query) = @_;
	my @rows;
	my $ok = eval {
		$session //= session($node, $db);
		@rows = map { "$_\n" } split /\n/, output($session, $query);
		1;
	};

	if (!$ok)
	{
		append_to_file("$tmp/readers.err", $@);
		undef $session;
		usleep(50_000);
	}
	return ($ok, @rows);
}

sub id_of
{
	return (split /\|/, $_[0])[0];
}

# A cursor: goes on after the last id, and looks back now and then.  Its file
# has what it got, in that order, and "back" where it looks at ids again.
sub follow
{
	my $after = 0;

	while (getppid() == $parent)
	{
		my $ending = -e $finish;
		my ($ok, @rows) = ask("SELECT $columns FROM tq.messages(after => $after) AS m");

		append_to_file("$tmp/cursor", join('', @rows));
		$after = id_of($rows[-1]) if @rows;
		last if $ending && $ok && !@rows;
		if (rand() < 0.2)
		{
			my $from = $after > 200 ? $after - 200 : 0;

			($ok, @rows) = ask("SELECT $columns FROM tq.messages(after => $from) AS m WHERE id <= $after");
			append_to_file("$tmp/cursor", join('', "back $from $after\n", @rows, "end\n")) if $ok;
		}
		usleep(rand(20_000));
	}
	return;
}

# A durable subscription: acknowledges all that it got, or a part, or nothing.
# Its file has "fetch" where a call begins, and what was surely acknowledged.
sub subscribe
{
	while (getppid() == $parent)
	{
		my $ending = -e $finish;
		my ($ok, @rows) = ask('SELECT ' . $columns . " FROM tq.fetch('sub', " . int(1 + rand(1000)) . ') AS m');

		append_to_file("$tmp/sub", join('', "fetch\n", @rows));
		last if $ending && $ok && !@rows;
		usleep(rand(20_000)), next if !@rows || rand() < 0.1;

		my $id = id_of($rows[ rand() < 0.8 ? -1 : int(rand(@rows)) ]);
		my ($acked) = ask("SELECT tq.ack('sub', $id)");
		append_to_file("$tmp/sub", "acked $id\n") if $acked;
	}
	return;
}

my @subscribed = qw(task-defined task-pending task-running artifact-created
  task-completed task-failed task-exception);
$node->safe_psql($db, "SELECT tq.subscribe('sub', '$_')") foreach @subscribed;
push @readers, start_process(\&follow), start_process(\&subscribe);
start_client("producer$_", 'CALL produce()') foreach 1 .. 2;
start_client("worker$_", "CALL work('worker$_')") foreach 1 .. 2;
start_client('manager', 'CALL manage()');

# ---- the crashes ----

sub slurp
{
	my ($file) = @_;

	return -e $file ? slurp_file($file) : '';
}

# State and parent of a process, if it is there.
sub process
{
	my ($pid) = @_;

	open(my $file, '<', "/proc/$pid/stat") or return;
	my $line = <$file>;
	close($file);
	return defined $line && $line =~ /\) (\S) (\d+)/ ? ($1, $2) : ();
}

sub children
{
	my ($pid) = @_;

	return grep { my ($state, $of) = process($_); defined $of && $of == $pid }
	  map { m{(\d+)$} } glob('/proc/[0-9]*');
}

sub wait_gone
{
	my (@pids) = @_;

	foreach (1 .. 100 * $PostgreSQL::Test::Utils::timeout_default)
	{
		@pids = grep { (process($_))[0] // 'Z' ne 'Z' } @pids;
		return if !@pids;
		usleep(10_000);
	}
	die "processes @pids do not end";
}

# Kill the postmaster, and let the others find out or kill them as well.
sub kill_server
{
	my ($all) = @_;
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my @processes;

	# A stopped postmaster forks no process that the list lacks.  A postmaster does not
	# start while a process of another one uses its shared memory.
	kill('STOP', $postmaster);
	@processes = children($postmaster);
	$node->kill9;
	kill('KILL', @processes) if $all;
	wait_gone($postmaster, @processes);
	$node->start;
	return;
}

# What was committed before the crash, by the ids of transactions, and had not
# been published by then.
my $caught = q{
	WITH crash AS (SELECT ((x[1]::bigint << 32) + x[2]::bigint)::text::xid8 AS xid
		FROM pg_control_checkpoint(), string_to_array(next_xid, ':') AS x),
	tick AS (SELECT upto FROM tq_internal.tick, crash WHERE pg_snapshot_xmax(upto) < crash.xid
		ORDER BY last_id DESC LIMIT 1)
	SELECT count(*) FROM tq_internal.message AS m, tick, crash
	WHERE m.xid < crash.xid AND NOT pg_visible_in_snapshot(m.xid, tick.upto)};

# The publisher's process, once it is there; and what the crash has caught.
sub wait_publisher
{
	my ($other) = @_;

	foreach (1 .. 50 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my ($ok, $pid, $caught) = ask(worker_of($db) . " AND pid <> $other UNION ALL ($caught)");

		if ($ok && defined $caught)
		{
			chomp($pid, $caught);
			return ($pid, $caught);
		}
		usleep(20_000);
	}
	die 'the publisher does not come back';
}

my ($publisher) = wait_publisher(0);
my $killed = 0;
my $between = 0;
foreach my $round (1 .. $crashes)
{
	my $messages;

	usleep(20_000 + rand(400_000));
	if ($round % 4 == 0)
	{
		kill_server($round % 8 == 0);
		$killed++;
	}
	elsif (slurp("/proc/$publisher/cmdline") =~ /tq worker/)
	{
		$killed += kill('KILL', $publisher);
	}
	($publisher, $messages) = wait_publisher($publisher);
	$between++ if $messages > 0;
}
is($killed, $crashes, "the publisher or the server was killed $crashes times");
note("between commit and publication: $between times");
note('the log begins with message ', $node->safe_psql($db, 'SELECT min(id) FROM tq.messages(max => 1)'));
cmp_ok($between, '>', 0, 'between commit and publication, too');

# ---- the end ----

append_to_file($stop, '');
waitpid($_, 0) foreach @clients;
ok( $node->poll_query_until($db, q{
		SELECT NOT EXISTS (SELECT FROM tq.run_overview WHERE state = 'running')
		AND NOT EXISTS (SELECT FROM tq.task_details WHERE task_queue_id = 'p/late' AND resolved IS NULL)}),
	'everything that was claimed ends');
ok($node->poll_query_until($db, $published), 'everything is published');
append_to_file($finish, '');
waitpid($_, 0) foreach @readers;
is(violations($node, $db), '', 'tables are consistent');

# What the cursor got: each id once and upwards, and the same when it looks back.
my %seen;
my @cursor;
my ($last, $back_from, $back_to, %back) = (0);
my ($descending, $unseen, $changed, $vanished) = (0, 0, 0, 0);
foreach my $line (split /\n/, slurp_file("$tmp/cursor"))
{
	if ($line =~ /^back (\d+) (\d+)$/)
	{
		($back_from, $back_to, %back) = ($1, $2);
	}
	elsif ($line eq 'end')
	{
		# The oldest may have been dropped.
		my ($oldest) = sort { $a <=> $b } keys %back;

		$vanished += grep { $_ > $back_from && $_ <= $back_to && defined $oldest && $_ >= $oldest && !$back{$_} }
		  map { id_of($_) } @cursor > 300 ? @cursor[ -300 .. -1 ] : @cursor;
		undef $back_from;
	}
	elsif (defined $back_from)
	{
		my $id = id_of($line);

		$back{$id} = 1;
		$unseen++ unless exists $seen{$id};
		$changed++ if exists $seen{$id} && $seen{$id} ne $line;
	}
	else
	{
		my $id = id_of($line);

		$descending++ if $id <= $last;
		$last = $id;
		$seen{$id} = $line;
		push @cursor, $line;
	}
}
is($descending, 0, 'ids go upwards for the cursor');
is($unseen, 0, 'no message appears at or below an id that was read');
is($changed, 0, 'an id always is the same message');
is($vanished, 0, 'no message is taken back');

# What the subscription got.
my %fetched;
my $acked = 0;
my ($below, $other) = (0, 0);
($descending, $last) = (0, 0);
foreach my $line (split /\n/, slurp_file("$tmp/sub"))
{
	my $id = id_of($line);

	if ($line eq 'fetch')
	{
		$last = 0;
	}
	elsif ($line =~ /^acked (\d+)$/)
	{
		$acked = $1;
	}
	else
	{
		$descending++ if $id <= $last;
		$below++ if $id <= $acked;
		$other++ if exists $seen{$id} && $seen{$id} ne $line || exists $fetched{$id} && $fetched{$id} ne $line;
		$last = $id;
		$fetched{$id} = $line;
	}
}
is($descending, 0, 'ids go upwards for the subscription');
is($below, 0, 'nothing that was acknowledged is fetched again');
is($other, 0, 'the subscription and the cursor get the same under an id');

# Both against what the tables say has happened.
append_to_file("$tmp/cursor.rows", join('', map { "$_\n" } @cursor));
append_to_file("$tmp/sub.rows", join('', map { "$fetched{$_}\n" } sort { $a <=> $b } keys %fetched));
foreach my $reader (qw(cursor sub))
{
	$node->safe_psql($db, "CREATE TABLE $reader (id bigint, exchange text, subject text, run_id int, name text, digest text);"
		  . "\n\\copy $reader FROM '$tmp/$reader.rows' (DELIMITER '|', NULL '')");
}
$node->safe_psql($db, q{
	SET search_path = tq, tq_internal, public;
	CREATE TABLE public.history AS
	SELECT 'task-defined' AS exchange, task_id::text AS subject, NULL::int AS run_id, NULL::text AS name FROM task
	UNION ALL
	SELECT 'task-pending', task_id::text, run_id, NULL FROM run_overview WHERE reason_created <> 'exception'
	UNION ALL
	SELECT 'task-running', task_id::text, run_id, NULL FROM run_overview WHERE started IS NOT NULL
	UNION ALL
	SELECT 'artifact-created', task_id::text, run_id, a.name FROM artifact a JOIN task t ON t.id = a.task
	UNION ALL
	SELECT 'task-' || state, task_id::text, run_id, NULL FROM run_overview r
	WHERE state IN ('completed', 'failed', 'exception') AND NOT EXISTS (SELECT FROM run_overview n
		WHERE n.task_id = r.task_id AND n.run_id = r.run_id + 1 AND n.reason_created IN ('retry', 'task-retry'));
	ANALYZE public.history, public.cursor, public.sub});
note($node->safe_psql($db, 'SELECT exchange, count(*) FROM cursor GROUP BY 1 ORDER BY 1'));
cmp_ok($node->safe_psql($db, "SELECT count(DISTINCT exchange) FROM cursor"), '==', 8, 'every exchange had messages');

my $message = 'exchange, subject, run_id, name';
foreach my $reader (qw(cursor sub))
{
	my $wanted = join(', ', map { "'$_'" } @subscribed);

	is($node->safe_psql($db, "SELECT $message FROM history EXCEPT SELECT $message FROM $reader"),
		'', "$reader: no message of a committed transition is missing");
	is($node->safe_psql($db, "SELECT $message FROM $reader WHERE exchange IN ($wanted) EXCEPT SELECT $message FROM history"),
		'', "$reader: there is none of an aborted one");
	is($node->safe_psql($db, "SELECT $message FROM $reader WHERE exchange IN ($wanted) GROUP BY $message HAVING count(*) > 1"),
		'', "$reader: and each is in the log once");
}
is($node->safe_psql($db, "SELECT count(*) FROM sub WHERE exchange = 'task-group-resolved'"), 0,
	'sub: what it is not subscribed to is not in it');

# In order: what follows from something comes after it.
is($node->safe_psql($db, q{
		WITH step AS (
			SELECT *, CASE exchange WHEN 'task-defined' THEN -1 WHEN 'task-pending' THEN run_id * 4
				WHEN 'task-running' THEN run_id * 4 + 1 WHEN 'artifact-created' THEN run_id * 4 + 2
				ELSE run_id * 4 + 3 END AS step
			FROM cursor WHERE exchange <> 'task-group-resolved'
		), before AS (SELECT *, lag(step) OVER w AS before, lag(ARRAY[id::text, exchange, run_id::text]) OVER w AS previous
			FROM step WINDOW w AS (PARTITION BY subject ORDER BY id))
		SELECT id, exchange, run_id, subject, previous FROM before WHERE step < before
			-- which is allowed for a while
			AND NOT (exchange = 'artifact-created' AND previous[2] = 'task-exception' AND previous[3] = run_id::text)}),
	'', 'the messages of a task come in the order of its life');
is($node->safe_psql($db, q{
		SET search_path = tq, tq_internal, public;
		SELECT d.task_id FROM dependency e JOIN task r ON r.id = e.required JOIN task d ON d.id = e.dependent
			JOIN cursor p ON p.exchange = 'task-pending' AND p.subject = d.task_id::text AND p.run_id = 0
			JOIN run_overview o ON o.task_id = d.task_id AND o.run_id = 0 AND o.reason_created = 'scheduled'
		WHERE NOT EXISTS (SELECT FROM cursor f WHERE f.subject = r.task_id::text AND f.id < p.id
			AND f.exchange IN ('task-completed', 'task-failed', 'task-exception'))}),
	'', 'and a dependent becomes pending after what it waited for');

# A group: its message follows the resolution of the last task, and comes only
# after each task was resolved once.
$node->safe_psql($db, q{
	SET search_path = tq, tq_internal, public;
	CREATE TABLE public.groups AS
	SELECT o.task_group_id::text AS id, bool_and(f.first IS NOT NULL) AS resolved, max(f.first) AS first, max(f.last) AS last
	FROM task_details o LEFT JOIN (SELECT subject, min(id) AS first, max(id) AS last FROM cursor
		WHERE exchange IN ('task-completed', 'task-failed', 'task-exception') GROUP BY 1) AS f
		ON f.subject = o.task_id::text
	GROUP BY 1});
is($node->safe_psql($db, q{
		SELECT id FROM groups g WHERE resolved AND NOT EXISTS (SELECT FROM cursor c
			WHERE c.exchange = 'task-group-resolved' AND c.subject = g.id AND c.id > g.last)}),
	'', 'task-group-resolved follows the last resolution in each group');
is($node->safe_psql($db, q{
		SELECT c.id, c.subject FROM cursor c LEFT JOIN groups g ON g.id = c.subject
		WHERE c.exchange = 'task-group-resolved' AND (g.id IS NULL OR NOT g.resolved OR c.id < g.first)}),
	'', 'and none comes before');

is($node->safe_psql($db, 'SELECT lost_before FROM tq.subscription_overview'), '',
	'the subscription has lost nothing');

# ---- commits that do not wait for the disk ----

# A crash may take the last transactions, but an id that a cursor has read must
# not come again as that of another message: the cursor would read past it.
sub publish_one
{
	my $id = enqueue($node, $db);

	$node->poll_query_until($db, $published) or die 'nothing is published';
	return $id;
}

$node->safe_psql($db, $_) foreach 'ALTER SYSTEM SET synchronous_commit = off', "ALTER SYSTEM SET wal_writer_delay = '10s'";
$node->restart;
wait_publisher(0);
foreach my $round (1 .. 5)
{
	publish_one();
	my $read = $node->safe_psql($db, 'SELECT max(id) FROM tq.messages(after => greatest((SELECT max(last_id) FROM tq_internal.tick) - 500, 0))');
	kill_server(1);
	wait_publisher(0);
	my $task = publish_one();
	cmp_ok(
		$node->safe_psql($db, "SELECT min(id) FROM tq.messages(after => greatest($read - 500, 0)) WHERE payload #>> '{status,taskId}' = '$task'"),
		'>', $read, "asynchronous commit, crash $round: no id is given again");
}
unlike(slurp_file($node->logfile), qr/PANIC:|TRAP:|was terminated by signal (?!9)/, 'nothing else crashed');
$node->stop;

done_testing();
