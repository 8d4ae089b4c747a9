-- A table with a task definition.
SET client_min_messages = warning;
DROP TABLE IF EXISTS definition;
RESET client_min_messages;
CREATE TABLE definition AS
	SELECT jsonb_build_object('taskQueueId', 'iso/w', 'created', now(), 'deadline', now() + interval '1 day',
		'payload', jsonb_build_object('a', 1), 'metadata', jsonb_build_object('name', 'n',
		'description', 'd', 'owner', 'o', 'source', 'https://example.com')) AS d;
