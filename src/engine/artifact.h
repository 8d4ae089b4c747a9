/*
 * artifact.h
 *	  Artifacts of runs: creation, the end of an upload, reading.
 */
#ifndef TQ_ARTIFACT_H
#define TQ_ARTIFACT_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../storage/artifact_table.h"
#include "../storage/task_table.h"
#include "../util/slugid.h"

extern TqNamedTask *tq_artifact_create(const TqSlug *task_id,
									   TqArtifact *artifact, bool is_allowed,
									   TimestampTz now);
extern void tq_artifact_finish(const TqSlug *task_id, int run_id,
							   const char *name, const TqSlug *upload_id,
							   bool is_allowed);
extern int tq_artifact_latest_run(const TqTask *task);
extern void tq_artifact_check_run(const TqTask *task, int run_id);
extern void tq_artifact_get(const TqTask *task, int run_id, const char *name,
							TimestampTz now, TqArtifact *artifact);
extern void tq_artifact_look_up(const TqTask *task, int run_id,
								const char *name, TqArtifact *artifact);
extern Jsonb *tq_artifact_info_json(const TqArtifact *artifact);
extern Jsonb *tq_artifact_created_json(const TqNamedTask *named,
									   const TqArtifact *artifact);
extern Jsonb *tq_artifact_content_json(const TqTask *task,
									   const TqArtifact *artifact);

#endif /* TQ_ARTIFACT_H */
