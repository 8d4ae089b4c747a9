/*
 * svg.h
 *	  What the pictures in SVG share: elements, style, legend.
 */
#ifndef TQ_SVG_H
#define TQ_SVG_H

#include "lib/stringinfo.h"

#include "../core/types.h"

extern void tq_svg_begin(StringInfo out, int width, int height,
						 const char *label, bool is_alone);
extern void tq_svg_end(StringInfo out);
extern void tq_svg_style(StringInfo out);
extern void tq_svg_patterns(StringInfo out);
extern void tq_svg_text(StringInfo out, double x, double y, const char *class,
						const char *label);
extern void tq_svg_box(StringInfo out, double x, double y, double width,
					   double height, TqState state);
extern void tq_svg_legend(StringInfo out, int x, int y);

#endif /* TQ_SVG_H */
