# Every function of tq on a standby and in a READ ONLY transaction: one that
# writes is refused with 25006 and a hint before it does anything, one that reads
# answers; and what it answers on a standby is what the primary answered when it
# was as far.  The functions are those of the catalog, so that none is forgotten.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

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
my $definition = q{jsonb_build_object('taskQueueId', 'p/n', 'payload', '{}'::jsonb, 'created', clock_timestamp(), 'deadline', clock_timestamp() + interval '1 day',
	'metadata', '{"name": "n", "description": "d", "owner": "o", "source": "https://example.com"}'::jsonb)};

# A call of each function that writes, with arguments that are right; where a
# name may be known or new, both.
my %write = (
	create_task => "($new, $definition)",
	create_tasks => ["(jsonb_build_array(jsonb_build_object('taskId', $new, 'task', $definition)))", "('[]')"],
	define_task => "($new, $definition)",
	enqueue => ["('p/w')", "('p/new')"],
	enqueue_tasks => ["('p/new', ARRAY['{}']::jsonb[])", "('p/w', '{}')"],
	schedule_cron => ["('cr', '* * * * *', 'p/w')", "('new', '* * * * *', 'p/new')"],
	run_cron_now => "('cr')",
	fire_cron => ["('cr')", "('cr', '2026-01-01')"],
	pause_cron => "('cr')",
	resume_cron => "('cr')",
	unschedule_cron => "('cr')",
	install_cron_upkeep => '()',
	delete_task => "($late)",
	purge => ["('p/d', older_than => '0')", "('p/new')"],
	schedule_task => "($late)",
	rerun_task => "($done)",
	add_dependencies => "($late, ARRAY[$pending])",
	reschedule_task => ["($pending)", "($pending, now() + interval '1 s')"],
	cancel_task => ["($pending)", "($done)"],
	skip_task => "($pending)",
	change_task_priority => ["($pending, 'high')", "($pending, 'lowest')"],
	change_task_group_priority => "($pending, 'high')",
	seal_task_group => "($pending)",
	on_group_resolved => ["($pending, 'p/w')", "($done, 'p/new')"],
	cancel_group_callbacks => ["($pending)", "($done, $pending)"],
	cancel_task_group => "($pending)",
	retry_task_group => "($pending)",
	claim_work => ["('p/w', 'g', 'w')", "('p/new', 'g', 'w')", "('p/w', 'g', 'new')", "('p/e', 'g', 'w')", "('p/w', 'g', 'w', wait => '1 s')", "('p/new', 'g', 'w', wait => '1 s')",
		"('{p/w,p/*}'::text[], 'g', 'w')", "('{p/new,q/*}'::text[], 'g', 'w', wait => '1 s')"],
	claim_lines => ["('p/w', 'g', 'w')", "('p/new', 'g', 'w', wait => '1 s')", "('{p/w,p/*}'::text[], 'g', 'w')"],
	claim_task => ["($pending, 0, 'g', 'w')", "($pending, 0, 'g', 'new')"],
	reclaim_task => "($running, 0)",
	report_completed => ["($running, 0)", "($done, 0)"],
	report_failed => "($running, 0)",
	report_exception => "($running, 0, 'worker-shutdown')",
	defer_task => "($running, 0, '1 s')",
	report_progress => "($running, 0, 1, 2)",
	rotate_secret => ['()', '(true)'],
	set_buckets => ["('{[0,512)}')", '(NULL)'],
	buckets_settled => "('3')",
	resolve => ["(ARRAY[${running}::tq.slugid], '{0}')", "('{}', '{}')", "('[]')"],
	resolve_lines => ["($running || E'\\t0\\n')", "('')"],
	resolve_and_claim => ["('[]', 'p/w', 'g', 'w')", "('[]', 'p/new', 'g', 'w')"],
	set_queue => ["('p/d', '{\"paused\": true}')", "('p/new', '{}')"],
	pause_queue => ["('p/d')", "('p/new')"],
	resume_queue => ["('p/d')", "('p/new')"],
	quarantine_worker => "('p', 'd', 'g', 'w', '2100-01-01')",
	declare_worker => ["('p', 'd', 'g', 'w', '2100-01-01')", "('p', 'new', 'g', 'w', '2100-01-01')"],
	worker_removed => ["('p', 'd', 'g', 'w')", "('p', 'd', 'g', 'w', 'gone')"],
	create_artifact => "($running, 0, 'public/b', jsonb_build_object('storageType', 'inline', 'contentType', 'text/plain', 'content', 'x', 'expires', now() + interval '1 h'))",
	finish_artifact => "($uploading, 0, 'public/a', $new)",
	redrive => "($dead)",
	redrive_queue => ["('p/x')", "('p/new')"],
	discard_dead_letter => "($dead)",
	bind => ["('c', 'task-defined')", "('tq_task_defined', 'task-defined')"],
	unbind => ["('tq_task_defined', 'task-defined')", "('c', 'task-defined')"],
	subscribe => ["('sub', 'task-defined')", "('other', 'task-defined')"],
	unsubscribe => "('sub')",
	ack => ["('sub', $message)", "('sub', 0)"],
	upkeep => '()',
	reset_queue_stats => '()',
	grant_scopes => "('pg_monitor', '{a:b}')",
	revoke_scopes => "('pg_monitor', '{a:b}')",
	grant_queue => "('pg_monitor', 'p/*', 'read')",
	revoke_queue => "('pg_monitor', 'p/*', 'read')",
	cancel_tasks => ["('p/w')", "('p/new')"],
	move_tasks => ["('p/w', 'p/d')", "('p/new', 'p/newer')"],
	wait_for_work => ["('p/w')", "('p/new', '1 s')", "('{p/w,p/*}'::text[])", "('{q/*}'::text[], '1 s')"],
);

