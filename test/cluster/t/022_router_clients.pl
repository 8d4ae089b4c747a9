# The programs of doc/scaling.md that go to the shards themselves.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t";
use Tq;

my $node = new_node('clients', 'max_connections = 50');

plan skip_all => 'there is no plproxy' unless $node->safe_psql('postgres', q{SELECT 1 FROM pg_available_extensions WHERE name = 'plproxy'});

my @shards = ('s1', 's2', 's3');
my $user = getpwuid($<);
my $at = 'host=' . $node->host . ' port=' . $node->port;
my $router = "$at dbname=router user=$user";
my $document = slurp_file("$FindBin::RealBin/../../../doc/scaling.md");

$node->safe_psql('postgres', "CREATE DATABASE $_") foreach ('router', @shards);
$node->safe_psql($_, 'CREATE EXTENSION tq') foreach @shards;
$node->safe_psql('router', 'CREATE EXTENSION tq_shard CASCADE');
my $group = $node->safe_psql('s1', q{SELECT tq.enqueue('app/old', task_id => tq_internal.slugid_in_bucket(1000))});
$node->safe_psql('router', "CALL tq_shard.add_shard('$_', '$at dbname=$_')") foreach @shards;

sub program
{
	my ($language) = @_;

	return $document =~ /^```$language\n(.*?)^```$/ms ? $1 : die "doc/scaling.md has no program in $language";
}

sub created_in
{
	my ($queue) = @_;

	return join ' ', map { $node->safe_psql($_, "SELECT (tq.task_queue_counts('$queue') -> 'pendingTasks')::bigint") } @shards;
}

sub run_program
{
	my ($file, $text, @command) = @_;
	my $path = PostgreSQL::Test::Utils::tempdir() . "/$file";
	my ($out, $error) = ('', '');

	append_to_file($path, $text);
	my $ok = IPC::Run::run([ @command, $path ], '<', \undef, '>', \$out, '2>', \$error, IPC::Run::timeout(60));
	ok($ok, "$file runs") or diag($error);
	return $out;
}

$ENV{ROUTER} = $router;
run_program('shell', "for n in 1 2 3 4 5 6 7 8 9 10; do\n" . program('bash') . "\ndone\n", 'bash');
is(eval(created_in('app/shell') =~ s/ / + /gr), 10, 'each task of the shell is on the shard that accepts it: ' . created_in('app/shell'));

SKIP:
{
	skip 'there is no psycopg2', 3 if system("/usr/bin/python3 -c 'import psycopg2' 2>/dev/null") != 0;
	my $out = run_program('client.py', program('py') . <<"END", '/usr/bin/python3');

shards = Shards("$router")
for n in range(10):
    create(shards, "app/python", '{}')
print(shards.of_group("$group", 1000).info.dbname)
END
	is(eval(created_in('app/python') =~ s/ / + /gr), 10, 'each task of Python, too: ' . created_in('app/python'));
	is($out, "s1\n", 'a group that is older than the map is found');
}

SKIP:
{
	my $modules = $ENV{NODE_PATH} // '';

	skip 'there is no node with pg', 2 if system("node -e 'require(\"pg\")' 2>/dev/null") != 0;
	my $out = run_program('client.mjs', (program('mjs') =~ s/^import pg from 'pg'$/import { createRequire } from 'module'\nconst pg = createRequire('$modules\/')('pg')/mr) . <<"END", 'node');

const connectionOf = await loadMap({ host: '${\$node->host}', port: ${\$node->port}, database: 'router', user: '$user' })
for (const id of ['$group', 'AAAAAAAAQACAAAAAAAAAAA']) console.log(bucketOf(id), connectionOf(bucketOf(id)).replace(/.*dbname=/, ''))
END
	my ($one) = $node->safe_psql('router', q{SELECT name FROM tq_shard.map() WHERE buckets @> 1000});
	is($out, "1000 $one\n0 s1\n", 'node finds the shard of an id');
}

done_testing();
