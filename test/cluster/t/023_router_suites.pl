# The behaviour that test/pgtap states, through a router before one shard, and before
# three.  A file runs as it is, with helpers for a router; what it calls is committed
# on the shards at once.  The databases of each file are new.  Before three shards the
# tasks of a file are on one of them, which is another one for other files, because
# they depend on each other; claims, lists, counts and settings are those of all.
#
# Not here are files that
# - begin parts by ROLLBACK TO, and use the same ids again: 10, 2.08 (queues), 3.1, 3.5,
#   5.6, 8.4 (retention), conductor, taskbroker, and most of policy;
# - are about transactions, or change tables of tq: 2.00, 2.01_create_task, 5.1_delayed, 6.5;
# - read the log of messages, which each shard has: 2.20, 6.0 to 6.4, policy_messages;
#   020_router.pl has fetch() and ack();
# - call what does not run through a router: 5.7 (assume), 8.5 (top), policy_12, policy_16;
# - compare the text of errors, to which PL/Proxy adds its own: 1.2_faults, 2.22;
# - call functions of tq_internal, or look at a ctid: 2.14, 2.15, clock, policy_6_aging;
# - look at rows of views that a router has for each shard: 8.5_overviews, policy_6_views,
#   policy_corners;
# - need pg_cron, or roles that are not committed: 1.1_queue_names, 7, 8.6, attacks, policy_15;
# - quarantine a worker that only one shard knows: 2.16_queues_workers, 5.5.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t";
use Tq;

my $node = new_node('suites', 'max_connections = 50', 'fsync = off',
	'max_worker_processes = 1', 'max_logical_replication_workers = 0');
my $pgtap = "$FindBin::RealBin/../../pgtap";
my $temp = PostgreSQL::Test::Utils::tempdir();
my $at = 'host=' . $node->host . ' port=' . $node->port;

plan skip_all => 'there is no plproxy' unless $node->safe_psql('postgres', q{SELECT 1 FROM pg_available_extensions WHERE name = 'plproxy'});
plan skip_all => 'there is no pgtap' unless $node->safe_psql('postgres', q{SELECT 1 FROM pg_available_extensions WHERE name = 'pgtap'});

# What a shard has for these tests: settings that the session of the router has, and the
# tables of tq, whose types a router does not have, as text.
my $on_shard = <<'SQL';
CREATE SCHEMA suites;
GRANT USAGE ON SCHEMA suites TO PUBLIC;
CREATE FUNCTION suites.set(names text[], vals text[]) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	FOR i IN 1 .. cardinality(names) LOOP
		-- for the connection that comes after an error, too
		EXECUTE format('ALTER DATABASE %I SET %s = %L', current_database(), names[i], vals[i]);
		PERFORM set_config(names[i], vals[i], false);
	END LOOP;
END
$$;
DO $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT c.relname, string_agg(CASE WHEN t.typnamespace = 'tq_internal'::regnamespace THEN format('%1$I::text AS %1$I', a.attname)
			ELSE quote_ident(a.attname) END, ', ' ORDER BY a.attnum) AS columns
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid
		WHERE c.relnamespace = 'tq_internal'::regnamespace AND c.relkind IN ('r', 'v', 'p') GROUP BY 1 LOOP
		EXECUTE format('CREATE VIEW suites.%I AS SELECT %s FROM tq_internal.%1$I', r.relname, r.columns);
	END LOOP;
