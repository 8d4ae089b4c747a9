#!/usr/bin/perl
# 04_service.pl
#	  How the program is called, refused, watched; its documents.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::Bin;
use File::Basename qw(basename);
use IO::Socket::UNIX;
use Worker;
use Test::More;

start_server();

# Runs the program to its end: its status, what it prints, its errors.
sub call
{
	my @arguments = @_;
	my $status = system('/bin/sh', '-c', 'exec "$0" "$@" >' . file('call.out') . ' 2>' . file('call.err') . ' </dev/null', $worker, @arguments);

	return ($status >> 8, slurp(file('call.out')), slurp(file('call.err')));
}

# ---- help, usage ----

my ($status, $help, $error) = call('--help');
is($status, 0, '--help ends with 0');
cmp_ok(scalar(split /\n/, $help), '<=', 36, '... in one screen');
is((grep { length > 80 } split /\n/, $help), 0, '... of 80 columns');
my @names = $help =~ /^ .*?(--[a-z-]+)/mg;
my $man = slurp("$tree/src/bin/tq-worker.1");
is(join(' ', sort map { s/\\-/-/gr } $man =~ /^\.It Fl (?:\S+ , Fl )?(-[a-z-]+)/mg), join(' ', sort map { s/^-//r } @names), 'the manual has all options');
is(join(' ', sort split ' ', qx(bash -c '. "\$0"; COMP_WORDS=(tq-worker --); COMP_CWORD=1; _tq_worker; echo "\${COMPREPLY[@]}"' '$tree/src/bin/tq-worker.bash')), join(' ', sort @names), 'the completion has all options');
for my $name (grep { !/help|version|config|verbose/ } @names)
{
	my ($argument) = $help =~ /\Q$name\E ([A-Z]+)/;
	my @value = !$argument ? () : ({ QUEUE => 'a/b', N => 1, BYTES => '1MB', FORMAT => 'text', INTERVAL => '1 min', TIME => '1s' }->{$argument} // 'x');

	($status) = call($name, @value, '-q', 'a/b', '--', '/no/such/command');
	is($status, 127, "$name is an option as --help says");
}
is((call('--version'))[1], "tq-worker " . row("SELECT extversion FROM pg_extension WHERE extname = 'tq'") . "\n", '--version');
for my $case ([ 'there is no option --nothing', '--nothing' ], [ 'there is no option -x', '-x' ], [ '--queue is missing', 'true' ],
	[ 'the command is missing', '-q', 'a/b' ], [ '--jobs needs a value', '-q', 'a/b', '--jobs' ], [ '--jobs: "many" is not', '-q', 'a/b', '-j', 'many', 'true' ],
	[ '--kill-after: "1 year" is not', '--kill-after', '1 year' ], [ '--config: /no/file: No such file', '-c', '/no/file' ],
	[ '--log-format: "xml" is neither', '--log-format=xml' ], [ 'an argument cannot name', '-q', 'a/b', '--serve', 'true', '{payload.x}' ])
{
	my ($says, @arguments) = @$case;

	($status, undef, $error) = call(@arguments);
	is($status, 2, "$says: 2");
	like($error, qr/\Q$says\E.*\nTry "tq-worker --help"\.\n/, '... and names --help');
}
is((call('-q', 'a/b', 'no-such-command'))[0], 127, 'a command that is not there: 127');
spew(file('plain'), '');
is((call('-q', 'a/b', file('plain')))[0], 126, 'one that cannot be executed: 126');
my $id = task('a/b', '{}');
call('-q', 'a/b', 'no-such-command');
is(state($id), 'pending', '... and nothing is claimed');

# ---- what the database refuses ----

($status, undef, $error) = call('-d', 'template1', '-q', 'a/b', 'true');
is($status, 1, 'a database without tq: 1');
like($error, qr/no extension tq; run CREATE EXTENSION tq/, '... and what to do');
sql("UPDATE pg_extension SET extversion = '0.1.0' WHERE extname = 'tq'");
($status, undef, $error) = call('-q', 'a/b', 'true');
is($status, 1, 'another version: 1');
like($error, qr/has tq 0\.1\.0.*ALTER EXTENSION tq UPDATE/, '... and what to do');
sql("UPDATE pg_extension SET extversion = '@{[ (call('--version'))[1] =~ /([0-9.]+)/ ]}' WHERE extname = 'tq'");
sql('CREATE ROLE plain LOGIN');
($status, undef, $error) = call('-d', 'user=plain dbname=postgres', '-q', 'a/b', 'true');
is($status, 1, 'a role without rights: 1');
like($error, qr/queue:claim-work:a\/b.*grant_queue/s, '... and which are missing');
sql("SELECT tq.grant_queue('plain', 'a/b', 'work')");
is((call('-d', 'user=plain dbname=postgres', '-q', 'a/b', '-D', 'true'))[0], 0, 'that grant is enough');
is(state($id), 'completed completed', '... for work');
is(row("SELECT count(*) FROM tq.list_workers('a/b') WHERE worker_group = 'tq-worker'") > 0, 1, 'the worker declares itself');
run_worker('-q', 'a/b', '-j', 3, '-D', 'true');
is(row("SELECT capacity || ' ' || version FROM tq.worker_overview WHERE task_queue_id = 'a/b' AND capacity = 3"), '3 ' . (call('--version'))[1] =~ s/\n//r, '... with capacity and version');

task('c/line', '{}');
(undef, undef, $error) = call('-q', 'c/line', '-D', command('shout', qq(printf '\\033[2J\\tx\\n' >&3\n)));
like($error, qr/is malformed:  \[2J x$/m, 'a line of the log has no control characters');

# ---- a file of options ----

spew(file('a.conf'), "# a worker\nqueue = c/d\n\n  jobs=2\ndrain\nlog-format = json\ncommand = /bin/sh -c \"printf '%s' 'x  y' >$folder/from-file\"\n");
task('c/d', '{}');
is((call('-c', file('a.conf')))[0], 0, '--config');
is(slurp(file('from-file')), 'x  y', '... has options and the command');
spew(file('b.conf'), "queue = c/d\njbs = 2\n");
($status, undef, $error) = call('-c', file('b.conf'));
is($status, 2, 'an option that is not known');
like($error, qr/b\.conf, line 2: there is no option "jbs"/, '... is named with its line');

# ---- systemd, metrics ----

my $socket = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => file('notify')) or die "notify: $!";
my $heard = '';
sub heard { my ($regex) = @_; return wait_for { my $text; $heard .= "$text\n" while defined $socket->recv($text, 1000, MSG_DONTWAIT) && length $text; $heard =~ $regex } "systemd to hear $regex"; }
my $w;
{
	local @ENV{qw(NOTIFY_SOCKET WATCHDOG_USEC)} = (file('notify'), 400000);
	$w = begin('-q', 'e/f', '--metrics', file('metrics.prom'), command('show', "env >$folder/env"));
}
ok(heard(qr/READY=1/), 'systemd is notified when the worker can claim');
ok(heard(qr/(WATCHDOG=1.*){3}/s), '... that it is alive');
task('e/f', '{}');
ok(heard(qr/STATUS=\d+ running, \d+ completed/), '... and what it does');
ok(wait_for { slurp(file('env')) =~ /^TQ_TASK_ID/m } 'the command');
unlike(slurp(file('env')), qr/NOTIFY_SOCKET|WATCHDOG/, 'a command is no part of that');
is(end_of($w, 'TERM'), 0, 'the service ends');
ok(heard(qr/STOPPING=1\nEXTEND_TIMEOUT_USEC=(\d+)\n/), '... and says so before');
cmp_ok(($heard =~ /EXTEND_TIMEOUT_USEC=(\d+)/)[0], '>', 35e6, '... with the time that its options may take');
like(slurp(file('metrics.prom')), qr/^tq_worker_runs_total\{worker="tq-worker\/w\d+",end="completed"\} 1$/m, '--metrics');
is((grep { !/^(# (HELP|TYPE) \w+ .+|\w+\{(\w+="[^"]*",?)+\} \d+)$/ } split /\n/, slurp(file('metrics.prom'))), 0, '... in the format of Prometheus');


# What another user may have put where the file is made.
spew(file('precious'), 'precious');
$w = begin('-q', 'e/link', '--metrics', file('link.prom'), 'true');
said($w, qr/works on/);
symlink file('precious'), file("link.prom.$w->{pid}") or die;
end_of($w, 'TERM');
is(slurp(file('precious')), 'precious', 'a link in the place of the new metrics is not followed');
like(slurp(file('link.prom')), qr/^tq_worker_jobs/m, '... and they are written');
is(join(' ', glob file('link.prom*')), file('link.prom'), '... and nothing else is left');

# ---- the first process of a container ----

my $orphan = command('orphan', "sh -c 'sh -c \"sleep 0.2; echo >$folder/orphan.done\" &'\n");
SKIP:
{
	skip 'no namespaces here', 2 if system('unshare', '-Urpf', '--mount-proc', 'true') != 0;
	task('g/h', '{}');
	my $pid = fork // die;
	exec 'unshare', '-Urpf', '--mount-proc', 'sh', '-c', "exec $worker -i one -q g/h $orphan >$folder/one.out 2>$folder/one.err" or die if $pid == 0;
	ok(scalar(wait_for { -e file('orphan.done') } 'the orphan'), 'a command leaves a process behind');
	my ($one) = wait_for { ; my @found = grep { slurp("/proc/$_/comm") eq basename($worker) . "\n" && slurp("/proc/$_/status") =~ /^NSpid:\s+\d+\s+1$/m } map { m{/(\d+)$} } glob '/proc/[0-9]*'; $found[0] } 'the first process';
	ok(scalar(wait_for { ; my $n = grep { slurp("/proc/$_/stat") =~ /^\d+ \(.*\) Z $one / } map { m{/(\d+)$} } glob '/proc/[0-9]*'; $n == 0 } 'the end of zombies'), '... whose end the first process takes');
	kill TERM => $one || $pid;
	waitpid $pid, 0;
}

# ---- the unit ----

SKIP:
{
	skip 'there is no systemd-analyze', 1 if system('command -v systemd-analyze >/dev/null 2>&1') != 0;
	spew(file('tq-worker@.service'), slurp("$tree/src/bin/tq-worker\@.service") =~ s,/usr/bin/tq-worker,$worker,r);
	like(qx(systemd-analyze verify '@{[ file('tq-worker@x.service') ]}' 2>&1) =~ s/^.*(man tq-worker|Failed to (?:create|set|connect|open)|postgresql).*\n//mgr, qr/\A(?!.*tq-worker)/s, 'systemd takes the unit');
}

done_testing();
