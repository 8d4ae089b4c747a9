/*
 * artifact.h
 *	  Room 4: artifacts of runs.
 *
 * Callers have done tq_plan_open().
 */
#ifndef TQ_ARTIFACT_H
#define TQ_ARTIFACT_H

#include "rules.h"

/* ---- artifact_request.c: requests to create an artifact ---- */
extern void tq_artifact_check_name(const char *name);
extern TqArtifact *tq_artifact_parse(const TqSlug *task_id, int run_id,
									 char *name, Jsonb *request);
extern void tq_artifact_refuse_expires(const TqSlug *task_id,
									   const TqArtifact *artifact,
									   const char *rule);
extern bool tq_artifact_is_uploaded(TqStorage storage);
extern char *tq_artifact_label(const TqSlug *task_id, int run_id,
							   const char *name);

/* ---- artifact.c ---- */
extern TqTask *tq_artifact_create(const TqSlug *task_id, TqArtifact *artifact,
								  TimestampTz now);
extern void tq_artifact_finish(const TqSlug *task_id, int run_id,
							   const char *name, const TqSlug *upload_id);
extern int tq_artifact_latest_run(const TqTask *task);
extern void tq_artifact_check_run(const TqTask *task, int run_id);
extern void tq_artifact_get(const TqTask *task, int run_id, const char *name,
							TimestampTz now, TqArtifact *artifact);
extern void tq_artifact_look_up(const TqTask *task, int run_id,
								const char *name, TqArtifact *artifact);
extern Jsonb *tq_artifact_info_json(const TqArtifact *artifact);
extern Jsonb *tq_artifact_created_json(const TqTask *task,
									   const TqArtifact *artifact);
extern Jsonb *tq_artifact_content_json(const TqTask *task,
									   const TqArtifact *artifact);

#endif /* TQ_ARTIFACT_H */
