#!/usr/bin/perl
# 07_connections.pl
#	  Connections: how often they are tried again, with which password, and what the server
#	  knows of the worker.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::Bin;
use Worker;
use Test::More;

start_server();

my $done = command('done', "exit 0\n");
sub completes { my ($queue) = @_; my $id = task($queue, '{}'); return wait_until("tq.status('$id') ->> 'state' = 'completed'"); }

# ---- a password that changes ----

sub password
{
	my ($password) = @_;

	spew(file('passwords.new'), "*:*:*:mailer:$password\n");
	chmod 0600, file('passwords.new');
	rename file('passwords.new'), file('passwords');
}

sql("CREATE ROLE mailer LOGIN PASSWORD 'one'");
sql("SELECT tq.grant_queue('mailer', 'c/mail', 'work')");
spew(file('data/pg_hba.conf'), "local all mailer scram-sha-256\nlocal all all trust\n");
sql('SELECT pg_reload_conf()');
password('wrong');
my $w;
{
	local $ENV{PGPASSFILE} = file('passwords');
	$w = begin('-d', 'user=mailer', '-q', 'c/mail', '--group', 'post.office', $done);
}
ok(said($w, qr/connection is lost, and tried again: .*password authentication failed/), 'a wrong password is tried again');
password('one');
ok(said($w, qr{post.office/w1 works on}), '... until the file has the right one');
ok(completes('c/mail'), '... which works');
my $before = row("SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE usename = 'mailer'");
sql("ALTER ROLE mailer PASSWORD 'two'");
password('two');
kill HUP => $w->{pid};
ok(wait_until("count(*) > 0 AND NOT bool_or(pid::text = ANY (string_to_array('$before', ' '))) FROM pg_stat_activity WHERE usename = 'mailer' AND query LIKE '%claim_work%'"),
	'SIGHUP logs in again with the password that the file has now');
ok(completes('c/mail'), '... and the worker goes on');
is((() = slurp($w->{err}) =~ /authentication failed/g), (() = slurp($w->{err}) =~ /authentication failed[^\n]*\n(?=.*works on)/gs), '... without having tried the old one');

# ---- --group ----

is(row("SELECT string_agg(DISTINCT concat_ws(' ', worker_group, worker_id), ',') FROM tq.run_overview"), 'post.office w1', '--group is that of the claims');
is(row("SELECT string_agg(concat_ws(' ', worker_group, worker_id), ',') FROM tq.list_workers('c/mail')"), 'post.office w1', '... and of the worker that is declared');
is(row("SELECT application_name LIKE 'tq-worker % w1' FROM pg_stat_activity WHERE usename = 'mailer' LIMIT 1"), 't', '... whose session has its id');
$w->{refused} = begin('-q', 'c/mail', '-g', 'post office', $done);
is(end_of($w->{refused}), 1, 'a group with a space is refused');
unlike(slurp($w->{refused}{err}), qr/grant_queue/, '... and not for want of rights');
my $long = command('long', qq(while [ ! -e "$folder/long.go" ]; do sleep 0.02; done\n));
my $other = begin('-q', 'c/long', '-g', 'second', $long);
my $id = task('c/long', '{}');
ok(wait_until("tq.status('$id') ->> 'state' = 'running'"), 'a worker of another group');
ok(wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND application_name LIKE '%$other->{id}')"), '... listens');
sql("SELECT tq.worker_removed('c/long', 'post.office', '$other->{id}')");
is(state($id), 'running', '... keeps its run when a namesake of the first group is removed');
sql("SELECT tq.worker_removed('c/long', 'second', '$other->{id}')");
ok(said($other, qr/\Q$id\E.* is taken from this worker/), '... and loses it when it is removed itself');
spew(file('long.go'), '');
is(end_of($other, 'TERM'), 0, '... and ends');
is(end_of($w, 'TERM'), 0, 'the worker ends');

# ---- how often it is tried ----

# When it was tried, in milliseconds, as the lines say.
sub tries
{
	my ($one) = @_;
	my $text = slurp($one->{err});
	my @times;

	push @times, ($1 * 60 + $2) * 1000 + $3 while $text =~ /"time": "[^"]+T\d+:(\d+):(\d+)\.(\d+)Z"[^\n]*main connection is lost/g;
	return @times;
}
sub gaps { my @times = @_; return map { ($times[$_] - $times[ $_ - 1 ]) % 3_600_000 } 1 .. $#times; }
my @all = map { begin('-q', 'c/again', '--log-format', 'json', $done) } 1 .. 3;
my @pauses;
said($_, qr/works on/) for @all;
wait_until("count(*) = 3 FROM pg_stat_activity WHERE query LIKE '%claim_work%' AND state = 'active' AND application_name LIKE 'tq-worker%'");
pg_ctl('-m', 'immediate', 'stop');
for my $one (@all)
{
	my @gaps;

	ok(scalar(wait_for { (@gaps = gaps(tries($one))) >= 5 } 'five more'), 'a connection is tried again and again');
	is(join(' ', grep { $gaps[$_] < 49 * 2**$_ } 0 .. 4), '', "... later each time (@gaps[0 .. 4] ms)");
	push @pauses, [ map { $gaps[$_] / (100 * 2**$_) } 1 .. 4 ];
}
for ([ 0, 1 ], [ 0, 2 ], [ 1, 2 ])
{
	my ($one, $other) = @pauses[@$_];

	ok(scalar(grep { abs($one->[$_] - $other->[$_]) > 0.02 } 0 .. 3), "... and by chance, so that not two come at once (@$one, @$other)");
}
my @shares = sort { $a <=> $b } map { @$_[1 .. 3] } @pauses;
cmp_ok($shares[-1] - $shares[0], '>', 0.2, '... nor nearly so');
pg_ctl('start');
ok(completes('c/again'), 'all are there again');
is(end_of($_, 'TERM'), 0, '... and end') for @all;

done_testing();