END
$$;
-- Deletes or changes a row, which is given as text.
CREATE FUNCTION suites.write(name text, old_row text, new_row text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	columns text;
BEGIN
	IF new_row IS NULL THEN
		EXECUTE format('DELETE FROM tq_internal.%1$I AS t WHERE t::text = $1', name) USING old_row;
	ELSE
		SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO columns FROM pg_attribute
			WHERE attrelid = format('tq_internal.%I', name)::regclass AND attnum > 0 AND NOT attisdropped;
		EXECUTE format('UPDATE tq_internal.%1$I AS t SET (%2$s) = (SELECT ($2::tq_internal.%1$I).*) WHERE t::text = $1', name, columns) USING old_row, new_row;
	END IF;
END
$$;
SQL

# What a router has for them: each call gives the settings of its session to the shards
# first, and the tables of tq are those of all shards.
my $on_router = <<'SQL';
CREATE SCHEMA suites;
CREATE SEQUENCE suites.sent MINVALUE -3000000000;
CREATE FUNCTION suites.send(names text[], vals text[]) RETURNS SETOF text LANGUAGE plproxy
	AS $$ CLUSTER 'tq_shard'; RUN ON ALL; SELECT suites.set($1, $2)::text; $$;
CREATE OR REPLACE FUNCTION tq_shard_internal.cluster() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	names text[] := '{SETTINGS}';
	vals text[] := ARRAY(SELECT current_setting(n) FROM unnest(names) AS n);
BEGIN
	-- a sequence, because a rollback leaves the shards as they are
	IF (SELECT last_value FROM suites.sent) <> hashtext(current_user || vals::text) THEN
		PERFORM setval('suites.sent', hashtext(current_user || vals::text));
		PERFORM suites.send(names, vals);
	END IF;
	RETURN 'tq_shard';
END
$$;
GRANT USAGE ON SCHEMA suites TO PUBLIC;
GRANT SELECT, UPDATE ON suites.sent TO PUBLIC;
CREATE SCHEMA tq_internal;
CREATE FUNCTION suites.write(name text, old_row text, new_row text) RETURNS SETOF text LANGUAGE plproxy
	AS $$ CLUSTER tq_shard_internal.cluster(); RUN ON ALL; SELECT suites.write($1, $2, $3)::text; $$;
CREATE FUNCTION suites.write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM suites.write(TG_TABLE_NAME, OLD::text, CASE WHEN TG_OP <> 'DELETE' THEN NEW::text END);
	RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END
$$;
SQL

my @settings = split /\n/, $node->safe_psql('postgres', q{SELECT name FROM pg_settings WHERE name LIKE 'tq.%' AND context IN ('user', 'superuser') ORDER BY 1});
$on_router =~ s/SETTINGS/join ',', @settings/e;

my $views = <<'SQL';
SELECT format($f$CREATE FUNCTION tq_internal.%1$s_all() RETURNS TABLE (%2$s) LANGUAGE plproxy AS $$ CLUSTER tq_shard_internal.cluster(); RUN ON ALL; SELECT * FROM suites.%1$s; $$;
	CREATE VIEW tq_internal.%1$s AS SELECT * FROM tq_internal.%1$s_all();
	CREATE TRIGGER suites INSTEAD OF UPDATE OR DELETE ON tq_internal.%1$s FOR EACH ROW EXECUTE FUNCTION suites.write();$f$, c.relname, string_agg(quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum))
	FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
	WHERE c.relnamespace = 'suites'::regnamespace AND c.relkind = 'v' GROUP BY c.relname
SQL

# Databases of which those of each file are copies.
sub make_templates
{
	my ($n) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $_") foreach ("t${n}_router", map { "t${n}_s$_" } 1 .. $n);
	$node->safe_psql("t${n}_s$_", "CREATE EXTENSION tq; $on_shard") foreach 1 .. $n;
	$node->safe_psql("t${n}_router", 'CREATE EXTENSION tq_shard CASCADE; CREATE EXTENSION pgtap');
	$node->safe_psql("t${n}_router", "CALL tq_shard.add_shard('s$_', '$at dbname=t${n}_s$_')") foreach 1 .. $n;
	$node->safe_psql("t${n}_router", $on_router . $node->safe_psql("t${n}_s1", $views));
	# from now on the names are those of the copies
	$node->safe_psql("t${n}_router", q{UPDATE tq_shard_internal.shard SET connection = regexp_replace(connection, 'dbname=t\d_', 'dbname='); SELECT tq_shard_internal.apply_map()});
	return;
}

# A file with what it includes, and after the helpers those for a router.
sub inlined
{
	my ($file, $bucket) = @_;
	my $text = slurp_file("$pgtap/$file");

	while ($text =~ s/^\\ir (\S+)\n/"-- $1\n" . slurp_file("$pgtap\/$1") . ($1 eq 'helper.psql' ? helpers($bucket) : '')/me) { }
	$text =~ s/\b((?:\w+\.)?page)::bigint\b/split_part($1, '=', 2)::bigint/g;
	return $text;
}

sub helpers
{
	my ($bucket) = @_;
	my $text = <<'SQL';
-- one row of a step for all shards
CREATE OR REPLACE FUNCTION pg_temp.upkeep() RETURNS text
LANGUAGE sql AS $$
	SELECT coalesce(string_agg(step || ' ' || tasks, ' '
		ORDER BY array_position('{deadline,claim-expired,delayed,expired}', step)), '')
	FROM (SELECT step, sum(tasks) AS tasks FROM tq.upkeep() GROUP BY step) AS u WHERE tasks <> 0 AND step NOT IN ('publish', 'retain')
$$;
SQL
	$text .= <<'SQL' =~ s/BUCKET/$bucket/r if defined $bucket;
-- ids of one bucket
CREATE OR REPLACE FUNCTION pg_temp.id(name text) RETURNS tq.slugid
LANGUAGE sql IMMUTABLE AS $$
	SELECT overlay(overlay(overlay(md5(name) PLACING '4' FROM 13 FOR 1) PLACING '8' FROM 17 FOR 1) PLACING lpad(to_hex(BUCKET), 3, '0') FROM 30)::uuid::tq.slugid
$$;
SQL
	return $text;
}

# Runs a file; returns what it printed.
sub run_file
{
	my ($n, $file, $bucket) = @_;
	my ($out, $error) = ('', '');
	my $path = "$temp/$n-$file";

	foreach my $db ('router', map { "s$_" } 1 .. $n)
	{
		$node->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE t${n}_$db");
	}
	my $text = inlined($file, $bucket);
	my @roles = $text =~ /^(CREATE ROLE .*;)$/mg;
	$text =~ s/^CREATE ROLE .*;\n//mg;
	$node->safe_psql('postgres', s/;$/ LOGIN;/r) foreach @roles;
	$node->safe_psql('router', "CREATE OR REPLACE FUNCTION tq_shard_internal.of_new() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT $bucket; END") if defined $bucket;
	append_to_file($path, $text);
	eval { IPC::Run::run([ 'psql', '-XqAt', '-P', 'pager=off', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('router'), '-f', $path ],
		'<', \undef, '>', \$out, '2>', \$error, IPC::Run::timeout(180)); 1 } or $error .= "ERROR: timeout";
	$node->safe_psql('postgres', "DROP DATABASE IF EXISTS $_ WITH (FORCE)") foreach ('router', map { "s$_" } 1 .. $n);
	$node->safe_psql('postgres', 'DROP ROLE ' . (split)[2]) foreach reverse @roles;
	return ($out, $error);
}

# Assertions that fail, by the beginning of their descriptions.
my %differs = (
	'2.08_claim_work' => [ 'a call is committed on its shard', '10.13 is rolled back', '10.13 and can be claimed by another' ],
	'2.12_resolve_reports' => [ 'PL/Proxy puts "Remote detail" before a detail', 'TQ400: ' ],
	'2.13_reads' => [ 'messages of the task are in the log', '8.4 the dependent is deleted' ],
	'4.2_tracking' => [ 'messages of the task are in the log', '10.6 a dependency is deleted' ],
	'4.5_task_groups' => [ 'messages of the task are in the log', '8.4 its task is deleted', '4.5 with no tasks' ],
	'5.1_order' => [ 'a call is committed on its shard', '5.1 rolled back, they keep' ],
	'8.4_sweeps' => [ 'messages of the task are in the log', '8.4 a task whose deadline', '8.4 is deleted' ],
	'policy_11_keys' => [ 'a call is committed on its shard', '11 (its keys)' ],
	'policy_6_settings' => [ 'a call is committed on its shard', '6 pauses nothing' ],
);
my @files = (qw(1.1_identifiers 1.2_definition 1.3_status 1.6_entities 1.7_artifact_limits 2.01_create_tasks 2.01_enqueue
	  2.01_enqueue_payload 2.01_enqueue_tasks 2.01_enqueue_times 2.02_define_task 2.03_schedule_task 2.04_rerun_task 2.05_cancel_task
	  2.06_cancel_task_group 2.07_pictures 2.07_task_group 2.09_claim_task 2.10_reclaim_task 2.11_report 2.12_report_exception
	  2.12_resolve 2.21_reschedule_task 3.2_exceptions 3.4_run_limits 3.6_claim_expiry 4.1_meaning 4.3_self_dependency
	  4.4_resolution 5.2_claim 5.4_races 8.1_counts policy_11_gates policy_2.1_retry policy_drop_payload policy_worker_retry),
	sort keys %differs);

# Whether all assertions of a file hold, but those that differ.
sub passes
{
	my ($n, $file, $bucket) = @_;
	my ($out, $error) = run_file($n, "$file.sql", $bucket);
	my ($reason, @known) = @{ $differs{$file} // ['none'] };
	my @failed = $out =~ /^not ok \d+ - (.*)/mg;
	my $run = () = $out =~ /^(?:not )?ok \d/mg;
	my ($plan) = $out =~ /^1\.\.(\d+)/m;
	my @other = grep { my $f = $_; !grep { $f =~ /^\Q$_\E/ } @known } @failed;
	my @held = grep { my $k = $_; !grep { /^\Q$k\E/ } @failed } @known;

	ok($run > 0 && $run == ($plan // 0) && !@other && !@held && $error !~ /ERROR:/,
		"$file, $n shards: $run assertions" . (@known ? ', without ' . @failed . ": $reason" : ''))
	  or diag(join "\n", ($plan // 'no') . ' planned', "failed: @other", "hold: @held", $error, $out =~ /^# .*/mg);
	return;
}

foreach my $n (1, 3)
{
	make_templates($n);
	passes($n, $files[$_], $n == 1 ? undef : 1 + ($_ % 3) * 400) foreach 0 .. $#files;
}

done_testing();
