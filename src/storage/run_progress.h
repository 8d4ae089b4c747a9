/*
 * run_progress.h
 *	  What the workers of a group have reported of their running runs.
 */
#ifndef TQ_RUN_PROGRESS_H
#define TQ_RUN_PROGRESS_H

#include "group_table.h"

extern bool tq_progress_is_reported(int64 group);
extern double tq_progress_of_own(const TqGroup *group);
extern double tq_progress_of_group(const TqGroup *group, int64 tasks);

#endif /* TQ_RUN_PROGRESS_H */
