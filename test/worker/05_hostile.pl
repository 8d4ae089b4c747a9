#!/usr/bin/perl
# 05_hostile.pl
#	  Commands that do not behave, and workers, servers and connections that are killed.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::Bin;
use Worker;
use Test::More;
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(sleep time);

my $tasks = $ENV{TQ_LEDGER} // 1500;
start_server();

sub ends { my ($name, $text, @options) = @_; my $id = task("h/$name", '{"a": 1}'); my $status = run_worker('-q', "h/$name", '-D', @options, command($name, $text)); return "$status " . state($id); }

# ---- commands ----

my $large = row("SELECT tq.enqueue('h/large', jsonb_build_object('text', repeat('x', 16 * 1024 * 1024 - 100)))");
my $w = begin('-q', 'h/large', '-D', command('large', "wc -c >$folder/large.size"));
is(end_of($w), 0, 'a payload of 16 MB');
is(state($large) . ' ' . (slurp(file('large.size')) > 16 * 1024 * 1024 - 200 ? 'whole' : 'cut'), 'completed completed whole', '... is read as a whole');
sql("SELECT tq.rerun_task('$large')");
is(run_worker('-q', 'h/large', '-D', '/bin/true'), 0, '... by a command that does not read it');
is(state($large), 'completed completed', '... which is completed');
is(ends('closes', 'exec <&- >&- 2>&- 3>&-; sleep 0.3'), '0 completed completed', 'a command that closes everything');
is(ends('forks', "sleep 5 & echo \$! >$folder/forks.pid; exit 0"), '0 completed completed', 'one that leaves a process with its output open');
kill KILL => slurp(file('forks.pid')) =~ /(\d+)/;
is(ends('daemon', "setsid sh -c 'echo \$\$ >$folder/daemon.pid; exec sleep 60' & while [ ! -s $folder/daemon.pid ]; do sleep 0.02; done; exit 4"), '0 failed failed', 'one that makes a daemon');
kill KILL => slurp(file('daemon.pid')) =~ /(\d+)/;
is(ends('noise', 'head -c 3000000 /dev/urandom >&2; head -c 3000000 /dev/urandom; head -c 3000000 /dev/zero >&3; exit 1'), '0 failed failed', 'one that prints noise');
is(ends('lines', 'i=0; while [ $i -lt 3000 ]; do echo "progress $i 3000 x" >&3; i=$((i+1)); done; echo "artifact a text/plain /dev/zero" >&3'), '0 completed completed', 'one that says too much');

my $full = task('h/full', '{}');
system('/bin/sh', '-c', "'$worker' -v -i full -q h/full -D /bin/sh -c 'seq 1 10000; seq 1 10000 >&2' >/dev/full 2>/dev/full");
is(($? >> 8) . ' ' . state($full), '0 completed completed', 'a full disk for its output');
my $stuck = task('h/stuck', '{}');
pipe my $read, my $write;
my $pid = fork // die;
if ($pid == 0) { open STDOUT, '>&', $write; open STDERR, '>&', $write; close $read; exec $worker, '-i', 'stuck', '-q', 'h/stuck', '-D', 'seq', '1', '100000' or POSIX::_exit(1); }
ok(wait_until("tq.status('$stuck') ->> 'state' = 'completed'"), 'a reader that does not read');
waitpid $pid, 0;
close $_ for $read, $write;

spew(file('gone'), "#!/bin/sh\n");
chmod 0755, file('gone');
$w = begin('-q', 'h/gone', file('gone'));
said($w, qr/works on/);
unlink file('gone');
my $gone = task('h/gone', '{}');
said($w, qr/(cannot be executed.*){3}/s);
is(row("SELECT tq.status('$gone') ->> 'retriesLeft'"), 5, 'a command that vanishes spends no retry');
command('gone', '');
ok(wait_until("tq.status('$gone') ->> 'state' = 'completed'"), '... and works when it is there again');
is(end_of($w, 'TERM'), 0, '... its worker ends');

