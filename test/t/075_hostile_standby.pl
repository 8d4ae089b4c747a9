# Every function of tq on a standby and in a READ ONLY transaction: one that
# writes is refused with 25006 and a hint before it does anything, one that reads
# answers; and what it answers on a standby is what the primary answered when it
# was as far.  The functions, and a call of each, are those of src/sql/functions.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT session output);

my $primary = new_node('primary');
my $db = 'postgres';

$primary->safe_psql($db, 'CREATE EXTENSION tq');
wait_worker($primary, $db);

# ---- what there is to be read and written ----

my $slug = sub { (shift) . ('_' x 7) . 'QAGAAAAAAAAAAA' };
my ($pending, $running, $done, $dead, $late, $uploading, $new) = map { "'" . $slug->($_) . "'" } qw(p r d x l u n);

$primary->safe_psql($db, qq{
	SELECT tq.subscribe('sub', 'task-defined');
	SELECT tq.enqueue('p/d', task_id => $done), tq.enqueue('p/r', task_id => $running), tq.enqueue('p/u', task_id => $uploading),
		tq.enqueue('p/x', task_id => $dead, policy => '{"deadLetter": true}');
	SELECT count(*) FROM unnest('{d,r,u,x}'::text[]) AS q, tq.claim_work('p/' || q, 'g', 'w');
	SELECT tq.report_completed($done, 0, result => '1'), tq.report_failed($dead, 0);
	SELECT tq.create_artifact($running, 0, 'public/a', jsonb_build_object('storageType', 'inline', 'contentType', 'text/plain', 'content', 'x', 'expires', now() + interval '1 h'));
	SELECT tq.create_artifact($uploading, 0, 'public/a', jsonb_build_object('storageType', 'object', 'contentType', 'text/plain', 'uploadId', $new, 'expires', now() + interval '1 h'));
	SELECT tq.enqueue('p/w', task_id => $pending, task_group_id => $pending), tq.enqueue('p/w', task_id => $late, dependencies => ARRAY[${pending}::tq.slugid]);
	SELECT tq.claim_work('p/e', 'g', 'w');
});
$primary->poll_query_until($db, 'SELECT count(*) > 0 FROM tq.messages()') or die 'nothing is published';
my $message = $primary->safe_psql($db, 'SELECT min(id) FROM tq.messages()');
my $credentials = $primary->safe_psql($db, "SET tq.credentials = on; SELECT credentials FROM tq.reclaim_task($running, 0)");

