/*
 * svg.c
 *	  What the pictures in SVG share: elements, style, legend.
 *
 * A picture needs nothing but itself: no script, no font, no other file.  All
 * that a user has named goes through tq_label_html().  A state has a colour and
 * a pattern of lines, and its name is written beside it.
 */
#include "postgres.h"

#include "../../core/names.h"
#include "picture.h"

/* How wide the part of a state is at least. */
#define SHARE_MIN 4

static const char *const lines[TQ_STATES] =
	{[TQ_STATE_UNSCHEDULED] = NULL,
	 [TQ_STATE_PENDING] = "M0 4h2M4 0h2M4 8h2",
	 [TQ_STATE_RUNNING] = "M4 0v8",
	 [TQ_STATE_COMPLETED] = NULL,
	 [TQ_STATE_FAILED] = "M0 8L8 0M-2 2L2 -2M6 10L10 6",
	 [TQ_STATE_EXCEPTION] = "M0 8L8 0M0 0L8 8"};

/* Appends the style sheet of pictures, for light and dark surroundings. */
void
tq_svg_style(StringInfo out)
{
	appendStringInfoString(
		out,
		"text{font:12px sans-serif;fill:#111;unicode-bidi:isolate}"
		".small{font-size:10px}.bold{font-weight:bold}.end{text-anchor:end}"
		".in{fill:#000}.back{fill:#fff}.stripe{fill:#f3f3f3}"
		".line{stroke:#888;fill:none}.grid{stroke:#ccc;fill:none}"
		".wait{stroke:#888;stroke-dasharray:2 2;fill:none}"
		".mark{fill:#000}.path{stroke:#d00;stroke-width:3;fill:none}"
		".tip{fill:#888}");
	for (int state = 0; state < TQ_STATES; state++)
		appendStringInfo(out, ".%s{fill:%s;stroke:#333}", tq_state_name(state),
						 tq_state_styles[state].fill);
	appendStringInfoString(
		out, ".unscheduled{stroke-dasharray:4 3}.running{stroke-width:2}"
			 ".failed{stroke-width:3}"
			 "@media(prefers-color-scheme:dark){text{fill:#eee}.in{fill:#000}"
			 ".back{fill:#161616}.stripe{fill:#222}.grid{stroke:#444}"
			 ".line,.wait{stroke:#999}.tip{fill:#999}");
	for (int state = 0; state < TQ_STATES; state++)
		appendStringInfo(out, "%s.%s", state == 0 ? "" : ",",
						 tq_state_name(state));
	appendStringInfoString(out, "{stroke:#ddd}}");
}

/* Appends the patterns of lines by which states differ without colour. */
void
tq_svg_patterns(StringInfo out)
{
	appendStringInfoString(out, "<defs>");
	for (int state = 0; state < TQ_STATES; state++)
	{
		if (lines[state] == NULL)
			continue;
		appendStringInfo(
			out,
			"<pattern id=\"p-%s\" width=\"8\" height=\"8\" "
			"patternUnits=\"userSpaceOnUse\"><path d=\"%s\" stroke=\"#000\" "
			"stroke-width=\"1.5\"/></pattern>",
			tq_state_name(state), lines[state]);
	}
	appendStringInfoString(out, "</defs>");
}

/*
 * Begins a picture with what it is called.  One that is alone has style and
 * patterns itself; in a page they are those of the page.
 */
void
tq_svg_begin(StringInfo out, int width, int height, const char *label,
			 bool is_alone)
{
	appendStringInfo(out,
					 "<svg%s width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
					 "role=\"img\"><title>",
					 is_alone ? " xmlns=\"http://www.w3.org/2000/svg\"" : "",
					 width, height, width, height);
	tq_label_html(out, label);
	appendStringInfoString(out, "</title>\n");
	if (is_alone)
	{
		appendStringInfoString(out, "<style>");
		tq_svg_style(out);
		appendStringInfoString(out, "</style>");
		tq_svg_patterns(out);
		appendStringInfoChar(out, '\n');
	}
	appendStringInfo(out,
					 "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n",
					 width, height);
}

void
tq_svg_end(StringInfo out)
{
	appendStringInfoString(out, "</svg>\n");
}

/* Appends a line of text. */
void
tq_svg_text(StringInfo out, double x, double y, const char *class,
			const char *label)
{
	appendStringInfo(out, "<text x=\"%g\" y=\"%g\" class=\"%s\">", x, y,
					 class);
	tq_label_html(out, label);
	appendStringInfoString(out, "</text>");
}

/* Appends a box in the colour and, at its left end, the pattern of a state. */
void
tq_svg_box(StringInfo out, double x, double y, double width, double height,
		   TqState state)
{
	const char *name = tq_state_name(state);

	appendStringInfo(out,
					 "<rect class=\"%s\" x=\"%g\" y=\"%g\" width=\"%g\" "
					 "height=\"%g\" rx=\"%d\"/>",
					 name, x, y, width, height,
					 state == TQ_STATE_PENDING ? 8 : 2);
	if (width >= 4 && lines[state] != NULL)
		appendStringInfo(out,
						 "<rect fill=\"url(#p-%s)\" x=\"%g\" y=\"%g\" "
						 "width=\"%g\" height=\"%g\"/>",
						 name, x, y, Min(width, 16), height);
}

/* Appends a box with a part for each state, the least of which is seen. */
void
tq_svg_shares(StringInfo out, double x, double y, double width, double height,
			  const int *count, bool numbered)
{
	static const TqState order[TQ_STATES] = {TQ_STATE_COMPLETED,
											 TQ_STATE_FAILED,
											 TQ_STATE_EXCEPTION,
											 TQ_STATE_RUNNING,
											 TQ_STATE_PENDING,
											 TQ_STATE_UNSCHEDULED};
	int parts = 0;
	int tasks = 0;

	for (int i = 0; i < TQ_STATES; i++)
	{
		parts += count[i] > 0;
		tasks += count[i];
	}
	for (int i = 0; i < TQ_STATES; i++)
	{
		TqState state = order[i];
		double part;

		if (count[state] == 0)
			continue;
		part = SHARE_MIN + (width - SHARE_MIN * parts) * count[state] / tasks;
		appendStringInfo(out, "<g><title>%d %s</title>", count[state],
						 tq_state_name(state));
		tq_svg_box(out, x, y, part, height, state);
		if (numbered && part > 40)
			tq_svg_text(out, x + 20, y + 14, "in",
						psprintf("%d", count[state]));
		appendStringInfoString(out, "</g>");
		x += part;
	}
}

/* Appends what each state looks like. */
void
tq_svg_legend(StringInfo out, int x, int y)
{
	for (int state = 0; state < TQ_STATES; state++)
	{
		tq_svg_box(out, x, y, 24, 14, (TqState) state);
		tq_svg_text(out, x + 30, y + 12, "small", tq_state_name(state));
		x += 110;
	}
	appendStringInfoChar(out, '\n');
}
