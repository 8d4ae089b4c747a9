-- ---------------------------------------------------------------------------
-- Artifacts
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.create_artifact(task_id tq.slugid, run_id int, name text, artifact jsonb, credentials jsonb DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_create_artifact' LANGUAGE C;
COMMENT ON FUNCTION tq.create_artifact(tq.slugid, int, text, jsonb, jsonb) IS 'create an artifact of a run, from a Taskcluster createArtifact request; repeats of the same are harmless';

CREATE FUNCTION tq.finish_artifact(task_id tq.slugid, run_id int, name text, upload_id tq.slugid, credentials jsonb DEFAULT NULL) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_finish_artifact' LANGUAGE C;
COMMENT ON FUNCTION tq.finish_artifact(tq.slugid, int, text, tq.slugid, jsonb) IS 'mark the content of an object artifact as uploaded';

CREATE FUNCTION tq.get_artifact(task_id tq.slugid, run_id int, name text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_get_artifact' LANGUAGE C;
COMMENT ON FUNCTION tq.get_artifact(tq.slugid, int, text) IS 'where the content of an artifact is, or inline the content; links are followed';

CREATE FUNCTION tq.get_latest_artifact(task_id tq.slugid, name text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_get_latest_artifact' LANGUAGE C;
COMMENT ON FUNCTION tq.get_latest_artifact(tq.slugid, text) IS 'get_artifact() of the last run';

CREATE FUNCTION tq.artifact_info(task_id tq.slugid, run_id int, name text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_artifact_info' LANGUAGE C;
COMMENT ON FUNCTION tq.artifact_info(tq.slugid, int, text) IS 'an artifact without its content, with the keys of Taskcluster; links are not followed';

CREATE FUNCTION tq.latest_artifact_info(task_id tq.slugid, name text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_latest_artifact_info' LANGUAGE C;
COMMENT ON FUNCTION tq.latest_artifact_info(tq.slugid, text) IS 'artifact_info() of the last run';

CREATE FUNCTION tq.list_artifacts(task_id tq.slugid, run_id int, after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.artifact_entry
	AS 'MODULE_PATHNAME', 'tq_list_artifacts' LANGUAGE C;
COMMENT ON FUNCTION tq.list_artifacts(tq.slugid, int, text, int) IS 'artifacts of a run, by name; go on after the last name seen';

CREATE FUNCTION tq.list_latest_artifacts(task_id tq.slugid, after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.artifact_entry
	AS 'MODULE_PATHNAME', 'tq_list_latest_artifacts' LANGUAGE C;
COMMENT ON FUNCTION tq.list_latest_artifacts(tq.slugid, text, int) IS 'list_artifacts() of the last run';