# A call of each function that reads.
my %read = (
	assume => "('$credentials')",
	status => "($pending)",
	task => "($pending)",
	statuses => "(ARRAY[${pending}::tq.slugid])",
	tasks => "(ARRAY[${pending}::tq.slugid])",
	result => "($done)",
	dependency_results => "($late)",
	list_dependent_tasks => "($pending)",
	get_task_group => "($pending)",
	list_task_group => "($pending)",
	group_progress => "($pending)",
	report_html => "($pending)",
	group_gantt => "($pending)",
	group_tree => "($pending)",
	group_dot => "($pending)",
	group_mermaid => "($pending)",
	published_id => '()',
	get_worker => "('p', 'd', 'g', 'w')",
	list_workers => ["('p', 'd')", "('p', 'new')"],
	get_task_queue => "('p/d')",
	get_queue_settings => ["('p/d')", "('p/unknown')"],
	get_worker_type => "('p', 'd')",
	get_provisioner => "('p')",
	list_task_queues => '()',
	list_worker_types => "('p')",
	list_provisioners => '()',
	list_pending_tasks => ["('p/w')", "('p/new')"],
	list_claimed_tasks => ["('p/d')", "('p/new')"],
	list_dead_letters => "('p/x')",
	conductor_policy => "('{}')",
	taskbroker_policy => "('{}')",
	conductor_status => "($pending)",
	taskbroker_status => "($pending)",
	pending_tasks => ["('p/w')", "('p/new')"],
	task_queue_counts => ["('p/w')", "('p/new')"],
	get_artifact => "($running, 0, 'public/a')",
	get_latest_artifact => "($running, 'public/a')",
	artifact_info => "($running, 0, 'public/a')",
	latest_artifact_info => "($running, 'public/a')",
	list_artifacts => "($running, 0)",
	list_latest_artifacts => "($running)",
	messages => '()',
	message => "($message)",
	fetch => "('sub')",
	is_awaited => "('1')",
	maintenance_activity => '()',
	why => ["($pending)", "($running)"],
	status_row => "($pending)",
	queue_counts => ["('p/w')", "('p/new')"],
	health => '()',
	top => '()',
	waiters => '()',
	background_workers => '()',
	local_time => "('2100-01-01')",
	expired_claims => '()',
	queue_counters => '()',
	current_scopes => '()',
	may_see_statements => '(10)',
	group_slug => "(NULL, $pending)",
	group_number => "($pending)",
	rate_until => '(1)',
	count_state => '()',
	clock_now => '()',
	cron_jobs => '()',
	cron_time_zone => '()',
	wait_for_task => "($pending, '1 ms')",
	wait_for_task_group => "($pending, '1 ms')",
	slugid => '()',
	slugid_in_bucket => '(7)',
	buckets => '()',
	bucket_counts => '()',
	has_task => "($pending)",
	has_task_group => "($pending)",
);

# Answers that are of one server, or of the moment.
my %own = map { $_ => 1 } qw(slugid slugid_in_bucket clock_now maintenance_activity health top waiters background_workers count_state
  expired_claims queue_counters may_see_statements report_html group_gantt);

# For a superuser: it asks the launcher for a maintenance worker and writes nothing.
my %neither = map { $_ => 1 } qw(start_maintenance slugid_eq_support);

my @functions = split /\n/, $primary->safe_psql($db, q{
	SELECT concat_ws(' ', p.proname, p.prokind, p.pronamespace::regnamespace) FROM pg_proc AS p WHERE p.pronamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace)
		AND p.provolatile <> 'i' AND p.prorettype <> 'trigger'::regtype
		AND NOT (p.pronamespace = 'tq_internal'::regnamespace AND (p.prosrc ~ '^tq_(sql|body)_' OR p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql')))	-- only bodies of functions call these
	ORDER BY 1});
my (%kind, %schema);
foreach my $function (@functions)
{
	my ($name, $kind, $schema) = split / /, $function;

	($kind{$name}, $schema{$name}) = ($kind, $schema);
}
is_deeply([ sort keys %kind ], [ sort keys %write, keys %read, keys %neither ], 'every function of the catalog is in a list');

sub calls
{
	my ($name, $arguments) = @_;
	my $verb = $kind{$name} eq 'p' ? 'CALL ' : 'SELECT * FROM ';

	return map { "$verb$schema{$name}.$name$_" } ref $arguments ? @$arguments : $arguments;
}

# What a call answers: SQLSTATE and, if it has one, the hint.
sub answer
{
	my ($node, $call, $before) = @_;
	my ($status, $out, $err) = $node->psql($db, "\\set VERBOSITY verbose\n" . ($before // '') . ";\n$call");
	my ($state) = $err =~ /ERROR:  (\w{5}): /;
	my ($hint) = $err =~ /HINT:  (.*)/;

	return ($state // 'ok', $hint // '', $err);
}

sub is_refused
{
	my ($node, $name, $hint, $where, $before) = @_;
	my @wrong;

	foreach my $call (calls($name, $write{$name}))
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

	foreach my $call (calls($name, $read{$name}))
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

# What each says, on both servers.
sub said
{
	my ($node, $call) = @_;
	my ($status, $out, $err) = $node->psql($db, $call);

	return $out . $err;
}

foreach my $name (grep { !$own{$_} } sort keys %read)
{
	my @wrong = grep { said($standby, $_) ne said($primary, $_) } calls($name, $read{$name});

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
