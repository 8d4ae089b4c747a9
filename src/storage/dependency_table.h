/*
 * dependency_table.h
 *	  Rows of tq_internal.dependency, tq_internal.unscheduled and
 *	  tq_internal.dependency_counter: dependencies and unscheduled tasks.
 */
#ifndef TQ_DEPENDENCY_TABLE_H
#define TQ_DEPENDENCY_TABLE_H

/* The end of a required task, and what its earlier runs have met already. */
typedef struct TqMet
{
	int64 required;
	bool completed;         /* the run that ends now counts as completed */
	int previous_completed; /* last earlier run that did, or -1 */
	int previous_final;     /* last earlier run that was final, or -1 */
} TqMet;

/* An unscheduled task, or one stripe of its dependency counter. */
typedef struct TqWaiting
{
	int64 task;
	int stripe; /* stripe of the counter; -1: the whole counter */
	int unmet;
} TqWaiting;

/* A dependency: the run of the required task from which on it can be met. */
typedef struct TqEdge
{
	int64 required;
	int64 dependent;
	int from_run;
} TqEdge;

extern void tq_dependencies_insert(int64 dependent, const int64 *required,
								   const int32 *from_run, int n);
extern void tq_dependencies_exist(const int64 *tasks, int n, bool *exist);
extern TqWaiting *tq_dependencies_met(const TqMet *met, int n, int *found);
extern int64 *tq_dependencies_unscheduled(const int64 *tasks, int n,
										  int *found);
extern int64 *tq_dependencies_dependents(const int64 *tasks, int n,
										 int *found);
extern int64 *tq_dependencies_required(const int64 *tasks, int n,
									   const int64 *by, int nby, int *found);
extern int64 *tq_dependencies_needed(const int64 *required, int n, int *found);
extern int64 *tq_dependencies_downstream(const int64 *tasks, int n,
										 int *found);
extern int64 *tq_dependencies_upstream(const int64 *tasks, int n, int *found);
extern int64 *tq_dependencies_doomed(const int64 *tasks, int n,
									 const int64 *except, int nexcept,
									 int *found);
extern TqEdge *tq_dependencies_of(const int64 *tasks, int n, int *found);
extern void tq_dependencies_set_from_run(const TqEdge *edges, int n);
extern void tq_unscheduled_insert(int64 task, const int64 *unmet, int n,
								  bool all_resolved, int next_run);
extern void tq_unscheduled_count_up(int64 task, const int64 *unmet, int n);
extern void tq_unscheduled_clear(int64 task);
extern int tq_compare_waiting(const void *a, const void *b);
extern TqWaiting *tq_unscheduled_lock(const int64 *tasks, int n, int *found);
extern TqWaiting *tq_unscheduled_try_lock(const int64 *tasks, int n,
										  int *found);
extern void tq_unscheduled_count_down(const TqWaiting *waiting, int n,
									  const bool *may_free, bool *is_free,
									  int *next_run);
extern void tq_unscheduled_touch(const int64 *tasks, int n);
extern void tq_unscheduled_delete(const int64 *tasks, int n);

#endif /* TQ_DEPENDENCY_TABLE_H */