SKIP:
{
	skip 'there is no valgrind', 1 if system('command -v valgrind >/dev/null 2>&1') != 0;
	my $lines = command('checked', q(cat >/dev/null; echo 'result {"a": 1}' >&3; echo 'progress 1 2 x' >&3; echo oops >&2; exit $(($1 % 2))));
	task('h/checked', "{\"f\": $_}") for 1 .. 6;
	is(system('/bin/sh', '-c', "exec valgrind -q --leak-check=full --errors-for-leak-kinds=definite,indirect --error-exitcode=99"
		. " '$worker' -q h/checked -j 2 -b 3 --log --metrics $folder/checked.prom -D -- $lines '{payload.f}' >$folder/checked.out 2>$folder/checked.err") >> 8, 0, 'valgrind finds nothing');
}

# ---- signals in plenty ----

sql("SELECT count(tq.enqueue('h/storm', '{}')) FROM generate_series(1, 200)");
my $nap = command('nap', "sleep 0.0\$((\$\$ % 10))\n");
my @ends;
for my $turn (1 .. 20)
{
	$w = begin('-q', 'h/storm', '-j', 3, '--stop-timeout', '10ms', '--claim-for', '1 hour', $nap);
	said($w, qr/works on/) if $turn % 2;
	sleep 0.002 * $turn;
	kill((qw(TERM INT HUP USR1))[$_ % 4], $w->{pid}), sleep 0.001 for 1 .. $turn % 5;
	push @ends, end_of($w, 'TERM');
}
is(join(' ', grep { !/^(0|SIG1|SIG15|SIG2|SIG10)$/ } @ends), '', 'SIGTERM at any moment ends a worker');
is(row("SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'h/storm' AND state = 'running'"), 0, '... and leaves no run claimed');

# ---- a ledger ----

my $ledger = command('ledger', <<"SH");
exec 9>"$folder/locks/\$TQ_TASK_ID"
flock -n 9 || echo "\$TQ_TASK_ID" >>"$folder/twice"
echo "\$TQ_TASK_ID" >>"$folder/done"
SH
mkdir file('locks');
sql("SELECT count(tq.enqueue('h/ledger', '{}', policy => '{\"retries\": 45, \"retryOn\": [\"failed\", \"claim-expired\", \"worker-shutdown\"], \"delay\": 0}'))"
	. " FROM generate_series(1, $tasks)");
my @arguments = ('-q', 'h/ledger', '-j', 4, '--claim-for', '2 s', '--stop-timeout', '100ms', $ledger);
my %workers = map { my $one = begin(@arguments); ($one->{pid} => $one) } 1 .. 3;
my ($kills, $restarted, $end) = (0, 0, time + 60);
srand(36);

sub replace { my ($one, $signal) = @_; delete $workers{ $one->{pid} }; end_of($one, $signal); my $new = begin(@arguments); $workers{ $new->{pid} } = $new; return; }

until (time > $end || is_true("NOT EXISTS (SELECT FROM tq.task_overview WHERE task_queue_id = 'h/ledger' AND state <> 'completed')"))
{
	my @all = sort { $a <=> $b } keys %workers;
	my $one = $workers{ $all[ rand @all ] };
	my $what = int rand 5;

	next if ++$kills > 60;
	if ($what == 0) { replace($one, 'KILL'); }
	elsif ($what == 1) { replace($one, 'TERM'); }
	elsif ($what == 2)
	{
		my @commands = map { /^(\d+) \((?!tq-worker)\S+\) \S $one->{pid} / ? $1 : () } map { slurp($_) } glob '/proc/[0-9]*/stat';
		kill KILL => $commands[ rand @commands ] if @commands;
	}
	elsif ($kills > 20 && !$restarted++) { pg_ctl('-m', 'immediate', 'restart'); }
	else { eval { sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tq-worker%' ORDER BY random() LIMIT 1") }; }
	sleep 0.05;
}
is(row("SELECT string_agg(state || ' ' || n, ', ' ORDER BY state) FROM (SELECT state, count(*) AS n FROM tq.task_overview WHERE task_queue_id = 'h/ledger' GROUP BY state) x"), "completed $tasks", "$tasks tasks, $kills kills: each is completed");
my %done = map { $_ => 1 } split /\n/, slurp(file('done'));
is(scalar(keys %done), $tasks, '... each was done');
is(slurp(file('twice')), '', '... and none twice at a time');
is(end_of($_, 'TERM'), 0, '... its workers end') for values %workers;

done_testing();
