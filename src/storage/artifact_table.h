/*
 * artifact_table.h
 *	  Rows of tq_internal.artifact: metadata of the artifacts of runs, and the
 *	  content of inline artifacts.
 */
#ifndef TQ_ARTIFACT_TABLE_H
#define TQ_ARTIFACT_TABLE_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../core/types.h"
#include "run_table.h"

typedef struct TqArtifact
{
	int64 task;
	int run_id;
	char *name;
	TqStorage storage;
	char *content_type;
	int64 content_length; /* -1: not known */
	TimestampTz expires;
	bool present;   /* its content is available */
	Jsonb *details; /* by storage type; NULL: not read */
} TqArtifact;

extern bool tq_artifact_lock_run(int64 task, int run_id, TqRun *run);
extern bool tq_artifact_insert(const TqArtifact *artifact);
extern void tq_artifact_update(const TqArtifact *artifact);
extern bool tq_artifact_find(int64 task, int run_id, const char *name,
							 bool whole, TqArtifact *artifact);
extern bool tq_artifact_lock(int64 task, int run_id, const char *name,
							 TqArtifact *artifact);
extern TqArtifact *tq_artifacts_of_run(int64 task, int run_id,
									   const char *after, int max, int *found);
extern int tq_artifacts_delete_expired(TimestampTz before, int max);
extern void tq_artifacts_delete_of_tasks(const int64 *tasks, int n);

#endif /* TQ_ARTIFACT_TABLE_H */
