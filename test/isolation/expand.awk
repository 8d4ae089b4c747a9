# expand.awk: a spec with the texts that it includes.
#
# "include a b" is a line of a setup, or of an included text, and stands for the texts
# of include/a.sql and include/b.sql; "setup { include a b }" is a setup of nothing else.
# A step becomes one line, because isolationtester prints it before the results.
#
# b1, c1 and r1 are BEGIN, COMMIT and ROLLBACK of session s1, where permutations name
# them and no step of the spec has that name.

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

# Steps that permutations name and the spec does not have, of the session with this name.
function imply(session,    number) {
	number = substr(session, 2)
	imply_step("b" number, "BEGIN")
	imply_step("c" number, "COMMIT")
	imply_step("r" number, "ROLLBACK")
}

function imply_step(step, sql) {
	if (step in used && !(step in given))
		print "step " step " { " sql "; }"
}

function print_spec(line) {
	if (line ~ /^setup[ \t]+[{][ \t]*include[ \t].*[}]$/) {
		print "setup {"
		include_all(line, 4)
		print "}"
		return
	}
	if (line ~ /^session[ \t]/) {
		split(line, field)
		session = field[2]
	}
	if (line ~ /^step[ \t]/) {
		if (session != "")
			imply(session)
		session = ""
		in_step = 1
	}
	if (!in_step) {
		expand(line)
		return
	}
	in_step = line !~ /[}]/
	sub(/^[ \t]+/, " ", line)
	printf "%s%s", line, in_step ? "" : "\n"
}

{ spec[NR] = $0 }
$1 == "step" { given[$2] }
$1 == "permutation" { in_permutations = 1 }
in_permutations {
	gsub(/[(),*]/, " ")
	for (i = 1; i <= NF; i++)
		used[$i]
}
END {
	for (i = 1; i <= NR && !failed; i++)
		print_spec(spec[i])
}
