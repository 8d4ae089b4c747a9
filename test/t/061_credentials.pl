# Credentials of claims outlive a restart and a crash; a rotation of the secret
# reaches every session, and spares the claims that are out; a copy of the
# database does not accept them; a promoted standby accepts those of the claims
# that it has, and no others.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $db = 'postgres';
my $on = 'SET tq.credentials = on;';

# ---- helpers ----

# Claims a task of a queue, after creating it; returns the task and the credentials.
sub claim
{
	my ($node, $queue, $session) = @_;
	my $create = "SELECT 'task ' || tq.enqueue('p/$queue')::text;";

	return parse(($session ? $session->query_safe("$on $create") : $node->safe_psql($db, $create)) . "\n" . claim_only($node, $queue, $session));
}

sub claim_only
{
	my ($node, $queue, $session) = @_;
	my $sql = "$on SELECT 'with ' || credentials::text FROM tq.claim_work('p/$queue', 'g', 'w');";

	return $session ? $session->query_safe($sql) : $node->safe_psql($db, $sql);
}

sub parse
{
	my ($text) = @_;
	my ($task) = $text =~ /^task (\S+)/m;
	my ($credentials) = $text =~ /^with (.*)/m;

	return {task => $task, credentials => $credentials};
}

# What a call with these credentials says: ok, or its SQLSTATE.
sub answer
{
	my ($node, $call, $name) = @_;
	my ($status, $out, $err) = $node->psql($name // $db, "\\set VERBOSITY sqlstate\n$call;");

	return $err =~ /ERROR: +(\S+)/ ? $1 : $status == 0 ? 'ok' : "psql: $err";
}

sub assume
{
	my ($node, $claim, $name) = @_;

	return answer($node, "SELECT tq.assume('$claim->{credentials}')", $name);
}

sub complete
{
	my ($node, $claim) = @_;

	return answer($node, "SELECT tq.report_completed('$claim->{task}', 0, credentials => '$claim->{credentials}')");
}

# ---- restart and crash ----

my $node = new_node('primary', "log_statement = 'all'", 'log_parameter_max_length = -1', 'wal_level = replica');
$node->safe_psql($db, 'CREATE EXTENSION tq');
my $first = claim($node, 'first');
is(assume($node, $first), 'ok', 'another session has the rights of the claim');
$node->restart;
is(assume($node, $first), 'ok', 'after a restart');
$node->stop('immediate');
$node->start;
is(assume($node, $first), 'ok', 'after a crash');

# ---- rotation ----

my $session = $node->background_psql($db, on_error_stop => 0);
my $old = claim($node, 'old', $session);
ok($old->{credentials}, 'a session that has cached the secret');
$node->safe_psql($db, 'SELECT tq.rotate_secret()');
is(assume($node, $old), 'ok', 'rotated: what the old secret signed is valid');
my $new = claim($node, 'new', $session);
is(assume($node, $new), 'ok', 'rotated: what that session signs now, too');
$node->safe_psql($db, "UPDATE tq_internal.secret SET secret = sha256('none') WHERE until IS NOT NULL; SELECT tq.rotate_secret()");
is(assume($node, $old), 'TQ403', 'the old secret had signed the old ones');
is(assume($node, $new), 'ok', 'the session had used the new one');

# A claim whose transaction is in progress; a rotation does not wait for it.
$session->query_safe('BEGIN');
my $open = claim($node, 'open', $session);
is(assume($node, $open), 'TQ403', 'a claim that is not committed');
$node->safe_psql($db, 'SELECT tq.rotate_secret()');
$session->query_safe('COMMIT');
is(assume($node, $open), 'ok', 'committed after the rotation');

# A rotation that is rolled back, in a session that has used it.
$session->query_safe('BEGIN');
$session->query_safe('SELECT tq.rotate_secret(revoke => true)');
my $lost = claim($node, 'lost', $session);
$session->query_safe('ROLLBACK');
is(assume($node, $lost), 'TQ403', 'a claim and a rotation that were rolled back');
my $kept = claim($node, 'kept', $session);
is(assume($node, $kept), 'ok', 'that session signs with the secret of the others');
is(assume($node, $open), 'ok', 'and nothing was revoked');

# A session whose snapshot is older than a rotation caches what is committed.
$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$session->query_safe('SELECT count(*) FROM tq.task_overview');
$node->safe_psql($db, 'SELECT tq.rotate_secret()');
$session->query_safe("SELECT tq.assume('$kept->{credentials}')");
$session->query_safe('COMMIT');
my $after = claim($node, 'after');
like($session->query_safe("SELECT 'valid' || tq.assume('$after->{credentials}')::text"), qr/valid/, 'the secret of a rotation during a transaction');

# Two rotations at a time make two secrets, of which one signs.
$session->query_safe('BEGIN');
$session->query_safe('SELECT tq.rotate_secret()');
my $second = $node->background_psql($db, on_error_stop => 0);
$second->query_until(qr/go/, "\\echo go\nSELECT tq.rotate_secret();\n");
ok($node->poll_query_until($db, q{SELECT count(*) = 1 FROM pg_locks WHERE relation = 'tq_internal.secret'::regclass AND NOT granted}), 'a rotation waits for another one');
is(assume($node, claim($node, 'meanwhile')), 'ok', 'claims do not');
$session->query_safe('COMMIT');
$second->query_safe('SELECT 1');
is($node->safe_psql($db, 'SELECT count(*) FROM tq_internal.secret WHERE until IS NULL'), '1', 'then one secret signs');
$_->quit foreach $session, $second;
is(assume($node, $after), 'ok', 'and nothing was revoked');

# ---- copies ----

my $claim = claim($node, 'copied');
$node->safe_psql('template1', "CREATE DATABASE copy TEMPLATE $db");
is($node->safe_psql('copy', 'SELECT md5(string_agg(s::text, $$ $$ ORDER BY id)) FROM tq_internal.secret AS s'),
	$node->safe_psql($db, 'SELECT md5(string_agg(s::text, $$ $$ ORDER BY id)) FROM tq_internal.secret AS s'), 'a copy of the database has the same secrets');
is(assume($node, $claim, 'copy'), 'TQ403', 'and accepts no credentials of the original');
is(assume($node, $claim), 'ok', 'which are valid there');

my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';
$node->safe_psql($db, 'CREATE ROLE dumper LOGIN IN ROLE pg_read_all_data');
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr($db), '-U', 'dumper' ], 'a role that reads all data dumps the database');
$node->safe_psql($db, 'CREATE DATABASE restored');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('restored'), '-f', $dump ], 'restored');
is($node->safe_psql('restored', "SELECT state FROM tq.task_overview WHERE task_id = '$claim->{task}'"), 'running', 'the claim is there');
is(assume($node, $claim, 'restored'), 'TQ403', 'and its credentials are not valid');
is($node->safe_psql('restored', 'SELECT count(*) FROM tq_internal.secret'), '1', 'there is another secret');

