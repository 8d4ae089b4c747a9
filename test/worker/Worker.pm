# Worker.pm
#	  What the tests of tq-worker, and of other workers, share: a server of their own,
#	  workers, waiting.
#
# PG_CONFIG names the installation.  Each test has a folder with its server, whose
# socket is there, and the output of its workers.
package Worker;

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use Exporter 'import';
use File::Basename qw(dirname);
use File::Temp;
use POSIX qw(:sys_wait_h);
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw($bin $folder $tree $worker begin command end_of file is_true pg_ctl said row rows run_worker
	slurp spew sql start_server state task wait_until wait_for);

our $tree = abs_path(dirname(__FILE__) . '/../..');
our $folder = File::Temp->newdir;
our $bin = qx('@{[ $ENV{PG_CONFIG} // 'pg_config' ]}' --bindir) =~ s/\n//r;
our $worker = $ENV{TQ_WORKER} // "$bin/tq-worker";
my $patience = $ENV{PG_TEST_TIMEOUT_DEFAULT} // 60;
my $parent = $$;
my ($started, %pids) = (0);

chmod 0755, $folder;
delete @ENV{ grep { /^(PG(?!_)|TQ_(?!WORKER|WITHOUT|LEDGER|SEED)|NOTIFY|WATCHDOG)/ } keys %ENV };
@ENV{qw(PGHOST PGUSER PGPORT PGDATABASE)} = ($folder, 'postgres', 5432, 'postgres');

sub slurp
{
	my ($file) = @_;

	open my $in, '<', $file or return '';
	local $/;
	return <$in> // '';
}

sub spew
{
	my ($file, $text) = @_;

	open my $out, '>', $file or die "$file: $!";
	print $out $text;
	close $out;
}

# ---- the server ----

sub pg_ctl
{
	system("'$bin/pg_ctl' -s -w -D '$folder/data' -l '$folder/server.log' @_ >'$folder/pg_ctl' 2>&1") == 0
		or BAIL_OUT("pg_ctl @_: " . slurp("$folder/pg_ctl") . slurp("$folder/server.log"));
}

sub start_server
{
	my ($settings) = @_;

	system("'$bin/initdb' -D '$folder/data' -U postgres -A trust -N --locale=C.UTF-8 >'$folder/pg_ctl' 2>&1") == 0
		or BAIL_OUT('initdb: ' . slurp("$folder/pg_ctl"));
	spew("$folder/data/postgresql.auto.conf", slurp("$tree/test/tq.conf") . "listen_addresses = ''\n"
		. "unix_socket_directories = '$folder'\njit = off\n" . ($settings // ''));
	pg_ctl('start');
	sql('CREATE EXTENSION tq');
}

END
{
	if ($$ == $parent)
	{
		my $code = $?;

		kill KILL => keys %pids;
		system("'$bin/pg_ctl' -s -D '$folder/data' -m immediate stop >/dev/null 2>&1") if -e "$folder/data/postmaster.pid";
		if ($code || !Test::More->builder->is_passing)
		{
			diag(map { "$_: " . substr(slurp($_), -3000) } glob "$folder/*.err");
			diag(substr(slurp("$folder/server.log"), -2000));
		}
		$? = $code;
	}
}

sub rows
{
	my ($sql) = @_;

	open my $psql, '-|', "$bin/psql", '-XqAt', '-v', 'ON_ERROR_STOP=1', '-c', $sql or die "psql: $!";
	my @rows = <$psql>;
	close $psql or die "$sql\n";
	chomp @rows;
	return @rows;
}

sub row { return (rows(@_))[0]; }
*sql = \&rows;

sub is_true { return (eval { row("SELECT $_[0]") } // '') eq 't'; }

# Waits until a function returns something.
sub wait_for(&;$)
{
	my ($condition, $what) = @_;
	my $end = time + $patience;
	my $value;

	until ($value = $condition->())
	{
		if (time > $end)
		{
			diag('waited in vain' . ($what ? " for $what" : ''));
			return 0;
		}
		sleep 0.02;
	}
	return $value;
}

sub wait_until { my ($sql) = @_; return wait_for { is_true($sql) } $sql; }

# Creates a task, and returns its id; arguments of enqueue() by name, as SQL.
sub task
{
	my ($queue, $payload, %arguments) = @_;

	return row("SELECT tq.enqueue('$queue', '" . ($payload =~ s/'/''/gr) . "'" . join('', map { ", $_ => $arguments{$_}" } sort keys %arguments) . ')');
}

sub state { my ($id) = @_; return row("SELECT concat_ws(' ', s ->> 'state', s #>> '{runs,-1,reasonResolved}') FROM tq.status('$id') s"); }

# ---- commands and workers ----

sub file { return "$folder/$_[0]"; }

# Writes a command, and returns its file.
sub command
{
	my ($name, $text) = @_;

	spew(file($name), $text =~ /\A#!/ ? $text : "#!/bin/sh\n$text");
	chmod 0755, file($name);
	return file($name);
}

# Starts a worker: { pid, out, err }.
sub begin
{
	my @arguments = @_;
	my $name = 'w' . ++$started;
	my $pid = fork // die;

	if ($pid == 0)
	{
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', file("$name.out");
		open STDERR, '>', file("$name.err");
		exec { $worker } $worker, '-v', '-i', $name, @arguments or POSIX::_exit(127);
	}
	$pids{$pid} = 1;
	return { pid => $pid, id => $name, out => file("$name.out"), err => file("$name.err") };
}

# Waits for the end of a worker, and returns its status, or "SIG" and the signal.
sub end_of
{
	my ($process, $signal) = @_;
	my $gone;

	kill $signal => $process->{pid} if $signal;
	$gone = wait_for { waitpid($process->{pid}, WNOHANG) } "the end of $process->{id}";
	if (!$gone)
	{
		kill KILL => $process->{pid};
		waitpid $process->{pid}, 0;
		delete $pids{ $process->{pid} };
		return 'did not end';
	}
	delete $pids{ $process->{pid} };
	return WIFSIGNALED($?) ? 'SIG' . WTERMSIG($?) : WEXITSTATUS($?);
}

# Runs a worker until it ends, and returns its status.
sub run_worker { return end_of(begin(@_)); }

# Waits until a worker has said something.
sub said
{
	my ($process, $regex, $where) = @_;

	return wait_for { slurp($process->{ $where // 'err' }) =~ $regex } "$process->{id} to say $regex";
}

1;
