/*
 * run_progress.h
 *	  What the workers of a group have reported of their running runs.
 */
#ifndef TQ_RUN_PROGRESS_H
#define TQ_RUN_PROGRESS_H

#include "group_table.h"

extern double tq_progress_of_group(const TqGroup *group);

#endif /* TQ_RUN_PROGRESS_H */
