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

our @EXPORT = qw(file version_of new_node answers raised calls switch_library only_in dbh has_worker);
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

# What a file prints, run in a database; of an extension that may be another than tq.
sub answers
{
	my ($node, $database, $file, $extension) = @_;
	my $sql = file($file);

	$sql =~ s/extname = 'tq'/extname = '$extension'/ if $extension;
	my ($code, $out, $err) = $node->psql($database, $sql);

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

# A call of each function of schema tq in a language, with arguments that are not NULL where
# that is possible.
sub calls
{
	my ($node, $database, $language) = @_;

	return split /\n/, $node->safe_psql($database, q(
	SELECT format('%s %s.%I(%s)', CASE p.prokind WHEN 'p' THEN 'CALL' ELSE 'SELECT' END, n.nspname, p.proname,
		(SELECT string_agg(format('%s::%s', CASE format_type(a, NULL)
			WHEN 'jsonb' THEN '''{}''' WHEN 'text' THEN '''a/b''' WHEN 'text[]' THEN '''{a/b}''' WHEN 'jsonb[]' THEN '''{"{}"}'''
			WHEN 'tq.slugid' THEN '''AAAAAAAAQACAAAAAAAAAAA''' WHEN 'tq.slugid[]' THEN '''{AAAAAAAAQACAAAAAAAAAAA}''' WHEN 'regrole' THEN '''pg_monitor'''
			WHEN 'interval' THEN '''1 ms''' WHEN 'timestamp with time zone' THEN '''2026-01-01''' WHEN 'integer[]' THEN '''{0}''' WHEN 'boolean' THEN '''t'''
			WHEN 'int4multirange' THEN '''{}''' WHEN 'bigint[]' THEN '''{1}''' ELSE '''1''' END, format_type(a, NULL)), ', ' ORDER BY i)
		FROM unnest(p.proargtypes) WITH ORDINALITY AS u (a, i)))
	FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
	WHERE n.nspname = 'tq' AND l.lanname ~ ') . "^$language\$' ORDER BY 1");
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
