-- In keyed, has_key says which task the row of the key names.
include empty id
CREATE OR REPLACE FUNCTION name(task_id tq.slugid) RETURNS text LANGUAGE sql IMMUTABLE AS
	$$ SELECT rtrim(left(task_id::text, 8), '_') $$;
CREATE OR REPLACE VIEW keyed AS
	SELECT name(o.task_id) AS task, o.state, t.payload ->> 'of' AS payload,
		(SELECT string_agg(u.key, ' ' ORDER BY u.key) FROM tq_internal.unique_key u WHERE u.task = t.id) AS has_key
	FROM tq.task_details o JOIN tq_internal.task t ON t.task_id = o.task_id
	ORDER BY o.task_id;
