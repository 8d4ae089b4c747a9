-- The same for a bare table: inserted, taken with SKIP LOCKED, deleted.
INSERT INTO bare (payload) SELECT :def::jsonb -> 'payload' FROM generate_series(1, :n);
WITH taken AS (UPDATE bare SET taken_until = now() + interval '20 min', worker = 'w' || :client_id::text WHERE id = ANY (ARRAY(SELECT id FROM bare WHERE taken_until IS NULL ORDER BY id LIMIT :n FOR UPDATE SKIP LOCKED)) RETURNING id, payload) SELECT coalesce(array_agg(id), '{}')::text AS ids FROM taken \gset
DELETE FROM bare WHERE id = ANY (:ids::bigint[]);
