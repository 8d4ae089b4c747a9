/*
 * state_style.h
 *	  How pictures show the state of a task.
 */
#ifndef TQ_STATE_STYLE_H
#define TQ_STATE_STYLE_H

#include "../core/types.h"

/*
 * Each state differs in more than its colour: in a terminal by a mark, elsewhere
 * by its name, the shape or a pattern of lines.
 */
typedef struct TqStateStyle
{
	const char *fill;  /* of Okabe and Ito, who chose them for all eyes */
	const char *ink;   /* colour of text on it */
	const char *shape; /* in Graphviz */
	const char *style; /* in Graphviz */
	const char *open;  /* in Mermaid, around the label */
	const char *close;
	char mark; /* in a terminal */
} TqStateStyle;

extern const TqStateStyle tq_state_styles[TQ_STATES];

#endif /* TQ_STATE_STYLE_H */
