#!/usr/bin/perl
# 06_failover.pl
#	  A primary is lost, and its standby promoted, while a command runs.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::Bin;
use Worker;
use Test::More;

start_server("wal_level = replica\nmax_wal_senders = 4\nhot_standby = on\nsynchronous_commit = on\n");
my $standby = file('standby');
mkdir "$folder/two";
system("'$bin/pg_basebackup' -h '$folder' -D '$standby' -R -X stream -c fast >'$folder/backup' 2>&1") == 0 or BAIL_OUT(slurp("$folder/backup"));
open my $out, '>>', "$standby/postgresql.auto.conf" or die;
print $out "unix_socket_directories = '$folder/two'\n";
close $out;
system("'$bin/pg_ctl' -s -w -D '$standby' -l '$folder/standby.log' start >/dev/null 2>&1") == 0 or BAIL_OUT(slurp("$folder/standby.log"));
END { my $code = $?; system("'$bin/pg_ctl' -s -D '$standby' -m immediate stop >/dev/null 2>&1") if $standby && -e "$standby/postmaster.pid"; $? = $code; }

sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
sql('SELECT pg_reload_conf()');
wait_until("sync_state = 'sync' FROM pg_stat_replication");
my $command = command('command', qq(echo >"$folder/began.\$TQ_TASK_ID"; while [ ! -e "$folder/go" ]; do sleep 0.02; done\n));
my $w = begin('-d', "host=$folder,$folder/two dbname=postgres target_session_attrs=read-write", '-q', 'f/o', '-j', 2, '--claim-for', '1 min', $command);
my $id = task('f/o', '{}');
ok(wait_for { -e file("began.$id") } 'a command begins');
pg_ctl('-m', 'immediate', 'stop');
ok(said($w, qr/connection is lost/), 'the primary is lost');
spew(file('go'), '');
ok(said($w, qr/ended: exit status 0/), 'the command ends while there is none');
system("'$bin/pg_ctl' -s -w -D '$standby' promote >/dev/null 2>&1") == 0 or BAIL_OUT(slurp("$folder/standby.log"));
$ENV{PGHOST} = "$folder/two";
sql("ALTER SYSTEM SET synchronous_standby_names = ''");
sql('SELECT pg_reload_conf()');
ok(wait_until("tq.status('$id') ->> 'state' = 'completed'"), 'the new primary has its report');
is(row("SELECT jsonb_array_length(tq.status('$id') -> 'runs')"), 1, '... of the first run');
my $next = task('f/o', '{}');
ok(wait_until("tq.status('$next') ->> 'state' = 'completed'"), 'the worker goes on there');
is(end_of($w, 'TERM'), 0, 'and ends');

done_testing();