# No secret is in the dump or in the log.
my @secrets = split /\n/, $node->safe_psql($db, q{SET log_statement = 'none'; SELECT encode(secret, 'hex') FROM tq_internal.secret});
cmp_ok(scalar @secrets, '>', 1, 'secrets');
my $texts = slurp_file($dump) . slurp_file($node->logfile);
is(scalar(grep { index($texts, $_) >= 0 } @secrets), 0, 'are not in a dump, nor in a log of all statements and their parameters');
is(index($texts, $claim->{credentials} =~ s/.*"accessToken": "([^"]*)".*/$1/r) >= 0, 1, 'where credentials are that a client gives as text');

# ---- failover ----

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
my $seen = claim($node, 'seen');
my $longer = {%$seen};
my $unseen = {task => $node->safe_psql($db, q{SELECT tq.enqueue('p/unseen')})};
my $deferred = claim($node, 'deferred');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is(assume($standby, $seen), 'ok', 'a standby verifies credentials');
$standby->stop;

# What the standby never gets: a claim, a reclaim, a run that is deferred.
$unseen->{credentials} = parse(claim_only($node, 'unseen'))->{credentials};
$longer->{credentials} = $node->safe_psql($db, "$on SET tq.claim_timeout = '1h'; SELECT (tq.reclaim_task('$seen->{task}', 0)).credentials::text");
$node->safe_psql($db, "SELECT tq.defer_task('$deferred->{task}', 0, '0', '$deferred->{credentials}')");
is(join(' ', map { assume($node, $_) } $seen, $longer, $unseen, $deferred), 'ok ok ok TQ403', 'the old primary');
$node->stop('immediate');
$standby->start;
$standby->promote;
is(join(' ', map { assume($standby, $_) } $seen, $longer, $unseen, $deferred), 'ok TQ403 TQ403 ok', 'the new primary accepts those of the claims that it has');
my $again = {%$unseen, credentials => parse(claim_only($standby, 'unseen'))->{credentials}};
is(assume($standby, $unseen), 'TQ403', 'also when the same worker claims the same run');
is(complete($standby, $again), 'ok', 'which it reports with its new ones');
is(complete($standby, $seen), 'ok', 'a claim of the old primary is reported');
is(complete($standby, $longer), 'TQ403', 'not with those of the reclaim that is lost');

done_testing();
