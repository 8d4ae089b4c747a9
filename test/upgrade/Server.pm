# Server.pm: a server whose library is replaced, for the scripts of this folder.
package Server;

use strict;
use warnings FATAL => 'all';

use DBI;
use Exporter 'import';
use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;

our @EXPORT = qw(file version_of new_node answers raised switch_library only_in dbh has_worker);
my $here = dirname(__FILE__);

sub file { my ($name) = @_; return slurp_file("$here/$name"); }

# The version that a tree has.
sub version_of { my ($tree) = @_; return slurp_file("$tree/tq.control") =~ /^default_version = '(.*)'/m ? $1 : die "$tree: no version\n"; }

sub install_path { my ($config) = @_; return dirname(`$config --bindir` =~ s/\n//r); }

# A server of the installation that a pg_config names, with these settings.
sub new_node
{
	my ($config, @settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new('main', install_path => install_path($config));

	$node->init(allows_streaming => 1);
	$node->append_conf('postgresql.conf', $_) for file('../tq.conf'), 'jit = off', @settings;
	$node->start;
	return $node;
}

sub switch_library
{
	my ($node, $config) = @_;

	$node->stop('fast');
	$node->{_install_path} = install_path($config);
	$node->start;
}

# What a file prints, run in a database.
sub answers
{
	my ($node, $database, $file) = @_;
	my ($code, $out, $err) = $node->psql($database, file($file));

	is("$code $err", '0 ', "$file in $database");
	return $out;
}

# SQLSTATE, message and hint of what a statement raises; "none" and its rows if it succeeds.
sub raised
{
	my ($node, $database, $sql) = @_;
	my ($code, $out, $err) = $node->psql($database, "\\set VERBOSITY verbose\n$sql");

	return $err =~ /ERROR:  (\w{5}): (.*)\n(?:DETAIL:  .*\n)?(?:HINT:  (.*)\n)?/ ? "$1 $2 | " . ($3 // '') : "none $out";
}

# Lines of the one text that the other has not.
sub only_in { my ($one, $other) = @_; my %has = map { $_ => 1 } split /\n/, $other; return join "\n", grep { !$has{$_} } split /\n/, $one; }

sub dbh
{
	my ($node, $database) = @_;

	return DBI->connect("dbi:Pg:dbname=$database;host=" . $node->host . ';port=' . $node->port, '', '', { RaiseError => 1, PrintError => 0, AutoCommit => 1 });
}

# Waits until so many maintenance workers run in a database.
sub has_worker
{
	my ($node, $database, $n, $what) = @_;

	return ok($node->poll_query_until('postgres',
			"SELECT count(*) = $n FROM pg_stat_activity WHERE backend_type = 'tq worker' AND datname = '$database'", 't'), $what);
}

1;
