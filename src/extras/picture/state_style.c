/*
 * state_style.c
 *	  How pictures show the state of a task.
 */
#include "postgres.h"

#include "picture.h"

const TqStateStyle tq_state_styles[TQ_STATES] =
	{[TQ_STATE_UNSCHEDULED] = {"#bbbbbb", "#000000", "box", "filled,dashed",
							   "[", "]", '.'},
	 [TQ_STATE_PENDING] = {"#f0e442", "#000000", "box", "filled,rounded", "(",
						   ")", '-'},
	 [TQ_STATE_RUNNING] = {"#56b4e9", "#000000", "cds", "filled,bold", ">",
						   "]", '='},
	 [TQ_STATE_COMPLETED] = {"#009e73", "#000000", "box", "filled", "[", "]",
							 '#'},
	 [TQ_STATE_FAILED] = {"#d55e00", "#000000", "octagon", "filled,bold", "{{",
						  "}}", 'x'},
	 [TQ_STATE_EXCEPTION] = {"#cc79a7", "#000000", "hexagon", "filled", "{{",
							 "}}", '!'}};
