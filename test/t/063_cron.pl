# Recurring tasks (doc/spec/policy.md 15) on the real pg_cron: jobs, a firing by
# the clock, roles, another database, a crash, a restore, upkeep.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT new_cron_node);

my $node = new_cron_node('max_worker_processes = 20');
my $db = 'postgres';

# Returns what one value of a query is.
sub value { return $node->safe_psql($db, shift, extra_params => ['-q']) }

# Returns the error of a statement: SQLSTATE, message, detail and hint.
sub error_of
{
	my ($statement, $where) = @_;
	my (undef, undef, $error) = $node->psql($where // $db, $statement, extra_params => ['-v', 'VERBOSITY=verbose'], on_error_stop => 1);
	return $error;
}

# ---------------------------------------------------------------------------
# Before CREATE EXTENSION pg_cron
# ---------------------------------------------------------------------------

$node->safe_psql($db, 'CREATE EXTENSION tq');
my $call = "SELECT * FROM tq.schedule_cron('report', '* * * * *', 'p/report')";
like(error_of($call), qr/55000: extension "pg_cron" does not exist.*HINT:  Run CREATE EXTENSION pg_cron/s, 'without the extension: an error');
$node->safe_psql($db, 'CREATE EXTENSION pg_cron');
my $seconds = $node->safe_psql($db, q{
	SELECT string_to_array(substring(extversion, '^[0-9.]*'), '.')::int[] >= '{1,5}' FROM pg_extension WHERE extname = 'pg_cron'}) eq 't';

# ---------------------------------------------------------------------------
# A firing by the clock, as the caller's role.  It is awaited at the end.
# ---------------------------------------------------------------------------

$node->safe_psql($db, q{
	CREATE ROLE app LOGIN;
	CREATE ROLE other LOGIN;
	CREATE ROLE boss LOGIN IN ROLE tq_admin;
	CREATE ROLE mute NOLOGIN IN ROLE tq_producer;
	SELECT tq.grant_queue('app', 'p/*', 'produce'), tq.grant_queue('other', 'p/*', 'produce')});
my $often = $seconds ? '1 second' : '* * * * *';
# pg_cron sees what is committed.
my @made = split /\n/, value("BEGIN; SET ROLE app; SELECT name, schedule, active, owner, job_id IS NOT NULL, command FROM tq.schedule_cron('real', '$often', 'p/real',
		'{\"at\": \"\$scheduled\", \"list\": [\"\$name\", \"\$\$name\", \"\$names\"]}', retries => 2, deadline => '2 hours 30 minutes', tags => '{\"a\": \"b\"}');
	RESET ROLE; SELECT jobname, username, database, schedule, command, active FROM cron.job; SELECT count(*) FROM tq_internal.task; COMMIT");
is($made[0], "real|$often|t|app|t|", 'a row comes back');
is($made[1], "tq:real|app|$db|$often|SELECT tq_internal.fire_cron('real')|t", 'the job runs as the caller');
is($made[2], 0, 'nothing was created yet');

# One that fails.
$node->safe_psql($db, "BEGIN; SELECT tq.schedule_cron('fails', '$often', 'p/fails');
	UPDATE tq_internal.cron SET options = '{\"retries\": \"1000\"}' WHERE name = 'fails'; COMMIT");

$node->safe_psql($db, "SELECT cron.schedule('tq upkeep', '$often', 'SELECT tq.upkeep()')");
is(value("SELECT jobname, username, schedule, command FROM cron.job WHERE jobname = 'tq upkeep'"),
	'tq upkeep|postgres|' . $often . '|SELECT tq.upkeep()', 'a job calls upkeep()');
my $late = enqueue($node, $db, "deadline => '100 ms'");

# ---------------------------------------------------------------------------
# Errors of a schedule
# ---------------------------------------------------------------------------

(undef, undef, my $zone) = $node->psql($db, "SET TimeZone = 'Asia/Tokyo'; SELECT tq.schedule_cron('zone', '0 3 * * *', 'p/q')");
like($zone, qr/NOTICE:  schedule "0 3 \* \* \*" is read in time zone GMT, and not in Asia\/Tokyo as this session\nDETAIL:  It fires next at \d{4}-\d\d-\d\d 12:00:00\+09\.\nHINT:  (pg_cron before 1.5 knows GMT only|Give the hours in that time zone)/, 'the time zone is said');
(undef, undef, $zone) = $node->psql($db, "SET TimeZone = 'Asia/Tokyo'; SELECT tq.schedule_cron('zone', '*/7 * * * *', 'p/q'); SELECT tq.unschedule_cron('zone')");
is($zone, '', 'but not where it does not matter');
my $refused = error_of("SELECT tq.schedule_cron('bad', '61 * * * *', 'p/q')");
like($refused, qr/TQ400: invalid schedule "61 \* \* \* \*".*HINT:  Give five fields/s, 'a schedule that is none');
$refused = error_of("SELECT tq.schedule_cron('bad', '30 seconds', 'p/q')");
if ($seconds)
{
	is($refused, '', 'seconds are a schedule');
	$node->safe_psql($db, "SELECT tq.unschedule_cron('bad')");
}
else
{
	like($refused, qr/TQ400: invalid schedule.*Before version 1.5 the shortest interval is a minute/s, 'seconds need a newer pg_cron');
}
is(value("SELECT count(*) FROM tq_internal.cron WHERE name = 'bad'"), 0, 'nothing is left of it');

# ---------------------------------------------------------------------------
# Change, pause, resume, unschedule
# ---------------------------------------------------------------------------

$node->safe_psql($db, "SET ROLE app; SELECT tq.schedule_cron('a', '0 6 1 1 *', 'p/a')");
my $job = value("SELECT job_id FROM tq.cron_overview WHERE name = 'a'");
is(value("SET ROLE app; SELECT schedule, job_id FROM tq.schedule_cron('a', '0 7 1 1 *', 'p/b')"), "0 7 1 1 *|$job", 'a definition is replaced');
is(value("SELECT schedule, active FROM cron.job WHERE jobid = $job"), '0 7 1 1 *|t', 'and its job');
is(value("SET ROLE app; SELECT active FROM tq.pause_cron('a')"), 'f', 'pause');
is(value("SELECT active FROM cron.job WHERE jobid = $job"), 'f', 'its job is not active');
is(value("SET ROLE app; SELECT tq_internal.fire_cron('a')"), '', 'a firing does nothing meanwhile');
is(value("SELECT active, time_zone, last_task_id FROM tq.cron_overview WHERE name = 'a'"), 'f|GMT|', 'the view shows it');
is(value("SET ROLE boss; SELECT active, job_id FROM tq.resume_cron('a', 'app')"), "t|$job", 'an admin resumes it');
$node->safe_psql($db, "DELETE FROM cron.job WHERE jobid = $job");
is(value("SELECT active FROM tq.cron_overview WHERE name = 'a'"), '', 'a job that is missing');
isnt(value("SET ROLE app; SELECT job_id FROM tq.resume_cron('a')"), $job, 'is made again by resume_cron()');
is(value("SELECT username || ' ' || active FROM cron.job WHERE jobname = 'tq:a'"), 'app true', 'as its owner');

like(error_of("SET ROLE other; SELECT tq.unschedule_cron('a')"), qr/TQ403: scopes are not sufficient/, 'another role has none of that name');
like(error_of("SET ROLE other; SELECT tq_internal.fire_cron('a')"), qr/TQ403/, 'nor fire it');
is(value("SET ROLE other; SELECT owner, job_id <> $job FROM tq.schedule_cron('a', '0 8 1 1 *', 'p/theirs')"), 'other|t', 'it can have one of the same name');
is(value("SELECT string_agg(username || ' ' || schedule || ' ' || command, ', ' ORDER BY username) FROM cron.job WHERE jobname = 'tq:a'"),
	q{app 0 7 1 1 * SELECT tq_internal.fire_cron('a'), other 0 8 1 1 * SELECT tq_internal.fire_cron('a')}, 'each has its job');
is(value("SET ROLE boss; SELECT DISTINCT time_zone FROM tq.cron_overview WHERE name = 'a'"), 'GMT', 'an admin who may not read all settings sees it');
is(value("SELECT string_agg(owner || ' ' || active || ' ' || (job_id IS NOT NULL), ', ' ORDER BY owner) FROM tq.cron_overview WHERE name = 'a'"), 'app true true, other true true', 'the view has both');
is(value("SET ROLE other; SELECT name FROM tq.unschedule_cron('a')"), 'a', 'it ends its own');
is(value("SELECT username FROM cron.job WHERE jobname = 'tq:a'"), 'app', 'and no other');

like(error_of("SET ROLE mute; SELECT tq.schedule_cron('mute', '0 7 1 1 *', 'p/b')"), qr/55000: role "mute" cannot log in/, 'an owner must be able to log in');

# Rights are those of the owner, at the time of the firing.
is(value("SET ROLE boss; SELECT tq.run_cron_now('a', 'app') IS NOT NULL"), 't', 'an admin runs it');
$node->safe_psql($db, "SELECT tq.revoke_queue('app', 'p/*', 'produce'), tq.grant_queue('app', 'p/real', 'produce')");
like(error_of("SET ROLE boss; SELECT tq.run_cron_now('a', 'app')"), qr/TQ403/, 'with the rights of the owner, not of the admin');
is(value("SET ROLE boss; SELECT active, job_id FROM tq.unschedule_cron('a', 'app')"), 'f|', 'an admin unschedules it');
is(value("SELECT count(*) FROM cron.job WHERE jobname = 'tq:a'"), 0, 'its job is gone');
like(error_of("SELECT tq.unschedule_cron('a')"), qr/TQ404: recurring task "a" does not exist/, 'and it too');

# A queue without a slash, from the schedule to the claim.
is(value("SET ROLE boss; SELECT name FROM tq.schedule_cron('plain', '0 6 1 1 *', 'mailers')"), 'plain', 'a queue without a slash');
is(value("SELECT task_queue_id FROM tq.cron_overview WHERE name = 'plain'"), '-/mailers', 'the view has its whole name');
my $plain = value("SET ROLE boss; SELECT tq.run_cron_now('plain')");
is(value("SELECT task_id FROM tq.claim_work('mailers', 'g', 'w')"), $plain, 'a worker of the queue gets the task');
is(value("SET ROLE boss; SELECT name FROM tq.unschedule_cron('plain')"), 'plain', 'unscheduled');

# A role that is dropped leaves its jobs.
$node->safe_psql($db, "CREATE ROLE gone LOGIN IN ROLE tq_producer; SET ROLE gone;
	SELECT tq.schedule_cron('left', '0 6 1 1 *', 'p/left'), tq.schedule_cron('taken', '0 6 1 1 *', 'p/taken'); RESET ROLE; DROP ROLE gone");
like(value("SELECT owner, active FROM tq.cron_overview WHERE name = 'left'"), qr/^unknown.*\|$/, 'without its role it has no job');
is(value("SELECT count(*) FROM cron.job WHERE username = 'gone'"), 2, 'pg_cron keeps the jobs');
is(value("SET ROLE boss; SELECT name, command FROM tq.unschedule_cron('left', (SELECT owner FROM tq.cron_overview WHERE name = 'left'))"), 'left|', 'an admin unschedules it');
is(value("SELECT jobname FROM cron.job WHERE username = 'gone'"), 'tq:taken', 'and its job is gone');
$node->safe_psql($db, "DELETE FROM tq_internal.cron WHERE name = 'taken'");
is(value("SET ROLE app; SELECT name FROM tq.schedule_cron('taken', '0 6 1 1 *', 'p/real')"), 'taken', 'another role takes a name, as after a restore');
is(value("SELECT username FROM cron.job WHERE jobname = 'tq:taken'"), 'app', 'and the job that was left is gone');
$node->safe_psql($db, "SET ROLE app; SELECT tq.unschedule_cron('taken')");

# ---------------------------------------------------------------------------
# Another database than that of pg_cron
# ---------------------------------------------------------------------------

$node->safe_psql($db, 'CREATE DATABASE elsewhere');
$node->safe_psql('elsewhere', 'CREATE EXTENSION tq');
$node->safe_psql('elsewhere', q{SELECT tq.grant_queue('app', 'p/*', 'produce')});
my ($out, $notice);
$node->psql('elsewhere', "SET ROLE app; SELECT job_id, command FROM tq.schedule_cron('it''s', '$often', 'p/far')", stdout => \$out, stderr => \$notice);
my (undef, $command) = split /\|/, $out, 2;
is($command, "SELECT cron.schedule_in_database('tq:it''s', '$often', 'SELECT tq_internal.fire_cron(''it''''s'')', 'elsewhere', 'app')",
	'in another database: the command to run');
like($notice, qr/NOTICE:  pg_cron is in database "postgres".*HINT:  Run there as a superuser: \Q$command\E/s, 'and a notice that says so');
$node->safe_psql($db, $command);
is($node->safe_psql('elsewhere', "SELECT active, time_zone, log_status FROM tq.cron_overview"), '|GMT|', 'the view has no log there');

# ---------------------------------------------------------------------------
# A crash, and a restore
# ---------------------------------------------------------------------------

$node->safe_psql($db, "SELECT tq.schedule_cron('once', '0 6 1 1 *', 'p/once')");
my $minute = '2026-01-01 06:00:17+00';
my $task = value("SELECT tq_internal.fire_cron('once', '$minute')");
is(value("SELECT tq_internal.fire_cron('once', '2026-01-01 06:00:59.9+00')"), $task, 'a second firing of the minute: the same task');
isnt(value("SELECT tq_internal.fire_cron('once', '2026-01-01 06:01:00+00')"), $task, 'another minute: another one');

# One that is not committed when the server crashes.
my $session = $node->background_psql($db);
my $lost = $session->query_safe("BEGIN; SELECT tq_internal.fire_cron('once', '2026-01-02 06:00+00')");
$node->stop('immediate');
$node->start;
eval { $session->quit };
is(value("SELECT tq_internal.fire_cron('once', '$minute')"), $task, 'after a crash: the same task');
is(value("SELECT tq_internal.fire_cron('once', '2026-01-02 06:00+00')"), $lost, 'one that the crash has undone is made again, with the same id');
is(value("SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'p/once'"), 3, 'each is there once');

$node->command_ok(['pg_dump', '-Fc', '-f', "$PostgreSQL::Test::Utils::tmp_check/cron.dump", '--extension=tq', '-d', $node->connstr($db)], 'dump');
$node->safe_psql($db, 'CREATE DATABASE copy');
$node->command_ok(['pg_restore', '-d', $node->connstr('copy'), "$PostgreSQL::Test::Utils::tmp_check/cron.dump"], 'restore');
is($node->safe_psql('copy', "SELECT tq_internal.fire_cron('once', '$minute')"), $task, 'in a copy: the same task');
is($node->safe_psql('copy', "SELECT name, owner, last_task_id IS NOT NULL FROM tq.cron_overview WHERE name = 'once'"), 'once|postgres|t', 'with its owner');
($out, $notice) = ('', '');
$node->psql('copy', "SELECT command FROM tq.resume_cron('once')", stdout => \$out, stderr => \$notice);
like($out, qr/'copy', 'postgres'\)$/, 'resume_cron() says how to have it fire there');

# ---------------------------------------------------------------------------
# What the clock has done
# ---------------------------------------------------------------------------

my $real = q{SELECT task_id FROM tq.task_overview WHERE task_queue_id = 'p/real' LIMIT 1};
# Twice, as one wait may be as short as the minute between two firings.
ok($node->poll_query_until($db, "SELECT EXISTS ($real)") || $node->poll_query_until($db, "SELECT EXISTS ($real)"), 'pg_cron has fired');
is(value(qq{SELECT d.payload - 'at', date_trunc('minute', (d.payload ->> 'at')::timestamptz) <= now(), t.task ->> 'retries', t.task -> 'tags',
		(t.task ->> 'deadline')::timestamptz - (t.task ->> 'created')::timestamptz, t.task #>> '{metadata,name}'
	FROM ($real) r, tq.tasks(ARRAY[r.task_id]) t, LATERAL (SELECT t.task -> 'payload' AS payload) d}),
	'{"list": ["real", "$name", "$names"]}|t|2|{"a": "b"}|02:30:00|real', 'the task is what was asked for');
ok($node->poll_query_until($db, "SELECT log_status = 'succeeded' AND last_state = 'pending' AND last_fired >= last_scheduled AND active
	FROM tq.cron_overview WHERE name = 'real'"), 'the view shows the firing and the log of pg_cron');
ok($node->poll_query_until('elsewhere', "SELECT last_state = 'pending' FROM tq.cron_overview") ||
	$node->poll_query_until('elsewhere', "SELECT last_state = 'pending' FROM tq.cron_overview"), 'it has fired in the other database');
ok(wait_state($node, $db, $late, 'exception') || wait_state($node, $db, $late, 'exception'), 'it calls upkeep()');
# pg_cron 1.6 starts again after DROP ROLE, above, and after the crash: what ran then counts as failed.
is(value("SELECT count(*) FROM cron.job_run_details WHERE status = 'failed' AND command NOT LIKE '%fails%' AND return_message <> 'server restarted'"), 0, 'no other call has failed');

# An error of a firing is in the log.
ok($node->poll_query_until($db, "SELECT log_status = 'failed' AND log_message LIKE '%retries%' AND last_fired IS NULL FROM tq.cron_overview WHERE name = 'fails'"),
	'an error is in the log');

# ---------------------------------------------------------------------------
# Without pg_cron
# ---------------------------------------------------------------------------

$node->safe_psql($db, 'DROP EXTENSION pg_cron CASCADE');
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
like(error_of($call), qr/55000: pg_cron is not available.*HINT:  Install it \(in Debian postgresql-VERSION-cron\), add pg_cron to shared_preload_libraries, set cron.database_name = 'postgres'/s,
	'without pg_cron: an error that says what to do');
is(value("SELECT time_zone, active FROM tq.cron_overview WHERE name = 'once'"), '|', 'the view still works');
is(value("SELECT tq_internal.fire_cron('once', '$minute')"), $task, 'and firings by hand');

$node->stop;
done_testing();
