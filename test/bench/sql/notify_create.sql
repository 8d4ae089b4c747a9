-- A row of a bare table, and NOTIFY in its transaction.
WITH added AS (INSERT INTO bare (payload) VALUES (:payload) RETURNING id) SELECT pg_notify('bare', id::text) FROM added;
