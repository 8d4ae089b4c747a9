#!/usr/bin/perl
# 05_hostile.pl
#	  Commands that do not behave, disks that are full, and signals at any moment.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::Bin;
use Worker;
use Test::More;
use POSIX qw(:sys_wait_h);

start_server();

sub ends { my ($name, $text, @options) = @_; my $id = task("h/$name", '{"a": 1}'); my $status = run_worker('-q', "h/$name", '-D', @options, command($name, $text)); return "$status " . state($id); }

# Processor time of a process, in hundredths of a second.
sub ticks { my @stat = split ' ', slurp("/proc/$_[0]/stat") =~ s/^.*\) //r; return $stat[11] + $stat[12]; }

# ---- commands ----

my $large = row("SELECT tq.enqueue('h/large', jsonb_build_object('text', repeat('x', 16 * 1024 * 1024 - 100)))");
my $w = begin('-q', 'h/large', '-D', command('large', "wc -c >$folder/large.size"));
is(end_of($w), 0, 'a payload of 16 MB');
is(state($large) . ' ' . (slurp(file('large.size')) > 16 * 1024 * 1024 - 200 ? 'whole' : 'cut'), 'completed completed whole', '... is read as a whole');
sql("SELECT tq.rerun_task('$large')");
is(run_worker('-q', 'h/large', '-D', '/bin/true'), 0, '... by a command that does not read it');
is(state($large), 'completed completed', '... which is completed');
my $closes = task('h/closes', '{"a": 1}');
$w = begin('-q', 'h/closes', '-D', command('closes', "exec <&- >&- 2>&- 3>&-; : >$folder/closed; while [ ! -e $folder/closes.go ]; do sleep 0.02; done"));
wait_for { -e file('closed') } 'the command';
my $before = ticks($w->{pid});
wait_until("clock_timestamp() > (tq.status('$closes') #>> '{runs,0,started}')::timestamptz + interval '1 s'");
cmp_ok(ticks($w->{pid}) - $before, '<', 20, 'a command that closes everything has the worker wait, and not turn');
spew(file('closes.go'), '');
is(end_of($w) . ' ' . state($closes), '0 completed completed', '... and is completed');
is(ends('forks', "sleep 5 & echo \$! >$folder/forks.pid; exit 0"), '0 completed completed', 'one that leaves a process with its output open');
kill KILL => slurp(file('forks.pid')) =~ /(\d+)/;
is(ends('daemon', "setsid sh -c 'echo \$\$ >$folder/daemon.pid; exec sleep 60' & while [ ! -s $folder/daemon.pid ]; do sleep 0.02; done; exit 4"), '0 failed failed', 'one that makes a daemon');
kill KILL => slurp(file('daemon.pid')) =~ /(\d+)/;
is(ends('noise', 'head -c 3000000 /dev/urandom >&2; head -c 3000000 /dev/urandom; head -c 3000000 /dev/zero >&3; exit 1'), '0 failed failed', 'one that prints noise');
is(ends('lines', 'i=0; while [ $i -lt 3000 ]; do echo "progress $i 3000 x" >&3; i=$((i+1)); done; echo "artifact a text/plain /dev/zero" >&3'), '0 completed completed', 'one that says too much');

my $full = task('h/full', '{}');
system('/bin/sh', '-c', "'$worker' -v -i full -q h/full -D /bin/sh -c 'seq 1 10000; seq 1 10000 >&2' >/dev/full 2>/dev/full");
is(($? >> 8) . ' ' . state($full), '0 completed completed', 'a full disk for its output');
my $limit = task('h/limit', '{}');
system('/bin/sh', '-c', "ulimit -f 8; exec '$worker' -v -i limit -q h/limit -D --metrics $folder/limit.prom /bin/sh -c 'seq 1 10000; seq 1 10000 >&2' >$folder/limit.out 2>$folder/limit.err");
is(($? >> 8) . ' ' . ($? & 127) . ' ' . state($limit), '0 0 completed completed', 'files that may not grow');
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

# ---- memory ----

my $lines = command('lines', q(cat >/dev/null; echo 'result {"a": 1}' >&3; echo 'progress 1 2 x' >&3; printf 'artifact a text/plain %s\nnoise\377\n' "$0" >&3; echo oops >&2; [ "$1" = 3 ] && kill -9 $$; exit $(($1 % 2)))."\n");
my $stays = command('stays', <<'SH');
while read -r line; do
	case $line in
		*'"f": 1'*) echo '{"progress": {"done": 1}}'; echo '{"completed": {"a": [1, "\u00e4"]}}' ;;
		*'"f": 2'*) echo '{"failed": "so"}' ;;
		*'"f": 3'*) exit 3 ;;
		*'"f": 4'*) echo '{"defer": "1 hour"}' ;;
		*'"f": 5'*) echo 'no JSON'; echo 'what is more' ;;
		*'"f": 6'*) while :; do sleep 1; done ;;
		*) echo '{"completed": null}' ;;
	esac
