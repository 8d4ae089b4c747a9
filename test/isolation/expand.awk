# expand.awk: a spec with the texts that it includes.
#
# "include a b" is a line of a setup, or of an included text, and stands for the texts
# of include/a.sql and include/b.sql; "setup { include a b }" is a setup of nothing else.
# A step becomes one line, because isolationtester prints it before the results.

function fail(text) {
	print "expand.awk: " text > "/dev/stderr"
	failed = 1
	exit 1
}

function include(name,    file, line, n) {
	file = dir "/" name ".sql"
	if (file in being_read)
		fail(name " includes itself")
	being_read[file]
	while ((n = (getline line < file)) > 0)
		expand(line)
	if (n < 0)
		fail("there is no " file)
	close(file)
	delete being_read[file]
}

# Includes the texts that a line names, from a field on.
function include_all(line, from,    field, n, i) {
	n = split(line, field)
	for (i = from; i <= n && field[i] != "}"; i++)
		include(field[i])
}

function expand(line) {
	if (line ~ /^[ \t]*include[ \t]/)
		include_all(line, 2)
	else
		print line
}

/^setup[ \t]+[{][ \t]*include[ \t].*[}]$/ {
	print "setup {"
	include_all($0, 4)
	print "}"
	next
}
/^step[ \t]/ { in_step = 1 }
in_step {
	in_step = !/[}]/
	sub(/^[ \t]+/, " ")
	printf "%s%s", $0, in_step ? "" : "\n"
	next
}
{ expand($0) }
