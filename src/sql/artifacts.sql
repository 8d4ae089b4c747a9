-- ---------------------------------------------------------------------------
-- Artifacts (doc/spec/taskcluster.md 2.15)
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.create_artifact(task_id tq.slugid, run_id int, name text, artifact jsonb, credentials jsonb DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_create_artifact' LANGUAGE C;
COMMENT ON FUNCTION tq.create_artifact(tq.slugid, int, text, jsonb, jsonb) IS 'create an artifact of a run, from a Taskcluster createArtifact request; repeats of the same are harmless';

CREATE FUNCTION tq.finish_artifact(task_id tq.slugid, run_id int, name text, upload_id tq.slugid, credentials jsonb DEFAULT NULL) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_finish_artifact' LANGUAGE C;
COMMENT ON FUNCTION tq.finish_artifact(tq.slugid, int, text, tq.slugid, jsonb) IS 'mark the content of an object artifact as uploaded';

CREATE FUNCTION tq_internal.arg_run_id(run_id int) RETURNS int
	AS 'MODULE_PATHNAME', 'tq_sql_arg_run_id' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.arg_run_id(int) IS 'the argument run_id, if it may be the number of a run';

CREATE FUNCTION tq_internal.arg_artifact_name(name text) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_sql_arg_artifact_name' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.arg_artifact_name(text) IS 'the argument name, if it may be the name of an artifact';

CREATE FUNCTION tq_internal.run_with_artifacts(task_id tq.slugid, run_id int, OUT task bigint, OUT run int)
	AS 'MODULE_PATHNAME', 'tq_sql_run_with_artifacts' LANGUAGE C STABLE;
COMMENT ON FUNCTION tq_internal.run_with_artifacts(tq.slugid, int) IS 'numbers of a task and of a run of it, NULL: its last one in any state; raises TQ404 if one does not exist';

CREATE FUNCTION tq_internal.storage_name(storage_type int) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_storage_name_sql' LANGUAGE C IMMUTABLE STRICT;
COMMENT ON FUNCTION tq_internal.storage_name(int) IS 'name of a stored storage type of an artifact';

CREATE FUNCTION tq_internal.link_chain(names text[]) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_sql_link_chain' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.link_chain(text[]) IS 'names of artifacts that link to each other, as an error lists them';

CREATE FUNCTION tq_internal.artifact_label(task_id tq.slugid, run_id int, name text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN format('artifact "%s" of run %s of task "%s"', tq_internal.clip(name), run_id, task_id);
END
$$;
COMMENT ON FUNCTION tq_internal.artifact_label(tq.slugid, int, text) IS 'the words by which errors name an artifact';

CREATE FUNCTION tq_internal.require_artifact("right" text, what text, task_id tq.slugid) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
	scope text := concat_ws(':', 'queue', "right", what);
	of_queue text := format('queue:%s-in-queue:', "right");
BEGIN
	IF NOT tq_internal.has_scope(scope) AND NOT EXISTS (
			SELECT FROM tq_internal.task t JOIN tq_internal.queue q ON q.id = t.queue
			WHERE t.task_id = require_artifact.task_id AND tq_internal.has_scope(of_queue || q.task_queue_id)) THEN
		PERFORM tq_internal.require_any(scope, of_queue || '<taskQueueId>');
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.require_artifact(text, text, tq.slugid) IS 'raises TQ403 unless the caller has a right to artifacts of that name or run, or to those of the queue of the task';

-- An artifact that is an error, and has no content, counts as present.
CREATE FUNCTION tq_internal.present_artifact(task_id tq.slugid, run_id int, name text) RETURNS tq_internal.artifact LANGUAGE plpgsql STABLE AS $$
DECLARE
	of_run record := tq_internal.run_with_artifacts(task_id, run_id);
	artifact tq_internal.artifact;
BEGIN
	SELECT a.* INTO artifact
		FROM tq_internal.artifact a WHERE a.task = of_run.task AND a.run_id = of_run.run AND a.name = present_artifact.name;
	IF artifact.present THEN
		RETURN artifact;
	END IF;
	RAISE EXCEPTION '% does not exist', tq_internal.artifact_label(task_id, of_run.run, name)
		USING ERRCODE = 'TQ404', HINT = 'tq.list_artifacts() shows the artifacts of a run.',
			DETAIL = CASE WHEN artifact.present IS NULL THEN 'It was never created, or it has expired.' ELSE 'Its upload has not been finished.' END;
END
$$;
COMMENT ON FUNCTION tq_internal.present_artifact(tq.slugid, int, text) IS 'an artifact of a run, or of the last one for NULL; raises TQ404 unless its content is available';

-- Links are followed within the run.  The caller needs the right to each artifact
-- on the way, none of which may have expired.
CREATE FUNCTION tq_internal.artifact_content(task_id tq.slugid, run_id int, name text) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
	now timestamptz := tq_internal.clock_now();
	names text[] := ARRAY[name];
	artifact tq_internal.artifact;
	storage text;
BEGIN
	LOOP
		PERFORM tq_internal.require_artifact('get-artifact', name, task_id);
		artifact := tq_internal.present_artifact(task_id, run_id, name);
		storage := tq_internal.storage_name(artifact.storage_type);
		IF artifact.expires < now THEN
			RAISE EXCEPTION '% has expired', tq_internal.artifact_label(task_id, artifact.run_id, name)
				USING ERRCODE = 'TQ410', DETAIL = format('It expired at %s.', tq_internal.json_time(artifact.expires)),
					HINT = 'Run the task again if you need it.';
		END IF;
		EXIT WHEN storage <> 'link';
		name := artifact.details ->> 'artifact';
		IF name = ANY (names) THEN
			RAISE EXCEPTION '% links to itself', tq_internal.artifact_label(task_id, artifact.run_id, name)
				USING ERRCODE = 'TQ400', DETAIL = format('The links are %s.', tq_internal.link_chain(names || name)),
					HINT = 'Ask for an artifact that is not a link, or run the task again.';
		END IF;
		names := names || name;
	END LOOP;
	IF storage = 'error' THEN
		RAISE EXCEPTION '% is an error', tq_internal.artifact_label(task_id, artifact.run_id, name)
			USING ERRCODE = 'TQ424', DETAIL = format('%s: %s', artifact.details ->> 'reason', artifact.details ->> 'message'),
				HINT = 'The worker could not create it; look at the task''s log.';
	END IF;
	RETURN jsonb_build_object('storageType', storage) || artifact.details || CASE
		WHEN storage IN ('blob', 'object') THEN jsonb_build_object('name', format('t/%s/%s/%s', task_id, artifact.run_id, name))
		WHEN storage = 'inline' THEN jsonb_build_object('contentType', artifact.content_type)
		ELSE '{}' END;
END
$$;
COMMENT ON FUNCTION tq_internal.artifact_content(tq.slugid, int, text) IS 'what get_artifact() returns; NULL: of the last run';

CREATE FUNCTION tq.get_artifact(task_id tq.slugid, run_id int, name text) RETURNS jsonb
	LANGUAGE tq_read AS $$
BEGIN
	PERFORM tq_internal.not_null(task_id, 'task_id'), tq_internal.arg_run_id(run_id), tq_internal.arg_artifact_name(name);
	RETURN tq_internal.artifact_content(task_id, run_id, name);
END
$$;
COMMENT ON FUNCTION tq.get_artifact(tq.slugid, int, text) IS 'where the content of an artifact is, or inline the content; links are followed';

CREATE FUNCTION tq.get_latest_artifact(task_id tq.slugid, name text) RETURNS jsonb
	LANGUAGE tq_read AS $$
BEGIN
	PERFORM tq_internal.not_null(task_id, 'task_id'), tq_internal.arg_artifact_name(name);
	RETURN tq_internal.artifact_content(task_id, NULL, name);
END
$$;
COMMENT ON FUNCTION tq.get_latest_artifact(tq.slugid, text) IS 'get_artifact() of the last run';

CREATE FUNCTION tq_internal.require_artifacts(task_id tq.slugid, run_id int) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
	PERFORM tq_internal.require_artifact('list-artifacts', concat_ws(':', task_id, run_id), task_id);
END
$$;
COMMENT ON FUNCTION tq_internal.require_artifacts(tq.slugid, int) IS 'raises TQ403 unless the caller may see which artifacts a run has, or for NULL the last one';

CREATE FUNCTION tq_internal.artifact_info(task_id tq.slugid, run_id int, name text) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
	artifact tq_internal.artifact;
BEGIN
	PERFORM tq_internal.require_artifacts(task_id, run_id);
	artifact := tq_internal.present_artifact(task_id, run_id, name);
	RETURN jsonb_strip_nulls(jsonb_build_object('storageType', tq_internal.storage_name(artifact.storage_type), 'name', name,
		'expires', tq_internal.json_time(artifact.expires), 'contentType', artifact.content_type, 'contentLength', artifact.content_length));
END
$$;
COMMENT ON FUNCTION tq_internal.artifact_info(tq.slugid, int, text) IS 'what tq.artifact_info() returns; NULL: of the last run';

CREATE FUNCTION tq.artifact_info(task_id tq.slugid, run_id int, name text) RETURNS jsonb
	LANGUAGE tq_read AS $$
BEGIN
	PERFORM tq_internal.not_null(task_id, 'task_id'), tq_internal.arg_run_id(run_id), tq_internal.arg_artifact_name(name);
	RETURN tq_internal.artifact_info(task_id, run_id, name);
END
$$;
COMMENT ON FUNCTION tq.artifact_info(tq.slugid, int, text) IS 'an artifact without its content, with the keys of Taskcluster; links are not followed';

CREATE FUNCTION tq.latest_artifact_info(task_id tq.slugid, name text) RETURNS jsonb
	LANGUAGE tq_read AS $$
BEGIN
	PERFORM tq_internal.not_null(task_id, 'task_id'), tq_internal.arg_artifact_name(name);
	RETURN tq_internal.artifact_info(task_id, NULL, name);
END
$$;
COMMENT ON FUNCTION tq.latest_artifact_info(tq.slugid, text) IS 'artifact_info() of the last run';

CREATE FUNCTION tq_internal.artifacts_of_run(task bigint, run int, after text, page_size int) RETURNS SETOF tq.artifact_entry
	LANGUAGE sql STABLE
	BEGIN ATOMIC
		SELECT a.run_id::int, a.name, tq_internal.storage_name(a.storage_type), a.content_type, a.content_length, a.expires, a.present
		FROM tq_internal.artifact a
		WHERE a.task = artifacts_of_run.task AND a.run_id = run AND a.name > coalesce(after, '')
		ORDER BY a.name LIMIT page_size;
	END;
COMMENT ON FUNCTION tq_internal.artifacts_of_run(bigint, int, text, int) IS 'a page of the artifacts of a run';

CREATE FUNCTION tq.list_artifacts(task_id tq.slugid, run_id int, after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.artifact_entry
	LANGUAGE tq_read AS $$
DECLARE
	page_size int;
	of_run record;
BEGIN
	PERFORM tq_internal.not_null(task_id, 'task_id'), tq_internal.arg_run_id(run_id);
	page_size := tq_internal.arg_max(max);
	PERFORM tq_internal.require_artifacts(task_id, run_id);
	of_run := tq_internal.run_with_artifacts(task_id, run_id);
	RETURN QUERY SELECT * FROM tq_internal.artifacts_of_run(of_run.task, of_run.run, after, page_size);
END
$$;
COMMENT ON FUNCTION tq.list_artifacts(tq.slugid, int, text, int) IS 'artifacts of a run, by name; go on after the last name seen';

CREATE FUNCTION tq.list_latest_artifacts(task_id tq.slugid, after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.artifact_entry
	LANGUAGE tq_read AS $$
DECLARE
	page_size int;
	of_run record;
BEGIN
	PERFORM tq_internal.not_null(task_id, 'task_id');
	page_size := tq_internal.arg_max(max);
	PERFORM tq_internal.require_artifacts(task_id, NULL);
	of_run := tq_internal.run_with_artifacts(task_id, NULL);
	RETURN QUERY SELECT * FROM tq_internal.artifacts_of_run(of_run.task, of_run.run, after, page_size);
END
$$;
COMMENT ON FUNCTION tq.list_latest_artifacts(tq.slugid, text, int) IS 'list_artifacts() of the last run';
