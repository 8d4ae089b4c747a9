/*
 * artifact_request.h
 *	  Requests to create an artifact: keys and values.
 */
#ifndef TQ_ARTIFACT_REQUEST_H
#define TQ_ARTIFACT_REQUEST_H

#include "utils/jsonb.h"

#include "../core/types.h"
#include "../storage/artifact_table.h"
#include "../util/slugid.h"

extern TqArtifact *tq_artifact_parse(const TqSlug *task_id, int run_id,
									 char *name, Jsonb *request);
extern void tq_artifact_error_expires(const TqSlug *task_id,
									  const TqArtifact *artifact,
									  const char *rule);
extern bool tq_artifact_is_uploaded(TqStorage storage);
extern char *tq_artifact_label(const TqSlug *task_id, int run_id,
							   const char *name);

#endif /* TQ_ARTIFACT_REQUEST_H */