# A task in each state that a sample needs, in a queue of their own, and a call of each
# function, by name; those that only compute are called with those that read.  Those
# that only the owner may call ask the launcher for something, and write nothing.
# Versions differ in what names the directory of the build.
my ($calls) = grep { -e } map { "$_/calls.sql" } ($ENV{TESTDIR} // "$ENV{TESTDATADIR}/..") . "/test", "$FindBin::RealBin/..";
my $samples = q{CREATE FUNCTION pg_temp.id(name text) RETURNS tq.slugid LANGUAGE sql IMMUTABLE AS $$ SELECT (rpad('s_' || name, 8, '_') || 'QAGAAAAAAAAAAA')::tq.slugid $$;
	} . "\\i '$calls'\n";
my (%write, %read, %owner);

$primary->safe_psql($db, "$samples SET cron.database_name = 'elsewhere'; SET client_min_messages = error; SELECT pg_temp.reach_all('p/s')");
foreach my $row (split /\n/, $primary->safe_psql($db, $samples . qq{
	SELECT c.schema || '.' || c.name, CASE WHEN c.needs IS NULL THEN 'owner' ELSE c.does END, CASE WHEN EXISTS (SELECT FROM pg_proc WHERE pronamespace = c.schema::regnamespace AND proname = c.name AND prokind = 'p') THEN 'CALL' ELSE 'SELECT * FROM' END
		|| format(' %s.%s(%s)', c.schema, c.name, pg_temp.fill(c.args, pg_temp.facts(c.state, 'p/s', jsonb_build_object('m', '$message'::text, 'credentials', '$credentials'::text))))
	FROM call AS c ORDER BY n}))
{
	my ($name, $does, $call) = split /\|/, $row, 3;
	my $list = $does eq 'owner' ? \%owner : $does eq 'writes' ? \%write : \%read;

	push @{ $list->{$name} }, $call;
}

# Other calls, where a name may be known or new, or a row there or not.
my %more = (
	create_tasks => ["('[]')"],
	enqueue => ["('p/w')", "('p/new')"],
	enqueue_tasks => ["('p/new', ARRAY['{}']::jsonb[])", "('p/w', '{}')"],
	schedule_cron => ["('cr', '* * * * *', 'p/w')", "('new', '* * * * *', 'p/new')"],
	fire_cron => ["('cr', '2026-01-01')"],
	purge => ["('p/d', older_than => '0')", "('p/new')"],
	delete_task => ["($late)"],
	schedule_task => ["($late)"],
	rerun_task => ["($done)"],
	add_dependencies => ["($late, ARRAY[$pending])"],
	reschedule_task => ["($pending)", "($pending, now() + interval '1 s')"],
	cancel_task => ["($pending)", "($done)"],
	change_task_priority => ["($pending, 'high')", "($pending, 'lowest')"],
	change_task_group_priority => ["($pending, 'high')"],
	seal_task_group => ["($pending)"],
	cancel_task_group => ["($pending)"],
	retry_task_group => ["($pending)"],
	on_group_resolved => ["($pending, 'p/w')", "($done, 'p/new')"],
	cancel_group_callbacks => ["($pending)", "($done, $pending)"],
	claim_work => ["('p/w', 'g', 'w')", "('p/new', 'g', 'w')", "('p/w', 'g', 'new')", "('p/e', 'g', 'w')", "('p/w', 'g', 'w', wait => '1 s')", "('p/new', 'g', 'w', wait => '1 s')",
		"('{p/w,p/*}'::text[], 'g', 'w')", "('{p/new,q/*}'::text[], 'g', 'w', wait => '1 s')"],
	claim_lines => ["('p/w', 'g', 'w')", "('p/new', 'g', 'w', wait => '1 s')", "('{p/w,p/*}'::text[], 'g', 'w')"],
	claim_task => ["($pending, 0, 'g', 'w')", "($pending, 0, 'g', 'new')"],
	reclaim_task => ["($running, 0)"],
	report_completed => ["($running, 0)", "($done, 0)"],
	rotate_secret => ['()', '(true)'],
	set_buckets => ["('{[0,512)}')", '(NULL)'],
	resolve => ["(ARRAY[${running}::tq.slugid], '{0}')", "('{}', '{}')", "('[]')"],
	resolve_lines => ["($running || E'\\t0\\n')", "('')"],
	resolve_and_claim => ["('[]', 'p/w', 'g', 'w')", "('[]', 'p/new', 'g', 'w')"],
	set_queue => ["('p/d', '{\"paused\": true}')", "('p/new', '{}')"],
	pause_queue => ["('p/d')", "('p/new')"],
	resume_queue => ["('p/d')", "('p/new')"],
	declare_worker => ["('p/d', 'g', 'w', '2100-01-01')", "('p/new', 'g', 'w', '2100-01-01')"],
	worker_removed => ["('p/d', 'g', 'w')", "('p/d', 'g', 'w', 'gone')"],
	finish_artifact => ["($uploading, 0, 'public/a', $new)"],
	redrive => ["($dead)"],
	redrive_queue => ["('p/x')", "('p/new')"],
	discard_dead_letter => ["($dead)"],
	bind => ["('c', 'task-defined')", "('tq_task_defined', 'task-defined')"],
	unbind => ["('tq_task_defined', 'task-defined')", "('c', 'task-defined')"],
	subscribe => ["('sub', 'task-defined')", "('other', 'task-defined')"],
	ack => ["('sub', $message)", "('sub', 0)"],
	cancel_tasks => ["('p/w')", "('p/new')"],
	move_tasks => ["('p/w', 'p/d')", "('p/new', 'p/newer')"],
	wait_for_work => ["('p/w')", "('p/new', '1 s')", "('{p/w,p/*}'::text[])", "('{q/*}'::text[], '1 s')"],
	result => ["($done)"],
	get_worker => ["('p/d', 'g', 'w')"],
	list_workers => ["('p/d')", "('p/new')"],
	get_task_queue => ["('p/d')"],
	list_pending_tasks => ["('p/w')", "('p/new')"],
	list_claimed_tasks => ["('p/d')", "('p/new')"],
	list_dead_letters => ["('p/x')"],
	task_queue_counts => ["('p/w')", "('p/new')"],
	get_artifact => ["($running, 0, 'public/a')"],
	messages => ['()'],
	why => ["($pending)", "($running)"],
	wait_for_task => ["($pending, '1 ms')"],
	wait_for_task_group => ["($pending, '1 ms')"],
);
foreach my $name (keys %more)
{
	my ($list) = grep { defined } map { $write{"$_.$name"} // $read{"$_.$name"} } qw(tq tq_internal);
	my ($begin) = $list->[0] =~ /^((?:CALL|SELECT \* FROM) \w+\.)/;

	push @$list, map { "$begin$name$_" } @{ $more{$name} };
}

# Functions that views call.
my %inner = (
	maintenance_activity => '()',
	published_id => '()',
	is_awaited => "('1', 1)",
	underived_message => '()',
	waiters => '()',
	background_workers => '()',
	local_time => "('2100-01-01')",
	expired_claims => '()',
	queue_counters => '()',
	queue_totals => '()',
	may_see_statements => '(10)',
	group_slug => "(NULL, $pending)",
	group_number => "($pending)",
	rate_until => '(1)',
	count_state => '()',
	clock_now => '()',
	cron_jobs => '()',
	cron_time_zone => '()',
);
$read{"tq_internal.$_"} = ["SELECT * FROM tq_internal.$_$inner{$_}"] foreach keys %inner;

# Answers that are of one server, or of the moment.
my %own = map { $_ => 1 } qw(tq.slugid tq_internal.slugid_in_bucket tq_internal.clock_now tq_internal.maintenance_activity tq.health tq.metrics tq.top tq_internal.waiters
  tq_internal.background_workers tq_internal.count_state tq_internal.expired_claims tq_internal.queue_counters tq_internal.queue_totals tq_internal.may_see_statements tq.report_html tq.group_gantt tq.critical_path tq.queue_history);

is_deeply([ sort grep { /^tq\./ } keys %write, keys %read, keys %owner ],
	[ sort split /\n/, $primary->safe_psql($db, q{SELECT DISTINCT 'tq.' || p.proname FROM pg_proc AS p WHERE p.pronamespace = 'tq'::regnamespace}) ],
	'every function of the catalog is in a list');

# What a worker does within a minute after its row was written is in the memory of the
# primary.
my $remembered = qr{workers?\('p/s'};

# What a call answers in a session of its own: SQLSTATE, the hint, and the whole error.
sub answer
{
	my ($node, $call, $before) = @_;
	my $session = session($node, $db);

	return ('ok', '', '') if eval { output($session, $_) foreach grep { defined } $before, $call; 1 };
	return ($session->state, $session->pg_error_field('hint') // '', $session->errstr);
}

sub is_refused
{
	my ($node, $name, $hint, $where, $before) = @_;
	my @wrong;

	foreach my $call (@{ $write{$name} })
	{
		my ($state, $said, $err) = answer($node, $call, $before);

		push @wrong, "$call: $state, $err" if $state ne '25006' || $said !~ $hint;
	}
	is_deeply(\@wrong, [], "$where: $name() is refused, with a hint");
}

sub is_answered
{
	my ($node, $name, $where, $before) = @_;
	my @wrong;

	foreach my $call (@{ $read{$name} })
	{
		my ($state, $said, $err) = answer($node, $call, $before);

		push @wrong, "$call: $state, $err" if $state ne 'ok';
	}
	is_deeply(\@wrong, [], "$where: $name() answers");
}

# ---- a standby ----

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));

is_refused($standby, $_, qr/Connect to the primary; target_session_attrs=read-write/, 'standby') foreach sort keys %write;
is_answered($standby, $_, 'standby') foreach sort keys %read;

# What each says, on both servers, in one session of each.
my %session_of;

sub said
{
	my ($node, $call) = @_;
	my $session = $session_of{ $node->name } //= session($node, $db);

	return eval { output($session, $call) } // $session->errstr;
}

foreach my $name (grep { !$own{$_} } sort keys %read)
{
	my @wrong = grep { said($standby, $_) ne said($primary, $_) } grep { !/$remembered/ } @{ $read{$name} };

	is_deeply(\@wrong, [], "standby: $name() says what the primary says");
}

# Views.  Counters and rates are of one server; on a standby rows are counted.
my %columns = (
	queue_stats => 'task_queue_id, pending, delayed, blocked, running, oldest, workers, workers_quarantined, workers_running, workers_idle',
	maintenance_overview => 'NULL',
	waiter_overview => 'NULL');
foreach my $view (split /\n/, $primary->safe_psql($db, q{SELECT relname FROM pg_class WHERE relnamespace = 'tq'::regnamespace AND relkind = 'v' ORDER BY 1}))
{
	my $select = "SELECT DISTINCT to_jsonb(v) FROM (SELECT @{[ $columns{$view} // '*' ]} FROM tq.$view) AS v ORDER BY 1";

	is(said($standby, $select), said($primary, $select), "standby: view $view shows what the primary shows");
}
is($standby->safe_psql($db, q{SELECT string_agg(DISTINCT source, ' ') FROM tq.queue_stats}), 'tables', 'standby: queues are counted');

# A wait there ends when the resolution has come.
$_->disconnect foreach values %session_of;
my $waiter = $standby->background_psql($db);
$waiter->set_query_timer_restart();
my $pid = $waiter->query_safe('SELECT pg_backend_pid()');
$waiter->query_until(qr/go/, "\\echo go\nCALL tq.wait_for_task($late, '1 h');\nCALL tq.wait_for_task_group($late, '1 h');\n\\echo gone\n");
ok($standby->poll_query_until($db, "SELECT query ~ 'CALL tq.wait_for_task' AND state = 'active' FROM pg_stat_activity WHERE pid = $pid"),
	'standby: a session waits for a task');
$primary->safe_psql($db, "SELECT tq.cancel_task($late)");
$waiter->query_until(qr/gone/, '');
is($waiter->{stderr}, '', 'standby: the wait ends when the task is resolved there');
$waiter->quit;

# A session that was connected to the primary before it became a standby has the
# functions' plans; so has one that has read before it writes.
my ($state, $hint) = answer($standby, "SELECT tq.report_completed($running, 0)", "SELECT tq.status($running)");
is($state, '25006', 'standby: refused after a call that reads, too');

# ---- READ ONLY ----

my $read_only = 'SET default_transaction_read_only = on';
is_refused($primary, $_, qr/READ WRITE/, 'read only', $read_only) foreach sort keys %write;
is_answered($primary, $_, 'read only', $read_only) foreach sort keys %read;
is($primary->safe_psql($db, "SELECT count(*) FROM tq_internal.queue WHERE task_queue_id = 'p/new'"), 0, 'nothing was written');
is($primary->safe_psql($db, "SELECT tq.status($running) ->> 'state', tq.status($pending) ->> 'state'"), 'running|pending', 'nor changed');

# ---- a healthy task beside it was served in time ----

my $healthy = enqueue($primary, $db, "deadline => '1 second'");
ok(wait_state($primary, $db, $healthy, 'exception'), 'a healthy task meets its deadline');
cmp_ok(lateness($primary, $db, $healthy, 0, q{(s ->> 'deadline')::timestamptz}), '<', 5, 'in time');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(state_of($standby, $db, $healthy), 'exception', 'and the standby shows it');
$standby->stop;
$primary->stop;

done_testing();
