-- put() makes a task with a unique key, in a group.
CREATE OR REPLACE FUNCTION put(id text, key text DEFAULT 'k', conflict text DEFAULT 'return', states text[] DEFAULT NULL) RETURNS text
LANGUAGE sql AS $$
	SELECT name(tq.enqueue('iso/w', jsonb_build_object('of', id), task_id => id(id), task_group_id => id('group'), policy => jsonb_strip_nulls(
		jsonb_build_object('uniqueKey', key, 'onConflict', conflict, 'deadLetter', true, 'retryOn', '[]'::jsonb, 'uniqueStates', to_jsonb(states)))))
$$;
