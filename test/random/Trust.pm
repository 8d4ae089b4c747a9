# Trust.pm
#	  Clients that do not trust each other: their roles, and what they try.
#
# Each client is a session of a role of its own, which has every access to the
# queues of this client and to the shared ones, and none to those of another
# client.  In one more that some share, the others may only depend on tasks.  What it tries with the tasks, groups and queues of another must answer
# as doc/scopes.md "Who may do what to whose" says: as an id that is not used, or
# TQ403 where it names a queue.  That nothing has changed is proved by the other
# client, whose model knows nothing of it.  Every second role has quotas that its
# own queues and workers have used up from the start: it works with these, and
# now and then asks for one too many.
package Trust;

use strict;
use warnings;

use List::Util qw(max);

use Plan qw(ROUND_MS shared_queues may_give slug_of time_of round_start pick array_literal definition_json);

my @accesses = qw(produce work read manage join depend);

sub role_of    { my ($database, $no) = @_; return "random_${database}_$no" }
sub queues_of  { my ($no) = @_; return map { "own$no/$_" } qw(c d f) }
sub workers_of { my ($no) = @_; return map { "w$no-$_" } 0, 1 }
sub has_quotas { my ($no) = @_; return $no % 2 }
sub to_work    { my ($no) = @_; return grep { may_give($no) || !/^given/ } shared_queues() }

# A superuser makes the roles, and the queues that are of none of them.
sub make_roles
{
	my ($dbh, $database, $clients) = @_;
	for my $no (0 .. $clients - 1)
	{
		my $role = role_of($database, $no);
		$dbh->do("CREATE ROLE $role");
		$dbh->do('SELECT tq.grant_queue($1::text::regrole, q, a) FROM unnest($2::text[]) AS q, unnest($3::text[]) AS a', undef, $role,
			array_literal("own$no/*", 'shared/*'), array_literal(@accesses));
		$dbh->do('SELECT tq.grant_queue($1::text::regrole, $2, $3)', undef, $role, @$_)
		  for [ '*', 'unique' ], map { [ 'given/*', $_ ] } may_give($no) ? @accesses : 'depend';
		$dbh->do('SELECT tq.grant_scopes($1::text::regrole, $2)', undef, $role, "{queue:scheduler-id:s$no,queue:upkeep}");
	}
	$dbh->do('SELECT tq.set_queue($1, $2)', undef, $_, '{}') for shared_queues();
	return;
}

sub drop_roles
{
	my ($dbh, $database, $clients) = @_;
	$dbh->do('DROP ROLE IF EXISTS ' . join(', ', map { role_of($database, $_) } 0 .. $clients - 1));
	return;
}

# What a superuser sets in the session of a client: just enough for its queues, and
# for its workers there and in the shared ones.
sub quotas
{
	my ($no) = @_;
	return unless has_quotas($no);
	my $queues = queues_of($no);
	return ("SET tq.max_queues = $queues", 'SET tq.max_workers = ' . ($queues + to_work($no)) * workers_of($no), 'SET tq.max_callbacks = 0');
}

# The workers of these clients in these queues.
sub declare
{
	my ($dbh, $until, $queues, @workers) = @_;
	$dbh->do('SELECT tq.declare_worker(q, $1, w, $2) FROM unnest($3::text[]) AS q, unnest($4::text[]) AS w', undef,
		'g', time_of($until), array_literal(@$queues), array_literal(@workers));
	return;
}

# A client with quotas uses them up; its model knows it.
sub use_up
{
	my ($c) = @_;
	return unless has_quotas($c->{no});
	my @queues = (queues_of($c->{no}), to_work($c->{no}));
	declare($c->{dbh}, round_start(0) + 86_400_000, \@queues, workers_of($c->{no}));
	$c->{model}{queues}{$_} = 1 for @queues;
	for my $worker (workers_of($c->{no}))
	{
		$c->{model}{workers}{"$_/g/$worker"} = 0 for @queues;
	}
	return;
}

# In a queue that a superuser has made, clients with quotas find their workers.
sub declare_all
{
	my ($c, $queue) = @_;
	declare($c->{dbh}, round_start(0) + 86_400_000, [$queue], map { workers_of($_) } grep { has_quotas($_) } 0 .. $c->{clients} - 1);
	return;
}

# ---- what is another's ----

sub other { my ($c) = @_; return ($c->{no} + 1 + int(rand($c->{clients} - 1))) % $c->{clients} }

# An id of another client, of a task that may be there.
sub foreign_id
{
	my ($c) = @_;
	return slug_of('unknown', rand()) if $c->{clients} == 1 || rand() < 0.05;
	return slug_of('own', $c->{seed}, other($c), max(0, $c->{own_n} - int(rand(40))));
}

sub foreign_group
{
	my ($c) = @_;
	return foreign_id($c) if $c->{clients} == 1 || rand() < 0.5;
	return slug_of('own group', $c->{seed}, other($c), $c->{round});
}

