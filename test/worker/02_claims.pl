#!/usr/bin/perl
# 02_claims.pl
#	  Claims are kept, and what is lost is stopped; how a worker ends.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::Bin;
use Worker;
use Test::More;
use Time::HiRes qw(time);

start_server();

# Says where it is, and goes on until it may end.
my $long = command('long', <<"SH");
echo \$\$ >"$folder/\$1.pid.new"; mv "$folder/\$1.pid.new" "$folder/\$1.pid"
while [ ! -e "$folder/\$1.go" ]; do sleep 0.05; done
SH
my $stubborn = command('stubborn', "trap '' TERM\n. $long\n");
sub pid_of { my ($name) = @_; my $pid; wait_for { ($pid) = slurp(file("$name.pid")) =~ /^(\d+)$/ } "$name to begin"; return $pid; }
sub is_gone { my ($pid) = @_; return wait_for { !kill 0 => $pid } "the end of $pid"; }
sub go { spew(file("$_[0].go"), ''); return; }
my $n = 0;

sub long_task
{
	my ($queue, %arguments) = @_;
	my $name = 'n' . ++$n;

	return ($name, task($queue, qq({"name": "$name"}), %arguments));
}
my @long = ($long, '{payload.name}');

# ---- a claim is prolonged ----

my $w = begin('-q', 't/keep', '--claim-for', '2 s', @long);
ok(wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%claim_work%' AND state = 'active' AND application_name LIKE '%$w->{id}'
	AND clock_timestamp() - query_start > interval '3 s')"), 'a worker waits longer than its claims last');
my ($name, $id) = long_task('t/keep');
pid_of($name);
ok(wait_until("(tq.status('$id') #>> '{runs,0,takenUntil}')::timestamptz > (tq.status('$id') #>> '{runs,0,started}')::timestamptz + interval '4 s'"), 'a claim is prolonged');
go($name);
ok(wait_until("tq.status('$id') ->> 'state' = 'completed'"), 'a run that outlives its first claim is completed');
is(row("SELECT jsonb_array_length(tq.status('$id') -> 'runs')"), 1, '... as its first run');

# ---- a cancel, a lost claim ----

($name, $id) = long_task('t/keep');
my $pid = pid_of($name);
ok(wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'LISTEN%')"), 'a command that lasts has the worker listen');
sql("SELECT tq.cancel_task('$id')");
ok(is_gone($pid), 'a cancel ends the command');
is(state($id), 'exception canceled', '... and is not reported as a failure');
($name, $id) = long_task('t/keep');
$pid = pid_of($name);
sql("SELECT tq.worker_removed('t/keep', 'tq-worker', '$w->{id}')");
ok(is_gone($pid), 'so does a lost claim');
go($name);	# the worker may have the next run of it
is(end_of($w, 'TERM'), 0, 'SIGTERM ends a worker with 0');

# ---- a notification, which any role can send ----

$w = begin('-q', 't/doubt', '--claim-for', '1 hour', @long);
($name, $id) = long_task('t/doubt');
$pid = pid_of($name);
wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND application_name LIKE '%$w->{id}')");
my $until = "tq.status('$id') #>> '{runs,0,takenUntil}'";
my $taken = row("SELECT $until");
sql('CREATE ROLE stranger LOGIN');
sql(qq(SET ROLE stranger; SELECT pg_notify('tq_worker_tq-worker/$w->{id}', '{"runId": 0, "reason": "canceled", "taskId": "$id", "n": ' || i || '}') FROM generate_series(1, 50) i));
ok(wait_until("$until > '$taken'"), 'a notification has the worker look');
is((kill 0 => $pid) . ' ' . state($id), '1 running', '... and ends no command');
sql("SELECT tq.cancel_task('$id')");
my $begin = time;
ok(is_gone($pid), '... which a cancel ends');
cmp_ok(time - $begin, '<', 60, '... long before the worker would look by itself');
ok(said($w, qr/is taken from this worker: .*canceled/), '... and the worker says why');
is(end_of($w, 'TERM'), 0, '... and ends');

# ---- commands that do not want to end ----

$w = begin('-q', 't/stubborn', '--kill-after', '300ms', $stubborn, '{payload.name}');
($name, $id) = long_task('t/stubborn');
$pid = pid_of($name);
sql("SELECT tq.cancel_task('$id')");
ok(is_gone($pid), 'a command that ignores SIGTERM is killed');
end_of($w, 'TERM');

# ---- connections that are lost ----

