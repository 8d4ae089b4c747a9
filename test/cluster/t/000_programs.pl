# Which of the programs that the other tests here need are installed.  They skip
# what they cannot do, and this one says why.
use strict;
use warnings FATAL => 'all';

use Test::More;

my %version_of = (
	patroni => 'patroni --version',
	etcd => 'etcd --version',
	psycopg2 => q{/usr/bin/python3 -c 'import psycopg2; print(psycopg2.__version__)'},
	plproxy => q{sed -n "s/^default_version = '\(.*\)'/\1/p" "$(pg_config --sharedir)/extension/plproxy.control"},
);

foreach my $program (sort keys %version_of)
{
	my ($version) = `$version_of{$program} 2>&1` =~ /^\D*(\d[\d.]*)/m;

  SKIP:
	{
		skip "there is no $program", 1 if $? != 0 || !defined $version;
		pass("$program $version");
	}
}

done_testing();
