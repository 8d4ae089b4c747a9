-- The same, and NOTIFY in its transaction.
WITH added AS (INSERT INTO bare (payload) VALUES ('{"command": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}') RETURNING id) SELECT pg_notify('bare', id::text) FROM added;