sub terminate { return rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tq-worker%'"); }
$w = begin('-q', 't/lost', '--claim-for', '20 s', @long);
($name, $id) = long_task('t/lost');
$pid = pid_of($name);
ok(wait_for { terminate() > 1 } 'two connections');
ok(wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE application_name LIKE 'tq-worker%' AND (query LIKE 'LISTEN%' OR query LIKE '%reclaim%'))"), 'a connection that is terminated is made again');
ok(kill(0 => $pid), '... and the command goes on');
pg_ctl('-m', 'immediate', 'restart');
ok(kill(0 => $pid), 'it does when the server is restarted');
pg_ctl('-m', 'immediate', 'stop');
go($name);
is_gone($pid);
ok(said($w, qr/\Q$id\E.*ended: exit status 0/), 'a command ends while there is no server');
pg_ctl('start');
ok(wait_until("tq.status('$id') ->> 'state' = 'completed'"), 'its report comes when there is one');
($name, $id) = long_task('t/lost');
$pid = pid_of($name);
pg_ctl('-m', 'immediate', 'stop');
ok(is_gone($pid), 'a command ends when its claim can no longer be valid');
pg_ctl('start');
sql("SELECT tq.cancel_task('$id')");
($name, $id) = long_task('t/lost');
go($name);
ok(wait_until("tq.status('$id') ->> 'state' = 'completed'"), 'the worker goes on');
is(end_of($w, 'TERM'), 0, 'and ends');

# A command that does not want to end, and notes until when it lives.
$w = begin('-q', 't/lost', '--claim-for', '10 s', command('lives', "trap '' TERM\necho \$\$ >$folder/\$1.pid\nwhile :; do date +%s.%N >>$folder/lives; sleep 0.02; done\n"), '{payload.name}');
($name, $id) = long_task('t/lost');
$pid = pid_of($name);
pg_ctl('-m', 'immediate', 'stop');
ok(is_gone($pid), 'a command that ignores SIGTERM is killed');
pg_ctl('start');
my ($lived) = slurp(file('lives')) =~ /.*^([0-9.]+)$/ms;
is(row("SELECT to_timestamp($lived) < (tq.status('$id') #>> '{runs,0,takenUntil}')::timestamptz"), 't', '... before its claim ends');
end_of($w, 'TERM');

# ---- a log that takes long to be stored ----

$w = begin('-q', 't/log', '--log', '--claim-for', '3 s', command('logs', "echo logged\n. $long"), '{payload.name}');
said($w, qr/works on/);
($name, $id) = long_task('t/log');
$pid = pid_of($name);
my $stopped = row("SELECT pid FROM pg_stat_activity WHERE application_name LIKE '%$w->{id}' AND query LIKE '%claim_work%'");
kill STOP => $stopped;
go($name);
is_gone($pid);
ok(wait_until("(tq.status('$id') #>> '{runs,0,takenUntil}')::timestamptz > (tq.status('$id') #>> '{runs,0,started}')::timestamptz + interval '5 s'"), 'a claim is prolonged while its log is stored');
kill CONT => $stopped;
ok(wait_until("tq.status('$id') ->> 'state' = 'completed'"), '... and its run is completed');
is(row("SELECT tq.get_artifact('$id', 0, 'log') ->> 'content'"), 'logged', '... with its log');
end_of($w, 'TERM');

# ---- how a worker ends ----

$w = begin('-q', 't/idle', @long);
said($w, qr/works on/);
ok(wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%claim_work%' AND state = 'active' AND application_name LIKE '%$w->{id}')"), 'an idle worker waits in the database');
is(row("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '%$w->{id}'"), 1, '... with one connection');
$begin = time;
is(end_of($w, 'INT'), 0, 'SIGINT ends it');
cmp_ok(time - $begin, '<', 1, '... at once');

$w = begin('-q', 't/stop', @long);
($name, $id) = long_task('t/stop');
pid_of($name);
kill TERM => $w->{pid};
ok(said($w, qr/stops when/), 'a worker that is asked to stop waits for its command');
my ($other, $id2) = long_task('t/stop');
go($name);
is(end_of($w), 0, '... and ends with it');
is(state($id), 'completed completed', '... whose report is made');
is(state($id2), 'pending', '... and claims no more');
sql("SELECT tq.cancel_task('$id2')");

for my $policy ('no policy', 'a policy')
{
	$w = begin('-q', 't/stop', '--stop-timeout', '200ms', @long);
	($name, $id) = long_task('t/stop', $policy eq 'a policy' ? (retry => 3) : ());
	$pid = pid_of($name);
	my $left = row("SELECT tq.status('$id') ->> 'retriesLeft'");
	is(end_of($w, 'TERM'), 0, "a command that takes longer is stopped, $policy");
	ok(!kill(0 => $pid), '... is gone');
	is(row("SELECT concat_ws(' ', s ->> 'state', s #>> '{runs,0,reasonResolved}', s ->> 'retriesLeft') FROM tq.status('$id') s"), "pending worker-shutdown $left", '... is given back, and no retry is spent');
	sql("SELECT tq.cancel_task('$id')");
}
$w = begin('-q', 't/stop', '--stop-timeout', '200ms', command('ready', "trap ': >$folder/\$1.go' TERM\n. $long\nexit 0\n"), '{payload.name}');
($name, $id) = long_task('t/stop');
pid_of($name);
is(end_of($w, 'TERM'), 0, 'a command that is asked to end');
is(state($id), 'completed completed', '... and ends with 0 has completed its task');
$w = begin('-q', 't/stop', $stubborn, '{payload.name}');
($name, $id) = long_task('t/stop');
$pid = pid_of($name);
kill TERM => $w->{pid};
said($w, qr/stops when/);
is(end_of($w, 'TERM'), 0, 'a second signal does not wait');
ok(!kill(0 => $pid), '... but kills');
is(state($id), 'pending', '... and gives back');
sql("SELECT tq.cancel_task('$id')");

$w = begin('-q', 't/kill', @long);
($name, $id) = long_task('t/kill');
$pid = pid_of($name);
is(end_of($w, 'KILL'), 'SIG9', 'a worker is killed');
ok(is_gone($pid), '... and its command with it');
sql("SELECT tq.cancel_task('$id')");

# ---- other signals ----

$w = begin('-q', 't/signals', @long);
($name, $id) = long_task('t/signals');
$pid = pid_of($name);
kill USR1 => $w->{pid};
ok(said($w, qr/main connection: idle.*1 running/), 'SIGUSR1 says what the worker does');
ok(said($w, qr/\Q$id\E.* as process $pid/), '... with each command');
my $before = row("SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE application_name LIKE '%$w->{id}'");
kill HUP => $w->{pid};
ok(wait_until("count(*) > 0 AND NOT bool_or(pid::text = ANY (string_to_array('$before', ' '))) FROM pg_stat_activity WHERE application_name LIKE '%$w->{id}'"), 'SIGHUP has connections made again');
ok(kill(0 => $pid), '... and ends no command');
go($name);
ok(wait_until("tq.status('$id') ->> 'state' = 'completed'"), '... whose report is made');
is(end_of($w, 'TERM'), 0, 'the worker ends');

sql('CREATE ROLE renewed LOGIN');
sql(q{SELECT tq.grant_queue('renewed', 't/renewed', 'work')});
sub password { my ($password) = @_; spew(file('passfile'), "*:*:*:renewed:$password\n"); chmod 0600, file('passfile'); sql("ALTER ROLE renewed PASSWORD '$password'"); return; }
spew("$folder/data/pg_hba.conf", "local all renewed scram-sha-256\n" . slurp("$folder/data/pg_hba.conf"));
sql('SELECT pg_reload_conf()');
password('first');
$w = begin('-d', "user=renewed passfile=$folder/passfile", '-q', 't/renewed', '/bin/true');
my $waits = "SELECT pid FROM pg_stat_activity WHERE usename = 'renewed' AND query LIKE '%claim_work%' AND state = 'active'";
wait_until("EXISTS ($waits)");
$pid = row($waits);
password('second');
$begin = time;
kill HUP => $w->{pid};
ok(wait_until("EXISTS ($waits AND pid <> $pid)"), 'SIGHUP renews a connection that waits for work, with the password of now');
cmp_ok(time - $begin, '<', 10, '... at once');
unlike(slurp($w->{err}), qr/lost/, '... which is no loss');
is(end_of($w, 'TERM'), 0, '... and its worker ends');

# ---- a cancel that is there before the statement ----

# Its command vanishes, so that it pauses between claims.
$w = begin('-q', 't/missed', command('vanishes', ''));
sub main_is { my ($regex) = @_; return wait_for { ; kill USR1 => $w->{pid}; sleep 0.05; ((slurp($w->{err}) =~ /.*main connection: ([^;]*)/s)[0] // '') =~ $regex } "a main connection that is $regex"; }
said($w, qr/works on/);
unlink file('vanishes');
$id = task('t/missed', '{}');
said($w, qr/(cannot be executed.*){5}/s);
main_is(qr/idle/);
my $backend = row("SELECT pid FROM pg_stat_activity WHERE application_name LIKE '%$w->{id}'");
kill STOP => $backend;
sql("SELECT tq.cancel_task('$id')");
main_is(qr/waits for work/);
kill TERM => $w->{pid};
wait_for { slurp("/proc/$backend/status") =~ /^ShdPnd:\s*[0-9a-f]*[2367abef]$/m } 'the cancel';
$begin = time;
kill CONT => $backend;
is(end_of($w), 0, 'a cancel that comes before the claim is sent again');
cmp_ok(time - $begin, '<', 10, '... soon');

# The process that sends a cancel is there while the server does not answer, and
# gets what a terminal sends to all.
{
	local $Worker::worker = command('own', "exec setsid $worker \"\$@\"\n");
	$w = begin('-q', 't/group', '/bin/true');
}
wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%claim_work%' AND state = 'active' AND application_name LIKE '%$w->{id}')");
my ($postmaster) = slurp("$folder/data/postmaster.pid") =~ /^(\d+)/;
kill STOP => $postmaster;
kill TERM => $w->{pid};
wait_for { grep { /^\d+ \(.*\) \S $w->{pid} / } map { slurp($_) } glob '/proc/[0-9]*/stat' } 'the process that cancels';
kill -INT => $w->{pid};
said($w, qr/stops at once/);
kill CONT => $postmaster;
is(end_of($w), 0, 'a worker with its process that cancels ends');
is(() = slurp($w->{err}) =~ /stops at once/g, 1, '... and takes a signal to both of them as one');

done_testing();