# One of the calls with an id, or with a queue; with what each answers.
sub call_with
{
	my ($c, $id, $gid, $queue) = @_;
	my $mine = $c->own_queue;
	my @run  = ($id, int(rand(2)));
	return @{ pick(
		map({ [ 'TQ404', "SELECT tq.$_(\$1)", $id ] }
			qw(status task why result dependency_results list_dependent_tasks schedule_task rerun_task cancel_task skip_task delete_task
			  reschedule_task redrive)),
		map({ [ 'TQ404', "SELECT tq.$_(\$1)", $gid ] }
			qw(get_task_group list_task_group group_progress seal_task_group cancel_task_group retry_task_group cancel_group_callbacks)),
		[ 'TQ404', 'SELECT tq.rerun_task($1, NULL, true)', $id ],
		[ 'TQ404', 'SELECT tq.change_task_priority($1, $2)', $id, 'highest' ],
		[ 'TQ404', 'SELECT tq.add_dependencies($1, $2)', $id, '{}' ],
		[ 'TQ404', 'SELECT tq.on_group_resolved($1, $2)', $gid, $mine ],
		[ 'TQ404', 'SELECT tq.claim_task($1, $2, $3, $4)', @run, $c->worker ],
		map({ [ 'TQ404', "SELECT tq.$_(\$1, \$2)", @run ] } qw(reclaim_task report_completed report_failed)),
		[ 'TQ404', 'SELECT tq.defer_task($1, $2, $3)', @run, '1 s' ],
		[ 'TQ404', 'SELECT tq.report_exception($1, $2, $3)', @run, 'worker-shutdown' ],
		[ 'not-found', 'SELECT outcome FROM tq.resolve($1, $2)', array_literal($id), "{$run[1]}" ],
		map({ [ '', "SELECT task_id FROM tq.$_(\$1)", array_literal($id) ] } qw(statuses tasks)),
		map({ [ 'TQ403', "SELECT tq.$_(\$1)", $queue ] }
			qw(enqueue pause_queue resume_queue task_queue_counts list_dead_letters list_pending_tasks list_workers redrive_queue)),
		[ 'TQ403', 'SELECT tq.set_queue($1, $2)', $queue, '{"paused": true}' ],
		[ 'TQ403', 'SELECT tq.quarantine_worker($1, $2, $3, $4)', $queue, $c->worker, time_of(round_start($c->{round} + 1)) ],
		[ 'TQ403', 'SELECT tq.claim_work($1, $2, $3)', $queue, $c->worker ],
		[ 'TQ403', 'SELECT tq.claim_work($1::text[], $2, $3)', array_literal($mine, $queue), $c->worker ]) };
}

# A task of one's own that takes the id, or joins the group, if that is there.
sub create_with
{
	my ($c, $id, $gid) = @_;
	my ($has_task, $has_group) = $c->as_superuser(sub {
		return $c->{dbh}->selectrow_array('SELECT EXISTS (SELECT FROM tq_internal.task WHERE task_id = $1),'
			  . ' EXISTS (SELECT FROM tq_internal.task_group WHERE task_group_id = $2)'
			  . ' OR EXISTS (SELECT FROM tq_internal.task WHERE task_id = $2 AND group_id IS NULL)', undef, $id, $gid);
	});
	my $d = $c->plain_definition;
	return ('TQ409', 'SELECT tq.create_task($1, $2)', $id, definition_json($d)) if $has_task && rand() < 0.5;
	return ('TQ403', 'SELECT tq.create_task($1, $2)', $d->{id}, definition_json({ %$d, group => $gid })) if $has_group;
	return ('TQ400', 'SELECT tq.create_task($1, $2)', $d->{id}, definition_json({ %$d, deps => [$id] }));
}

# Alone several, because each that is refused ends a transaction.
sub foreign
{
	my ($c) = @_;
	return $c->own_read if $c->{clients} == 1;
	try_foreign($c) for 1 .. $c->{in_tx} ? 1 : 4;
	return;
}

sub try_foreign
{
	my ($c) = @_;
	my @ids = (foreign_id($c), foreign_group($c));
	my ($want, @call) = rand() < 0.7 ? call_with($c, @ids, pick(queues_of(other($c)), may_give($c->{no}) ? () : 'given/q')) : create_with($c, @ids);
	my ($r) = $c->own(sub { return $want =~ /^TQ/ ? $want : undef }, @call) or return;
	my $got = join(' ', map { $_->[0] } @{ $r->{rows} });
	$c->fault("@call: $got instead of $want") if $got ne $want;
	return;
}

# ---- quotas ----

# One queue, worker or callback too many.
sub too_much
{
	my ($c) = @_;
	return $c->own_read unless has_quotas($c->{no});
	my $d   = $c->plain_definition;
	my $t   = $c->{model}->task($c->own_in_state('pending'));
	my $new = "own$c->{no}/new";
	my ($sql, @bind) = @{ pick(
		[ 'SELECT tq.enqueue($1)', $new ],
		[ 'SELECT tq.create_task($1, $2)', $d->{id}, definition_json({ %$d, queue => $new }) ],
		[ 'SELECT tq.set_queue($1, $2)', $new, '{"paused": true}' ],
		[ 'SELECT tq.claim_work($1, $2, $3)', $new, $c->worker ],
		[ 'SELECT tq.claim_work($1, $2, $3)', $c->own_queue, 'g', "new$c->{op}" ],
		$t && Model::state_of($t) =~ /pending|running/
		? [ 'SELECT tq.on_group_resolved($1, $2)', Model::group_of($t->{def}), $t->{def}{queue} ]
		: ()) };
	return $c->own(sub { return '53400' }, $sql, @bind);
}

1;
