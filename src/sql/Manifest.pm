# Manifest.pm: reads the declarations of the functions of schema tq, and of those of
# tq_internal that any role may call, and what src/sql/functions says of each.
#
#	my $manifest = Manifest->new(TREE);		dies, naming the line, of what does not fit
#	Manifest->new(TREE, SCRIPT);			the same, with the SQL of the script that is installed
#	$manifest->{sql}						the SQL of the extension
#	$manifest->{functions}					its functions, as they are declared: see declare()
#	$manifest->{calls}						the lines of the manifest, in order: see add_line()
package Manifest;

use strict;
use warnings FATAL => 'all';

# What the language of a body says of a function: what it does, and its class in the
# audit trail.
my %said = (tq_read => 'reads -|neither -', tq_call => 'writes -', tq_client => 'writes client', tq_operate => 'writes operator');

sub slurp { local ($/, @ARGV) = (undef, @_); return <>; }

sub fault { my ($self, @what) = @_; die "$self->{tree}/src/sql/functions: @what\n"; }

# The text from an opening parenthesis to the one that closes it.
sub balanced
{
	my ($text) = @_;

	return $text =~ /\A(\((?:[^()']|'[^']*'|(?1))*\))/ ? $1 : die 'no parenthesis in: ' . substr($text, 0, 60) . "\n";
}

# "a int, b text DEFAULT ','" as a list: what is between commas outside of
# parentheses, brackets and strings.
sub split_list
{
	my ($list) = @_;
	my @all;

	while ($list =~ /\G\s*((?:[^()\[\],']|'[^']*'|(\((?:[^()']|'[^']*'|(?2))*\))|(\[(?:[^\[\]']|'[^']*'|(?3))*\]))+),?/g)
	{
		push @all, $1 =~ s/\s+/ /gr =~ s/ $//r;
	}
	return @all;
}

# The statement that begins there; it ends with a semicolon at the end of a line, but
# not within $$.
sub statement
{
	my ($sql, $position) = @_;

	return substr($sql, $position) =~ /\A((?:[^;\$]++|\$(\w*)\$.*?\$\g2\$|\$|;(?!\n))*;)\n/s ? $1 : die "no statement at $position\n";
}

# The SQL of the tree, in any order, without the scripts that are installed, whose names
# have two hyphens.
sub read_sql
{
	my ($tree) = @_;

	return join '', map { slurp($_) } grep { !/--/ } sort glob "$tree/src/sql/*.sql";
}

# A function or procedure of the SQL: its key, which is its name, or name/2 of the
# second of that name; its schema; the text of its declaration and of parts of it.
sub declare
{
	my ($self, $kind, $schema, $name, $begin, $end) = @_;
	my %f = (kind => $kind, schema => $schema, name => $name, position => $begin);
	my $arguments = balanced(substr($self->{sql}, $end));
	my $rest = substr($self->{sql}, $end + length $arguments);

	$f{returns} = $rest =~ /\A\s*RETURNS (TABLE \((?:[^()]|\([^()]*\))*\)|(?:SETOF )?[\w.]+(?:\[\])?)/ ? $1 =~ s/\s+/ /gr : '';
	$f{statement} = statement($self->{sql}, $begin);
	($f{language}) = $f{statement} =~ /\bLANGUAGE (\w+)/ or die "$name: no language\n";
	$f{arguments} = $arguments;
	$f{list} = [ split_list(substr($arguments, 1, -1)) ];
	$f{inputs} = [ grep { !/^OUT / } @{ $f{list} } ];
	for (@{ $f{inputs} })
	{
		my ($argument, $type, $default) = /^(?:INOUT )?(\w+) (.*?)(?: DEFAULT (.*))?$/ or die "$name: argument $_\n";

		push @{ $f{names} }, $argument;
		$f{type}{$argument} = $type;
		$f{default}{$argument} = $default if defined $default;
	}
	$f{names} //= [];
	$f{returns_out} = join ', ', map { s/^OUT //r } grep { /^OUT / } @{ $f{list} };
	$f{comment} = statement($self->{sql}, $begin + 1 + length $f{statement});
	$f{comment} =~ /^COMMENT ON $kind $schema\.$name\(/ or die "$schema.$name: its comment does not follow\n";
	$f{key} = $name;
	for (my $n = 2; exists $self->{function}{ $f{key} }; $n++) { $f{key} = "$name/$n"; }
	$self->{function}{ $f{key} } = \%f;
	push @{ $self->{functions} }, \%f;
}

# The arguments of a sample by name; without those that are left out.
sub read_sample
{
	my ($self, $key, $f, $sample) = @_;
	my (%given, $n);

	$n = 0;
	for my $value (split_list($sample))
	{
		my $name = $value =~ s/^(\w+) => // ? $1 : $f->{names}[ $n++ ] // $self->fault("$key has no argument for $value");

		$self->fault("$key has no argument $name") unless exists $f->{type}{$name};
		$self->fault("$key: the sample gives $name twice") if exists $given{$name};
		$given{$name} = $value;
	}
	for my $name (@{ $f->{names} })
	{
		$self->fault("$key: the sample does not give $name, which has no default")
		  unless exists $given{$name} || exists $f->{default}{$name};
	}
	return \%given;
}

# The scopes in words, as a list of what is required together, each a list of
# alternatives, each a list of scopes.
sub read_scopes
{
	my ($self, $key, $text) = @_;

	return [] if $text eq 'none' || $text eq 'owner';
	for (my $depth = 0; $text =~ /\@/; $depth++)
	{
		$self->fault("$key: a word of scopes stands for itself") if $depth > 9;
		$text =~ s/\@(\w+)/$self->{word}{$1} \/\/ $self->fault("$key: there is no \@$1")/ge;
	}
	return [ map { [ map { [ split ', ' ] } split ' or ' ] } split '; ', $text ];
}

# A line: the function's declaration as {function}, and its columns: {sample}, the
# arguments of which are {given}, {state}, {does}, {alone}, {scopes} and {needs}, which
# has them as lists, {class} and {audited}, {route} and {rest} of it.
sub add_line
{
	my ($self, $line) = @_;
	my ($schema, $key, $sample, @column) = $line =~
	  m{^(?:(\w+)\.)?([\w/]+)\((.*?)\) \| (\w+) \| (reads|writes|neither)( alone)? \| ([^|]+?) \| ([^|]+?) \| (\w+)(?: ([^|]+))?$}
	  or $self->fault("this is not name(sample) | state | does | scopes | audit | route: $line");
	my ($state, $does, $alone, $scopes, $audit, $route, $rest) = @column;
	my $f = $self->{function}{$key} // $self->fault("no function $key is declared");
	my ($class, @audited) = split / /, $audit;

	$self->fault("$key is in schema $f->{schema}") if ($schema // 'tq') ne $f->{schema};
	$self->fault("$key is there twice") if exists $self->{call}{$key};
	$self->fault("$key: the audit trail has classes operator and client, and not $class") unless $class =~ /^(?:operator|client|-)$/;
	$self->fault("$key: what is not in the audit trail has no arguments there") if $class eq '-' && @audited;
	$self->fault("$key is in the audit trail, but does not write") if $class ne '-' && $does ne 'writes';
	$self->fault("$key is in $f->{language}, and so $said{$f->{language}}")
	  if exists $said{ $f->{language} } && "$does $class" !~ /^(?:$said{$f->{language}})$/;
	for (@audited) { $self->fault("$key has no argument $_ for the audit trail") unless exists $f->{type}{$_}; }
	$self->{call}{$key} = {
		function => $f, key => $key, sample => $sample, given => $self->read_sample($key, $f, $sample),
		state => $state, does => $does, alone => defined $alone, scopes => $scopes,
		needs => $self->read_scopes($key, $scopes), class => $class, audited => \@audited, route => $route, rest => $rest // '' };
	push @{ $self->{calls} }, $self->{call}{$key};
}

sub new
{
	my ($class, $tree, $script) = @_;
	my $self = bless { tree => $tree, functions => [], calls => [], function => {}, call => {}, word => {} }, $class;
	my $text = slurp("$tree/src/sql/functions") =~ s/^(?:#.*)?\n//gmr;
	my @left;

	$self->{sql} = defined $script ? slurp($script) : read_sql($tree);
	my %internal = map { $_ => 1 } $text =~ /^tq_internal\.(\w+)/mg;
	while ($self->{sql} =~ /^CREATE (FUNCTION|PROCEDURE) (tq|tq_internal)\.(\w+)/mg)
	{
		$self->declare($1, $2, $3, $-[0], pos $self->{sql}) if $2 eq 'tq' || $internal{$3};
	}
	for my $line (split /\n/, $text =~ s/\n\t/ /gr)
	{
		if ($line =~ /^\@(\w+) = (.*)$/) { $self->{word}{$1} = $2; }
		else { $self->add_line($line); }
	}
	@left = grep { !exists $self->{call}{$_} } map { $_->{key} } @{ $self->{functions} };
	$self->fault("no line for @left") if @left;
	return $self;
}

1;