done
SH

# All that a worker does, by a program that finds faults of memory: what it says of them.
sub faults
{
	my ($program) = @_;
	my ($name, $said) = ($program =~ m{([^/]+)$}, '');

	local $worker = $program;
	sql("ALTER DATABASE postgres SET tq.credentials = 'on'");
	sql("SELECT tq.enqueue('h/$name', jsonb_build_object('f', i)) FROM generate_series(1, 8) i");
	my $one = begin('-q', "h/$name", '-j', 2, '-b', 3, '--log', '--metrics', file('metrics.prom'), '-D', '--', $lines, '{payload.f}');
	$said .= end_of($one) . "\n" . slurp($one->{err});
	sql("SELECT tq.enqueue('h/$name', jsonb_build_object('f', i)) FROM generate_series(1, 8) i");
	$one = begin('-q', "h/$name", '-j', 2, '-b', 3, '--serve', '--stop-timeout', '100ms', '--log-format', 'json', $stays);
	wait_until("count(*) = 1 FROM tq.task_overview WHERE task_queue_id = 'h/$name' AND state = 'running'");
	kill USR1 => $one->{pid};
	kill HUP => $one->{pid};
	sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%$one->{id}'");
	wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE query ~ '^LISTEN|reclaim_task' AND application_name LIKE '%$one->{id}')");
	sql("SELECT tq.cancel_task(task_id) FROM tq.task_overview WHERE task_queue_id = 'h/$name' AND state = 'running'");
	said($one, qr/is taken from/);
	$said .= end_of($one, 'TERM') . "\n" . slurp($one->{err});
	sql("ALTER DATABASE postgres RESET tq.credentials");
	return join "\n", grep { !/^tq-worker: |^\{"time"|^\S{22}\/\d+ oops$/ } split /\n/, $said;
}

SKIP:
{
	skip 'there is no valgrind', 1 if system('command -v valgrind >/dev/null 2>&1') != 0;
	my $valgrind = command('valgrind', qq(exec valgrind -q --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect --error-exitcode=99 '$worker' "\$@"\n));
	is(faults($valgrind), "0\n0", 'valgrind finds nothing');
}
my @defines = ('-D_GNU_SOURCE', '-DTQ_VERSION="' . (qx('$worker' --version) =~ /([0-9.]+)/)[0] . '"');
my ($include, $libraries) = map { qx('$bin/pg_config' --$_) =~ s/\n//r } qw(includedir libdir);
SKIP:
{
	skip 'there is no compiler', 1 if system('command -v gcc >/dev/null 2>&1') != 0;
	is(system('gcc', '-g', '-O1', '-fsanitize=address,undefined', '-fno-sanitize-recover=all', @defines, "-I$include", '-o', file('sanitized'), glob("$tree/src/bin/*.c"), "-L$libraries", '-lpq'), 0,
		'the worker is built with sanitizers');
	is(faults(file('sanitized')), "0\n0", '... which find nothing');
}

# ---- signals in plenty ----

sql("SELECT count(tq.enqueue('h/storm', '{}')) FROM generate_series(1, 600)");
my $nap = command('nap', "sleep 0.0\$((\$\$ % 10))\n");
my @moments = (qr/^/, qr/works on/, qr/claimed from/, qr/ended: /, qr/completed: /, qr/(completed: .*){3}/s);
my @ends;
for my $turn (1 .. 24)
{
	$w = begin('-q', 'h/storm', '-j', 3, '--stop-timeout', '10ms', '--claim-for', '1 hour', $turn % 4 ? () : ('--batch', 5), $nap);
	said($w, $moments[ $turn % @moments ]);
	kill((qw(TERM INT HUP USR1))[ ($_ + $turn) % 4 ], $w->{pid}) for 1 .. $turn % 7 * 5;
	push @ends, end_of($w, 'TERM');
}
is(join(' ', grep { !/^(0|SIG1|SIG15|SIG2|SIG10)$/ } @ends), '', 'SIGTERM at any moment ends a worker');
is(row("SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'h/storm' AND state = 'running'"), 0, '... and leaves no run claimed');

done_testing();
