# compact.awk: what isolationtester printed, as a paragraph for each permutation.
#
# The names of the steps come first, and then what the steps had to say.  What the spec
# says is left out: the SQL, and steps without an output.  Such a step is named only
# where its moment matters: when another one goes on after it, or a message comes.
#
#	step waits; other; step now VALUES	the step waits, and goes on after other
#	step a|b|c				a row; '' is a single value that is empty
#	step a|b / c|d (2 rows)			rows; they have lines of their own if they are long
#	step a + b				two results
#	step ERROR:  TEXT; s1: NOTICE:  TEXT	as they were printed
#
# The names of columns come first of all, with the steps whose results have them.  A
# line that is none of these is printed as it is.

BEGIN {
	WIDTH = 110
	TAB = 4
	ROW = "\001"	# between rows, as long as the output is collected
}

# ---- output ----

# Prints a line, indented by tabs, or several that are divided at blanks.
function print_line(tabs, text,    at, room) {
	while (length(text) > (room = WIDTH - TAB * tabs)) {
		for (at = room + 1; at > 1; at--)
			if (substr(text, at, 1) == " " && substr(text, at - 1, 1) != " ")
				break
		if (at <= 1)
			break
		body = body indent(tabs) substr(text, 1, at - 1) "\n"
		text = substr(text, at + 1)
		tabs = 3
	}
	body = body indent(tabs) text "\n"
}

function indent(tabs) { return substr("\t\t\t", 1, tabs) }

function end_line(end) {
	if (line != "")
		print_line(line_tabs, line end)
	line = ""
}

# Appends an item to the paragraph.
function put(item,    short, row, n, i) {
	short = item
	gsub(ROW, " / ", short)
	if (line != "" && TAB * line_tabs + length(line) + length("; " short ";") <= WIDTH) {
		line = line "; " short
		return
	}
	end_line(";")
	n = TAB + length(short) < WIDTH ? 1 : split(item, row, ROW)
	for (i = 1; i < n; i++)
		print_line(i == 1 ? 1 : 2, row[i])
	line = n == 1 ? short : row[n]
	line_tabs = n == 1 ? 1 : 2
}

# ---- input ----

# The item that is being read is a step, or a message; said is what it has said.
function begin_item(name, is_late) {
	end_item()
	if (is_late && silent != "") {
		put(silent)
		silent = ""
	}
	item = name
}

function say(text) {
	if (item == "")
		item = "setup"
	said = said " " text
}

function end_item() {
	end_heading()
	if (item == "")
		return
	if (said == "")
		silent = item
	else {
		put(item said)
		silent = ""
	}
	item = said = ""
	results = 0
}

# A line that might have been the names of columns, and is not.
function end_heading() {
	if (heading != "")
		say(heading)
	heading = ""
}

# Remembers that results of this step have these columns.
function name_columns(names,    step) {
	step = item == "" ? "setup" : item
	if ((names, step) in known)
		return
	known[names, step]
	if (!(names in steps_of))
		all_names[++n_names] = names
	steps_of[names] = steps_of[names] (steps_of[names] == "" ? "" : " ") step
}

# The values of a row of a table, without the blanks that align them.
function values(row,    at, i, value, all) {
	at = 1
	for (i = 1; i <= n_columns; i++) {
		value = substr(row, at, i < n_columns ? length(column[i]) : length(row))
		sub(/ +$/, "", value)
		if (value ~ /^ *[-+.0-9eE]+$/)
			sub(/^ +/, "", value)
		all = all (i > 1 ? "|" : "") value
		at += length(column[i]) + 1
	}
	return all
}

function end_paragraph() {
	end_item()
	silent = ""
	end_line("")
}

NR == 1 && /^Parsed test spec with / { next }
/^starting permutation: / {
	end_paragraph()
	print_line(0, substr($0, length("starting permutation: ") + 1))
	next
}
heading != "" && /^-+(\+-+)*$/ {
	n_columns = split($0, column, "+")
	names = values(heading)
	heading = ""
	name_columns(names)
	in_rows = 1
	rows = 0
	result = ""
	next
}
in_rows && /^\([0-9]+ rows?\)$/ {
	in_rows = 0
	if ($0 == "(1 row)" && rows == 1)
		say((results++ ? "+ " : "") (result == "" ? "''" : result))
	else
		say((results++ ? "+ " : "") result (rows ? " " : "") $0)
	next
}
in_rows {
	result = result (rows++ ? ROW : "") values($0)
	next
}
/^$/ { next }
/^step [^ ]+: / {
	name = substr($2, 1, length($2) - 1)
	if (/: <\.\.\. completed>$/) {
		begin_item(name, 1)
		say("now")
	} else {
		begin_item(name, 0)
		if (/ <waiting \.\.\.>$/)
			say("waits")
	}
	next
}
/^[^ ]+: [A-Z]+: / {
	begin_item($1, 1)
	sub(/^[^ ]+ /, "")
	sub(/ +$/, "")
	say($0)
	next
}
{
	end_heading()
	heading = $0
}
END {
	end_paragraph()
	paragraphs = body
	body = ""
	if (n_names)
		print_line(0, "columns")
	for (i = 1; i <= n_names; i++)
		print_line(1, steps_of[all_names[i]] ": " all_names[i])
	printf "%s%s", body, paragraphs
}
